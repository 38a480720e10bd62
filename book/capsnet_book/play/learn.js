// @ts-check
// A small capsule network that learns while the reader looks on: its curves, and a dozen held-out digits.

import { aDigit, argmax, button, choice, drawDigit, el, number, picture, readState, set, slider, unpack, writeState } from "./kit.js";
import { plot } from "./plot.js";

/** @typedef {import("./learning.js").Settings} Settings */
/** @typedef {import("./learner.js").Report} Report */
/** @typedef {{ says: string, losses: [number, number][], correct: [number, number][] }} Run  against the images seen */

const NAME = "learn";
const RATES = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03];
const OVER = { parents: "parents", children: "children" };
const ITERATIONS = { 1: "1", 2: "2", 3: "3" };
const HIGHEST = 1; // loss that is drawn

const percent = (/** @type {number} */ part) => `${number(100 * part, 1)} %`;
const told = (/** @type {Settings} */ { rate, downWeight, iterations, over }) =>
  `learning rate ${rate}, λ = ${downWeight}, ${iterations === 1 ? "1 iteration" : `${iterations} iterations`}${over === "parents" ? "" : ", softmax over the children"}`;

/** A held-out digit: image, reconstruction, ten lengths, and the class of the longest.
 * @param {ArrayLike<number>} image @param {number} label
 */
function card(image, label) {
  const [own, drawn] = [`the image: ${aDigit(label)}`, "the reconstruction"].map(picture);
  const each = Array.from({ length: 10 }, (_, k) => el("i", { class: k === label ? "true" : null }));
  const ten = el("div", { class: "ten", role: "img" }, ...each);
  const named = el("figcaption");
  drawDigit(own, image);
  return {
    box: el("figure", {}, own, drawn, ten, named),
    /** @param {ArrayLike<number>} norms @param {ArrayLike<number>} reconstruction */
    show(norms, reconstruction) {
      const longest = argmax(norms);
      each.forEach((bar, k) => (bar.style.height = `${100 * norms[k]}%`));
      set(ten, { "aria-label": `ten lengths; the longest is that of ${longest}: ${number(norms[longest])}` });
      named.textContent = longest === label ? `${label}` : `${longest}, not ${label}`;
      named.className = longest === label ? "" : "wrong";
      drawDigit(drawn, reconstruction);
    },
  };
}

/** @param {HTMLElement} stage */
export async function mount(stage) {
  // A training run by PyTorch, which is shown until the reader starts one.
  const { batch, every, rate, losses, correct, lengths, images, labels, drawn } = unpack(await (await fetch(new URL("data/course.json", import.meta.url))).json());
  /** @type {Settings} */
  const first = { rate, downWeight: 0.5, iterations: 3, over: "parents" };
  const asked = readState(NAME);
  const state = { ...first };
  if (RATES.includes(Number(asked.rate))) state.rate = Number(asked.rate);
  if (Number(asked.lambda) >= 0 && Number(asked.lambda) <= 1) state.downWeight = Number(asked.lambda);
  if (Object.hasOwn(ITERATIONS, asked.iterations)) state.iterations = Number(asked.iterations);
  if (asked.over === "children") state.over = asked.over;

  const steps = (correct.length - 1) * every; // of a whole run
  const last = steps * batch; // images
  const [perLoss, perCount] = [last / losses.length, every * batch];
  /** @type {Run} */
  const recorded = {
    says: `recorded with PyTorch: ${told(first)}`,
    losses: losses.map((/** @type {number} */ loss, /** @type {number} */ k) => [(k + 1) * perLoss, loss]),
    correct: correct.map((/** @type {number} */ part, /** @type {number} */ k) => [k * perCount, part]),
  };
  let [before, now] = /** @type {(Run | undefined)[]} */ ([undefined, recorded]);
  /** @type {Worker | undefined} */
  let worker;
  let training = false;
  let waiting = false; // for the worker's answer, of which one at a time is on its way
  let [began, spent] = [0, 0]; // milliseconds
  let settings = state;

  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => (part * last) / 1000);
  const axes = { width: 320, height: 190, x: ticks, xName: "training images, in thousands" };
  const graphs = [
    { ...plot({ ...axes, y: [0, 0.5, HIGHEST], yName: "loss", label: "The loss against the number of training images seen." }), points: (/** @type {Run} */ run) => run.losses.map(([at, loss]) => [at, Math.min(HIGHEST, loss)]) },
    { ...plot({ ...axes, y: [0, 50, 90, 100], yName: "held-out digits classified correctly, %", label: "Part of the held-out digits that are classified correctly, against the number of training images seen." }), points: (/** @type {Run} */ run) => run.correct.map(([at, part]) => [at, 100 * part]) },
  ].map((graph) => ({ ...graph, lines: ["before", "now"].map((which) => el("polyline", { class: `curve ${which}` })) }));
  for (const { svg, lines } of graphs) svg.append(...lines);

  const size = drawn.length / labels.length;
  const part = (/** @type {Uint8Array} */ pixels, /** @type {number} */ n) => Float32Array.from(pixels.subarray(n * size, (n + 1) * size), (x) => x / 255);
  const cards = Array.from(/** @type {Uint8Array} */ (labels), (label, n) => card(part(images, n), label));
  const said = el("p", { class: "said", "aria-live": "polite" });
  const count = el("p", { class: "count" });
  const legends = ["now", "before"].map((which) => el("p", { class: `legend ${which}` }));
  const main = button("", () => (training ? pause() : worker && seen() < last ? go() : start()));
  const again = button("Start again", () => start());
  const reset = button("Reset", () => {
    stop();
    [before, now] = [undefined, recorded];
    change(first);
    showRecorded();
  });
  const rates = slider("learning rate", { min: 0, max: RATES.length - 1, step: 1, value: RATES.indexOf(state.rate), says: (k) => `${RATES[k]}`, moved: (k) => change({ rate: RATES[k] }) });
  const down = slider("down-weight λ", { min: 0, max: 1, step: 0.05, value: state.downWeight, moved: (to) => change({ downWeight: to }) });
  const iterations = choice("routing iterations", ITERATIONS, /** @type {any} */ (`${state.iterations}`), (to) => change({ iterations: Number(to) }));
  const over = choice("softmax over", OVER, state.over, (to) => change({ over: to }));
  stage.append(
    el("div", { class: "bar" }, main, again, reset, said),
    el("div", { class: "graphs" }, ...graphs.map(({ svg }) => svg)),
    el("div", { class: "legends" }, ...legends, count),
    el("div", { class: "cards" }, ...cards.map(({ box }) => box)),
    el("div", { class: "settings" }, rates, iterations, down, over),
  );

  const seen = () => now?.losses.at(-1)?.[0] ?? 0;
  const differs = () => JSON.stringify(state) !== JSON.stringify(settings);

  /** @param {Partial<Settings>} to */
  function change(to) {
    Object.assign(state, to);
    [rates.value, down.value] = [RATES.indexOf(state.rate), state.downWeight];
    [iterations.value, over.value] = [/** @type {any} */ (`${state.iterations}`), state.over];
    const { rate: fast, downWeight: lambda, iterations: times, over: which } = state;
    const changed = JSON.stringify(state) !== JSON.stringify(first);
    writeState(NAME, changed ? { rate: fast, lambda, iterations: times, over: which } : {});
    if (worker && differs()) said.textContent = "Press Start again to train with these settings, and compare.";
    else say();
  }

  function say() {
    if (!worker) said.textContent = "Press Train: the digits (0.5 MB) are loaded, and a network learns them on your machine.";
    else if (training) said.textContent = "Training on your machine …";
    else if (seen() < last) said.textContent = `Paused after ${seen().toLocaleString("en")} images.`;
    else said.textContent = `Done: ${last.toLocaleString("en")} images in ${Math.round(spent / 1000)} s on your machine. Change a setting and train again.`;
  }

  function draw() {
    for (const { lines, points, px, py } of graphs)
      lines.forEach((line, k) => set(line, { points: [before, now].map((run) => (run ? points(run).map(([x, y]) => `${px(x / 1000).toFixed(1)},${py(y).toFixed(1)}`).join(" ") : ""))[k] }));
    [now, before].forEach((run, k) => {
      legends[k].textContent = run ? `${k ? "before" : "now"}: ${run.says}` : "";
    });
    const right = now?.correct.at(-1)?.[1];
    const loss = now?.losses.at(-1)?.[1];
    count.textContent = right === undefined ? "" : `${seen().toLocaleString("en")} images: ${percent(right)} of the held-out digits are classified correctly${loss === undefined ? "." : `, loss ${number(loss)}.`}`;
    main.textContent = training ? "Pause" : worker && seen() < last ? "Continue" : "Train";
    again.disabled = !worker;
  }

  function showRecorded() {
    cards.forEach(({ show }, n) => show(lengths.subarray(10 * n, 10 * n + 10), part(drawn, n)));
    say();
    draw();
  }

  function stop() {
    worker?.terminate();
    worker = undefined;
    training = waiting = false;
  }

  function pause() {
    training = false; // the answer that is on its way is drawn, and no other is asked for
    spent += performance.now() - began;
    say();
    draw();
  }

  /** @param {{ start?: Settings }} question */
  function ask(question) {
    if (waiting) return;
    waiting = true;
    worker?.postMessage(question);
  }

  function go() {
    [training, began] = [true, performance.now()];
    ask({});
    say();
    draw();
  }

  function start() {
    stop();
    settings = { ...state };
    if (now?.losses.length) before = now; // a run that could not begin is nothing to compare with
    now = { says: told(settings), losses: [], correct: [] };
    spent = 0;
    const mine = (worker = new Worker(new URL("./learner.js", import.meta.url), { type: "module" }));
    worker.onmessage = ({ data }) => hear(mine, data);
    worker.onerror = (event) => hear(mine, { error: event.message || "The worker could not be started." });
    [training, began] = [true, performance.now()];
    ask({ start: settings });
    said.textContent = "Loading the digits: 0.5 MB …";
    draw();
  }

  /** @param {Worker} from @param {{ report?: Report, error?: string }} answer */
  function hear(from, { report, error }) {
    if (from !== worker || !now) return from.terminate(); // of a run that was given up
    waiting = false;
    if (!stage.isConnected) return stop();
    if (!report) {
      stop();
      draw();
      return void (said.textContent = `The network could not be trained: ${error}. Press Train to try again.`);
    }
    const at = report.steps * batch;
    if (report.loss !== undefined) now.losses.push([at, report.loss]);
    if (report.correct !== undefined) now.correct.push([at, report.correct]);
    report.digits.forEach(({ lengths: norms, drawn: reconstruction }, n) => cards[n].show(norms, reconstruction));
    if (!training) return draw();
    if (!report.steps) say();
    if (at >= last) return pause();
    ask({});
    draw();
  }

  showRecorded();
}
