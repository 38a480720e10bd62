// @ts-check
// Drag s; v follows. The dot shows what equation (1) makes of its length, and how far a nudge gets.

import { lengths, squash } from "./capsules.js";
import { draggable, pointed } from "./drag.js";
import { button, choice, el, number, readState, set, slider, writeState } from "./kit.js";
import { plot } from "./plot.js";

const NAME = "squash";
const LONGEST = 3;
const [SIZE, UNIT] = [340, 52]; // of the plane, in its own points
const NUDGE = 0.4;
const START = { length: 2, turn: 30, show: /** @type {"length" | "nudge"} */ ("length") };

/** How far v moves for a small nudge of s: along s, and at right angles to it.
 * @param {number} r  ‖s‖
 */
export function slopes(r) {
  return { along: (2 * r) / (1 + r * r) ** 2, across: r / (1 + r * r) };
}

/** @param {HTMLElement} stage */
export async function mount(stage) {
  const asked = readState(NAME);
  const within = (/** @type {string | undefined} */ text, /** @type {number} */ most, /** @type {number} */ otherwise) =>
    text && Number.isFinite(+text) ? Math.min(most, Math.max(0, +text)) : otherwise;
  const state = {
    length: within(asked.length, LONGEST, START.length),
    turn: within(asked.turn, 360, START.turn),
    show: asked.show === "nudge" ? "nudge" : START.show,
  };

  const arrow = (/** @type {string} */ kind) => el("g", { class: kind }, el("line", {}), el("polygon", { points: "0,0 -12,5 -12,-5" }));
  const [s, v] = [arrow("s"), arrow("v")];
  const nudges = ["s", "v"].map((kind) => el("circle", { r: NUDGE * UNIT, class: `nudge ${kind}` }));
  const tip = el("g", { tabindex: 0, role: "slider", "aria-label": "The tip of s", "aria-valuemin": 0, "aria-valuemax": LONGEST });
  tip.append(el("circle", { r: 24, class: "grasp" }), el("circle", { r: 7, class: "knob" }));
  const hint = el("text", { x: 30, y: 5, class: "hint" }, "drag s");
  tip.append(hint);
  const names = [el("text", { class: "s" }, "s"), el("text", { class: "v" }, "v")];
  const half = SIZE / 2;
  const plane = el("svg", { viewBox: `${-half} ${-half} ${SIZE} ${SIZE}`, class: "plane" });
  plane.append(
    el("path", { class: "axes", d: `M${-half} 0H${half}M0 ${-half}V${half}` }),
    el("circle", { r: UNIT, class: "unit" }),
    el("text", { x: UNIT + 4, y: 15, class: "tick" }, "1"),
    ...nudges, s, v, ...names, tip,
  );

  const left = plot({ width: 320, height: 250, x: [0, 1, 2, LONGEST], y: [0, 0.5, 1], xName: "‖s‖ goes in", yName: "‖v‖ comes out", label: "The length that comes out, for the length that goes in: from 0 at 0 it rises through one half at 1 towards 1." });
  left.curve((r) => lengths(squash(Float64Array.of(r), 1), 1)[0], { class: "curve v" });
  const right = plot({ width: 320, height: 250, x: [0, 1, 2, LONGEST], y: [0, 0.25, 0.5, 0.75], xName: "‖s‖ goes in", yName: "how far a nudge of s moves v", label: "Along s the nudge's effect rises to 0.65 and falls quickly; across s it rises to one half at 1 and falls slowly." });
  right.curve((r) => slopes(r).along);
  right.curve((r) => slopes(r).across, { "stroke-dasharray": "6 4" });
  right.svg.append(el("text", { x: right.px(0.85), y: right.py(0.61) }, "along"), el("text", { x: right.px(2.2), y: right.py(0.42) }, "across"));
  const dots = { v: el("circle", { r: 6, class: "dot v" }), along: el("circle", { r: 6, class: "dot" }), across: el("circle", { r: 6, class: "dot" }) };
  left.svg.append(dots.v);
  right.svg.append(dots.along, dots.across);

  const said = el("p", { class: "said", "aria-live": "polite" });
  const long = slider("length ‖s‖", { min: 0, max: LONGEST, step: 0.01, value: 0, moved: (to) => moved({ length: to }) });
  const turned = slider("direction", { min: 0, max: 360, step: 1, value: 0, says: (x) => `${x}°`, moved: (to) => moved({ turn: to }) });
  const shown = choice("Show", { length: "its length", nudge: "a nudge" }, START.show, (to) => moved({ show: to }));
  const reset = button("Reset", () => moved(START, {}));
  stage.append(plane, el("div", { class: "graph" }, left.svg, right.svg), said, el("div", { class: "hands" }, long, turned), el("div", { class: "bar" }, shown, reset));

  /** @param {any} group @param {number} r @param {number} angle  degrees, anticlockwise */
  function point(group, r, angle) {
    const at = r * UNIT;
    set(group.firstChild, { x2: Math.max(0, at - 10) });
    set(group.lastChild, { transform: `translate(${at}) scale(${Math.min(1, at / 12)})` });
    set(group, { transform: `rotate(${-angle})` });
  }

  function draw() {
    const { length: r, turn, show } = state;
    const angle = (turn * Math.PI) / 180;
    const at = Float64Array.of(r * Math.cos(angle), r * Math.sin(angle));
    const after = squash(at, 2);
    const out = lengths(after, 2)[0];
    point(s, r, turn);
    point(v, out, turn);
    set(tip, { transform: `translate(${at[0] * UNIT} ${-at[1] * UNIT})`, "aria-valuenow": number(r), "aria-valuetext": `length ${number(r)}, direction ${Math.round(turn)} degrees; v has length ${number(out)}` });
    names.forEach((name, k) => {
      const far = (k ? out : r) * UNIT;
      set(name, { x: far * Math.cos(angle) + 16 * Math.sin(angle) - 4, y: -far * Math.sin(angle) + 16 * Math.cos(angle) + 4 });
    });
    set(names[1], { hidden: (r - out) * UNIT < 14 }); // it would lie on the other
    const { along, across } = slopes(r);
    set(nudges[0], { cx: at[0] * UNIT, cy: -at[1] * UNIT });
    set(nudges[1], { transform: `translate(${after[0] * UNIT} ${-after[1] * UNIT}) rotate(${-turn}) scale(${along} ${across})` });
    set(dots.v, { cx: left.px(r), cy: left.py(out) });
    set(dots.along, { cx: right.px(r), cy: right.py(along) });
    set(dots.across, { cx: right.px(r), cy: right.py(across) });
    stage.classList.toggle("nudging", show === "nudge");
    said.textContent = show === "nudge"
      ? `Nudge s by 0.10: along s, v moves ${number(0.1 * along, 3)}; across it, ${number(0.1 * across, 3)}.`
      : `‖v‖ = ‖s‖² / (1 + ‖s‖²) = ${number(r * r)} / ${number(1 + r * r)} = ${number(out)}`;
    [long.value, turned.value, shown.value] = [r, turn, show];
  }

  /** @param {Partial<typeof state>} to @param {Record<string, string | number>} [kept] */
  function moved(to, kept) {
    Object.assign(state, to);
    hint.remove();
    draw();
    writeState(NAME, kept ?? { length: +state.length.toFixed(2), turn: Math.round(state.turn), show: state.show });
  }

  /** @param {number} x @param {number} y  where the tip goes */
  function put(x, y) {
    moved({ length: Math.min(LONGEST, Math.hypot(x, y)), turn: ((Math.atan2(y, x) * 180) / Math.PI + 360) % 360 });
  }
  /** @returns {[number, number]} */
  const at = () => {
    const angle = (state.turn * Math.PI) / 180;
    return [UNIT * state.length * Math.cos(angle), UNIT * state.length * Math.sin(angle)];
  };
  draggable(tip, plane, 0.1 * UNIT, at, (x, y) => put(x / UNIT, y / UNIT));
  plane.addEventListener("click", (/** @type {PointerEvent} */ event) => {
    const [x, y] = pointed(plane, event);
    if (!tip.contains(/** @type {Node} */ (event.target))) put(x / UNIT, -y / UNIT);
  });
  draw();
}
