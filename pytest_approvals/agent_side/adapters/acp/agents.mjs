/** Agents that speak ACP: a prompt runs until it ends, and asks the client for permission on its way. */

import * as acp from "@agentclientprotocol/sdk";

import { Agent } from "../../javascript/agent.mjs";
import { BrokenContract, Unsupported } from "../../javascript/failures.mjs";
import { CANCELLED, answerOf, select } from "./permissions.mjs";
import { hasOneModel, isPrivate, startProgram } from "./process.mjs";
import { PROGRAMS, filled, readProgram } from "./programs.mjs";
import { SERVER, ToolServer } from "./tools.mjs";

/** The milliseconds after a question in which a program may still show the arguments of the call. */
const SHOWN_TIMEOUT = 5000;

/** The milliseconds without news after which a question is passed on though a call answered before it has no result. */
const SETTLED_TIMEOUT = 5000;

/** The milliseconds that a program may take to end a cancelled prompt when its session is closed. */
const CANCEL_TIMEOUT = 5000;

/** The serialize mode in which the program keeps its sessions. */
const SESSIONS = "native.sessions";

/** @typedef {{request: object, options: object[], answer: (outcome: object) => void}} Question */

class AcpSession extends Agent {
  #program;
  #process;
  #id;
  #cwd;
  /** The folder of the program's home, if its sessions are taken up by other processes. */
  #store;
  /** Whether the program shows what was said before. */
  #isLoading = false;
  #tools;
  #calls = new Map();
  /** The ids of calls that were answered and have no result yet. */
  #unsettled = new Set();
  /** @type {Question[]} */
  #questions = [];
  #prompt = null;
  /** Whether the prompt was cancelled: what is asked from then on is answered so, too. */
  #cancelled = false;
  #problem = null;
  #wake = () => {};
  #said = "";
  #stream = false;

  constructor(world, blueprint, program, process = undefined) {
    super(world, blueprint);
    this.#program = program;
    this.#process = process;
    this.#store = blueprint.serialize === SESSIONS ? blueprint.directory : "";
  }

  async begin() {
    const route = this.#route();
    this.#process ??= await startProgram(this.#program, route, this.#store);
    // What is stored is loaded before the first turn.
    if (!this.#store) await this.#open(route);
  }

  /** Begin a session, or take up a saved one. */
  async #open(route, saved = undefined) {
    const functions = this.blueprint.tools.filter(({ kind }) => kind === "function");
    const servers = this.blueprint.servers.map(serverOf);
    if (functions.length) {
      this.#tools = new ToolServer(functions, this.world);
      servers.push({ type: "http", name: SERVER, url: await this.#tools.start(), headers: [] });
    }
    this.#isLoading = saved !== undefined;
    const begun = saved === undefined ? await this.#process.begin(this, servers, route) : await this.#takeUp(saved, servers, route);
    this.#isLoading = false;
    [this.#id, this.#cwd] = [begun.sessionId, begun.cwd];
  }

  /** Load a saved session, or fork it: then the one that was saved stays as it is. */
  async #takeUp(saved, servers, route) {
    if (this.blueprint.options.forks === true) return this.#process.fork(this, servers, route, saved);
    await this.#process.load(this, servers, route, saved);
    return saved;
  }

  #route() {
    const tools = this.blueprint.tools.map(({ name, kind, server }) => ({ name, server: kind === "function" ? SERVER : server }));
    const pattern = this.#program.tool;
    const pairs = pattern ? tools.map(({ name, server }) => [name, filled(pattern, { tool: name, server })]) : [];
    this.names = new Map(pairs.map(([name, full]) => [full, name]));
    const { title } = this.#program;
    this.titles = title ? new Map(tools.map(({ name, server }) => [filled(title, { tool: name, server }), name])) : this.names;
    return {
      address: this.world.address,
      main: this.#program.main,
      toProgram: new Map(pairs),
      toScript: this.names,
      unnamed: pattern ? [] : tools,
      fail: (why) => this.#fail(why),
    };
  }

  /** Break the run: no scenario can be played on what the program does. */
  #fail(why) {
    this.#problem ??= new BrokenContract(`${this.#process?.name ?? "the program"} ${why}`);
    this.#wake();
  }

  async turn(text, decisions, { stream, signal }) {
    if (this.#id === undefined) await this.#open(this.#route());
    if (text !== null) this.#begin(text, decisions);
    else if (!decisions.length) throw new Unsupported("go_on_without_answer", "a permission waits until it is answered");
    this.#stream = stream;
    this.#answer(decisions);
    // Where the program is gone, the prompt fails with the reason.
    const hangUp = () => this.#giveUp().catch(() => {});
    signal?.addEventListener("abort", hangUp);
    try {
      return await this.#outcome();
    } finally {
      signal?.removeEventListener("abort", hangUp);
      // What comes between two turns has no consumer.
      this.#stream = false;
    }
  }

  #begin(text, decisions) {
    if (decisions.length) throw new Unsupported("message_with_answers");
    if (this.#prompt !== null) throw new Unsupported("message_while_pending");
    this.#said = "";
    this.#cancelled = false;
    // A program need not show what became of the calls of a prompt that was cut off.
    this.#calls.clear();
    this.#unsettled.clear();
    const prompt = [{ type: "text", text }];
    const sent = this.#process.request(acp.methods.agent.session.prompt, { sessionId: this.#id, prompt });
    this.#prompt = { ended: false, result: null, error: null };
    const end = (facts) => {
      Object.assign(this.#prompt, { ended: true, ...facts });
      this.#wake();
    };
    sent.then((result) => end({ result }), (error) => end({ error }));
  }

  #answer(decisions) {
    const pairs = decisions.map((decision) => {
      const id = decision.request?.id ?? decision.address;
      const question = this.#questions.find(({ request }) => request.id === id);
      if (question === undefined) throw new Error(`nobody asks about ${JSON.stringify(id)}`);
      return [question, answerOf(decision, question.options, this.#program.options), decision.verdict];
    });
    for (const [question, outcome, verdict] of pairs) {
      this.#questions = this.#questions.filter((other) => other !== question);
      if (this.#program.silent && verdict === "reject") this.#said = "";
      else this.#unsettled.add(question.request.id);
      question.answer(outcome);
    }
  }

  /** Whether a turn has come to its end: a program may ask about the next call while it still runs one. */
  get #isOver() {
    if (this.#problem !== null || this.#prompt.ended) return true;
    return this.#questions.length > 0 && !this.#unsettled.size;
  }

  async #outcome() {
    while (!this.#isOver) {
      const woken = new Promise((resolve) => (this.#wake = resolve));
      if (!this.#questions.length) await woken;
      else if (!(await isWithin(SETTLED_TIMEOUT, woken))) this.#unsettled.clear();
    }
    if (this.#problem !== null) throw this.#problem;
    if (this.#stream) this.#showEnd();
    if (this.#questions.length) {
      return { paused: { requests: await this.pending(), text: this.#said } };
    }
    const { result, error } = this.#prompt;
    this.#prompt = null;
    if (error !== null) throw error;
    if (result.stopReason !== "end_turn") throw new Error(`the turn ended with ${result.stopReason}`);
    return { finished: { output: this.#said } };
  }

  #showEnd() {
    for (const { request } of this.#questions) this.world.shown("request", { id: request.id, tool: request.tool });
    this.world.shown("end");
  }

  // --- what the program says ---

  /** Answer a question: for the caller, or by the policy of the tool. */
  async ask({ toolCall, options }) {
    // A program may show a call with its question only.
    const isNew = !this.#calls.has(toolCall.toolCallId);
    const call = this.#merge(toolCall);
    if (isNew) this.#report("call", { id: call.id, tool: call.tool });
    const spec = this.blueprint.tools.find(({ name }) => name === call.tool);
    const lacksArguments = !Object.keys(call.arguments).length && Object.keys(spec?.parameters ?? {}).length > 0;
    if (lacksArguments && !toolCall.content?.length) await this.#shown(call);
    const waits = spec === undefined || (await this.#needsAnswer(spec, call));
    if (this.#cancelled) return CANCELLED;
    if (!waits) return this.#allow(call, options);
    const server = spec?.server ?? null;
    const request = { id: call.id, call_id: call.id, tool: call.tool, arguments: call.arguments, kind: spec?.kind, server };
    return new Promise((answer) => {
      this.#questions.push({ request, options, answer });
      this.#wake();
    });
  }

  /** Approve a call that needs no person. */
  #allow(call, options) {
    try {
      const outcome = select("approve", options, this.#program.options);
      this.#unsettled.add(call.id);
      return outcome;
    } catch ({ message }) {
      this.#fail(`asks about ${call.tool} without an option to allow it once: ${message}`);
      return CANCELLED;
    }
  }

  async #needsAnswer(spec, call) {
    if (typeof spec.approval === "string") return spec.approval === "always";
    return this.world.gate(spec.name, call.arguments, call.id, { agent: spec.agent });
  }

  /** Wait until the arguments of a call are shown: a client shows a call as its last update says. */
  async #shown(call) {
    await isWithin(SHOWN_TIMEOUT, new Promise((resolve) => (call.onShown = resolve)));
  }

  #merge({ toolCallId, title, rawInput, content, status }) {
    const call = this.#calls.get(toolCallId) ?? { id: this.#idOf(toolCallId), tool: "", arguments: {} };
    this.#calls.set(toolCallId, call);
    if (title) call.tool = this.titles.get(title) ?? (call.tool || title);
    const shown = this.#argumentsOf({ rawInput, content, status });
    if (shown !== undefined) {
      call.arguments = shown;
      call.onShown?.();
    }
    return call;
  }

  /** Return the arguments that are shown of a call, as text if they are no object. */
  #argumentsOf({ rawInput, content, status }) {
    const { input } = this.#program;
    if (input && rawInput) {
      const shown = rawInput[input] ?? {};
      return isObject(shown) ? shown : JSON.stringify(shown);
    }
    // What is shown of a call that has run is its result.
    const shown = rawInput ?? (["completed", "failed"].includes(status) ? undefined : objectIn(content));
    if (shown === undefined || shown === null) return undefined;
    if (!isObject(shown)) return JSON.stringify(shown);
    return Object.keys(shown).length ? shown : undefined;
  }

  /** Return the id that the model gave a call, of which the program makes one of its own. */
  #idOf(id) {
    const pattern = this.#program.id;
    const prefixes = pattern ? [...this.names.keys()].map((name) => filled(pattern, { name, id: "" })) : [];
    const prefix = prefixes.find((one) => id.startsWith(one)) ?? "";
    return id.slice(prefix.length);
  }

  /** Take a notification, and report it to the consumer of a stream. */
  show(update) {
    if (this.#isLoading) return;
    const { sessionUpdate: kind } = update;
    if (kind === "agent_message_chunk" && update.content.type === "text") {
      this.#said += update.content.text;
      this.#report("text", { text: update.content.text });
    } else if (kind === "tool_call") {
      const call = this.#merge(update);
      this.#report("call", { id: call.id, tool: call.tool });
    } else if (kind === "tool_call_update") {
      const call = this.#merge(update);
      if (!["completed", "failed"].includes(update.status)) return;
      // What was said before a result belongs to an earlier reply.
      this.#said = "";
      this.#report("result", { id: call.id, text: resultOf(update) });
      // A later call may have its id.
      this.#calls.delete(update.toolCallId);
      this.#unsettled.delete(call.id);
      this.#wake();
    }
  }

  #report(what, facts) {
    if (this.#stream) this.world.shown(what, facts);
  }

  // --- the rest ---

  async pending() {
    return this.#questions.map(({ request }) => request);
  }

  async cancel() {
    if (this.#prompt === null) return;
    await this.#giveUp();
    while (!this.#prompt.ended) await new Promise((resolve) => (this.#wake = resolve));
    this.#prompt = null;
  }

  /** Cancel the prompt as the protocol asks for: what is asked is answered so, too. */
  async #giveUp() {
    this.#cancelled = true;
    await this.#process.notify(acp.methods.agent.session.cancel, { sessionId: this.#id });
    for (const { answer } of this.#questions.splice(0)) answer(CANCELLED);
  }

  async anotherSession(world) {
    if (hasOneModel(this.#program)) throw new Unsupported("sessions", "the environment of the program names one model");
    return new AcpSession(world, this.blueprint, this.#program, this.#store ? undefined : this.#process);
  }

  /** Return where the session is stored, when the program has gone away with its client. */
  async dump() {
    if (!this.#store) throw new Unsupported("serialize.json");
    if (this.#id === undefined) await this.#open(this.#route());
    await this.#process.close();
    return JSON.stringify({ sessionId: this.#id, cwd: this.#cwd });
  }

  async load([reference]) {
    if (!this.#process.loadsSessions) throw new Unsupported(SESSIONS, "the program does not announce `loadSession`");
    const forks = this.blueprint.options.forks === true;
    if (forks && !this.#process.forksSessions) throw new Unsupported(SESSIONS, "the program does not announce `session/fork`");
    await this.#open(this.#route(), JSON.parse(reference));
  }

  async close() {
    try {
      if (this.#id !== undefined) {
        if (this.#prompt !== null && !this.#prompt.ended) await isWithin(CANCEL_TIMEOUT, this.cancel());
        await this.#process.end(this.#id);
      }
    } finally {
      this.#tools?.close();
      const isOwn = this.#store || isPrivate(this.#program);
      if (isOwn && (this.#process?.isIdle ?? false)) await this.#process.close();
    }
  }
}

/** Return whether a promise is fulfilled within some milliseconds. */
async function isWithin(timeout, promise) {
  let late;
  const tooLate = new Promise((resolve) => (late = setTimeout(() => resolve(false), timeout)));
  const met = await Promise.race([promise.then(() => true), tooLate]);
  clearTimeout(late);
  return met;
}

/** Return what is shown of a result: the content of the call, or else what its tool has returned. */
function resultOf({ content, rawOutput }) {
  const { result, error } = rawOutput ?? {};
  const parts = content?.map((part) => part.content) ?? result?.content ?? [];
  const text = parts.map((part) => part?.text ?? "").join("");
  if (text || !rawOutput) return text;
  return result?.structuredContent ? JSON.stringify(result.structuredContent) : (error?.message ?? "");
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Return the object that a call's content is the JSON of, if it is. */
function objectIn(content) {
  const text = (content ?? []).map(({ content: part }) => part?.text ?? "").join("");
  if (!text.startsWith("{")) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function serverOf({ name, url, command }) {
  if (url) return { type: "http", name, url, headers: [] };
  return { name, command: command[0], args: command.slice(1), env: [] };
}

class OpenCode extends AcpSession {
  constructor(world, blueprint) {
    super(world, blueprint, PROGRAMS.opencode);
  }
}

class ClaudeCode extends AcpSession {
  constructor(world, blueprint) {
    super(world, blueprint, PROGRAMS.claude_code);
  }
}

class Codex extends AcpSession {
  constructor(world, blueprint) {
    super(world, blueprint, PROGRAMS.codex);
  }
}

class Gemini extends AcpSession {
  constructor(world, blueprint) {
    super(world, blueprint, PROGRAMS.gemini);
  }
}

class UserProgram extends AcpSession {
  constructor(world, blueprint) {
    super(world, blueprint, readProgram());
  }
}

export const FLAVOURS = {
  "": OpenCode,
  opencode: OpenCode,
  claude_code: ClaudeCode,
  codex: Codex,
  gemini: Gemini,
  program: UserProgram,
};
