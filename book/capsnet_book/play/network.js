// @ts-check
// The paper's network (section 4), for one image: capsnet/model.py again.

import { channelsToCapsules, convolution, decoder, dynamicRouting, lengths, predict, relu, squash } from "./capsules.js";

/** @typedef {import("./capsules.js").Affine} Affine */
/** @typedef {import("./capsules.js").Grid} Grid */

export class CapsNet {
  /** @param {import("./weights.js").Weights} weights */
  constructor({ tensors, config }) {
    const [channels, height, width] = config.image_shape;
    this.config = config;
    /** @type {Grid} */
    this.image = { channels, height, width };
    /** @param {string} name @returns {Affine} */
    const layer = (name) => ({ weight: tensor(`${name}.weight`), bias: tensor(`${name}.bias`) });
    /** @param {string} name */
    const tensor = (name) => {
      if (!tensors[name]) throw new Error(`expected weights with ${name}, got ${Object.keys(tensors).join(", ")}`);
      return tensors[name];
    };
    this.conv = layer("conv");
    this.primary = layer("primary.conv");
    this.weight = tensor("digits.weight");
    /** @type {Float32Array | undefined} */
    this.prior = tensors["digits.prior"];
    this.decoder = config.reconstruct ? ["decoder.fc1", "decoder.fc2", "decoder.fc3"].map(layer) : [];
  }

  /** What the network makes of an image, [channels, height, width], from 0 to 1.
   * @param {ArrayLike<number>} image
   */
  look(image) {
    const { kernel_size: side, primary_dim: dim, capsule_dim: size, num_classes: parents, routing_iterations } = this.config;
    const seen = convolution(Float32Array.from(image), this.image, this.conv, side);
    const features = relu(seen.maps); // [256, 20, 20] for the paper's network
    const { maps, grid } = convolution(features, seen.grid, this.primary, side, 2); // [256, 6, 6]
    const u = squash(channelsToCapsules(maps, grid, dim), dim); // [1152, 8]
    const shape = { children: u.length / dim, parents, size };
    const uHat = predict(u, this.weight, shape); // [1152, 10, 16]
    const steps = dynamicRouting(uHat, shape, routing_iterations, { prior: this.prior });
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
