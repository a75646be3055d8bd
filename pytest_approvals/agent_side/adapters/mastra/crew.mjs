/** Agents that sessions run, built from tool specs; each has a model with its own name. */

import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

import { Mastra } from "@mastra/core";
import { Agent } from "@mastra/core/agent";
import { MCPClient } from "@mastra/mcp";
import { Memory } from "@mastra/memory";

import { modelFactories } from "../../javascript/ai_sdk_models.mjs";
import { needsApprovalByAnnotations } from "../../javascript/annotations.mjs";
import { BrokenContract } from "../../javascript/failures.mjs";
import { Shared } from "../../javascript/shared.mjs";
import { world } from "../../javascript/world.mjs";
import { withNames } from "./delegations.mjs";
import { openStore } from "./store.mjs";
import { needsApproval, toolOf } from "./tools.mjs";

/** More replies and messages than any script has: by default, Mastra counts to five and ten. */
const NO_LIMIT = 1000;

/** @typedef {import("../../javascript/agent.mjs").ToolSpec} ToolSpec */

/** The agents of a session, and where they keep their runs and messages. */
export class Crew {
  /** @type {MCPClient[]} */
  #clients = [];

  /**
   * @param {import("../../javascript/agent.mjs").Blueprint} blueprint
   * @param {{isDurable: boolean}} how whether the main agent is one whose runs are durable workflows
   */
  constructor(blueprint, { isDurable }) {
    this.blueprint = blueprint;
    this.tools = blueprint.tools;
    this.isDurable = isDurable;
  }

  /** Connect to the servers, and build the agents. */
  async build() {
    if (this.isDurable) requireClosingStreams();
    const { servers, model } = this.blueprint;
    this.modelOf = await modelFactories[model.protocol]();
    const connected = await Promise.all(servers.map((address) => this.#connect(address)));
    const toolsets = connected.map((tools, index) => ({ agent: servers[index].agent, tools }));
    const built = new Map();
    const main = this.#agent("main", toolsets, built);
    this.storage = openStore(this.blueprint);
    // Without `recovery`, the workflow of a durable run is stored when it is suspended only.
    const more = this.isDurable ? { recovery: { durableAgents: "auto" } } : {};
    this.mastra = new Mastra({ agents: { main }, storage: this.storage, logger: false, ...more });
    // The instance has put another one in the place of a durable agent.
    this.main = this.mastra.getAgent("main");
    return this;
  }

  async close() {
    await Promise.all(this.#clients.map((client) => client.disconnect()));
    await this.storage.close?.();
  }

  #agent(name, toolsets, built) {
    if (built.has(name)) return built.get(name);
    const own = this.tools.filter((spec) => spec.agent === name);
    const functions = own.filter(({ kind, runs }) => kind === "function" && runs === null);
    const connected = toolsets.filter(({ agent }) => agent === name).map(({ tools }) => tools);
    const delegations = own.filter(({ runs }) => runs !== null);
    const isGated = name !== "main" || this.blueprint.options.gate !== "call";
    const newName = this.blueprint.names[name];
    const agent = new Agent({
      id: newName ?? name,
      name: newName ?? this.blueprint.options.agent_names?.[name] ?? name,
      description: name,
      instructions: "",
      model: withNames(this.modelOf(name), own),
      tools: Object.assign({}, ...functions.map((spec) => ({ [spec.name]: toolOf(spec, isGated) })), ...connected),
      agents: Object.fromEntries(delegations.map((spec) => [spec.name, this.#agent(spec.runs, toolsets, built)])),
      defaultOptions: { maxSteps: NO_LIMIT },
      ...(name === "main" ? { memory: new Memory({ options: { lastMessages: NO_LIMIT } }) } : {}),
      ...(name === "main" && this.isDurable ? { durable: true } : {}),
    });
    built.set(name, agent);
    return agent;
  }

  /** Return the tools of a server. */
  async #connect({ name, agent, url, command: [command, ...args] }) {
    const specOf = (tool) =>
      this.tools.find(
        (spec) => spec.kind === "mcp" && spec.server === name && spec.agent === agent && spec.name === tool,
      );
    const where = url ? { url: new URL(url) } : { command, args };
    const requireToolApproval = ({ toolName, args: input, annotations }) => {
      const spec = specOf(toolName);
      return spec.by_annotations ? needsApprovalByAnnotations(annotations) : needsApproval(spec, input);
    };
    const answer = ({ message, requestedSchema: form, url: page }) => world().elicit(message, { form, url: page });
    const server = {
      ...where,
      requireToolApproval,
      inputRequests: ({ params }) => answer(params),
      capabilities: { elicitation: { form: {}, url: {} } },
    };
    const client = new MCPClient({ id: randomUUID(), servers: { [name]: server } });
    this.#clients.push(client);
    // Before 2.0 of its package, the client takes the handler.
    await client.elicitation?.onRequest(name, answer);
    return (await client.listToolsets())[name];
  }
}

/** Refuse a release in which the stream of a suspended run stays open, whatever it is told. */
function requireClosingStreams() {
  const { version } = createRequire(import.meta.url)("@mastra/core/package.json");
  const [major, minor] = version.split(".").map(Number);
  if (major === 1 && minor < 70) throw new BrokenContract(`mastra.durable needs @mastra/core 1.70, and not ${version}`);
}

/**
 * Return the agents of a blueprint, connected to their servers.
 *
 * @param {import("../../javascript/agent.mjs").Blueprint} blueprint
 * @param {{isDurable: boolean}} how
 * @returns {Shared<Crew>}
 */
export function crewOf(blueprint, how) {
  return new Shared(
    () => new Crew(blueprint, how).build(),
    (crew) => crew.close(),
  );
}
