/** Tools made from tool specs, and the policies that gate them. */

import { createTool } from "@mastra/core/tools";

import { schemaOf } from "../../javascript/schemas.mjs";
import { world } from "../../javascript/world.mjs";

/** @typedef {import("../../javascript/agent.mjs").ToolSpec} ToolSpec */

/**
 * Return the tool that a spec describes.
 *
 * @param {ToolSpec} spec
 */
export function toolOf(spec) {
  const { name, agent, description, parameters, approval } = spec;
  const run = (input, { agent: call, abortSignal }) =>
    world().run(name, input, call?.toolCallId ?? null, { agent, signal: abortSignal });
  return createTool({
    id: name,
    description,
    inputSchema: schemaOf(parameters),
    requireApproval: approval === "always" ? true : approval === "never" ? false : (input) => needsApproval(spec, input),
    execute: spec.asks_again ? askingMidway(run) : run,
  });
}

/**
 * Return whether a call needs approval. Policies are not told the id of the call.
 *
 * @param {ToolSpec} spec
 * @param {any} input
 */
export function needsApproval({ name, agent, approval }, input) {
  return typeof approval === "string" ? approval === "always" : world().gate(name, input, null, { agent });
}

/** Return a body that suspends itself in its middle, and runs again with the answer. */
function askingMidway(run) {
  return async (input, context) => {
    const { resumeData, suspend } = context.agent;
    if (resumeData?.approved === false) return resumeData.reason ?? "rejected";
    try {
      return await run(input, context);
    } catch (error) {
      if (error?.of !== "AsksAgain") throw error;
      return suspend({ question: error.message, arguments: input });
    }
  };
}
