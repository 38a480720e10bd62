// @ts-check
// Procedure 1 with one line changed: what its variables then are for a digit, and the test that fails.

import { bars } from "./bars.js";
import { argmax, button, drawDigit, el, picture, readState, set, writeState } from "./kit.js";

const NAME = "breaks";
const PARENTS = 10;
const VARIABLES = { c: "c =", s: "s =", v: "v =", b: "b = b" }; // where each is computed
const FILE = "tests/capsnet/test_functional.py";

/** @typedef {{ name: string, line: string, instead: string, says: string, test: string }} Change */

/**
 * @param {HTMLElement} stage
 * @param {{ code: string[], changes: Change[], lengths: Float32Array, b: Uint8Array, c: Uint8Array, s: Uint8Array, v: Uint8Array }} data
 *   the loop; what can be changed; for the loop as it is and after each change, ten lengths and four pictures
 */
export async function mount(stage, { code, changes, lengths, ...variables }) {
  let taken = 0; // 0 as it is, or 1 + the number of a change

  const pictures = Object.fromEntries(Object.keys(VARIABLES).map((name) => [name, picture(`${name} of the digit, a row for each parent`)]));
  const lines = code.map((line) => {
    const [was, text] = [el("del"), el("ins")];
    const name = Object.entries(VARIABLES).find(([, start]) => line.trim().startsWith(start))?.[0];
    const row = el("li", {}, el("code", {}, was, text), ...(name ? [el("span", { class: `tint of-${name}` }, pictures[name])] : []));
    return { row, was, text };
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
    lines.forEach(({ row, was, text }, k) => {
      const here = change && code[k].includes(change.line);
      row.classList.toggle("changed", Boolean(here));
      was.hidden = !here;
      was.textContent = here ? `${code[k]}\n` : "";
      text.textContent = here ? code[k].replace(change.line, change.instead) : code[k];
    });
    for (const [name, canvas] of Object.entries(pictures)) {
      const all = variables[/** @type {"b" | "c" | "s" | "v"} */ (name)];
      const size = all.length / (1 + changes.length);
      drawDigit(canvas, Float32Array.from(all.subarray(size * taken, size * (taken + 1)), (x) => x / 255), size / PARENTS);
    }
    const own = (/** @type {number} */ k) => lengths.subarray(PARENTS * k, PARENTS * (k + 1));
    right.show(own(0), [argmax(own(0))]);
    after.textContent = change ? "after the change" : "after no change yet";
    wrong.show(own(taken), [argmax(own(taken))]);
    says.replaceChildren(change ? `${change.says} ` : "Change a line of the loop. The pictures at its right are this 7’s variables in the third iteration, a row for each parent.",
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
