// @ts-check
// A picture of the reader's own, on the front page and in "Train on your own images": a file, what is pasted, or what
// the camera sees. Shows what is found in it, stage by stage, and keeps the reader's failures in this browser.

import { onCall } from "./asking.js";
import { bars } from "./bars.js";
import { aDigit, argmax, button, drawDigit, el, keep, kept, picture, readState, set, writeState } from "./kit.js";
import { SIDE } from "./pad.js";

/** @typedef {import("./plane.js").Plane} Plane */
/** @typedef {{ cnn: number, capsules: number }} Answers  a digit each, or -1 for no digit */
/** @typedef {Answers & { pixels: string, digit: number }} Failure  what it was, and the image, a byte a pixel in base64 */

const KEPT = "failures"; // the name under which the browser keeps them
const MOST = 60; // of them
const FRAME = "#ff9d00"; // on any grey
const EMPTY = new Float32Array(SIDE * SIDE);

/** @returns {Failure[]} */
function failuresKept() {
  try {
    const failures = JSON.parse(kept(KEPT) || "[]");
    if (Array.isArray(failures)) return failures;
  } catch {
    // What another page keeps under this name.
  }
  return [];
}

/** @param {Failure} failure */
const imageOf = ({ pixels }) => Float32Array.from(atob(pixels), (letter) => letter.charCodeAt(0) / 255);
/** @param {Float32Array} image */
const pixelsOf = (image) => btoa(String.fromCharCode(...image.map((level) => Math.round(255 * level))));
const named = (/** @type {number} */ digit) => (digit < 0 ? "no digit" : String(digit));

/** The panel, and the failures. `take` puts an image before the networks, or nothing, with the name that `read` was
 * given; `answers` is what they say of it, once both have; `leave` goes back to the pad.
 * @param {{ take: (image?: Float32Array, name?: string) => void, answers: () => Answers | undefined, leave: () => void }} front
 */
export function picturePanel({ take, answers, leave }) {
  const finder = new Worker(new URL("./finder.js", import.meta.url), { type: "module" });
  let failures = failuresKept();
  /** @type {Float32Array | undefined} */
  let image; // the digit that was found
  /** @type {MediaStream | undefined} */
  let film;
  let last = Promise.resolve(); // one picture after the other

  const canvas = () => el("canvas", { class: "digit", role: "img" });
  const stages = ["cut", "scaled", "centred"].map((name) => ({ name, canvas: canvas() }));
  const found = canvas();
  const [told, verdict] = ["told", "verdict"].map((name) => el("p", { class: name, "aria-live": "polite" }));
  const file = el("input", { type: "file", accept: "image/*", hidden: true, "aria-label": "a picture of a digit", onchange: () => read(file.files[0]) });
  const choose = button("Choose a file", () => file.click());
  const camera = button("Camera", () => (film ? hold() : start()));
  const back = button("Draw instead", () => {
    hold();
    leave();
  });
  const digits = Array.from({ length: 10 }, (_, k) => button(String(k), () => judge(k), { "aria-label": `it is ${aDigit(k)}` }));
  const list = el("ol", { class: "failures" });
  const count = el("p", { class: "head" });
  const shelf = el("div", { class: "shelf" }, count, list, button("Empty", () => save([]), { "aria-label": "Empty the gallery of failures" }));
  const gallery = el("div", { class: "gallery" },
    el("p", { class: "head" }, "Which digit is it?"), el("div", { class: "digits" }, ...digits), verdict, shelf);

  /** @param {string} text */
  const tell = (text) => text !== told.textContent && (told.textContent = text);

  /** @param {HTMLCanvasElement} at @param {Plane} plane @param {string} label @param {import("./plane.js").Box} [box] */
  function draw(at, { levels, width }, label, box) {
    drawDigit(at, levels.map((level) => level / 255), width);
    set(at, { "aria-label": label });
    const context = at.getContext("2d");
    if (!box || !context) return;
    Object.assign(context, { strokeStyle: FRAME, lineWidth: Math.max(1, width / 100) });
    context.strokeRect(box.left, box.top, box.width, box.height);
  }

  /** Find the digit of a picture, and have the networks look at it.
   * @param {Blob | ImageBitmap | null | undefined} picture @param {string} [name]
   */
  function read(picture, name) {
    if (!picture) return;
    if (picture instanceof Blob) hold();
    return (last = last.then(() => shown(picture, name)));
  }

  /** @param {Blob | ImageBitmap} picture @returns {Promise<import("./finder.js").Found>} */
  const ask = (picture) =>
    new Promise((resolve) => {
      finder.onmessage = ({ data }) => resolve(data);
      finder.onerror = ({ message }) => resolve({ refused: message || "The picture cannot be read in this browser." });
      finder.postMessage(picture);
    });

  /** @param {Blob | ImageBitmap} picture @param {string} [name] */
  async function shown(picture, name) {
    set(panel, { "aria-busy": "true" });
    const { grey, digit, refused, ink } = await ask(picture);
    const [seen, says] = digit || film || !ink ? [grey, "the picture, in grey"] : [ink, "what was found in the picture"];
    if (seen) draw(found, seen, `${says}${digit ? ", with a frame about the digit" : ""}`, digit?.box);
    image = digit?.centred.levels.map((level) => level / 255);
    const blank = { levels: EMPTY, width: SIDE, height: SIDE };
    [digit?.ink, digit?.scaled, digit?.centred].forEach((plane, k) => draw(stages[k].canvas, plane ?? blank, plane ? `the digit, ${stages[k].name}` : "nothing"));
    tell(refused ? `${refused}${ink && !film ? " The picture above is what was found." : ""}` : "One digit was found.");
    take(image, name);
    ready();
    set(panel, { "aria-busy": "false" });
  }

  function ready() {
    digits.forEach((each) => set(each, { disabled: !image, "aria-pressed": false }));
    verdict.textContent = "";
  }

  /** Which digit it is, as the reader says. @param {number} digit */
  function judge(digit) {
    const given = answers();
    if (!image || !given) return (verdict.textContent = "Wait until both networks have answered.");
    digits.forEach((each, k) => set(each, { "aria-pressed": k === digit }));
    const pixels = pixelsOf(image);
    const others = failures.filter((each) => each.pixels !== pixels);
    const wrong = [given.cnn !== digit && "the CNN", given.capsules !== digit && "the capsule network"].filter(Boolean);
    save(wrong.length ? [{ pixels, digit, ...given }, ...others].slice(0, MOST) : others);
    const both = wrong.length === 2 ? "Both networks get it wrong" : `${wrong[0] === "the CNN" ? "The CNN" : "The capsule network"} gets it wrong`;
    verdict.textContent = wrong.length ? `${both}, so it is among your failures.` : "Both networks are right.";
  }

  /** @param {Failure[]} all */
  function save(all) {
    failures = all;
    keep(KEPT, all.length ? JSON.stringify(all) : "");
    list.replaceChildren(...all.map((each) => {
      const says = `CNN: ${named(each.cnn)}, capsules: ${named(each.capsules)}`;
      const picture = el("canvas", { class: "digit", "aria-hidden": true });
      drawDigit(picture, imageOf(each));
      const thumb = button("", () => again(each), { class: "thumb", "aria-label": `Look again at ${aDigit(each.digit)}` });
      thumb.append(picture);
      return el("li", {}, thumb, el("span", {}, aDigit(each.digit)), el("span", {}, says));
    }));
    shelf.hidden = !all.length;
    count.textContent = `Your failures, kept in this browser alone: ${all.length}`;
  }

  /** @param {Failure} failure */
  function again(failure) {
    hold();
    image = imageOf(failure);
    const plane = { levels: image.map((level) => 255 * level), width: SIDE, height: SIDE };
    draw(found, plane, `${aDigit(failure.digit)} of your failures`);
    stages.forEach(({ canvas: at, name }) => draw(at, name === "centred" ? plane : { ...plane, levels: EMPTY }, name === "centred" ? "the digit, centred" : "nothing"));
    take(image);
    ready();
    tell("One of your failures.");
    verdict.textContent = `It is ${aDigit(failure.digit)}, as you said.`;
  }

  async function start() {
    set(camera, { disabled: true }); // until the reader has allowed it or not
    try {
      const now = (film = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } }));
      const video = el("video", { muted: true, playsinline: true });
      video.srcObject = now;
      await video.play();
      camera.textContent = "Hold";
      set(camera, { disabled: false });
      while (film === now && panel.checkVisibility()) {
        read(await createImageBitmap(video));
        await last;
      }
      if (film === now) hold();
    } catch (error) {
      hold();
      tell(`The camera cannot be used: ${/** @type {Error} */ (error).message}`);
    }
  }

  /** Keep the camera's last picture, and let go of the camera. */
  function hold() {
    film?.getTracks().forEach((track) => track.stop());
    film = undefined;
    camera.textContent = "Camera";
    set(camera, { disabled: false });
  }

  document.addEventListener("visibilitychange", () => document.hidden && hold());
  document.addEventListener("paste", ({ clipboardData }) => panel.checkVisibility() && read(clipboardData?.files[0]));
  const panel = el("div", { class: "photo" },
    el("p", { class: "head" }, "Your own picture of a digit"),
    found,
    el("div", { class: "bar" }, choose, ...(navigator.mediaDevices ? [camera] : []), back, file),
    told,
    el("div", { class: "stages" }, ...stages.map(({ name, canvas: at }) => el("figure", {}, at, el("figcaption", {}, name)))),
    el("p", { class: "hint" }, "It stays on this machine. What this browser cannot open, ", el("a", { href: "yours.html" }, "capsnet predict"), " may read."));
  set(found, { "aria-label": "no picture yet" });
  stages.forEach(({ canvas: at }) => draw(at, { levels: EMPTY, width: SIDE, height: SIDE }, "nothing yet"));
  tell("Drop a picture here, paste or choose one, or hold a digit before the camera.");
  ready();
  save(failures);
  return { panel, gallery, read };
}

const NAME = "yours";
const SHORT = 0.5; // a longest capsule below it is no digit
export const caption = "The two small networks of the first page take every one of these pictures for a digit, even the A, the heart, the star and " +
  "the spiral. Give them a picture of your own, which stays on this machine, and check that the reconstruction resembles what you wrote.";

/** The panel beside what both networks say. Its style is that of the front page, front.css.
 * @param {HTMLElement} stage
 * @param {{ photographs: Record<string, Uint8Array<ArrayBuffer>>, bytes: { cnn: number, capsules: number } }} data
 *   JPEG files; how large the weights of each network are
 */
export async function mount(stage, { photographs, bytes }) {
  stage.classList.add("play-of-front", "pictured");
  const names = Object.keys(photographs);
  const head = (/** @type {string} */ text) => el("p", { class: "head" }, text);
  const [cnnSays, says] = ["cnn", "says"].map((name) => el("p", { class: name, "aria-live": "polite" }));
  const lengths = bars("the lengths of the ten capsules");
  const drawing = picture("the reconstruction");
  const networks = {
    cnn: onCall("page-cnn", bytes.cnn, (text) => (cnnSays.textContent = text)),
    capsules: onCall("page", bytes.capsules, (text) => (says.textContent = text)),
  };
  const examples = names.map((name) => button(name, () => example(name)));
  /** @type {Answers | undefined} */
  let answers;
  let turn = 0; // the newest picture
  const { panel, gallery, read } = picturePanel({ take, answers: () => answers, leave: () => location.assign("index.html") });

  const example = (/** @type {string} */ name) => read(new Blob([photographs[name]]), name);

  /** @param {Float32Array} [image] @param {string} [name]  of the photograph, if it is one of the chapter's */
  async function take(image, name) {
    const mine = ++turn;
    answers = undefined;
    examples.forEach((each, k) => set(each, { "aria-pressed": names[k] === name }));
    writeState(NAME, name && name !== names[0] ? { photograph: name } : {});
    set(stage, { "aria-busy": Boolean(image) });
    if (!image) {
      cnnSays.textContent = says.textContent = "nothing";
      lengths.show(Array(10).fill(0));
      return drawDigit(drawing, EMPTY);
    }
    try {
      const [chances, seen] = await Promise.all([networks.cnn({ look: image }), networks.capsules({ look: image })]);
      if (mine !== turn) return;
      const [most, length] = [argmax(chances), seen.lengths[seen.longest]];
      answers = { cnn: most, capsules: length < SHORT ? -1 : seen.longest };
      const percent = Math.round(100 * chances[most]);
      cnnSays.textContent = `${most} (${percent === 100 ? "over 99" : percent} %)`;
      says.textContent = `${named(answers.capsules)} (${length.toFixed(2)} long)`;
      lengths.show(seen.lengths, length < SHORT ? [] : [seen.longest]);
      drawDigit(drawing, seen.drawn);
    } catch (error) {
      says.textContent = `The networks cannot answer: ${/** @type {Error} */ (error).message}`;
    }
    set(stage, { "aria-busy": "false" });
  }

  stage.addEventListener("dragover", (event) => event.preventDefault());
  stage.addEventListener("drop", (event) => {
    event.preventDefault();
    read(event.dataTransfer?.files[0]);
  });
  stage.append(
    el("div", { class: "bar" }, "photograph:", ...examples, button("Reset", () => example(names[0]))),
    panel,
    el("div", { class: "column" },
      el("div", { class: "answers" }, head("A plain CNN says:"), cnnSays, head("A capsule network says:"), says),
      el("div", { class: "lengths" }, head("Ten lengths ‖v‖"), lengths.list),
      el("div", { class: "drawn" }, head("Reconstruction"), el("div", { class: "handled" }, drawing))),
    gallery,
  );
  const asked = readState(NAME).photograph;
  set(stage, { "aria-busy": "true" }); // until the networks have come and answered
  example(names.includes(asked) ? asked : names[0]);
}
