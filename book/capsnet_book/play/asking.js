// @ts-check
// Asks a network in a worker. One question at a time; of those that wait, only the newest is asked.

const FILES = new URL("data/", import.meta.url);
export const megabytes = (/** @type {number} */ bytes) => (bytes / 1e6).toFixed(1);

/** @typedef {import("./worker.js").Question} Question */
/** @typedef {{ question: Question, resolve: (answer: any) => void, reject: (reason: Error) => void }} Waiting */

/** A network that is hired for its first question, and anew for the next one after a failure. The
 * answer is undefined to a question that a newer one has made needless.
 * @param {string} name  of its weights, beside the page's data
 * @param {number} bytes  of the weights
 * @param {(says: string) => void} tell  how far they have come
 * @returns {(question: Question) => Promise<any>}
 */
export function onCall(name, bytes, tell) {
  /** @type {ReturnType<typeof hire> | undefined} */
  let network;
  return async (question) => {
    const hired = (network ??= hire(new URL(`${name}.safetensors`, FILES), (got) =>
      tell(`Loading the network: ${megabytes(got)} of ${megabytes(bytes)} MB …`)));
    try {
      return await hired.ask(question);
    } catch (error) {
      hired.dismiss();
      if (network === hired) network = undefined;
      throw error;
    }
  };
}

/** A worker with the weights of an address.
 * @param {URL} weights
 * @param {(bytes: number) => void} heard
 */
function hire(weights, heard) {
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
  const fail = (/** @type {string} */ why) => {
    for (const each of [asked, newest]) each?.reject(new Error(why)); // the worker is dismissed
    asked = newest = undefined;
  };
  worker.onmessage = ({ data }) => {
    if ("got" in data) return heard(data.got);
    if ("error" in data) return fail(data.error);
    asked?.resolve(data.answer);
    asked = undefined;
    next();
  };
  worker.onerror = (event) => fail(event.message || "the worker could not be started");
  /** @param {Question} question @returns {Promise<any>} */
  const ask = (question) =>
    new Promise((resolve, reject) => {
      newest?.resolve(undefined);
      newest = { question, resolve, reject };
      next();
    });
  const ready = ask({ load: String(weights) });
  return {
    ask: (/** @type {Question} */ question) => ready.then(() => ask(question)),
    dismiss: () => worker.terminate(),
  };
}
