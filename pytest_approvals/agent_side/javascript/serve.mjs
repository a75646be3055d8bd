/** RPC server of an agent process: the agent's end of the host protocol. */

import { Agent, blueprintOf } from "./agent.mjs";
import { Channel } from "./channel.mjs";
import { BrokenContract } from "./failures.mjs";
import { plain } from "./plain.mjs";
import { World, inWorld } from "./world.mjs";

const PROTOCOL = 1;

/** The milliseconds that agents may take to close after the harness is gone. */
const CLOSE_TIMEOUT = 2000;

/**
 * Serve the harness until it is gone, then end the process.
 *
 * @param {Record<string, typeof Agent>} flavours the agents by flavour, the default one under ""
 * @param {object} facts the answer to `hello`
 */
export function serve(flavours, facts) {
  new Server(flavours, facts);
}

/** Let the kernel end this process in a write beyond the limit of file sizes. */
function dieInCutWrites() {
  // Node ignores the signal, so that the write fails; when the last listener leaves, libuv restores the default.
  const listener = () => {};
  process.on("SIGXFSZ", listener);
  process.removeListener("SIGXFSZ", listener);
}

class Server {
  #sessions = new Map();
  #handles = [];
  #process = null;
  #adapter = Agent;
  #flavours;
  #facts;
  #channel;
  #methods = {
    hello: (params) => this.#hello(params),
    build: (params) => this.#build(params),
    turn: (params, signal) => this.#turn(params, signal),
    pending: async ({ session }) => ({ requests: this.#withHandles(await this.#agent(session).pending()) }),
    stage: ({ session, decisions }) => this.#do(session, (agent) => agent.stage(this.#withObjects(decisions))),
    cancel: ({ session }) => this.#do(session, (agent) => agent.cancel()),
    trim: ({ session, keep }) => this.#do(session, (agent) => agent.trim(keep)),
    dump: async ({ session }) => ({ text: await this.#agent(session).dump() }),
    load: ({ session, parts, crashed = false }) =>
      this.#do(session, (agent) => (crashed ? agent.recover(parts) : agent.load(parts))),
    copy_from: ({ session, other }) => this.#do(session, (agent) => agent.copyFrom(this.#agent(other))),
    another_session: (params) => this.#anotherSession(params),
    close: (params) => this.#close(params),
    // `real` runs the body of a user's own tool; agents in Node have none.
    real: () => {
      throw new BrokenContract("no tool waits here");
    },
  };

  constructor(flavours, facts) {
    this.#flavours = flavours;
    this.#facts = facts;
    this.#channel = new Channel(this);
  }

  // --- own side of the channel ---

  async answer(method, params, signal) {
    if (!Object.hasOwn(this.#methods, method)) throw new BrokenContract(`unknown method ${method}`);
    if (this.#process === null && method !== "hello") throw new BrokenContract(`${method} came before hello`);
    return this.#methods[method](params, signal);
  }

  over(why) {
    if (why !== null) process.stderr.write(`the harness broke the protocol: ${why}\n`);
    const closing = [...this.#sessions.values()].map((agent) => agent.close().catch(() => {}));
    // An agent whose closing hangs must not keep a process whose harness is gone.
    const late = new Promise((resolve) => setTimeout(resolve, CLOSE_TIMEOUT));
    Promise.race([Promise.all(closing), late]).then(() => process.exit(why === null ? 0 : 1));
  }

  // --- commands ---

  #hello({ protocol, process: number, agent }) {
    if (protocol !== PROTOCOL) throw new BrokenContract(`the harness speaks protocol ${protocol}, not ${PROTOCOL}`);
    const flavour = agent.split(".")[1] ?? "";
    if (!Object.hasOwn(this.#flavours, flavour)) throw new Error(`there is no agent ${agent}`);
    this.#adapter = this.#flavours[flavour];
    this.#process = number;
    return { protocol: PROTOCOL, pid: process.pid, facts: this.#facts, language: `Node ${process.versions.node}` };
  }

  async #build({ session, blueprint }) {
    const complete = blueprintOf(blueprint);
    const world = this.#world(session, blueprint.model);
    const adapter = this.#adapter;
    await this.#addSession(session, new adapter(world, complete));
    return { tools: complete.written };
  }

  async #anotherSession({ session, new: number, model }) {
    const world = this.#world(number, model);
    const other = await this.#agent(session).anotherSession(world);
    await this.#addSession(number, other);
    return { tools: other.blueprint.written };
  }

  async #turn({ session, text = null, decisions = [], stream = false, ...death }, signal) {
    const agent = this.#agent(session);
    agent.world.stopsWhenShown = death.stops_when_shown ?? false;
    if (death.dies_in_write) dieInCutWrites();
    const withObjects = this.#withObjects(decisions);
    const outcome = await inWorld(agent.world, () => agent.turn(text, withObjects, { stream, signal }));
    if ("finished" in outcome) return { finished: { output: plain(outcome.finished.output) } };
    const { requests, text: shownText } = outcome.paused;
    return { paused: { requests: this.#withHandles(requests), ...(shownText ? { text: shownText } : {}) } };
  }

  async #do(session, action) {
    const agent = this.#agent(session);
    await inWorld(agent.world, () => action(agent));
    return {};
  }

  async #close({ session }) {
    const agent = this.#agent(session);
    // First: a session whose closing fails is closed, too, and is not closed again at the end.
    this.#sessions.delete(session);
    await agent.close();
    return {};
  }

  // --- sessions and handles ---

  #world(session, model) {
    if (this.#sessions.has(session)) throw new BrokenContract(`session ${session} already exists`);
    return new World(this.#channel, session, model);
  }

  async #addSession(session, agent) {
    this.#sessions.set(session, agent);
    try {
      await inWorld(agent.world, () => agent.begin());
    } catch (error) {
      // The harness closes only what has begun.
      this.#sessions.delete(session);
      await agent.close().catch(() => {});
      throw error;
    }
  }

  #agent(session) {
    const agent = this.#sessions.get(session);
    if (agent === undefined) throw new BrokenContract(`unknown session ${session}`);
    return agent;
  }

  /** Return requests with handles in place of the framework's own objects, which stay here. */
  #withHandles(requests) {
    return requests.map(({ handle, ...request }) => {
      const shown = { ...request, arguments: plain(request.arguments) };
      return handle === undefined ? shown : { ...shown, handle: [this.#process, this.#handles.push(handle) - 1] };
    });
  }

  /** Return decisions with the framework's own objects; a request of another process counts as rebuilt. */
  #withObjects(decisions) {
    return decisions.map((decision) => {
      if (!decision.request) return { ...decision, request: null };
      const [made, number] = decision.request.handle ?? [null, 0];
      const handle = made === this.#process ? this.#handles[number] : undefined;
      return { ...decision, request: { ...decision.request, handle } };
    });
  }
}
