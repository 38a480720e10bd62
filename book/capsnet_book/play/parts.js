// @ts-check
// Drag a roof and a wall, turn them, and see which whole each of them predicts: Parts and a whole.

import { draggable } from "./drag.js";
import { button, choice, el, number, readState, set, slider, writeState } from "./kit.js";
import { placed, pose, turned, turnOf } from "./poses.js";

const NAME = "parts";
const [WIDE, HIGH] = [3.4, 2.5]; // of the scene, in the unit of the poses; (0, 0) is its middle
const TOP = 0.3; // length of the arrow to a top
const NEAR = 0.3; // votes that are no further apart agree
const STEP = 0.05; // how far an arrow key moves a part
const PARTS = ["roof", "wall"];
// The sea of an upright boat, around its middle.
const SEA = Array.from({ length: 101 }, (_, k) => /** @type {[number, number]} */ ([0.01 * (k - 50), 0.04 * Math.sin(k / 4) - 0.57]));
const WHOLES = { house: "a house", boat: "a boat" };

/** @typedef {import("./poses.js").Pose} Pose */
/** @typedef {keyof typeof WHOLES} Whole */

/** W times the pose of a part: that of the whole.
 * @param {ArrayLike<number>} W  [4, 4] @param {Pose} where @returns {Pose}
 */
function predicted(W, where) {
  return /** @type {Pose} */ ([0, 4, 8, 12].map((row) => where.reduce((sum, x, k) => sum + W[row + k] * x, 0)));
}

/** The pose of a part whose W predicts this whole.
 * @param {ArrayLike<number>} W @param {Pose} whole @returns {Pose}
 */
function partOf(W, [x, y, p, q]) {
  const [a, b] = [W[10] * p + W[14] * q, W[11] * p + W[15] * q]; // a rotation's inverse is its transpose
  return [x - W[2] * a - W[3] * b, y - W[6] * a - W[7] * b, a, b];
}

/** How far two poses are apart, over all four numbers.
 * @param {Pose} one @param {Pose} other
 */
const apart = (one, other) => Math.hypot(...one.map((x, k) => x - other[k]));

/** @typedef {{ whole: Whole, turn: number }} Now  of votes that agree */
const TASKS = [
  { asks: "Make a house that stands on its head.", done: (/** @type {Now} */ { whole, turn }) => whole === "house" && Math.abs(turn) > 150 },
  { asks: "Make a boat of the same two parts.", done: (/** @type {Now} */ { whole }) => whole === "boat" },
];

/** @param {HTMLElement} stage
 * @param {{ outlines: [number, number][][], W: Float32Array, start: [number, number, number][] }} data
 *   outlines of the parts, their matrices [parts, wholes, 4, 4], and where each stands: x, y, turn
 */
export async function mount(stage, { outlines, W, start }) {
  const fresh = () => ({ parts: start.map((at) => [...at]), all: 0, whole: /** @type {Whole} */ ("house") });
  const state = fresh();
  const asked = readState(NAME);
  PARTS.forEach((part, i) => {
    const given = (asked[part] ?? "").split(",").map(Number);
    if (given.length === 3 && given.every(Number.isFinite)) state.parts[i] = [...inside(given[0], given[1]), given[2]];
  });
  if (Number.isFinite(+asked.all)) state.all = +asked.all;
  if (asked.whole === "boat") state.whole = "boat";
  const solved = new Set();

  const matrix = (/** @type {number} */ part, /** @type {Whole} */ whole) => {
    const from = 16 * (2 * part + Object.keys(WHOLES).indexOf(whole));
    return W.subarray(from, from + 16);
  };
  const poseOf = (/** @type {number} */ i) => {
    const [x, y, turn] = state.parts[i];
    return turned(pose(x, y, turn), state.all);
  };

  const view = el("svg", { viewBox: `${-WIDE / 2} ${-HIGH / 2} ${WIDE} ${HIGH}`, class: "plane", role: "group",
    "aria-label": "a roof and a wall, and the whole that each predicts" });
  const ghosts = PARTS.map((part) => {
    const shapes = outlines.map(() => el("polygon", {}));
    const [arrow, sea] = [el("path", { class: "top" }), el("polyline", { class: "top" })];
    view.append(el("g", { class: `ghost by-${part}` }, ...shapes, arrow, sea));
    return { shapes, arrow, sea };
  });
  const parts = PARTS.map((part, i) => {
    const shape = el("polygon", {});
    const group = el("g", { tabindex: 0, role: "slider", class: "part", "aria-label": `the ${part}`,
      "aria-valuemin": -WIDE / 2, "aria-valuemax": WIDE / 2 }, shape);
    view.append(group);
    const at = () => /** @type {[number, number]} */ (poseOf(i).slice(0, 2));
    draggable(group, view, STEP, at, (x, y) => {
      const [a, b] = turned([...inside(x, y), 0, 0], -state.all);
      state.parts[i] = [a, b, state.parts[i][2]];
      changed();
    });
    return { group, shape };
  });

  const [roof] = start;
  const hint = el("text", { x: roof[0] + 0.35, y: -roof[1] - 0.1 }, "drag me");
  if (!Object.keys(asked).length) view.append(hint); // where the roof stands, and no other part
  const degrees = { min: -180, max: 180, step: 1, value: 0, says: (/** @type {number} */ x) => `${number(x, 0)}°` };
  const turns = PARTS.map((part, i) => slider(`turn the ${part}`, { ...degrees, moved: (to) => ((state.parts[i][2] = to), changed()) }));
  const all = slider("turn both", { ...degrees, moved: (to) => ((state.all = to), changed()) });
  const wholes = choice("They vote for", WHOLES, state.whole, (to) => ((state.whole = to), changed()));
  const said = el("p", { class: "said", "aria-live": "polite" });
  const tasks = TASKS.map(({ asks }) => el("li", {}, asks));
  const reset = button("Reset", () => {
    Object.assign(state, fresh());
    solved.clear();
    draw();
    writeState(NAME, {});
  });
  stage.append(view, said, el("div", { class: "hands" }, ...turns, all), el("div", { class: "bar" }, wholes, reset), el("ol", { class: "try" }, ...tasks));

  function draw() {
    const { whole } = state;
    const votes = PARTS.map((_, i) => predicted(matrix(i, whole), poseOf(i)));
    votes.forEach((vote, i) => {
      ghosts[i].shapes.forEach((shape, j) => set(shape, { points: placed(outlines[j], partOf(matrix(j, whole), vote)) }));
      const [x, y, p, q] = vote;
      const [tx, ty] = [x + TOP * p, y + TOP * q];
      const [l, r] = [-1, 1].map((side) => `${tx - 0.08 * p + 0.04 * side * q} ${-(ty - 0.08 * q - 0.04 * side * p)}`);
      set(ghosts[i].arrow, { d: `M${x} ${-y}L${tx} ${-ty}M${l}L${tx} ${-ty}L${r}` });
      set(ghosts[i].sea, { points: placed(whole === "boat" ? SEA : [], vote) });
      const at = poseOf(i);
      set(parts[i].shape, { points: placed(outlines[i], at) });
      const words = `right ${number(at[0])}, up ${number(at[1])}, turned by ${number(turnOf(at), 0)}°`;
      set(parts[i].group, { "aria-valuenow": at[0].toFixed(2), "aria-valuetext": words });
      turns[i].value = state.parts[i][2];
    });
    const distance = apart(votes[0], votes[1]);
    const agree = distance <= NEAR;
    const now = { whole, turn: turnOf(votes[0]) };
    if (agree) TASKS.forEach(({ done }, k) => done(now) && solved.add(k));
    tasks.forEach((task, k) => task.classList.toggle("solved", solved.has(k)));
    stage.classList.toggle("agreed", agree);
    said.textContent = `The two votes for ${WHOLES[whole]} are ${number(distance, 1)} apart: ${agree ? `they agree. It is ${WHOLES[whole]}!` : "they do not agree."}`;
    [all.value, wholes.value] = [state.all, whole];
  }

  function changed() {
    hint.remove();
    draw();
    const kept = Object.fromEntries(PARTS.map((part, i) => [part, state.parts[i].map((x, k) => +x.toFixed(k < 2 ? 2 : 0)).join(",")]));
    writeState(NAME, { ...kept, all: state.all, whole: state.whole });
  }

  draw();
}

/** Into the scene.
 * @param {number} x @param {number} y @returns {[number, number]}
 */
function inside(x, y) {
  const within = (/** @type {number} */ at, /** @type {number} */ most) => Math.min(most, Math.max(-most, at));
  return [within(x, WIDE / 2 - 0.3), within(y, HIGH / 2 - 0.3)];
}
