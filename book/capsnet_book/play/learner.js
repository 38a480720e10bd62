// @ts-check
// Trains in a thread of its own, a few steps whenever the page asks for more.

import { unpack } from "./kit.js";
import { Learner } from "./learning.js";

/** @typedef {{ lengths: import("./capsules.js").Numbers, drawn: Float32Array, longest: number }} Seen */
/** @typedef {{ steps: number, loss?: number, correct?: number, digits: Seen[] }} Report */

/** @type {Promise<any> | undefined} */
let digits; // images of 4 bits a pixel, as learn.py writes them
/** @type {Learner | undefined} */
let learner;

/** @param {{ images: Uint8Array & { shape: number[] }, labels: Uint8Array }} packed */
const opened = ({ images, labels }) => {
  const size = images.shape[1]; // bytes of an image
  const pixels = (/** @type {number} */ n) => Float32Array.from({ length: 2 * size }, (_, k) => ((images[n * size + (k >> 1)] >> (k % 2 ? 0 : 4)) & 15) / 15);
  return { images: Array.from(labels, (_, n) => pixels(n)), labels };
};

/** @param {URL} address */
async function load(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`expected digits at ${address}, got ${answer.status}`);
  const { training, held, ...settings } = unpack(await answer.json());
  return { ...settings, training: opened(training), held: opened(held) };
}

/** Train a little, and look at the digits that the page shows.
 * @param {import("./learning.js").Settings} [start]  of a new network, which is then looked at before its first step
 * @returns {Promise<Report>}
 */
async function learn(start) {
  const { config, batch, together, every, shown, training, held } = await (digits ??= load(new URL("data/digits.json", import.meta.url)));
  const now = start || !learner ? (learner = new Learner(config, /** @type {any} */ (start))) : learner;
  let loss = 0;
  if (!start) for (let n = 0; n < together; n++) loss += now.step(training.images, training.labels, batch) / together;
  const right = (/** @type {Float32Array} */ image, /** @type {number} */ n) => now.look(image).longest === held.labels[n];
  return {
    steps: now.steps,
    ...(start ? {} : { loss }),
    ...(now.steps % every ? {} : { correct: held.images.filter(right).length / held.images.length }),
    digits: held.images.slice(0, shown).map((/** @type {Float32Array} */ image) => {
      const { v, norms, longest } = now.look(image);
      return { lengths: norms, drawn: now.draw(v, longest), longest };
    }),
  };
}

addEventListener("message", async ({ data: { start } }) => {
  try {
    postMessage({ report: await learn(start) });
  } catch (error) {
    digits = undefined; // the next try loads them again
    postMessage({ error: error instanceof Error ? error.message : String(error) });
  }
});
