/** Reports of what the SDK's stream shows to its consumer. */

import { parsed, text } from "../../javascript/plain.mjs";

/**
 * Report what an event of a streamed run shows.
 *
 * @param {import("@openai/agents").RunStreamEvent} event
 * @param {import("../../javascript/world.mjs").World} world
 */
export function show(event, world) {
  if (event.type !== "run_item_stream_event") return;
  const { item, name } = event;
  const raw = item.rawItem;
  if (name === "message_output_created") showText(item, world);
  else if (name === "tool_called" || name === "handoff_requested") {
    world.shown("call", { id: raw.callId ?? raw.id, tool: raw.name });
  } else if (name === "tool_output" || name === "handoff_occurred") {
    world.shown("result", { id: raw.callId, text: text(raw.output?.text ?? raw.output) });
  } else if (name === "tool_approval_requested") {
    const asked = raw.providerData?.type === "mcp_approval_request" ? raw.providerData : null;
    world.shown("request", { id: asked?.id ?? raw.callId, tool: asked?.name ?? raw.name });
  }
}

function showText({ rawItem, agent }, world) {
  const shownText = rawItem.content.map((part) => part.text ?? "").join("");
  // A structured answer is no text, though it comes as one.
  if (agent.outputType === "text" || typeof parsed(shownText) === "string") world.shown("text", { text: shownText });
}
