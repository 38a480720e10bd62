// @ts-check
// From which angle on a network no longer names an example digit that is being turned.

import { el, number } from "./kit.js";

/** @typedef {{ right: number, wrong: number }} Side  degrees: right up to here, wrong from here on */

/** A mark that says it. Angles that the reader passed over are tried while nobody else asks.
 * @param {(degrees: number) => Promise<any>} ask  what the network answers of the digit, turned; or nothing
 * @param {(answer: any) => number} names  the digit of an answer
 * @param {() => boolean} idle
 */
export function limit(ask, names, idle) {
  const mark = el("p", { class: "wrong" });
  let of = -1; // the digit; negative: none whose name is known
  let sign = 1; // of the angle, last
  /** @type {Record<number, Side>} */
  let sides = {};
  let trying = false;
  let rightNow = true; // what the network last answered

  const side = (way = sign) => (sides[way] ??= { right: 0, wrong: Infinity });
  function show() {
    const way = side().wrong < Infinity ? sign : -sign; // what was found on the other side is kept
    const { right, wrong } = side(way);
    mark.textContent = wrong < Infinity ? `wrong ${wrong > right + 1 ? "at" : "from"} ${way > 0 ? "+" : ""}${number(way * wrong, 0)}°` : "";
    mark.classList.toggle("past", rightNow);
  }

  /** @param {any} answer @param {number} degrees */
  function note(answer, degrees) {
    const [now, far] = [side(), Math.abs(degrees)];
    if (names(answer) !== of) now.wrong = Math.min(now.wrong, far);
    else if (far < now.wrong) now.right = Math.max(now.right, far);
    show();
  }

  return {
    mark,
    /** Another digit, or the same. @param {number} digit */
    start(digit) {
      if (digit === of) return;
      [of, sides, rightNow] = [digit, {}, true];
      show();
    },
    /** @param {any} answer @param {number} degrees @param {number} digit  that was asked about */
    heard(answer, degrees, digit) {
      if (digit !== of || digit < 0) return;
      rightNow = names(answer) === digit;
      if (!degrees) return show();
      sign = Math.sign(degrees);
      note(answer, degrees);
    },
    async fill() {
      if (trying) return;
      trying = true;
      while (idle() && side().wrong < Infinity && side().wrong > side().right + 1) {
        const [degrees, digit] = [sign * (side().right + 1), of];
        const answer = await ask(degrees).catch(() => undefined);
        if (!answer || sign * degrees < 0 || digit !== of) break; // a newer question, which will lead here again
        note(answer, degrees);
      }
      trying = false;
    },
  };
}
