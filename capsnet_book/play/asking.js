// @ts-check
// Asks a network in a worker. One question at a time; of those that wait, only the newest is asked.

/** @typedef {import("./worker.js").Question} Question */
/** @typedef {{ question: Question, resolve: (answer: any) => void, reject: (reason: Error) => void }} Waiting */

/** A worker with the weights of an address. `ask` gives its answer, or undefined to a question that
 * a newer one has made needless.
 * @param {string | URL} weights
 * @param {(progress: import("./worker.js").Progress) => void} [heard]
 * @returns {{ ready: Promise<void>, ask: (question: Question) => Promise<any> }}
 */
export function hire(weights, heard) {
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  /** @type {Waiting | undefined} */
  let asked;
  /** @type {Waiting | undefined} */
  let newest;
  const next = () => {
    if (asked || !newest) return;
    [asked, newest] = [newest, undefined];
    worker.postMessage(asked.question);
  };
  worker.onmessage = ({ data }) => {
    if ("progress" in data) return heard?.(data.progress);
    if ("error" in data) asked?.reject(new Error(data.error));
    else asked?.resolve(data.answer);
    asked = undefined;
    next();
  };
  worker.onerror = (event) => asked?.reject(new Error(event.message || "the worker could not be started"));
  /** @param {Question} question */
  const ask = (question) =>
    new Promise((resolve, reject) => {
      newest?.resolve(undefined);
      newest = { question, resolve, reject };
      next();
    });
  const ready = ask({ load: String(weights) });
  return { ready, ask: (question) => ready.then(() => ask(question)) };
}
