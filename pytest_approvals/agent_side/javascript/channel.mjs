/**
 * One end of a connection on which both sides call.
 *
 * Messages take effect in the order in which they were sent, and every call gets exactly one answer.
 */

import { BrokenContract, Stopped, read, written } from "./failures.mjs";
import { takeOver } from "./lines.mjs";

/**
 * @typedef {object} Peer what a channel asks of its own side
 * @property {(method: string, params: any, signal: AbortSignal) => Promise<any>} answer answers a call
 * @property {(why: string | null) => void} over learns that the other side is gone, or broke the protocol
 */

export class Channel {
  #open = new Map();
  #working = new Map();
  #numbers = 0;
  #ended = false;
  #peer;
  #write;

  /** @param {Peer} peer */
  constructor(peer) {
    this.#peer = peer;
    this.#write = takeOver(
      (line) => this.#arrived(line),
      () => this.#end(null),
    );
  }

  /**
   * Calls the other side; raises what it raises.
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
      if (signal?.aborted) stop();
      signal?.addEventListener("abort", stop);
    }).finally(() => signal?.removeEventListener("abort", stop));
  }

  /**
   * Tells the other side something.
   *
   * @param {string} method
   * @param {object} params
   */
  notify(method, params) {
    this.#send({ m: method, p: params });
  }

  #send(message) {
    if (!this.#ended) this.#write(JSON.stringify(message));
  }

  #arrived(line) {
    if (this.#ended) return;
    const broken = this.#take(line);
    if (broken) this.#end(`${broken}: ${line.slice(0, 200)}`);
  }

  /** Takes up a message; says what is broken about it. */
  #take(line) {
    const message = parsedLine(line);
    const keys = Object.keys(message ?? {})
      .sort()
      .join(" ");
    if (keys === "ok re" || keys === "err re") return this.#takeAnswer(message);
    if (typeof message?.m !== "string" || (keys !== "id m p" && keys !== "m p")) return "a line is no message";
    if (message.id === undefined) return this.#takeNotice(message);
    if (!Number.isInteger(message.id) || this.#working.has(message.id)) return "a call has no new number";
    this.#answer(message.id, message.m, message.p);
    return null;
  }

  #takeAnswer(message) {
    const waiting = this.#open.get(message.re);
    if (waiting === undefined) return "an answer to a call that is not open";
    this.#open.delete(message.re);
    if ("ok" in message) waiting.resolve(message.ok);
    else waiting.reject(read(message.err));
    return null;
  }

  #takeNotice({ m: method, p: params }) {
    if (method !== "stop") return `there is no notice ${method}`;
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

/** Gives the message, or null where the line is no JSON object. */
function parsedLine(line) {
  try {
    const value = JSON.parse(line);
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}
