// @ts-check
// Procedure 1 with one line changed: what its variables then are for a digit, and the test that fails.

import { bars } from "./bars.js";
import { argmax, button, drawDigit, el, picture, readState, set, writeState } from "./kit.js";

const NAME = "breaks";
export const caption = "Five of six changed lines change the lengths of this 7’s ten capsules, and a test fails for each of " +
  "the five. Press a button to change a line.";
const PARENTS = 10;
const VARIABLES = { c: "c =", s: "s =", v: "v =", b: "b = b" }; // where each is computed
const FILE = "tests/capsnet/test_functional.py";

/** @typedef {{ name: string, line: string, instead: string, says: string, test: string }} Change */

/**
 * @param {HTMLElement} stage
 * @param {{ code: string[], changes: Change[], lengths: Float32Array, b: Uint8Array, c: Uint8Array, s: Uint8Array, v: Uint8Array }} data
 *   the loop; what can be changed; for the loop as it is and after each change, ten lengths and four pictures,
 *   each of them in shades up to its own largest value
 */
export async function mount(stage, { code, changes, lengths, ...variables }) {
  let taken = 0; // 0 as it is, or 1 + the number of a change

  const pictures = Object.fromEntries(Object.keys(VARIABLES).map((name) => [name, picture(`${name} of the digit, a row for each parent`)]));
  // A line and what it becomes lie on each other, so that its row is as high for each of them.
  const lines = code.map((line) => {
    const indent = { style: `--indent: ${line.search(/\S/)}` };
    const forms = [{ k: 0, form: el("code", indent, line.trim()) }];
    changes.forEach(({ line: part, instead }, n) => {
      const [before, after] = line.trim().split(part);
      if (after !== undefined) forms.push({ k: n + 1, form: el("code", indent, before, el("del", {}, part), " ", el("ins", {}, instead), after) });
    });
    const name = Object.entries(VARIABLES).find(([, start]) => line.trim().startsWith(start))?.[0];
    const row = el("li", {}, el("div", { class: "forms" }, ...forms.map(({ form }) => form)),
      ...(name ? [el("span", { class: `tint of-${name}` }, pictures[name])] : []));
    return { row, forms };
  });
  const [right, wrong] = [bars("the ten lengths as they are"), bars("the ten lengths after the change")];
  const after = el("p", { class: "name" });
  const says = el("p", { class: "says", "aria-live": "polite" });
  const buttons = ["nothing", ...changes.map(({ name }) => name)].map((name, k) => button(name, () => take(k)));
  const reset = button("Reset", () => take(0));

  /** @param {number} k */
  function take(k) {
    taken = k;
    show();
    writeState(NAME, k ? { change: k } : {});
  }

  function show() {
    const change = changes[taken - 1];
    buttons.forEach((each, k) => set(each, { "aria-pressed": k === taken }));
    for (const { row, forms } of lines) {
      const shown = forms.find(({ k }) => k === taken) ?? forms[0];
      for (const { form } of forms) form.style.visibility = form === shown.form ? "" : "hidden";
      row.classList.toggle("changed", shown.k > 0);
    }
    for (const [name, canvas] of Object.entries(pictures)) {
      const all = variables[/** @type {"b" | "c" | "s" | "v"} */ (name)];
      const size = all.length / (1 + changes.length);
      drawDigit(canvas, Float32Array.from(all.subarray(size * taken, size * (taken + 1)), (x) => x / 255), size / PARENTS);
    }
    const own = (/** @type {number} */ k) => lengths.subarray(PARENTS * k, PARENTS * (k + 1));
    const longest = Math.max(1, ...own(taken)); // both are drawn to one scale
    right.show(own(0), [argmax(own(0))], longest);
    after.textContent = change ? "after the change" : "after no change yet";
    wrong.show(own(taken), [argmax(own(taken))], longest);
    says.replaceChildren(change ? `${change.says} ` : "Change a line of the loop. The pictures at its right are this 7’s variables in the third iteration, a row for each parent, in shades from 0 to their largest value.",
      ...(change?.test ? ["Fails: ", el("code", {}, `${FILE}::${change.test}`)] : []));
  }

  stage.append(
    el("div", { class: "bar changes" }, el("span", {}, "change"), ...buttons, reset),
    el("ol", { class: "loop" }, ...lines.map(({ row }) => row)),
    says,
    el("div", { class: "both" }, el("div", {}, el("p", { class: "name" }, "lengths ‖v‖ as it is"), right.list),
      el("div", {}, after, wrong.list)),
  );
  const asked = Number(readState(NAME).change);
  if (Number.isInteger(asked) && asked > 0 && asked <= changes.length) taken = asked;
  show();
}
