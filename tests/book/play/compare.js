// What test_capsules.py asks of the page: the largest difference from what PyTorch wrote into files.

import * as capsules from "./capsules.js";
import { CapsNet } from "./network.js";
import { readWeights } from "./weights.js";

const read = async (name) => (await fetch(`./${name}.bin`, { cache: "no-store" })).arrayBuffer();
const far = (a, b) => a.reduce((most, x, k) => Math.max(most, Math.abs(x - b[k])), a.length === b.length ? 0 : NaN);
const network = async () => new CapsNet(readWeights(await read("weights")));

/** Over so many images: of lengths, of the last shares, and of what is drawn of the longest. */
export async function digits(count) {
  const net = await network();
  const files = await Promise.all(["images", "lengths", "shares", "drawings"].map(read));
  const part = (file, n) => {
    const all = new Float32Array(file);
    return all.subarray((n * all.length) / count, ((n + 1) * all.length) / count);
  };
  const most = [0, 0, 0];
  for (let n = 0; n < count; n++) {
    const [image, ...expected] = files.map((file) => part(file, n));
    const { steps, v, lengths } = net.look(image);
    const longest = lengths.indexOf(Math.max(...lengths));
    const drawn = net.draw(v, Array.from(lengths, (_, k) => Number(k === longest)));
    [lengths, steps[2].c, drawn].forEach((found, k) => (most[k] = Math.max(most[k], far(found, expected[k]))));
  }
  return most;
}

export async function outputs() {
  return far((await network()).look(new Float32Array(await read("images"))).v, new Float32Array(await read("v")));
}

/** Over all that each iteration computes. */
export async function routing(children, parents, size, iterations, withPrior) {
  const [votes, prior, every] = (await Promise.all(["votes", "prior", "every"].map(read))).map((file) => new Float64Array(file));
  const steps = capsules.dynamicRouting(votes, { children, parents, size }, iterations, withPrior ? { prior } : {});
  return far(steps.flatMap(({ b, c, s, v }) => [...b, ...c, ...s, ...v]), every);
}

export async function refusal() {
  try {
    await network();
  } catch (error) {
    return error.message;
  }
}
