// @ts-check
// What every widget is made of: elements, real inputs, a digit on a canvas, and a state that can be sent.

const SVG = "http://www.w3.org/2000/svg";
const DRAWN = new Set("svg g path line circle rect text polyline polygon defs marker title tspan clipPath".split(" "));

/** In a notebook: let Python know. @typedef {(key: string, value: object) => void} Tell */

/** An element. Attributes that are functions listen: `onclick`, `oninput`. `null` leaves one out.
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string)} inside
 * @returns {any}
 */
export function el(name, attributes = {}, ...inside) {
  const made = DRAWN.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  set(made, attributes);
  made.append(...inside);
  return made;
}

/** Set attributes of an element; `null` or `false` takes one away, but for those of ARIA, which say "false".
 * @param {Element} element
 * @param {Record<string, any>} attributes
 */
export function set(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value);
    else if (key.startsWith("aria-")) element.setAttribute(key, String(value));
    else if (value === null || value === false) element.removeAttribute(key);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
}

/** A button that says what it does.
 * @param {string} title
 * @param {() => void} act
 * @param {Record<string, any>} [attributes]
 * @returns {HTMLButtonElement}
 */
export function button(title, act, attributes = {}) {
  return el("button", { type: "button", onclick: act, ...attributes }, title);
}

/** A real `<input type=range>` with its name and, in text, its value.
 * @param {string} title
 * @param {{ min: number, max: number, step: number | "any", value: number, says?: (value: number) => string, moved: (value: number) => void }} options
 * @returns {HTMLLabelElement & { value: number }}
 */
export function slider(title, { min, max, step, value, says = (x) => x.toFixed(2), moved }) {
  const input = el("input", { type: "range", min, max, step, "aria-label": title });
  const output = el("output");
  const say = () => {
    output.textContent = says(input.valueAsNumber);
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => (say(), moved(input.valueAsNumber)));
  const label = el("label", { class: "slider" }, el("span", {}, title), input, output);
  Object.defineProperty(label, "value", {
    get: () => input.valueAsNumber,
    set: (to) => ((input.value = String(to)), say()),
  });
  label.value = value;
  return label;
}

let groups = 0;

/** One of several: radio buttons under a legend.
 * @template {string} T
 * @param {string} legend
 * @param {Record<T, string>} options  value: what the reader sees
 * @param {NoInfer<T>} value
 * @param {(value: T) => void} chosen
 * @returns {HTMLFieldSetElement & { value: T }}
 */
export function choice(legend, options, value, chosen) {
  const name = `choice-${groups++}`;
  const field = el("fieldset", { class: "choice" }, el("legend", {}, legend));
  for (const [key, title] of Object.entries(options)) {
    const input = el("input", { type: "radio", name, value: key, oninput: () => chosen(/** @type {T} */ (key)) });
    field.append(el("label", {}, input, String(title)));
  }
  const inputs = [...field.querySelectorAll("input")];
  Object.defineProperty(field, "value", {
    get: () => inputs.find((input) => input.checked)?.value,
    set: (to) => inputs.forEach((input) => (input.checked = input.value === to)),
  });
  field.value = value;
  return field;
}

/** One of the ten digits.
 * @param {string} legend
 * @param {number | undefined} value
 * @param {(digit: number) => void} chosen
 */
export function digitChoice(legend, value, chosen) {
  const digits = Object.fromEntries([..."0123456789"].map((digit) => [digit, digit]));
  const field = choice(legend, digits, `${value ?? ""}`, (digit) => chosen(Number(digit)));
  field.classList.add("of-digits");
  return field;
}

/** Show an image of numbers from 0 (black) to 1 (white), a number a pixel, as MNIST's are.
 * @param {HTMLCanvasElement} canvas  of class "digit"
 * @param {ArrayLike<number>} pixels
 * @param {number} [width]
 */
export function drawDigit(canvas, pixels, width = Math.sqrt(pixels.length)) {
  const height = pixels.length / width;
  Object.assign(canvas, { width, height });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = context.createImageData(width, height);
  for (let k = 0; k < pixels.length; k++) image.data.fill(255 * pixels[k], 4 * k, 4 * k + 3).fill(255, 4 * k + 3, 4 * k + 4);
  context.putImageData(image, 0, 0);
}

/** Small images side by side, with a line between them, as one image; its width.
 * @param {ArrayLike<number>} values @param {number} side @param {number} across
 */
export function sheet(values, side, across) {
  const [count, wide] = [values.length / side ** 2, across * (side + 1) - 1];
  const pixels = new Float32Array(wide * (Math.ceil(count / across) * (side + 1) - 1));
  for (let k = 0; k < values.length; k++) {
    const [n, y, x] = [Math.floor(k / side ** 2), Math.floor(k / side) % side, k % side];
    pixels[(Math.floor(n / across) * (side + 1) + y) * wide + (n % across) * (side + 1) + x] = values[k];
  }
  return /** @type {const} */ ([pixels, wide]);
}

/** A canvas that a reader of the screen is told of. @param {string} label @returns {HTMLCanvasElement} */
export const picture = (label) => el("canvas", { class: "digit", role: "img", "aria-label": label });

/** A title over what it names. @param {string} name  its class @param {string} title @param {...Node} inside */
export const part = (name, title, ...inside) => el("div", { class: name }, el("p", { class: "name" }, title), ...inside);

/** Where the largest of some numbers is.
 * @param {ArrayLike<number>} x
 */
export function argmax(x) {
  const all = Array.from(x);
  return all.indexOf(Math.max(...all));
}

/** A number for a label, with a true minus.
 * @param {number} x
 * @param {number} [digits]
 */
export const number = (x, digits = 2) => (Math.abs(x) < 0.5 * 10 ** -digits ? 0 : x).toFixed(digits).replace("-", "−");

/** The same with its sign, "+" too. */
export const signed = (/** @type {number} */ x) => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`;

/** "a 7", "an 8".
 * @param {number} digit
 */
export const aDigit = (digit) => `${digit === 8 ? "an" : "a"} ${digit}`;

/** Whether the reader asked for no motion. */
export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** What this browser keeps under a name, on whatever page; "" if nothing. @param {string} key */
export function kept(key) {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return ""; // a browser that keeps nothing
  }
}

/** Have the browser keep a text, or with an empty one nothing. @param {string} key @param {string} text */
export function keep(key, text) {
  try {
    if (text) localStorage.setItem(key, text);
    else localStorage.removeItem(key);
  } catch {
    // It keeps nothing, or is full: the text is on this page alone.
  }
}

/** A widget's state, in the address after `#NAME?`, so that a finding can be sent; or in its search, once
 * a reader has followed a link within the page: `keepStates`.
 * @param {string} name
 * @returns {Record<string, string>}
 */
export function readState(name) {
  const [place, query] = location.hash.slice(1).split("?");
  if (place === `play-${name}`) return Object.fromEntries(new URLSearchParams(query));
  const { play, ...state } = Object.fromEntries(new URLSearchParams(location.search));
  return play === name ? state : {};
}

const search = () => (location.search.startsWith("?play=") ? "" : location.search); // that of others

/** The address of a page with a widget in a state.
 * @param {string} name
 * @param {Record<string, string | number>} state
 */
export function addressOf(name, state) {
  const query = String(new URLSearchParams(Object.entries(state).map(([k, v]) => [k, String(v)]))).replaceAll("%2C", ",");
  return `${location.pathname}${search()}${query && `#play-${name}?${query}`}`;
}

/** A link to a place of this page leaves the state of a widget in its address. */
export function keepStates() {
  addEventListener("hashchange", ({ oldURL }) => {
    const [, name, state] = /#play-(\w+)\?(.+)/.exec(oldURL) ?? [];
    if (state && !location.hash.startsWith("#play-"))
      history.replaceState(null, "", `${location.pathname}?play=${name}&${state}${location.hash}`);
  });
}

/** @type {Record<string, number>} */
const waiting = {}; // a timer for each widget: one that is as it was does not stop another from writing

/** Put a widget's state into the address, soon; an empty one takes it away.
 * @param {string} name
 * @param {Record<string, string | number>} state
 */
export function writeState(name, state) {
  clearTimeout(waiting[name]);
  waiting[name] = window.setTimeout(() => {
    const empty = !Object.keys(state).length;
    if (!empty || shownState() === name) history.replaceState(null, "", addressOf(name, state));
  }, 300);
}

/** The widget that the address has a state of. */
const shownState = () => (/^#play-(\w+)/.exec(location.hash) ?? /^\?play=(\w+)/.exec(location.search))?.[1];

/** Numbers as Python's `pack` wrote them: a tensor becomes a typed array with a `shape`.
 * @param {any} value
 * @returns {any}
 */
export function unpack(value) {
  if (Array.isArray(value)) return value.map(unpack);
  if (typeof value !== "object" || value === null) return value;
  if (!("base64" in value)) return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, unpack(v)]));
  const bytes = Uint8Array.from(atob(value.base64), (letter) => letter.charCodeAt(0));
  return Object.assign(typed(bytes.buffer, value.dtype), { shape: value.shape });
}

/** Raw numbers as a typed array; half precision becomes single.
 * @param {ArrayBuffer} buffer
 * @param {string} dtype
 * @returns {Float32Array | Uint8Array | Int8Array}
 */
export function typed(buffer, dtype) {
  if (dtype === "uint8") return new Uint8Array(buffer);
  if (dtype === "int8") return new Int8Array(buffer);
  if (dtype === "float32") return new Float32Array(buffer);
  if (dtype !== "float16") throw new TypeError(`expected uint8, int8, float16 or float32, got ${dtype}`);
  return Float32Array.from(new Uint16Array(buffer), (bits) => {
    const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
    const size = exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024);
    return bits >> 15 ? -size : size;
  });
}

/** The data that a widget's picture came with, once they are asked for.
 * @param {Element} box
 */
export async function dataOf(box) {
  const file = box.querySelector("metadata.play")?.textContent;
  return file && unpack(await (await fetch(new URL(`data/${file}`, import.meta.url))).json());
}
