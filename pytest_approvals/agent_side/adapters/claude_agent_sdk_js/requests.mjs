/** Requests as the SDK shows them, and decisions as its callbacks return them. */

import { Unsupported } from "../../javascript/failures.mjs";

/** What the model is told of a rejection without a reason. */
const REJECTED = "The user rejected this call.";

/** What the model is told if an answer is about other arguments than the call has. */
export const CHANGED = "The call that is stored is not the one that was shown to the user.";

/** What the model is told of a call that nobody decided about. */
export const UNANSWERED = "The user has not answered yet.";

/** @typedef {import("../../javascript/agent.mjs").Decision} Decision */
/** @typedef {import("../../javascript/agent.mjs").Request} Request */
/** @typedef {import("@anthropic-ai/claude-agent-sdk").PermissionUpdate} PermissionUpdate */

/**
 * Return the request about a call.
 *
 * @param {string} id
 * @param {string} fullName the name of the tool in the CLI
 * @param {any} args
 * @param {Map<string, import("../../javascript/agent.mjs").ToolSpec>} specs
 * @returns {Request}
 */
export function requestOf(id, fullName, args, specs) {
  const spec = specs.get(fullName);
  // A tool that is gone has its prefix only.
  const tool = spec?.name ?? fullName.replace(/^mcp__.*?__/, "");
  return { id, call_id: id, tool, arguments: args, kind: spec?.kind ?? "function", server: spec?.server ?? null };
}

/**
 * Return the last decision about the call that is asked about.
 *
 * The SDK takes answers from the callback that it asks, so one to something else cannot be handed in.
 *
 * @param {Decision[]} decisions
 * @param {Request | null} asked
 * @returns {Decision | null}
 */
export function decisionAbout(decisions, asked) {
  for (const { request, address } of decisions) {
    const id = request ? request.call_id : address;
    if (asked === null || id !== asked.call_id) throw new Error(`nobody asks about ${JSON.stringify(id ?? null)}`);
  }
  return decisions.filter(({ request }) => request !== null).at(-1) ?? null;
}

/**
 * Return what `canUseTool` returns for a decision.
 *
 * @param {Decision} decision
 * @param {PermissionUpdate[]} [standing] the updates after which the tool is not asked about any more
 */
export function permissionOf({ verdict, reason, arguments: args, tool, raw }, standing = []) {
  if (verdict === "raw") return raw;
  if (verdict === "reject") return { behavior: "deny", message: reason || REJECTED };
  if (verdict === "always" && standing.length) return { behavior: "allow", updatedPermissions: standing };
  if (verdict === "edit") return { behavior: "allow", updatedInput: inputOf(args, tool) };
  if (verdict === "approve") return { behavior: "allow" };
  throw new Unsupported(verdict);
}

/**
 * Return the update that lets a tool run without a question until the session ends.
 *
 * @param {string} toolName
 * @returns {PermissionUpdate[]}
 */
export function allowInSession(toolName) {
  return [{ type: "addRules", rules: [{ toolName }], behavior: "allow", destination: "session" }];
}

/**
 * Return what a hook of `PreToolUse` returns for a decision.
 *
 * @param {Decision} decision
 */
export function hookAnswerTo({ verdict, reason, arguments: args, tool, raw }) {
  if (verdict === "raw") return hookOutput(raw);
  if (verdict === "reject") return hookOutput("deny", { permissionDecisionReason: reason || REJECTED });
  if (verdict === "edit") return hookOutput("allow", { updatedInput: inputOf(args, tool) });
  if (verdict === "approve") return hookOutput("allow");
  throw new Unsupported(verdict);
}

/**
 * Return the output of a hook of `PreToolUse`.
 *
 * @param {any} permissionDecision
 * @param {object} [more]
 */
export function hookOutput(permissionDecision, more = {}) {
  return { hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision, ...more } };
}

function inputOf(args, tool) {
  if (tool) throw new Unsupported("edit_tool");
  return args ?? {};
}
