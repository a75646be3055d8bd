/** A small program that speaks ACP: `node program.mjs HABIT`. It asks about each call, if it has no bad habit. */

import { closeSync } from "node:fs";
import http from "node:http";
import { createInterface } from "node:readline";

const habit = process.argv[2] ?? "";
const sessions = new Map();
const waiting = new Map();
/** Sessions of which the client has cancelled the prompt; the calls of a reply are asked about to the end even so. */
const cancelled = new Set();
let sent = 0;

const write = (message) => habit !== "closes its output" && process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const update = (sessionId, what) => write({ method: "session/update", params: { sessionId, update: what } });

function request(method, params) {
  sent += 1;
  write({ id: sent, method, params });
  return new Promise((resolve) => waiting.set(sent, resolve));
}

async function post(url, body) {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`the model answers ${response.status}`);
  return response.json();
}

async function prompt({ sessionId, prompt: [{ text }] }) {
  const { servers, messages } = sessions.get(sessionId);
  messages.push({ role: "user", content: text });
  const listed = await Promise.all(servers.map(({ url }) => post(url, { jsonrpc: "2.0", id: 1, method: "tools/list" })));
  const tools = listed.flatMap(({ result }, at) =>
    result.tools.map(({ name, description, inputSchema: parameters }) => ({
      type: "function",
      function: { name: habit === "renames tools" ? `tool${at}` : `${servers[at].name}.${name}`, description, parameters },
    })),
  );
  for (;;) {
    const address = process.env.MODEL ? `${process.env.MODEL}/v1` : process.env.OPENAI_BASE_URL;
    const way = habit === "asks over messages" ? "messages" : "chat/completions";
    const { choices } = await post(`${address}/${way}`, { model: "m", messages, tools });
    const { message } = choices[0];
    messages.push(message);
    if (message.content) update(sessionId, { sessionUpdate: "agent_message_chunk", content: { type: "text", text: message.content } });
    if (!message.tool_calls?.length) return { stopReason: habit === "refuses" ? "refusal" : "end_turn" };
    messages.push(...(await runAll(sessionId, servers, message.tool_calls)));
    if (cancelled.delete(sessionId)) return { stopReason: "cancelled" };
  }
}

/** Run the calls of a reply one after the other; who asks ahead asks about the next one before an answered one runs. */
async function runAll(sessionId, servers, calls) {
  const told = [];
  let asking = ask(sessionId, calls[0]);
  for (const [at, call] of calls.entries()) {
    const outcome = await asking;
    const askNext = () => (at + 1 < calls.length ? ask(sessionId, calls[at + 1]) : undefined);
    if (habit === "asks ahead") asking = askNext();
    told.push(await finish(sessionId, servers, call, outcome));
    if (habit !== "asks ahead") asking = askNext();
  }
  return told;
}

async function ask(sessionId, { id, function: { name, arguments: text } }) {
  const shown = { toolCallId: id, title: name, rawInput: JSON.parse(text) };
  update(sessionId, { sessionUpdate: "tool_call", status: "pending", ...shown });
  const yes = { optionId: "yes", kind: "allow_once", name: "Yes" };
  const options = habit === "offers no way back" ? [yes] : [yes, { optionId: "no", kind: "reject_once", name: "No" }];
  const askOnce = () => request("session/request_permission", { sessionId, toolCall: shown, options });
  const asking = habit === "never asks" ? { outcome: { optionId: "yes" } } : askOnce();
  // When the question is written out.
  if (habit === "dies") process.stdout.write("", () => process.exit(3));
  const { outcome } = await asking;
  if (habit === "asks twice") await askOnce();
  return outcome;
}

async function finish(sessionId, servers, { id, function: { name, arguments: text } }, outcome) {
  let told = "rejected";
  if (outcome.optionId === "yes") {
    const [server, tool] = name.split(".");
    const { url } = servers.find((one) => one.name === server);
    const called = { name: tool, arguments: JSON.parse(text) };
    told = (await post(url, { jsonrpc: "2.0", id: 2, method: "tools/call", params: called })).result.content[0].text;
  }
  const content = [{ type: "content", content: { type: "text", text: told } }];
  update(sessionId, { sessionUpdate: "tool_call_update", toolCallId: id, status: "completed", content });
  return { role: "tool", tool_call_id: id, content: told };
}

async function answer(method, params) {
  if (habit === `hangs at ${method}`) return new Promise(() => {});
  if (method === "initialize") return { protocolVersion: habit === "is newer" ? 99 : 1, agentCapabilities: {}, authMethods: [{ id: "api-key", name: "A key" }] };
  if (method === "session/new" && habit === "needs a login") throw { code: -32000, message: "Authentication required" };
  if (method === "session/new") {
    const sessionId = `session-${sessions.size + 1}`;
    sessions.set(sessionId, { servers: params.mcpServers, messages: [] });
    return { sessionId };
  }
  if (method === "session/prompt") return prompt(params);
  throw { code: -32601, message: `no method ${method}` };
}

if (habit === "leaves at once") {
  process.stderr.write("no configuration was found\n");
  process.exit(2);
}
if (habit === "writes rubbish") process.stdout.write("Welcome!\n{\n");
if (habit === "closes its output") closeSync(1);
if (habit === "asks the network") {
  const { hostname: host, port } = new URL(process.env.http_proxy);
  http.request({ host, port, method: "CONNECT", path: "example.org:443" }).on("error", () => {}).end();
}
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result } = JSON.parse(line);
  if (method === undefined) {
    waiting.get(id)(result);
    waiting.delete(id);
  } else if (method === "session/cancel") {
    cancelled.add(params.sessionId);
  } else if (id !== undefined) {
    answer(method, params).then(
      (value) => write({ id, result: value }),
      (error) => write({ id, error: { code: error.code ?? -32603, message: error.message } }),
    );
  }
}
