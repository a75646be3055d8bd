/** Approval requests and decisions as the SDK's own: items of a `RunState`, and `approve` and `reject` on it. */

import { RunToolApprovalItem } from "@openai/agents";

import { Unsupported } from "../../javascript/failures.mjs";
import { ordered, parsed, text } from "../../javascript/plain.mjs";

/** @typedef {import("../../javascript/agent.mjs").Decision} Decision */
/** @typedef {import("../../javascript/agent.mjs").Request} Request */
/** @typedef {import("./crew.mjs").Crew} Crew */

/**
 * Return the request that an item shows.
 *
 * @param {RunToolApprovalItem} item
 * @param {Crew} crew
 * @returns {Request}
 */
export function requestOf(item, crew) {
  const agent = crew.label(item.agent);
  const asked = item.rawItem.providerData;
  if (item.rawItem.type === "hosted_tool_call" && asked?.type === "mcp_approval_request") {
    const { id, name: tool, server_label: server } = asked;
    return {
      id,
      call_id: id,
      tool,
      arguments: parsed(asked.arguments),
      kind: "hosted_mcp",
      server,
      agent,
      handle: item,
    };
  }
  const { callId } = item.rawItem;
  const spec = crew.tools.find((tool) => tool.agent === agent && tool.name === item.name && tool.kind === "mcp");
  const from = spec ? { kind: "mcp", server: spec.server } : {};
  return {
    id: callId,
    call_id: callId,
    tool: item.name,
    arguments: parsed(item.arguments ?? ""),
    ...from,
    agent,
    handle: item,
  };
}

/**
 * Put a decision into a state.
 *
 * @param {import("@openai/agents").RunState} state
 * @param {Decision} decision
 * @param {Crew} crew
 */
export function apply(state, decision, crew) {
  const { verdict, reason } = decision;
  const item = findItem(state, decision, crew);
  const message = (reason ?? null) === null ? {} : { message: reason };
  if (verdict === "approve") state.approve(item);
  else if (verdict === "always") state.approve(item, { alwaysApprove: true });
  else if (verdict === "reject") state.reject(item, message);
  else if (verdict === "never") state.reject(item, { alwaysReject: true, ...message });
  else throw new Unsupported(verdict === "raw" ? "malformed_verdict" : verdict);
}

/**
 * Return the item of a decision: the object that the request was made from; for a request that came as JSON, the equal
 * one that is pending, as the server of a web client looks it up; else a new one made from the request.
 */
function findItem(state, { request, address }, crew) {
  if (request === null) return address;
  if (request.handle !== undefined) return request.handle;
  const pending = state.getInterruptions();
  return pending.find((item) => isShownBy(item, request, crew)) ?? buildItem(request, crew);
}

/**
 * Return whether an item shows the same as a request.
 *
 * @param {RunToolApprovalItem} item
 * @param {Request} request
 * @param {Crew} crew
 */
export function isShownBy(item, request, crew) {
  const shown = requestOf(item, crew);
  const same = (name, missing) => (shown[name] ?? missing) === (request[name] ?? missing);
  const agrees = ["id", "call_id", "tool"].every((name) => same(name)) && same("server", null) && same("agent", "main");
  const written = ({ arguments: args }) => JSON.stringify(ordered(args));
  return agrees && written(shown) === written(request);
}

function buildItem({ id, call_id: callId, tool, arguments: args, kind, server, agent = "main" }, crew) {
  const owner = crew.agents.get(agent) ?? crew.main;
  if (kind === "hosted_mcp") {
    const asked = { type: "mcp_approval_request", id, name: tool, server_label: server, arguments: text(args) };
    const raw = {
      type: "hosted_tool_call",
      id,
      name: "mcp_approval_request",
      status: "completed",
      providerData: asked,
    };
    return new RunToolApprovalItem(raw, owner);
  }
  // A request that nobody made has no tool, and an item of the SDK always has one.
  const name = tool || crew.tools.find(({ approval }) => approval !== "never")?.name;
  const raw = { type: "function_call", callId: callId ?? id, name, arguments: text(args), status: "completed" };
  return new RunToolApprovalItem(raw, owner);
}
