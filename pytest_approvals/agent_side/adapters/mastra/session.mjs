/** Agents of Mastra, whose runs are suspended in a storage and resumed by their ids. */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { Agent } from "../../javascript/agent.mjs";
import { Unsupported } from "../../javascript/failures.mjs";
import { schemaOf } from "../../javascript/schemas.mjs";
import { crewOf } from "./crew.mjs";
import { gateAtCall, policyOf } from "./delegations.mjs";
import { idOf, requestOf, targetOf } from "./requests.mjs";
import { errorOf, innerCalls, isRequest, show } from "./shown.mjs";
import { hasEnded, needsApproval } from "./tools.mjs";

const RESOURCE = "person";

/** The milliseconds that a run may take to be suspended after its stream has ended. */
const SUSPEND_TIMEOUT = 3000;

/** A thread of messages, and the runs that are suspended in it. */
export class MastraAgent extends Agent {
  #shared;
  #thread = randomUUID();
  #policy;
  /** The gate that is given with a message, and not again with an answer: the guide answers with the run's id alone. */
  #gate;
  /** The id of the newest run. */
  #runId = "";
  /** The runs that were seen to be suspended, for releases that list none. */
  #kept = [];

  /**
   * @param {import("../../javascript/world.mjs").World} world
   * @param {import("../../javascript/agent.mjs").Blueprint} blueprint
   * @param {import("../../javascript/shared.mjs").Shared} [shared] the agents of another session
   */
  constructor(world, blueprint, shared) {
    super(world, blueprint);
    this.#shared = (shared ?? crewOf(blueprint, { isDurable: this.isDurable })).join();
    this.#policy = policyOf(blueprint.tools, needsApproval);
    this.#gate = blueprint.options.gate === "call" ? gateAtCall(blueprint.tools, needsApproval) : {};
  }

  /** Whether the runs of the main agent are durable workflows. */
  get isDurable() {
    return false;
  }

  async begin() {
    this.crew = await this.#shared.get();
  }

  async turn(text, decisions, how) {
    if (text !== null && decisions.length) throw new Unsupported("message_with_answers");
    if (text === null && decisions.length === 0) throw new Unsupported("go_on_without_answer");
    if (text !== null) return this.#outcome([await this.#send(text, how)]);
    const outcomes = [];
    for (const decision of await this.#unknownFirst(decisions)) outcomes.push(await this.#answer(decision, how));
    return this.#outcome(outcomes);
  }

  /** Return what a turn comes to: what waits in the thread, as this turn showed it. */
  async #outcome(outcomes) {
    const { requests: newest, text, answer } = outcomes.at(-1);
    const shown = new Map(outcomes.flatMap(({ requests }) => requests.map((request) => [request.id, request])));
    const listed = await this.pending();
    const unlisted = newest.filter(({ id }) => !listed.some((request) => request.id === id));
    const requests = [...listed.map((request) => shown.get(request.id) ?? request), ...unlisted];
    return requests.length ? { paused: { requests, text } } : { finished: { output: answer ?? text } };
  }

  /**
   * Return decisions with those first that name nothing that waits: Mastra refuses them before anything runs, and they
   * do not reach a call that is asked about after the answers beside them.
   */
  async #unknownFirst(decisions) {
    const listed = new Set((await this.pending()).map(({ id }) => id));
    const isKnown = ({ request }) => request === null || listed.has(request.id);
    return [...decisions.filter((one) => !isKnown(one)), ...decisions.filter(isKnown)];
  }

  #send(text, how) {
    const { main } = this.crew;
    const options = { ...this.#options(how), ...this.#gate, memory: { thread: this.#thread, resource: RESOURCE } };
    return this.#run(how.stream ? main.stream(text, options) : main.generate(text, options), how);
  }

  async #answer({ request, verdict, reason, raw, address }, how) {
    const target = (request && targetOf(request)) ?? {
      runId: (await this.#suspended()).at(-1)?.runId ?? this.#runId,
      toolCallId: request ? request.id : (address ?? null),
    };
    if (verdict === "raw") return this.#resume({ approved: raw }, target, how);
    const { main } = this.crew;
    const options = { ...this.#options(how), ...target };
    if (verdict === "approve")
      return this.#run(how.stream ? main.approveToolCall(options) : main.approveToolCallGenerate(options), how);
    if (verdict !== "reject") throw new Unsupported(verdict);
    const declined = (reason ?? null) === null ? options : { ...options, reason };
    return this.#run(how.stream ? main.declineToolCall(declined) : main.declineToolCallGenerate(declined), how);
  }

  #resume(data, target, how) {
    return this.#run(this.resume(data, { ...this.#options(how), ...target }, how), how);
  }

  /** Hand in what a run waits for, whatever it is. */
  resume(data, options, { stream }) {
    const { main } = this.crew;
    return stream ? main.resumeStream(data, options) : main.resumeGenerate(data, options);
  }

  /** Options of all that starts or resumes a run. */
  get runOptions() {
    return {};
  }

  #options({ signal }) {
    const { answer, limits } = this.blueprint;
    return {
      ...this.runOptions,
      abortSignal: signal,
      ...this.#policy,
      ...(limits.model_replies ? { maxSteps: limits.model_replies } : {}),
      ...(Object.keys(answer).length ? { structuredOutput: { schema: schemaOf(answer) } } : {}),
    };
  }

  /** Wait until a run that no turn of the caller has begun is suspended or has ended; nobody is shown its stream. */
  async follow(running) {
    const { runId, output } = await running;
    const requests = [];
    for await (const { type, payload } of output.fullStream) {
      if (type === "error") throw errorOf(payload.error);
      if (!isRequest(type)) continue;
      this.#keep(runId, payload);
      requests.push(this.#request(runId, payload));
      // The stream of a run that is recovered stays open.
      break;
    }
    await this.#settle(runId, requests, []);
  }

  /** Return what a run comes to. */
  async #run(running, { stream }) {
    const result = await running;
    this.#runId = result.runId;
    this.#kept = this.#kept.filter(({ runId }) => runId !== result.runId);
    const requests = stream ? await this.#consume(result) : this.#requestsOf(result);
    if (this.isDurable) await this.#settle(result.runId, requests, []);
    const output = result.output ?? result;
    const [error, steps, answer] = [output.error, await output.steps, await output.object];
    if (error) throw errorOf(error);
    return { runId: result.runId, requests, text: steps.at(-1)?.text ?? (await output.text), answer };
  }

  #requestsOf({ runId, finishReason, suspendPayload }) {
    if (finishReason !== "suspended") return [];
    this.#keep(runId, suspendPayload);
    return [this.#request(runId, suspendPayload)];
  }

  #keep(runId, call) {
    this.#kept.push({ runId, suspendedAt: this.#kept.length, toolCalls: [call] });
  }

  async #consume(result) {
    const requests = [];
    const chains = new Map();
    const ungated = new Set();
    for await (const chunk of result.fullStream) {
      const { type, runId, payload } = chunk;
      show(chunk, this.world, this.blueprint);
      if (type === "error") throw errorOf(payload.error);
      const chain = innerCalls(chunk);
      if (chain && !(chains.get(payload.toolCallId)?.length > chain.length)) chains.set(payload.toolCallId, chain);
      if (this.#runsAtOnce(chunk)) ungated.add(payload.toolCallId);
      if (!isRequest(type)) continue;
      this.#keep(runId, payload);
      requests.push(this.#request(runId, payload, chainTo(payload, chains)));
    }
    this.world.shown("end");
    if (requests.length) await this.#settle(result.runId, requests, [...ungated]);
    return requests;
  }

  /** Return whether a chunk shows a call that Mastra runs at once, whatever waits beside it. */
  #runsAtOnce({ type, payload }) {
    if (type !== "tool-call") return false;
    const spec = this.blueprint.tools.find(({ agent, name }) => agent === "main" && name === payload.toolName);
    const isFunction = spec?.kind === "function" && spec.runs === null && spec.approval === "never";
    const isFree = !this.#policy.requireToolApproval && !this.#gate.requireToolApproval;
    return isFunction && isFree && typeof payload.args === "object";
  }

  /** Wait until the storage has what a run has come to, and what it runs has ended: its stream ends before that. */
  async #settle(runId, requests, callIds) {
    for (const end = Date.now() + SUSPEND_TIMEOUT; Date.now() < end; await sleep(10)) {
      const runs = await this.#suspended();
      const listed = runs.filter((run) => run.runId === runId).flatMap(({ toolCalls }) => toolCalls);
      const ids = listed.map(({ toolCallId }) => idOf(runId, toolCallId));
      if (this.hasStored(requests, ids) && callIds.every((id) => hasEnded(this.world, id))) return;
    }
  }

  /** Return whether the storage, which lists these ids for a run, has what the run has come to. */
  hasStored(_, ids) {
    return ids.length > 0;
  }

  #request(runId, call, chain) {
    return requestOf(runId, call, this.blueprint.tools, chain);
  }

  /** Return the suspended runs of the thread, oldest first. */
  async #suspended() {
    // Before 1.48, an application keeps what its runs have shown.
    const { runs } = (await this.crew.main.listSuspendedRuns?.({ threadId: this.#thread, resourceId: RESOURCE })) ?? {
      runs: [...this.#kept],
    };
    return runs.sort((one, other) => one.suspendedAt - other.suspendedAt);
  }

  async pending() {
    const runs = await this.#suspended();
    return runs.flatMap(({ runId, toolCalls }) =>
      toolCalls.map((call) => this.#request(runId, this.#withArgs(runId, call))),
    );
  }

  /** Return a listed call with the arguments that its run has shown: of durable runs the list has none. */
  #withArgs(runId, call) {
    if (call.args !== undefined) return call;
    const calls = this.#kept.filter((run) => run.runId === runId).flatMap(({ toolCalls }) => toolCalls);
    return { ...calls.find(({ toolCallId }) => toolCallId === call.toolCallId), ...call };
  }

  /** Return the ids of the thread's runs that are stored as running. */
  async findActive() {
    const { runs } = await this.crew.main.listActiveRuns({ threadId: this.#thread, resourceId: RESOURCE });
    return runs.map(({ runId }) => runId);
  }

  async dump() {
    return JSON.stringify({ thread: this.#thread, run: this.#runId, kept: this.#kept });
  }

  async load(parts) {
    ({ thread: this.#thread, run: this.#runId, kept: this.#kept = [] } = JSON.parse(parts.at(-1)));
  }

  async anotherSession(world) {
    return new this.constructor(world, this.blueprint, this.#shared);
  }

  async close() {
    await this.#shared.leave();
  }
}

/** The same with `durable: true`: each run is a workflow, which is stored as it goes on, and which a stream observes. */
export class DurableMastraAgent extends MastraAgent {
  /** The runs that were cut off when the process died. */
  #orphans = [];

  get isDurable() {
    return true;
  }

  get runOptions() {
    // As with other agents, the stream of a turn ends when its run is suspended.
    return { closeOnSuspend: true };
  }

  async turn(text, decisions, how) {
    for (const runId of this.#orphans.splice(0)) await this.#recover(runId);
    return super.turn(text, decisions, how);
  }

  /** Go on with a run that was cut off; as when a server starts, one that cannot be recovered stops nothing else. */
  async #recover(runId) {
    try {
      await this.follow(this.crew.main.recover(runId));
    } catch {
      // Its result has them: `{ recovered, succeeded, failed }`.
    }
  }

  resume(data, options, { stream }) {
    const { main } = this.crew;
    return stream ? main.resumeStream(data, options) : main.resumeGenerate(options.runId, data, options);
  }

  async recover(parts) {
    await super.recover(parts);
    this.#orphans = await this.findActive();
  }

  /** A run is stored after its result was returned, and until then the storage has what it was resumed from. */
  hasStored(requests, ids) {
    return requests.length === ids.length && requests.every(({ id }) => ids.includes(id));
  }
}

/** Return the calls around the one that a request is about, if the stream has shown them. */
function chainTo({ toolCallId, toolName, args }, chains) {
  const chain = chains.get(toolCallId);
  // The request says what is asked: of what is around it, only whose call it is counts.
  return chain?.at(-1).toolName === toolName ? [...chain.slice(0, -1), { toolCallId, toolName, args }] : undefined;
}
