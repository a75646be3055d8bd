/**
 * One end of a connection on which both sides call.
 *
 * Messages take effect in the order in which they were sent, and every call gets exactly one answer.
 */

import { BrokenContract, Stopped, read, written } from "./failures.mjs";
import { takeOver } from "./lines.mjs";

/**
 * @typedef {object} Peer the own side of a channel
 * @property {(method: string, params: any, signal: AbortSignal) => Promise<any>} answer answers a call
 * @property {(why: string | null) => void} over learns that the other side is gone, or broke the protocol
 */

export class Channel {
  #open = new Map();
  #working = new Map();
  #numbers = 0;
  #ended = false;
  #peer;
  #lines;

  /** @param {Peer} peer */
  constructor(peer) {
    this.#peer = peer;
    this.#lines = takeOver(
      (line) => this.#handleLine(line),
      () => this.#end(null),
    );
  }

  /**
   * Call the other side; throw what it throws.
   *
   * @param {string} method
   * @param {object} params
   * @param {AbortSignal} [signal] stops the call
   * @returns {Promise<any>}
   */
  call(method, params, signal) {
    const number = ++this.#numbers;
    const stop = () => this.notify("stop", { call: number });
    return new Promise((resolve, reject) => {
      this.#open.set(number, { resolve, reject });
      this.#send({ id: number, m: method, p: params });
      // An aborted signal sends no event; the stop must follow the call that it names.
      if (signal?.aborted) stop();
      signal?.addEventListener("abort", stop);
    }).finally(() => signal?.removeEventListener("abort", stop));
  }

  /**
   * Send the other side a notice.
   *
   * @param {string} method
   * @param {object} params
   */
  notify(method, params) {
    this.#send({ m: method, p: params });
  }

  /** Let nothing run in this process any more: the other side kills it. */
  block() {
    this.#lines.block();
  }

  #send(message) {
    if (!this.#ended) this.#lines.write(JSON.stringify(message));
  }

  #handleLine(line) {
    if (this.#ended) return;
    const breach = this.#handleMessage(line);
    if (breach) this.#end(`${breach}: ${line.slice(0, 200)}`);
  }

  /** Handle a message; return how it breaks the protocol, or null. */
  #handleMessage(line) {
    const message = parseLine(line);
    const keys = Object.keys(message ?? {})
      .sort()
      .join(" ");
    if (keys === "ok re" || keys === "err re") return this.#handleAnswer(message);
    if (typeof message?.m !== "string" || (keys !== "id m p" && keys !== "m p")) return "a line is no message";
    if (message.id === undefined) return this.#handleNotice(message);
    if (!Number.isInteger(message.id) || this.#working.has(message.id)) return "a call has no new number";
    this.#answer(message.id, message.m, message.p);
    return null;
  }

  #handleAnswer(message) {
    const waiting = this.#open.get(message.re);
    if (waiting === undefined) return "an answer to a call that is not open";
    this.#open.delete(message.re);
    if ("ok" in message) waiting.resolve(message.ok);
    else waiting.reject(read(message.err));
    return null;
  }

  #handleNotice({ m: method, p: params }) {
    if (method !== "stop") return `there is no notice ${method}`;
    // A call that was answered in the meantime is not an error: the stop and the answer crossed.
    this.#working.get(params?.call)?.abort();
    return null;
  }

  async #answer(number, method, params) {
    const stopping = new AbortController();
    this.#working.set(number, stopping);
    let reply;
    try {
      reply = { re: number, ok: await this.#peer.answer(method, params, stopping.signal) };
    } catch (error) {
      // A stopped framework may fail with an error of its own; the harness expects `Stopped`.
      reply = { re: number, err: written(stopping.signal.aborted ? new Stopped() : error) };
    }
    this.#working.delete(number);
    this.#send(reply);
  }

  #end(why) {
    if (this.#ended) return;
    this.#ended = true;
    for (const waiting of this.#open.values()) waiting.reject(new BrokenContract("the harness is gone"));
    for (const stopping of this.#working.values()) stopping.abort();
    this.#peer.over(why);
  }
}

/** Return the message, or null if the line is not a JSON object. */
function parseLine(line) {
  try {
    const value = JSON.parse(line);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}
