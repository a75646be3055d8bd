/** The SDK's chat without a user interface: messages in memory, and a function as its server. */

import { AbstractChat, convertToModelMessages, streamText, validateUIMessages } from "ai";

import { text as read } from "../../javascript/plain.mjs";
import { world } from "../../javascript/world.mjs";

class MessagesInMemory {
  messages = [];
  status = "ready";
  error = undefined;

  pushMessage = (message) => (this.messages = [...this.messages, message]);
  popMessage = () => (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) => (this.messages = this.messages.with(index, message));
  snapshot = (value) => structuredClone(value);
}

/** A chat whose server calls `streamText` with the messages that the chat sends. */
export class Chat extends AbstractChat {
  /** @param {() => object} settings */
  constructor(settings) {
    const transport = { sendMessages: (sent) => this.#serve(sent), reconnectToStream: async () => null };
    super({ state: new MessagesInMemory(), transport });
    this.settings = settings;
  }

  /**
   * Send the messages, with a new one or as they are.
   *
   * @param {string | null} text
   * @param {{stream: boolean, signal: AbortSignal}} how
   * @returns {Promise<any>} the result of `streamText`
   */
  async send(text, how) {
    // Two requests may be served at the same time.
    const served = { how, failures: [], result: null };
    await this.sendMessage(text === null ? undefined : { text }, { metadata: served });
    const { failures, result } = served;
    if (failures.length) throw failures[0];
    if (this.error) throw this.error;
    return result;
  }

  async #serve({ messages, metadata: served }) {
    const settings = this.settings();
    const { tools } = settings;
    const { stream, signal } = served.how;
    const modelMessages = await convertToModelMessages(await validateUIMessages({ messages }), { tools });
    const onError = ({ error }) => void served.failures.push(error);
    const result = streamText({ ...settings, messages: modelMessages, abortSignal: signal, onError });
    served.result = result;
    const chunks = result.toUIMessageStream({ originalMessages: messages, onError: String });
    return stream ? chunks.pipeThrough(reportShown(settings)) : chunks;
  }
}

/** Report what each chunk shows. */
function reportShown({ output }) {
  return new TransformStream({
    transform(chunk, controller) {
      show(chunk, output !== undefined);
      controller.enqueue(chunk);
    },
  });
}

function show(chunk, answersAsText) {
  const { type, toolCallId: id } = chunk;
  if (type === "text-delta" && !answersAsText) world().shown("text", { text: chunk.delta });
  if (type === "tool-input-available") world().shown("call", { id, tool: chunk.toolName });
  if (type === "tool-approval-request") world().shown("request", { id: chunk.approvalId });
  if (type === "tool-output-available") world().shown("result", { id, text: read(chunk.output) });
  if (type === "finish") world().shown("end");
}
