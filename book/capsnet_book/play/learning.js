// @ts-check
// How a capsule network learns: the gradient of the loss of one image, by hand, and Adam. The forward pass
// is network.js; each step back bears the name of the step that it undoes. Every tensor is one flat array.

import { agreement, channelsToCapsules, lengths, linear, marginLoss, relu, weightedSum, windows } from "./capsules.js";
import { argmax } from "./kit.js";
import { gradient as slopesOfMargin } from "./margin.js";
import { CapsNet } from "./network.js";

/** @typedef {import("./capsules.js").Numbers} Numbers */
/** @typedef {import("./capsules.js").Shape} Shape */
/** @typedef {import("./capsules.js").Affine} Affine */
/** @typedef {Record<string, Float32Array>} Tensors  by their names in capsnet's state_dict */
/** @typedef {{ rate: number, downWeight: number, iterations: number, over: "parents" | "children" }} Settings */

/** out += a · b: a [rows, inner], or [inner, rows] if it is to be transposed; b [inner, columns]. Most of the
 * time of training is spent here: four rows of b at once, so that a sum is read and written less often.
 * @param {Float32Array} out @param {ArrayLike<number>} a @param {ArrayLike<number>} b
 * @param {number} rows @param {number} inner @param {number} columns @param {boolean} [transposed]
 */
function addProduct(out, a, b, rows, inner, columns, transposed = false) {
  const [down, right] = transposed ? [1, rows] : [inner, 1];
  for (let row = 0; row < rows; row++) {
    const to = row * columns;
    let k = 0;
    for (; k + 3 < inner; k += 4) {
      const at = row * down + k * right;
      const a0 = a[at], a1 = a[at + right], a2 = a[at + 2 * right], a3 = a[at + 3 * right];
      const b0 = k * columns, b1 = b0 + columns, b2 = b1 + columns, b3 = b2 + columns;
      for (let c = 0; c < columns; c++) out[to + c] += a0 * b[b0 + c] + a1 * b[b1 + c] + a2 * b[b2 + c] + a3 * b[b3 + c];
    }
    for (; k < inner; k++) {
      const x = a[row * down + k * right];
      for (let c = 0; c < columns; c++) out[to + c] += x * b[k * columns + c];
    }
  }
}

/** Equation (1), back: the gradient by s, from that by v.
 * @param {Numbers} s @param {Numbers} dv @param {number} size  of a vector
 */
export function squashBack(s, dv, size) {
  const ds = new Float32Array(s.length);
  lengths(s, size).forEach((n, j) => {
    if (n === 0) return; // there the gradient is 0
    let along = 0;
    for (let k = j * size; k < (j + 1) * size; k++) along += s[k] * dv[k];
    const scale = n / (1 + n * n);
    const bend = (along * (1 - n * n)) / (n * (1 + n * n) ** 2);
    for (let k = j * size; k < (j + 1) * size; k++) ds[k] = scale * dv[k] + bend * s[k];
  });
  return ds;
}

/** Equation (3), back: the gradient by the logits, from that by the coupling coefficients c.
 * @param {Numbers} c @param {Numbers} dc @param {Shape} shape @param {"parents" | "children"} over
 */
function softmaxBack(c, dc, { children, parents }, over) {
  const group = (/** @type {number} */ k) => (over === "parents" ? Math.floor(k / parents) : k % parents);
  const mean = new Float64Array(over === "parents" ? children : parents);
  c.forEach((x, k) => (mean[group(k)] += x * dc[k]));
  return c.map((x, k) => x * (dc[k] - mean[group(k)]));
}

/** out[i, j, :] += a[i, j] · x[j, :]
 * @param {Float32Array} out @param {Numbers} a @param {Numbers} x @param {Shape} shape
 */
function addOuter(out, a, x, { parents, size }) {
  for (let k = 0; k < a.length; k++)
    for (let d = 0; d < size; d++) out[k * size + d] += a[k] * x[(k % parents) * size + d];
}

/** Procedure 1, back through every iteration: the gradient by the votes, from that by the last v.
 * @param {Numbers} uHat @param {import("./capsules.js").Step[]} steps @param {Numbers} dv
 * @param {Shape} shape @param {"parents" | "children"} over
 */
export function routingBack(uHat, steps, dv, shape, over) {
  const dUHat = new Float32Array(uHat.length);
  /** @type {Numbers} */
  let db = new Float32Array(shape.children * shape.parents); // of the logits after the iteration
  for (const [r, { c, s, v }] of [...steps.entries()].reverse()) {
    if (r < steps.length - 1) {
      dv = weightedSum(db, uHat, shape); // through the agreement û · v
      addOuter(dUHat, db, v, shape);
    }
    const ds = squashBack(s, dv, shape.size);
    addOuter(dUHat, c, ds, shape);
    const through = softmaxBack(c, agreement(uHat, ds, shape), shape, over);
    db = through.map((x, k) => x + db[k]);
  }
  return dUHat;
}

/** Equation (2)'s û = W u, back: adds to the gradient by W, and returns that by u.
 * @param {Numbers} u @param {Float32Array} weight @param {Float32Array} dUHat @param {Shape} shape @param {Float32Array} into
 */
function predictBack(u, weight, dUHat, { children, parents, size }, into) {
  const dim = u.length / children;
  const du = new Float32Array(u.length);
  for (let i = 0; i < children; i++)
    for (let j = 0; j < parents; j++)
      for (let k = 0; k < dim; k++) {
        const [vote, row, x] = [(i * parents + j) * size, ((i * parents + j) * dim + k) * size, u[i * dim + k]];
        let sum = 0;
        for (let d = 0; d < size; d++) {
          into[row + d] += x * dUHat[vote + d];
          sum += weight[row + d] * dUHat[vote + d];
        }
        du[i * dim + k] += sum;
      }
  return du;
}

/** A convolution, back: adds to the gradients by its kernels.
 * @param {Float32Array} maps @param {import("./capsules.js").Grid} grid  of the maps
 * @param {Float32Array} dOut @param {number} side @param {number} stride @param {Affine} into
 */
function kernelsBack(maps, grid, dOut, side, stride, into) {
  const { seen, rows, columns } = windows(maps, grid, side, stride);
  const places = rows * columns;
  addProduct(into.weight, dOut, seen, into.bias.length, places, grid.channels * side * side);
  dOut.forEach((x, k) => (into.bias[Math.floor(k / places)] += x));
}

/** A convolution, back: the gradient by its maps, of which each window adds its part.
 * @param {import("./capsules.js").Grid} grid  of the maps
 * @param {Affine} layer @param {Float32Array} dOut @param {number} side @param {number} stride
 */
function mapsBack({ channels, height, width }, { weight, bias }, dOut, side, stride) {
  const places = dOut.length / bias.length;
  const columns = Math.floor((width - side) / stride) + 1;
  const dSeen = new Float32Array(places * channels * side * side);
  addProduct(dSeen, dOut, weight, places, bias.length, channels * side * side, true);
  const dMaps = new Float32Array(channels * height * width);
  for (let k = 0, place = 0; place < places; place++) {
    const corner = Math.floor(place / columns) * stride * width + (place % columns) * stride;
    for (let row = 0; row < channels * side; row++) {
      const from = corner + (Math.floor(row / side) * height + (row % side)) * width;
      for (let column = 0; column < side; column++) dMaps[from + column] += dSeen[k++];
    }
  }
  return dMaps;
}

/** A fully connected layer, back.
 * @param {Float32Array} x @param {Affine} layer @param {Float32Array} dy @param {Affine} into
 */
function linearBack(x, { weight }, dy, into) {
  addProduct(into.weight, dy, x, dy.length, 1, x.length);
  dy.forEach((each, k) => (into.bias[k] += each));
  const dx = new Float32Array(x.length);
  addProduct(dx, dy, weight, 1, dy.length, x.length);
  return dx;
}

/** Where a ReLU was open. @param {Float32Array} gradient @param {Float32Array} y  what came out of it */
const reluBack = (gradient, y) => gradient.map((x, k) => (y[k] > 0 ? x : 0));

/** The loss of one image: equation (4), and the squared error of the reconstruction. Adds its gradient to `into`.
 * @param {CapsNet} net
 * @param {Float32Array} image
 * @param {number} label
 * @param {Settings} settings
 * @param {Tensors} into
 */
export function backward(net, image, label, { iterations, over, downWeight }, into) {
  const { kernel_size: side, primary_dim: dim, capsule_dim: size, num_classes: parents } = net.config;
  const layer = (/** @type {string} */ name) => ({ weight: into[`${name}.weight`], bias: into[`${name}.bias`] });
  const { features, maps, u, uHat, steps, v, lengths: norms } = net.look(image, { iterations, over });
  const shape = { children: u.length / dim, parents, size };

  // The decoder, forward and back. The paper's 0.0005 is for 784 pixels; fewer count for as much together.
  const share = (0.0005 * 784) / image.length;
  const own = v.map((x, k) => (Math.floor(k / size) === label ? x : 0));
  const first = relu(linear(own, net.decoder[0]));
  const second = relu(linear(first, net.decoder[1]));
  const drawn = linear(second, net.decoder[2]).map((x) => 1 / (1 + Math.exp(-x)));
  const dDrawn = drawn.map((x, k) => 2 * share * (x - image[k]) * x * (1 - x));
  const dSecond = reluBack(linearBack(second, net.decoder[2], dDrawn, layer("decoder.fc3")), second);
  const dFirst = reluBack(linearBack(first, net.decoder[1], dSecond, layer("decoder.fc2")), first);
  const dOwn = linearBack(own, net.decoder[0], dFirst, layer("decoder.fc1"));

  const slopes = slopesOfMargin([...norms], [label], downWeight);
  const dv = v.map((x, k) => {
    const j = Math.floor(k / size);
    return (norms[j] > 0 ? (slopes[j] * x) / norms[j] : 0) + (j === label ? dOwn[k] : 0);
  });
  const dUHat = routingBack(uHat, steps, dv, shape, over);
  const du = predictBack(u, net.weight, dUHat, shape, into["digits.weight"]);

  // The two convolutions; a capsule's numbers go back to their channels.
  const smaller = (/** @type {number} */ n) => n - side + 1;
  const grid = { channels: net.conv.bias.length, height: smaller(net.image.height), width: smaller(net.image.width) };
  const places = maps.length / net.primary.bias.length;
  const s = channelsToCapsules(maps, { channels: net.primary.bias.length, height: 1, width: places }, dim);
  const ds = squashBack(s, du, dim);
  const dMaps = maps.map((_, k) => {
    const [channel, place] = [Math.floor(k / places), k % places];
    return ds[(Math.floor(channel / dim) * places + place) * dim + (channel % dim)];
  });
  kernelsBack(features, grid, dMaps, side, 2, layer("primary.conv"));
  const dFeatures = reluBack(mapsBack(grid, net.primary, dMaps, side, 2), features);
  kernelsBack(image, net.image, dFeatures, side, 1, layer("conv"));

  let loss = 0;
  for (const each of marginLoss(norms, [label], { downWeight })) loss += each;
  drawn.forEach((x, k) => (loss += share * (x - image[k]) ** 2));
  return loss;
}

/** Random numbers from 0 to 1, the same for the same seed. @param {number} seed */
function randomFrom(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0; // mulberry32
    let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** First weights, drawn as PyTorch and capsnet draw them. @param {Record<string, any>} config @param {() => number} random */
export function initialized({ image_shape: [channels, height, width], conv_channels: features, kernel_size: side, capsule_types: types, primary_dim: dim, num_classes: parents, capsule_dim: size, hidden }, random) {
  const grid = [height, width].map((n) => Math.floor((n - 2 * side + 1) / 2) + 1);
  const pixels = channels * height * width;
  /** @type {Record<string, [number, number]>} outputs, and what each of them sees */
  const layers = {
    conv: [features, channels * side ** 2],
    "primary.conv": [types * dim, features * side ** 2],
    "decoder.fc1": [hidden[0], parents * size],
    "decoder.fc2": [hidden[1], hidden[0]],
    "decoder.fc3": [pixels, hidden[1]],
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  /** @type {Tensors} */
  const tensors = {};
  for (const [name, [out, inside]] of Object.entries(layers)) {
    const uniform = () => (2 * random() - 1) / Math.sqrt(inside);
    tensors[`${name}.weight`] = new Float32Array(out * inside).map(uniform);
    tensors[`${name}.bias`] = new Float32Array(out).map(uniform);
  }
  tensors["digits.weight"] = new Float32Array(types * grid[0] * grid[1] * parents * dim * size).map(() => {
    let x = normal();
    while (Math.abs(x) > 2) x = normal();
    return 0.1 * x;
  });
  return tensors;
}

/** A network in training: batches drawn at random from the images, each followed by a step of Adam. */
export class Learner {
  /** @param {Record<string, any>} config @param {Settings} settings */
  constructor(config, settings) {
    this.random = randomFrom(1); // so two training runs differ by their settings alone
    this.settings = settings;
    this.tensors = initialized(config, this.random);
    this.net = new CapsNet({ tensors: this.tensors, config });
    const zeros = () => Object.fromEntries(Object.entries(this.tensors).map(([name, { length }]) => [name, new Float32Array(length)]));
    this.gradients = zeros(); // summed over a batch
    this.means = zeros(); // Adam's, and those of the squares
    this.squares = zeros();
    this.steps = 0;
  }

  /** One step; returns the mean loss of its images.
   * @param {Float32Array[]} images @param {ArrayLike<number>} labels @param {number} batch
   */
  step(images, labels, batch) {
    let loss = 0;
    for (let n = 0; n < batch; n++) {
      const k = Math.floor(this.random() * images.length);
      loss += backward(this.net, images[k], labels[k], this.settings, this.gradients);
    }
    this.adam(batch);
    return loss / batch;
  }

  /** Adam, with PyTorch's defaults, from the sum of a batch's gradients, which are then 0 again. @param {number} batch */
  adam(batch) {
    this.steps++;
    const rate = (this.settings.rate * Math.sqrt(1 - 0.999 ** this.steps)) / (1 - 0.9 ** this.steps);
    const tiny = 1e-8 * Math.sqrt(1 - 0.999 ** this.steps);
    for (const [name, weight] of Object.entries(this.tensors)) {
      const [gradient, mean, square] = [this.gradients[name], this.means[name], this.squares[name]];
      for (let k = 0; k < weight.length; k++) {
        const g = gradient[k] / batch;
        mean[k] += 0.1 * (g - mean[k]);
        square[k] += 0.001 * (g * g - square[k]);
        weight[k] -= (rate * mean[k]) / (Math.sqrt(square[k]) + tiny);
      }
      gradient.fill(0);
    }
  }

  /** Capsules, their lengths, and the class of the longest. @param {Float32Array} image */
  look(image) {
    const { v, lengths: norms } = this.net.look(image, this.settings);
    const longest = argmax(norms);
    return { v, norms, longest };
  }

  /** @param {ArrayLike<number>} v @param {number} of  the class whose capsule is kept */
  draw(v, of) {
    return this.net.draw(v, Array.from({ length: this.net.config.num_classes }, (_, k) => Number(k === of)));
  }
}
