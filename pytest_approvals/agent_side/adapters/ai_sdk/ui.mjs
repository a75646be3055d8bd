/** Flavour `ui`: a chat, whose client keeps UI messages; the server converts them to model messages for each call. */

import { lastAssistantMessageIsCompleteWithToolCalls as waitsForReply } from "ai";

import { Agent } from "../../javascript/agent.mjs";
import { Chat } from "./chat.mjs";
import { Interrupted } from "./failures.mjs";
import { frameworkOf } from "./framework.mjs";
import { requestOf } from "./messages.mjs";

/** A conversation whose client is a chat. */
export class UiAgent extends Agent {
  #framework;
  #settings;
  #chat = new Chat(() => this.#settings);

  constructor(world, blueprint, framework = frameworkOf(blueprint)) {
    super(world, blueprint);
    this.#framework = framework.join();
  }

  async begin() {
    this.#settings = (await this.#framework.get()).settings;
  }

  async turn(text, decisions, how) {
    const before = this.#chat.messages;
    await this.stage(decisions);
    // A chat sends nothing before every request of a pause is answered (`sendAutomaticallyWhen`).
    const open = text === null ? await this.pending() : [];
    if (open.length) return { paused: { requests: open, text: this.#latestText() } };
    // It drops answers to requests that are not open, and then only sends what has no reply yet.
    const hasNews = decisions.length === 0 || text !== null || this.#chat.messages !== before;
    if (!hasNews && !waitsForReply(this.#chat)) return { finished: { output: this.#latestText() } };
    const result = await this.#chat.send(text, how);
    if ((await result.finishReason) === "interrupted") throw new Interrupted();
    const requests = await this.pending();
    if (requests.length) return { paused: { requests, text: this.#latestText() } };
    return { finished: { output: this.#settings.output ? await result.output : this.#latestText() } };
  }

  async pending() {
    const parts = this.#latest().filter(({ state }) => state === "approval-requested");
    return parts.map((part) => requestOf({ approvalId: part.approval.id }, callOf(part), this.blueprint.tools));
  }

  async stage(decisions) {
    for (const { request, verdict, reason, raw, address } of decisions) {
      const approved = verdict === "raw" ? raw : verdict === "approve";
      await this.#chat.addToolApprovalResponse({ id: request === null ? address : request.id, approved, reason });
    }
  }

  async dump() {
    return JSON.stringify(this.#chat.messages);
  }

  async load(parts) {
    this.#chat.messages = JSON.parse(parts.at(-1));
  }

  async copyFrom(other) {
    this.#chat.messages = structuredClone(other.#chat.messages);
  }

  async anotherSession(world) {
    return new UiAgent(world, this.blueprint, this.#framework);
  }

  async close() {
    await this.#framework.leave();
  }

  /** Return the parts of the latest message, if it is the model's. */
  #latest() {
    const last = this.#chat.messages.at(-1);
    return last?.role === "assistant" ? last.parts : [];
  }

  /** Return the model's latest text; a message that was refused meanwhile may stand behind it. */
  #latestText() {
    const { parts } = this.#chat.messages.findLast(({ role }) => role === "assistant") ?? { parts: [] };
    const step = parts.slice(parts.findLastIndex(({ type }) => type === "step-start") + 1);
    return step
      .filter(({ type }) => type === "text")
      .map(({ text }) => text)
      .join("");
  }
}

/** Return the call that a part of a UI message is about. */
function callOf({ type, toolName = type.replace(/^tool-/, ""), toolCallId, input, providerExecuted }) {
  return { toolName, toolCallId, input, providerExecuted };
}
