// @ts-check
// Weights from a safetensors file, as capsnet/checkpoint.py writes them: in 32, 16 or 8 bits.

import { typed } from "./kit.js";

const TYPES = { I8: "int8", F16: "float16", F32: "float32" };

/** @typedef {{ tensors: Record<string, Float32Array>, config: Record<string, any> }} Weights  the network's tensors, flat, and what it is */

/** Every tensor in float32: one of 8 bits times its scales, each of which is shared by a row.
 * @param {ArrayBuffer} buffer
 * @returns {Weights}
 */
export function readWeights(buffer) {
  const { header, start } = readHeader(buffer);
  if (!header.__metadata__?.capsnet) throw new Error("expected capsnet's weights, got a file that does not say which network it is");
  const { model, int8 = [] } = JSON.parse(header.__metadata__.capsnet);
  /** @type {Record<string, Float32Array>} */
  const tensors = {};
  for (const [name, { dtype, data_offsets }] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    if (!(dtype in TYPES)) throw new Error(`expected ${name} in ${Object.keys(TYPES).join(", ")}, got ${dtype}`);
    const [from, to] = data_offsets.map((/** @type {number} */ at) => start + at);
    if (to > buffer.byteLength) throw new Error(`expected ${to} bytes, got ${buffer.byteLength}: the weights are cut short`);
    tensors[name] = Float32Array.from(typed(buffer.slice(from, to), TYPES[/** @type {keyof typeof TYPES} */ (dtype)]));
  }
  for (const name of int8) {
    const [whole, scale] = [tensors[name], tensors[`${name}.scale`]];
    if (!whole || !scale) throw new Error(`expected ${name} and its scales, got one without the other`);
    const row = whole.length / scale.length;
    for (let k = 0; k < whole.length; k++) whole[k] *= scale[Math.floor(k / row)];
    delete tensors[`${name}.scale`];
  }
  return { tensors, config: model };
}

/** A safetensors file begins with the length of its header, which is JSON.
 * @param {ArrayBuffer} buffer
 * @returns {{ header: Record<string, any>, start: number }}
 */
function readHeader(buffer) {
  try {
    const length = Number(new DataView(buffer).getBigUint64(0, true));
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    return { header, start: 8 + length };
  } catch {
    throw new Error(`expected a safetensors file, got ${buffer.byteLength} other bytes`);
  }
}
