/** What the flavours share: a home of the CLI, the way to its model, and what its messages say. */

import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

import { Agent } from "../../javascript/agent.mjs";
import { Client } from "./client.mjs";
import { errorOf, saidAfter, show } from "./messages.mjs";
import { AgentParts } from "./parts.mjs";
import { ModelProxy } from "./proxy.mjs";
import { ToolServer } from "./tool_server.mjs";

/** One session of the CLI; flavours differ in how it waits. */
export class Session extends Agent {
  #folder = null;
  #proxy = null;
  #url = "";
  #tools = null;
  #toolsUrl = null;
  /** What the agent has said since the last result of a call. */
  said = "";
  /** Whether a turn has a consumer to whom its stream is shown. */
  isStreamed = false;

  /**
   * @param {import("../../javascript/world.mjs").World} world
   * @param {import("../../javascript/agent.mjs").Blueprint} blueprint
   * @param {AgentParts} [parts]
   */
  constructor(world, blueprint, parts = new AgentParts(blueprint)) {
    super(world, blueprint);
    this.parts = parts;
  }

  /** Whether the CLI keeps the session in its own files. */
  get isInFiles() {
    return this.blueprint.serialize.startsWith("native.");
  }

  /**
   * Return a client of the CLI.
   *
   * @param {import("@anthropic-ai/claude-agent-sdk").Options} options
   */
  async startClient(options) {
    if (this.#proxy === null) {
      this.#proxy = new ModelProxy(() => this.world.address.url, this.parts.fullNames);
      this.#url = await this.#proxy.start();
    }
    if (this.hasToolServer && this.#tools === null) {
      this.#tools = new ToolServer(() => this.parts.buildServer(), this.world);
      this.#toolsUrl = await this.#tools.start();
    }
    const onElicitation = ({ message, requestedSchema: form, url }) => this.world.elicit(message, { form, url });
    const more = { onElicitation, ...options };
    return new Client(this.parts.optionsOf(await this.#home(), this.#url, this.#toolsUrl, more));
  }

  /** Whether the tools that are functions are behind an address, and not in the process of the query. */
  get hasToolServer() {
    return false;
  }

  /** Return the folder in which the CLI keeps its files: for a store that of the run, else one of its own. */
  async #home() {
    if (this.isInFiles) return this.blueprint.directory;
    this.#folder ??= await mkdtemp(path.join(os.tmpdir(), "claude-"));
    return this.#folder;
  }

  /**
   * Read the messages of a run up to its result, and report what they show in a streamed turn.
   *
   * @param {Client} client
   */
  async receiveResult(client) {
    this.said = "";
    return client.receiveResult((message) => {
      if (this.isStreamed) show(message, this.world, this.parts.specs);
      if (message.type !== "result") this.said = saidAfter(this.said, message);
    });
  }

  /** @param {import("@anthropic-ai/claude-agent-sdk").SDKResultMessage} result */
  finishedOf(result) {
    if (result.is_error) throw errorOf(result);
    const isStructured = Object.keys(this.blueprint.answer).length > 0 && result.structured_output !== undefined;
    return { finished: { output: isStructured ? result.structured_output : result.result } };
  }

  /**
   * Return what a turn comes to whose call waits.
   *
   * @param {import("../../javascript/agent.mjs").Request} request
   */
  pausedOf(request) {
    return { paused: { requests: [request], ...(this.said ? { text: this.said } : {}) } };
  }

  /**
   * Report the end of a streamed turn.
   *
   * @param {import("../../javascript/agent.mjs").Request | null} request the call that waits
   */
  showEnd(request) {
    if (!this.isStreamed) return;
    if (request !== null) this.world.shown("request", { id: request.id });
    this.world.shown("end");
  }

  /** Return whether a call waits for the caller. */
  async needsAnswer({ name, agent, approval }, args, callId) {
    if (typeof approval === "string") return approval === "always";
    return this.world.gate(name, args, callId, { agent });
  }

  /** Return a session with the same tools. */
  async anotherSession(world) {
    return new this.constructor(world, this.blueprint, this.parts);
  }

  /** Keep the CLI from its model: nothing that it asks from now on is part of a turn. */
  closeModel() {
    this.#proxy?.close();
    this.#proxy = null;
  }

  async close() {
    this.closeModel();
    this.#tools?.close();
    if (this.#folder !== null) await rm(this.#folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
  }
}
