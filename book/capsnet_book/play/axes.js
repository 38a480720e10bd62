// @ts-check
// Vectors among other axes: rotations, and the ways from one vector to another.

/** @typedef {import("./capsules.js").Numbers} Numbers */

/** x · y
 * @param {ArrayLike<number>} x
 * @param {ArrayLike<number>} y
 */
export function dot(x, y) {
  let sum = 0;
  for (let k = 0; k < x.length; k++) sum += x[k] * y[k];
  return sum;
}

/** Each vector of `size` numbers times a matrix [size, columns].
 * @param {ArrayLike<number>} rows
 * @param {ArrayLike<number>} matrix
 * @param {number} size
 */
export function times(rows, matrix, size) {
  const columns = matrix.length / size;
  const made = new Float32Array((rows.length / size) * columns);
  for (let k = 0; k < made.length; k++) {
    const from = Math.floor(k / columns) * size;
    for (let d = 0; d < size; d++) made[k] += rows[from + d] * matrix[d * columns + (k % columns)];
  }
  return made;
}

/** A matrix with `columns` columns, its rows as columns.
 * @param {ArrayLike<number>} matrix
 * @param {number} columns
 */
export function transposed(matrix, columns) {
  const rows = matrix.length / columns;
  return Float32Array.from({ length: matrix.length }, (_, k) => matrix[(k % rows) * columns + Math.floor(k / rows)]);
}

/** A random rotation, [size, size]: rows of random numbers, each freed of those before it.
 * @param {number} size
 * @param {number} seed  the same seed, the same rotation
 */
export function rotation(size, seed) {
  let state = seed;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0; // Numerical Recipes' generator
    return (state + 1) / 2 ** 32;
  };
  /** @type {Float64Array[]} */
  const rows = [];
  while (rows.length < size) {
    const row = Float64Array.from({ length: size }, () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()));
    for (const other of rows) {
      const shared = dot(row, other);
      other.forEach((x, d) => (row[d] -= shared * x));
    }
    const norm = Math.hypot(...row);
    rows.push(row.map((x) => x / norm));
  }
  return Float32Array.from(rows.flatMap((row) => [...row]));
}

/** A part of the straight way from one vector to another.
 * @param {ArrayLike<number>} from
 * @param {ArrayLike<number>} to
 * @param {number} part  from 0 to 1
 */
export function straight(from, to, part) {
  return Float32Array.from(from, (x, k) => (1 - part) * x + part * to[k]);
}

/** A part of the way round: directions turn evenly, and lengths change evenly (slerp).
 * @param {ArrayLike<number>} from
 * @param {ArrayLike<number>} to
 * @param {number} part  from 0 to 1
 */
export function round(from, to, part) {
  const [one, other] = [Math.sqrt(dot(from, from)), Math.sqrt(dot(to, to))];
  const angle = Math.acos(Math.min(1, Math.max(-1, dot(from, to) / (one * other))));
  if (!(Math.sin(angle) > 1e-6)) return straight(from, to, part);
  const long = (1 - part) * one + part * other;
  const weights = [Math.sin((1 - part) * angle) / one, Math.sin(part * angle) / other];
  return Float32Array.from(from, (x, k) => (long / Math.sin(angle)) * (weights[0] * x + weights[1] * to[k]));
}
