/** Base of the flavours whose state is a list of model messages. */

import { pruneMessages } from "ai";

import { Agent } from "../../javascript/agent.mjs";
import { Unsupported } from "../../javascript/failures.mjs";
import { frameworkOf } from "./framework.mjs";
import { answersOf, holdsAnswersOnly, openRequests, requestOf, withAnswers } from "./messages.mjs";

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
  /** How many messages were saved, and the last one of them. */
  #dumped = 0;
  #last;

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
    // Newer answers to the requests of one pause replace the message with the earlier ones.
    const last = this.messages[this.#dumped - 1];
    const isReplaced = holdsAnswersOnly(last) && last !== this.#last;
    const from = this.blueprint.history === "append" ? this.#dumped - (isReplaced ? 1 : 0) : 0;
    this.#remember();
    return JSON.stringify(this.messages.slice(from));
  }

  async load(parts) {
    this.messages = parts.map((part) => JSON.parse(part)).reduce(joined, []);
    this.#remember();
  }

  /** Remember what is saved, for the next save. */
  #remember() {
    this.#dumped = this.messages.length;
    this.#last = this.messages.at(-1);
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

/** Return saved messages with those of the next save, whose answers may replace earlier ones. */
function joined(messages, added) {
  const isReplaced = holdsAnswersOnly(added[0]) && holdsAnswersOnly(messages.at(-1));
  return [...(isReplaced ? messages.slice(0, -1) : messages), ...added];
}
