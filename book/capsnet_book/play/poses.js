// @ts-check
// Poses of parts and wholes, as book/capsnet_book/parts.py has them.

/** @typedef {[number, number, number, number]} Pose  where a middle is, and the arrow to the top */

const radians = (/** @type {number} */ degrees) => (degrees * Math.PI) / 180;

/** A pose, turned about (0, 0), counter-clockwise.
 * @param {Pose} where @param {number} degrees @returns {Pose}
 */
export function turned([x, y, p, q], degrees) {
  const [cos, sin] = [Math.cos(radians(degrees)), Math.sin(radians(degrees))];
  return [cos * x - sin * y, sin * x + cos * y, cos * p - sin * q, sin * p + cos * q];
}

/** The pose of a thing whose middle is there, turned counter-clockwise by so many degrees.
 * @param {number} x @param {number} y @param {number} turn @returns {Pose}
 */
export function pose(x, y, turn) {
  const [, , p, q] = turned([0, 0, 0, 1], turn);
  return [x, y, p, q];
}

/** By how many degrees a thing is turned counter-clockwise.
 * @param {Pose} where
 */
export const turnOf = ([, , p, q]) => (Math.atan2(-p, q) * 180) / Math.PI;

/** An outline at a pose, as the points of a polygon.
 * @param {[number, number][]} corners  around (0, 0), top up
 * @param {Pose} where
 */
export const placed = (corners, [x, y, p, q]) =>
  corners.map(([right, up]) => `${x + right * q + up * p},${-(y - right * p + up * q)}`).join(" ");
