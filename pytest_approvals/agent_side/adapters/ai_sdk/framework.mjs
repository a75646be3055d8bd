/** The objects of the SDK that one agent is made of: its model, its tools, and what is asked about them. */

import { createOpenAI } from "@ai-sdk/openai";
import { Output, tool } from "ai";

import { schemaOf } from "../../javascript/schemas.mjs";
import { NOWHERE, fetchOfTurn, world } from "../../javascript/world.mjs";
import { hostedServers } from "./hosted.mjs";
import { GATES_AT_THE_CALL, afterReplies } from "./releases.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;

/** More replies than any script has: the run ends by itself. */
const ENOUGH = 1000;

/** @typedef {import("../../javascript/agent.mjs").ToolSpec} ToolSpec */

/**
 * Gives what `generateText` and `streamText` are called with besides the messages.
 *
 * @param {import("../../javascript/agent.mjs").Blueprint} blueprint
 */
export function settingsOf(blueprint) {
  const own = blueprint.tools.filter((spec) => spec.agent === "main");
  const functions = own.filter((spec) => spec.kind === "function");
  const openai = createOpenAI({ apiKey: "none", baseURL: NOWHERE, fetch: fetchOfTurn });
  const settings = {
    model: openai.responses("main"),
    tools: { ...Object.fromEntries(functions.map((spec) => [spec.name, toolOf(spec)])), ...hostedServers(openai, own) },
    stopWhen: afterReplies(blueprint.limits.model_replies ?? ENOUGH),
    maxRetries: 0,
  };
  if (GATES_AT_THE_CALL) settings.toolApproval = gatesOf(functions);
  if (Object.keys(blueprint.answer).length) settings.output = Output.object({ schema: schemaOf(blueprint.answer) });
  return settings;
}

/** @param {ToolSpec} spec */
function toolOf(spec) {
  const { name, description, parameters } = spec;
  const gate = GATES_AT_THE_CALL ? {} : { needsApproval: needsApproval(spec) };
  return tool({
    description,
    inputSchema: schemaOf(parameters),
    ...gate,
    execute: (input, { toolCallId, abortSignal }) => world().run(name, input, toolCallId, { signal: abortSignal }),
  });
}

/** @param {ToolSpec} spec */
function needsApproval({ name, approval }) {
  if (typeof approval === "string") return approval === "always";
  return (input, { toolCallId }) => world().gate(name, input, toolCallId);
}

/** @param {ToolSpec[]} specs */
function gatesOf(specs) {
  const gated = specs.filter(({ approval }) => approval !== "never");
  return Object.fromEntries(gated.map((spec) => [spec.name, gateOf(spec)]));
}

/** @param {ToolSpec} spec */
function gateOf({ name, approval }) {
  if (approval === "always") return "user-approval";
  return async (input, { toolCallId }) =>
    (await world().gate(name, input, toolCallId)) ? "user-approval" : "not-applicable";
}
