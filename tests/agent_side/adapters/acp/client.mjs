/**
 * A client that breaks the rules of ACP: `node client.mjs PROGRAM PACKAGES HOME HABIT [SESSION]`.
 *
 * It speaks JSON-RPC without a library, as the official one answers a request once. The model makes a call in each of its
 * first replies, and an MCP server has the tool. What happened is printed as JSON. SESSION is one of an earlier process, to
 * be loaded.
 */

import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";

import { PROGRAMS, filled } from "../../../../pytest_approvals/agent_side/adapters/acp/programs.mjs";

const [name, packages, home, habit, earlier] = process.argv.slice(2);
const program = PROGRAMS[name];

/** The milliseconds in which a program would do what an answer that comes too late allows. */
const AFTERMATH = 1500;

/** The milliseconds after which a prompt that waits though it was answered is cancelled. */
const PATIENCE = 15_000;

/** The milliseconds that a program may take to end when its client has gone. */
const END_TIMEOUT = 10_000;

const SCHEMA = { type: "object", properties: { amount: { type: "integer" } }, required: ["amount"] };
const MCP = {
  initialize: (params) => ({
    protocolVersion: params.protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: "bank", version: "1" },
  }),
  "tools/list": () => ({ tools: [{ name: "pay", description: "Pay an amount.", inputSchema: SCHEMA }] }),
  "tools/call": () => ({ content: [{ type: "text", text: "paid" }] }),
};

const ran = [];
/** What the model was told last of its calls, as texts. */
let told = [];
/** The amounts that the model's next replies pay; it has a last word when there is none. */
let amounts = [];
let replies = 0;

// --- the model ---

/** The results of calls in a request to the model, as texts, by protocol. */
const RESULTS = {
  chat: ({ messages }) => messages.filter(({ role }) => role === "tool").map(({ content }) => content),
  responses: ({ input }) => input.filter(({ type }) => type === "function_call_output").map(({ output }) => output),
  messages: ({ messages }) => messages.flatMap(({ content }) => content).filter(({ type }) => type === "tool_result").map(({ content }) => content),
  gemini: () => [],
};

/** The events of a reply that pays an amount, or of the last word, by protocol. */
const WRITERS = {
  chat(id, amount) {
    const call = { index: 0, id, type: "function", function: { name: "bank_pay", arguments: JSON.stringify({ amount }) } };
    const delta = amount === undefined ? { content: "Done." } : { tool_calls: [call] };
    const chunk = (piece, finish_reason) => ({ id, object: "chat.completion.chunk", choices: [{ index: 0, delta: piece, finish_reason }] });
    return [chunk(delta, null), chunk({}, amount === undefined ? "stop" : "tool_calls"), "[DONE]"];
  },
  responses(id, amount) {
    const call = { type: "function_call", id: `fc_${id}`, call_id: id, namespace: "mcp__bank", name: "pay", arguments: JSON.stringify({ amount }) };
    const content = [{ type: "output_text", text: "Done.", annotations: [] }];
    const item = amount === undefined ? { type: "message", id: `msg_${id}`, role: "assistant", content } : call;
    const response = { id: `resp_${id}`, object: "response", status: "completed", output: [item] };
    return [
      { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response },
    ];
  },
  messages(id, amount) {
    const isLast = amount === undefined;
    const usage = { input_tokens: 1, output_tokens: 1 };
    const head = { id: `msg_${id}`, type: "message", role: "assistant", model: "scripted", content: [], usage };
    const block = isLast ? { type: "text", text: "" } : { type: "tool_use", id, name: "mcp__bank__pay", input: {} };
    const json = JSON.stringify({ amount });
    const delta = isLast ? { type: "text_delta", text: "Done." } : { type: "input_json_delta", partial_json: json };
    const end = { stop_reason: isLast ? "end_turn" : "tool_use", stop_sequence: null };
    return [
      { type: "message_start", message: { ...head, stop_reason: null, stop_sequence: null } },
      { type: "content_block_start", index: 0, content_block: block },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: end, usage },
      { type: "message_stop" },
    ];
  },
  gemini(id, amount) {
    const part = amount === undefined ? { text: "Done." } : { functionCall: { id, name: "mcp_bank_pay", args: { amount } } };
    return [{ candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }] }];
  },
};

function written(event) {
  if (typeof event === "string") return `data: ${event}\n\n`;
  return (event.type ? `event: ${event.type}\n` : "") + `data: ${JSON.stringify(event)}\n\n`;
}

const server = http.createServer(async (request, response) => {
  let text = "";
  for await (const piece of request) text += piece;
  if (request.method !== "POST") return response.writeHead(405).end();
  const asked = JSON.parse(text);
  const { method, params, id, model, tools } = asked;
  if (request.url === "/mcp") {
    if (method === "tools/call") ran.push(params.arguments.amount);
    response.writeHead(id === undefined ? 202 : 200, { "content-type": "application/json" });
    return response.end(id === undefined ? "" : JSON.stringify({ jsonrpc: "2.0", id, result: MCP[method]?.(params ?? {}) }));
  }
  // Titles and summaries are asked for without tools, or of another model.
  const isAside = program.protocol === "gemini" ? !request.url.includes("scripted:stream") : model !== "scripted" || !tools?.length;
  if (!isAside) {
    replies += 1;
    told = RESULTS[program.protocol](asked).map((result) => JSON.stringify(result));
  }
  const events = WRITERS[program.protocol](`c${replies}`, isAside ? undefined : amounts.shift());
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.end(events.map(written).join(""));
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const url = `http://127.0.0.1:${server.address().port}`;

// --- the program ---

const cwd = path.join(home, "project");
const platform = `${os.platform()}-${os.arch()}`;
const facts = { model: url, models: url, session: "scripted", side: "side", home, node_modules: packages, platform };
const { command, environment, files } = filled(program, facts);
for (const [file, content] of Object.entries(files)) {
  const target = file.startsWith("~/") ? path.join(home, file.slice(2)) : path.join(cwd, file);
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, typeof content === "string" ? content : JSON.stringify(content));
}
mkdirSync(cwd, { recursive: true });
const env = { ...process.env, HOME: home, npm_config_offline: "true", ...environment };
const child = spawn(command[0], command.slice(1), { cwd: home, env, stdio: ["pipe", "pipe", "ignore"] });
const ended = new Promise((resolve) => child.on("exit", (code, signal) => resolve(code ?? signal)));

const waiting = new Map();
let sent = 0;
let onQuestion;
const write = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function request(method, params) {
  sent += 1;
  write({ id: sent, method, params });
  return new Promise((resolve, reject) => waiting.set(sent, { resolve, reject }));
}

createInterface({ input: child.stdout }).on("line", (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === "session/request_permission") {
    const find = (kind) => params.options.find((option) => option.kind === kind).optionId;
    onQuestion({ id, yes: find("allow_once"), no: find("reject_once") });
  } else if (method === undefined && waiting.has(id)) {
    if (error) waiting.get(id).reject(new Error(JSON.stringify(error)));
    else waiting.get(id).resolve(result);
    waiting.delete(id);
  }
});

const question = () => new Promise((resolve) => (onQuestion = resolve));
const select = (id, optionId) => write({ id, result: { outcome: { outcome: "selected", optionId } } });
const refuse = (id) => write({ id, result: { outcome: { outcome: "cancelled" } } });

await request("initialize", { protocolVersion: 1, clientCapabilities: {} });
const mcpServers = [{ type: "http", name: "bank", url: `${url}/mcp`, headers: [] }];
const sessionId = earlier ?? (await request("session/new", { cwd, mcpServers })).sessionId;
if (earlier !== undefined) await load();
const ask = (session, text) => request("session/prompt", { sessionId: session, prompt: [{ type: "text", text }] });
const prompt = (text) => ask(sessionId, text).then(({ stopReason }) => stopReason);

/** Load the session of an earlier process, or say why that fails. */
async function load() {
  try {
    await request("session/load", { sessionId, cwd, mcpServers });
  } catch ({ message }) {
    console.log(JSON.stringify({ first: `not loaded: ${message}` }));
    process.exit(0);
  }
}

// --- the habits ---

/** What models were told, by the session. */
const seen = {};

/** What the client does with the question about the first call; each returns how the prompt ended. */
const HABITS = {
  async "approves, then rejects"() {
    const [prompting, { id, yes, no }] = await begin();
    select(id, yes);
    select(id, no);
    return prompting;
  },
  async "rejects, then approves"() {
    const [prompting, { id, yes, no }] = await begin();
    select(id, no);
    select(id, yes);
    return prompting;
  },
  async "approves a second time when the call has run"() {
    const [prompting, { id, yes }] = await begin();
    select(id, yes);
    const stopReason = await prompting;
    select(id, yes);
    await pause(AFTERMATH);
    return stopReason;
  },
  async "approves when the prompt was cancelled"() {
    const [prompting, { id, yes }] = await begin();
    write({ method: "session/cancel", params: { sessionId } });
    refuse(id);
    const stopReason = await prompting;
    select(id, yes);
    await pause(AFTERMATH);
    return stopReason;
  },
  async "answers with an error"() {
    const [prompting, { id }] = await begin();
    write({ id, error: { code: -32603, message: "the window was closed" } });
    return prompting;
  },
  async "answers with something else"() {
    const [prompting, { id }] = await begin();
    write({ id, result: { approved: true } });
    const hasEnded = await Promise.race([prompting.then(() => true), pause(PATIENCE)]);
    if (!hasEnded) write({ method: "session/cancel", params: { sessionId } });
    return `${hasEnded ? "" : "waits; "}${await prompting}`;
  },
  async "answers a question that nobody asked"() {
    const [prompting, { id, no, yes }] = await begin();
    select(`${id}-other`, yes);
    await pause(AFTERMATH);
    select(id, no);
    return prompting;
  },
  async "forks while it is asked"() {
    const [prompting, { id, yes }] = await begin();
    const { sessionId: forked } = await request("session/fork", { sessionId, cwd, mcpServers });
    select(id, yes);
    const stopReason = await prompting;
    seen.original = told;
    amounts = [];
    await ask(forked, "What was paid?");
    seen.fork = told;
    return stopReason;
  },
  async "begins another session while it is asked"() {
    const [prompting, { id, yes }] = await begin();
    await request("session/new", { cwd, mcpServers });
    select(id, yes);
    const stopReason = await prompting;
    seen.original = told;
    return stopReason;
  },
  async "goes away"() {
    const [prompting] = await begin();
    prompting.catch(() => {});
    child.stdin.end();
    return `ended ${await ended}`;
  },
};

async function begin() {
  const questioned = question();
  amounts = [5];
  const prompting = prompt("Pay 5");
  return [prompting, await questioned];
}

const first = await HABITS[habit]();
const ranFirst = [...ran];
// A session that goes on takes the next message, and asks about its call.
let next = null;
if (child.exitCode === null) {
  onQuestion = ({ id, yes }) => select(id, yes);
  amounts = [6];
  next = await prompt("Pay 6");
  child.stdin.end();
  setTimeout(() => child.kill("SIGKILL"), END_TIMEOUT).unref();
  await ended;
}
console.log(JSON.stringify({ session: sessionId, first, ran: ranFirst, told: seen, next, ranNext: ran.slice(ranFirst.length) }));
process.exit(0);
