// @ts-check
// The capsule of one digit: moved along its numbers or along directions, among its own or other axes.

import { dot, rotation, times, transposed } from "./axes.js";
import { decoder } from "./capsules.js";

const SIZE = 16;
const EVERY = new Uint8Array(10).fill(1); // the others are zeros

/** @typedef {Float32Array & { shape: number[] }} Tensor */
/** @typedef {Uint8Array & { shape: number[] }} Images */
/**
 * @typedef {object} Found  what the chapter computes
 * @property {number} digit  to begin with
 * @property {Uint8Array} drawing  of its first example
 * @property {string[]} properties  of a drawing
 * @property {Images} images  of examples of each digit, [10, n, 28, 28]
 * @property {Tensor} capsules  of these, [10, n, 16]
 * @property {Tensor} tables  what more of each number changes, [10, 16, 6]
 * @property {Tensor} directions  that change one property each, [10, 6, 16]
 * @property {Tensor} along  what more of each direction changes, [10, 6, 6]
 * @property {Uint8Array<ArrayBuffer>} [weights]  the decoder's, a safetensors file
 * @property {import("./kit.js").Tell} [tell]
 */

/** The part of a tensor at these first indices.
 * @param {any} tensor
 * @param {...number} at
 */
export function part(tensor, ...at) {
  const size = tensor.shape.slice(at.length).reduce((/** @type {number} */ a, /** @type {number} */ b) => a * b, 1);
  const index = at.reduce((index, i, k) => index * tensor.shape[k] + i, 0);
  return tensor.subarray(index * size, (index + 1) * size);
}

export class Capsule {
  /** @param {Found} found */
  constructor(found) {
    this.found = found;
    this.digit = found.digit;
    this.example = 0;
    this.seed = 0;
    this.axes = Float32Array.of();
    this.own = Float32Array.of(); // its numbers among the axes of the network as trained
    /** @type {import("./capsules.js").Affine[]} */
    this.trained = [];
    /** @type {import("./capsules.js").Affine[]} */
    this.layers = [];
    this.take(this.digit, 0);
    this.turn(0);
  }

  /** @param {number} digit @param {number} example */
  take(digit, example) {
    [this.digit, this.example] = [digit, example];
    this.own = this.start(digit, example).slice();
  }

  /** As an image's capsule is, before it is moved.
   * @param {number} digit @param {number} example @returns {Float32Array}
   */
  start(digit, example) {
    return part(this.found.capsules, digit, example);
  }

  /** Turn all axes: those of the capsules, and of the decoder's first layer with them.
   * @param {number} seed  of the rotation; 0 is none
   */
  turn(seed) {
    this.seed = seed;
    const none = Float32Array.from({ length: SIZE * SIZE }, (_, k) => (k % (SIZE + 1) ? 0 : 1));
    this.axes = seed ? rotation(SIZE, seed) : none;
    const [first, ...others] = this.trained;
    if (first) this.layers = [{ ...first, weight: seed ? times(first.weight, this.axes, SIZE) : first.weight }, ...others];
  }

  /** The decoder's three, as trained.
   * @param {import("./capsules.js").Affine[]} layers
   */
  set decoder(layers) {
    this.trained = layers;
    this.turn(this.seed);
  }

  /** Its sixteen numbers, among the axes of now. */
  get v() {
    return times(this.own, this.axes, SIZE);
  }

  set v(numbers) {
    this.own = times(numbers, transposed(this.axes, SIZE), SIZE);
  }

  /** What more of each of the numbers changes, [16, 6]: mixed as the axes are. */
  get table() {
    return times(transposed(this.axes, SIZE), part(this.found.tables, this.digit), SIZE);
  }

  /** How far it was moved along each direction: as far as its properties should have changed. */
  get moved() {
    const { tables, directions, properties } = this.found;
    const columns = transposed(part(tables, this.digit), properties.length);
    const start = this.start(this.digit, this.example);
    const way = this.own.map((x, d) => x - start[d]);
    return properties.map((_, k) => {
      const column = columns.subarray(k * SIZE, (k + 1) * SIZE);
      return dot(way, column) / dot(part(directions, this.digit, k), column);
    });
  }

  /** Move it along a direction until it has gone so far.
   * @param {number} k @param {number} to
   */
  move(k, to) {
    const more = to - this.moved[k];
    const direction = part(this.found.directions, this.digit, k);
    this.own = this.own.map((x, d) => x + more * direction[d]);
  }

  /** The decoder's input: a capsule, given among its own axes, in the place of its digit.
   * @param {number} digit @param {Float32Array} own
   */
  slots(digit, own) {
    const all = new Float32Array(10 * SIZE);
    all.set(times(own, this.axes, SIZE), digit * SIZE);
    return all;
  }

  /** @param {Float32Array} slots */
  draw(slots = this.slots(this.digit, this.own)) {
    return decoder(slots, EVERY, this.layers);
  }
}
