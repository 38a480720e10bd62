// @ts-check
// The scene of Parts and a whole.

import { el } from "./kit.js";

/** The six parts as they lie in the picture, numbered.
 * @param {number[][][]} outlines  of each part, its corners
 */
export function drawScene(outlines) {
  const points = outlines.flat();
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const [left, top] = [Math.min(...xs), -Math.max(...ys)];
  const [wide, high] = [Math.max(...xs) - left, -Math.min(...ys) - top];
  const view = el("svg", { viewBox: `${left - 0.4} ${top - 0.4} ${wide + 0.8} ${high + 0.8}`, class: "scene", role: "img",
    "aria-label": "the six parts, numbered: 1 to 4 are a crooked house" });
  outlines.forEach((corners, i) => {
    const middle = [0, 1].map((k) => corners.reduce((sum, corner) => sum + corner[k], 0) / corners.length);
    // A rectangle's number leaves its middle to what may stand there.
    const [x, y] = middle.map((m, k) => (corners.length === 4 ? m + 0.3 * (corners[2][k] + corners[3][k] - 2 * m) : m));
    view.append(el("polygon", { "data-part": i, points: corners.map(([x, y]) => `${x},${-y}`).join(" ") }),
      el("text", { x, y: -y, class: "number" }, String(i + 1)));
  });
  return view;
}
