// @ts-check
// Numbers as bars: ten lengths, each with its value as text, or the numbers of a capsule in a row.

import { el, number, set } from "./kit.js";

/** @param {string} label  what they are
 * @param {string[]} [names]
 */
export function bars(label, names = [..."0123456789"]) {
  const rows = names.map((name) => {
    const [bar, value] = [el("i", { style: "width: 0" }), el("span", { class: "value" })];
    const row = el("li", {}, el("span", {}, name), el("span", { class: "track", "aria-hidden": true }, bar), value);
    return { row, bar, value };
  });
  return {
    list: el("ol", { class: "bars", "aria-label": label }, ...rows.map(({ row }) => row)),
    /** @param {ArrayLike<number>} values  from 0 to 1
     * @param {number[]} [marked]  rows that stand out
     * @param {number} [longest]  the value of a whole bar
     */
    show(values, marked = [], longest = 1) {
      rows.forEach(({ row, bar, value }, k) => {
        bar.style.width = `${100 * Math.min(1, values[k] / longest)}%`;
        value.textContent = values[k].toFixed(2);
        row.classList.toggle("marked", marked.includes(k));
      });
    },
  };
}

const MOST = 0.45; // a larger number of a capsule is rare, and its bar no longer

/** The numbers of a capsule, as bars up and down from a middle line.
 * @param {number} count
 */
export function columns(count) {
  const each = Array.from({ length: count }, () => el("i"));
  const before = each.map(() => el("i", { class: "before" }));
  const row = el("div", { class: "columns", role: "img" }, ...each.map((bar, k) => el("span", {}, bar, before[k])));
  /** @param {HTMLElement} bar @param {number} value */
  const put = (bar, value) => {
    bar.style.height = `${Math.min(50, (50 * Math.abs(value)) / MOST)}%`;
    bar.classList.toggle("down", value < 0);
  };
  return {
    row,
    /** @param {ArrayLike<number>} values @param {string} label  what they are
     * @param {ArrayLike<number>} [were]  before they were moved: outlines
     */
    show(values, label, were) {
      each.forEach((bar, k) => put(bar, values[k]));
      before.forEach((bar, k) => {
        bar.hidden = !were;
        if (were) put(bar, were[k]);
      });
      set(row, { "aria-label": `${label}: ${Array.from(values, (x) => number(x)).join(", ")}` });
    },
  };
}
