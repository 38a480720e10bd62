// @ts-check
// Which numbers of the channels make a child: capsnet/layers.py's way, and the shortcut that is wrong.

const TYPES = 32;
const DIM = 8;
const SIDE = 6;
export const PLACES = SIDE * SIDE;
export const CHILDREN = TYPES * PLACES;

/** @typedef {"permute" | "reshape"} Read */

/** Where a child's eight numbers stand, flat in [256, 6, 6].
 * @param {number} child
 * @param {Read} read
 */
export function members(child, read) {
  const [type, place] = [Math.floor(child / PLACES), child % PLACES];
  return Array.from({ length: DIM }, (_, d) => (read === "permute" ? (DIM * type + d) * PLACES + place : DIM * child + d));
}

/** Whose number it is that stands there.
 * @param {number} at  flat in [256, 6, 6]
 * @param {Read} read
 */
export function owner(at, read) {
  const [channel, place] = [Math.floor(at / PLACES), at % PLACES];
  return read === "permute" ? Math.floor(channel / DIM) * PLACES + place : Math.floor(at / DIM);
}

/** What a number in [256, 6, 6] is called.
 * @param {number} at
 */
export function place(at) {
  return { channel: Math.floor(at / PLACES), row: Math.floor((at % PLACES) / SIDE), column: at % SIDE };
}
