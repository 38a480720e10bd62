// @ts-check
// The sixteen numbers of a capsule as sliders, and what the decoder draws of them.

import { dot, round, straight } from "./axes.js";
import { chips, knob } from "./dials.js";
import { button, choice, drawDigit, el, picture, readState, set, signed, slider, writeState } from "./kit.js";
import { Capsule, part } from "./moved.js";
import { readWeights } from "./weights.js";

export const caption = "Each number changes the reconstruction in its own way. The bars next to a number show which properties a " +
  "larger value changes, as measured below.";

const WAYS = { straight: "in a straight line", round: "along a circle", pixels: "cross-fade of pixels" };
const TABS = { numbers: "16 numbers", directions: "6 directions", walk: "walk" };
/** @typedef {keyof typeof TABS} Tab */

const whole = (/** @type {string | undefined} */ text, /** @type {number} */ below, otherwise = 0) =>
  /^\d+$/.test(text ?? "") && Number(text) < below ? Number(text) : otherwise;
const shades = (/** @type {Uint8Array} */ pixels) => Float32Array.from(pixels, (x) => x / 255);

/** @param {HTMLElement} stage @param {import("./moved.js").Found} data */
export async function mount(stage, data) {
  const { properties, images } = data;
  const examples = images.shape[1];
  const capsule = new Capsule(data);
  const first = { tab: /** @type {Tab} */ ("numbers"), digit: data.digit, example: examples - 1, way: 0.5 };
  let state = { ...first }; // beside the capsule: the tab, where the walk ends, how far it is

  const drawing = picture("the reconstruction");
  const image = picture("the image");
  const length = el("output");
  const said = el("p", { class: "said", "aria-live": "polite" });
  const digits = chips("Take a", (digit) => take(digit, 0));
  const another = button("", () => take(capsule.digit, (capsule.example + 1) % examples));
  const tabs = choice("", TABS, first.tab, (tab) => change({ tab }));
  tabs.classList.add("chips");
  const turner = button("Turn the axes", () => turn().catch(console.error));
  const reset = button("Reset", () => {
    capsule.turn(0);
    capsule.take(data.digit, 0);
    change(first);
  });

  const heads = () => el("div", { class: "heads", "aria-hidden": "true" }, ...properties.map((name) => el("span", {}, name)));
  const numbers = [...Array(16)].map((_, k) =>
    knob(String(k + 1), properties, { min: -1, max: 1, step: 0.01, value: 0, says: signed, moved: (to) => {
      capsule.v = capsule.v.map((x, d) => (d === k ? to : x));
      change();
    } }));
  const directions = properties.map((name, k) =>
    knob(name, properties, { min: -0.5, max: 0.5, step: 0.01, value: 0, says: signed, moved: (to) => {
      capsule.move(k, to);
      change();
    } }));
  const end = chips("to a", (digit) => change({ digit, example: 0 }));
  const otherEnd = button("", () => change({ example: (state.example + 1) % examples }));
  const way = slider("walk", { min: 0, max: 1, step: 0.01, value: 0, says: (x) => `${Math.round(100 * x)} %`, moved: (to) => change({ way: to }) });
  const walked = Object.entries(WAYS).map(([kind, title]) => ({ kind, title, canvas: picture(title), length: el("output") }));
  const panels = {
    numbers: el("div", {}, heads(), ...numbers.map(({ line }) => line)),
    directions: el("div", { class: "directions" }, heads(), ...directions.map(({ line }) => line),
      el("p", {}, "Each of these moves all sixteen numbers at once. Drag one, then go back and look at them.")),
    walk: el("div", { class: "walk" }, el("div", { class: "bar" }, end, otherEnd), way,
      el("div", { class: "ways" }, ...walked.map(({ title, canvas, length }) => el("div", {}, canvas, el("span", {}, title), length)))),
  };
  stage.append(
    el("div", { class: "bar" }, digits, another),
    el("div", { class: "shown" }, drawing, el("div", { class: "beside" }, image, length), el("div", { class: "bar" }, turner, reset), said),
    el("div", { class: "hands" }, tabs, ...Object.values(panels)),
  );

  // A notebook brings them; a page fetches them.
  const weights = async () =>
    data.weights?.buffer ?? (await fetch(new URL("data/decoder.safetensors", import.meta.url))).arrayBuffer();
  /** @type {Promise<void> | undefined} */
  let loading;
  /** The weights come when they are first needed. */
  function ready() {
    if (!loading) said.textContent = "Loading the decoder: 1.4 MB …";
    loading ??= weights().then((buffer) => {
      const { tensors } = readWeights(buffer);
      capsule.decoder = [1, 2, 3].map((n) => ({ weight: tensors[`fc${n}.weight`], bias: tensors[`fc${n}.bias`] }));
      said.textContent = "";
    });
    return loading.catch((error) => {
      loading = undefined; // the next move asks again
      said.textContent = "The decoder's weights could not be loaded. Move something to try again.";
      throw error;
    });
  }

  function take(/** @type {number} */ digit, /** @type {number} */ example) {
    capsule.take(digit, example);
    change({ digit, example: (example + examples - 1) % examples });
  }

  async function turn() {
    await ready();
    const before = capsule.draw();
    capsule.turn(capsule.seed + 1);
    await change();
    const changed = capsule.draw().map((x, k) => Math.abs(x - before[k]));
    said.textContent = `No pixel differs by more than ${Math.max(...changed).toFixed(7)}.`;
  }

  /** @param {Partial<typeof state>} [to] */
  function change(to) {
    Object.assign(state, to);
    show();
    writeState("knobs", address());
    data.tell?.("told", { digit: capsule.digit, v: [...capsule.v] });
    return ready().then(() => {
      said.textContent = ""; // not before: what was said is that the weights are on their way
      paint();
    }).catch(console.error);
  }

  function show() {
    const { digit, example, seed, found } = capsule;
    digits.value = `${digit}`;
    another.textContent = `another ${digit}`;
    end.value = `${state.digit}`;
    otherEnd.textContent = `another ${state.digit}`;
    tabs.value = state.tab;
    way.value = state.way;
    set(turner, { "aria-pressed": seed > 0 ? "true" : "false" });
    for (const [name, panel] of Object.entries(panels)) panel.hidden = name !== state.tab;
    drawDigit(image, shades(part(images, digit, example)), 28);
    const { v, table, moved } = capsule;
    const most = (/** @type {any} */ tensor) => Math.max(...part(tensor, digit).map(Math.abs)); // the longest bar
    numbers.forEach(({ show }, k) => show(v[k], table.subarray(6 * k, 6 * k + 6), most(found.tables)));
    directions.forEach(({ show }, k) => show(moved[k], part(found.along, digit, k), most(found.along)));
    const norm = Math.sqrt(dot(v, v));
    length.textContent = `‖v‖ = ${norm.toFixed(2)}${norm > 1 ? ", which no capsule has" : ""}`;
  }

  function paint() {
    drawDigit(drawing, capsule.draw(), 28);
    if (state.tab !== "walk") return;
    const from = capsule.slots(capsule.digit, capsule.own);
    const to = capsule.slots(state.digit, capsule.start(state.digit, state.example));
    for (const { kind, canvas, length } of walked) {
      const at = (kind === "round" ? round : straight)(from, to, state.way);
      const pixels = kind === "pixels" ? straight(capsule.draw(from), capsule.draw(to), state.way) : capsule.draw(at);
      drawDigit(canvas, pixels, 28);
      length.textContent = kind === "pixels" ? "" : `length ${Math.sqrt(dot(at, at)).toFixed(2)}`;
    }
  }

  /** What differs from the beginning; the capsule's way in thousandths, among its own axes. */
  function address() {
    const { digit, example, seed, own } = capsule;
    const start = capsule.start(digit, example);
    const gone = [...own].map((x, k) => Math.round(1000 * (x - start[k])));
    return {
      ...(digit !== data.digit || example ? { digit: `${digit}.${example}` } : {}),
      ...(gone.some(Boolean) ? { v: gone.join(".") } : {}),
      ...(seed ? { turn: seed } : {}),
      ...(state.tab !== first.tab ? { tab: state.tab } : {}),
      ...(state.tab === "walk" ? { to: `${state.digit}.${state.example}.${Math.round(100 * state.way)}` } : {}),
    };
  }

  const asked = readState("knobs");
  const [digit, example] = asked.digit?.split(".") ?? [];
  capsule.take(whole(digit, 10, data.digit), whole(example, examples));
  capsule.turn(whole(asked.turn, 1000));
  const gone = asked.v?.split(".").map(Number) ?? [];
  if (gone.length === 16 && gone.every(Number.isFinite)) capsule.own = capsule.own.map((x, k) => x + gone[k] / 1000);
  if (Object.hasOwn(TABS, asked.tab)) state.tab = /** @type {Tab} */ (asked.tab);
  const [last, other, far] = asked.to?.split(".") ?? [];
  Object.assign(state, { digit: whole(last, 10, capsule.digit), example: whole(other, examples, first.example), way: whole(far, 101, 50) / 100 });
  show();
  if (Object.keys(asked).length) await ready().then(paint);
  else drawDigit(drawing, shades(data.drawing), 28);
}
