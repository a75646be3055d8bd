/** Flavour `stream`: `streamText`. */

import { streamText } from "ai";

import { text as read } from "../../javascript/plain.mjs";
import { world } from "../../javascript/world.mjs";
import { Interrupted } from "./failures.mjs";
import { addedBy } from "./releases.mjs";
import { MessagesAgent } from "./session.mjs";

export class StreamAgent extends MessagesAgent {
  async call(settings, { stream }) {
    const failures = [];
    const result = streamText({ ...settings, onError: ({ error }) => failures.push(error) });
    const content = [];
    for await (const part of result.stream ?? result.fullStream) {
      if (part.type === "tool-approval-request") content.push(part);
      if (part.type === "abort") throw settings.abortSignal.reason;
      if (stream && !(settings.output && part.type === "text-delta")) show(part);
    }
    // The stream ends without throwing; the SDK hands errors to `onError`.
    if (failures.length) throw failures[0];
    if ((await result.finishReason) === "interrupted") throw new Interrupted();
    return { added: await addedBy(result), content, text: await result.text, output: () => result.output };
  }
}

/** Report what a part of the stream shows. */
function show(part) {
  if (part.type === "text-delta") world().shown("text", { text: part.text });
  if (part.type === "tool-call") world().shown("call", { id: part.toolCallId, tool: part.toolName });
  if (part.type === "tool-approval-request" && !part.isAutomatic) world().shown("request", { id: part.approvalId });
  if (part.type === "tool-result") world().shown("result", { id: part.toolCallId, text: read(part.output) });
  if (part.type === "finish") world().shown("end");
}
