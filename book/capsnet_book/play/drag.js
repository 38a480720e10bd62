// @ts-check
// What a reader drags in a drawing: by a pointer, a finger, or the arrow keys.

import { set } from "./kit.js";

/** @typedef {[number, number]} Point */

/** @type {Record<string, Point>} */
const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

/** Where in a drawing's units a pointer is, downwards.
 * @param {SVGSVGElement} view
 * @param {PointerEvent} event
 * @returns {Point}
 */
export function pointed(view, { clientX, clientY }) {
  const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(view.getScreenCTM()?.inverse());
  return [x, y];
}

/** Let a part of a drawing be dragged by where it is taken hold of. Points are in the drawing's units, upwards.
 * @param {SVGElement} handle
 * @param {SVGSVGElement} view
 * @param {number} step  how far an arrow key moves it
 * @param {() => Point} at  where it is
 * @param {(x: number, y: number) => void} put
 */
export function draggable(handle, view, step, at, put) {
  let held = [0, 0]; // from the pointer to where it is
  set(handle, {
    onpointerdown: (/** @type {PointerEvent} */ event) => {
      const [[x, y], [px, py]] = [at(), pointed(view, event)];
      held = [x - px, y + py];
      handle.setPointerCapture(event.pointerId);
      handle.focus({ preventScroll: true });
      event.preventDefault();
    },
    onpointermove: (/** @type {PointerEvent} */ event) => {
      if (!handle.hasPointerCapture(event.pointerId)) return;
      const [px, py] = pointed(view, event);
      put(px + held[0], held[1] - py);
    },
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      const way = WAYS[event.key];
      if (!way) return;
      event.preventDefault();
      const [x, y] = at();
      put(x + step * way[0], y + step * way[1]);
    },
  });
  // touch-action does not reach into a drawing everywhere; this keeps the page from scrolling along.
  handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
}
