// @ts-check
// Switch deviations on and see who has them all, or a network and see what it does otherwise.

import { button, el, readState, set, writeState } from "./kit.js";

const NAME = "switchboard";
export const caption = "More than half of the differences occur in only one implementation each, and no two implementations have the " +
  "same set of differences. Switch differences on to see which implementations have them all, or choose an " +
  "implementation to see all that it does differently.";

/** @typedef {{ name: string, says: string, change: string[], cost: string, who: string[] }} Deviation
 *  change: of the source, ours after "-", theirs after "+" */
/** @typedef {{ name: string, link: string, cost: string }} Network */

/** @param {HTMLElement} stage
 * @param {{ deviations: Deviation[], networks: Network[] }} data
 */
export async function mount(stage, { deviations, networks }) {
  const known = new Set(deviations.map(({ name }) => name));
  const start = [deviations[0].name];
  const asked = (readState(NAME).on ?? "").split(",").filter((name) => known.has(name));
  let on = new Set(asked.length ? asked : start);

  const has = (/** @type {Network} */ network) => deviations.filter(({ who }) => who.includes(network.name)).map(({ name }) => name);
  const theirs = new Map(networks.map((network) => [network, new Set(has(network))]));
  const names = networks.map((network) => button(network.name, () => moved(isAllOf(network) ? [] : has(network))));
  const switches = deviations.map(({ name, who }) => {
    const made = button(name, () => moved(on.has(name) ? [...on].filter((each) => each !== name) : [...on, name]));
    made.append(el("span", { class: "count" }, el("span", { class: "visually-hidden" }, ", networks: "), `${who.length}`));
    return made;
  });
  const found = el("p", { class: "said", "aria-live": "polite" });
  const told = el("div", { class: "told", role: "region", "aria-label": "What is switched on" });
  stage.append(
    el("div", { class: "bar", role: "group", "aria-label": "Networks" }, ...names),
    el("div", { class: "result" },
      el("div", { class: "bar" }, found, button("All off", () => moved([])), button("Reset", () => moved(start, {}))),
      told),
    el("div", { class: "bar switches", role: "group", "aria-label": "Deviations" }, ...switches),
  );

  /** Whether just this network's deviations are on. @param {Network} network */
  function isAllOf(network) {
    const own = theirs.get(network) ?? new Set();
    return own.size === on.size && [...on].every((name) => own.has(name));
  }

  const latestFirst = () => [...on].reverse().map((name) => /** @type {Deviation} */ (deviations.find((each) => each.name === name)));

  function draw() {
    const having = networks.filter((network) => [...on].every((name) => theirs.get(network)?.has(name)));
    networks.forEach((network, k) => {
      set(names[k], { "aria-pressed": isAllOf(network) });
      names[k].classList.toggle("out", !having.includes(network));
    });
    deviations.forEach(({ name, who }, k) => {
      set(switches[k], { "aria-pressed": on.has(name) });
      switches[k].classList.toggle("out", !on.has(name) && !having.some((network) => who.includes(network.name)));
    });
    const whole = networks.find(isAllOf);
    const link = whole && el("a", { href: whole.link }, whole.name);
    if (!on.size) found.replaceChildren("Nothing is on: this is the paper.");
    else if (link) found.replaceChildren("All of ", link, ".", whole.cost && ` Cost together: ${whole.cost}.`);
    else found.replaceChildren(having.length ? `${on.size === 1 ? "It is" : "They are all"} in ${having.length} of ${networks.length}: ${having.map(({ name }) => name).join(", ")}.` : "No network has all of these.");
    told.replaceChildren(...latestFirst().map(({ name, says, change, cost }) => el("div", {},
      el("p", {}, el("strong", {}, name), ` ${says} `, el("em", {}, `Cost: ${cost}.`)),
      el("details", {}, el("summary", {}, "code"),
        el("pre", {}, ...change.map((line) => el("span", { class: line[0] === "-" ? "gd" : "gi" }, `${line}\n`)))))));
    told.scrollTop = 0;
  }

  /** @param {string[]} to @param {Record<string, string>} [kept] */
  function moved(to, kept) {
    on = new Set(to);
    draw();
    writeState(NAME, kept ?? { on: to.join() });
  }
  draw();
}
