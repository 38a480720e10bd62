// @ts-check
// The paper again: Sabour, Frosst and Hinton, Dynamic Routing Between Capsules, 2017. Names, equation
// numbers and the order of the numbers are those of capsnet/functional.py and capsnet/layers.py, for
// one image; every tensor is one flat array, its last index the fastest.

/** @typedef {Float32Array | Float64Array} Numbers */
/** @typedef {{ children: number, parents: number, size: number }} Shape  of votes û: [children, parents, size] */
/** @typedef {{ b: Numbers, c: Numbers, s: Numbers, v: Numbers }} Step  what one iteration computed */

/**
 * @template {Numbers} T
 * @param {T} like
 * @param {number} length
 * @returns {T}
 */
function zeros(like, length) {
  return /** @type {T} */ (new /** @type {any} */ (like.constructor)(length));
}

/** ‖s‖ of each vector of `size` numbers.
 * @template {Numbers} T
 * @param {T} s
 * @param {number} size
 */
export function lengths(s, size) {
  return zeros(s, s.length / size).map((_, j) => Math.hypot(...s.subarray(j * size, (j + 1) * size)));
}

/** Equation (1): v = ‖s‖² / (1 + ‖s‖²) · s / ‖s‖, for each vector of `size` numbers; 0 stays 0.
 * @template {Numbers} T
 * @param {T} s
 * @param {number} size
 * @returns {T}
 */
export function squash(s, size) {
  const norm = lengths(s, size);
  return /** @type {T} */ (s.map((x, k) => {
    const n = norm[Math.floor(k / size)];
    return (x * n) / (1 + n * n);
  }));
}

/** Equation (3): shares c from logits b, [children, parents]. `over` says what each sum to 1 runs
 * over; the paper's is the parents, of one child. "children" is a common slip.
 * @template {Numbers} T
 * @param {T} b
 * @param {Shape} shape
 * @param {"parents" | "children"} [over]
 */
export function softmax(b, { children, parents }, over = "parents") {
  const c = zeros(b, b.length);
  const [groups, members] = over === "parents" ? [children, parents] : [parents, children];
  for (let g = 0; g < groups; g++) {
    const at = (/** @type {number} */ m) => (over === "parents" ? g * parents + m : m * parents + g);
    let peak = -Infinity;
    for (let m = 0; m < members; m++) peak = Math.max(peak, b[at(m)]);
    let sum = 0;
    for (let m = 0; m < members; m++) sum += c[at(m)] = Math.exp(b[at(m)] - peak);
    for (let m = 0; m < members; m++) c[at(m)] /= sum;
  }
  return c;
}

/** Equation (2): s_j = Σ_i c_ij û_{j|i}, [parents, size].
 * @template {Numbers} T
 * @param {T} c
 * @param {T} uHat
 * @param {Shape} shape
 */
export function weightedSum(c, uHat, { children, parents, size }) {
  const s = zeros(uHat, parents * size);
  for (let i = 0; i < children; i++)
    for (let j = 0; j < parents; j++)
      for (let d = 0; d < size; d++) s[j * size + d] += c[i * parents + j] * uHat[(i * parents + j) * size + d];
  return s;
}

/** The agreement û_{j|i} · v_j, [children, parents].
 * @template {Numbers} T
 * @param {T} uHat
 * @param {T} v
 * @param {Shape} shape
 */
export function agreement(uHat, v, { children, parents, size }) {
  const a = zeros(uHat, children * parents);
  for (let i = 0; i < children; i++)
    for (let j = 0; j < parents; j++)
      for (let d = 0; d < size; d++) a[i * parents + j] += uHat[(i * parents + j) * size + d] * v[j * size + d];
  return a;
}

/** Procedure 1: what each iteration computed. The last step's v is what the parents say.
 * @param {Numbers} uHat  [children, parents, size]
 * @param {Shape} shape
 * @param {number} [iterations]
 * @param {{ prior?: Numbers, over?: "parents" | "children" }} [options]  the first logits (zeros), and the softmax's sum
 * @returns {Step[]}
 */
export function dynamicRouting(uHat, shape, iterations = 3, { prior, over } = {}) {
  const steps = [];
  let b = prior ?? zeros(uHat, shape.children * shape.parents);
  for (let r = 0; r < iterations; r++) {
    const c = softmax(b, shape, over);
    const s = weightedSum(c, uHat, shape);
    const v = squash(s, shape.size);
    steps.push({ b, c, s, v });
    const a = agreement(uHat, v, shape);
    b = /** @type {Numbers} */ (b.map((x, k) => x + a[k]));
  }
  return steps;
}

/** Equation (4), for each class: L_k from the lengths ‖v_k‖ and the classes that are present.
 * @param {Numbers} norms
 * @param {number[]} present
 */
export function marginLoss(norms, present, { mPos = 0.9, mNeg = 0.1, downWeight = 0.5 } = {}) {
  return norms.map((length, k) =>
    present.includes(k) ? Math.max(0, mPos - length) ** 2 : downWeight * Math.max(0, length - mNeg) ** 2,
  );
}

/** @typedef {{ weight: Float32Array, bias: Float32Array }} Affine  a convolution's or a linear layer's */
/** @typedef {{ channels: number, height: number, width: number }} Grid  of maps, [channels, height, width] */

/** What a kernel sees at each place: [places, channels · side · side], and as many rows of zeros as
 * it takes to a multiple of four.
 * @param {Float32Array} maps
 * @param {Grid} grid
 * @param {number} side
 * @param {number} stride
 */
export function windows(maps, { channels, height, width }, side, stride) {
  const [rows, columns] = [height, width].map((n) => Math.floor((n - side) / stride) + 1);
  const seen = new Float32Array(4 * Math.ceil((rows * columns) / 4) * channels * side * side);
  let k = 0;
  for (let y = 0; y < rows; y++)
    for (let x = 0; x < columns; x++)
      for (let channel = 0; channel < channels; channel++)
        for (let row = 0; row < side; row++) {
          const from = (channel * height + y * stride + row) * width + x * stride;
          for (let column = 0; column < side; column++) seen[k++] = maps[from + column];
        }
  return { seen, rows, columns };
}

const STRETCH = 1024; // numbers of a kernel and of a window at a time, so that the processor's cache holds them

/** A convolution without padding: maps [channels, height, width] → [kernels, rows, columns].
 * Nearly all of a network's time is spent in the innermost loop here. It computes eight sums at once,
 * two kernels at four places, so that a number that is read is used more than once.
 * @param {Float32Array} maps
 * @param {Grid} grid
 * @param {Affine} kernels  weight [kernels, channels, side, side]
 * @param {number} side
 * @param {number} [stride]
 * @returns {{ maps: Float32Array, grid: Grid }}
 */
export function convolution(maps, grid, { weight, bias }, side, stride = 1) {
  const size = grid.channels * side * side;
  const { seen, rows, columns } = windows(maps, grid, side, stride);
  const places = rows * columns;
  const out = new Float32Array(bias.length * places).map((_, k) => bias[Math.floor(k / places)]);
  for (let start = 0; start < size; start += STRETCH) {
    const end = Math.min(start + STRETCH, size);
    for (let i = 0; i < bias.length; i += 2) {
      const [one, two] = [i * size, Math.min(i + 1, bias.length - 1) * size]; // of an odd number, the last twice
      for (let place = 0; place < places; place += 4) {
        const [at, bt, ct, dt] = [0, 1, 2, 3].map((n) => (place + n) * size);
        let a1 = 0, b1 = 0, c1 = 0, d1 = 0, a2 = 0, b2 = 0, c2 = 0, d2 = 0;
        for (let k = start; k < end; k++) {
          const w1 = weight[one + k], w2 = weight[two + k];
          const a = seen[at + k], b = seen[bt + k], c = seen[ct + k], d = seen[dt + k];
          a1 += w1 * a; b1 += w1 * b; c1 += w1 * c; d1 += w1 * d;
          a2 += w2 * a; b2 += w2 * b; c2 += w2 * c; d2 += w2 * d;
        }
        const sums = [[a1, b1, c1, d1], [a2, b2, c2, d2]];
        for (let n = 0; n < 2 && i + n < bias.length; n++)
          for (let m = 0; m < 4 && place + m < places; m++) out[(i + n) * places + place + m] += sums[n][m];
      }
    }
  }
  return { maps: out, grid: { channels: bias.length, height: rows, width: columns } };
}

/** Neighbouring channels as vectors: maps [types · dim, h, w] → [types · h · w, dim].
 * @param {Float32Array} maps
 * @param {Grid} grid
 * @param {number} dim
 */
export function channelsToCapsules(maps, { channels, height, width }, dim) {
  const places = height * width;
  const capsules = new Float32Array(maps.length);
  for (let channel = 0; channel < channels; channel++) {
    const [type, d] = [Math.floor(channel / dim), channel % dim];
    for (let place = 0; place < places; place++) capsules[(type * places + place) * dim + d] = maps[channel * places + place];
  }
  return capsules;
}

/** The votes û_{j|i} = W_ij u_i of equation (2), [children, parents, size], from children u of `dim` numbers.
 * @param {Float32Array} u
 * @param {Float32Array} weight  W_ij, [children, parents, dim, size]
 * @param {Shape} shape
 */
export function predict(u, weight, { children, parents, size }) {
  const dim = u.length / children;
  const uHat = new Float32Array(children * parents * size);
  for (let i = 0; i < children; i++)
    for (let j = 0; j < parents; j++)
      for (let k = 0; k < dim; k++) {
        const [vote, row, x] = [(i * parents + j) * size, ((i * parents + j) * dim + k) * size, u[i * dim + k]];
        for (let d = 0; d < size; d++) uHat[vote + d] += x * weight[row + d];
      }
  return uHat;
}

/** A fully connected layer, weight [out, in].
 * @param {Float32Array} x
 * @param {Affine} layer
 */
export function linear(x, { weight, bias }) {
  const y = Float32Array.from(bias);
  for (let o = 0; o < y.length; o++) {
    let sum = 0;
    for (let k = 0; k < x.length; k++) sum += weight[o * x.length + k] * x[k];
    y[o] += sum;
  }
  return y;
}

/** @param {Float32Array} x */
export const relu = (x) => x.map((each) => Math.max(0, each));

/** Section 4.1: what the decoder draws of the capsules v, [parents, size], that a mask of zeros and ones leaves.
 * @param {ArrayLike<number>} v
 * @param {ArrayLike<number>} mask
 * @param {Affine[]} layers  three
 */
export function decoder(v, mask, [first, second, third]) {
  const size = v.length / mask.length;
  const masked = Float32Array.from(v, (x, k) => (mask[Math.floor(k / size)] ? x : 0));
  return linear(relu(linear(relu(linear(masked, first)), second)), third).map((x) => 1 / (1 + Math.exp(-x)));
}
