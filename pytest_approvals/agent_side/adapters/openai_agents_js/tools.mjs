/** Tools made from tool specs. */

import { hostedMcpTool, tool } from "@openai/agents";

import { schemaOf } from "../../javascript/schemas.mjs";
import { world } from "../../javascript/world.mjs";

/** @typedef {import("../../javascript/agent.mjs").ToolSpec} ToolSpec */

/**
 * Return the function tool that a spec describes.
 *
 * @param {ToolSpec} spec
 */
export function functionTool(spec) {
  const { name, agent, description } = spec;
  return tool({
    name,
    description,
    ...parametersOf(spec),
    needsApproval: policyOf(spec),
    execute: (input, _, details) =>
      world().run(name, input, details?.toolCall?.callId ?? null, { agent, signal: details?.signal }),
  });
}

/**
 * Return the value of `needsApproval`.
 *
 * @param {ToolSpec} spec
 */
export function policyOf({ name, agent, approval }) {
  if (typeof approval === "string") return approval === "always";
  return (_, input, callId) => world().gate(name, input, callId ?? null, { agent });
}

/** A strict schema knows neither optional fields nor objects of any fields. */
function parametersOf({ parameters }) {
  const plain = Object.values(parameters).every(
    ({ required, type }) => required && !["object", "array"].includes(type),
  );
  if (plain) return { parameters: schemaOf(parameters) };
  return { strict: false, parameters: looseSchemaOf(parameters) };
}

function looseSchemaOf(parameters) {
  const named = Object.entries(parameters);
  const properties = Object.fromEntries(named.map(([name, { type, default: value }]) => [name, field(type, value)]));
  const required = named.filter(([, parameter]) => parameter.required).map(([name]) => name);
  return { type: "object", properties, required, additionalProperties: true };
}

/** OpenAI refuses an array without items. */
function field(type, value) {
  const plain = type === "array" ? { type, items: {} } : { type };
  return value === undefined || value === null ? plain : { ...plain, default: value };
}

/**
 * Return the tool for the specs of one server that the provider calls. The provider only knows `always` and `never`, so
 * a call with a condition is always asked about.
 *
 * @param {string} server
 * @param {ToolSpec[]} specs
 */
export function hostedTool(server, specs) {
  const named = (gated) => specs.filter(({ approval }) => (approval !== "never") === gated).map(({ name }) => name);
  return hostedMcpTool({
    serverLabel: server,
    serverUrl: `https://${server}.invalid/mcp`,
    allowedTools: specs.map(({ name }) => name),
    requireApproval: { always: { toolNames: named(true) }, never: { toolNames: named(false) } },
  });
}
