// @ts-check
// A network in a thread of its own, so that the page can be drawn on while it thinks.

import { lengths } from "./capsules.js";
import { argmax } from "./kit.js";
import { CapsNet, PlainCNN } from "./network.js";
import { readWeights } from "./weights.js";

/** @typedef {{ load: string } | { look: Float32Array } | { draw: ArrayLike<number>, of: number } | { route: Float32Array, options: import("./network.js").Options }} Question */
/** @typedef {{ v: Float32Array, lengths: import("./capsules.js").Numbers, longest: number, drawn: Float32Array }} Seen */
/** @typedef {ReturnType<typeof route>} Routed */

/** @type {CapsNet | PlainCNN | undefined} */
let network;

/** @param {string} address */
async function load(address) {
  const answer = await fetch(address);
  if (!answer.ok || !answer.body) throw new Error(`expected weights at ${address}, got ${answer.status}`);
  /** @type {BlobPart[]} */
  const parts = [];
  let got = 0;
  const reader = answer.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    postMessage({ got: (got += part.value.length) }); // bytes
  }
  const weights = readWeights(await new Blob(parts).arrayBuffer());
  network = weights.config.routing_iterations ? new CapsNet(weights) : new PlainCNN(weights);
}

/** @param {ArrayLike<number>} v @param {number} of  the class whose capsule is kept */
function draw(v, of) {
  if (!(network instanceof CapsNet)) throw new Error("expected the weights of a capsule network first");
  return network.draw(v, Array.from({ length: network.config.num_classes }, (_, k) => Number(k === of)));
}

/** What a capsule network sees in an image, or the ten probabilities of a CNN.
 * @param {Float32Array} image
 * @returns {Seen | import("./capsules.js").Numbers}
 */
function look(image) {
  if (!network) throw new Error("expected weights first, got a question");
  if (network instanceof PlainCNN) return network.look(image);
  const { v, lengths: long } = network.look(image);
  const longest = argmax(long);
  return { v, lengths: long, longest, drawn: draw(v, longest) };
}

/** All that a capsule network computes of an image, with what the decoder draws after each iteration.
 * @param {Float32Array} image
 * @param {import("./network.js").Options} options
 */
function route(image, options) {
  if (!(network instanceof CapsNet)) throw new Error("expected the weights of a capsule network first");
  const { primary_dim: dim, capsule_dim: size } = network.config;
  const { features, u, uHat, steps } = network.look(image, options);
  return { features, primary: lengths(u, dim), uHat, steps: steps.map(({ c, s, v }) => {
    const long = lengths(v, size);
    return { c, v, sums: lengths(s, size), lengths: long, drawn: draw(v, argmax(long)) };
  }) };
}

/** @param {Question} question */
function answer(question) {
  if ("load" in question) return load(question.load);
  if ("look" in question) return look(question.look);
  if ("route" in question) return route(question.route, question.options);
  return draw(question.draw, question.of);
}

addEventListener("message", async (/** @type {MessageEvent<Question>} */ { data }) => {
  try {
    postMessage({ answer: await answer(data) });
  } catch (error) {
    postMessage({ error: error instanceof Error ? error.message : String(error) });
  }
});
