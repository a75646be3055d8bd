/** Base of the flavours whose state is a list of model messages. */

import { pruneMessages } from "ai";

import { Agent } from "../../javascript/agent.mjs";
import { Unsupported } from "../../javascript/failures.mjs";
import { frameworkOf } from "./framework.mjs";
import { answersOf, openRequests, requestOf, withAnswers } from "./messages.mjs";

/** Errors by which the SDK refuses its input; the caller then takes that back. */
const REFUSALS = new Set([
  "AI_InvalidToolApprovalError",
  "AI_ToolCallNotFoundForApprovalError",
  "AI_MissingToolResultsError",
  "AI_InvalidPromptError",
]);

/** A conversation whose messages the caller keeps. */
export class MessagesAgent extends Agent {
  /** @type {import("ai").ModelMessage[]} */
  messages = [];
  #framework;
  #dumped = 0;

  constructor(world, blueprint, framework = frameworkOf(blueprint)) {
    super(world, blueprint);
    this.#framework = framework.join();
  }

  async begin() {
    this.settings = (await this.#framework.get()).settings;
  }

  /**
   * Call the SDK.
   *
   * @param {object} settings
   * @param {{stream: boolean}} how
   * @returns {Promise<{added: import("ai").ModelMessage[], content: any[], text: string, output: () => any}>}
   */
  async call(settings, how) {
    throw new Unsupported("turn");
  }

  async turn(text, decisions, { stream, signal }) {
    const before = this.messages;
    this.messages = withAnswers(before, answersOf(decisions));
    if (text !== null) this.messages = [...this.messages, { role: "user", content: text }];
    try {
      return await this.#callSdk({ ...this.settings, messages: this.messages, abortSignal: signal }, stream);
    } catch (error) {
      if (REFUSALS.has(error?.name)) this.messages = before;
      throw error;
    }
  }

  async #callSdk(settings, stream) {
    const { added, content, text, output } = await this.call(settings, { stream });
    this.messages = [...this.messages, ...added];
    const asks = content.filter(({ type, isAutomatic }) => type === "tool-approval-request" && !isAutomatic);
    const shown = (part) => requestOf(part, part.toolCall, this.blueprint.tools);
    if (asks.length) return { paused: { requests: asks.map(shown), text } };
    return { finished: { output: settings.output ? await output() : text } };
  }

  async pending() {
    return openRequests(this.messages, this.blueprint.tools);
  }

  async stage(decisions) {
    this.messages = withAnswers(this.messages, answersOf(decisions));
  }

  async trim(keep) {
    this.messages = pruneMessages({ messages: this.messages, toolCalls: `before-last-${keep}-messages` });
  }

  async dump() {
    const from = this.blueprint.history === "append" ? this.#dumped : 0;
    this.#dumped = this.messages.length;
    return JSON.stringify(this.messages.slice(from));
  }

  async load(parts) {
    this.messages = parts.flatMap((part) => JSON.parse(part));
    this.#dumped = this.messages.length;
  }

  async copyFrom(other) {
    this.messages = structuredClone(other.messages);
  }

  async anotherSession(world) {
    return new this.constructor(world, this.blueprint, this.#framework);
  }

  async close() {
    await this.#framework.leave();
  }
}
