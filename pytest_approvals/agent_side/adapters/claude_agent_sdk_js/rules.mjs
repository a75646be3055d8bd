/** Sessions in which rules of a settings file decide; what they ask about, or have no rule for, waits in `canUseTool`. */

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

import { Shared } from "../../javascript/shared.mjs";
import { InlineSession } from "./inline.mjs";

/** The settings of one user for a folder: where the CLI puts the rules that a user adds while it runs. */
const SETTINGS = path.join(".claude", "settings.local.json");

/** @typedef {import("../../javascript/agent.mjs").ToolSpec} ToolSpec */
/** @typedef {import("@anthropic-ai/claude-agent-sdk").PermissionUpdate} PermissionUpdate */
/** @typedef {{allow: string[], ask: string[]}} Permissions the rules by their lists */

export class RulesSession extends InlineSession {
  #project;
  #permissions;
  #cwd;

  constructor(world, blueprint, parts, project = undefined) {
    super(world, blueprint, parts);
    this.#permissions = permissionsOf(this.parts.specs);
    const make = () => makeProject(this.#permissions);
    // All sessions of the agent work in one folder, as processes with one `cwd` do.
    const remove = (folder) => rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => {});
    this.#project = (project ?? new Shared(make, remove)).join();
  }

  async begin() {
    this.#cwd = await this.#project.get();
  }

  options() {
    return { settingSources: ["local"], cwd: this.#cwd };
  }

  /** Return whether a call that the CLI asks about waits for the caller: only a condition can settle it here. */
  async needsAnswer(spec, args, callId) {
    return typeof spec.approval === "string" || super.needsAnswer(spec, args, callId);
  }

  /** Return what the CLI suggests, or what lifts an `ask` rule, for which it suggests nothing. */
  standingOf(fullName, suggestions) {
    if (suggestions.length) return suggestions;
    const { allow, ask } = this.#permissions;
    const { server } = this.parts.specs.get(fullName) ?? {};
    return stopAsking(fullName, { isAskedByRule: ask.includes(fullName), isAllowed: allow.includes(ruleOf(server)) });
  }

  /** Return a session in the same folder, with the same tools. */
  async anotherSession(world) {
    return new RulesSession(world, this.blueprint, this.parts, this.#project);
  }

  async close() {
    try {
      await super.close();
    } finally {
      await this.#project.leave();
    }
  }
}

async function makeProject(permissions) {
  const folder = await mkdtemp(path.join(os.tmpdir(), "claude-project-"));
  const file = path.join(folder, SETTINGS);
  await mkdir(path.dirname(file));
  await writeFile(file, JSON.stringify({ permissions: { defaultMode: "default", ...permissions } }));
  return folder;
}

/**
 * Return the rules for tools, by the lists of a settings file.
 *
 * The CLI asks about what no rule allows, so that gated functions need none, and an `ask` rule comes before one that
 * allows. A server is allowed as a whole unless a tool of it has a condition: that is evaluated when the CLI asks, because
 * rules of a settings file cannot speak of the arguments of MCP tools.
 *
 * @param {Map<string, ToolSpec>} specs the tools by their names in the CLI
 * @returns {Permissions}
 */
function permissionsOf(specs) {
  const all = [...specs];
  const conditional = new Set(all.map(([, spec]) => (typeof spec.approval === "string" ? null : spec.server)));
  const allow = all.flatMap(([fullName, { server, approval }]) => {
    if (server !== null && !conditional.has(server)) return [ruleOf(server)];
    return approval === "never" ? [fullName] : [];
  });
  const asked = all.filter(([, { server, approval }]) => server !== null && approval === "always");
  return { allow: [...new Set(allow)], ask: asked.map(([fullName]) => fullName) };
}

/** Return the rule about all tools of a server. */
function ruleOf(server) {
  return `mcp__${server}`;
}

/**
 * Return the updates of the folder's settings after which a tool runs without a question.
 *
 * @param {string} toolName its name in the CLI
 * @param {{isAskedByRule: boolean, isAllowed: boolean}} rules whether it has an `ask` rule, which comes before each rule
 *   that allows, and whether another rule allows it
 * @returns {PermissionUpdate[]}
 */
function stopAsking(toolName, { isAskedByRule, isAllowed }) {
  const rule = { rules: [{ toolName }], destination: "localSettings" };
  return [
    ...(isAskedByRule ? [{ type: "removeRules", behavior: "ask", ...rule }] : []),
    ...(isAllowed ? [] : [{ type: "addRules", behavior: "allow", ...rule }]),
  ];
}
