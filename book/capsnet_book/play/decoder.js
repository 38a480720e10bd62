// @ts-check
// Any of the ten capsules of an image, decoded at any length.

import { onCall } from "./asking.js";
import { aDigit, argmax, button, digitChoice, drawDigit, el, picture, readState, set, slider, unpack, writeState } from "./kit.js";
import { lastDrawn, pad } from "./pad.js";

const NAME = "decoder";
export const caption = "A short capsule decodes to a blur, and one that is stretched to 0.9 seldom decodes to its digit. Stretch the capsules of a " +
  "digit, taken or drawn, in the first page’s small network.";
const [DIGIT, OF, DRAWN] = [8, 2, -1]; // what is shown first; a drawing has no digit

/** @param {HTMLElement} stage */
export async function mount(stage) {
  const data = unpack(await (await fetch(new URL("data/front.json", import.meta.url))).json()); // of book/capsnet_book/play/front.py
  let [digit, of] = [DIGIT, OF];
  /** @type {number | undefined} */
  let length; // to which the capsule is stretched; undefined: it has its own
  /** @type {import("./worker.js").Seen | undefined} */
  let seen; // what the network makes of the image
  let decoded = 0; // so many of its ten capsules, at their own lengths
  let turn = 0; // the reader's newest wish

  const board = pad(() => looked(DRAWN));
  const which = digitChoice("draw, or take", digit, take);
  const last = button("My last drawing", () => draw(lastDrawn()));
  const reset = button("Reset", () => {
    of = OF;
    take(DIGIT);
  });
  const drawing = picture("the reconstruction");
  const title = el("figcaption");
  const says = el("p", { class: "says", "aria-live": "polite" });
  const network = onCall("page", data.page.bytes, (text) => (says.textContent = text));
  const stretch = slider("length", { min: 0, max: 1, step: 0.01, value: 0, moved: (to) => update({ length: to }) });
  const whose = digitChoice("decode the capsule of", of, (k) => update({ of: k, length: undefined }));
  whose.classList.add("thumbs");
  const thumbs = [...whose.querySelectorAll("label")].map((label) => {
    const [canvas, own] = [el("canvas", { class: "digit", "aria-hidden": true }), el("output")];
    label.append(canvas, own);
    return { canvas, own };
  });

  /** @param {number} k */
  function take(k) {
    board.take(Float32Array.from(data.digits.subarray(784 * k, 784 * (k + 1)), (p) => p / 255), aDigit(k));
    return looked(k);
  }

  /** @param {string} strokes */
  function draw(strokes) {
    board.draw(strokes);
    return looked(DRAWN);
  }

  /** There is another image. @param {number} k */
  function looked(k) {
    [digit, seen, decoded] = [k, undefined, 0];
    which.value = `${k}`;
    return update({ length: undefined });
  }

  /** Ask for all that is not yet known, one thing after the other, until the reader wishes something else.
   * @param {{ of?: number, length?: number }} to
   */
  async function update(to) {
    const mine = ++turn;
    ({ of, length } = { of, length, ...to });
    whose.value = `${of}`;
    set(last, { disabled: !lastDrawn() });
    const usual = digit === DIGIT && of === OF && length === undefined;
    writeState(NAME, usual ? {} : { ...(digit === DRAWN ? { drawing: board.written() } : { digit }), of, ...(length === undefined ? {} : { length }) });
    set(stage, { "aria-busy": "true" });
    try {
      const found = seen ?? (await network({ look: board.image() }));
      if (mine !== turn) return;
      seen = /** @type {import("./worker.js").Seen} */ (found);
      const { v, lengths } = seen;
      stretch.value = length ?? lengths[of];
      for (; decoded < thumbs.length; decoded++) {
        const small = await network({ draw: v, of: decoded });
        if (mine !== turn) return;
        drawDigit(thumbs[decoded].canvas, small);
        thumbs[decoded].own.textContent = lengths[decoded].toFixed(2);
      }
      const [size, by] = [v.length / lengths.length, length === undefined ? 1 : length / (lengths[of] || 1)];
      const decodes = await network({ draw: v.map((x, d) => (Math.floor(d / size) === of ? by * x : x)), of });
      if (mine !== turn) return;
      drawDigit(drawing, decodes);
      const own = lengths[of].toFixed(2);
      title.textContent = length === undefined ? `capsule ${of}, ${own} long` : `capsule ${of}, ${own} → ${length.toFixed(2)}`;
      set(drawing, { "aria-label": `reconstruction from ${title.textContent}` });
      const again = await network({ look: decodes });
      if (mine !== turn) return;
      const answer = argmax(again.lengths);
      says.textContent = `Shown this reconstruction, the network answers ${answer}, with a length of ${again.lengths[answer].toFixed(2)}.`;
    } catch (error) {
      says.textContent = `The network cannot answer: ${/** @type {Error} */ (error).message}`;
    }
    set(stage, { "aria-busy": "false" });
  }

  stage.append(
    which,
    el("div", { class: "abreast" },
      el("figure", {}, board.canvas, el("figcaption", {}, "image: draw your own")),
      el("figure", {}, drawing, title),
      el("div", {}, says, el("div", { class: "bar" }, last, reset))),
    stretch,
    whose,
  );
  const state = readState(NAME);
  if (/^\d$/.test(state.of ?? "")) of = Number(state.of);
  const first = /^\d$/.test(state.digit ?? "") ? Number(state.digit) : DIGIT;
  await (state.drawing ? draw(state.drawing) : take(first));
  const asked = Number(state.length ?? NaN);
  if (asked >= 0 && asked <= 1) await update({ length: asked });
}
