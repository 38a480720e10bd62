// @ts-check
// Affine changes of an image, as the chapter of bent digits makes them.

/** A = rotation · shear · scale, row by row; the image's y counts downwards.
 * @param {number} degrees @param {number} shear @param {number} size
 * @returns {[number, number, number, number]}
 */
export function matrix(degrees, shear, size) {
  const [cos, sin] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  return [cos * size, (cos * shear - sin) * size, sin * size, (sin * shear + cos) * size];
}

/** An image whose points x have moved to A x, about its middle: each pixel is fetched from where it
 * comes from, between four pixels; outside all is black.
 * @param {ArrayLike<number>} image  side × side
 * @param {[number, number, number, number]} A
 */
export function bend(image, [a, b, c, d]) {
  const side = Math.sqrt(image.length);
  const middle = (side - 1) / 2;
  const det = a * d - b * c;
  const pixel = (/** @type {number} */ x, /** @type {number} */ y) =>
    x >= 0 && y >= 0 && x < side && y < side ? image[y * side + x] : 0;
  return Float32Array.from({ length: image.length }, (_, k) => {
    const [x, y] = [(k % side) - middle, Math.floor(k / side) - middle];
    const [fromX, fromY] = [(d * x - b * y) / det + middle, (a * y - c * x) / det + middle];
    const [left, top] = [Math.floor(fromX), Math.floor(fromY)];
    const [p, q] = [fromX - left, fromY - top];
    return (1 - q) * ((1 - p) * pixel(left, top) + p * pixel(left + 1, top)) +
      q * ((1 - p) * pixel(left, top + 1) + p * pixel(left + 1, top + 1));
  });
}
