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
