/** Saved states: a store of the application for the entries of sessions, and what is deferred in one. */

import { getSessionMessages, listSessions } from "@anthropic-ai/claude-agent-sdk";

import { requestOf } from "./requests.mjs";

/** A `SessionStore` in memory: `append` and `load` are what the SDK needs of one. */
export class EntryStore {
  /** The entries of each session, and those of its sub-agents by subpath. A fork has a copy of all entries. */
  #sessions = new Map();

  /** Add entries; one with a `uuid` that is there already is the same one. */
  async append({ sessionId, subpath = "" }, entries) {
    const kept = this.entriesOf(sessionId).get(subpath) ?? [];
    const known = new Set(kept.map(({ uuid }) => uuid).filter((uuid) => uuid !== undefined));
    const added = entries.filter(({ uuid }) => !known.has(uuid));
    this.entriesOf(sessionId).set(subpath, [...kept, ...structuredClone(added)]);
  }

  /** Return the entries of a session; null if there are none. */
  async load({ sessionId, subpath = "" }) {
    return structuredClone(this.entriesOf(sessionId).get(subpath) ?? null);
  }

  /** Return the entries of a session by subpath, which more can be put into. */
  entriesOf(session) {
    if (!this.#sessions.has(session)) this.#sessions.set(session, new Map());
    return this.#sessions.get(session);
  }
}

/** What the caller keeps of a session. */
export class State {
  /** The id of the session; empty before its first turn. */
  session = "";
  /** The request of the call that waits in it. */
  deferred = null;
  /** The ids of the calls that waited when a message went past them. */
  passed = [];
  /** The session that was saved last, and how many entries it had, by subpath. */
  #saved = { session: "", counts: new Map() };

  /** @param {EntryStore | null} store its entries; null if the CLI keeps them */
  constructor(store) {
    this.store = store;
  }

  /**
   * Return it as text.
   *
   * @param {{onlyNew: boolean}} how
   */
  write({ onlyNew }) {
    const { session, deferred, passed, store } = this;
    if (store === null) return JSON.stringify({ session, deferred, passed });
    const known = onlyNew && this.#saved.session === session ? this.#saved.counts : new Map();
    const kept = [...store.entriesOf(session)];
    const entries = Object.fromEntries(kept.map(([path, all]) => [path, all.slice(known.get(path) ?? 0)]));
    this.#keepCounts();
    return JSON.stringify({ session, deferred, passed, entries });
  }

  /**
   * Take what `write` returned: one text, or several in order.
   *
   * @param {string[]} texts
   */
  read(texts) {
    for (const text of texts) {
      const { entries = {}, ...others } = JSON.parse(text);
      Object.assign(this, others);
      const kept = this.store?.entriesOf(this.session);
      for (const [path, added] of Object.entries(entries)) kept?.set(path, [...(kept.get(path) ?? []), ...added]);
    }
    this.#keepCounts();
  }

  #keepCounts() {
    const { session, store } = this;
    const kept = [...(store?.entriesOf(session) ?? [])];
    this.#saved = { session, counts: new Map(kept.map(([path, all]) => [path, all.length])) };
  }
}

/**
 * Return the id of the session that the CLI wrote last; empty if there is none.
 *
 * @param {string} configFolder the folder of its files, `CLAUDE_CONFIG_DIR`
 */
export async function findLastSession(configFolder) {
  const [last] = await readTranscripts(configFolder, () => listSessions({ limit: 1 }));
  return last?.sessionId ?? "";
}

/**
 * Return the request about the last call of a transcript's last reply that is open and gated; null without one.
 *
 * @param {string} configFolder the folder of the CLI's files, `CLAUDE_CONFIG_DIR`
 * @param {State} state the session, and the calls that a message went past
 * @param {Map<string, import("../../javascript/agent.mjs").ToolSpec>} specs
 */
export async function findOpenCall(configFolder, { session, passed }, specs) {
  const messages = session ? await readTranscripts(configFolder, () => getSessionMessages(session)) : [];
  // The CLI stores each block of a reply as a message of its own, under the reply's id.
  const blocks = messages.flatMap(({ message: { id: reply, content } }) =>
    (Array.isArray(content) ? content : []).map((block) => ({ reply, ...block })),
  );
  const closed = new Set([...passed, ...blocks.map((block) => block.tool_use_id)]);
  const calls = blocks.filter(({ type }) => type === "tool_use");
  const open = calls.findLast(
    ({ id, name, reply }) =>
      reply === calls.at(-1).reply && !closed.has(id) && specs.get(name)?.approval !== "never",
  );
  return open === undefined ? null : requestOf(open.id, open.name, open.input, specs);
}

/** Let the SDK read transcripts: its functions take the folder from the environment. */
async function readTranscripts(configFolder, read) {
  const before = process.env.CLAUDE_CONFIG_DIR;
  process.env.CLAUDE_CONFIG_DIR = configFolder;
  try {
    return await read();
  } finally {
    if (before === undefined) delete process.env.CLAUDE_CONFIG_DIR;
    else process.env.CLAUDE_CONFIG_DIR = before;
  }
}
