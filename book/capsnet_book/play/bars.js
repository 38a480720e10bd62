// @ts-check
// Ten lengths as bars, each with its value as text.

import { el } from "./kit.js";

/** @param {string} label  what they are
 * @param {string[]} [names]
 */
export function bars(label, names = [..."0123456789"]) {
  const rows = names.map((name) => {
    const [bar, value] = [el("i"), el("span", { class: "value" })];
    const row = el("li", {}, el("span", {}, name), el("span", { class: "track", "aria-hidden": true }, bar), value);
    return { row, bar, value };
  });
  return {
    list: el("ol", { class: "bars", "aria-label": label }, ...rows.map(({ row }) => row)),
    /** @param {ArrayLike<number>} values  from 0 to 1
     * @param {number[]} [marked]  rows that stand out
     */
    show(values, marked = []) {
      rows.forEach(({ row, bar, value }, k) => {
        bar.style.width = `${100 * Math.min(1, values[k])}%`;
        value.textContent = values[k].toFixed(2);
        row.classList.toggle("marked", marked.includes(k));
      });
    },
  };
}
