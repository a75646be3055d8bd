/** The OpenAI Agents SDK for JavaScript: a paused run is a `RunState`, which resumes with `run(agent, state)`. */

import { Runner } from "@openai/agents";

import { Agent } from "../../javascript/agent.mjs";
import { Unsupported } from "../../javascript/failures.mjs";
import { crewOf } from "./crew.mjs";
import { apply, requestOf } from "./decisions.mjs";
import { Memory } from "./memory.mjs";
import { show } from "./shown.mjs";

const runner = new Runner({ tracingDisabled: true });

class OpenAIAgents extends Agent {
  #shared;

  constructor(world, blueprint, shared = crewOf(blueprint)) {
    super(world, blueprint);
    this.#shared = shared.join();
  }

  /** Set up the agents and the memory of the session. */
  async begin() {
    this.crew = await this.#shared.get();
    this.memory = new Memory(this.crew);
  }

  async turn(text, decisions, how) {
    const result = await this.#runTurn(text, decisions, how);
    const items = result.interruptions;
    if (items.length) {
      return { paused: { requests: items.map((item) => requestOf(item, this.crew)), text: textNextToCalls(result) } };
    }
    return { finished: { output: result.finalOutput } };
  }

  #runTurn(text, decisions, how) {
    const { memory } = this;
    if (decisions.length) {
      this.#put(decisions, text);
      return this.#run(memory.run.agent, memory.run.state, how, memory.run);
    }
    if (text !== null && !memory.unfinished) return this.#begin(memory.inputWith(text), how);
    if (text !== null) memory.run.state.addInput(text);
    else if (memory.unanswered !== null && !memory.requests.length) return this.#begin(memory.unanswered, how);
    if (memory.run === null) return this.#begin(memory.history, how);
    return this.#run(memory.run.agent, memory.run.state, how, memory.run);
  }

  #begin(input, how) {
    this.memory.unanswered = input;
    return this.#run(this.memory.agent, input, how, null);
  }

  async #run(agent, input, { stream, signal }, resumed) {
    const { maxTurns } = this.crew;
    try {
      const result = await runner.run(agent, input, { stream, signal, ...(maxTurns ? { maxTurns } : {}) });
      if (stream) await this.#consume(result);
      this.memory.ends(result, resumed);
      return result;
    } catch (error) {
      this.memory.fails(error, resumed);
      throw error;
    }
  }

  async #consume(result) {
    for await (const event of result) show(event, this.world);
    await result.completed;
    if (result.error) throw result.error;
    this.world.shown("end");
  }

  /** Put decisions, and a message that comes with them, into the newest run. */
  #put(decisions, text = null) {
    const state = this.memory.run?.state;
    if (state === undefined) throw new Unsupported("unknown_request", "there is no RunState before a run has ended");
    for (const decision of decisions) apply(state, decision, this.crew);
    // A message beside a decision that is refused is refused, too.
    if (text !== null) state.addInput(text);
  }

  async pending() {
    return this.memory.requests.map((item) => requestOf(item, this.crew));
  }

  async stage(decisions) {
    this.#put(decisions);
    // A run that has ended takes no further input: the next message begins another one.
    this.memory.unfinished = !this.memory.run.over;
  }

  async dump() {
    return this.memory.dump();
  }

  async load(parts) {
    await this.memory.load(parts.at(-1));
  }

  async anotherSession(world) {
    return new OpenAIAgents(world, this.blueprint, this.#shared);
  }

  async close() {
    await this.#shared.leave();
  }
}

/** Return the model's text next to the calls that wait. */
function textNextToCalls(result) {
  const messages = (result.rawResponses.at(-1)?.output ?? []).filter(({ type }) => type === "message");
  return messages.flatMap(({ content }) => content.map((part) => part.text ?? "")).join("");
}

export const FLAVOURS = { "": OpenAIAgents };
