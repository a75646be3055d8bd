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
  const outward = (part) => (part.toolName === undefined ? part : { ...part, ...spelledOut(part) });
  const spelledOut = ({ toolName, input }) =>
    nameOf(toolName, delegations) === toolName ? {} : { toolName: nameOf(toolName, delegations), ...renamed(input) };
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

/** Return the arguments of a call as the model wrote them: its `input` is Mastra's `prompt`. */
function renamed(input) {
  if (input === null || typeof input !== "object" || !("prompt" in input)) return {};
  const { prompt, ...others } = input;
  return { input: { input: prompt, ...others } };
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
