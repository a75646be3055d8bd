/**
 * The programs that speak ACP, as data: how each is started, and told where its model is.
 *
 * In all texts, `{model}` stands for the address of the session's model, `{side}` for the name of the model that answers
 * side requests, `{home}` for the folder that the program keeps its files in, `{node_modules}` for the installed packages,
 * and `{platform}` for the system and processor, such as `linux-x64`.
 */

import { readFileSync } from "node:fs";

import { SIDE_MODEL } from "./side_replies.mjs";

/** Environment variable that describes the program of the flavour `program`: a JSON file, or the object itself. */
export const PROGRAM_FILE = "PYTEST_APPROVALS_ACP_PROGRAM";

/**
 * @typedef {object} Program
 * @property {string[]} command the program and its arguments
 * @property {"chat" | "responses" | "messages" | "gemini"} protocol how it asks its model
 * @property {string} [tool] how it names a tool of an MCP server, with `{server}` and `{tool}`; found out if left out
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
    CLAUDE_CODE_MAX_RETRIES: "0",
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

export const PROGRAMS = { claude_code: CLAUDE_CODE, opencode: OPENCODE };

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
