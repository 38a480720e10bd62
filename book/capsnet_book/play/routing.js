// @ts-check
// The playground of routing by agreement: six children, two parents, Procedure 1 phase by phase.

import { agreement, dynamicRouting, lengths } from "./capsules.js";
import { course } from "./course.js";
import { disc } from "./discs.js";
import { argmax, button, choice, el, number, readState, set, slider, writeState } from "./kit.js";
import { turned } from "./poses.js";
import { PRESETS } from "./presets.js";
import { drawScene } from "./scene.js";

const NAME = "routing";
const SHAPE = { children: 6, parents: 2, size: 2 };
const ITERATIONS = 8;
const START = 11; // iteration 3, agree: the votes have decided
const PARENTS = ["A", "B"];
const WHOLES = ["house", "boat"];

/** @typedef {import("./discs.js").Point} Point */
/** @typedef {import("./capsules.js").Numbers} Numbers */
/** @typedef {"parents" | "children"} Over */

const PHASES = [
  { name: "softmax", line: 4, does: "Each child has one unit of support, and divides it among the parents.", equation: "(3)",
    tex: `<i class="q-c">c</i><sub>ij</sub> = exp <i class="q-b">b</i><sub>ij</sub> / Σ<sub>k</sub> exp <i class="q-b">b</i><sub>ik</sub>` },
  { name: "sum", line: 5, does: "Each parent adds up its votes, each times its coefficient.", equation: "(2)",
    tex: `<b class="q-s">s</b><sub>j</sub> = Σ<sub>i</sub> <i class="q-c">c</i><sub>ij</sub> <b class="q-uhat">û</b><sub>j|i</sub>` },
  { name: "squash", line: 6, does: "The sum is squashed to a length below 1.", equation: "(1)",
    tex: `<b class="q-v">v</b><sub>j</sub> = squash(<b class="q-s">s</b><sub>j</sub>)` },
  { name: "agree", line: 7, does: "The logits of votes that agree with the output grow, and the others fall.", equation: "",
    tex: `<i class="q-b">b</i><sub>ij</sub> ← <i class="q-b">b</i><sub>ij</sub> + <b class="q-uhat">û</b><sub>j|i</sub> · <b class="q-v">v</b><sub>j</sub>` },
];

/** What to try; solved once `done` says so of the last iteration's shares and lengths. */
const TASKS = [
  { asks: "At iteration 3: turn part 5 until it gives A more than 0.65.",
    done: (/** @type {Now} */ { c, over, r }) => over === "parents" && r === 3 && c[8] > 0.65 },
  { asks: "Make B longer than A.", done: (/** @type {Now} */ { norms, r }) => r > 1 && norms[1] > norms[0] + 0.01 },
  { asks: "Switch the softmax to children, and make a child give less than 0.2 in all. Why can that not be over parents?",
    done: (/** @type {Now} */ { c }) => [0, 1, 2, 3, 4, 5].some((i) => c[2 * i] + c[2 * i + 1] < 0.2) },
  { asks: "Press An upset, and step back to iteration 1, where B is longer. Why does A win in the end?",
    done: (/** @type {Now} */ { norms, last, r }) => r === 1 && norms[1] > norms[0] && last[0] > last[1] },
];
/** @typedef {{ c: Numbers, norms: Numbers, last: Numbers, over: Over, r: number }} Now */

/**
 * @param {HTMLElement} stage
 * @param {{ votes: Float32Array, scene: Point[][], lines: string[], tell?: import("./kit.js").Tell }} data
 *   û of the six parts, [6, 2, 2]; their outlines; the lines of `dynamic_routing`, by phase
 */
export async function mount(stage, { votes: given, scene, lines, tell }) {
  const parts = Float64Array.from(given, (x) => Math.round(x * 1000) / 1000);
  /** @type {Float64Array} */
  let votes = parts;
  let own = true; // whether they are those of the parts in the picture
  let time = START; // in phases
  /** @type {Over} */
  let over = "parents";
  const solved = new Set();

  const discs = PARENTS.map((parent, j) =>
    disc(parent, WHOLES[j], SHAPE.children, (i, at) => {
      votes.set(at.map((x) => Math.round(x * 1000) / 1000), (i * 2 + j) * 2);
      own = false;
      show();
    }),
  );
  const picture = drawScene(scene, () => {
    vote();
    show();
  });

  const gone = ["These votes no longer come", "from the picture.", "Reset brings it back."];
  picture.view.append(el("text", { class: "no-longer" }, ...gone.map((line, k) => el("tspan", { x: 0, y: 0.25 * (k - 1) }, line))));

  const rows = Array.from({ length: SHAPE.children }, (_, i) => {
    const [a, b] = PARENTS.map((parent) => el("span", { class: `share of-${parent}` }));
    const [givesA, givesB, logits] = ["c", "c", "b"].map((q) => el("td", { class: `q-${q}` }));
    const row = el("tr", {}, el("th", { scope: "row" }, String(i + 1)), givesA,
      el("td", { class: "coefficients", "aria-hidden": true }, a, b), givesB, logits);
    return { row, show(/** @type {number} */ toA, /** @type {number} */ toB, /** @type {string} */ grows) {
      a.style.width = `${100 * toA}%`;
      b.style.width = `${100 * toB}%`;
      givesA.textContent = toA.toFixed(2);
      givesB.textContent = toB.toFixed(2);
      logits.textContent = grows;
    } };
  });
  const head = el("tr", {}, ...["child", "to A", "coefficients", "to B", "logits b"].map((t) => el("th", { scope: "col" }, t)));
  const table = el("table", { class: "children" }, el("thead", {}, head), el("tbody", {}, ...rows.map(({ row }) => row)));

  const curves = course({ capsules: 2, iterations: ITERATIONS, height: 150, yName: "length ‖v‖ of A and, dashed, of B",
    label: "The lengths of A and of B over the iterations.", chosen: (r) => go(4 * r + (time % 4)) });

  const cards = PHASES.map(({ name, line, does, tex, equation }, phase) => {
    const card = button("", () => go(4 * Math.floor(time / 4) + phase), { class: "phase", title: does });
    card.innerHTML = `<span><strong>${name}</strong> ${tex} ${equation}</span><small>line ${line}: <code></code></small>`;
    /** @type {HTMLElement} */ (card.querySelector("code")).textContent = lines[phase];
    return card;
  });

  const back = button("◀", () => go(time - 1), { "aria-label": "one phase back" });
  const on = button("▶", () => go(time + 1), { "aria-label": "one phase forward" });
  const farBack = button("◀◀", () => go(time - 4), { "aria-label": "one iteration back" });
  const farOn = button("▶▶", () => go(time + 4), { "aria-label": "one iteration forward" });
  const clock = slider("step", { min: 0, max: 4 * ITERATIONS - 1, step: 1, value: time, moved: (t) => go(t),
    says: (t) => `${Math.floor(t / 4) + 1} · ${PHASES[t % 4].name}` });
  clock.classList.add("clock");
  const says = el("p", { class: "says", "aria-live": "polite" });

  const presets = el("div", { class: "bar presets" },
    button("A house", () => take("")),
    ...Object.values(PRESETS).map(([title, made]) => button(title, () => take(made()))),
  );
  const way = choice("softmax over", { parents: "parents", children: "children" }, over, (to) => ((over = to), show()));
  const tasks = TASKS.map(({ asks }) => el("li", {}, asks));
  const reset = button("Reset", () => {
    solved.clear();
    way.value = over = "parents";
    time = START;
    take("");
  });

  /** What a phase did, in words.
   * @param {number} phase @param {Numbers} norms @param {Float64Array} votes @param {Numbers} v
   */
  function happens(phase, norms, votes, v) {
    if (phase === 0) return over === "parents" ? PHASES[0].does : "Each parent has one unit of support, and divides it among the children.";
    if (phase === 1) return PHASES[1].does;
    if (phase === 2) return `A is ${norms[0].toFixed(2)} long, B ${norms[1].toFixed(2)}.`;
    const grows = agreement(votes, /** @type {Float64Array} */ (v), SHAPE);
    const best = argmax(grows);
    return `${PHASES[3].does} ${grows[best] < 0.05 ? "No vote agrees with any." : `Child ${Math.floor(best / 2) + 1} agrees most: ${tenths(grows[best])} with ${PARENTS[best % 2]}.`}`;
  }

  /** Have the parts vote as they stand. What a W makes of an arrow turns with it, and so both votes of a part do. */
  function vote() {
    own = true;
    const both = (/** @type {number} */ i) => /** @type {import("./poses.js").Pose} */ ([...parts.subarray(4 * i, 4 * i + 4)]);
    votes = Float64Array.from(picture.turns().flatMap((turn, i) => turned(both(i), turn)));
  }

  /** @param {Float64Array | string} to  votes without a picture, or how the parts stand ("": as at first) */
  function take(to) {
    picture.take(typeof to === "string" ? to : "");
    if (typeof to === "string") vote();
    else [votes, own] = [to, false];
    show();
  }

  /** @param {number} to */
  function go(to) {
    time = Math.min(4 * ITERATIONS - 1, Math.max(0, to));
    show();
  }

  function show() {
    const steps = dynamicRouting(votes, SHAPE, ITERATIONS, { over });
    const [r, phase] = [Math.floor(time / 4), time % 4];
    const { b, c, s, v } = steps[r];
    const logits = phase < 3 ? b : b.map((x, k) => x + agreement(votes, v, SHAPE)[k]);
    const norms = lengths(v, 2);
    const moved = picture.written();
    picture.view.classList.toggle("gone", !own);
    for (const part of picture.view.querySelectorAll(".part")) set(part, { tabindex: own ? 0 : -1, "aria-disabled": !own });
    const point = (/** @type {ArrayLike<number>} */ x, /** @type {number} */ k) => /** @type {Point} */ ([x[2 * k], x[2 * k + 1]]);
    discs.forEach((each, j) => {
      const before = r > 0 ? point(steps[r - 1].v, j) : null;
      each.show(rows.map((_, i) => point(votes, i * 2 + j)), rows.map((_, i) => c[i * 2 + j]),
        point(s, j), point(v, j), before, own);
    });
    curves.show(steps.map((step) => lengths(step.v, 2)), r);
    rows.forEach(({ show }, i) => show(c[2 * i], c[2 * i + 1], `${tenths(logits[2 * i])}, ${tenths(logits[2 * i + 1])}`));
    cards.forEach((card, k) => set(card, { "aria-pressed": k === phase }));
    clock.value = time;
    for (const each of [back, farBack]) each.disabled = time === 0;
    for (const each of [on, farOn]) each.disabled = time === 4 * ITERATIONS - 1;
    const last = lengths(steps[ITERATIONS - 1].v, 2);
    TASKS.forEach(({ done }, k) => done({ c, norms, last, over, r: r + 1 }) && solved.add(k));
    tasks.forEach((task, k) => task.classList.toggle("solved", solved.has(k)));
    const changed = !own || moved || over !== "parents" || time !== START;
    says.textContent = changed ? `Iteration ${r + 1}. ${happens(phase, norms, votes, v)}` : "Drag a part or a vote by its number, or step through Procedure 1 with ◀ and ▶.";
    if (solved.size) says.textContent += ` ${solved.size} of ${TASKS.length} solved.`;
    writeState(NAME, changed
      ? { t: time, over, ...(own ? moved && { parts: moved } : { votes: Array.from(votes, (x) => Math.round(1000 * x)).join(" ") }) } : {});
    tell?.("told", { votes: [...votes] });
  }

  const state = readState(NAME);
  if (state.over === "children") way.value = over = "children";
  if (state.t in Array(4 * ITERATIONS).fill(0)) time = Number(state.t);
  take(state.parts ?? "");
  if (state.votes) {
    const sent = state.votes.split(" ").map((x) => Math.max(-1, Math.min(1, Number(x) / 1000)));
    if (sent.length === votes.length && sent.every(Number.isFinite)) take(Float64Array.from(sent));
  }

  const light = (/** @type {Event} */ { type, target }) => {
    const vote = /** @type {Element} */ (target).closest(".votes");
    const child = vote && /child (\d)/.exec(vote.getAttribute("aria-label") ?? "")?.[1];
    picture.view.querySelectorAll("[data-part]").forEach((/** @type {Element} */ part, /** @type {number} */ i) =>
      part.classList.toggle("lit", /over|in$/.test(type) && String(i + 1) === child));
  };
  const board = el("div", { class: "board", onpointerover: light, onpointerout: light, onfocusin: light, onfocusout: light },
    presets,
    el("div", { class: "discs" }, picture.view, ...discs.map(({ view }) => view)),
    el("p", { class: "legend", "aria-hidden": true }, el("span", { class: "q-uhat" }, "û votes, as thick as their coupling coefficient"),
      el("span", { class: "q-s" }, "s their sum"), el("span", { class: "q-v" }, "v the sum, squashed")),
    el("div", { class: "bar transport" }, farBack, back, on, farOn, clock, reset),
    says,
    el("div", { class: "beside" }, el("div", {}, table, curves.svg), el("div", { class: "phases" }, ...cards)),
    el("div", { class: "bar" }, way),
    el("div", { class: "try" }, el("strong", {}, "Try"), el("ol", {}, ...tasks)),
  );
  stage.append(board);
}

const tenths = (/** @type {number} */ x) => number(x, 1);
