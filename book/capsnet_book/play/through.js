// @ts-check
// One seven in the network: a primary capsule, what it sees, its eight numbers and its ten votes.

import { squash } from "./capsules.js";
import { pointed } from "./drag.js";
import { button, choice, drawDigit, el, number, part, picture, readState, set, sheet, slider, writeState } from "./kit.js";
import { CHILDREN, PLACES, members, owner, place } from "./members.js";

export const caption = "The whole network is six statements, and this is what they make of one seven. Tap one of the 1152 children " +
  "to see its window of the image, its eight numbers and its ten votes.";

/** @typedef {import("./members.js").Read} Read */
/**
 * @typedef {object} Seven  what the network makes of it
 * @property {Uint8Array} image  [28, 28]
 * @property {Float32Array} maps  of the second convolution, [256, 6, 6]
 * @property {number[][][]} fields  what each place sees: first and last row, first and last column
 * @property {Uint8Array} votes  lengths of û, [1152, 10], in parts of the longest
 * @property {number} longest
 * @property {Int8Array} turns  the cosine between û and its parent's v, [1152, 10], in parts of 127
 * @property {number[]} lengths  ‖v‖
 * @property {Uint8Array} drawing  [28, 28]
 */

const FIRST = 195; // the chapter's child
const [ACROSS, MAPS] = [8, 16]; // types, and maps, in a row
const BAR = 26; // a bar's greatest height

const shades = (/** @type {ArrayLike<number>} */ pixels) => Float32Array.from(pixels, (x) => x / 255);
/** Squares of a side, as a path. @param {[x: number, y: number][]} corners @param {number} side */
const squares = (corners, side) => corners.map(([x, y]) => `M${x} ${y}h${side}v${side}h${-side}z`).join("");
/** The corner of the n-th of things of 6 × 6 with a line between them. @param {number} n @param {number} across @returns {[number, number]} */
const corner = (n, across) => [7 * (n % across), 7 * Math.floor(n / across)];
/** Which of things of 6 × 6 a pointer is on, and which of its cells. @param {PointerEvent} event @param {number} across @param {number} down */
function tile(event, across, down) {
  const at = pointed(/** @type {SVGSVGElement} */ (event.currentTarget), event);
  const [column, row] = [across, down].map((most, k) => Math.min(most - 1, Math.max(0, Math.floor(at[k] / 7))));
  const [x, y] = [column, row].map((n, k) => Math.min(5, Math.max(0, Math.floor(at[k] - 7 * n))));
  return { n: row * across + column, cell: 6 * y + x };
}

/** @param {HTMLElement} stage @param {Seven} data */
export async function mount(stage, { image, maps, fields, votes, longest, turns, lengths, drawing }) {
  const strongest = Math.max(...maps.map(Math.abs));
  const shade = (/** @type {number} */ x) => Math.sqrt(Math.abs(x) / strongest); // a few are far stronger than most
  let child = FIRST;
  /** @type {Read} */
  let read = "permute";

  const choose = (/** @type {number} */ to) => {
    child = to;
    show();
    writeState("through", { ...(child !== FIRST ? { child } : {}), ...(read !== "permute" ? { read } : {}) });
  };
  const reading = choice("Make vectors by", { permute: "permute", reshape: "reshape alone" }, read, (to) => {
    read = to;
    choose(child);
  });
  const step = (/** @type {string} */ name, /** @type {number} */ most, /** @type {number} */ stride) =>
    slider(name, { min: 0, max: most, step: 1, value: 0, says: String, moved: (to) =>
      choose(child + stride * (to - (Math.floor(child / stride) % (most + 1)))) });
  const steps = [step("type", 31, PLACES), step("row", 5, 6), step("column", 5, 1)];
  const reset = button("Reset", () => {
    read = "permute";
    choose(FIRST);
  });
  const said = el("p", { class: "said", "aria-live": "polite" });

  // The image and its windows.
  const seen = picture("the image, a seven");
  const windows = el("path", { class: "window" });
  // All 256 maps, in rows of two types, and the eight numbers among them.
  const stack = picture("256 maps of 6 × 6");
  const inStack = el("path", { class: "picked" });
  const tap = (/** @type {PointerEvent} */ event) => {
    const { n: channel, cell } = tile(event, MAPS, MAPS);
    choose(owner(channel * PLACES + cell, read));
  };
  // All 1152 children: 32 types of 6 × 6.
  const types = Array.from({ length: CHILDREN / PLACES }, (_, t) => corner(t, ACROSS));
  const lines = types.flatMap(([x, y]) => [1, 2, 3, 4, 5].map((n) => `M${x} ${y + n}h6M${x + n} ${y}v6`)).join("");
  const picked = el("path", { class: "picked" });
  const tapChild = (/** @type {PointerEvent} */ event) => {
    const { n: type, cell } = tile(event, ACROSS, 4);
    choose(type * PLACES + cell);
  };
  const mark = el("path", { class: "picked" });
  // The eight channels of its type, and the eight numbers.
  const channels = Array.from({ length: 8 }, () => ({
    cells: Array.from({ length: PLACES }, (_, n) => el("rect", { x: n % 6, y: Math.floor(n / 6), width: 1, height: 1 })),
    own: el("path", { class: "picked" }),
    name: el("span"),
  }));
  const numbers = channels.map((_, d) => ({ bar: el("rect", { x: 34 * d + 6, width: 22 }), text: el("text", { x: 34 * d + 17, y: 74 }) }));
  // The ten votes, each turned from up by its angle to the parent's output; the ten lengths; the drawing.
  const up = lengths.map(() => el("path", { class: "up", d: "M0 0V-26" }));
  const arrows = lengths.map(() => el("path", { class: "vote", d: "M0 0V-26M-4 -20L0 -26L4 -20" }));
  const long = lengths.map((_, j) => el("text", { class: "long", x: 40 * j + 20, y: 70 }));
  const none = el("text", { class: "none", x: 200, y: 30 });
  const voting = el("svg", { viewBox: "-8 0 416 128", role: "img" },
    ...arrows.map((arrow, j) => el("g", { transform: `translate(${40 * j + 20} 28)` }, up[j], el("circle", { r: 1.5 }), arrow)),
    none, ...long,
    ...lengths.flatMap((length, j) => [
      el("rect", { class: "length", x: 40 * j + 10, width: 20, y: 112 - 34 * length, height: 34 * length }),
      el("text", { x: 40 * j + 20, y: 126 }, String(j)),
    ]));
  const drawn = picture("its reconstruction");

  stage.append(
    el("div", { class: "bar" }, reading, reset),
    el("div", { class: "steps" }, ...steps),
    said,
    part("image", "what it sees", el("div", { class: "over" }, seen, el("svg", { viewBox: "0 0 28 28", "aria-hidden": true }, windows))),
    part("stack", "256 maps", el("div", { class: "over" }, stack, el("svg", { viewBox: "0 0 111 111", "aria-hidden": true, onpointerdown: tap }, inStack))),
    part("children", "1152 children u: tap one", el("svg", { viewBox: "-0.3 -0.3 55.6 27.6", role: "img", "aria-label": "32 types of 6 × 6 children", onpointerdown: tapChild }, el("path", { class: "type", d: squares(types, 6) }), el("path", { class: "lines", d: lines }), picked),
      el("svg", { class: "list", viewBox: "0 0 1152 60", role: "img", "aria-label": "its place in the list of 1152" }, el("rect", { y: 20, width: CHILDREN, height: 20 }), mark)),
    part("channels", "the eight channels of its type", ...channels.map(({ cells, own, name }) => el("div", {}, el("svg", { viewBox: "-0.2 -0.2 6.4 6.4", "aria-hidden": true }, el("path", { class: "frame", d: squares([[0, 0]], 6) }), ...cells, own), name))),
    part("numbers", "its eight numbers", el("svg", { viewBox: "0 0 272 80", "aria-hidden": true }, el("path", { class: "frame", d: "M0 32H272" }), ...numbers.flatMap(({ bar, text }) => [bar, text]))),
    part("votes", "its ten votes û, dashed where each parent’s v points; below, the lengths ‖v‖", voting),
    part("drawing", "decoded", drawn),
  );
  drawDigit(drawn, shades(drawing), 28);
  drawDigit(seen, shades(image), 28);
  drawDigit(stack, ...sheet(maps.map(shade), 6, MAPS));

  function show() {
    const own = members(child, read);
    const places = own.map(place);
    const type = Math.floor(child / PLACES);
    const [row, column] = [Math.floor((child % PLACES) / 6), child % 6];
    reading.value = read;
    [type, row, column].forEach((value, k) => (steps[k].value = value));

    const different = [...new Map(places.map(({ row, column }) => [6 * row + column, fields[row][column]])).values()];
    set(windows, { d: different.map(([top, bottom, left, right]) => `M${left} ${top}H${right + 1}V${bottom + 1}H${left}z`).join("") });
    set(inStack, { d: squares(places.map(({ channel, row, column }) => {
      const [x, y] = corner(channel, MAPS);
      return [x + column, y + row];
    }), 1) });
    const [x, y] = corner(type, ACROSS);
    set(picked, { d: squares([[x + column, y + row]], 1) });
    set(mark, { d: `M${child} 0v60` });

    channels.forEach(({ cells, own, name }, d) => {
      cells.forEach((cell, n) => set(cell, { "fill-opacity": shade(maps[(8 * type + d) * PLACES + n]).toFixed(2) }));
      set(own, { d: squares(places.filter(({ channel }) => channel === 8 * type + d).map(({ row, column }) => [column, row]), 1) });
      name.textContent = String(8 * type + d);
    });
    squash(Float32Array.from(own, (at) => maps[at]), 8).forEach((value, d) => {
      const height = BAR * Math.abs(value);
      set(numbers[d].bar, { y: value > 0 ? 32 - height : 32, height });
      numbers[d].text.textContent = number(value).replace("0.", "."); // eight stand close together
    });

    const whole = read === "permute";
    none.textContent = whole ? "" : "no votes: the network has no weights for these eight";
    const vote = lengths.map((_, j) => (longest * votes[10 * child + j]) / 255);
    arrows.forEach((arrow, j) => {
      const turn = (Math.acos(turns[10 * child + j] / 127) * 180) / Math.PI;
      const scale = vote[j] / Math.max(...vote); // of the child's longest
      set(arrow, { transform: `rotate(${turn.toFixed(1)}) scale(${scale.toFixed(2)})` });
      long[j].textContent = whole ? vote[j].toFixed(2) : "";
    });
    voting.classList.toggle("silent", !whole);
    const says = lengths.map((length, j) => `${j}: ${vote[j].toFixed(2)} and ${length.toFixed(2)}`).join(", ");
    set(voting, { "aria-label": whole ? `length of the vote for each digit, and of its capsule: ${says}` : none.textContent });

    const [top, bottom, left, right] = fields[row][column];
    said.textContent = whole
      ? `Child ${child} = 36 · ${type} + 6 · ${row} + ${column}: one place, in channels ${8 * type} to ${8 * type + 7}. It sees rows ${top} to ${bottom} and columns ${left} to ${right}.`
      : `No error, but these eight stand at ${different.length} places, in ${new Set(places.map(({ channel }) => channel)).size === 1 ? "one channel" : "two channels"}. They do not describe one place.`;
  }

  const asked = readState("through");
  if (/^\d+$/.test(asked.child ?? "") && Number(asked.child) < CHILDREN) child = Number(asked.child);
  if (asked.read === "reshape") read = "reshape";
  show();
}
