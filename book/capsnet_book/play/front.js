// @ts-check
// The front page: draw a digit, and a plain CNN and a capsule network answer; then bend what the
// capsule network draws of it, or turn the digit itself.

import { onCall } from "./asking.js";
import { bars, columns } from "./bars.js";
import { draggable } from "./drag.js";
import { addressOf, aDigit, argmax, button, drawDigit, el, number, readState, set, slider, unpack, writeState } from "./kit.js";
import { limit } from "./limit.js";
import { pad, SIDE } from "./pad.js";
import { bend as bentBy, matrix } from "./warp.js";

const NAME = "front";
export const caption = "Sixteen numbers are enough to reconstruct most digits. The decoder reconstructs the digit from the " +
  "sixteen numbers of the longest capsule, and the page estimates slant, width and stroke thickness from the same numbers. Your own " +
  "digit, drawn or photographed, is first centred and scaled like an MNIST digit.";
const [SHORT, SURE] = [0.5, 0.7]; // ‖v‖ below the first is no digit, below the second a doubtful one
const FILES = new URL("data/", import.meta.url);
const MIDDLE = SIDE / 2 + 0.5; // where MNIST has the centre of mass, in units of the drawing
const TALL = 11; // pixels: half of the height of the frame
/** What `handwriting` measures: unit, step of the slider, and words for little and for much of it. */
const MEASURES = [
  { unit: "°", step: 1, little: "left", much: "right" },
  { unit: " px", step: 0.1, little: "narrow", much: "wide" },
  { unit: " px", step: 0.05, little: "thin", much: "thick" },
];
const [SLANT, WIDTH, STROKE] = [0, 1, 2];
const DRAW = "draw something"; // says an empty pad
const [DRAWN, PICTURE] = [-1, -2]; // on the pad, where no digit was taken
/** @typedef {import("./worker.js").Seen} Seen */

const head = (/** @type {string} */ text) => el("p", { class: "head" }, text);
const clamp = (/** @type {number} */ x, /** @type {number} */ most) => Math.max(-most, Math.min(most, x));

/** @param {HTMLElement} stage */
export async function mount(stage) {
  const data = unpack(await (await fetch(new URL("front.json", FILES))).json()); // of book/capsnet_book/play/front.py
  const size = data.v.length / 10;
  /** @param {number} k */
  const digit = (k) => Float32Array.from(data.digits.subarray(784 * k, 784 * (k + 1)), (p) => p / 255);

  let image = /** @type {Float32Array} */ (digit(data.shown));
  /** @type {Seen | undefined} */
  let seen; // what the capsule network says of the image; undefined before it was asked
  /** @type {number[]} */
  let measured = []; // slant, width and stroke, read out of the longest capsule
  let bent = MEASURES.map(() => 0); // by how much the reconstruction is to differ, in the same units
  let turned = 0; // degrees
  let looks = 0; // questions about an image that have no answer yet
  let waiting = 0; // all questions that have none
  let taken = data.shown; // the digit on the pad, DRAWN or PICTURE
  let chances = data.chances; // what the CNN says of the image

  const board = pad((drawn) => {
    [image, taken] = [drawn, DRAWN];
    if (turned) straight();
    look();
  });
  const digits = Array.from({ length: 10 }, (_, k) => button(String(k), () => take(k), { "aria-label": `take a ${k}` }));
  const clear = button("Clear", () => take(DRAWN));
  const reset = button("Reset", () => take(data.shown));
  const share = button("Share", () => send());
  const yours = button("Your picture", () => withPicture());
  const sent = el("p", { class: "sent", role: "status" });
  const turner = slider("turn my digit", { min: -45, max: 45, step: 1, value: 0, says: (x) => `${number(x, 0)}°`, moved: (to) => {
    turn(to);
    look();
  } });
  const cnnSays = el("p", { class: "cnn", "aria-live": "polite" });
  const says = el("p", { class: "says", "aria-live": "polite" });
  const lengths = bars("the lengths of the ten capsules");
  const sixteen = columns(size);
  const drawing = el("canvas", { class: "digit", role: "img" });
  const from16 = el("p", { class: "from" });
  const sliders = MEASURES.map(({ unit, step }, k) =>
    slider(data.sliders[k], { min: 0, max: 1, step, value: 0, says: (x) => number(x, unit === "°" ? 0 : 1) + unit, moved: (to) => put(k, to) }));
  const frame = el("polygon", { class: "frame" });
  const grips = [el("circle", { class: "grasp", r: 2.8 }), el("circle", { class: "grasp", r: 2.8 })];
  const knobs = [el("circle", { class: "knob", r: 0.9 }), el("circle", { class: "knob", r: 0.9 })];
  const handles = el("svg", { class: "handles", viewBox: `0 0 ${SIDE} ${SIDE}`, "aria-hidden": true }, frame, ...knobs, ...grips);
  const sure = el("p", { class: "sure" });
  const [ofCapsules, ofCnn] = [data.page, data["page-cnn"]].map(({ parameters, correct, total }) =>
    ({ right: `${((100 * correct) / total).toFixed(2)} %`, weights: parameters.toLocaleString("en") }));
  const [slant, width, stroke] = data.errors;
  const facts = el("p", {}, `Both run here, on your machine. With ${ofCnn.weights} weights the CNN recognises ${ofCnn.right} of ${data.page.total.toLocaleString("en")} ` +
    `test digits, the capsule network ${ofCapsules.right} with ${ofCapsules.weights}. Slant, width and stroke err by ${slant.toFixed(1)}°, ${width.toFixed(1)} px and ` +
    `${stroke.toFixed(1)} px on average. The slant is that of all the ink: a printed digit’s is about 0°.`);
  /** @param {"page" | "page-cnn"} name @param {HTMLElement} place */
  const calls = (name, place) => onCall(name, data[name].bytes, (text) => (place.textContent = text));
  const asked = { capsules: calls("page", says), cnn: calls("page-cnn", cnnSays) };
  /** @param {(question: { look: Float32Array }) => Promise<any>} ask @param {(found: any) => number} names */
  const marked = (ask, names) => limit((degrees) => ask({ look: bentBy(image, matrix(degrees, 0, 1)) }), names, () => !waiting);
  const limits = [marked(asked.cnn, argmax), marked(asked.capsules, named)];
  const [ofCnnTurned, ofCapsulesTurned] = limits;

  /** The digit that the capsules name, or -1. @param {Seen} found */
  function named({ lengths: found, longest: first }) {
    return found[first] < SHORT ? -1 : first;
  }

  /** Have both networks look at the image; the reconstruction is no longer bent, unless it is kept. */
  async function look(keep = false) {
    if (!keep) bent = bent.map(() => 0);
    silence(false);
    stage.classList.toggle("empty", empty());
    remember();
    const [degrees, digit] = [turned, taken];
    const seenByThem = degrees ? bentBy(image, matrix(degrees, 0, 1)) : image;
    limits.forEach((each) => each.start(taken));
    answered(asked.cnn({ look: seenByThem }), cnnSays).then((found) => {
      if (!found) return;
      showChances(found);
      ofCnnTurned.heard(found, degrees, digit);
      fill();
    });
    looks++;
    const answer = await answered(asked.capsules({ look: seenByThem }), says);
    looks--;
    if (!answer || silent()) return; // a newer image is on its way
    seen = answer;
    show(answer);
    ofCapsulesTurned.heard(answer, degrees, digit);
    fill();
    if (bent.some(Boolean)) bend();
  }

  /** Once both have answered. */
  const fill = () => waiting || limits.forEach((each) => each.fill());

  /** Move along the directions of the digit that was found, and draw again. */
  async function bend() {
    remember();
    if (looks) return; // of an image not yet looked at; then it is bent
    if (!seen) return look(true);
    const { v, longest } = seen;
    const moved = v.slice();
    bent.forEach((by, k) => {
      const far = clamp(by / data.gains[3 * longest + k], data.reach);
      for (let d = 0; d < size; d++) moved[longest * size + d] += far * data.directions[(3 * longest + k) * size + d];
    });
    const drawn = await answered(asked.capsules({ draw: moved, of: longest }), says);
    if (drawn) showDrawn(moved, longest, drawn);
  }

  /** Have the reconstruction lean, or be as wide or thick, as this.
   * @param {number} k  of MEASURES @param {number} to
   */
  function put(k, to) {
    bent[k] = clamp(to - measured[k], furthest(k));
    showHands();
    bend();
  }

  /** How far a measure can be moved. @param {number} k */
  const furthest = (k) => data.reach * data.gains[3 * longest() + k];
  const longest = () => seen?.longest ?? data.shown;

  /** @template T @param {Promise<T>} answer @param {HTMLElement} place */
  async function answered(answer, place) {
    set(stage, { "aria-busy": String(++waiting > 0) });
    try {
      return await answer;
    } catch (error) {
      place.textContent = `The network cannot answer: ${/** @type {Error} */ (error).message}`;
    } finally {
      set(stage, { "aria-busy": String(--waiting > 0) });
    }
  }

  /** @param {number} k  a digit, or -1 for none */
  function take(k) {
    taken = k;
    board.take(k < 0 ? undefined : digit(k), k < 0 ? undefined : aDigit(k));
    image = board.image();
    straight();
    look();
  }

  function straight() {
    turner.value = 0;
    turn(0);
  }

  /** @param {number} degrees */
  function turn(degrees) {
    turned = degrees;
    board.canvas.style.rotate = degrees ? `${degrees}deg` : "";
  }

  /** @type {Promise<ReturnType<typeof import("./yours.js").picturePanel>> | undefined} */
  let panel; // where the reader's own picture is read
  const pictured = () => stage.classList.contains("pictured");
  const silent = () => stage.classList.contains("silent"); // a picture was refused, and the networks are not asked
  const silence = (/** @type {boolean} */ now) => stage.classList.toggle("silent", now);

  /** Put the panel in the place of the pad. */
  async function withPicture() {
    panel ??= import("./yours.js").then(({ picturePanel }) => {
      const made = picturePanel({ take: takePicture, answers, leave });
      first.prepend(made.panel);
      about.before(made.gallery);
      return made;
    });
    const made = await panel;
    stage.classList.add("pictured");
    remember();
    return made;
  }

  function leave() {
    stage.classList.remove("pictured");
    remember();
  }

  /** @param {Float32Array} [found]  the digit of the reader's picture */
  function takePicture(found) {
    taken = PICTURE;
    board.take(found, found && "your picture");
    image = board.image();
    straight();
    if (found) return look();
    silence(true);
    seen = undefined;
    remember();
    cnnSays.textContent = says.textContent = "nothing, as no digit was found";
    lengths.show(Array(10).fill(0));
    sixteen.show(Array(size).fill(0), "no capsule");
    drawDigit(drawing, new Float32Array(SIDE * SIDE));
  }

  /** What both networks say of the image, once they have. */
  function answers() {
    if (waiting || !seen) return;
    return { cnn: argmax(chances), capsules: named(seen) };
  }

  // A picture may be dropped anywhere on the figure.
  stage.addEventListener("dragover", (event) => event.preventDefault());
  stage.addEventListener("drop", async (event) => {
    const dropped = event.dataTransfer?.files[0];
    event.preventDefault();
    (await withPicture()).read(dropped);
  });

  /** @param {ArrayLike<number>} found  the ten probabilities of the CNN */
  function showChances(found) {
    if (silent()) return;
    chances = found;
    cnnSays.textContent = empty() ? DRAW : guess();
    if (empty() && seen) showSure(seen);
  }

  /** The digit that the CNN finds most likely. */
  function guess() {
    const most = argmax(chances);
    const percent = Math.round(100 * chances[most]);
    return `${most} (${percent === 100 ? "over 99" : percent} %)`;
  }

  const empty = () => !image.some((p) => p > 0.1);

  /** What they answer even where there is nothing to see. @param {Seen} answer */
  function showSure({ lengths: found, longest: first }) {
    const length = found[first].toFixed(2);
    sure.textContent = empty()
      ? "Neither network can answer “none of these”. Of the empty field, too, the CNN’s ten percentages add up to 100, and its answer " +
        `would be ${guess()}; the longest capsule is that of ${aDigit(first)}, with length ${length}.`
      : "Draw an A: neither network can answer “none of these”. The CNN’s ten percentages always add up to 100, and " +
        `some capsule is always the longest, now that of ${aDigit(first)} with length ${length}.`;
  }

  /** @param {Seen} answer */
  function show(answer) {
    const { v, lengths: found, longest: first, drawn } = answer;
    measured = MEASURES.map((_, k) => {
      let sum = data.fit[(first * (size + 1) + size) * 3 + k]; // the constant
      for (let d = 0; d < size; d++) sum += data.fit[(first * (size + 1) + d) * 3 + k] * v[first * size + d];
      return sum;
    });
    bent = bent.map((by, k) => clamp(by, furthest(k))); // those of the address may be of another network
    lengths.show(found, found[first] > SHORT && !empty() ? [first] : []);
    says.textContent = said(found, first);
    showSure(answer);
    showHands();
    if (!bent.some(Boolean)) showDrawn(v, first, drawn);
  }

  /** @param {ArrayLike<number>} v @param {number} first @param {ArrayLike<number>} drawn */
  function showDrawn(v, first, drawn) {
    const moved = bent.some(Boolean);
    drawDigit(drawing, drawn);
    set(drawing, { "aria-label": `reconstruction from capsule ${first}${moved ? ", moved by the sliders" : ""}` });
    from16.textContent = `from capsule ${first} alone${moved ? ", moved" : ""}`;
    const own = (/** @type {ArrayLike<number>} */ all) => Array.from(all).slice(first * size, (first + 1) * size);
    sixteen.show(own(v), `the ${size} numbers of capsule ${first}${moved ? ", moved" : ""}`, moved && seen ? own(seen.v) : undefined);
  }

  /** Sliders and handles where the reconstruction is bent to. */
  function showHands() {
    const now = measured.map((at, k) => at + bent[k]);
    sliders.forEach((each, k) => {
      const input = /** @type {HTMLInputElement} */ (each.querySelector("input"));
      const { step } = MEASURES[k]; // a slider counts its steps from its least value
      set(input, { min: step * Math.ceil((measured[k] - furthest(k)) / step), max: measured[k] + furthest(k) });
      each.value = now[k];
    });
    const [lean, half] = [TALL * Math.tan((bent[SLANT] * Math.PI) / 180), now[WIDTH] / 2]; // it stands at first
    const corners = [[lean - half, -TALL], [lean + half, -TALL], [half - lean, TALL], [-half - lean, TALL]];
    set(frame, { points: corners.map(([x, y]) => `${MIDDLE + x},${MIDDLE + y}`).join(" ") });
    [[lean, -TALL], [half, 0]].forEach(([x, y], n) =>
      [grips, knobs].forEach((circles) => set(circles[n], { cx: MIDDLE + x, cy: MIDDLE + y })));
  }

  /** What the capsule network says. @param {ArrayLike<number>} found @param {number} first */
  function said(found, first) {
    const second = Array.from(found, (_, k) => k).filter((k) => k !== first).sort((a, b) => found[b] - found[a])[0];
    if (empty()) return DRAW;
    if (found[first] < SHORT) return `no digit: its longest capsule, that of ${aDigit(first)}, has length ${found[first].toFixed(2)}`;
    if (found[second] > SHORT) return `${first} or ${second}: both capsules are long`;
    const words = MEASURES.map(({ little, much }, k) => {
      const [low, high] = [0, 3].map((row) => data.quartiles[6 * first + row + k]);
      if (k === SLANT) {
        const far = measured[k] < low ? `further ${little} than` : measured[k] > high ? `further ${much} than` : "like";
        return `leaning ${far} most ${first}s`;
      }
      return measured[k] < low ? little : measured[k] > high ? much : "";
    });
    return [`${found[first] < SURE ? "perhaps " : ""}${first}`, ...words.filter(Boolean)].join(", ");
  }

  function stateNow() {
    /** @type {Record<string, string | number>} */
    const state = {};
    if (pictured()) state.with = "picture";
    if (taken === PICTURE) return state; // which no address holds
    if (taken === DRAWN) state.drawing = board.written();
    else if (taken !== data.shown || turned || bent.some(Boolean)) state.digit = taken;
    if (turned) state.turn = turned;
    bent.forEach((by, k) => by && (state[data.sliders[k]] = Number(by.toFixed(2))));
    return state;
  }

  function remember() {
    sent.textContent = "";
    set(share, { disabled: taken === PICTURE });
    writeState(NAME, stateNow());
  }

  /** Hand the address on, which holds the digit: as the machine does it, or else by copying it. */
  async function send() {
    const url = new URL(addressOf(NAME, stateNow()), location.href).href;
    history.replaceState(null, "", url);
    try {
      if (navigator.share) return await navigator.share({ title: document.title, url });
      await navigator.clipboard.writeText(url);
      sent.textContent = "Address copied";
    } catch (error) {
      const left = /** @type {Error} */ (error).name === "AbortError"; // by the reader
      if (!left) sent.textContent = "Copy this page’s address";
    }
  }

  // The top of the frame leans, its side is wider, and two fingers or a wheel make strokes thicker.
  const at = (/** @type {number} */ n) => /** @type {[number, number]} */ ([grips[n].cx.baseVal.value, -grips[n].cy.baseVal.value]);
  draggable(grips[0], handles, 0, () => at(0), (x) => put(SLANT, measured[SLANT] + (Math.atan((x - MIDDLE) / TALL) * 180) / Math.PI));
  draggable(grips[1], handles, 0, () => at(1), (x) => put(WIDTH, 2 * (x - MIDDLE)));
  let held = false; // until it was touched a wheel scrolls the page
  handles.addEventListener("pointerdown", () => (held = true));
  handles.addEventListener("pointerleave", () => (held = false));
  const thicken = (/** @type {Event} */ event, /** @type {number} */ by) => {
    event.preventDefault();
    put(STROKE, measured[STROKE] + by);
  };
  handles.addEventListener("wheel", (/** @type {WheelEvent} */ event) => {
    if (held || event.ctrlKey) thicken(event, bent[STROKE] - event.deltaY / 500); // Ctrl: fingers on a trackpad
  }, { passive: false });
  let [apart, before] = [0, 0];
  /** @param {TouchEvent} event */
  const gap = ({ touches }) => Math.hypot(touches[0].clientX - touches[1].clientX, touches[0].clientY - touches[1].clientY);
  handles.addEventListener("touchstart", (/** @type {TouchEvent} */ event) => {
    if (event.touches.length === 2) [apart, before] = [gap(event), bent[STROKE]];
  });
  handles.addEventListener("touchmove", (/** @type {TouchEvent} */ event) => {
    if (event.touches.length === 2) thicken(event, before + gap(event) / apart - 1);
  }, { passive: false });

  const first = el("div", { class: "column" },
    el("div", { class: "drawing" }, head("Draw a digit"), el("div", { class: "ground" }, board.canvas, sent), el("div", { class: "bar" }, clear, reset, share, yours)),
    el("div", { class: "turner" }, turner),
    el("div", { class: "tools" }, el("p", { class: "hint" }, "or take one:"), el("div", { class: "digits" }, ...digits)));
  const asks = (/** @type {string} */ title, /** @type {Node} */ mark) => el("div", { class: "asks" }, head(title), mark);
  const about = el("div", { class: "facts" }, sure, facts);
  stage.append(
    first,
    el("div", { class: "column" },
      el("div", { class: "answers" }, asks("A plain CNN says:", ofCnnTurned.mark), cnnSays, asks("A capsule network says:", ofCapsulesTurned.mark), says,
        sixteen.row, el("p", { class: "hint" }, `the ${size} numbers of its longest capsule`)),
      el("div", { class: "lengths" }, head("Ten lengths ‖v‖"), lengths.list)),
    el("div", { class: "column" },
      el("div", { class: "drawn" }, head("Reconstruction"), el("div", { class: "handled" }, drawing, handles), from16,
        el("p", { class: "hint" }, "Drag its top or its side. For thicker strokes pinch it", el("span", { class: "mouse" }, ", or click it and turn the wheel"), ".")),
      el("div", { class: "sliders" }, ...sliders)),
    about,
  );
  board.take(image, `a ${data.shown}`);
  showChances(chances);
  show({ v: data.v, lengths: data.lengths, longest: data.shown, drawn: Float32Array.from(data.drawn, (/** @type {number} */ p) => p / 255) });

  const state = readState(NAME);
  if (state.with === "picture") await withPicture();
  if (!/^\d$/.test(state.digit ?? "") && state.drawing === undefined) return;
  if (state.drawing === undefined) take(Number(state.digit));
  else if (!board.draw(state.drawing)) return void (sent.textContent = "This address is incomplete");
  else [taken, image] = [DRAWN, board.image()];
  turner.value = Math.round(clamp(Number(state.turn) || 0, 45));
  turn(turner.value);
  look();
  bent = data.sliders.map((/** @type {string} */ name) => Number(state[name]) || 0);
}
