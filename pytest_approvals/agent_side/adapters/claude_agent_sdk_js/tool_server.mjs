/** The MCP server of the tools that are functions, at an address on the loopback interface. */

import http from "node:http";
import { once } from "node:events";

import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

import { inWorld } from "../../javascript/world.mjs";

export class ToolServer {
  #build;
  #world;
  #server = http.createServer((request, response) => inWorld(this.#world, () => this.#answer(request, response)));

  /**
   * @param {() => import("@anthropic-ai/claude-agent-sdk").McpSdkServerConfigWithInstance} build builds the server
   * @param {import("../../javascript/world.mjs").World} world in which the tools run
   */
  constructor(build, world) {
    this.#build = build;
    this.#world = world;
  }

  /** @returns {Promise<string>} its address, once it listens */
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
    const { instance } = this.#build();
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined, enableJsonResponse: true });
    response.on("close", () => instance.close());
    await instance.connect(transport);
    await transport.handleRequest(request, response);
  }
}
