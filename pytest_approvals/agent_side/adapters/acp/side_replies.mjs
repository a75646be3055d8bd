/** What is answered to requests that are no part of the conversation: titles, summaries. */

/** The name of the small model that programs are told to ask for them. */
export const SIDE_MODEL = "side-requests";

const TEXT = "A conversation.";

/**
 * Return a reply, as its content type and its text.
 *
 * @param {string} protocol
 * @param {boolean} streamed
 */
export function sideReply(protocol, streamed) {
  const write = REPLIES[protocol];
  if (write === undefined) throw new Error(`no side requests are known over ${protocol}`);
  const { whole, events } = write();
  if (!streamed) return { type: "application/json", text: JSON.stringify(whole) };
  const lines = events.map((event) => {
    const name = event.type === undefined ? "" : `event: ${event.type}\n`;
    return `${name}data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`;
  });
  return { type: "text/event-stream", text: lines.join("") };
}

const REPLIES = { chat: chatReply, gemini: geminiReply, messages: messagesReply, responses: responsesReply };

function chatReply() {
  const head = { id: "chatcmpl-side", created: 0, model: SIDE_MODEL };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const message = { role: "assistant", content: TEXT };
  const chunk = (delta, reason) => ({
    ...head,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason: reason }],
  });
  return {
    whole: { ...head, object: "chat.completion", choices: [{ index: 0, message, finish_reason: "stop" }], usage },
    events: [chunk(message, null), chunk({}, "stop"), "[DONE]"],
  };
}

function messagesReply() {
  const block = { type: "text", text: TEXT };
  const usage = { input_tokens: 1, output_tokens: 1 };
  const head = { id: "msg_side", type: "message", role: "assistant", model: SIDE_MODEL, stop_sequence: null, usage };
  return {
    whole: { ...head, content: [block], stop_reason: "end_turn" },
    events: [
      { type: "message_start", message: { ...head, content: [], stop_reason: null } },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: TEXT } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
      { type: "message_stop" },
    ],
  };
}

function geminiReply() {
  const candidates = [{ index: 0, content: { role: "model", parts: [{ text: TEXT }] }, finishReason: "STOP" }];
  const whole = { candidates, usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 } };
  return { whole, events: [whole] };
}

function responsesReply() {
  const content = [{ type: "output_text", text: TEXT, annotations: [] }];
  const item = { type: "message", id: "msg_side", role: "assistant", status: "completed", content };
  const usage = {
    input_tokens: 1,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 1,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 2,
  };
  const head = { id: "resp_side", object: "response", created_at: 0, model: SIDE_MODEL };
  const whole = { ...head, status: "completed", output: [item], usage };
  return {
    whole,
    events: [
      { type: "response.created", response: { ...head, status: "in_progress", output: [] } },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: whole },
    ],
  };
}
