/** What a stream shows to its consumer. */

import { text as read } from "../../javascript/plain.mjs";
import { nameOf } from "./delegations.mjs";
import { idOf } from "./requests.mjs";

/**
 * Report what a chunk of a stream shows.
 *
 * @param {any} chunk
 * @param {import("../../javascript/world.mjs").World} world
 * @param {import("../../javascript/agent.mjs").Blueprint} blueprint
 */
export function show({ type, runId, payload }, world, { tools, answer }) {
  const hasAnswer = Object.keys(answer).length > 0;
  if (type === "text-delta" && !hasAnswer) world.shown("text", { text: payload.text });
  if (type === "tool-call") world.shown("call", { id: payload.toolCallId, tool: nameOf(payload.toolName, tools) });
  if (isRequest(type)) world.shown("request", { id: idOf(runId, payload.toolCallId) });
  if (type === "tool-error") world.shown("result", { id: payload.toolCallId, text: String(errorOf(payload.error)) });
  if (type === "tool-result") world.shown("result", { id: payload.toolCallId, text: read(resultOf(payload, tools)) });
}

/**
 * Return what a chunk says that was thrown; the chunks of a durable run have its fields only.
 *
 * @param {any} thrown
 */
export function errorOf(thrown) {
  return thrown instanceof Error || !thrown?.message ? thrown : Object.assign(new Error(thrown.message), thrown);
}

/** Return whether a chunk asks something of a person. */
export function isRequest(type) {
  return type === "tool-call-approval" || type === "tool-call-suspended";
}

/**
 * Return the calls around a request of a sub-agent and the call that it is about, if a chunk shows them.
 *
 * @param {any} chunk
 * @returns {{toolCallId: string, toolName: string, args?: any}[] | null} the innermost one last
 */
export function innerCalls({ type, payload }) {
  if (type !== "tool-output") return null;
  const { output } = payload;
  if (!output) return null;
  const inner = isRequest(output.type) ? [output.payload] : innerCalls(output);
  return inner && [payload, ...inner];
}

/** Return the result of a call; of one that runs a sub-agent, what that said. */
function resultOf({ toolName, result }, tools) {
  return nameOf(toolName, tools) === toolName ? result : result?.text;
}
