/** What is answered to requests that are no part of the conversation: titles, summaries. */

/** The small model of the CLI, which is played here. */
export const SIDE_MODEL = "claude-haiku-side-requests";

const TEXT = "A conversation.";

/**
 * Return a reply over Messages, as its content type and its text.
 *
 * @param {boolean} isStream
 */
export function sideReply(isStream) {
  const block = { type: "text", text: TEXT };
  const usage = { input_tokens: 1, output_tokens: 1 };
  const head = { id: "msg_side", type: "message", role: "assistant", model: SIDE_MODEL, stop_sequence: null, usage };
  if (!isStream) {
    const whole = { ...head, content: [block], stop_reason: "end_turn" };
    return { type: "application/json", text: JSON.stringify(whole) };
  }
  const events = [
    { type: "message_start", message: { ...head, content: [], stop_reason: null } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: TEXT } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
    { type: "message_stop" },
  ];
  const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
  return { type: "text/event-stream", text };
}
