// @ts-check
// A digit of the reader's own in the whole network: image, maps, children, votes, coefficients,
// lengths and reconstruction, phase by phase of Procedure 1.

import { onCall } from "./asking.js";
import { dot } from "./axes.js";
import { bars } from "./bars.js";
import { marginLoss } from "./capsules.js";
import { course } from "./course.js";
import { aDigit, argmax, button, choice, digitChoice, drawDigit, el, part, picture, readState, set, sheet, slider, still, unpack, writeState } from "./kit.js";
import { lastDrawn, pad } from "./pad.js";

const NAME = "forward";
const FILES = new URL("data/", import.meta.url);
const ITERATIONS = 8;
const START = 11; // iteration 3, agree
const SIDE = 6; // places of the primary capsules, in each direction
const [MAP, MAPS] = [20, 8]; // pixels of a feature map's side, and maps in a row
const LAMBDAS = { none: 0, half: 0.5, whole: 1 };
const BEAT = 350; // milliseconds a phase

/** @typedef {import("./worker.js").Routed} Routed */
/** @typedef {"parents" | "children"} Over */
/** @typedef {"permute" | "reshape"} Vectors */

/**
 * @param {HTMLElement} stage
 * @param {{ lines: string[] }} data  the lines of `dynamic_routing`, by phase
 */
export async function mount(stage, { lines }) {
  const data = unpack(await (await fetch(new URL("front.json", FILES))).json()); // of book/capsnet_book/play/front.py
  const digit = (/** @type {number} */ k) => Float32Array.from(data.digits.subarray(784 * k, 784 * (k + 1)), (p) => p / 255);
  let taken = data.shown; // the digit on the pad, or -1 for a drawing
  let time = START; // in phases
  /** @type {Over} */
  let over = "parents";
  /** @type {Vectors} */
  let vectors = "permute";
  /** @type {keyof typeof LAMBDAS} */
  let weight = "half";
  /** @type {Routed | undefined} */
  let routed;
  let timer = 0;

  const board = pad(() => {
    taken = -1;
    look();
  });
  const which = digitChoice("draw, or take", undefined, take);
  const said = el("p", { class: "said", "aria-live": "polite" });
  const network = onCall("page", data.page.bytes, (text) => (said.textContent = text));
  const maps = picture("64 feature maps of 20 × 20");
  const primary = picture("the lengths of the 288 primary capsules, 8 types of 6 × 6: white is 1");
  const drawn = picture("reconstruction");
  const coefficients = picture("coupling coefficients, a row for each digit and a column for each child; the brightest are four times the mean, or more");
  const ten = bars("the lengths of the ten digit capsules");
  const listing = lines.map((line) => el("code", {}, line));
  const clock = slider("step", { min: 0, max: 4 * ITERATIONS - 1, step: 1, value: time, moved: (to) => go(to),
    says: (t) => `${Math.floor(t / 4) + 1} · ${["softmax", "sum", "squash", "agree"][t % 4]}` });
  const play = button("Route", () => {
    if (still()) return go(4 * ITERATIONS - 1);
    go(0);
    timer = window.setInterval(() => (time < 4 * ITERATIONS - 1 ? go(time + 1, timer) : clearInterval(timer)), BEAT);
  });
  const sums = choice("softmax over", { parents: "parents", children: "children" }, over, (to) => {
    over = to;
    look();
  });
  const making = choice("vectors by", { permute: "permute", reshape: "reshape alone" }, vectors, (to) => {
    vectors = to;
    look();
  });
  const lambda = choice("λ", { none: "0", half: "0.5", whole: "1" }, weight, (to) => {
    weight = to;
    remember();
    show();
  });
  const trained = el("p", { class: "trained" });
  const reset = button("Reset", () => {
    [time, over, vectors, weight] = [START, "parents", "permute", "half"];
    take(data.shown);
  });
  const curves = course({ capsules: 10, iterations: ITERATIONS, height: 185, yName: "length ‖v‖",
    label: "The lengths of the ten capsules over the iterations.", chosen: (r) => go(4 * r + (time % 4)) });
  const cloud = el("g", { class: "cloud" });
  const output = el("line", { class: "output" });
  const votes = el("svg", { class: "votes-seen", viewBox: "-1.1 -1.1 2.2 2.2", role: "img" },
    el("path", { class: "axes", d: "M-1 0H1M0 -1V1" }), cloud, output);
  const ofWhat = el("p", { class: "name" });

  /** Have the network compute all that is shown. */
  async function look() {
    remember();
    which.value = `${taken}`;
    [sums.value, making.value, lambda.value] = [over, vectors, weight];
    set(stage, { "aria-busy": "true" });
    try {
      const answer = await network({ route: board.image(), options: { iterations: ITERATIONS, over, permute: vectors === "permute" } });
      if (!answer) return; // a newer digit is on its way
      routed = answer;
      drawDigit(maps, ...sheet(answer.features.map((/** @type {number} */ x) => Math.min(1, x)), MAP, MAPS));
      drawDigit(primary, ...sheet(answer.primary, SIDE, 3));
      show();
    } catch (error) {
      said.textContent = `The network cannot answer: ${/** @type {Error} */ (error).message}`;
    }
    set(stage, { "aria-busy": "false" });
  }

  /** @param {number} k  a digit */
  function take(k) {
    taken = k;
    board.take(digit(k), aDigit(k));
    look();
  }

  /** @param {number} to @param {number} [mover]  the timer that moves it, if not the reader */
  function go(to, mover) {
    if (mover !== timer) clearInterval(timer);
    time = to;
    remember();
    show();
  }

  function remember() {
    // What was drawn last would stand here again, so the digit is said even if it is the usual one.
    const changed = lastDrawn() || taken !== data.shown || time !== START || over !== "parents" || vectors !== "permute" || weight !== "half";
    writeState(NAME, changed ? { ...(taken < 0 ? { drawing: board.written() } : { digit: taken }), t: time, over, vectors, lambda: LAMBDAS[weight] } : {});
  }

  function show() {
    clock.value = time;
    const [r, phase] = [Math.floor(time / 4), time % 4];
    listing.forEach((line, k) => line.classList.toggle("lit", k === phase));
    listing[0].textContent = over === "parents" ? lines[0] : lines[0].replace("dim=2", "dim=1");
    if (!routed) return;
    const { steps } = routed;
    const { c, sums: before, lengths, drawn: drawing } = steps[r];
    const found = argmax(lengths);
    drawDigit(drawn, drawing);
    const children = c.length / 10;
    const full = 4 / (over === "parents" ? 10 : children); // four times the mean
    drawDigit(coefficients, Float32Array.from(c, (_, k) => Math.sqrt(Math.min(1, c[(k % children) * 10 + Math.floor(k / children)] / full))), children);
    ten.show(lengths, [found]);
    curves.show(steps.map((step) => step.lengths), r, found);
    const agreeing = showVotes(found, r);
    // λ is in the loss alone: with the same weights the lengths are the same. What it does is seen where a network learns.
    const [downWeight, label] = [LAMBDAS[weight], taken < 0 ? found : taken];
    const loss = [...marginLoss(lengths, [label], { downWeight })].reduce((sum, each) => sum + each, 0);
    trained.replaceChildren(`For ${aDigit(label)}, the loss of these lengths is ${loss.toFixed(3)}. The lengths depend on λ only through training: `,
      el("a", { href: `training.html#play-learn?lambda=${downWeight}` }, `train a network with λ = ${downWeight}`), ".");
    ofWhat.textContent = `votes for the ${found}, and its v`;
    said.textContent = [
      over === "parents" ? `Each of the ${children} children divides one unit of support among the ten digits.`
        : `Wrong: each digit divides one unit of support among the ${children} children.`,
      `The votes for the ${found}, weighted and added up, give a vector of length ${before[found].toFixed(2)}.`,
      `Squashed, it is the capsule of the ${found}, ${lengths[found].toFixed(2)} long.`,
      `${agreeing} of ${children} votes agree with the capsule of the ${found}: their logits grow, and the others fall.`,
    ][phase];
  }

  /** The votes for a digit, in the plane of its output (to the right) and the longest of them; how many agree.
   * @param {number} j @param {number} r
   */
  function showVotes(j, r) {
    const { uHat, steps } = /** @type {Routed} */ (routed);
    const { c, v: all, lengths } = steps[r];
    const size = all.length / 10;
    const children = c.length / 10;
    const v = Array.from(all.subarray(j * size, (j + 1) * size), (x) => x / (lengths[j] || 1));
    const vote = (/** @type {number} */ i) => uHat.subarray((10 * i + j) * size, (10 * i + j + 1) * size);
    const norms = Array.from({ length: children }, (_, i) => Math.hypot(...vote(i)));
    const longest = vote(argmax(norms));
    const along = dot(longest, v);
    const rest = Array.from(longest, (x, d) => x - along * v[d]);
    const across = rest.map((x) => x / (Math.hypot(...rest) || 1));
    while (cloud.childElementCount < children) cloud.append(el("circle"));
    let agreeing = 0;
    norms.forEach((_, i) => {
      const [x, y] = [dot(vote(i), v), dot(vote(i), across)];
      if (x > 0) agreeing++;
      set(cloud.children[i], { cx: x, cy: -y, r: 0.07 * Math.sqrt(c[10 * i + j]) });
    });
    set(output, { x2: lengths[j] });
    set(votes, { "aria-label": `${agreeing} of ${children} votes for the ${j} point the way of its capsule` });
    return agreeing;
  }

  stage.append(
    el("div", { class: "bar" }, which, reset),
    part("image", "image", board.canvas),
    part("maps", "64 maps", maps),
    part("primary", "288 children", primary),
    part("drawn", "reconstruction", drawn),
    el("div", { class: "bar transport" }, play, clock),
    said,
    el("pre", { class: "listing" }, ...listing),
    el("div", { class: "bar" }, sums, making),
    el("div", { class: "bar" }, lambda, trained),
    part("couplings", "coupling coefficients c: a row for each digit, a column for each child",
      el("ol", { class: "rows", "aria-hidden": true }, ...Array.from({ length: 10 }, (_, j) => el("li", {}, `${j}`))), el("div", { class: "tint" }, coefficients)),
    el("div", { class: "cloud-of" }, ofWhat, votes),
    curves.svg,
    el("div", { class: "ten" }, ten.list),
  );
  const state = readState(NAME);
  if (/^\d+$/.test(state.t ?? "") && Number(state.t) < 4 * ITERATIONS) time = Number(state.t);
  if (state.over === "children") over = "children";
  for (const [name, value] of Object.entries(LAMBDAS)) if (state.lambda === `${value}`) weight = /** @type {keyof typeof LAMBDAS} */ (name);
  if (state.vectors === "reshape") vectors = "reshape";
  const drawing = state.drawing ?? (state.digit === undefined ? lastDrawn() : "");
  board.take(digit(data.shown), aDigit(data.shown));
  if (/^\d$/.test(state.digit ?? "")) take(Number(state.digit));
  else if (drawing && board.draw(drawing)) taken = -1;
  show();
  await look();
}
