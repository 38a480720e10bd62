// @ts-check
// Drag ten lengths; equation (4) says what each class costs, and where its gradient pulls it.

import { marginLoss } from "./capsules.js";
import { button, choice, el, number, readState, set, writeState } from "./kit.js";
import { plot } from "./plot.js";

const NAME = "margin";
export const caption = "On the right side of its margin a capsule has no loss and no gradient; on the wrong side, the gradient grows " +
  "in proportion to the distance. Drag a bar to change the length of a capsule: its arrow shows where one " +
  "training step would take it.";
const [M_POS, M_NEG] = [0.9, 0.1];
const RATE = 0.25; // of one step along the arrows
const WEIGHTS = { half: 0.5, fully: 1 }; // λ
const HALF = /** @type {keyof typeof WEIGHTS} */ ("half");
const DIGITS = [...Array(10).keys()];
const all = (/** @type {number} */ length) => DIGITS.map(() => length);

const NEAR = 11; // units of a graph, in which a dot is 16 wide

/** Digits as text: "0–2, 4". @param {number[]} digits  in rising order */
export function ranges(digits) {
  const runs = digits.filter((k) => !digits.includes(k - 1)).map((first) => {
    let last = first;
    while (digits.includes(last + 1)) last++;
    return last - first < 2 ? [...new Set([first, last])].join(", ") : `${first}–${last}`;
  });
  return runs.join(", ");
}

/** What a reader may begin with: lengths, and which digits are in the image.
 * @type {Record<string, { norms: number[], there: number[] }>}
 */
const STARTS = {
  "In doubt": { norms: [0.04, 0.3, 0.1, 0.55, 0.06, 0.7, 0.02, 0.15, 0.25, 0.08], there: [3] },
  "All the same": { norms: all(0.5), there: [3] },
  "Two digits": { norms: all(0.05).with(3, 0.95).with(5, 0.6), there: [3, 5] },
  "An empty page": { norms: all(0.05), there: [] },
};

/** The derivative of each class's loss by its length. No class reads another's.
 * @param {number[]} norms
 * @param {number[]} there
 * @param {number} downWeight
 */
export function gradient(norms, there, downWeight) {
  return norms.map((length, k) => (there.includes(k) ? -2 * Math.max(0, M_POS - length) : 2 * downWeight * Math.max(0, length - M_NEG)));
}

/** @param {HTMLElement} stage */
export async function mount(stage) {
  const first = STARTS["In doubt"];
  const asked = readState(NAME);
  const given = (asked.lengths ?? "").split(",").map(Number);
  const valid = given.length === DIGITS.length && given.every((each) => each >= 0 && each <= 100);
  const state = {
    norms: valid ? given.map((each) => each / 100) : first.norms,
    there: valid ? DIGITS.filter((k) => (asked.there ?? "").includes(`${k}`)) : first.there,
    absent: asked.absent === "fully" ? asked.absent : HALF,
  };

  const rows = DIGITS.map((k) => {
    const there = el("input", { type: "checkbox", "aria-label": `${k} is in the image`, onchange: () => moved({ there: DIGITS.filter((d) => rows[d].there.checked) }) });
    const bar = el("input", { type: "range", min: 0, max: 1, step: 0.01, "aria-label": `length of the capsule of ${k}`, oninput: () => moved({ norms: state.norms.with(k, bar.valueAsNumber) }) });
    const pull = el("span", { class: "pull" });
    const cost = el("output");
    return { there, bar, pull, cost, row: el("div", { class: "each" }, el("label", { class: "there" }, there, `${k}`), el("span", { class: "track" }, bar, pull), cost) };
  });
  const heads = el("div", { class: "each heads", "aria-hidden": "true" }, el("span", {}, "there"), el("span", { class: "track" }, el("i", { style: `--at: ${M_NEG}` }, "m⁻"), el("i", { style: `--at: ${M_POS}` }, "m⁺")), el("span", {}, "loss"));

  const size = { width: 320, height: 190, x: [0, 0.5, 1], xName: "length ‖v‖" };
  const graphs = [
    { ...plot({ ...size, y: [0, 0.5, 1], yName: "loss", label: "Loss of one class, for its length: present, it falls to 0 at 0.9; absent, it rises from 0 at 0.1." }), of: (/** @type {number[]} */ norms, /** @type {number[]} */ there, /** @type {number} */ downWeight) => marginLoss(Float64Array.from(norms), there, { downWeight }) },
    { ...plot({ ...size, y: [-2, -1, 0, 1, 2], yName: "gradient", label: "Gradient of that loss: negative and rising to 0 at 0.9 if present; 0 up to 0.1, then positive, if absent." }), of: gradient },
  ].map((graph) => ({ ...graph, lines: /** @type {Element[]} */ ([]), dots: DIGITS.map((k) => el("g", { class: "number" }, el("circle", { r: 8 }), el("text", { y: 4, "text-anchor": "middle" }, `${k}`), el("text", { y: -11, class: "others" }))) }));
  for (const { svg, dots } of graphs) svg.append(...dots);

  const said = el("p", { class: "said", "aria-live": "polite" });
  const weighed = choice("Absent digits count", { half: `half, λ = ${WEIGHTS.half}`, fully: `fully, λ = ${WEIGHTS.fully}` }, state.absent, (to) => moved({ absent: to }));
  const step = button("Follow the arrows", () => {
    const down = gradient(state.norms, state.there, WEIGHTS[state.absent]);
    moved({ norms: state.norms.map((length, k) => length - RATE * down[k]) });
  });
  const starts = Object.entries(STARTS).map(([title, start]) => button(title, () => moved(start)));
  stage.append(
    el("div", { class: "rows" }, heads, ...rows.map(({ row }) => row)),
    el("div", { class: "graphs" }, ...graphs.map(({ svg }) => svg)),
    said,
    el("div", { class: "bar" }, step, ...starts),
    el("div", { class: "bar" }, weighed, button("Reset", () => moved({ ...first, absent: HALF }, {}))),
  );

  function draw() {
    const { norms, there, absent } = state;
    const downWeight = WEIGHTS[absent];
    const losses = [...marginLoss(Float64Array.from(norms), there, { downWeight })];
    const down = gradient(norms, there, downWeight);
    rows.forEach(({ there: box, bar, pull, cost, row }, k) => {
      const [from, to] = [norms[k], norms[k] - RATE * down[k]];
      const short = Math.abs(to - from) < 0.002;
      box.checked = there.includes(k);
      bar.value = String(from);
      row.classList.toggle("present", box.checked);
      row.style.setProperty("--at", String(from));
      row.style.setProperty("--from", String(Math.min(from, to)));
      row.style.setProperty("--long", String(Math.abs(to - from)));
      pull.className = `pull ${short ? "none" : to > from ? "up" : "down"}`;
      bar.setAttribute("aria-valuetext", `${number(from)}; ${short ? "no gradient" : to > from ? "pulled up" : "pushed down"}`);
      cost.textContent = number(losses[k]);
    });
    for (const graph of graphs) {
      for (const line of graph.lines) line.remove();
      graph.lines = [[0], []].map((present) => graph.curve((at) => graph.of([at], present, downWeight)[0], { class: `curve ${present.length ? "v" : "absent"}` }));
      const values = graph.of(norms, there, downWeight);
      const at = DIGITS.map((k) => [graph.px(norms[k]), graph.py(values[k])]);
      /** @type {number[][]} */
      const groups = []; // digits whose dots would hide each other
      for (const k of DIGITS) {
        const near = groups.find(([first]) => there.includes(first) === there.includes(k) && Math.hypot(at[first][0] - at[k][0], at[first][1] - at[k][1]) < NEAR);
        if (near) near.push(k);
        else groups.push([k]);
      }
      graph.dots.forEach((dot, k) => {
        const group = groups.find(([first]) => first === k);
        const left = at[k][0] > size.width / 2;
        set(dot, { transform: `translate(${at[k].join(" ")})`, class: `number ${there.includes(k) ? "present" : ""}`, hidden: !group });
        set(/** @type {SVGTextElement} */ (dot.lastChild), { x: left ? -9 : 6, "text-anchor": left ? "end" : "start" });
        if (dot.lastChild) dot.lastChild.textContent = group && group.length > 1 ? `+ ${ranges(group.slice(1))}` : "";
        if (there.includes(k)) graph.svg.append(dot); // on top
      });
    }
    const [up, low] = [-1, 1].map((sign) => down.reduce((sum, each) => sum + Math.max(0, sign * each), 0));
    said.textContent = `Loss in all: ${number(losses.reduce((sum, each) => sum + each, 0), 3)}. Pull up: ${number(up)}. Push down: ${number(low)}.`;
    weighed.value = absent;
    step.disabled = up + low < 0.005;
  }

  /** @param {Partial<typeof state>} to @param {Record<string, string>} [kept] */
  function moved(to, kept) {
    Object.assign(state, to);
    draw();
    writeState(NAME, kept ?? { lengths: state.norms.map((each) => Math.round(100 * each)).join(), there: state.there.join(""), absent: state.absent });
  }
  draw();
}
