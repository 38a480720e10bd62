// @ts-check
// A pad to draw a digit on, and the digit as MNIST would have it: in its box, its mass in the middle.

import { drawDigit, el, keep, kept } from "./kit.js";

export const SIDE = 28;
const BOX = 20; // pixels: the longer side of a digit in MNIST
const MIDDLE = 14; // where MNIST has the centre of mass, counting pixels from 0
const [CORE, EDGE] = [0.7, 1]; // pixels: half of a stroke's white core, and its soft edge
const STROKE = 2 * CORE + EDGE;

const APART = 0.5; // pixels between the points of a stroke, at least

// Strokes in the page's address: how many characters follow, as an address may come cut short; then strokes
// with dots before them, three characters a point, which is one of FINE × FINE.
const FINE = 512;
const SYMBOLS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const STROKES = /^(\d+)((?:\.(?:[\w-]{3})+)+)$/;

/** @typedef {[x: number, y: number]} Point  in pixels; whole numbers are their middles */

/** @param {Point[][]} strokes */
export function written(strokes) {
  const step = (/** @type {number} */ x) => Math.max(0, Math.min(FINE - 1, Math.round(((x + 0.5) * FINE) / SIDE)));
  const point = (/** @type {Point} */ [x, y]) => {
    const n = FINE * step(x) + step(y);
    return SYMBOLS[n >> 12] + SYMBOLS[(n >> 6) % 64] + SYMBOLS[n % 64];
  };
  const text = strokes.map((stroke) => `.${stroke.map(point).join("")}`).join("");
  return text && `${text.length}${text}`;
}

/** What `written` wrote; no strokes if it did not write this, or if some of it is missing.
 * @param {string} text
 * @returns {Point[][]}
 */
export function strokesOf(text) {
  const [, count, points] = STROKES.exec(text) ?? [];
  if (!points || Number(count) !== points.length) return [];
  return points.slice(1).split(".").map((stroke) =>
    Array.from(stroke.match(/.{3}/g) ?? [], (three) => {
      const n = [...three].reduce((sum, symbol) => 64 * sum + SYMBOLS.indexOf(symbol), 0);
      return [(Math.floor(n / FINE) * SIDE) / FINE - 0.5, ((n % FINE) * SIDE) / FINE - 0.5];
    }),
  );
}

/** What strokes leave on a ground: lines of a soft brush, each point of them moved by `at`.
 * @param {Point[][]} strokes
 * @param {(point: Point) => Point} [at]
 * @param {Float32Array} [ground]
 */
export function ink(strokes, at = (point) => point, ground = new Float32Array(SIDE * SIDE)) {
  const pixels = ground.slice();
  const reach = CORE + EDGE;
  for (const stroke of strokes) {
    const points = stroke.map(at);
    points.forEach(([x1, y1], n) => {
      const [x0, y0] = points[Math.max(0, n - 1)]; // from the point before; the first is a dot
      const [dx, dy] = [x1 - x0, y1 - y0];
      const [left, right] = [Math.min(x0, x1), Math.max(x0, x1)];
      const [top, bottom] = [Math.min(y0, y1), Math.max(y0, y1)];
      for (let y = Math.max(0, Math.ceil(top - reach)); y <= Math.min(SIDE - 1, bottom + reach); y++)
        for (let x = Math.max(0, Math.ceil(left - reach)); x <= Math.min(SIDE - 1, right + reach); x++) {
          const along = Math.min(1, Math.max(0, ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy || 1)));
          const far = Math.hypot(x - x0 - along * dx, y - y0 - along * dy);
          const k = y * SIDE + x;
          pixels[k] = Math.max(pixels[k], Math.min(1, (reach - far) / EDGE));
        }
    });
  }
  return pixels;
}

/** Strokes as MNIST would have them: as large as its box, the centre of their mass in the middle. The
 * brush stays as it is, so that a small digit gets no thicker when it grows.
 * @param {Point[][]} strokes
 */
export function centred(strokes) {
  if (!strokes.length) return new Float32Array(SIDE * SIDE);
  const [xs, ys] = [0, 1].map((axis) => strokes.flatMap((stroke) => stroke.map((point) => point[axis])));
  const [left, top, right, bottom] = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  const scale = Math.min(3, (BOX - STROKE) / Math.max(right - left, bottom - top, 1)); // a dot stays one
  const middle = (SIDE - 1) / 2;
  /** @param {number} x @param {number} y @returns {(point: Point) => Point} */
  const placed = (x, y) => (point) => [
    middle + x + scale * (point[0] - (left + right) / 2),
    middle + y + scale * (point[1] - (top + bottom) / 2),
  ];
  const pixels = ink(strokes, placed(0, 0));
  let [mass, massX, massY] = [0, 0, 0];
  pixels.forEach((p, k) => {
    mass += p;
    massX += p * (k % SIDE);
    massY += p * Math.floor(k / SIDE);
  });
  return ink(strokes, placed(MIDDLE - massX / mass, MIDDLE - massY / mass));
}

const KEPT = "digit"; // the name under which the browser keeps what was drawn last

/** What the reader drew last, on whatever page; "" if nothing, or if the browser keeps nothing. */
export const lastDrawn = () => (strokesOf(kept(KEPT)).length ? kept(KEPT) : "");

/** The pad. `drawn` hears of each change by hand, with the image for the network.
 * @param {(image: Float32Array) => void} drawn
 */
export function pad(drawn) {
  const canvas = el("canvas", { class: "digit pad", role: "img" });
  /** @type {Point[][]} */
  let strokes = [];
  let ground = /** @type {Float32Array} */ (new Float32Array(SIDE * SIDE)); // a digit that was taken
  let taken = false;

  const image = () => (taken ? ground : centred(strokes));
  const paint = () => drawDigit(canvas, ink(strokes, undefined, ground));
  /** @param {PointerEvent} event @returns {Point} */
  const place = ({ clientX, clientY }) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const exact = /** @type {Point} */ ([((clientX - left) / width) * SIDE - 0.5, ((clientY - top) / height) * SIDE - 0.5]);
    return strokesOf(written([[exact]]))[0][0]; // as the address keeps it, so that a reload changes nothing
  };
  canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
    if (!event.isPrimary || event.button) return;
    canvas.setPointerCapture(event.pointerId);
    if (taken) [taken, ground] = [false, new Float32Array(SIDE * SIDE)]; // a digit of one's own
    strokes.push([place(event)]);
    paint();
    drawn(image());
  });
  canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
    if (!event.isPrimary || !canvas.hasPointerCapture(event.pointerId)) return;
    const every = event.getCoalescedEvents();
    const stroke = strokes[strokes.length - 1];
    for (const point of (every.length ? every : [event]).map(place)) {
      const [x, y] = stroke[stroke.length - 1];
      if (Math.hypot(point[0] - x, point[1] - y) >= APART) stroke.push(point);
    }
    paint();
    drawn(image());
  });
  canvas.addEventListener("pointerup", () => strokes.length && keep(KEPT, written(strokes)));
  return {
    canvas,
    image,
    /** What was drawn by hand, for the page's address. */
    written: () => written(strokes),
    /** Draw what `written` wrote; if it did not write this, nothing happens. @param {string} text @returns {boolean} */
    draw(text) {
      const found = strokesOf(text);
      if (text && !found.length) return false;
      this.take();
      strokes = found;
      paint();
      return true;
    },
    /** A digit, as it is, or with none an empty pad.
     * @param {Float32Array} [digit]
     * @param {string} [name]
     */
    take(digit, name = "an empty pad") {
      [strokes, taken, ground] = [[], Boolean(digit), digit ?? new Float32Array(SIDE * SIDE)];
      canvas.setAttribute("aria-label", `The pad: ${name}`);
      paint();
    },
  };
}
