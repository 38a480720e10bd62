// @ts-check
// Drag one digit over another: the network of two digits names both, and draws each in its colour.

import { megabytes, onCall } from "./asking.js";
import { bars } from "./bars.js";
import { aDigit, button, digitChoice, drawDigit, el, number, picture, readState, set, slider, writeState } from "./kit.js";

const NAME = "pairs";
const [SIDE, OWN, REACH] = [36, 28, 4]; // pixels: of the image, of a digit, and how far it is moved
const BYTES = 5_404_248; // of the network

/** Two digits in one image: added, and cut off at white, as the paper makes its pairs.
 * @param {ArrayLike<number>} first  in the middle
 * @param {ArrayLike<number>} second  moved to the right by x and down by y
 * @param {number} x @param {number} y
 */
function overlay(first, second, x, y) {
  const image = new Float32Array(SIDE * SIDE);
  for (let row = 0; row < OWN; row++)
    for (let column = 0; column < OWN; column++) {
      const k = row * OWN + column;
      image[(row + REACH) * SIDE + column + REACH] += first[k] / 255;
      image[(row + REACH + y) * SIDE + column + REACH + x] += second[k] / 255;
    }
  return image.map((pixel) => Math.min(1, pixel));
}

/** The first in green, the second in magenta, white where both are.
 * @param {HTMLCanvasElement} canvas @param {Float32Array} first @param {Float32Array} second
 */
function drawBoth(canvas, first, second) {
  Object.assign(canvas, { width: SIDE, height: SIDE });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(SIDE, SIDE);
  first.forEach((pixel, k) => image.data.set([255 * second[k], 255 * pixel, 255 * second[k], 255], 4 * k));
  context.putImageData(image, 0, 0);
}

/**
 * @param {HTMLElement} stage
 * @param {{ digits: Uint8Array & { shape: number[] }, lengths: Float32Array, drawn: Float32Array }} data
 *   digits of each class, [10, examples, 28, 28]; what the network makes of the first pair
 */
export async function mount(stage, { digits, lengths: firstLengths, drawn: drawings }) {
  const examples = digits.shape[1];
  const first = { a: 4, b: 6, x: 2, y: 0, example: 0 };
  const state = readState(NAME);
  const now = { ...first };
  for (const key of /** @type {(keyof typeof first)[]} */ (Object.keys(first))) {
    const asked = Number(state[key] ?? NaN);
    const [low, high] = key === "x" || key === "y" ? [-REACH, REACH] : [0, key === "example" ? examples - 1 : 9];
    if (Number.isInteger(asked) && asked >= low && asked <= high) now[key] = asked;
  }
  const pixels = (/** @type {number} */ k) => digits.subarray((k * examples + now.example) * OWN * OWN, (k * examples + now.example + 1) * OWN * OWN);

  const image = el("canvas", { class: "digit", role: "img" });
  const drawn = picture("reconstruction: a 4 in green, a 6 in magenta");
  const lengths = bars("the lengths of the ten capsules");
  const says = el("p", { class: "says", "aria-live": "polite" });
  const network = onCall("multimnist", BYTES, (text) => (says.textContent = text));
  const shift = (/** @type {"x" | "y"} */ key, /** @type {string} */ title) =>
    slider(title, { min: -REACH, max: REACH, step: 1, value: now[key], says: (x) => number(x, 0), moved: (to) => ((now[key] = to), show(true)) });
  const [right, down] = [shift("x", "to the right"), shift("y", "down")];
  const one = digitChoice("first", now.a, (k) => ((now.a = k), show(true)));
  const two = digitChoice("second", now.b, (k) => ((now.b = k), show(true)));
  const another = button("Other writers", () => ((now.example = (now.example + 1) % examples), show(true)));
  const reset = button("Reset", () => {
    Object.assign(now, first);
    [one.value, two.value] = [`${now.a}`, `${now.b}`];
    show(true);
  });

  /** @type {{ x: number, y: number, event: PointerEvent } | undefined} */
  let held;
  image.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    image.setPointerCapture(event.pointerId);
    held = { x: now.x, y: now.y, event };
  });
  image.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
    if (!held || !image.hasPointerCapture(event.pointerId)) return;
    const pixel = image.getBoundingClientRect().width / SIDE;
    const within = (/** @type {number} */ at) => Math.max(-REACH, Math.min(REACH, Math.round(at)));
    const [x, y] = [within(held.x + (event.clientX - held.event.clientX) / pixel), within(held.y + (event.clientY - held.event.clientY) / pixel)];
    if (x !== now.x || y !== now.y) Object.assign(now, { x, y }), show(true);
  });
  image.addEventListener("pointerup", () => (held = undefined));

  /** @param {boolean} touched  the network is loaded when the reader first changes something */
  function show(touched) {
    const seen = overlay(pixels(now.a), pixels(now.b), now.x, now.y);
    drawDigit(image, seen);
    set(image, { "aria-label": `${aDigit(now.a)} and ${aDigit(now.b)}, one over the other` });
    [right.value, down.value] = [now.x, now.y];
    const changed = Object.entries(first).some(([key, usual]) => now[/** @type {keyof typeof first} */ (key)] !== usual);
    writeState(NAME, changed ? now : {});
    if (touched) ask(seen).catch((error) => (says.textContent = error.message));
    else says.textContent = `Drag the second digit. The network of this chapter (${megabytes(BYTES)} MB) is then loaded, and separates the two.`;
  }

  /** @param {Float32Array} seen */
  async function ask(seen) {
    const found = await network({ look: seen });
    if (!found) return; // the digits have moved on
    const named = [...found.lengths.keys()].sort((a, b) => found.lengths[b] - found.lengths[a]).slice(0, 2);
    if (named[0] === now.b || named[1] === now.a) named.reverse(); // each in its colour
    lengths.show(found.lengths, named);
    const pair = [];
    for (const k of named) pair.push(await network({ draw: found.v, of: k }));
    if (!pair[0] || !pair[1]) return;
    drawBoth(drawn, pair[0], pair[1]);
    set(drawn, { "aria-label": `reconstruction: ${aDigit(named[0])} in green, ${aDigit(named[1])} in magenta` });
    const right = [now.a, now.b].every((k) => named.includes(k));
    const alike = now.a === now.b ? " It never saw two equal digits in training." : right ? "" : " It is wrong.";
    says.textContent = `It names ${named[0]} (green) and ${named[1]} (magenta).${alike}`;
  }

  lengths.show(firstLengths, [first.a, first.b]);
  drawBoth(drawn, drawings.subarray(0, SIDE * SIDE), drawings.subarray(SIDE * SIDE));
  stage.append(
    el("div", { class: "abreast" },
      el("figure", {}, image, el("figcaption", {}, "image: drag the second digit")),
      el("figure", {}, drawn, el("figcaption", {}, "reconstruction")),
      el("div", {}, "‖v‖", lengths.list)),
    says, one, two,
    el("div", { class: "bar moves" }, right, down, another, reset),
  );
  show(Object.keys(state).length > 0);
}
