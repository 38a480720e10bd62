// @ts-check
// Turn, shear and scale a digit: what the small network says of it, and how often it is right.

import { megabytes, onCall } from "./asking.js";
import { bars } from "./bars.js";
import { aDigit, button, digitChoice, drawDigit, el, number, readState, set, slider, writeState } from "./kit.js";
import { plot } from "./plot.js";
import { bend, matrix } from "./warp.js";

const NAME = "bend";
export const caption = "Rotated to the left, this seven stays a seven; rotated far to the right, it is mistaken for a two. The curve " +
  "shows the accuracy on 300 test digits that are deformed in the same way.";
/** @typedef {"degrees" | "shear" | "size"} Change */
/** @type {Record<Change, { title: string, min: number, max: number, step: number, usual: number, says: (x: number) => string }>} */
const CHANGES = {
  degrees: { title: "turn", min: -60, max: 60, step: 1, usual: 0, says: (x) => `${number(x, 0)}°` },
  shear: { title: "shear", min: -1, max: 1, step: 0.02, usual: 0, says: number },
  size: { title: "size", min: 0.4, max: 1.4, step: 0.02, usual: 1, says: (x) => `× ${x.toFixed(2)}` },
};
const START = 7;
const BYTES = 1_305_368; // of the network
const KEYS = /** @type {Change[]} */ (Object.keys(CHANGES));

/**
 * @param {HTMLElement} stage
 * @param {{ digits: Uint8Array, lengths: Float32Array, drawn: Float32Array, amounts: Record<Change, number[]>, accuracy: Record<Change, number[]>, images: number }} data
 *   a digit of each class; what the network says of the seven as it is; how often so many images are read rightly, by amount of each change
 */
export async function mount(stage, { digits, lengths: first, drawn: drawing, amounts, accuracy, images }) {
  const state = readState(NAME);
  const asked = (/** @type {Change} */ key) => {
    const [to, { min, max, usual }] = [Number(state[key] ?? NaN), CHANGES[key]];
    return Number.isFinite(to) ? Math.min(max, Math.max(min, to)) : usual;
  };
  const now = { degrees: asked("degrees"), shear: asked("shear"), size: asked("size") };
  let label = /^\d$/.test(state.digit) ? Number(state.digit) : START;
  /** @type {Change} */
  let moved = KEYS.find((key) => key === state.moved) ?? "degrees";

  const [bent, drawn] = [el("canvas", { class: "digit", role: "img" }), el("canvas", { class: "digit", role: "img" })];
  const lengths = bars("the lengths of the ten capsules");
  const says = el("p", { class: "says", "aria-live": "polite" });
  const network = onCall("page", BYTES, (text) => (says.textContent = text));
  const sliders = KEYS.map((key) => {
    const { title, min, max, step, says } = CHANGES[key];
    return slider(title, { min, max, step, value: now[key], says, moved: (to) => ((now[key] = to), (moved = key), show(true)) });
  });
  const which = digitChoice("digit", label, (k) => ((label = k), show(true)));
  const graphs = KEYS.map((key) => {
    const { min, max, usual, title, says } = CHANGES[key];
    const graph = plot({ width: 300, height: 190, x: [min, usual, max], y: [0, 50, 100], xName: title, yName: "accuracy, %",
      label: `accuracy by ${title}: ${amounts[key].map((at, n) => `${says(at)} ${(100 * accuracy[key][n]).toFixed(0)} %`).join(", ")}` });
    graph.curve((at) => rate(key, at));
    return { graph, dot: graph.svg.appendChild(el("circle", { r: 6, class: "dot" })) };
  });
  const reset = button("Reset", () => {
    KEYS.forEach((key, n) => (sliders[n].value = now[key] = CHANGES[key].usual));
    which.value = `${(label = START)}`;
    moved = "degrees";
    show(true);
  });

  /** Whether the graph applies: nothing else is changed. */
  const alone = () => KEYS.every((key) => key === moved || now[key] === CHANGES[key].usual);

  /** Percent classified correctly, between the amounts that were measured.
   * @param {Change} key @param {number} at
   */
  function rate(key, at) {
    const xs = amounts[key];
    const n = Math.max(1, xs.findIndex((x) => x >= at));
    const part = (at - xs[n - 1]) / (xs[n] - xs[n - 1]);
    return 100 * ((1 - part) * accuracy[key][n - 1] + part * accuracy[key][n]);
  }

  /** @param {boolean} touched  the network is loaded when the reader first moves something */
  function show(touched) {
    const image = bend(digits.subarray(label * 784, (label + 1) * 784).map(Number), matrix(now.degrees, now.shear, now.size)).map((x) => x / 255);
    drawDigit(bent, image);
    const words = KEYS.map((key) => `${CHANGES[key].title} ${CHANGES[key].says(now[key])}`).join(", ");
    set(bent, { "aria-label": `${aDigit(label)}: ${words}` });
    graphs.forEach(({ graph, dot }, n) => {
      set(graph.svg, { hidden: KEYS[n] !== moved });
      graph.svg.classList.toggle("aside", !alone());
      set(dot, { cx: graph.px(now[KEYS[n]]), cy: graph.py(rate(KEYS[n], now[KEYS[n]])) });
    });
    const usual = label === START && KEYS.every((key) => now[key] === CHANGES[key].usual);
    writeState(NAME, usual ? {} : { digit: label, moved, ...now });
    if (touched) ask(image).catch((error) => (says.textContent = error.message));
    else says.textContent = `Move a slider to load a small network (${megabytes(BYTES)} MB), which then classifies the digit.`;
  }

  /** @param {Float32Array} image */
  async function ask(image) {
    const seen = await network({ look: image });
    if (!seen) return; // the sliders have moved on
    lengths.show(seen.lengths, [seen.longest]);
    drawDigit(drawn, seen.drawn);
    set(drawn, { "aria-label": `reconstruction: ${aDigit(seen.longest)}` });
    const right = seen.longest === label ? "" : ", which is wrong";
    const rates = rate(moved, now[moved]).toFixed(0);
    const often = alone()
      ? `Of ${images} digits that only this slider changes as much, it classifies ${rates} % correctly.`
      : "How often it is right was measured for one change at a time, so the graph does not apply.";
    says.textContent = `The network classifies it as ${aDigit(seen.longest)}${right}. ${often}`;
  }

  lengths.show(first, [START]);
  drawDigit(drawn, drawing);
  set(drawn, { "aria-label": `reconstruction: a ${START}` });
  stage.append(
    el("div", { class: "bar" }, which, reset),
    el("div", { class: "abreast" },
      el("figure", {}, bent, el("figcaption", {}, "image")),
      el("figure", {}, drawn, el("figcaption", {}, "reconstruction")),
      el("div", {}, "‖v‖", lengths.list)),
    says,
    el("div", { class: "below" }, el("div", {}, ...sliders), el("div", {}, ...graphs.map(({ graph }) => graph.svg))),
  );
  show(Object.keys(state).length > 0);
}
