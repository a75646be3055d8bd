/** What an adapter implements, and the plain values that it is handed. */

import { Unsupported } from "./failures.mjs";

/**
 * @typedef {object} ToolSpec one tool of one agent
 * @property {string} name
 * @property {Record<string, {type: string, required: boolean, default?: any}>} parameters
 * @property {string} description
 * @property {"always" | "never" | object} approval a condition is never evaluated here: ask `World.gate`
 * @property {"function" | "mcp" | "hosted_mcp"} kind
 * @property {string | null} server
 * @property {string} agent the agent that has it
 * @property {string | null} runs the agent that its calls run
 * @property {string | null} hands_over_to the agent that its calls hand the conversation over to
 */

/**
 * @typedef {object} Blueprint what an agent is built from
 * @property {ToolSpec[]} tools
 * @property {object[]} written the tools as the harness wrote them
 * @property {Record<string, {type: string, required: boolean, default?: any}>} answer
 * @property {{model_replies?: number, tool_calls?: number}} limits
 * @property {string} serialize
 * @property {"whole" | "append"} history
 * @property {string} directory
 * @property {import("./world.mjs").ModelAddress} [model] where the model is reached; missing if the world is asked
 * @property {ServerAddress[]} servers where the servers of the tools of kind `mcp` are
 * @property {Record<string, any>} options
 * @property {Record<string, string>} names the new names of agents that were renamed
 */

/**
 * @typedef {object} ServerAddress where an MCP server is: `url` or `command` is given
 * @property {string} name
 * @property {string} agent
 * @property {string} url for streamable HTTP
 * @property {string[]} command for stdio: the program, and its arguments
 */

/**
 * @typedef {object} Request an approval request, as the framework shows it
 * @property {string} id
 * @property {string | null} call_id
 * @property {string} tool
 * @property {any} arguments
 * @property {string} [kind]
 * @property {string | null} [server]
 * @property {string} [agent]
 * @property {any} [handle] the framework's own object, which stays in this process
 */

/**
 * @typedef {object} Decision a caller's answer
 * @property {Request | null} request
 * @property {"approve" | "reject" | "edit" | "always" | "never" | "raw"} verdict
 * @property {string | null} [reason]
 * @property {any} [arguments]
 * @property {string | null} [tool]
 * @property {any} [raw] put verbatim where the framework takes a decision
 * @property {any} [address] put verbatim in the place of a request, if there is none
 */

/** @typedef {{paused: {requests: Request[], text?: string}} | {finished: {output: any}}} Outcome */

/** One session of the agent under test; every method that is not overridden cannot be expressed. */
export class Agent {
  /**
   * @param {import("./world.mjs").World} world
   * @param {Blueprint} blueprint
   */
  constructor(world, blueprint) {
    this.world = world;
    this.blueprint = blueprint;
  }

  /** Set up what takes time; called once, before anything else. */
  async begin() {}

  /**
   * Take one turn: hand text and decisions to the framework and run until it pauses, finishes or fails.
   *
   * @param {string | null} text
   * @param {Decision[]} decisions
   * @param {{stream: boolean, signal: AbortSignal}} how
   * @returns {Promise<Outcome>}
   */
  async turn(text, decisions, how) {
    throw new Unsupported("turn");
  }

  /** @returns {Promise<Request[]>} the open requests that the state holds, without running anything */
  async pending() {
    return [];
  }

  /** @param {Decision[]} decisions are put into the state without resuming */
  async stage(decisions) {
    throw new Unsupported("stage");
  }

  async cancel() {
    throw new Unsupported("cancel");
  }

  /** @param {number} keep how many messages the framework's own trimming keeps */
  async trim(keep) {
    throw new Unsupported("trim");
  }

  /** @returns {Promise<string>} all that the caller must keep; with history `append` what the last turn added */
  async dump() {
    throw new Unsupported("serialize.json");
  }

  /** @param {string[]} parts what `dump` returned; called on a new agent */
  async load(parts) {
    throw new Unsupported("serialize.json");
  }

  /**
   * Restore a session whose process was killed in a turn that came after `dump`, from what its store has.
   *
   * @param {string[]} parts what `dump` returned; called on a new agent
   */
  async recover(parts) {
    await this.load(parts);
  }

  /** @param {Agent} other an agent whose state is copied; called on a new agent */
  async copyFrom(other) {
    throw new Unsupported("serialize.copy");
  }

  /**
   * @param {import("./world.mjs").World} world
   * @returns {Promise<Agent>} a second, empty session on the same framework objects
   */
  async anotherSession(world) {
    throw new Unsupported("sessions");
  }

  async close() {}
}

/**
 * Return a blueprint with defaults for what its message left out.
 *
 * @param {any} written
 * @returns {Blueprint}
 */
export function blueprintOf(written) {
  // The protocol leaves out fields that hold their defaults.
  const defaults = { answer: {}, limits: {}, serialize: "none", history: "whole", directory: "", options: {}, names: {} };
  const specs = written.tools ?? [];
  const servers = (written.servers ?? []).map((server) => ({ agent: "main", url: "", command: [], ...server }));
  const answer = parametersOf(written.answer);
  return { ...defaults, ...written, tools: specs.map(toolOf), servers, written: specs, answer };
}

/**
 * Return the tools of each server.
 *
 * @param {ToolSpec[]} specs
 * @param {string} kind
 * @returns {Map<string, ToolSpec[]>}
 */
export function byServer(specs, kind) {
  const servers = new Map();
  for (const spec of specs.filter((tool) => tool.kind === kind)) {
    servers.set(spec.server, [...(servers.get(spec.server) ?? []), spec]);
  }
  return servers;
}

function toolOf(written) {
  const defaults = { description: "", approval: "never", kind: "function", server: null, agent: "main" };
  const parameters = parametersOf(written.parameters);
  return { ...defaults, runs: null, hands_over_to: null, ...written, parameters };
}

function parametersOf(written) {
  const defaults = { type: "string", required: true };
  const parameters = Object.entries(written ?? {}).map(([name, parameter]) => [name, { ...defaults, ...parameter }]);
  return Object.fromEntries(parameters);
}
