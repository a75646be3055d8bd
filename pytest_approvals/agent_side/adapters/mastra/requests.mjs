/** Suspended calls as requests, and where the answer to a request goes. */

import { nameOf } from "./delegations.mjs";

/** @typedef {import("../../javascript/agent.mjs").Request} Request */
/** @typedef {import("../../javascript/agent.mjs").ToolSpec} ToolSpec */

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
 * Return the request that a suspended call shows. A call of a sub-agent is shown as the call that runs it: by a stream
 * with the tool and the arguments of the inner call, by `generate` with the inner suspension in its own.
 *
 * @param {string} runId
 * @param {{toolCallId: string, toolName: string, args: any, suspendPayload?: any}} call
 * @param {ToolSpec[]} specs
 * @param {string | null} [shownIn] the tool that runs the sub-agent, if the stream shows it
 * @returns {Request}
 */
export function requestOf(runId, call, specs, shownIn = null) {
  const id = idOf(runId, call.toolCallId);
  let [agent, callId, { toolName, args, suspendPayload }] = ["main", call.toolCallId, call];
  for (let tool = shownIn ?? toolName; runnerOf(tool, agent, specs); ) {
    agent = runnerOf(tool, agent, specs);
    [callId, tool] = [null, null];
    if (suspendPayload?.toolCallId === undefined) break;
    callId = suspendPayload.toolCallId;
    ({ toolName, args, suspendPayload } = suspendPayload);
    tool = toolName;
  }
  if (!has(agent, toolName, specs)) [agent, callId] = [ownerOf(toolName, specs), null];
  // A body that suspends itself says in its payload what it was called with.
  if (args === undefined) args = suspendPayload?.arguments;
  const tool = nameOf(toolName, specs);
  const spec = specs.find((one) => one.agent === agent && one.name === tool && one.kind === "mcp");
  return { id, call_id: callId, tool, arguments: args, agent, ...(spec ? { kind: "mcp", server: spec.server } : {}) };
}

/** Return the agent that a call of a tool runs, or undefined. */
function runnerOf(toolName, agent, specs) {
  const name = nameOf(toolName, specs);
  if (name === toolName) return undefined;
  return specs.find((spec) => spec.agent === agent && spec.name === name)?.runs;
}

function has(agent, toolName, specs) {
  const name = nameOf(toolName, specs);
  return specs.some((spec) => spec.agent === agent && spec.name === name);
}

function ownerOf(toolName, specs) {
  return specs.find((spec) => spec.name === toolName)?.agent ?? "main";
}
