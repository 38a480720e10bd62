// @ts-check
// Routing on and on, in a thread of its own, so that the page answers meanwhile.

import { dynamicRouting, lengths } from "./capsules.js";

const CHUNK = 10; // iterations between two looks at the page

/** @typedef {{ norms: number[], counts: number[], chosen: number }} Seen  of one iteration: lengths of the
 *  parents, children by their largest share, and how many give more than half to one parent */
/** @typedef {{ votes: Float64Array, shape: import("./capsules.js").Shape, most: number, bins: number, half: number }} Asked
 *  the votes, and for how many iterations; into how many bins a child's largest share falls, and what more than half is */

/** What the reader sees of an iteration.
 * @param {import("./capsules.js").Step} step
 * @param {Asked} asked
 * @returns {Seen}
 */
function seen({ c, v }, { shape: { children, parents, size }, bins, half }) {
  const counts = Array(bins).fill(0);
  let chosen = 0;
  for (let i = 0; i < children; i++) {
    const most = Math.max(...c.subarray(i * parents, (i + 1) * parents));
    counts[Math.max(0, Math.min(bins - 1, Math.floor(((most - 1 / parents) / (1 - 1 / parents)) * bins)))]++;
    if (most > half) chosen++;
  }
  return { norms: [...lengths(v, size)], counts, chosen };
}

// After each few iterations, say what was seen so far; with all of them, say so.
addEventListener("message", (/** @type {MessageEvent<Asked>} */ { data }) => {
  const { votes, shape, most } = data;
  /** @type {Seen[]} */
  const all = [];
  /** @type {import("./capsules.js").Numbers | undefined} */
  let prior;
  while (all.length < most) {
    const steps = dynamicRouting(votes, shape, Math.min(CHUNK, most - all.length) + 1, { prior });
    prior = steps.at(-1)?.b; // the next round begins with it
    all.push(...steps.slice(0, -1).map((step) => seen(step, data)));
    postMessage(all);
  }
});
