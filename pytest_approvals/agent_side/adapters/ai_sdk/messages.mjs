/** Requests and answers in the messages of a conversation. */

/** @typedef {import("ai").ModelMessage} ModelMessage */
/** @typedef {import("../../javascript/agent.mjs").ToolSpec} ToolSpec */

/**
 * Return the parts of a message that answer with decisions.
 *
 * @param {import("../../javascript/agent.mjs").Decision[]} decisions
 */
export function answersOf(decisions) {
  return decisions.map(({ request, verdict, reason, raw, address }) => ({
    type: "tool-approval-response",
    approvalId: request === null ? address : request.id,
    approved: verdict === "raw" ? raw : verdict === "approve",
    ...((reason ?? null) === null ? {} : { reason }),
    ...(request?.kind === "hosted_mcp" ? { providerExecuted: true } : {}),
  }));
}

/**
 * Return the messages with these answers. All answers to the requests of a pause are in one message; a newer answer to
 * a request replaces an earlier one that was not sent.
 *
 * @param {ModelMessage[]} messages
 * @param {object[]} answers
 * @returns {ModelMessage[]}
 */
export function withAnswers(messages, answers) {
  if (answers.length === 0) return messages;
  const last = messages.at(-1);
  if (!holdsAnswersOnly(last)) return [...messages, { role: "tool", content: answers }];
  const newer = new Set(answers.map(({ approvalId }) => approvalId));
  const kept = last.content.filter(({ approvalId }) => !newer.has(approvalId));
  return [...messages.slice(0, -1), { ...last, content: [...kept, ...answers] }];
}

/**
 * Return whether a message is the one with the answers to a pause.
 *
 * @param {ModelMessage | undefined} message
 */
export function holdsAnswersOnly(message) {
  return message?.role === "tool" && message.content.every(({ type }) => type === "tool-approval-response");
}

/**
 * Return the open requests: asked since the latest message of the caller, and neither answered nor settled.
 *
 * @param {ModelMessage[]} messages
 * @param {ToolSpec[]} specs
 * @returns {import("../../javascript/agent.mjs").Request[]}
 */
export function openRequests(messages, specs) {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
  const calls = new Map();
  const open = new Map();
  for (const part of since.flatMap(({ content }) => (typeof content === "string" ? [] : content))) {
    if (part.type === "tool-call") calls.set(part.toolCallId, part);
    if (part.type === "tool-approval-request") open.set(part.approvalId, part);
    if (part.type === "tool-approval-response") open.delete(part.approvalId);
    if (part.type === "tool-result") settle(open, part.toolCallId);
  }
  return [...open.values()].map((part) => requestOf(part, calls.get(part.toolCallId), specs));
}

function settle(open, toolCallId) {
  for (const [id, part] of open) if (part.toolCallId === toolCallId) open.delete(id);
}

/**
 * Return a request as it is shown. The SDK does not say which server has a tool; the specs do, unless two servers have
 * a tool of that name.
 *
 * @param {{approvalId: string}} part
 * @param {any} call the call that it is about
 * @param {ToolSpec[]} specs
 * @returns {import("../../javascript/agent.mjs").Request}
 */
export function requestOf({ approvalId }, call, specs) {
  const { toolCallId, toolName, input } = call;
  if (call.providerExecuted) {
    const tool = toolName.replace(/^mcp\./, "");
    const from = { kind: "hosted_mcp", server: serverOf(tool, "hosted_mcp", specs) };
    return { id: approvalId, call_id: approvalId, tool, arguments: input, ...from };
  }
  const server = serverOf(toolName, "mcp", specs);
  const from = server === null ? {} : { kind: "mcp", server };
  return { id: approvalId, call_id: toolCallId, tool: toolName, arguments: input, ...from };
}

function serverOf(tool, kind, specs) {
  const servers = specs.filter((spec) => spec.kind === kind && spec.name === tool).map(({ server }) => server);
  return servers.length === 1 ? servers[0] : null;
}
