/** Messages of the SDK: what a stream shows, the text of an agent, and the error of a result. */

/** @typedef {import("@anthropic-ai/claude-agent-sdk").SDKMessage} SDKMessage */

/**
 * Report what a message shows to the consumer of a stream.
 *
 * @param {SDKMessage} message
 * @param {import("../../javascript/world.mjs").World} world
 * @param {Map<string, {name: string}>} specs the tools by their names in the CLI
 */
export function show(message, world, specs) {
  if (message.type === "stream_event") showEvent(message.event, world, specs);
  if (message.type !== "user" || !Array.isArray(message.message.content)) return;
  for (const block of message.message.content) {
    if (block.type === "tool_result") world.shown("result", { id: block.tool_use_id, text: textOf(block.content) });
  }
}

function showEvent({ type, content_block: block, delta }, world, specs) {
  if (type === "content_block_start" && block.type === "tool_use") {
    world.shown("call", { id: block.id, tool: specs.get(block.name)?.name ?? block.name });
  } else if (type === "content_block_delta" && delta.type === "text_delta" && delta.text) {
    world.shown("text", { text: delta.text });
  }
}

/** Return the text of the content of a result. */
function textOf(content) {
  return typeof content === "string" ? content : (content ?? []).map(({ text }) => text ?? "").join("");
}

/**
 * Return what the agent has said up to a message.
 *
 * @param {string} said what it had said before
 * @param {SDKMessage} message
 */
export function saidAfter(said, { type, message }) {
  // What was said before a result belongs to an earlier reply.
  if (type === "user") return "";
  if (type !== "assistant") return said;
  return said + message.content.map(({ type: kind, text }) => (kind === "text" ? text : "")).join("");
}

/**
 * Return the error that the SDK's iterator throws for a result that is one, when its CLI ends.
 *
 * @param {import("@anthropic-ai/claude-agent-sdk").SDKResultMessage} result
 */
export function errorOf({ subtype, errors = [], result }) {
  return new Error(`Claude Code returned an error result: ${errors.join("; ") || result || subtype}`);
}
