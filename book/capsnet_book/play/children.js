// @ts-check
// The 1,152 children of a real digit at their 6 × 6 places: how much each gives to a parent.

import { bars } from "./bars.js";
import { dynamicRouting, lengths } from "./capsules.js";
import { button, digitChoice, drawDigit, el, picture, readState, set, slider, writeState } from "./kit.js";

const NAME = "children";
const [GRID, TYPES, ACROSS] = [6, 32, 6]; // places a side, types at each, drawn in rows of six
const CELL = 8; // a child's square in the drawing, in pixels
const SIDE = ACROSS * CELL + 8; // a place's square
const SHAPE = { children: GRID * GRID * TYPES, parents: 10, size: 16 };
const ITERATIONS = 8;
const WINDOW = 17; // pixels of the image that a child sees; its neighbour's are two further on

/** Where a child's square is in the drawing: types before rows before columns, as `PrimaryCapsules` has them.
 * @param {number} child
 */
function square(child) {
  const [type, place] = [Math.floor(child / (GRID * GRID)), child % (GRID * GRID)];
  const [row, column] = [Math.floor(place / GRID), place % GRID];
  return { type, row, column,
    x: column * SIDE + (type % ACROSS) * CELL, y: row * SIDE + Math.floor(type / ACROSS) * CELL };
}

/**
 * @param {HTMLElement} stage
 * @param {{ votes: Float32Array, image: Uint8Array, label: number }} data  û, [1152, 10, 16]; the digit; its class
 */
export async function mount(stage, { votes, image, label }) {
  const steps = dynamicRouting(votes, SHAPE, ITERATIONS);
  const state = readState(NAME);
  const whole = (/** @type {string} */ key, /** @type {number} */ end, /** @type {number} */ usual) => {
    const asked = Number(state[key] ?? NaN);
    return Number.isInteger(asked) && asked >= 0 && asked < end ? asked : usual;
  };
  let r = whole("r", ITERATIONS, 2);
  let parent = whole("to", 10, label);
  let child = whole("child", SHAPE.children, decided());

  const canvas = el("canvas", { class: "map", role: "img", width: GRID * SIDE, height: GRID * SIDE });
  canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top].map((p) => (p * canvas.width) / box.width);
    const [column, row] = [x, y].map((p) => Math.min(GRID - 1, Math.floor(p / SIDE)));
    const within = (/** @type {number} */ p, /** @type {number} */ n) => Math.max(0, Math.min(n - 1, Math.floor(p / CELL)));
    const type = within(y - row * SIDE, ACROSS) * ACROSS + within(x - column * SIDE, ACROSS);
    if (type >= TYPES) return; // the last four squares of a place are empty
    child = (type * GRID + row) * GRID + column;
    show();
  });
  const digit = picture(`a test image of a ${label}`);
  drawDigit(digit, Float32Array.from(image, (x) => x / 255));
  const frame = el("div", { class: "window" });

  const parents = bars("the lengths of the ten parents");
  const gives = Array.from({ length: 10 }, (_, k) => {
    const bar = el("i");
    const text = el("span");
    return { row: el("li", {}, el("span", { class: "track", "aria-hidden": true }, bar), text, el("span", {}, `to ${k}`)),
      show(/** @type {number} */ value) {
        bar.style.height = `${100 * value}%`;
        text.textContent = value.toFixed(2);
      } };
  });
  const says = el("p", { class: "says", "aria-live": "polite" });
  const clock = slider("iteration", { min: 1, max: ITERATIONS, step: 1, value: r + 1, says: String,
    moved: (to) => ((r = to - 1), show()) });
  const which = slider("child", { min: 0, max: SHAPE.children - 1, step: 1, value: child, says: (x) => String(x + 1),
    moved: (to) => ((child = to), show()) });
  const to = digitChoice("given to", parent, (k) => ((parent = k), show()));

  const reset = button("Reset", () => {
    clock.value = (r = 2) + 1;
    to.value = String((parent = label));
    child = decided();
    show();
  });

  /** The child that gives most to the parent. */
  function decided() {
    let most = 0;
    for (let i = 0; i < SHAPE.children; i++) if (steps[r].c[i * 10 + parent] > steps[r].c[most * 10 + parent]) most = i;
    return most;
  }

  function show() {
    const { c, v } = steps[r];
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const style = getComputedStyle(stage.isConnected ? stage : document.body); // it is shown before it is in the page
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = style.getPropertyValue("--q-c");
    let firm = 0;
    for (let i = 0; i < SHAPE.children; i++) {
      const share = c[i * 10 + parent];
      if (share > 0.2) firm++;
      const { x, y } = square(i);
      context.globalAlpha = Math.min(1, share * 2.5); // a tenth is a quarter as dense as 0.4 or more
      context.fillRect(x, y, CELL - 1, CELL - 1);
    }
    const here = square(child);
    context.globalAlpha = 1;
    context.strokeStyle = style.color;
    context.lineWidth = 2;
    context.strokeRect(here.x - 1.5, here.y - 1.5, CELL + 2, CELL + 2);
    Object.assign(frame.style, { left: `${(200 * here.column) / 28}%`, top: `${(200 * here.row) / 28}%`,
      width: `${(100 * WINDOW) / 28}%`, height: `${(100 * WINDOW) / 28}%` });
    parents.show(lengths(v, 16));
    gives.forEach((each, k) => each.show(c[child * 10 + k]));
    which.value = child;
    says.textContent = `Each square is a child, 32 at each of 6 × 6 places. The stronger its colour, the more it gives to ${parent}; ${firm} of 1152 give it more than 0.2.`;
    set(canvas, { "aria-label": `the coupling coefficients of all children for ${parent}, at 6 × 6 places` });
    const usual = r === 2 && parent === label && child === decided();
    writeState(NAME, usual ? {} : { r, to: parent, child });
  }
  new MutationObserver(show).observe(document.documentElement, { attributeFilter: ["data-theme"] });

  stage.append(
    clock,
    el("div", { class: "sides" },
      el("div", {}, el("p", {}, "What the child sees"), el("div", { class: "seen" }, digit, frame),
        el("p", {}, "Lengths of the parents"), parents.list),
      el("div", {}, canvas, says)),
    to,
    el("div", { class: "bar" }, which, button("The most decided", () => ((child = decided()), show())), reset),
    el("ol", { class: "gives", "aria-label": "the child’s coupling coefficient for each parent" }, ...gives.map(({ row }) => row)),
  );
  show();
}
