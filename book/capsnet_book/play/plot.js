// @ts-check
// A small graph to move things in: axes, curves, and a scale from the data to the drawing.

import { el } from "./kit.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [34, 14, 24, 38];

/** Axes with names, ticks and a title above; `px` and `py` say where a number lies.
 * @param {{ width: number, height: number, x: number[], y: number[], xName: string, yName: string, label: string, says?: (x: number) => string }} options
 *   x and y: the ticks, from the least to the greatest; `says` reads those of x
 */
export function plot({ width, height, x, y, xName, yName, label, says = (at) => `${at}`.replace("-", "−") }) {
  const [x0, x1, y0, y1] = [x[0], x.at(-1) ?? 1, y[0], y.at(-1) ?? 1];
  const px = (/** @type {number} */ at) => LEFT + ((at - x0) / (x1 - x0)) * (width - LEFT - RIGHT);
  const py = (/** @type {number} */ at) => height - BOTTOM - ((at - y0) / (y1 - y0)) * (height - TOP - BOTTOM);
  const axes = el("path", { class: "axes", d: `M${LEFT} ${TOP}V${height - BOTTOM}H${width - RIGHT}` });
  const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot", role: "img", "aria-label": label });
  svg.append(
    el("text", { x: 2, y: 13 }, yName),
    el("text", { x: width - RIGHT, y: height - 3, "text-anchor": "end" }, xName),
    ...x.map((at) => el("text", { x: px(at), y: height - BOTTOM + 16, "text-anchor": "middle", class: "tick" }, says(at))),
    ...y.map((at) => el("text", { x: LEFT - 6, y: py(at) + 4, "text-anchor": "end", class: "tick" }, `${at}`.replace("-", "−"))),
    axes,
  );
  return {
    svg,
    px,
    py,
    /** The curve of a function, below all that was put in before.
     * @param {(at: number) => number} f
     * @param {Record<string, string | number>} [attributes]
     */
    curve(f, attributes = {}) {
      const points = Array.from({ length: 161 }, (_, k) => x0 + ((x1 - x0) * k) / 160);
      const made = el("polyline", { class: "curve", points: points.map((at) => `${px(at).toFixed(1)},${py(f(at)).toFixed(1)}`).join(" "), ...attributes });
      axes.after(made);
      return made;
    },
  };
}
