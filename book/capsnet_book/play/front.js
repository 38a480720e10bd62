// @ts-check
// The front page's network: draw a digit, and ten lengths and a drawing follow; then bend what it drew.

import { megabytes, onCall } from "./asking.js";
import { bars } from "./bars.js";
import { aDigit, button, choice, drawDigit, el, readState, set, signed, slider, unpack, writeState } from "./kit.js";
import { pad } from "./pad.js";

const NAME = "front";
const [SHORT, SURE] = [0.5, 0.7]; // ‖v‖ below the first is no digit, below the second a doubtful one
const FILES = new URL("data/", import.meta.url);
/** @typedef {"page" | "mnist"} Which  of the networks */
/** @typedef {import("./worker.js").Seen} Seen */

const head = (/** @type {string} */ text) => el("p", { class: "head" }, text);

/** @param {HTMLElement} stage */
export async function mount(stage) {
  const data = unpack(await (await fetch(new URL("front.json", FILES))).json()); // of book/capsnet_book/play/front.py
  /** @param {number} k */
  const digit = (k) => Float32Array.from(data.digits.subarray(784 * k, 784 * (k + 1)), (p) => p / 255);

  /** @type {Which} */
  let which = "page";
  let image = /** @type {Float32Array} */ (digit(data.shown));
  /** @type {Seen | undefined} */
  let seen; // what the network says of the image; undefined before it was asked
  let bent = data.sliders.map(() => 0); // how far along each direction
  let [waiting, looks] = [0, 0]; // questions without an answer, and those about an image
  let taken = data.shown; // the digit on the pad, or -1

  const board = pad((drawn) => {
    [image, taken] = [drawn, -1];
    look();
  });
  const digits = Array.from({ length: 10 }, (_, k) => button(String(k), () => take(k), { "aria-label": `take a ${k}` }));
  const clear = button("Clear", () => take(-1));
  const reset = button("Reset", () => {
    network.value = which = "page";
    tell();
    take(data.shown);
  });
  const lengths = bars("the lengths of the ten capsules");
  const drawing = el("canvas", { class: "digit", role: "img" });
  const from16 = el("p", {});
  const sliders = data.sliders.map((/** @type {string} */ name, /** @type {number} */ k) =>
    slider(name, { min: -data.reach, max: data.reach, step: 0.01, value: 0, says: (x) => (x ? signed(x) : "0"), moved: (to) => ((bent[k] = to), bend()) }));
  const named = { page: "a small one", mnist: `the paper’s, ${megabytes(data.networks.mnist.bytes)} MB` };
  const network = choice("network", /** @type {Record<Which, string>} */ (named), which, (to) => {
    which = to;
    tell();
    look(true);
  });
  const says = el("p", { class: "says", "aria-live": "polite" });
  const calls = (/** @type {Which} */ name) => onCall(name, data.networks[name].bytes, (text) => (says.textContent = text));
  const asked = { page: calls("page"), mnist: calls("mnist") };
  const facts = el("p", { class: "facts" });

  /** Have the network look at the image; sliders back to 0, unless they are kept. */
  async function look(keep = false) {
    if (!keep) straighten();
    remember();
    const now = which;
    looks++;
    const answer = await answered(asked[which]({ look: image }));
    looks--;
    if (!answer || now !== which) return; // a newer image is on its way
    seen = answer;
    show(answer.lengths, answer.drawn);
    if (bent.some(Boolean)) bend();
  }

  /** Move along the directions of the digit that was found, and draw again. */
  async function bend() {
    remember();
    if (looks) return; // of an image not yet looked at; then it is bent
    if (!seen) return look(true);
    const { v, longest, lengths: found } = seen;
    const { directions } = data.networks[which];
    const moved = v.slice();
    const size = v.length / 10;
    for (let d = 0; d < size; d++)
      bent.forEach((/** @type {number} */ far, /** @type {number} */ k) => {
        moved[longest * size + d] += far * directions[(longest * bent.length + k) * size + d];
      });
    const drawn = await answered(asked[which]({ draw: moved, of: longest }));
    if (drawn) show(found, drawn);
  }

  /** @template T @param {Promise<T>} answer */
  async function answered(answer) {
    set(stage, { "aria-busy": String(++waiting > 0) });
    try {
      return await answer;
    } catch (error) {
      says.textContent = `The network cannot answer: ${/** @type {Error} */ (error).message}`;
    } finally {
      set(stage, { "aria-busy": String(--waiting > 0) });
    }
  }

  /** @param {number} k  a digit, or -1 for none */
  function take(k) {
    taken = k;
    board.take(k < 0 ? undefined : digit(k), k < 0 ? undefined : aDigit(k));
    image = board.image();
    look();
  }

  function straighten() {
    bent = bent.map(() => 0);
    sliders.forEach((/** @type {{ value: number }} */ each) => (each.value = 0));
  }

  /** @param {ArrayLike<number>} found  lengths @param {ArrayLike<number>} drawn */
  function show(found, drawn) {
    const [first, second] = Array.from(found, (_, k) => k).sort((a, b) => found[b] - found[a]);
    lengths.show(found, found[first] > SHORT ? [first] : []);
    drawDigit(drawing, drawn);
    const moved = bent.some(Boolean);
    set(drawing, { "aria-label": `reconstruction from capsule ${first}${moved ? ", moved by the sliders" : ""}` });
    from16.textContent = `from capsule ${first} alone${moved ? ", moved" : ""}`;
    const long = found[first].toFixed(2);
    const empty = !image.some((p) => p > 0.1);
    if (found[first] < SHORT)
      says.textContent = `${empty ? "Nothing is there, and no" : "No"} capsule is long: the longest, ${first}, is ${long}.`;
    else if (empty) says.textContent = `An empty page, and yet the capsule of ${aDigit(first)} is ${long} long.`;
    else if (found[second] > SHORT) says.textContent = `${aDigit(first)}, or ${aDigit(second)}: both capsules are long.`.replace(/^a/, "A");
    else says.textContent = `${found[first] < SURE ? "Perhaps " : ""}${aDigit(first)}: its capsule is ${long} long.`.replace(/^a/, "A");
  }

  function tell() {
    const { parameters, bytes, correct, total } = data.networks[which];
    facts.textContent =
      `${which === "page" ? "A small capsule network" : "The paper’s network"}: ${parameters.toLocaleString("en")} weights, ` +
      `${megabytes(bytes)} MB, ${((100 * correct) / total).toFixed(2)} % of ${total.toLocaleString("en")} test digits classified correctly. ` +
      `It runs here, on your machine.`;
  }

  function remember() {
    /** @type {Record<string, string | number>} */
    const state = {};
    if (taken < 0) state.drawing = board.written();
    else if (taken !== data.shown || bent.some(Boolean) || which !== "page") state.digit = taken;
    data.sliders.forEach((/** @type {string} */ name, /** @type {number} */ k) => bent[k] && (state[name] = bent[k]));
    if (which !== "page") state.network = which;
    writeState(NAME, state);
  }

  stage.append(
    el("div", { class: "drawing" }, head("Draw a digit"), board.canvas),
    el("div", { class: "tools" }, el("div", { class: "bar" }, clear, reset, el("span", { class: "hint" }, "or take one:")),
      el("div", { class: "digits" }, ...digits)),
    el("div", { class: "lengths" }, head("Ten lengths ‖v‖"), lengths.list),
    el("div", { class: "drawn" }, head("Reconstruction"), drawing, from16),
    el("div", { class: "sliders" }, head("Bend what it draws"), ...sliders),
    says,
    el("div", { class: "below" }, network, facts),
  );
  board.take(image, `a ${data.shown}`);
  show(data.lengths, Float32Array.from(data.drawn, (/** @type {number} */ p) => p / 255));
  tell();

  const state = readState(NAME);
  if (state.network === "mnist") network.value = which = "mnist";
  const wanted = data.sliders.map((/** @type {string} */ name) => Math.max(-data.reach, Math.min(data.reach, Number(state[name]) || 0)));
  if (/^\d$/.test(state.digit ?? "") || state.drawing !== undefined) {
    tell();
    if (state.drawing === undefined) take(Number(state.digit));
    else {
      taken = -1;
      board.draw(state.drawing);
      image = board.image();
      look();
    }
    bent = wanted;
    sliders.forEach((/** @type {{ value: number }} */ each, /** @type {number} */ k) => (each.value = wanted[k]));
  }
}
