/** MCP server of the tools that are functions: the program connects to it, and it runs them in the world of a session. */

import http from "node:http";
import { once } from "node:events";

import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { CallToolRequestSchema, CancelledNotificationSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { text } from "../../javascript/plain.mjs";

/** The name of the server. */
export const SERVER = "tools";

export class ToolServer {
  #specs;
  #world;
  #running = new Map();
  #server = http.createServer((request, response) => this.#answer(request, response));

  /**
   * @param {import("../../javascript/agent.mjs").ToolSpec[]} specs
   * @param {import("../../javascript/world.mjs").World} world
   */
  constructor(specs, world) {
    this.#specs = specs;
    this.#world = world;
  }

  /** @returns {Promise<string>} its address, once it listens on the loopback interface */
  async start() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${this.#server.address().port}/mcp`;
  }

  close() {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request, response) {
    // Without session ids each request has a server of its own.
    const server = new Server({ name: SERVER, version: "1.0.0" }, { capabilities: { tools: {} } });
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: this.#specs.map(listed) }));
    server.setRequestHandler(CallToolRequestSchema, ({ params }, { requestId }) => this.#runUntilCancelled(params, requestId));
    server.setNotificationHandler(CancelledNotificationSchema, ({ params }) => this.#running.get(params.requestId)?.abort());
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
    response.on("close", () => server.close());
    await server.connect(transport);
    await transport.handleRequest(request, response);
  }

  /** A cancellation comes as a request of its own, to another server than the one that runs the call. */
  async #runUntilCancelled(params, id) {
    const abort = new AbortController();
    this.#running.set(id, abort);
    try {
      return await this.#run(params, abort.signal);
    } finally {
      this.#running.delete(id);
    }
  }

  async #run({ name, arguments: args }, signal) {
    const spec = this.#specs.find((tool) => tool.name === name);
    if (spec === undefined) return { isError: true, content: [{ type: "text", text: `there is no tool ${name}` }] };
    try {
      const value = await this.#world.run(name, args ?? {}, null, { agent: spec.agent, signal });
      return { content: [{ type: "text", text: text(value) }] };
    } catch (error) {
      return { isError: true, content: [{ type: "text", text: String(error?.message ?? error) }] };
    }
  }
}

function listed({ name, description, parameters }) {
  const named = Object.entries(parameters);
  const properties = Object.fromEntries(named.map(([key, parameter]) => [key, schemaOf(parameter)]));
  const required = named.filter(([, parameter]) => parameter.required).map(([key]) => key);
  return { name, description, inputSchema: { type: "object", properties, required } };
}

function schemaOf({ type, required, default: value }) {
  // Providers refuse an array without items, and programs pass schemas on as they are.
  const plain = type === "array" ? { type, items: {} } : { type };
  return required ? plain : { ...plain, default: value };
}
