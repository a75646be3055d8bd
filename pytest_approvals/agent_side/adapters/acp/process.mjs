/** The process of a program, its connection, and the sessions on it. */

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { once } from "node:events";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";

import * as acp from "@agentclientprotocol/sdk";

import { BrokenContract } from "../../javascript/failures.mjs";
import { filled } from "./programs.mjs";
import { ModelProxy } from "./proxy.mjs";
import { SIDE_MODEL } from "./side_replies.mjs";

/** The seconds that a program may take to start, if it does not say; the harness waits for a minute. */
const START_TIMEOUT = 45;

/** The milliseconds that a program may take to end by itself: after it was told to, or has closed its output. */
const END_TIMEOUT = 3000;

/** How much is kept of what a program writes to its standard error, in characters. */
const STDERR_KEPT = 2000;

/** The error code of a program that wants its user to log in first. */
const AUTH_REQUIRED = -32000;

/** How much of a line an error shows, in characters. */
const LINE_SHOWN = 200;

/** The request that forks a session, which is unstable in ACP. */
const FORK = "session/fork";

const LOOPBACK = "127.0.0.1,localhost,::1";

/** Variables of this process that would lead a program to files of the user. */
const LEFT_OUT = ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"];

/** What programs find in their environment: nothing is fetched from the registry of packages. */
const QUIET = { npm_config_offline: "true", npm_config_update_notifier: "false", NO_UPDATE_NOTIFIER: "1" };

/** A program is started once for all agents of this process, since a start takes seconds; each session has a folder. */
export class ProgramProcess {
  #program;
  #folder;
  /** Whether its folder is a store, which outlives it. */
  #isKept;
  #child;
  #connection;
  /** Its command, as errors name it. */
  name = "";
  #reject;
  #failed = new Promise((_, reject) => (this.#reject = reject));
  #isBroken = false;
  #sessions = new Map();
  #folders = 0;
  #stderr = "";
  #capabilities = {};
  /** Whether it can take up a session of an earlier process. */
  loadsSessions = false;
  /** The ways to log in that it offers. */
  #logins = [];
  /** The address of the only model that it knows; empty if each session has its own. */
  #model = "";

  /**
   * @param {import("./programs.mjs").Program} program
   * @param {string} [store] the folder that is its home, and holds the folders of its sessions; one of its own if left out
   */
  constructor(program, store = "") {
    this.#program = program;
    this.#folder = store;
    this.#isKept = Boolean(store);
    this.proxy = new ModelProxy();
  }

  /** Whether it can take another session. */
  get runs() {
    return this.#isAlive && !this.#isBroken;
  }

  /** Whether it can copy a session into another one. */
  get forksSessions() {
    return Boolean(this.#capabilities.fork);
  }

  /** Whether no session is on it. */
  get isIdle() {
    return !this.#sessions.size;
  }

  get #isAlive() {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /**
   * Start it, and agree on the protocol.
   *
   * @param {import("./proxy.mjs").Route} [route] the only model that it is told about, if its environment says where that is
   */
  async start(route) {
    await this.proxy.start();
    this.#folder ||= await mkdtemp(path.join(os.tmpdir(), "acp-"));
    process.on("exit", this.#abandon);
    this.#model = route === undefined ? "" : this.proxy.add(route);
    const { command, environment = {} } = filled(this.#program, this.#facts(this.#model));
    const kept = Object.fromEntries(Object.entries(process.env).filter(([name]) => !LEFT_OUT.includes(name)));
    const proxies = Object.fromEntries(
      ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"].map((name) => [name, this.proxy.url]),
    );
    const env = { ...kept, ...proxies, no_proxy: LOOPBACK, NO_PROXY: LOOPBACK, ...QUIET, HOME: this.#folder, ...environment };
    await this.#write(this.#folder, true, this.#facts(this.#model));
    const [program, ...words] = command;
    this.#child = spawn(program, words, { env, cwd: this.#folder, stdio: ["pipe", "pipe", "pipe"] });
    this.name = [program, ...words].map((word) => path.basename(word)).join(" ");
    this.#child.stderr.setEncoding("utf8").on("data", (text) => (this.#stderr = (this.#stderr + text).slice(-STDERR_KEPT)));
    this.#child.on("error", (error) => this.#fail(`cannot be started (${error.message}); is it installed, and its folder on the PATH?`));
    // `close` comes after `exit`, when its standard error is read to the end.
    this.#child.on("close", (code, signal) => this.#fail(this.#describeEnd(code ?? signal)));
    // A program that ends while nobody waits for it fails the next request.
    this.#failed.catch(() => {});
    this.#connect();
    const params = { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} };
    const { protocolVersion, agentCapabilities, authMethods } = await this.#startUp(acp.methods.agent.initialize, params);
    if (protocolVersion !== acp.PROTOCOL_VERSION) {
      const versions = `speaks version ${protocolVersion} of ACP, not ${acp.PROTOCOL_VERSION}`;
      throw new Error(`${this.name} ${versions}; name a release of it that speaks ${acp.PROTOCOL_VERSION}`);
    }
    this.#capabilities = agentCapabilities?.sessionCapabilities ?? {};
    this.loadsSessions = agentCapabilities?.loadSession ?? false;
    this.#logins = (authMethods ?? []).map(({ id }) => id);
  }

  /** Send a request that belongs to the start of a session, which has a time limit. */
  async #startUp(method, params) {
    const seconds = this.#program.start_timeout ?? START_TIMEOUT;
    const why = `does not answer \`${method}\` within ${seconds} s (\`start_timeout\` of its description)`;
    const late = setTimeout(() => this.#fail(why + this.#quoteStderr()), seconds * 1000);
    try {
      return await this.request(method, params);
    } catch (error) {
      if (error.code !== AUTH_REQUIRED) throw error;
      const offered = this.#logins.length ? `; it offers ${this.#logins.join(", ")}` : "";
      const remedy = "put a key into `environment`, or the file that it keeps its login in into `files`";
      throw new Error(`${this.name} needs a login (${error.message}${offered}): ${remedy} of its description`);
    } finally {
      clearTimeout(late);
    }
  }

  /** End it at once: this process ends. */
  #abandon = () => {
    this.#child?.kill("SIGKILL");
    if (!this.#isKept) rmSync(this.#folder, { recursive: true, force: true });
  };

  #fail(why) {
    this.#isBroken = true;
    this.#reject(new BrokenContract(`${this.name} ${why}`));
  }

  #describeEnd(how) {
    return `ended (${how})${this.#quoteStderr()}`;
  }

  #quoteStderr() {
    const said = this.#stderr.trim();
    return said ? `; its standard error ends with: ${said}` : "";
  }

  /** The lines of the program, of which each must be a message. */
  async *#lines() {
    for await (const line of createInterface({ input: this.#child.stdout })) {
      if (!isMessage(line)) {
        this.#fail(`writes what is no message of ACP to its standard output: ${line.slice(0, LINE_SHOWN)}`);
        return;
      }
      yield Buffer.from(`${line}\n`);
    }
    // One that ends closes its output, too, and how it ended says more.
    setTimeout(() => this.#fail("has closed its standard output and still runs" + this.#quoteStderr()), END_TIMEOUT).unref();
  }

  #connect() {
    const { requestPermission, update } = acp.methods.client.session;
    const stream = acp.ndJsonStream(Writable.toWeb(this.#child.stdin), Readable.toWeb(Readable.from(this.#lines())));
    const find = ({ sessionId }) => this.#sessions.get(sessionId);
    this.#connection = acp
      .client({ name: "pytest-approvals" })
      .onRequest(requestPermission, ({ params }) => find(params)?.ask(params) ?? { outcome: { outcome: "cancelled" } })
      .onNotification(update, ({ params }) => find(params)?.show(params.update))
      .connect(stream);
  }

  /**
   * Send a request, and return its result.
   *
   * @param {string} method
   * @param {object} params
   */
  async request(method, params) {
    const answered = this.#connection.agent.request(method, params);
    try {
      return await Promise.race([answered, this.#failed]);
    } catch (error) {
      // The connection notices first that the program is gone, and does not know why.
      if (this.#connection.signal?.aborted ?? false) return this.#failed;
      throw error;
    }
  }

  /**
   * @param {string} method
   * @param {object} params
   */
  notify(method, params) {
    return this.#connection.agent.notify(method, params);
  }

  /**
   * Begin a session in a folder of its own.
   *
   * @param {{ask: Function, show: Function}} session
   * @param {object[]} mcpServers
   * @param {import("./proxy.mjs").Route} route
   * @returns {Promise<{sessionId: string, cwd: string}>} its id and its folder
   */
  async begin(session, mcpServers, route) {
    this.#folders += 1;
    // Two processes may have sessions in one store.
    const cwd = path.join(this.#folder, `project-${this.#isKept ? randomUUID() : this.#folders}`);
    await this.#write(cwd, false, this.#facts(this.#model || this.proxy.add(route)));
    const { sessionId } = await this.#startUp(acp.methods.agent.session.new, { cwd, mcpServers });
    this.#sessions.set(sessionId, session);
    return { sessionId, cwd };
  }

  /**
   * Take up a session of an earlier process, of which the program shows what was said.
   *
   * @param {{ask: Function, show: Function}} session
   * @param {object[]} mcpServers
   * @param {import("./proxy.mjs").Route} route
   * @param {{sessionId: string, cwd: string}} saved
   */
  async load(session, mcpServers, route, { sessionId, cwd }) {
    await this.#write(cwd, false, this.#facts(this.#model || this.proxy.add(route)));
    this.#sessions.set(sessionId, session);
    await this.#startUp(acp.methods.agent.session.load, { sessionId, cwd, mcpServers });
  }

  /**
   * Begin a session that is a fork of a session of an earlier process, which stays as it is.
   *
   * @param {{ask: Function, show: Function}} session
   * @param {object[]} mcpServers
   * @param {import("./proxy.mjs").Route} route
   * @param {{sessionId: string, cwd: string}} saved
   * @returns {Promise<{sessionId: string, cwd: string}>} the id of the fork, and the folder of both
   */
  async fork(session, mcpServers, route, { sessionId: origin, cwd }) {
    await this.#write(cwd, false, this.#facts(this.#model || this.proxy.add(route)));
    const { sessionId } = await this.#startUp(FORK, { sessionId: origin, cwd, mcpServers });
    this.#sessions.set(sessionId, session);
    return { sessionId, cwd };
  }

  /** Write the files of the program that belong into a folder: those of its home begin with `~/`. */
  async #write(folder, isHome, facts) {
    await mkdir(folder, { recursive: true });
    for (const [name, content] of Object.entries(filled(this.#program.files ?? {}, facts))) {
      if (name.startsWith("~/") !== isHome) continue;
      const target = path.join(folder, name.replace(/^~\//, ""));
      await mkdir(path.dirname(target), { recursive: true });
      await writeFile(target, typeof content === "string" ? content : JSON.stringify(content));
    }
  }

  /**
   * End a session, if the program can.
   *
   * @param {string} sessionId
   */
  async end(sessionId) {
    this.#sessions.delete(sessionId);
    if (this.runs && this.#capabilities.close) await this.request(acp.methods.agent.session.close, { sessionId });
  }

  #facts(model = "") {
    const platform = `${os.platform()}-${os.arch()}`;
    // Beside the client library, which every environment has.
    const library = createRequire(import.meta.url).resolve("@agentclientprotocol/sdk");
    const node_modules = library.slice(0, library.lastIndexOf("node_modules") + "node_modules".length);
    const session = path.basename(model);
    return { model, models: this.proxy.url, session, side: SIDE_MODEL, home: this.#folder, platform, node_modules };
  }

  /** End it, and remove its files. */
  async close() {
    process.off("exit", this.#abandon);
    if (this.#isAlive) {
      const ended = once(this.#child, "exit");
      this.#child.kill();
      const late = setTimeout(() => this.#child.kill("SIGKILL"), END_TIMEOUT);
      await ended;
      clearTimeout(late);
    }
    this.proxy.close();
    if (!this.#isKept) await rm(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

function isMessage(line) {
  try {
    return JSON.parse(line)?.jsonrpc === "2.0";
  } catch {
    return false;
  }
}

/** Programs that run for all agents of this process, by what describes them. */
const running = new Map();

/**
 * Return whether a program can be told about one model only: its environment says where that is.
 *
 * @param {import("./programs.mjs").Program} program
 */
export function hasOneModel(program) {
  return JSON.stringify(program.environment ?? {}).includes("{model}");
}

/**
 * Return whether each agent has a process of a program.
 *
 * @param {import("./programs.mjs").Program} program
 */
export function isPrivate(program) {
  return hasOneModel(program) || (program.private ?? false);
}

/**
 * Return a process of a program that can take a session.
 *
 * @param {import("./programs.mjs").Program} program
 * @param {import("./proxy.mjs").Route} route
 * @param {string} store the folder of a store, of which each agent has a process; empty if there is none
 * @returns {Promise<ProgramProcess>}
 */
export async function startProgram(program, route, store) {
  if (store || isPrivate(program)) return begun(program, hasOneModel(program) ? route : undefined, store);
  const key = JSON.stringify(program);
  if (running.get(key) !== undefined && (await running.get(key)).runs) return running.get(key);
  const starting = begun(program);
  running.set(key, starting);
  // The next session starts it anew.
  starting.catch(() => running.delete(key));
  return starting;
}

async function begun(program, route, store) {
  const made = new ProgramProcess(program, store);
  try {
    await made.start(route);
  } catch (error) {
    await made.close();
    throw error;
  }
  return made;
}
