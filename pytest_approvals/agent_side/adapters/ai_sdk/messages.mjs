/** What stands in the messages of a conversation: requests, answers, and which of them are open. */

/** @typedef {import("ai").ModelMessage} ModelMessage */

/**
 * Gives the answers to decisions, as they stand in a message.
 *
 * @param {import("../../javascript/agent.mjs").Decision[]} decisions
 */
export function answersOf(decisions) {
  return decisions.map(({ request, verdict, reason, raw, address }) => ({
    type: "tool-approval-response",
    approvalId: request === null ? address : request.id,
    approved: verdict === "raw" ? raw : verdict === "approve",
    ...(reason ? { reason } : {}),
    ...(request?.kind === "hosted_mcp" ? { providerExecuted: true } : {}),
  }));
}

/**
 * Gives the messages with these answers: all answers to the requests of a pause stand in one message.
 *
 * @param {ModelMessage[]} messages
 * @param {object[]} answers
 * @returns {ModelMessage[]}
 */
export function withAnswers(messages, answers) {
  if (answers.length === 0) return messages;
  const last = messages.at(-1);
  if (!holdsAnswersOnly(last)) return [...messages, { role: "tool", content: answers }];
  return [...messages.slice(0, -1), { ...last, content: [...last.content, ...answers] }];
}

function holdsAnswersOnly(message) {
  return message?.role === "tool" && message.content.every(({ type }) => type === "tool-approval-response");
}

/**
 * Gives the requests that are open: asked since the latest message of the caller, and neither answered nor settled.
 *
 * @param {ModelMessage[]} messages
 * @returns {import("../../javascript/agent.mjs").Request[]}
 */
export function openRequests(messages) {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === "user") + 1);
  const parts = since.flatMap(({ content }) => (typeof content === "string" ? [] : content));
  const answered = new Set(of(parts, "tool-approval-response").map(({ approvalId }) => approvalId));
  const settled = new Set(of(parts, "tool-result").map(({ toolCallId }) => toolCallId));
  return of(parts, "tool-approval-request")
    .filter(({ approvalId, toolCallId }) => !answered.has(approvalId) && !settled.has(toolCallId))
    .map((part) => requestOf(part, parts.findLast((call) => call.type === "tool-call" && call.toolCallId === part.toolCallId)));
}

function of(parts, kind) {
  return parts.filter(({ type }) => type === kind);
}

/**
 * Gives a request as it is shown.
 *
 * @param {{approvalId: string}} part
 * @param {any} call the call that it is about
 * @returns {import("../../javascript/agent.mjs").Request}
 */
export function requestOf({ approvalId }, call) {
  const asked = { id: approvalId, call_id: call.toolCallId, tool: call.toolName, arguments: call.input };
  if (!call.providerExecuted) return asked;
  return { ...asked, tool: call.toolName.replace(/^mcp\./, ""), call_id: approvalId, kind: "hosted_mcp" };
}
