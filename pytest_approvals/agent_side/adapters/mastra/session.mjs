/** Agents of Mastra, whose runs are suspended in a storage and resumed by their ids. */

import { randomUUID } from "node:crypto";

import { Agent } from "../../javascript/agent.mjs";
import { Unsupported } from "../../javascript/failures.mjs";
import { crewOf } from "./crew.mjs";
import { requestOf, targetOf } from "./requests.mjs";
import { isRequest, show } from "./shown.mjs";
import { schemaOf } from "../../javascript/schemas.mjs";

const RESOURCE = "person";

/** A thread of messages, and the runs that are suspended in it. */
export class MastraAgent extends Agent {
  #shared;
  #thread = randomUUID();
  /** The id of the newest run. */
  #runId = "";

  constructor(world, blueprint, shared = crewOf(blueprint)) {
    super(world, blueprint);
    this.#shared = shared.join();
  }

  async begin() {
    this.crew = await this.#shared.get();
  }

  async turn(text, decisions, how) {
    if (text !== null && decisions.length) throw new Unsupported("message_with_answers");
    const before = await this.#suspended();
    const outcomes = [];
    if (decisions.length) for (const decision of decisions) outcomes.push(await this.#answer(decision, how));
    else if (text !== null || before.length === 0) outcomes.push(await this.#send(text ?? [], how));
    else for (const { runId } of before) outcomes.push(await this.#resume({}, { runId }, how));
    return this.#outcome(outcomes);
  }

  /** Return what a turn comes to: the requests that it showed, and those of other runs that still wait. */
  async #outcome(outcomes) {
    const newest = new Map(outcomes.map((outcome) => [outcome.runId, outcome]));
    const others = (await this.#suspended()).filter(({ runId }) => !newest.has(runId));
    const waiting = others.flatMap(({ runId, toolCalls }) => toolCalls.map((call) => this.#request(runId, call)));
    const requests = [...waiting, ...[...newest.values()].flatMap((outcome) => outcome.requests)];
    const { text, answer } = outcomes.at(-1);
    return requests.length ? { paused: { requests, text } } : { finished: { output: answer ?? text } };
  }

  #send(messages, how) {
    const { main } = this.crew;
    const options = { ...this.#options(how), memory: { thread: this.#thread, resource: RESOURCE } };
    return this.#run(how.stream ? main.stream(messages, options) : main.generate(messages, options), how);
  }

  async #answer({ request, verdict, reason, raw, address }, how) {
    const target = (request && targetOf(request)) ?? {
      runId: (await this.#suspended()).at(-1)?.runId ?? this.#runId,
      toolCallId: request ? request.id : address,
    };
    if (verdict === "raw") return this.#resume({ approved: raw }, target, how);
    const { main } = this.crew;
    const options = { ...this.#options(how), ...target };
    if (verdict === "approve")
      return this.#run(how.stream ? main.approveToolCall(options) : main.approveToolCallGenerate(options), how);
    if (verdict !== "reject") throw new Unsupported(verdict);
    const declined = reason ? { ...options, reason } : options;
    return this.#run(how.stream ? main.declineToolCall(declined) : main.declineToolCallGenerate(declined), how);
  }

  #resume(data, target, how) {
    const { main } = this.crew;
    const options = { ...this.#options(how), ...target };
    return this.#run(how.stream ? main.resumeStream(data, options) : main.resumeGenerate(data, options), how);
  }

  #options({ signal }) {
    const { answer, limits } = this.blueprint;
    return {
      abortSignal: signal,
      ...(limits.model_replies ? { maxSteps: limits.model_replies } : {}),
      ...(Object.keys(answer).length ? { structuredOutput: { schema: schemaOf(answer) } } : {}),
    };
  }

  /** Return what a run comes to. */
  async #run(running, { stream }) {
    const result = await running;
    this.#runId = result.runId;
    const requests = stream ? await this.#consume(result) : this.#requestsOf(result);
    const [error, steps, answer] = [result.error, await result.steps, await result.object];
    if (error) throw error;
    return { runId: result.runId, requests, text: steps.at(-1)?.text ?? (await result.text), answer };
  }

  #requestsOf({ runId, finishReason, suspendPayload }) {
    return finishReason === "suspended" ? [this.#request(runId, suspendPayload)] : [];
  }

  async #consume(result) {
    const requests = [];
    const runners = new Map();
    for await (const chunk of result.fullStream) {
      const { type, runId, payload } = chunk;
      show(chunk, this.world, this.blueprint);
      if (type === "error") throw payload.error;
      if (type === "tool-output" && isRequest(payload.output?.type)) runners.set(payload.toolCallId, payload.toolName);
      if (isRequest(type)) requests.push(this.#request(runId, payload, runners.get(payload.toolCallId)));
    }
    this.world.shown("end");
    return requests;
  }

  #request(runId, call, shownIn) {
    return requestOf(runId, call, this.blueprint.tools, shownIn);
  }

  /** Return the suspended runs of the thread, oldest first. */
  async #suspended() {
    const { runs } = await this.crew.main.listSuspendedRuns({ threadId: this.#thread, resourceId: RESOURCE });
    return runs.sort((one, other) => one.suspendedAt - other.suspendedAt);
  }

  async pending() {
    const runs = await this.#suspended();
    return runs.flatMap(({ runId, toolCalls }) => toolCalls.map((call) => this.#request(runId, call)));
  }

  async dump() {
    return JSON.stringify({ thread: this.#thread, run: this.#runId });
  }

  async load(parts) {
    ({ thread: this.#thread, run: this.#runId } = JSON.parse(parts.at(-1)));
  }

  async anotherSession(world) {
    return new MastraAgent(world, this.blueprint, this.#shared);
  }

  async close() {
    await this.#shared.leave();
  }
}
