// @ts-check
// Networks, for one image: the paper's (section 4), capsnet/model.py again, and a plain CNN, cnn.py again.

import { channelsToCapsules, convolution, decoder, dynamicRouting, lengths, linear, predict, relu, softmax, squash } from "./capsules.js";

/** @typedef {import("./capsules.js").Affine} Affine */
/** @typedef {import("./capsules.js").Grid} Grid */
/** @typedef {{ iterations?: number, over?: "parents" | "children", permute?: boolean }} Options */

/** What the weights of a network are asked for, and its image.
 * @param {import("./weights.js").Weights} weights
 */
function opened({ tensors, config }) {
  const [channels, height, width] = config.image_shape;
  const tensor = (/** @type {string} */ name) => {
    if (!tensors[name]) throw new Error(`expected weights with ${name}, got ${Object.keys(tensors).join(", ")}`);
    return tensors[name];
  };
  /** @param {string} name @returns {Affine} */
  const layer = (name) => ({ weight: tensor(`${name}.weight`), bias: tensor(`${name}.bias`) });
  /** @type {Grid} */
  const image = { channels, height, width };
  return { tensor, layer, image };
}

export class CapsNet {
  /** @param {import("./weights.js").Weights} weights */
  constructor({ tensors, config }) {
    const { tensor, layer, image } = opened({ tensors, config });
    this.config = config;
    this.image = image;
    this.conv = layer("conv");
    this.primary = layer("primary.conv");
    this.weight = tensor("digits.weight");
    /** @type {Float32Array | undefined} */
    this.prior = tensors["digits.prior"];
    this.decoder = config.reconstruct ? ["decoder.fc1", "decoder.fc2", "decoder.fc3"].map(layer) : [];
  }

  /** What the network makes of an image, [channels, height, width], from 0 to 1. The options are what a
   * reader may change: how often it routes, over what the softmax runs, and whether the channels are
   * permuted before they are cut into vectors.
   * @param {ArrayLike<number>} image
   * @param {Options} [options]
   */
  look(image, { iterations = this.config.routing_iterations, over = "parents", permute = true } = {}) {
    const { kernel_size: side, primary_dim: dim, capsule_dim: size, num_classes: parents } = this.config;
    const seen = convolution(Float32Array.from(image), this.image, this.conv, side);
    const features = relu(seen.maps); // [256, 20, 20] for the paper's network
    const { maps, grid } = convolution(features, seen.grid, this.primary, side, 2); // [256, 6, 6]
    const u = squash(permute ? channelsToCapsules(maps, grid, dim) : maps, dim); // [1152, 8]
    const shape = { children: u.length / dim, parents, size };
    const uHat = predict(u, this.weight, shape); // [1152, 10, 16]
    const steps = dynamicRouting(uHat, shape, iterations, { prior: this.prior, over });
    const v = /** @type {Float32Array} */ (steps[steps.length - 1].v); // [10, 16]
    return { features, maps, u, uHat, steps, v, lengths: lengths(v, size) };
  }

  /** What the decoder draws of the capsules that a mask of zeros and ones leaves.
   * @param {ArrayLike<number>} v
   * @param {ArrayLike<number>} mask
   */
  draw(v, mask) {
    return decoder(v, mask, this.decoder);
  }
}

export class PlainCNN {
  /** @param {import("./weights.js").Weights} weights */
  constructor({ tensors, config }) {
    const { layer, image } = opened({ tensors, config });
    this.config = config;
    this.image = image;
    this.layers = ["conv1", "conv2", "fc1", "fc2"].map(layer);
  }

  /** How probable it thinks each class, by a softmax of its logits.
   * @param {ArrayLike<number>} image
   */
  look(image) {
    const [conv1, conv2, fc1, fc2] = this.layers;
    const { kernel_size: side, num_classes: parents } = this.config;
    const first = convolution(Float32Array.from(image), this.image, conv1, side, 2);
    const second = convolution(relu(first.maps), first.grid, conv2, side, 2);
    const logits = linear(relu(linear(relu(second.maps), fc1)), fc2);
    return softmax(logits, { children: 1, parents, size: 1 });
  }
}
