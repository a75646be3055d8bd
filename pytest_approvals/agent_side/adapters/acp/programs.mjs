/**
 * The programs that speak ACP, as data: how each is started, and told where its model is.
 *
 * In all texts, `{model}` stands for the address of the session's model, `{side}` for the name of the model that answers
 * side requests, `{home}` for the folder that the program keeps its files in, `{node_modules}` for the installed packages,
 * and `{platform}` for the system and processor, such as `linux-x64`.
 */

import { readFileSync } from "node:fs";

import { SIDE_MODEL } from "./side_replies.mjs";

/** Environment variable that names the file of the program of the flavour `command`. */
export const PROGRAM_FILE = "PYTEST_APPROVALS_ACP_PROGRAM";

/**
 * @typedef {object} Program
 * @property {string[]} command the program and its arguments
 * @property {"chat" | "responses" | "messages" | "gemini"} protocol how it asks its model
 * @property {string} tool how it names a tool of an MCP server, with `{server}` and `{tool}`
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

export const PROGRAMS = { opencode: OPENCODE };

/**
 * Return the program that a user's file describes.
 *
 * @returns {Program}
 */
export function readProgram() {
  // It was validated before this process was started.
  return JSON.parse(readFileSync(process.env[PROGRAM_FILE], "utf8"));
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
