// @ts-check
// One step along the sign of a gradient, and what both networks of the first page say of the image it leads to.

import { onCall } from "./asking.js";
import { bars } from "./bars.js";
import { aDigit, argmax, button, choice, digitChoice, drawDigit, el, picture, readState, set, slider, writeState } from "./kit.js";

const NAME = "attacks";
export const caption = "A single step along its own gradient fools each of these two networks on all ten digits, at some ε of at most 0.3, " +
  "and a step that was made for one usually fools the other, too. Choose the digit, the gradient and ε. The two are the small networks of the " +
  "first page, not those that this chapter compares, and ten digits do not show which is harder to fool.";
const MOST = 0.3;
const NETWORKS = { cnn: "CNN", capsules: "capsules" };
/** @typedef {keyof typeof NETWORKS} Network */
const START = { digit: 7, against: /** @type {Network} */ ("capsules"), epsilon: 0.1 };

/** @param {HTMLElement} stage
 * @param {{ images: Uint8Array, signs: Record<Network, Int8Array>, bytes: Record<Network, number> }} data
 *   a test image of each digit, and the sign of each network's gradient there; how large its weights are
 */
export async function mount(stage, { images, signs, bytes }) {
  const state = { ...START };
  let turn = 0; // the reader's newest wish

  const says = el("p", { class: "says", "aria-live": "polite" });
  const loading = (/** @type {string} */ text) => (says.textContent = text);
  const networks = { cnn: onCall("page-cnn", bytes.cnn, loading), capsules: onCall("page", bytes.capsules, loading) };
  const which = digitChoice("digit", state.digit, (digit) => update({ digit }));
  const against = choice("gradient of", NETWORKS, state.against, (to) => update({ against: to }));
  const far = slider("ε", { min: 0, max: MOST, step: 0.01, value: state.epsilon, moved: (epsilon) => update({ epsilon }) });
  const [step, attacked] = [picture("the step"), picture("the attacked image")];
  const [chances, lengths] = [bars("the ten probabilities of the CNN"), bars("the lengths of the ten capsules")];

  /** @param {Partial<typeof state>} to */
  async function update(to) {
    const mine = ++turn;
    const { digit, against: whose, epsilon } = Object.assign(state, to);
    [which.value, against.value, far.value] = [`${digit}`, whose, epsilon];
    writeState(NAME, Object.entries(START).every(([key, usual]) => state[/** @type {keyof typeof START} */ (key)] === usual) ? {} : state);
    const part = (/** @type {Uint8Array | Int8Array} */ all) => Array.from(all.subarray(784 * digit, 784 * (digit + 1)));
    const signed = part(signs[whose]);
    const image = Float32Array.from(part(images), (level, k) => Math.max(0, Math.min(1, level / 255 + epsilon * signed[k])));
    drawDigit(step, signed.map((sign) => (1 + sign) / 2));
    drawDigit(attacked, image);
    set(step, { "aria-label": `the sign of the gradient of the ${NETWORKS[whose]}: white pixels become lighter, black ones darker` });
    set(attacked, { "aria-label": `${aDigit(digit)}, each pixel changed by at most ${epsilon.toFixed(2)}` });
    set(stage, { "aria-busy": "true" });
    try {
      const [cnn, seen] = await Promise.all([networks.cnn({ look: image }), networks.capsules({ look: image })]);
      if (mine !== turn) return;
      const found = { cnn, capsules: seen.lengths };
      chances.show(cnn, [argmax(cnn)]);
      lengths.show(found.capsules, [seen.longest]);
      const [first, second] = /** @type {Network[]} */ (Object.keys(NETWORKS)).map((name) => {
        const answer = argmax(found[name]);
        return `the ${NETWORKS[name]} ${name === "cnn" ? "answers" : "answer"} ${answer}${answer === digit ? "" : ", which is wrong"}`;
      });
      says.textContent = `At ε = ${epsilon.toFixed(2)} ${first}, and ${second}.`;
    } catch (error) {
      says.textContent = `The networks cannot answer: ${/** @type {Error} */ (error).message}`;
    }
    set(stage, { "aria-busy": "false" });
  }

  stage.append(
    which,
    el("div", { class: "bar" }, against, button("Reset", () => update(START))),
    far,
    el("div", { class: "abreast" },
      el("figure", {}, step, el("figcaption", {}, "sign of the gradient")),
      el("figure", {}, attacked, el("figcaption", {}, "image + ε · sign")),
      el("div", {}, "CNN: probability", chances.list),
      el("div", {}, "capsules: ‖v‖", lengths.list)),
    says,
  );
  const { digit, against: whose, epsilon } = readState(NAME);
  const asked = Number(epsilon ?? NaN);
  await update({
    ...(/^\d$/.test(digit ?? "") ? { digit: Number(digit) } : {}),
    ...(Object.hasOwn(NETWORKS, whose) ? { against: /** @type {Network} */ (whose) } : {}),
    ...(asked >= 0 && asked <= MOST ? { epsilon: asked } : {}),
  });
}
