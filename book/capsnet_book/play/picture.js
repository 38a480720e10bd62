// @ts-check
// A picture of a digit as MNIST would have it: the main path of capsnet_lab/pictures.py again.

import { changed, components, cut, extended, highest, highestOf, lowest, medians, plane, quantile, resized, scaled, twoMeans, withMargin } from "./plane.js";

/** @typedef {import("./plane.js").Plane} Plane */
/** @typedef {import("./plane.js").Box} Box */
/** @typedef {import("./plane.js").Component} Component */
/** @typedef {{ box: Box, ink: Plane, scaled: Plane, centred: Plane }} Digit  where it is in the picture, and its stages */

// Names and numbers are those of pictures.py, which says what they mean.
export const WORKING_SIZE = 320;
export const FAINT_INK = 10;
export const MIN_CONTRAST = 8;
export const MIN_PHOTO_CONTRAST = 32;
export const NOISE_FACTOR = 5;
export const DIGIT_BOX = 20 / 28;
export const MIN_STROKE = 1.5 / 20;
export const SHARP_RISE = 0.8 * 255;
export const SOFT_EDGE = 0.25;
export const MAX_COMPONENTS = 40;
export const LARGE_SIDE = 0.4;
export const MAX_LINE_WIDTH = 0.15;
export const MIN_LINE_LENGTH = 0.8;
export const MIN_RECTANGLE_FILL = 0.84;
export const MAX_TILT = 0.08;
export const SIMILAR_SIZE = 0.55;
export const MAX_FLOATING_GAP = 0.15;
export const MIN_INNER_AREA = 0.3;
export const MAX_SPECK_AREA = 0.1;

const SIDE = 28;
const BOX = Math.round(SIDE * DIGIT_BOX);

/** There is no digit in the picture, or not one alone; `ink` is what was found. */
export class Refused extends Error {
  /** @param {string} message @param {Plane} [ink] */
  constructor(message, ink) {
    super(message);
    this.ink = ink;
  }
}
const blank = () => new Refused("No digit found: the picture is blank.");

/** The picture in the grey, or in the one of its colours, in which ink stands out.
 * @param {{ data: Uint8ClampedArray, width: number, height: number }} picture  red, green, blue and opacity, a byte each
 */
export function toGrey({ data, width, height }) {
  let [light, opacity] = [0, 0];
  for (let k = 0; k < data.length; k += 4) {
    opacity += data[k + 3];
    light += (data[k + 3] * (data[k] + data[k + 1] + data[k + 2])) / 3;
  }
  const ground = light < 128 * opacity ? 255 : 0; // behind what is transparent, so that the rest stands out
  const ratio = Math.min(1, WORKING_SIZE / Math.max(width, height));
  const colours = [0, 1, 2].map((colour) => {
    const whole = plane(width, height, (x, y) => {
      const k = 4 * (y * width + x);
      return ground + (data[k + 3] / 255) * (data[k + colour] - ground);
    });
    return changed(scaled(whole, ratio), Math.round);
  });
  const [red, green, blue] = colours.map(({ levels }) => levels);
  const grey = changed(colours[0], (_, k) => Math.round(0.299 * red[k] + 0.587 * green[k] + 0.114 * blue[k]));
  // Yellow ink on white is nearly white in grey, and black in blue.
  const contrasts = colours.map(localContrast);
  const most = Math.max(...contrasts);
  return most > 2 * localContrast(grey) ? colours[contrasts.indexOf(most)] : grey;
}

/** @param {Plane} grey  small enough for a median over a window that is wider than a stroke */
const small = (grey) => scaled(grey, Math.min(1, 64 / Math.max(grey.width, grey.height)));
/** @param {Plane} grey */
const halfWindow = ({ width, height }) => Math.max(1, Math.floor(Math.max(width, height) / 6));

/** How far the levels are at most from their median. @param {Plane} grey */
function localContrast(grey) {
  const few = small(grey);
  const median = medians(few, halfWindow(few)).levels;
  return highestOf(changed(few, (level, k) => Math.abs(level - median[k])));
}

/** MNIST's recipe, stage by stage: the ink of a digit in a box, its centre of mass at the centre.
 * @param {Plane} grey
 * @returns {Digit}
 */
export function digit(grey) {
  let { ink, box } = cropped(figure(grey));
  const longest = Math.max(ink.width, ink.height);
  const pixel = Math.floor(longest / BOX) + 1; // spans one of the box
  const darkest = lowest(ink, pixel).levels;
  if (longest > BOX && highestOf(changed(highest(ink, pixel), (x, k) => x - darkest[k])) < SHARP_RISE) {
    // Blurred, or enlarged from few pixels: with all of its soft edge a stroke is too broad.
    const strongest = highest(ink, Math.floor(longest / 16) * 2 + 1).levels;
    ink = cropped(atFullRange(changed(ink, (x, k) => Math.max(0, x - SOFT_EDGE * strongest[k])))).ink;
  }
  const solid = changed(withMargin(ink, 1), (x) => Number(x > 128));
  const count = (/** @type {Plane} */ { levels }) => levels.reduce((a, b) => a + b, 0);
  const edge = count(solid) - count(lowest(solid, 3)); // of both sides
  const thickness = (2 * count(solid)) / Math.max(1, edge);
  const radius = Math.round((MIN_STROKE * Math.max(ink.width, ink.height) - thickness) / 2);
  if (radius >= 1) ink = highest(withMargin(ink, radius), 2 * radius + 1); // a pen thinner than MNIST's
  const ratio = BOX / Math.max(ink.width, ink.height);
  const boxed = atFullRange(ratio >= 1 && ratio < 1.08 ? ink : scaled(ink, ratio)); // 1 of 20 is not worth the blur
  return { box, ink, scaled: boxed, centred: centred(boxed) };
}

/** A digit in an image of MNIST, where a coordinate of its centre of mass lies in [13.5, 14.5).
 * @param {Plane} ink
 */
function centred(ink) {
  let [mass, massX, massY] = [0, 0, 0];
  ink.levels.forEach((level, k) => {
    mass += level;
    massX += level * (k % ink.width);
    massY += level * Math.floor(k / ink.width);
  });
  const place = (/** @type {number} */ middle, /** @type {number} */ length) =>
    Math.min(Math.max(0, Math.ceil(SIDE / 2 - 0.5 - middle)), SIDE - length);
  const [left, top] = [place(massX / mass, ink.width), place(massY / mass, ink.height)];
  return changed(cut(ink, { left: -left, top: -top, width: SIDE, height: SIDE }), Math.round);
}

/** The ink of the one digit, from 0 to 255, without specks, frames, and what is cut off.
 * @param {Plane} grey @param {boolean} inside  it is a sheet or a card, which holds no other
 * @returns {Plane}
 */
function figure(grey, inside = false) {
  const { width, height } = grey;
  /** @param {Box} box  what is in it is looked at as another picture */
  const lookInto = ({ left, top, ...size }) =>
    cut(figure(cut(grey, { left, top, ...size }), true), { left: -left, top: -top, width, height });
  const drawn = drawnInk(grey);
  const sheet = drawn || inside ? undefined : sheetOnDesk(grey);
  if (sheet) return lookInto(sheet);
  const ink = drawn ? withoutLines(drawn) : photographedInk(grey);
  const { found: all, labels } = components(ink, FAINT_INK);
  const some = all.slice(0, MAX_COMPONENTS);
  const card = inside ? undefined : some.find((part) => isCard(part, labels, grey));
  if (card) return lookInto(card.box);
  const isLine = (/** @type {Component} */ { box }) => box.width > LARGE_SIDE * width && box.height < MAX_LINE_WIDTH * box.width;
  const found = some.filter((part) => !isLine(part) && !isFrame(part, labels, grey));
  let figures = found.filter((part) => !part.atBorder);
  // A digit may reach over the border: then it is far larger than the specks inside.
  if (!figures.length || figures[0].area < MIN_INNER_AREA * found[0].area) figures = found;
  figures = figures.filter((part) => part.area > MAX_SPECK_AREA * figures[0].area);
  if (!figures.length) throw new Refused("No digit found: there are only lines, and what the border cuts off.", ink);
  const kept = new Set([0, ...figures.map((part) => part.label)]);
  const left = changed(ink, (level, k) => (kept.has(labels[k]) ? level : 0));
  const count = sideBySide(figures, ink);
  if (count > 1) throw new Refused(`${count} figures found where one digit was expected.`, left);
  return atFullRange(left);
}

/** Whether a part is nearly its bounding box, though ink is cut from it; it may be tilted a little.
 * @param {Component} part @param {Int32Array} labels @param {Plane} whole
 */
function isCard({ label, area, box }, labels, whole) {
  if (!isLarge(box, whole) || area <= 0.5 * box.width * box.height) return false;
  if (box.width === whole.width && box.height === whole.height) return false;
  const around = plane(box.width, box.height, (x, y) => Number(labels[(y + box.top) * whole.width + x + box.left] !== label));
  const filled = components(around, 0).found.reduce((sum, hole) => sum + (hole.atBorder ? 0 : hole.area), area);
  const [x, y] = [Math.round(MAX_TILT * box.width), Math.round(MAX_TILT * box.height)];
  const corners = [[x, y], [box.width - 1 - x, y], [x, box.height - 1 - y], [box.width - 1 - x, box.height - 1 - y]];
  return filled > MIN_RECTANGLE_FILL * box.width * box.height && corners.every(([x, y]) => !around.levels[y * box.width + x]);
}

/** Whether there is nothing of a large part but near its box. @param {Component} part @param {Int32Array} labels @param {Plane} whole */
function isFrame({ label, box }, labels, whole) {
  const [across, down] = [Math.round(box.width / 10), Math.round(box.height / 10)];
  for (let y = box.top + down; y < box.top + box.height - down; y++) {
    for (let x = box.left + across; x < box.left + box.width - across; x++) {
      if (labels[y * whole.width + x] === label) return false;
    }
  }
  return isLarge(box, whole);
}

/** @param {Box} box @param {Plane} whole */
const isLarge = (box, { width, height }) => Math.min(box.width, box.height) > LARGE_SIDE * Math.min(width, height);

/** The place of a sheet that is seen whole, lighter or darker than what it lies on. @param {Plane} grey */
function sheetOnDesk(grey) {
  const [low, high] = twoMeans(grey.levels);
  if (high - low < MIN_PHOTO_CONTRAST) return;
  for (const sign of [1, -1]) {
    const { found, labels } = components(changed(grey, (level) => Number(sign * (level - (low + high) / 2) > 0)), 0);
    const seen = border({ ...grey, levels: Float32Array.from(labels, (label) => Number(label === found[0].label)) });
    const whole = seen.filter(Boolean).length < 0.05 * seen.length;
    if (whole && isCard(found[0], labels, grey)) return found[0].box;
  }
}

/** How many figures there are: parts of similar size that are apart, across or down.
 * @param {Component[]} figures @param {Plane} ink
 */
function sideBySide(figures, { width, height }) {
  const longest = Math.max(...figures.map(({ box }) => Math.max(box.width, box.height)));
  const boxes = figures.map(({ box }) => box).filter((box) => Math.max(box.width, box.height) > SIMILAR_SIZE * longest);
  /** @param {number} length @param {(box: Box) => [from: number, length: number]} side @param {number} gap */
  const runs = (length, side, gap) => {
    const taken = new Uint8Array(length + gap);
    for (const [from, long] of boxes.map(side)) taken.fill(1, from, from + long + gap);
    return taken.filter((each, k) => each && !taken[k - 1]).length;
  };
  return Math.max(runs(height, (box) => [box.top, box.height], Math.round(MAX_FLOATING_GAP * longest)), runs(width, (box) => [box.left, box.width], 0));
}

/** The ink on a ground of one level, with a peak of 255, if there is such a ground.
 * @param {Plane} grey
 */
function drawnInk(grey) {
  const around = border(grey);
  const ground = quantile(around, 0.5);
  if (around.filter((level) => level === ground).length <= around.length / 2) return; // noise or uneven light is on it
  const difference = changed(grey, (level) => level - ground);
  const sign = Math.sign(difference.levels.reduce((a, b) => a + b, 0));
  const ink = changed(difference, (level) => Math.max(0, level * sign));
  const peak = highestOf(ink);
  if (peak < MIN_CONTRAST) throw blank();
  // Soft ink fades near to strong ink. The light of a photograph fades along the border, also where
  // none is near, and is the ground only where it is too bright for the camera.
  const nearby = highest(changed(difference, Math.abs), Math.floor(Math.max(grey.width, grey.height) / 8) * 2 + 1).levels;
  const fading = border(changed(difference, (level, k) => Number(level !== 0 && nearby[k] < 0.2 * peak)));
  if (fading.reduce((a, b) => a + b, 0) < 0.05 * fading.length) return atFullRange(ink);
}

/** The ink on paper with uneven light, shadows and noise: 0 on paper, 255 on full strokes.
 * @param {Plane} grey
 */
function photographedInk(grey) {
  const few = small(grey);
  const half = halfWindow(few);
  // A median over the window is paper, also in a shadow; the ink is on one side of it.
  const median = medians(few, half);
  const darkInk = few.levels.reduce((sum, level, k) => sum + (level - median.levels[k]) ** 3, 0) < 0;
  if (highestOf(contrast(few, median, darkInk)) < MIN_PHOTO_CONTRAST) throw blank();
  // A morphological opening (for dark ink: closing) removes the ink, which is narrower than the
  // window, and leaves gradients and the edges of shadows where they are.
  const [first, second] = darkInk ? [highest, lowest] : [lowest, highest];
  const withoutInk = second(first(extended(few, 2 * half), 2 * half + 1), 2 * half + 1);
  const paper = resized(cut(withoutInk, { left: 2 * half, top: 2 * half, width: few.width, height: few.height }), grey.width, grey.height, "bilinear");
  const stands = contrast(grey, paper, darkInk);
  // Paper's level and the standard deviation on it, from the lowest fifth, as for normal noise.
  const [lowestOf20, base] = [0.05, 0.2].map((part) => quantile(stands.levels, part));
  const clear = Math.max(MIN_CONTRAST, NOISE_FACTOR * 1.25 * (base - lowestOf20));
  const ink = changed(stands, (level) => level - base);
  const strong = ink.levels.filter((level) => level > clear);
  if (strong.length < 2) throw blank();
  const full = twoMeans(strong)[1]; // of strokes, rather than of their edges
  const low = Math.max(clear, 0.3 * full);
  const clipped = changed(ink, (level) => 255 * Math.max(0, Math.min(1, (level - low) / Math.max(1, 0.9 * full - low))));
  const near = highest(changed(clipped, (level) => Number(level > 128)), 9).levels;
  return changed(clipped, (level, k) => (near[k] ? level : 0));
}

/** How far the figure stands out of its ground on the one side, from 0 to 255, or less than 0.
 * @param {Plane} grey @param {Plane} ground @param {boolean} darker
 */
function contrast(grey, { levels: ground }, darker) {
  if (!darker) return changed(grey, (level, k) => level - ground[k]);
  return changed(grey, (level, k) => ((ground[k] - level) * 255) / Math.max(ground[k], 32)); // it absorbs a part of the light
}

/** What is left of a mask when windows that do not fit into it are taken away. @param {Plane} mask @param {number} width @param {number} height */
const opened = (mask, width, height) =>
  withMargin(highest(lowest(withMargin(mask, 1), width, height), width, height), -1); // outside there is nothing

/** The ink without straight thin lines along the picture's sides: of a form, or squared paper. Where a figure
 * crosses a line, what joins two of its parts stays.
 * @param {Plane} ink
 */
function withoutLines(ink) {
  const mask = changed(ink, (level) => Number(level > FAINT_INK));
  for (const across of [true, false]) {
    /** @param {number} along @param {number} over @returns {[width: number, height: number]} */
    const window = (along, over) => (across ? [along, over] : [over, along]);
    const [length, other] = window(ink.width, ink.height);
    const thin = window(1, Math.max(2, Math.floor(other / 20)));
    const long = opened(mask, ...window(Math.max(2, Math.round(MIN_LINE_LENGTH * length)), 1));
    const thick = opened(long, ...thin).levels;
    const lines = changed(long, (inLine, k) => inLine && 1 - thick[k]);
    const rest = changed(ink, (level, k) => Number(level > FAINT_INK && !lines.levels[k]));
    const joined = lowest(highest(rest, ...thin), ...thin).levels;
    ink = changed(ink, (level, k) => (lines.levels[k] && !joined[k] ? 0 : level));
  }
  return ink;
}

/** Scaled to a peak of 255; MNIST's own peaks of 250 and more stay. @param {Plane} ink */
function atFullRange(ink) {
  const peak = highestOf(ink);
  return peak >= 250 ? ink : changed(ink, (level) => (level * 255) / peak);
}

/** @param {Plane} grey */
const border = ({ levels, width, height }) =>
  levels.filter((_, k) => k < width || k >= width * (height - 1) || k % width === 0 || k % width === width - 1);

/** The ink alone, and where it was. @param {Plane} ink */
function cropped(ink) {
  const boxes = components(ink, FAINT_INK).found.map(({ box }) => box);
  const [left, top] = [Math.min(...boxes.map((box) => box.left)), Math.min(...boxes.map((box) => box.top))];
  const right = Math.max(...boxes.map((box) => box.left + box.width));
  const bottom = Math.max(...boxes.map((box) => box.top + box.height));
  const box = { left, top, width: right - left, height: bottom - top };
  return { ink: cut(ink, box), box };
}
