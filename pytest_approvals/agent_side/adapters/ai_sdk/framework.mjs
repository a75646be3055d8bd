/** SDK objects of one agent: its model, its tools and their gates. */

import { ElicitationRequestSchema, experimental_createMCPClient as createMCPClient } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as Stdio } from "@ai-sdk/mcp/mcp-stdio";
import { Output, tool } from "ai";

import { needsApprovalByAnnotations } from "../../javascript/annotations.mjs";
import { schemaOf } from "../../javascript/schemas.mjs";
import { Shared } from "../../javascript/shared.mjs";
import { world } from "../../javascript/world.mjs";
import { providers } from "./providers.mjs";
import { GATES_AT_THE_CALL, afterReplies } from "./releases.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;

/** More replies than any script has, so that a run without a limit ends by itself. */
const NO_REPLY_LIMIT = 1000;

/** @typedef {import("../../javascript/agent.mjs").ToolSpec} ToolSpec */
/** @typedef {import("../../javascript/agent.mjs").Blueprint} Blueprint */

/**
 * Return the arguments of `generateText` and `streamText` other than the messages.
 *
 * @param {Blueprint} blueprint
 * @returns {Shared<{settings: object, clients: object[]}>}
 */
export function frameworkOf(blueprint) {
  return new Shared(
    () => build(blueprint),
    ({ clients }) => Promise.all(clients.map((client) => client.close())),
  );
}

async function build(blueprint) {
  const { tools: specs, servers, limits, answer, model } = blueprint;
  const own = specs.filter((spec) => spec.agent === "main");
  const functions = own.filter((spec) => spec.kind === "function").map((spec) => [spec.name, toolOf(spec)]);
  const clients = await Promise.all(servers.map(clientOf));
  const connected = await Promise.all(clients.map((client) => client.tools()));
  const { tools, ...gates } = withGates(Object.assign(Object.fromEntries(functions), ...connected), own);
  const provider = await providers[model.protocol]();
  const settings = {
    model: provider.model("main"),
    tools: { ...tools, ...provider.hosted(own) },
    ...gates,
    stopWhen: afterReplies(limits.model_replies ?? NO_REPLY_LIMIT),
    maxRetries: 0,
  };
  if (Object.keys(answer).length) settings.output = Output.object({ schema: schemaOf(answer) });
  return { settings, clients };
}

/**
 * Connect to a server, which may ask the caller in the middle of calls.
 *
 * @param {{url: string, command: string[]}} address
 */
async function clientOf(address) {
  const client = await createMCPClient({ transport: transportTo(address), capabilities: { elicitation: {} } });
  client.onElicitationRequest(ElicitationRequestSchema, ({ params }) =>
    world().elicit(params.message, { form: params.requestedSchema }),
  );
  return client;
}

/** @param {{url: string, command: string[]}} address */
function transportTo({ url, command: [command, ...args] }) {
  return url ? { type: "http", url } : new Stdio({ command, args });
}

/** @param {ToolSpec} spec */
function toolOf({ name, description, parameters }) {
  return tool({
    description,
    inputSchema: schemaOf(parameters),
    execute: (input, { toolCallId, abortSignal }) => world().run(name, input, toolCallId, { signal: abortSignal }),
  });
}

/**
 * Return tools with their gates, in the place that this release takes them.
 *
 * @param {Record<string, any>} tools
 * @param {ToolSpec[]} specs
 */
function withGates(tools, specs) {
  const waiting = specs.filter(
    ({ kind, approval, ...spec }) =>
      kind !== "hosted_mcp" &&
      (spec.by_annotations ? needsApprovalByAnnotations(tools[spec.name].metadata?.annotations) : approval !== "never"),
  );
  if (GATES_AT_THE_CALL)
    return { tools, toolApproval: Object.fromEntries(waiting.map((spec) => [spec.name, statusOf(spec)])) };
  const asking = waiting.map((spec) => [spec.name, { ...tools[spec.name], needsApproval: needsApproval(spec) }]);
  return { tools: { ...tools, ...Object.fromEntries(asking) } };
}

/** @param {ToolSpec} spec */
function needsApproval({ name, approval }) {
  return approval === "always" ? true : (input, { toolCallId }) => world().gate(name, input, toolCallId);
}

/** @param {ToolSpec} spec */
function statusOf({ name, approval }) {
  if (approval === "always") return "user-approval";
  return async (input, { toolCallId }) =>
    (await world().gate(name, input, toolCallId)) ? "user-approval" : "not-applicable";
}
