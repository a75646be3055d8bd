/**
 * State that the caller keeps between turns: the input list of the next run, the agent that has the conversation, and
 * the state of the newest run.
 */

import { RunState } from "@openai/agents";

import { ordered } from "../../javascript/plain.mjs";

export class Memory {
  /** The input of a run that failed before it had a state, to be handed in again. */
  unanswered = null;

  /** The newest run resumes with the next message: it was resumed and failed, or it holds staged decisions. */
  unfinished = false;

  /** @type {{agent: import("@openai/agents").Agent, over: boolean, state: RunState} | null} the newest run */
  run = null;

  history = [];

  /** @param {import("./crew.mjs").Crew} crew */
  constructor(crew) {
    this.crew = crew;
    this.agent = crew.main;
  }

  /** The requests that the newest run waits for. */
  get requests() {
    return this.run?.state.getInterruptions() ?? [];
  }

  /** Return the input of a run that begins with a message. */
  inputWith(text) {
    return [...(this.unanswered ?? this.history), { role: "user", content: text }];
  }

  /** Record the result of a new or resumed run. */
  ends(result, resumed) {
    this.unanswered = null;
    this.unfinished = false;
    this.run = { agent: resumed?.agent ?? this.agent, over: !result.interruptions.length, state: result.state };
    this.agent = result.lastAgent ?? this.agent;
    this.history = result.history;
  }

  /** Record what an error of the SDK says about a run that failed; other errors say nothing. */
  fails(error, resumed) {
    const done = error?.state?.history;
    if (done !== undefined && isWhole(done)) {
      this.history = done;
      this.unanswered = resumed ? null : done;
    } else if (resumed) {
      this.unfinished = !resumed.over && this.requests.length === 0;
    }
  }

  dump() {
    const { unanswered, unfinished, history, run, crew } = this;
    const agents = { agent: crew.label(this.agent), beganWith: run && crew.label(run.agent) };
    // A restored state is written with its keys in another order, except for the provider's data.
    const state = run && ordered(JSON.parse(run.state.toString()), ["providerData"]);
    return JSON.stringify({ unanswered, unfinished, history, ...agents, over: run?.over, state });
  }

  /** Restore what `dump` returned. */
  async load(text) {
    const { unanswered, unfinished, history, agent, beganWith, over, state } = JSON.parse(text);
    Object.assign(this, { unanswered, unfinished, history });
    this.agent = this.crew.agents.get(agent);
    if (state === null) return;
    const first = this.crew.agents.get(beganWith);
    this.run = { agent: first, over, state: await RunState.fromString(first, JSON.stringify(state)) };
  }
}

/** Return whether every call of an input list has its result: models refuse other lists. */
function isWhole(items) {
  const ids = (kind) => items.filter(({ type }) => type === kind).map(({ callId }) => callId);
  const answered = new Set(ids("function_call_result"));
  return ids("function_call").every((id) => answered.has(id));
}
