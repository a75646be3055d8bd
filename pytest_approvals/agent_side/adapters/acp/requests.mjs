/** Requests of a program and replies of the script, with the names that the other side knows. */

/** Keys whose values are the program's or the tools' own, in which nothing is renamed. */
const VERBATIM = ["arguments", "input", "args", "parameters", "input_schema", "content", "text"];

/** What stands between a namespace and a name, which Responses keeps apart, in the names of tools. */
const NAMESPACE_END = "::";

/** What Codex writes in front of a result: it differs from run to run. */
const WALL_TIME = /^Wall time: [\d.]+ seconds\nOutput:\n?/;

/** How messages begin that a program writes in the user's name: what it says of its folder. */
const CONTEXTS = ["<session_context>", "<environment_context>"];

/** What a program sends besides the conversation, by protocol. */
const SYSTEM_KEYS = { chat: [], responses: ["instructions", "client_metadata"], messages: ["system"], gemini: ["systemInstruction"] };

/** @typedef {import("./proxy.mjs").Route} Route */

/**
 * Return the names of the tools that a program offers to its model.
 *
 * @param {object} body
 * @returns {string[]}
 */
export function namesOffered(body) {
  return toolsOf(body).map(nameOf);
}

/**
 * Return a request as the script's model reads it: its own tools only, under their names, and no system prompt.
 *
 * @param {object} body
 * @param {Route} route
 */
export function forScript(body, { address, toScript }) {
  const system = SYSTEM_KEYS[address.protocol] ?? [];
  const kept = Object.fromEntries(Object.entries(body).filter(([key]) => !system.includes(key)));
  for (const list of ["messages", "input", "contents"]) {
    if (Array.isArray(kept[list])) kept[list] = kept[list].map(withoutContext).map(plainItem).filter(isSaid);
  }
  const { tools: _, ...others } = kept;
  const tools = toolsOf(body).filter((tool) => toScript.has(nameOf(tool)));
  if (!tools.length) delete others.tool_choice;
  const renamed = tools.map((tool) => renamedTool(tool, toScript));
  const offered = address.protocol === "gemini" ? [{ functionDeclarations: renamed }] : renamed;
  return { ...renamedIn(others, toScript), ...(tools.length ? { tools: offered } : {}) };
}

/** Return the tools that a program offers to its model, without the groups that some protocols put them in. */
function toolsOf({ tools = [] }) {
  return tools.flatMap((tool) => {
    if (tool.functionDeclarations) return tool.functionDeclarations;
    if (tool.type !== "namespace") return [tool];
    return tool.tools.map((one) => ({ ...one, name: tool.name + NAMESPACE_END + one.name }));
  });
}

/** Return a message without what the program itself says in it of its folder. */
function withoutContext(message) {
  const key = Array.isArray(message.parts) ? "parts" : "content";
  if (message.role !== "user" || !Array.isArray(message[key])) return message;
  return { ...message, [key]: message[key].filter(({ text }) => !CONTEXTS.some((context) => text?.startsWith(context))) };
}

/**
 * Return an item as others than Codex write it: without the time that a call took, and without a content of reasoning that
 * is null, which OpenAI takes from its own program.
 */
function plainItem(item) {
  const { type, output, content, ...others } = item;
  if (type === "reasoning" && content === null) return { type, ...others };
  if (type !== "function_call_output") return item;
  const cut = (text) => text.replace(WALL_TIME, "");
  if (typeof output === "string") return { ...item, output: cut(output) };
  const parts = output.map((part) => (part.text ? { ...part, text: cut(part.text) } : part));
  return { ...item, output: parts.filter(({ text }) => text !== "") };
}

/** Return whether the user or the model said a message, and not the program alone. */
function isSaid({ role, parts, content }) {
  const list = parts ?? content;
  return !["system", "developer"].includes(role) && !(role === "user" && Array.isArray(list) && !list.length);
}

const nameOf = (tool) => tool.name ?? tool.function?.name;

function renamedTool(tool, names) {
  if (tool.function) return { ...tool, function: { ...tool.function, name: names.get(tool.function.name) } };
  return { ...tool, name: names.get(tool.name) };
}

/** Return a value in which the names of calls are renamed. */
function renamedIn(value, names) {
  if (Array.isArray(value)) return value.map((part) => renamedIn(part, names));
  if (value === null || typeof value !== "object") return value;
  const parts = Object.entries(value).map(([key, part]) => {
    // What is in it is the tool's own.
    if (key === "functionResponse") return [key, { ...part, name: names.get(part.name) ?? part.name }];
    return [key, VERBATIM.includes(key) && !holdsCalls(key, part) ? part : renamedIn(part, names)];
  });
  const { namespace, ...others } = Object.fromEntries(parts);
  const name = names.get(namespace === undefined ? others.name : namespace + NAMESPACE_END + others.name);
  if (name === undefined) return Object.fromEntries(parts);
  const [first, last] = name.split(NAMESPACE_END);
  return last === undefined ? { ...others, name } : { ...others, namespace: first, name: last };
}

/** Return whether a value can hold calls: the input of Responses, the content of Messages, and that of Gemini with parts. */
function holdsCalls(key, value) {
  return ["input", "content"].includes(key) && (Array.isArray(value) || Array.isArray(value?.parts));
}

/**
 * Return a line of a reply, or a whole one, as the program reads it.
 *
 * @param {string} line
 * @param {Route} route
 */
export function renamedLine(line, { toProgram }) {
  const [, prefix, text, end] = /^((?:data: ?)?)(.*?)(\r?\n?)$/s.exec(line);
  if (!text.startsWith("{")) return line;
  try {
    return prefix + JSON.stringify(renamedIn(JSON.parse(text), toProgram)) + end;
  } catch {
    return line;
  }
}
