/** A query with streaming input: messages that are sent to the CLI one after the other, and the results of its runs. */

import { query } from "@anthropic-ai/claude-agent-sdk";

/** The milliseconds that the CLI may take to end by itself when its input has ended. */
const END_TIMEOUT = 5000;

/** The milliseconds after its start in which a CLI that goes on with a deferred call says something. */
const SILENCE_TIMEOUT = 5000;

/** @typedef {import("@anthropic-ai/claude-agent-sdk").SDKMessage} SDKMessage */

export class Client {
  /** @type {object[]} */
  #unsent = [];
  #hasEnded = false;
  #wake = () => {};
  #query;
  /** A message that was asked for, and not read. */
  #next = null;

  /** @param {import("@anthropic-ai/claude-agent-sdk").Options} options */
  constructor(options) {
    this.#query = query({ prompt: this.#input(), options });
  }

  async *#input() {
    for (;;) {
      while (this.#unsent.length) yield this.#unsent.shift();
      if (this.#hasEnded) return;
      await new Promise((resolve) => (this.#wake = resolve));
    }
  }

  /** @param {string} content */
  send(content) {
    this.#unsent.push({ type: "user", message: { role: "user", content }, parent_tool_use_id: null });
    this.#wake();
  }

  /** Return whether the CLI goes on by itself: what is not deferred any more it says nothing about, not even an error. */
  async goesOn() {
    await this.#query.initializationResult();
    this.#next = this.#query.next();
    return isWithin(SILENCE_TIMEOUT, this.#next);
  }

  /**
   * Read the messages of a run up to its result.
   *
   * @param {(message: SDKMessage) => void} see is told each message
   * @returns {Promise<import("@anthropic-ai/claude-agent-sdk").SDKResultMessage>}
   */
  async receiveResult(see) {
    for (;;) {
      const { value: message, done } = await (this.#next ?? this.#query.next());
      this.#next = null;
      if (done) throw new Error("the CLI ended without a result");
      see(message);
      if (message.type === "result") return message;
    }
  }

  /** Stop the run that goes on. */
  interrupt() {
    return this.#query.interrupt();
  }

  /** End the input, and wait for the end of the CLI, which writes what it keeps until then. */
  async close() {
    this.#hasEnded = true;
    this.#wake();
    await isWithin(END_TIMEOUT, this.#drain());
    this.#query.close();
  }

  /** End the CLI at once, whatever it waits for. */
  abandon() {
    this.#query.close();
  }

  async #drain() {
    try {
      while (!(await this.#query.next()).done);
    } catch {
      // A CLI whose last result is an error ends with an exit code, and the result was reported.
    }
  }
}

/** Return whether a promise is fulfilled within some milliseconds. */
async function isWithin(timeout, promise) {
  let late;
  const tooLate = new Promise((resolve) => (late = setTimeout(() => resolve(false), timeout)));
  try {
    return await Promise.race([promise.then(() => true), tooLate]);
  } finally {
    clearTimeout(late);
  }
}
