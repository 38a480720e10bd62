// @ts-check
// Finds the digit of a picture in a thread of its own, so that the page can be used meanwhile.

import { digit, Refused, toGrey, WORKING_SIZE } from "./picture.js";

/** @typedef {import("./plane.js").Plane} Plane */
/** @typedef {{ grey?: Plane, digit?: import("./picture.js").Digit, refused?: string, ink?: Plane }} Found */

/** The pixels of a picture, at most four times as many across as are needed.
 * @param {Blob | ImageBitmap} picture
 */
async function pixels(picture) {
  const bitmap = await createImageBitmap(picture, { colorSpaceConversion: "none" }).catch(() => {
    throw new Refused("This browser cannot read it as a picture. Try a PNG or a JPEG.");
  });
  const ratio = Math.min(1, (4 * WORKING_SIZE) / Math.max(bitmap.width, bitmap.height));
  const [width, height] = [bitmap.width, bitmap.height].map((side) => Math.max(1, Math.round(side * ratio)));
  const context = new OffscreenCanvas(width, height).getContext("2d");
  if (!context) throw new Refused("This browser cannot draw the picture.");
  context.imageSmoothingQuality = "high";
  context.drawImage(bitmap, 0, 0, width, height);
  bitmap.close();
  return context.getImageData(0, 0, width, height);
}

addEventListener("message", async (/** @type {MessageEvent<Blob | ImageBitmap>} */ { data }) => {
  /** @type {Found} */
  const found = {};
  try {
    found.grey = toGrey(await pixels(data));
    found.digit = digit(found.grey);
  } catch (error) {
    found.refused = error instanceof Error ? error.message : String(error);
    if (error instanceof Refused) found.ink = error.ink;
  }
  postMessage(found);
});
