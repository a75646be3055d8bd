/** Agents that sessions run, built from tool specs; each has a model with its own name. */

import { Agent, MCPServerStdio, MCPServerStreamableHttp, getAllMcpTools, handoff } from "@openai/agents";

import { byServer } from "../../javascript/agent.mjs";
import { schemaOf } from "../../javascript/schemas.mjs";
import { Shared } from "../../javascript/shared.mjs";
import { modelsOf } from "./models.mjs";
import { functionTool, hostedTool, policyOf } from "./tools.mjs";

/** @typedef {import("../../javascript/agent.mjs").ToolSpec} ToolSpec */

/** The agents of a session, and how they are run. */
export class Crew {
  /** @type {Map<string, Agent>} the agents by what the harness calls them */
  agents = new Map();

  /** @type {(MCPServerStdio | MCPServerStreamableHttp)[]} */
  #servers = [];

  /** @param {import("../../javascript/agent.mjs").Blueprint} blueprint */
  constructor(blueprint) {
    const { tools, answer, limits, model, options, names } = blueprint;
    this.tools = tools;
    this.maxTurns = limits.model_replies;
    const modelOf = modelsOf(model.protocol);
    for (const name of namesIn(tools)) {
      const frameworkName = names[name] ?? options.agent_names?.[name] ?? name;
      this.agents.set(name, new Agent({ name: frameworkName, model: modelOf(name) }));
    }
    for (const [name, agent] of this.agents)
      this.#equip(
        agent,
        tools.filter((spec) => spec.agent === name),
      );
    // Whoever has taken the conversation over answers for the main agent.
    if (Object.keys(answer).length)
      for (const name of handedOverTo(tools)) this.agents.get(name).outputType = schemaOf(answer);
  }

  /** The agent that the caller talks to. */
  get main() {
    return this.agents.get("main");
  }

  /** Return the harness' name of an agent. */
  label(agent) {
    // Identity first: two agents may have the same name in the framework.
    for (const [name, candidate] of this.agents) if (candidate === agent) return name;
    for (const [name, candidate] of this.agents) if (candidate.name === agent?.name) return name;
    return agent?.name ?? "main";
  }

  /**
   * Connect to the servers of the agents. A server in `Agent.mcpServers` cannot be gated; its tools can, so they are
   * added to the tools of the agent.
   *
   * @param {import("../../javascript/agent.mjs").ServerAddress[]} addresses
   */
  async connect(addresses) {
    for (const { name, agent, ...where } of addresses) {
      const server = serverAt(name, where);
      this.#servers.push(server);
      await server.connect();
      const tools = await getAllMcpTools([server]);
      this.agents.get(agent).tools.push(...tools.map((tool) => this.#gated(tool, name, agent)));
    }
    return this;
  }

  async close() {
    await Promise.all(this.#servers.map((server) => server.close()));
  }

  #gated(tool, server, agent) {
    const isSpecOfTool = (spec) =>
      spec.kind === "mcp" && spec.server === server && spec.agent === agent && spec.name === tool.name;
    const needed = policyOf(this.tools.find(isSpecOfTool));
    return { ...tool, needsApproval: typeof needed === "boolean" ? async () => needed : needed };
  }

  #equip(agent, own) {
    const functions = own.filter(({ kind, hands_over_to: to }) => kind === "function" && to === null);
    agent.tools = functions.map((spec) => (spec.runs === null ? functionTool(spec) : this.#agentTool(spec)));
    for (const [server, specs] of byServer(own, "hosted_mcp")) agent.tools.push(hostedTool(server, specs));
    agent.handoffs = own.filter((spec) => spec.hands_over_to !== null).map((spec) => this.#handoff(spec));
  }

  #agentTool(spec) {
    const { name, description, runs } = spec;
    const options = { toolName: name, toolDescription: description, needsApproval: policyOf(spec) };
    return this.agents.get(runs).asTool(options);
  }

  #handoff({ name, description, hands_over_to: to }) {
    return handoff(this.agents.get(to), { toolNameOverride: name, toolDescriptionOverride: description });
  }
}

/** Return the main agent, and those that have the conversation after one or more hand-overs. */
function handedOverTo(tools) {
  const names = new Set(["main"]);
  for (const name of names)
    for (const spec of tools) if (spec.agent === name && spec.hands_over_to !== null) names.add(spec.hands_over_to);
  return names;
}

function serverAt(name, { url, command: [command, ...args] }) {
  return url ? new MCPServerStreamableHttp({ name, url }) : new MCPServerStdio({ name, command, args });
}

/** @param {ToolSpec[]} specs */
function namesIn(specs) {
  const named = specs.flatMap(({ agent, runs, hands_over_to: to }) => [agent, runs, to]);
  return new Set(["main", ...named.filter((name) => name !== null)]);
}

/**
 * Return the agents of a blueprint, connected to their servers.
 *
 * @param {import("../../javascript/agent.mjs").Blueprint} blueprint
 * @returns {Shared<Crew>}
 */
export function crewOf(blueprint) {
  return new Shared(
    () => new Crew(blueprint).connect(blueprint.servers),
    (crew) => crew.close(),
  );
}
