// @ts-check
// What is taken hold of: a chip for each digit; a slider that says what it changes.

import { digitChoice, el, set, signed, slider } from "./kit.js";

/** A chip for each digit.
 * @param {string} legend @param {(digit: number) => void} chosen
 */
export function chips(legend, chosen) {
  const field = digitChoice(legend, undefined, chosen);
  field.classList.add("chips");
  return field;
}

/** A slider, and beside it a signed bar for each property that it changes.
 * @param {string} name @param {string[]} properties @param {Parameters<typeof slider>[1]} options
 */
export function knob(name, properties, options) {
  const one = slider(name, options);
  const rects = properties.map((_, k) => el("rect", { x: 32 * k + 10, width: 12 }));
  const middle = el("path", { d: `M0 12H${32 * rects.length}` });
  const bars = el("svg", { viewBox: `0 0 ${32 * rects.length} 24`, role: "img" }, middle, ...rects);
  const line = el("div", { class: "knob" }, one, bars);
  /** @param {number} value @param {ArrayLike<number>} changes @param {number} most */
  const show = (value, changes, most) => {
    one.value = value;
    rects.forEach((rect, k) => {
      const height = Math.min(12, (12 * Math.abs(changes[k])) / most);
      set(rect, { y: changes[k] > 0 ? 12 - height : 12, height });
    });
    const says = properties.map((property, k) => `${property} ${signed(changes[k])}`).join(", ");
    set(bars, { "aria-label": `more of ${name} changes ${says}` });
  };
  return { line, show };
}
