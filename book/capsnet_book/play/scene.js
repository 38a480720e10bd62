// @ts-check
// The scene of Parts and a whole: six parts, each of which is pulled by its top and turns as it follows.

import { draggable } from "./drag.js";
import { el, number, set } from "./kit.js";
import { placed, pose, turned, turnOf } from "./poses.js";

const [WIDE, HIGH] = [2.9, 2.2]; // of the scene, in the unit of the poses; (0, 0) is its middle
const KNOB = 0.1; // its radius; it stands on the part's top
const STEP = 0.05; // how far an arrow key pulls a knob

/** @typedef {import("./drag.js").Point} Point */
/** @typedef {[x: number, y: number, turn: number]} Stand  of a part: its middle, in hundredths, and its turn in degrees */

/** The mean of some points. @param {Point[]} points @returns {Point} */
const mean = (points) => /** @type {Point} */ ([0, 1].map((k) => points.reduce((sum, point) => sum + point[k], 0) / points.length));
const poseOf = (/** @type {Stand} */ [x, y, turn]) => pose(x / 100, y / 100, turn);

/** Where the knob of a part is. @param {Stand} stand @param {number} arm  how far from its middle @returns {Point} */
function knobOf(stand, arm) {
  const [x, y, p, q] = poseOf(stand);
  return [x + arm * p, y + arm * q];
}

/** How a part stands once its knob was pulled to a place: its middle follows, as far from the knob as before.
 * @param {Stand} stand @param {Point} to @param {number} arm
 */
function pulled([x, y], to, arm) {
  const most = [WIDE / 2 - KNOB, HIGH / 2 - KNOB];
  const [right, up] = to.map((at, k) => Math.max(-most[k], Math.min(most[k], at)));
  const [p, q] = [right - x / 100, up - y / 100];
  const part = arm / (Math.hypot(p, q) || 1);
  return /** @type {Stand} */ ([100 * (right - part * p), 100 * (up - part * q), turnOf([0, 0, p, q])].map(Math.round));
}

/** The six parts as they lie in the picture, numbered.
 * @param {Point[][]} outlines  of each part, its corners: two at its bottom, then those at its top
 * @param {() => void} moved
 */
export function drawScene(outlines, moved) {
  const view = el("svg", { viewBox: `${-WIDE / 2} ${-HIGH / 2} ${WIDE} ${HIGH}`, class: "scene", role: "group",
    "aria-label": "the six parts, numbered: 1 to 4 are a crooked house" });
  const parts = outlines.map((corners, i) => {
    const [middle, bottom, top] = [corners, corners.slice(0, 2), corners.slice(2)].map(mean);
    const [p, q] = [0, 1].map((k) => top[k] - bottom[k]);
    const start = /** @type {Stand} */ ([100 * middle[0], 100 * middle[1], turnOf([0, 0, p, q])].map(Math.round));
    const upright = corners.map(([x, y]) => /** @type {Point} */ (turned([x - middle[0], y - middle[1], 0, 1], -start[2]).slice(0, 2)));
    const arm = Math.hypot(top[0] - middle[0], top[1] - middle[1]) + KNOB;
    const [shape, stick] = [el("polygon", { "data-part": i }), el("line", { class: "arm" })];
    const [hold, knob] = [el("circle", { class: "hold", r: 0.16 }), el("circle", { class: "tip", r: KNOB })];
    const name = el("text", { class: "number" }, `${i + 1}`);
    const group = el("g", { tabindex: 0, role: "slider", class: "part", "aria-label": `part ${i + 1}`,
      "aria-valuemin": -180, "aria-valuemax": 180 }, hold, shape, stick, knob, name);
    view.append(group);
    /** @param {Stand} stand */
    const put = (stand) => {
      part.stand = stand;
      const [where, [x, y]] = [poseOf(stand), knobOf(stand, arm)];
      set(shape, { points: placed(upright, where) });
      set(stick, { x1: where[0], y1: -where[1], x2: x, y2: -y });
      for (const round of [hold, knob]) set(round, { cx: x, cy: -y });
      set(name, { x, y: -y });
      set(group, { "aria-valuenow": stand[2], "aria-valuetext": `right ${number(where[0])}, up ${number(where[1])}, turned by ${number(stand[2], 0)}°` });
    };
    const part = { stand: start, start, put };
    draggable(group, view, STEP, () => knobOf(part.stand, arm), (...to) => {
      put(pulled(part.stand, to, arm));
      moved();
    });
    return part;
  });

  return {
    view,
    /** By how many degrees each part was turned. */
    turns: () => parts.map(({ stand, start }) => stand[2] - start[2]),
    /** How the parts stand; "" if as at first. */
    written: () => (parts.every(({ stand, start }) => `${stand}` === `${start}`) ? "" : parts.map(({ stand }) => `${stand}`).join(" ")),
    /** Have them stand as was written, or if none can stand so as at first.
     * @param {string} written
     */
    take(written) {
      const stands = /** @type {Stand[]} */ (written.split(" ").map((each) => each.split(",").map(Number)));
      const possible = (/** @type {Stand} */ stand) => stand.length === 3 && stand.every((x, k) => Number.isInteger(x) && Math.abs(x) <= [50 * WIDE, 50 * HIGH, 180][k]);
      const known = stands.length === parts.length && stands.every(possible);
      parts.forEach(({ start, put }, i) => put(known ? stands[i] : start));
    },
  };
}
