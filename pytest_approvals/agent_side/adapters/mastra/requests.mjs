/** Suspended calls as requests, and where the answer to a request goes. */

import { text } from "../../javascript/plain.mjs";
import { nameOf, writtenArguments } from "./delegations.mjs";

/** @typedef {import("../../javascript/agent.mjs").Request} Request */
/** @typedef {import("../../javascript/agent.mjs").ToolSpec} ToolSpec */
/** @typedef {{toolCallId: string, toolName: string, args: any, suspendPayload?: any}} SuspendedCall */

/**
 * Return the id of a request: an answer names the run and the call.
 *
 * @param {string} runId
 * @param {string} toolCallId
 */
export function idOf(runId, toolCallId) {
  return `${runId}/${toolCallId}`;
}

/**
 * Return the run and the call that an answer names, or null if its request is not one of ours.
 *
 * @param {Request} request
 */
export function targetOf({ id }) {
  const [runId, ...rest] = id.split("/");
  return rest.length ? { runId, toolCallId: rest.join("/") } : null;
}

/**
 * Return the request that a suspended call shows.
 *
 * The call of a sub-agent waits in the call that runs it, which is the one that is answered: the id of the inner call is
 * not passed on. `generate` shows the inner call in the payload of the outer one, a stream in the chunks of the
 * sub-agent; the storage shows its tool and arguments only, if a stream was suspended.
 *
 * @param {string} runId
 * @param {SuspendedCall} call
 * @param {ToolSpec[]} specs
 * @param {{toolName: string}[]} [chain] the outer calls and the inner one, if a stream shows them
 * @returns {Request}
 */
export function requestOf(runId, call, specs, chain = chainOf(call)) {
  const inner = chain.at(-1);
  const agent = chain.slice(0, -1).reduce((owner, outer) => runnerOf(outer.toolName, owner, specs), "main");
  const tool = nameOf(inner.toolName, specs);
  const isKnown = chain.length > 1 || specs.some((spec) => spec.agent === "main" && spec.name === tool);
  const owner = isKnown ? agent : (specs.find((spec) => spec.name === tool)?.agent ?? "main");
  const spec = specs.find((one) => one.agent === owner && one.name === tool && one.kind === "mcp");
  // A body that suspends itself says in its payload what it was called with.
  const args = inner.args ?? inner.suspendPayload?.arguments;
  return {
    id: idOf(runId, call.toolCallId),
    // Before 1.50, a call that suspends itself is listed without its id.
    call_id: (isKnown && chain.length === 1 ? inner.toolCallId : null) ?? null,
    tool,
    arguments: argumentsOf(tool === inner.toolName ? args : writtenArguments(args)),
    agent: owner,
    ...(spec ? { kind: "mcp", server: spec.server } : {}),
  };
}

/** Return arguments as a request has them: as their text if they are no object. */
function argumentsOf(args = {}) {
  return args !== null && typeof args === "object" && !Array.isArray(args) ? args : text(args);
}

/** Return a call and those that wait in it, the innermost one last. */
function chainOf(call) {
  const inner = call.suspendPayload;
  return inner?.toolCallId === undefined ? [call] : [call, ...chainOf(inner)];
}

/** Return the agent that a call of a tool runs. */
function runnerOf(toolName, agent, specs) {
  const name = nameOf(toolName, specs);
  return specs.find((spec) => spec.agent === agent && spec.name === name)?.runs ?? agent;
}
