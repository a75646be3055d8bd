/**
 * Tools that run other agents. Mastra calls them `agent-NAME`, with the parameter `prompt`; a scenario has names and
 * parameters of its own, which a model is offered and calls.
 */

const PREFIX = "agent-";

/** @typedef {import("../../javascript/agent.mjs").ToolSpec} ToolSpec */

/**
 * Return the name by which the harness knows a tool of Mastra's.
 *
 * @param {string} name
 * @param {ToolSpec[]} specs
 */
export function nameOf(name, specs) {
  const own = name?.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
  return specs.some((spec) => spec.name === own && spec.runs !== null) ? own : name;
}

/**
 * Return the policy of an agent's calls of other agents: such a tool has no `requireApproval` of its own.
 *
 * @param {ToolSpec[]} specs
 * @param {(spec: ToolSpec, args: any) => boolean | Promise<boolean>} needsApproval
 */
export function policyOf(specs, needsApproval) {
  const gated = new Map();
  for (const spec of specs) if (spec.runs !== null && spec.approval !== "never") gated.set(PREFIX + spec.name, spec);
  if (gated.size === 0) return {};
  const requireToolApproval = ({ toolName, args }) =>
    gated.has(toolName) && needsApproval(gated.get(toolName), writtenArguments(args));
  return { requireToolApproval };
}

/**
 * Return the policy that gates all calls of the main agent, for an application whose tools have no gate of their own.
 *
 * @param {ToolSpec[]} specs
 * @param {(spec: ToolSpec, args: any) => boolean | Promise<boolean>} needsApproval
 */
export function gateAtCall(specs, needsApproval) {
  const own = specs.filter(({ agent }) => agent === "main");
  const requireToolApproval = ({ toolName, args }) => {
    const spec = own.find(({ name }) => name === nameOf(toolName, own));
    return spec !== undefined && needsApproval(spec, spec.runs === null ? args : writtenArguments(args));
  };
  return { requireToolApproval };
}

/**
 * Return a model that calls the tools of an agent by the names of their specs.
 *
 * @param {any} model
 * @param {ToolSpec[]} specs the tools of the agent
 */
export function withNames(model, specs) {
  const delegations = specs.filter(({ runs }) => runs !== null);
  if (delegations.length === 0) return model;
  const { specificationVersion, provider, modelId, supportedUrls } = model;
  const isDelegation = (name) => delegations.some((spec) => spec.name === name);
  const outward = (part) => {
    const toolName = nameOf(part.toolName, delegations);
    if (toolName === part.toolName) return part;
    return { ...part, toolName, ...("input" in part ? { input: writtenArguments(part.input) } : {}) };
  };
  const inward = (part) =>
    isDelegation(part.toolName) ? { ...part, toolName: PREFIX + part.toolName, ...prompted(part) } : part;
  const asked = (options) => ({
    ...options,
    tools: options.tools?.map((tool) => ({ ...tool, name: nameOf(tool.name, delegations) })),
    prompt: options.prompt.map(({ content, ...message }) => ({
      ...message,
      content: typeof content === "string" ? content : content.map(outward),
    })),
  });
  return {
    specificationVersion,
    provider,
    modelId,
    supportedUrls,
    doGenerate: async (options) => {
      const result = await model.doGenerate(asked(options));
      return { ...result, content: result.content.map(inward) };
    },
    doStream: async (options) => {
      const result = await model.doStream(asked(options));
      const rename = new TransformStream({ transform: (part, controller) => controller.enqueue(inward(part)) });
      return { ...result, stream: result.stream.pipeThrough(rename) };
    },
  };
}

/**
 * Return the arguments of a call as the model wrote them: its `input` is Mastra's `prompt`.
 *
 * @param {any} args
 */
export function writtenArguments(args) {
  if (args === null || typeof args !== "object" || !("prompt" in args)) return args;
  const { prompt, ...others } = args;
  return { input: prompt, ...others };
}

/** Return the arguments of a call as Mastra reads them. */
function prompted({ type, input }) {
  if (type !== "tool-call" || typeof input !== "string") return {};
  try {
    const { input: prompt = "", ...others } = JSON.parse(input);
    return { input: JSON.stringify({ prompt, ...others }) };
  } catch {
    return {};
  }
}
