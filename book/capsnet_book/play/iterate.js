// @ts-check
// Routing that does not stop: one digit's votes, routed here for up to 300 iterations.

import { bars } from "./bars.js";
import { button, el, readState, set, slider, still, writeState } from "./kit.js";
import { plot } from "./plot.js";

/** @typedef {import("./routed.js").Seen} Seen */

const NAME = "iterate";
const MOST = 300;
const BINS = 18; // of a child's largest share, from a tenth to all
const HALF = 0.5;

// Where the slider stops: every iteration at first, then about as far apart as on a logarithmic axis.
const TIMES = [...new Set(Array.from({ length: 61 }, (_, k) => Math.round(MOST ** (k / 60))))];

/** @param {HTMLElement} stage
 * @param {{ votes: Float32Array & { shape: number[] }, label: number, trained: number }} data
 */
export async function mount(stage, { votes, label, trained }) {
  const [children, parents, size] = votes.shape;
  /** @type {Seen[]} */
  let all = [];
  const nearest = (/** @type {number} */ time) => TIMES.reduce((best, each, k) => (Math.abs(each - time) < Math.abs(TIMES[best] - time) ? k : best), 0);
  const start = nearest(trained);
  const state = { at: nearest(+(readState(NAME).iterations ?? trained)) };

  const narrow = matchMedia("(max-width: 576px)").matches;
  const course = plot({ width: narrow ? 340 : 620, height: 190, x: [1, trained, 10, 30, 100, MOST].map(Math.log), y: [0, 0.5, 1], xName: "iteration", yName: "ten lengths ‖v‖", says: (at) => `${Math.round(Math.exp(at))}`, label: "Ten lengths over the iterations: one is near 1 after three, all are after thirty." });
  const lines = Array.from({ length: parents }, (_, k) => el("polyline", { class: `curve ${k === label ? "v" : "other"}` }));
  const now = el("line", { class: "now", y1: course.py(0), y2: course.py(1) });
  course.svg.append(...lines, now);
  const shares = plot({ width: 320, height: 250, x: [0.1, 0.5, 1], y: [0, 0.5, 1], xName: "its largest coefficient c", yName: "part of the children", label: "Children by their largest coupling coefficient." });
  const columns = Array.from({ length: BINS }, (_, k) => {
    const [from, to] = [k, k + 1].map((edge) => shares.px(0.1 + (0.9 * edge) / BINS));
    return el("rect", { class: "c", x: from, width: to - from - 1 });
  });
  shares.svg.append(...columns);
  const ten = bars("Lengths of the ten digit capsules");
  const said = el("p", { class: "said", "aria-live": "polite" });
  const time = slider("iterations", { min: 0, max: TIMES.length - 1, step: 1, value: state.at, says: (at) => `${TIMES[at]}`, moved: (at) => moved(at) });
  let playing = 0;
  const play = button("Route", () => {
    if (still()) return moved(TIMES.length - 1);
    clearInterval(playing);
    moved(0);
    playing = window.setInterval(() => (state.at < TIMES.length - 1 ? moved(state.at + 1, playing) : clearInterval(playing)), 120);
  });
  stage.append(
    el("div", { class: "course" }, course.svg, time),
    el("div", { class: "bar" }, play, button("Reset", () => moved(start, 0, {})), said),
    ten.list,
    el("div", { class: "shares" }, shares.svg),
  );

  function draw() {
    const t = TIMES[state.at];
    time.value = state.at;
    set(now, { x1: course.px(Math.log(t)), x2: course.px(Math.log(t)) });
    lines.forEach((line, k) => set(line, { points: all.map(({ norms }, r) => `${course.px(Math.log(r + 1)).toFixed(1)},${course.py(norms[k]).toFixed(1)}`).join(" ") }));
    const shown = all[t - 1];
    if (!shown) return void (said.textContent = "Routing …");
    ten.show(shown.norms, [label]);
    columns.forEach((column, k) => set(column, { y: shares.py(shown.counts[k] / children), height: shares.py(0) - shares.py(shown.counts[k] / children) }));
    const long = shown.norms.filter((norm) => norm > HALF).length;
    said.textContent = `Longer than a half: ${long} of ${parents} capsules. Giving more than half to one of them: ${shown.chosen} of ${children} children.`;
  }

  /** @param {number} at @param {number} [timer]  what moves it, if not the reader @param {Record<string, number>} [kept] */
  function moved(at, timer, kept) {
    if (timer !== playing) clearInterval(playing);
    state.at = at;
    draw();
    writeState(NAME, kept ?? { iterations: TIMES[at] });
  }

  draw();
  const worker = new Worker(new URL("./routed.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => {
    all = data;
    draw();
    if (all.length < MOST) return;
    worker.terminate();
    stage.dataset.routed = "";
  };
  worker.onerror = (event) => (said.textContent = event.message || "The worker could not be started.");
  worker.postMessage({ votes: Float64Array.from(votes), shape: { children, parents, size }, most: MOST, bins: BINS, half: HALF });
}
