/** Tools made from tool specs, and the policies that gate them. */

import { createTool } from "@mastra/core/tools";

import { schemaOf } from "../../javascript/schemas.mjs";
import { world } from "../../javascript/world.mjs";

/** @typedef {import("../../javascript/agent.mjs").ToolSpec} ToolSpec */

/** @type {WeakMap<import("../../javascript/world.mjs").World, string[]>} the calls whose bodies have ended */
const ended = new WeakMap();

/**
 * Return whether the body of a call has ended.
 *
 * @param {import("../../javascript/world.mjs").World} session
 * @param {string} callId
 */
export function hasEnded(session, callId) {
  return ended.get(session)?.includes(callId) ?? false;
}

/**
 * Return the tool that a spec describes.
 *
 * @param {ToolSpec} spec
 * @param {boolean} isGated whether the tool has the gate itself
 */
export function toolOf(spec, isGated) {
  const { name, agent, description, parameters } = spec;
  const run = async (input, { agent: call, abortSignal }) => {
    const running = world();
    try {
      return await running.run(name, input, call?.toolCallId ?? null, { agent, signal: abortSignal });
    } finally {
      ended.set(running, [...(ended.get(running) ?? []), call?.toolCallId]);
    }
  };
  return createTool({
    id: name,
    description,
    inputSchema: schemaOf(parameters),
    requireApproval: isGated && gateOf(spec),
    execute: spec.asks_again ? askingMidway(run) : run,
  });
}

/** @param {ToolSpec} spec */
function gateOf(spec) {
  if (typeof spec.approval === "string") return spec.approval === "always";
  return (input) => needsApproval(spec, input);
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
