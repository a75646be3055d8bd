/** The agent's end of the host protocol. */

import { Agent, blueprintOf } from "./agent.mjs";
import { Channel } from "./channel.mjs";
import { BrokenContract } from "./failures.mjs";
import { plain } from "./plain.mjs";
import { World, inWorld } from "./world.mjs";

const PROTOCOL = 1;

/** How many milliseconds agents may take to close after the harness is gone. */
const PATIENCE = 2000;

/**
 * Serves the harness until it is gone, then ends the process.
 *
 * @param {Record<string, typeof Agent>} flavours the agents by flavour, the default one under ""
 * @param {object} facts what `hello` is answered with
 */
export function serve(flavours, facts) {
  new Server(flavours, facts);
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
    hello: (asked) => this.#hello(asked),
    build: (asked) => this.#build(asked),
    turn: (asked, signal) => this.#turn(asked, signal),
    pending: async ({ session }) => ({ requests: this.#told(await this.#agent(session).pending()) }),
    stage: ({ session, decisions }) => this.#done(session, (one) => one.stage(this.#withObjects(decisions))),
    cancel: ({ session }) => this.#done(session, (one) => one.cancel()),
    trim: ({ session, keep }) => this.#done(session, (one) => one.trim(keep)),
    dump: async ({ session }) => ({ text: await this.#agent(session).dump() }),
    load: ({ session, parts }) => this.#done(session, (one) => one.load(parts)),
    copy_from: ({ session, other }) => this.#done(session, (one) => one.copyFrom(this.#agent(other))),
    another_session: (asked) => this.#another(asked),
    close: (asked) => this.#close(asked),
    real: () => {
      throw new BrokenContract("no tool waits here");
    },
  };

  constructor(flavours, facts) {
    this.#flavours = flavours;
    this.#facts = facts;
    this.#channel = new Channel(this);
  }

  // --- what the channel asks ---

  async answer(method, params, signal) {
    if (!Object.hasOwn(this.#methods, method)) throw new BrokenContract(`unknown method ${method}`);
    if (this.#process === null && method !== "hello") throw new BrokenContract(`${method} came before hello`);
    return this.#methods[method](params, signal);
  }

  over(why) {
    if (why !== null) process.stderr.write(`the harness broke the protocol: ${why}\n`);
    const closing = [...this.#sessions.values()].map((agent) => agent.close().catch(() => {}));
    const late = new Promise((resolve) => setTimeout(resolve, PATIENCE));
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
    const whole = blueprintOf(blueprint);
    const world = this.#world(session, blueprint.model);
    const adapter = this.#adapter;
    await this.#begun(session, new adapter(world, whole));
    return { tools: whole.written };
  }

  async #another({ session, new: number, model }) {
    const world = this.#world(number, model);
    const other = await this.#agent(session).anotherSession(world);
    await this.#begun(number, other);
    return { tools: other.blueprint.written };
  }

  async #turn({ session, text = null, decisions = [], stream = false }, signal) {
    const agent = this.#agent(session);
    const given = this.#withObjects(decisions);
    const outcome = await inWorld(agent.world, () => agent.turn(text, given, { stream, signal }));
    if ("finished" in outcome) return { finished: { output: plain(outcome.finished.output) } };
    const { requests, text: said } = outcome.paused;
    return { paused: { requests: this.#told(requests), ...(said ? { text: said } : {}) } };
  }

  async #done(session, action) {
    const agent = this.#agent(session);
    await inWorld(agent.world, () => action(agent));
    return {};
  }

  async #close({ session }) {
    const agent = this.#agent(session);
    this.#sessions.delete(session);
    await agent.close();
    return {};
  }

  // --- sessions and handles ---

  #world(session, model) {
    if (this.#sessions.has(session)) throw new BrokenContract(`session ${session} already exists`);
    return new World(this.#channel, session, model);
  }

  async #begun(session, agent) {
    this.#sessions.set(session, agent);
    await inWorld(agent.world, () => agent.begin());
  }

  #agent(session) {
    const agent = this.#sessions.get(session);
    if (agent === undefined) throw new BrokenContract(`unknown session ${session}`);
    return agent;
  }

  /** Gives requests with numbers in place of the framework's own objects, which stay here. */
  #told(requests) {
    return requests.map(({ handle, ...request }) => {
      const told = { ...request, arguments: plain(request.arguments) };
      return handle === undefined ? told : { ...told, handle: [this.#process, this.#handles.push(handle) - 1] };
    });
  }

  /** Gives decisions with the framework's own objects again; a request of another process is a rebuilt one. */
  #withObjects(decisions) {
    return decisions.map((decision) => {
      if (!decision.request) return { ...decision, request: null };
      const [made, number] = decision.request.handle ?? [null, 0];
      const handle = made === this.#process ? this.#handles[number] : undefined;
      return { ...decision, request: { ...decision.request, handle } };
    });
  }
}
