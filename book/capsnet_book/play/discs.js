// @ts-check
// A parent as a disc of radius 1: its votes to drag by their ends, its sum s and its output v.

import { draggable } from "./drag.js";
import { el, set } from "./kit.js";

const REACH = 1.22; // half the width of the drawing, in the disc's radii
const STEP = 0.05; // how far an arrow key moves a vote

/** @typedef {import("./drag.js").Point} Point */

/** An arrow from the centre, as a path, and how thick it is; of a short one the head is half, and all is thinner.
 * @param {Point} tip
 * @param {number} head
 * @param {number} thick
 */
function arrow([x, y], head, thick) {
  const length = Math.hypot(x, y) || 1e-9;
  const [dx, dy] = [x / length, y / length];
  const h = Math.min(head, 0.5 * length);
  const [bx, by] = [x - h * dx, y - h * dy];
  const w = h * 0.55;
  const d = `M0 0L${bx} ${-by}M${x} ${-y}L${bx - w * dy} ${-(by + w * dx)}L${bx + w * dy} ${-(by - w * dx)}Z`;
  return { d, "stroke-width": Math.min(thick, 0.2 * length) };
}

/** Into the disc: no vote is longer than 1.
 * @param {Point} at
 * @returns {Point}
 */
const within = ([x, y]) => {
  const length = Math.max(1, Math.hypot(x, y));
  return [x / length, y / length];
};

/**
 * @param {string} parent  its name, such as "A"
 * @param {string} title  what it is
 * @param {number} children
 * @param {(child: number, at: Point) => void} moved
 */
export function disc(parent, title, children, moved) {
  const view = el("svg", {
    viewBox: `${-REACH} ${-REACH} ${2 * REACH} ${2 * REACH}`, role: "group", "aria-label": `votes for ${parent}, the ${title}` });
  const path = (/** @type {string} */ name) => view.appendChild(el("path", { class: name }));
  view.append(el("circle", { r: 1, class: "rim" }), el("circle", { r: 0.015, class: "centre" }));
  // From below: shafts, the sum and the outputs, the ends of the votes.
  const shafts = Array.from({ length: children }, () => view.appendChild(el("line", { class: "vote" })));
  const ghost = path("ghost");
  const sum = path("sum");
  const output = path("output");
  const votes = Array.from({ length: children }, (_, i) => {
    const stick = el("line", { class: "stick" }); // to be held by, too
    const grip = el("circle", { r: 0.2, class: "grip" });
    const knob = el("circle", { r: 0.1, class: "knob" });
    const number = el("text", { class: "number" }, String(i + 1));
    const group = el("g", { tabindex: 0, role: "slider", class: "votes", "aria-valuemin": 0, "aria-valuemax": 1,
      "aria-label": `vote of child ${i + 1} for ${parent}` }, stick, grip, knob, number);
    view.append(group);
    /** @type {Point} */
    let at = [0, 0];
    draggable(group, view, STEP, () => at, (x, y) => moved(i, within([x, y])));
    return {
      /** @param {Point} tip @param {number} share */
      show(tip, share) {
        at = tip;
        const [x, y] = tip;
        const length = Math.hypot(x, y);
        set(shafts[i], { x2: x, y2: -y, "stroke-width": 0.01 + 0.09 * share });
        set(stick, { x2: x, y2: -y });
        for (const round of [grip, knob]) set(round, { cx: x, cy: -y });
        set(number, { x, y: -y });
        const words = `right ${x.toFixed(2)}, up ${y.toFixed(2)}; coefficient ${share.toFixed(2)}`;
        set(group, { "aria-valuenow": length.toFixed(2), "aria-valuetext": words });
      },
    };
  });
  const sign = el("text", { class: "sign", x: -REACH + 0.04, y: -REACH + 0.2 }, parent);
  const name = el("text", { class: "name", x: -REACH + 0.04, y: -REACH + 0.38 }, title);
  const sizes = el("text", { class: "name", x: REACH - 0.04, y: REACH - 0.04, "text-anchor": "end" });
  view.append(sign, name, sizes);

  return {
    view,
    /** What an iteration computes.
     * @param {Point[]} tips
     * @param {number[]} shares
     * @param {Point} s
     * @param {Point} v
     * @param {Point | null} before  the last iteration's v
     * @param {boolean} [named]  whether the votes are still those for the thing of the title
     */
    show(tips, shares, s, v, before, named = true) {
      set(name, { hidden: !named });
      const long = (/** @type {Point} */ [x, y]) => Math.hypot(x, y).toFixed(2);
      sizes.textContent = `s ${long(s)} → v ${long(v)}`;
      votes.forEach((vote, i) => vote.show(tips[i], shares[i]));
      // s may leave the disc: its arrow ends at the edge, its length stands beside.
      const scale = Math.min(1, 1.18 / Math.hypot(...s));
      set(sum, arrow([s[0] * scale, s[1] * scale], 0.1, 0.022));
      set(output, arrow(v, 0.16, 0.05));
      set(ghost, before ? arrow(before, 0.16, 0.02) : { d: null });
    },
  };
}
