/**
 * The programs that speak ACP, as data: how each is started, and told where its model is.
 *
 * In all texts, `{model}` stands for the address of the session's model, `{side}` for the name of the model that answers
 * side requests, `{home}` for the folder that the program keeps its files in, `{node_modules}` for the installed packages,
 * and `{platform}` for the system and processor, such as `linux-x64`. A program that names its model in the path of a
 * request may be told `{models}`, the address of all models, and `{session}`, the name of the session's model there.
 */

import { readFileSync } from "node:fs";

import { SIDE_MODEL } from "./side_replies.mjs";

/** Environment variable that describes the program of the flavour `program`: a JSON file, or the object itself. */
export const PROGRAM_FILE = "PYTEST_APPROVALS_ACP_PROGRAM";

/**
 * @typedef {object} Program
 * @property {string[]} command the program and its arguments
 * @property {"chat" | "responses" | "messages" | "gemini"} protocol how it asks its model
 * @property {string} [tool] how it names a tool of an MCP server, with `{server}` and `{tool}`, and `::` behind what Responses
 *   calls its namespace; found out if left out
 * @property {string} [main] the name of its only model that is asked for the conversation, if others answer side requests
 * @property {string} [input] the field of a call's input that holds the arguments, if they are not the input
 * @property {string} [title] how its questions name such a tool, if not as towards its model
 * @property {string} [id] how it names a call, with `{name}` and `{id}`, if not by the id that the model gave it
 * @property {Record<string, string>} [options] the id of the option that stands for a decision, if it offers several
 * @property {boolean} [private] whether each agent has a process of its own, because it keeps decisions in it
 * @property {boolean} [silent] whether it shows nothing of a call that was rejected
 * @property {Record<string, string>} [environment]
 * @property {number} [start_timeout] the seconds that it may take to start
 * @property {Record<string, any>} [files] what is written into the folder of a session, or into its home if the name
 *   begins with `~/`: texts, or values for JSON
 */

/** @type {Program} */
const OPENCODE = {
  command: ["{node_modules}/opencode-{platform}/bin/opencode", "acp"],
  protocol: "chat",
  tool: "{server}_{tool}",
  environment: {
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
    OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
  },
  files: {
    "opencode.json": {
      model: "loopback/scripted",
      small_model: `loopback/${SIDE_MODEL}`,
      share: "disabled",
      autoupdate: false,
      permission: { "*": "ask" },
      // Without it a rejection ends the turn, and the model reads of it when the next message comes.
      experimental: { continue_loop_on_deny: true },
      provider: {
        loopback: {
          npm: "@ai-sdk/openai-compatible",
          options: { baseURL: "{model}/v1", apiKey: "none" },
          models: { scripted: {}, [SIDE_MODEL]: {} },
        },
      },
    },
  },
};

/** @type {Program} */
const CLAUDE_CODE = {
  command: ["node", "{node_modules}/@agentclientprotocol/claude-agent-acp/dist/index.js"],
  protocol: "messages",
  tool: "mcp__{server}__{tool}",
  environment: {
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    // A script says what a model answers to each request, so the CLI does not repeat any.
    CLAUDE_CODE_MAX_RETRIES: "0",
    CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: "1",
    IS_SANDBOX: "1", // it refuses to run as root otherwise
    CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION: "false",
    ENABLE_TOOL_SEARCH: "false",
    DISABLE_AUTOUPDATER: "1",
    DISABLE_TELEMETRY: "1",
  },
  files: {
    // Of each session: its CLI reads them in its own folder.
    ".claude/settings.json": {
      env: {
        ANTHROPIC_BASE_URL: "{model}",
        ANTHROPIC_API_KEY: "none",
        ANTHROPIC_MODEL: "scripted",
        ANTHROPIC_DEFAULT_HAIKU_MODEL: SIDE_MODEL,
      },
      attribution: { commit: "", pr: "" },
      permissions: { defaultMode: "default" },
    },
  },
};

/** What Codex has to know of a model that is none of its own. */
const CODEX_MODEL = {
  slug: "scripted",
  display_name: "scripted",
  base_instructions: "",
  supported_reasoning_levels: [],
  supports_reasoning_summaries: false,
  supports_parallel_tool_calls: true,
  support_verbosity: false,
  shell_type: "shell_command",
  truncation_policy: { mode: "tokens", limit: 10000 },
  experimental_supported_tools: [],
  visibility: "list",
  supported_in_api: true,
  priority: 1,
};

/** @type {Program} */
const CODEX = {
  command: ["node", "{node_modules}/@agentclientprotocol/codex-acp/dist/index.js"],
  protocol: "responses",
  main: CODEX_MODEL.slug,
  tool: "mcp__{server}::{tool}",
  title: "mcp.{server}.{tool}",
  input: "arguments",
  // Another option of this kind is written into its settings for all sessions.
  options: { always: "allow_session" },
  environment: {
    CODEX_HOME: "{home}/.codex",
    // In its other modes a model decides about what is asked.
    INITIAL_AGENT_MODE: "read-only",
    MODEL_PROVIDER: "loopback",
    NO_BROWSER: "1",
    CODEX_CONFIG: JSON.stringify({
      model_providers: {
        loopback: {
          name: "loopback",
          base_url: "{model}/v1",
          wire_api: "responses",
          request_max_retries: 0,
          stream_max_retries: 0,
        },
      },
    }),
  },
  files: {
    "~/.codex/models.json": { models: [CODEX_MODEL] },
    "~/.codex/config.toml": `
      model = "${CODEX_MODEL.slug}"
      model_catalog_json = "{home}/.codex/models.json"
      check_for_update_on_startup = false
      web_search = "disabled"
      # The keyring is the user's.
      cli_auth_credentials_store = "file"
      mcp_oauth_credentials_store = "file"
      [analytics]
      enabled = false
      [feedback]
      enabled = false
      [features] # those that ask other machines
      apps = false
      plugins = false
      remote_plugin = false
      plugin_discovery_prefetch = false
    `,
  },
};

/** @type {Program} */
const GEMINI = {
  command: ["node", "{node_modules}/@google/gemini-cli/bundle/gemini.js", "--acp"],
  protocol: "gemini",
  tool: "mcp_{server}_{tool}",
  title: "{tool} ({server} MCP Server)",
  id: "{name}__{id}",
  // Another option of this kind allows all tools of the server.
  options: { always: "proceed_always_tool" },
  private: true,
  silent: true,
  environment: {
    GEMINI_API_KEY: "none",
    GOOGLE_GEMINI_BASE_URL: "{models}",
    GEMINI_CLI_HOME: "{home}",
    GEMINI_CLI_NO_RELAUNCH: "true",
    GEMINI_CLI_TRUST_WORKSPACE: "true", // it connects to no server of a folder that is not trusted
  },
  files: {
    "~/.gemini/settings.json": {
      general: { enableAutoUpdate: false, enableAutoUpdateNotification: false, maxAttempts: 1, retryFetchErrors: false },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
      security: { auth: { selectedType: "gemini-api-key" } },
    },
    ".gemini/settings.json": { model: { name: "{session}" } },
  },
};

export const PROGRAMS = { claude_code: CLAUDE_CODE, codex: CODEX, gemini: GEMINI, opencode: OPENCODE };

/**
 * Return the program that the user describes.
 *
 * @returns {Program}
 */
export function readProgram() {
  // It was validated before this process was started.
  const described = process.env[PROGRAM_FILE];
  return JSON.parse(described.startsWith("{") ? described : readFileSync(described, "utf8"));
}

/**
 * Return a value in which what stands in braces is replaced.
 *
 * @param {any} value
 * @param {Record<string, string>} facts
 * @returns {any}
 */
export function filled(value, facts) {
  if (typeof value === "string") return value.replace(/\{(\w+)\}/g, (whole, name) => facts[name] ?? whole);
  if (Array.isArray(value)) return value.map((part) => filled(part, facts));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, filled(part, facts)]));
}
