/** World of a session, as a proxy: it asks the harness for everything. */

import { AsyncLocalStorage } from "node:async_hooks";

import { plain } from "./plain.mjs";

/** Placeholder for the model's address until a request is sent. */
export const NOWHERE = "http://model.invalid/v1";

/** @typedef {{protocol: string, url: string}} ModelAddress where the scripted model is, as its clients take it */

export class World {
  #channel;
  #session;
  /** The harness kills this process as soon as something was shown. */
  stopsWhenShown = false;

  /**
   * @param {import("./channel.mjs").Channel} channel
   * @param {number} session
   * @param {ModelAddress | undefined} address
   */
  constructor(channel, session, address) {
    this.#channel = channel;
    this.#session = session;
    this.address = address;
  }

  /**
   * Return the scripted model's next reply, for an agent that asks the world and not the model's address.
   *
   * @param {object[]} items the complete input that a provider would get
   * @param {{agent?: string, stream?: boolean, tools?: string[]}} [more]
   * @returns {Promise<{say?: string, calls?: object[], answer?: object, chunks?: object[], breaks?: boolean}>}
   */
  async model(items, { agent = "main", stream = false, tools = [] } = {}) {
    return this.#channel.call("model", { session: this.#session, items: plain(items), agent, stream, tools });
  }

  /**
   * Execute a tool: called from its body, each time the framework enters it, and nowhere else.
   *
   * @param {string} tool
   * @param {any} args what the body was called with
   * @param {string | null} callId
   * @param {{agent?: string, signal?: AbortSignal}} [more]
   * @returns {Promise<any>} what the tool returns
   */
  async run(tool, args, callId, { agent = "main", signal } = {}) {
    const params = this.#about(tool, args ?? {}, callId, agent);
    return (await this.#channel.call("run", params, signal)).value ?? null;
  }

  /**
   * Return the caller's answer to a question that an MCP server asks in the middle of a call: called from the
   * framework's own handler of elicitations, with what it is given, and nowhere else.
   *
   * @param {string} message
   * @param {{form?: object, url?: string}} [more]
   * @returns {Promise<{action: "accept" | "decline" | "cancel", content?: object}>}
   */
  async elicit(message, { form, url } = {}) {
    const params = { session: this.#session, message, form: form === undefined ? null : plain(form), url: url ?? null };
    const { action, content } = await this.#channel.call("elicit", params);
    return content == null ? { action } : { action, content };
  }

  /**
   * Return whether a call needs approval: called from the framework's own policy, and nowhere else.
   *
   * @param {string} tool
   * @param {any} args
   * @param {string | null} callId
   * @param {{agent?: string}} [more]
   * @returns {Promise<boolean>}
   */
  async gate(tool, args, callId, { agent = "main" } = {}) {
    const params = { ...this.#about(tool, args, callId, agent), slowly: true };
    return (await this.#channel.call("gate", params)).needed;
  }

  /**
   * Report what a stream showed to its consumer.
   *
   * @param {"text" | "call" | "request" | "result" | "end"} what
   * @param {object} [facts]
   */
  shown(what, facts = {}) {
    this.#channel.notify("shown", { session: this.#session, what, facts: plain(facts) });
    // What the process does meanwhile would depend on how soon the signal arrives.
    if (this.stopsWhenShown) this.#channel.block();
  }

  #about(tool, args, callId, agent) {
    return { session: this.#session, tool, arguments: plain(args), call_id: callId ?? null, agent };
  }
}

/** @type {AsyncLocalStorage<World>} */
const current = new AsyncLocalStorage();

/**
 * Run an action with *world* as the current one: frameworks share models and tools between sessions.
 *
 * @template T
 * @param {World} world
 * @param {() => T} action
 * @returns {T}
 */
export function inWorld(world, action) {
  return current.run(world, action);
}

/**
 * Return the world of the running turn.
 *
 * @returns {World}
 */
export function world() {
  const running = current.getStore();
  if (running === undefined) throw new Error("the framework called a model or a tool outside of a turn");
  return running;
}

/**
 * The `fetch` of a client whose base address is `NOWHERE`: it asks the model of the running turn.
 *
 * @type {typeof fetch}
 */
export async function fetchOfTurn(input, init) {
  const target = typeof input === "string" || input instanceof URL ? String(input) : input.url;
  const { protocol, url } = world().address;
  // Clients of Anthropic in other languages put the version into the path themselves.
  const base = protocol === "messages" ? `${url}/v1` : url;
  return fetch(base + target.slice(NOWHERE.length), init);
}
