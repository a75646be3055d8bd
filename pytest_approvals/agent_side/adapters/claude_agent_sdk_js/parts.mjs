/** Options of the SDK for a blueprint's agent: the MCP servers of its tools, and what keeps the CLI to them. */

import os from "node:os";

import { createSdkMcpServer, tool } from "@anthropic-ai/claude-agent-sdk";

import { text } from "../../javascript/plain.mjs";
import { schemaOf } from "../../javascript/schemas.mjs";
import { world } from "../../javascript/world.mjs";
import { SIDE_MODEL } from "./side_replies.mjs";

/** The MCP server of the tools that are functions. */
const SERVER = "tools";

/** The name of the model, which the harness takes for that of the agent. */
const MAIN = "main";

/** Environment variables of the CLI that keep it to the model and its tools. */
const QUIET = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_AUTOUPDATER: "1",
  DISABLE_ERROR_REPORTING: "1",
  DISABLE_TELEMETRY: "1",
  // A script says what a model answers to each request, so the CLI does not repeat any.
  CLAUDE_CODE_MAX_RETRIES: "0",
  CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: "1",
  // Tools that the model has to look for first would not be offered to the script.
  ENABLE_TOOL_SEARCH: "false",
  IS_SANDBOX: "1",
};

const LOOPBACK = "127.0.0.1,localhost,::1";

/** What the sessions of an agent share. */
export class AgentParts {
  #tools;
  #blueprint;

  /** @param {import("../../javascript/agent.mjs").Blueprint} blueprint */
  constructor(blueprint) {
    this.#blueprint = blueprint;
    const functions = blueprint.tools.filter(({ kind }) => kind === "function");
    this.#tools = functions.map(toolOf);
    /** The names of tools in the CLI, by those in the script. */
    this.fullNames = new Map(blueprint.tools.map((spec) => [spec.name, fullNameOf(spec)]));
    /** The tools by their names in the CLI. */
    this.specs = new Map(blueprint.tools.map((spec) => [fullNameOf(spec), spec]));
  }

  /**
   * Return the options of a query.
   *
   * @param {string} home the folder in which the CLI keeps its files
   * @param {string} url the address of the model
   * @param {string | null} toolsUrl the address of the server of the functions; null if that is in this process
   * @param {import("@anthropic-ai/claude-agent-sdk").Options} more options that come before all others
   * @returns {import("@anthropic-ai/claude-agent-sdk").Options}
   */
  optionsOf(home, url, toolsUrl, more) {
    const { answer, limits } = this.#blueprint;
    const proxies = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"].map((name) => [name, url]);
    const env = {
      ...process.env,
      ...QUIET,
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: "none",
      ANTHROPIC_DEFAULT_HAIKU_MODEL: SIDE_MODEL,
      CLAUDE_CONFIG_DIR: configFolderOf(home),
      HOME: home,
      // What is not on this machine is asked for at the server of the model, which refuses it.
      ...Object.fromEntries(proxies),
      no_proxy: LOOPBACK,
      NO_PROXY: LOOPBACK,
    };
    return {
      tools: [],
      mcpServers: this.#servers(toolsUrl),
      strictMcpConfig: true,
      settingSources: [],
      systemPrompt: "",
      model: MAIN,
      permissionMode: "default",
      verbatimPrompts: true,
      ...(limits.model_replies === undefined ? {} : { maxTurns: limits.model_replies }),
      ...(Object.keys(answer).length ? { outputFormat: { type: "json_schema", schema: jsonSchemaOf(answer) } } : {}),
      // The CLI tells the model if a session goes on in another folder, as it does for a state in another process.
      cwd: os.tmpdir(),
      ...more,
      env: { ...env, ...more.env },
    };
  }

  /** Return a server of the tools that are functions, for one query or one request. */
  buildServer() {
    return createSdkMcpServer({ name: SERVER, tools: this.#tools });
  }

  #servers(toolsUrl) {
    const connected = this.#blueprint.servers.map((address) => [address.name, configOf(address)]);
    const functions = toolsUrl === null ? this.buildServer() : { type: "http", url: toolsUrl };
    return Object.fromEntries([...(this.#tools.length ? [[SERVER, functions]] : []), ...connected]);
  }
}

/** Return the folder of the CLI's files in a home. */
export function configFolderOf(home) {
  return `${home}/.claude`;
}

/** Return the name of a tool in the CLI. */
function fullNameOf({ name, kind, server }) {
  return `mcp__${kind === "function" ? SERVER : server}__${name}`;
}

function configOf({ url, command: [command, ...args] }) {
  return url ? { type: "http", url } : { type: "stdio", command, args };
}

function toolOf({ name, agent, description, parameters }) {
  const run = async (input) => {
    const value = await world().run(name, input, null, { agent });
    return { content: [{ type: "text", text: text(value) }] };
  };
  return tool(name, description, schemaOf(parameters).shape, run);
}

/** Return the JSON Schema of an object with these fields. */
function jsonSchemaOf(parameters) {
  const entries = Object.entries(parameters);
  const schemaOfField = ({ type, required, default: value }) => (required ? { type } : { type, default: value });
  return {
    type: "object",
    properties: Object.fromEntries(entries.map(([name, parameter]) => [name, schemaOfField(parameter)])),
    required: entries.filter(([, { required }]) => required).map(([name]) => name),
  };
}
