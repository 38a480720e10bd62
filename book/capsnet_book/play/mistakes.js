// @ts-check
// All that the network reads wrongly: say what you see, then see what it saw.

import { argmax, button, drawDigit, el, number, readState, set, writeState } from "./kit.js";

const NAME = "mistakes";
export const caption = "Some of these labels are disputable, and some of these digits are plain. Say which digit you see, and you " +
  "are shown its label, the network’s answer, and what the capsules of both reconstruct.";
const PIXELS = 784;

/** @typedef {{ true: number, said: number, lengths: number[], images: Uint8Array[] }} Mistake
 *  images: what it is, and what its true and its chosen capsule draw */

/** @param {HTMLElement} stage
 * @param {{ pictures: Uint8Array, labels: number[], lengths: Float32Array & { shape: number[] } }} data
 *   pictures: [3, n, 784]; lengths: [n, classes]
 */
export async function mount(stage, { pictures, labels, lengths }) {
  const classes = lengths.shape[1];
  const digits = [...Array(classes).keys()];
  /** @type {Mistake[]} */
  const mistakes = labels.map((label, n) => {
    const norms = [...lengths.subarray(n * classes, (n + 1) * classes)];
    const images = [0, 1, 2].map((kind) => pictures.subarray((kind * labels.length + n) * PIXELS, (kind * labels.length + n + 1) * PIXELS));
    return { true: label, said: argmax(norms), lengths: norms, images };
  });
  const pairOf = (/** @type {Mistake} */ each) => `${each.true}${each.said}`;

  const asked = readState(NAME);
  const state = {
    pick: mistakes[+asked.pick] ? +asked.pick : 0,
    pair: mistakes.some((each) => pairOf(each) === asked.pair) ? asked.pair : "",
  };
  /** @type {Map<number, number>} */
  const answers = new Map(); // what the reader said, by mistake

  const show = (/** @type {HTMLCanvasElement} */ canvas, /** @type {Uint8Array} */ image, /** @type {string} */ label) => {
    drawDigit(canvas, Float32Array.from(image, (x) => x / 255));
    set(canvas, { "aria-label": label });
    return canvas;
  };
  const digit = () => el("canvas", { class: "digit", role: "img" });

  const cells = new Map();
  const head = (/** @type {number} */ k) => el("span", { class: "head" }, `${k}`);
  const matrix = el("div", { class: "matrix", role: "group", "aria-label": "Confusion matrix" }, el("span"), ...digits.map(head));
  for (const row of digits) {
    matrix.append(head(row));
    for (const column of digits) {
      const pair = `${row}${column}`;
      const count = mistakes.filter((each) => pairOf(each) === pair).length;
      const cell = count
        ? button(`${count}`, () => choose(state.pair === pair ? "" : pair), { "aria-label": `${row} classified as ${column}: ${count}`, style: `--much: ${Math.min(1, count / 5)}` })
        : el("span", row === column ? { class: "right" } : {});
      if (count) cells.set(pair, cell);
      matrix.append(cell);
    }
  }

  const thumbs = mistakes.map((each, n) => {
    const thumb = button("", () => moved({ pick: n }), { class: "thumb", "aria-label": `Error ${n + 1}` });
    thumb.append(show(digit(), each.images[0], "a digit"));
    return thumb;
  });
  const which = el("p", { class: "said" });
  const everything = button("Show all", () => choose(""));
  const reset = button("Reset", () => {
    answers.clear();
    choose("");
  });
  const score = el("p", { class: "said" });
  const large = digit();
  const ask = el("div", { class: "ask" });
  const told = el("p", { class: "said", "aria-live": "polite" });
  const bars = el("svg", { viewBox: "0 0 200 112", class: "plot", role: "img" });
  const drawings = [digit(), digit()];
  const captions = drawings.map(() => el("figcaption"));
  const answer = el("div", { class: "answer" }, bars, ...drawings.map((drawing, k) => el("div", {}, drawing, captions[k])));
  stage.append(
    el("div", { class: "cells" }, el("p", {}, "Rows are what they are, columns what it said. Tap a number."), matrix),
    el("div", { class: "all" }, el("div", { class: "bar" }, which, everything), el("div", { class: "thumbs" }, ...thumbs), el("div", { class: "bar" }, score, reset)),
    el("div", { class: "one" }, large, el("div", {}, ask, told), answer),
  );

  /** @param {string} pair  those to show; none for all */
  function choose(pair) {
    const first = mistakes.findIndex((each) => !pair || pairOf(each) === pair);
    moved({ pair, pick: first });
  }

  function draw() {
    const { pick, pair } = state;
    const one = mistakes[pick];
    for (const [each, cell] of cells) set(cell, { "aria-pressed": each === pair });
    thumbs.forEach((thumb, n) => {
      thumb.hidden = pair !== "" && pairOf(mistakes[n]) !== pair;
      set(thumb, { "aria-pressed": n === pick });
      thumb.classList.toggle("done", answers.has(n));
    });
    which.textContent = pair ? `${pair[0]} classified as ${pair[1]}` : `All ${mistakes.length} errors, the longest wrong capsule first`;
    everything.hidden = !pair;
    show(large, one.images[0], "The digit in question");
    score.textContent = answers.size ? `You and the labels agree on ${[...answers].filter(([n, said]) => mistakes[n].true === said).length} of ${answers.size}.` : "";
    const mine = answers.get(pick);
    const options = [one.true, one.said].sort((a, b) => a - b);
    ask.replaceChildren("What would you have said? ", ...options.map((k) => button(`${k}`, () => answered(k), { "aria-pressed": mine === k, "aria-label": `I would have said ${k}` })));
    answer.classList.toggle("hidden", mine === undefined);
    told.textContent = "";
    if (mine === undefined) return;
    told.textContent = `Labelled ${one.true}${mine === one.true ? ", as you say" : ""}. The network says ${one.said}${mine === one.said ? ", like you" : ""}.`;
    set(bars, { "aria-label": `Lengths: ${digits.map((k) => `${k}: ${number(one.lengths[k])}`).join(", ")}` });
    bars.replaceChildren(...digits.flatMap((k) => {
      const [x, high] = [(k + 0.5) * (200 / classes), 78 * one.lengths[k]];
      const kind = k === one.said ? "said" : k === one.true ? "true" : "";
      const value = kind ? [el("text", { x, y: 92 - high - 4, "text-anchor": "middle", class: "tick" }, number(one.lengths[k]).slice(1))] : [];
      return [el("rect", { x: x - 6, y: 92 - high, width: 12, height: Math.max(1, high), class: kind }), el("text", { x, y: 108, "text-anchor": "middle", class: kind }, `${k}`), ...value];
    }));
    [one.true, one.said].forEach((k, place) => {
      show(drawings[place], one.images[place + 1], `Reconstruction from the capsule of ${k}`);
      captions[place].textContent = `its ${k}`;
    });
  }

  /** @param {number} digit */
  function answered(digit) {
    answers.set(state.pick, digit);
    draw();
    /** @type {HTMLElement | null} */ (ask.querySelector("[aria-pressed=true]"))?.focus(); // its like was there
  }

  /** @param {Partial<typeof state>} to */
  function moved(to) {
    Object.assign(state, to);
    draw();
    writeState(NAME, state.pick || state.pair ? { pick: state.pick, pair: state.pair } : {});
  }
  draw();
}
