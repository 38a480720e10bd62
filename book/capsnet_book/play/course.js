// @ts-check
// The lengths of capsules over the iterations, a curve each, and a line at the iteration that is shown: to be dragged.

import { pointed } from "./drag.js";
import { el, set } from "./kit.js";
import { plot } from "./plot.js";

/**
 * @param {{ capsules: number, iterations: number, height: number, yName: string, label: string, chosen: (r: number) => void }} options
 *   `chosen` gets an iteration, from 0; the keys have a slider for it
 */
export function course({ capsules, iterations, height, yName, label, chosen }) {
  const { svg, px, py } = plot({ width: 240, height, x: [1, iterations / 2, iterations], y: [0, 0.5, 1], xName: "iteration", yName, label });
  const curves = Array.from({ length: capsules }, () => el("polyline", { class: "curve" }));
  const now = el("line", { class: "now", y1: py(0), y2: py(1) });
  svg.append(...curves, now);
  const choose = (/** @type {PointerEvent} */ event) => {
    const r = Math.round((pointed(svg, event)[0] - px(1)) / (px(2) - px(1)));
    chosen(Math.min(iterations - 1, Math.max(0, r)));
  };
  set(svg, {
    onpointerdown: (/** @type {PointerEvent} */ event) => (svg.setPointerCapture(event.pointerId), choose(event)),
    onpointermove: (/** @type {PointerEvent} */ event) => svg.hasPointerCapture(event.pointerId) && choose(event),
  });
  svg.classList.add("course");
  return {
    svg,
    /** @param {ArrayLike<number>[]} lengths  of each iteration @param {number} r @param {number} [longest] */
    show(lengths, r, longest) {
      curves.forEach((curve, k) => {
        set(curve, { points: lengths.map((each, n) => `${px(n + 1)},${py(each[k])}`).join(" ") });
        curve.classList.toggle("v", k === longest);
      });
      set(now, { x1: px(r + 1), x2: px(r + 1) });
    },
  };
}
