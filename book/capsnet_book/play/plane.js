// @ts-check
// Levels of grey, and what is done with them to find a digit: Pillow's resize, a few filters of
// scipy.ndimage, and the connected components.

/** @typedef {{ levels: Float32Array, width: number, height: number }} Plane  levels from 0 to 255 */
/** @typedef {{ left: number, top: number, width: number, height: number }} Box */
/** @typedef {{ label: number, area: number, box: Box, atBorder: boolean }} Component */
/** @typedef {{ reach: number, weight: (x: number) => number }} Kernel  in pixels of the larger of the two planes */

/** @param {number} width @param {number} height @param {(x: number, y: number) => number} level @returns {Plane} */
export function plane(width, height, level) {
  const levels = new Float32Array(width * height);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) levels[y * width + x] = level(x, y);
  return { levels, width, height };
}

/** @param {Plane} from @param {(level: number, k: number) => number} change @returns {Plane} */
export const changed = ({ levels, width, height }, change) => ({ levels: levels.map(change), width, height });

/** @param {Plane} from */
export const highestOf = ({ levels }) => levels.reduce((most, x) => Math.max(most, x), -Infinity);

/** A part of a plane; where it reaches beyond the plane it is 0.
 * @param {Plane} from @param {Box} box
 */
export const cut = (from, { left, top, width, height }) =>
  plane(width, height, (x, y) => {
    const inside = x + left >= 0 && x + left < from.width && y + top >= 0 && y + top < from.height;
    return inside ? from.levels[(y + top) * from.width + x + left] : 0;
  });

/** A plane with a margin of zeros. @param {Plane} from @param {number} by */
export const withMargin = (from, by) =>
  cut(from, { left: -by, top: -by, width: from.width + 2 * by, height: from.height + 2 * by });

// What is done along rows and along columns alike is done along rows, and the result is turned over
// its diagonal; twice is both.

/** @param {Plane} from @param {number} width  of the rows that `row` makes
 * @param {(row: Float32Array, x: number) => number} level  of each new row at x
 * @returns {Plane}
 */
const alongRows = ({ levels, width: old, height }, width, level) => {
  const rows = Array.from({ length: height }, (_, y) => levels.subarray(y * old, (y + 1) * old));
  return plane(height, width, (y, x) => level(rows[y], x));
};
/** @param {Plane} from @param {number} width @param {number} height @param {(from: Plane, length: number) => Plane} along */
const bothWays = (from, width, height, along) => along(along(from, width), height);

/** As Pillow: each pixel is an average of those that lie where it does. @type {Record<"box" | "bilinear" | "bicubic", Kernel>} */
const KERNELS = {
  box: { reach: 0.5, weight: (x) => Number(x > -0.5 && x <= 0.5) },
  bilinear: { reach: 1, weight: (x) => Math.max(0, 1 - Math.abs(x)) },
  bicubic: { reach: 2, weight: (x) => {
    const far = Math.abs(x);
    if (far < 1) return (1.5 * far - 2.5) * far * far + 1;
    return far < 2 ? ((-0.5 * far + 2.5) * far - 4) * far + 2 : 0;
  } },
};

/** @param {Plane} from @param {number} width @param {number} height @param {keyof typeof KERNELS} kernel */
export function resized(from, width, height, kernel) {
  const { reach, weight } = KERNELS[kernel];
  return bothWays(from, width, height, (part, length) => {
    const scale = part.width / length;
    const wide = Math.max(1, scale);
    const places = Array.from({ length }, (_, n) => {
      const middle = (n + 0.5) * scale;
      const start = Math.max(0, Math.floor(middle - reach * wide + 0.5));
      const end = Math.min(part.width, Math.floor(middle + reach * wide + 0.5));
      const weights = Array.from({ length: end - start }, (_, k) => weight((start + k - middle + 0.5) / wide));
      const sum = weights.reduce((a, b) => a + b, 0);
      return { start, weights: weights.map((each) => each / sum) };
    });
    return alongRows(part, length, (row, n) => {
      const { start, weights } = places[n];
      return weights.reduce((sum, each, k) => sum + each * row[start + k], 0);
    });
  });
}

/** Averaged down, or interpolated up. @param {Plane} from @param {number} ratio */
export function scaled(from, ratio) {
  const [width, height] = [from.width, from.height].map((side) => Math.max(1, Math.round(side * ratio)));
  const result = resized(from, width, height, ratio < 1 ? "box" : "bicubic");
  return changed(result, (x) => Math.max(0, Math.min(255, x)));
}

/** The level that wins in a window about each pixel of a row, turned over the diagonal. Of the pixels that the
 * window passed, those that a later one beats are forgotten.
 * @param {Plane} from @param {number} before @param {number} after  how far the window reaches @param {(a: number, b: number) => boolean} beats
 * @returns {Plane}
 */
function winners({ levels, width, height }, before, after, beats) {
  const result = new Float32Array(levels.length);
  const waiting = new Int32Array(width);
  for (let y = 0; y < height; y++) {
    let [first, end] = [0, 0];
    for (let x = -after; x < width; x++) {
      const next = x + after;
      if (next < width) {
        while (end > first && !beats(levels[y * width + waiting[end - 1]], levels[y * width + next])) end--;
        waiting[end++] = next;
      }
      if (x < 0) continue;
      while (waiting[first] < x - before) first++;
      result[x * height + y] = levels[y * width + waiting[first]];
    }
  }
  return { levels: result, width: height, height: width };
}

/** The greatest level in a window of so many pixels about each pixel. @param {Plane} from @param {number} width @param {number} [height] */
export const highest = (from, width, height = width) =>
  [width, height].reduce((part, size) => winners(part, Math.ceil(size / 2) - 1, Math.floor(size / 2), (a, b) => a > b), from);
/** The least one. @param {Plane} from @param {number} width @param {number} [height] */
export const lowest = (from, width, height = width) =>
  [width, height].reduce((part, size) => winners(part, Math.floor(size / 2), Math.ceil(size / 2) - 1, (a, b) => a < b), from);

/** A plane with a margin in which a gradient goes on as it arrives at the border, within the plane's own levels.
 * @param {Plane} from @param {number} by
 */
export function extended(from, by) {
  /** @param {Float32Array} row @param {number} x @returns {number} */
  const at = (row, x) => {
    const last = row.length - 1;
    if (last === 0) return row[0];
    if (x < 0) return 2 * row[0] - at(row, -x);
    return x > last ? 2 * row[last] - at(row, 2 * last - x) : row[x];
  };
  const wide = bothWays(from, from.width + 2 * by, from.height + 2 * by, (part, length) =>
    alongRows(part, length, (row, x) => at(row, x - by)));
  const [low, high] = [from.levels.reduce((a, b) => Math.min(a, b)), highestOf(from)];
  return changed(wide, (x) => Math.max(low, Math.min(high, x)));
}

/** The median of a window about each pixel, which reaches so far to each side. @param {Plane} from @param {number} half */
export function medians(from, half) {
  const [wide, side] = [extended(from, half), 2 * half + 1];
  const window = new Float32Array(side ** 2);
  return plane(from.width, from.height, (x, y) => {
    for (let k = 0; k < side; k++) {
      const start = (y + k) * wide.width + x;
      window.set(wide.levels.subarray(start, start + side), k * side);
    }
    return window.sort()[(side ** 2 - 1) / 2];
  });
}

/** The level below which such a part of the levels lies. @param {Float32Array} levels @param {number} part */
export function quantile(levels, part) {
  const sorted = levels.slice().sort();
  const at = part * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

/** The two levels about which levels gather, the lower first: k-means for k = 2. @param {Float32Array} levels */
export function twoMeans(levels) {
  let [low, high] = [levels.reduce((a, b) => Math.min(a, b)), levels.reduce((a, b) => Math.max(a, b))];
  for (let before = NaN; high !== before; ) {
    before = high;
    const middle = (low + high) / 2;
    const [lower, upper] = [levels.filter((x) => x <= middle), levels.filter((x) => x > middle)];
    if (!upper.length) break;
    [low, high] = [lower, upper].map((all) => all.reduce((a, b) => a + b, 0) / all.length);
  }
  return [low, high];
}

/** The connected components of what is above a level, the largest first; and the label of each pixel, of which 0 is none.
 * @param {Plane} from @param {number} above
 */
export function components({ levels, width, height }, above) {
  const labels = new Int32Array(levels.length);
  /** @type {Component[]} */
  const found = [];
  levels.forEach((level, first) => {
    if (level <= above || labels[first]) return;
    const label = found.length + 1;
    const waiting = [first];
    let [left, top, right, bottom, area] = [width, height, 0, 0, 0];
    labels[first] = label;
    for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
      const [x, y] = [at % width, Math.floor(at / width)];
      [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
      area++;
      for (let ny = Math.max(0, y - 1); ny <= Math.min(height - 1, y + 1); ny++)
        for (let nx = Math.max(0, x - 1); nx <= Math.min(width - 1, x + 1); nx++) {
          const near = ny * width + nx;
          if (levels[near] <= above || labels[near]) continue;
          labels[near] = label;
          waiting.push(near);
        }
    }
    const atBorder = left === 0 || top === 0 || right === width - 1 || bottom === height - 1;
    found.push({ label, area, box: { left, top, width: right - left + 1, height: bottom - top + 1 }, atBorder });
  });
  return { found: found.sort((a, b) => b.area - a.area), labels };
}
