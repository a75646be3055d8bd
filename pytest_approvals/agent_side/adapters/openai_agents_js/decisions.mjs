/** Approval requests and decisions in the words of the SDK: items of a `RunState`, and `approve` and `reject` on it. */

import { RunToolApprovalItem } from "@openai/agents";

import { Unsupported } from "../../javascript/failures.mjs";
import { ordered, parsed, text } from "../../javascript/plain.mjs";

/** @typedef {import("../../javascript/agent.mjs").Decision} Decision */
/** @typedef {import("../../javascript/agent.mjs").Request} Request */
/** @typedef {import("./crew.mjs").Crew} Crew */

/**
 * Gives what an item shows to the human.
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
  const spec = crew.tools.find((one) => one.agent === agent && one.name === item.name && one.kind === "mcp");
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
 * Puts a decision into a state.
 *
 * @param {import("@openai/agents").RunState} state
 * @param {Decision} decision
 * @param {Crew} crew
 */
export function apply(state, decision, crew) {
  const { verdict, reason } = decision;
  const item = addressed(state, decision, crew);
  const message = reason ? { message: reason } : {};
  if (verdict === "approve") state.approve(item);
  else if (verdict === "always") state.approve(item, { alwaysApprove: true });
  else if (verdict === "reject") state.reject(item, message);
  else if (verdict === "never") state.reject(item, { alwaysReject: true, ...message });
  else throw new Unsupported(verdict === "raw" ? "malformed_verdict" : verdict);
}

/**
 * Gives what is handed to the SDK as the item: the object that the decision was made from; for a request that came as
 * JSON, what is pending and says the same, as the server of a web client looks it up; else one made from the request.
 */
function addressed(state, { request, address }, crew) {
  if (request === null) return address;
  if (request.handle !== undefined) return request.handle;
  const pending = state.getInterruptions();
  return pending.find((item) => isShownBy(item, request, crew)) ?? madeItem(request, crew);
}

/**
 * Says whether an item shows what a request says.
 *
 * @param {RunToolApprovalItem} item
 * @param {Request} request
 * @param {Crew} crew
 */
export function isShownBy(item, request, crew) {
  const shown = requestOf(item, crew);
  const same = (name, missing) => (shown[name] ?? missing) === (request[name] ?? missing);
  const agrees = ["id", "call_id", "tool"].every((name) => same(name)) && same("server", null) && same("agent", "main");
  const written = ({ arguments: given }) => JSON.stringify(ordered(given));
  return agrees && written(shown) === written(request);
}

function madeItem({ id, call_id: callId, tool, arguments: given, kind, server, agent = "main" }, crew) {
  const owner = crew.agents.get(agent) ?? crew.main;
  if (kind === "hosted_mcp") {
    const asked = { type: "mcp_approval_request", id, name: tool, server_label: server, arguments: text(given) };
    const raw = {
      type: "hosted_tool_call",
      id,
      name: "mcp_approval_request",
      status: "completed",
      providerData: asked,
    };
    return new RunToolApprovalItem(raw, owner);
  }
  const raw = { type: "function_call", callId: callId ?? id, name: tool, arguments: text(given), status: "completed" };
  return new RunToolApprovalItem(raw, owner);
}
