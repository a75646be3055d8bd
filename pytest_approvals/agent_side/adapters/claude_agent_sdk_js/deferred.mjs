/** Sessions whose hook defers gated calls; each turn resumes the session with another client. */

import { Unsupported } from "../../javascript/failures.mjs";
import { configFolderOf } from "./parts.mjs";
import { CHANGED, UNANSWERED, decisionAbout, hookAnswerTo, hookOutput, permissionOf, requestOf } from "./requests.mjs";
import { Session } from "./session.mjs";
import { EntryStore, findLastSession, findOpenCall, State } from "./state.mjs";

/** With a message, a deferred call whose tool is gone is dropped; otherwise the session says that it cannot go on. */
const PASSING = { CLAUDE_CODE_DROP_UNAVAILABLE_DEFERRED_TOOL: "1" };

export class DeferredSession extends Session {
  #state;
  #decision = null;
  /** Whether the next client forks the session, which was restored. */
  #mustFork = false;

  constructor(world, blueprint, parts) {
    super(world, blueprint, parts);
    this.#state = new State(this.isInFiles ? null : new EntryStore());
  }

  /** A resumed CLI goes on with a deferred call before it knows the servers in this process, and does not find its tool. */
  get hasToolServer() {
    return this.blueprint.options.functions !== "in_process";
  }

  async turn(text, decisions, { stream }) {
    if (text !== null && decisions.length) throw new Unsupported("message_with_answers");
    const { deferred } = this.#state;
    if (text === null && deferred === null && !decisions.length) {
      throw new Unsupported("go_on_without_answer", "nothing is deferred, so the session waits for a message");
    }
    this.#decision = decisionAbout(decisions, deferred);
    this.isStreamed = stream;
    const client = await this.startClient(this.#options(text, stream));
    try {
      return this.#outcome(await this.#run(client, text));
    } finally {
      await client.close();
    }
  }

  async #run(client, text) {
    const { deferred, passed } = this.#state;
    // A resumed session goes on with what is deferred before it reads a message.
    if (text === null) {
      if (await client.goesOn()) return this.#receive(client);
      this.#state.deferred = null;
      throw new Error("the session has no deferred call, which another process has settled");
    }
    if (deferred !== null) passed.push(deferred.id);
    client.send(text);
    let result;
    // What a message goes past is deferred once more, if no other process has settled it.
    do result = await this.#receive(client);
    while (passed.includes(result.deferred_tool_use?.id));
    return result;
  }

  #options(text, stream) {
    const { store, session } = this.#state;
    return {
      includePartialMessages: stream,
      hooks: { PreToolUse: [{ hooks: [(asked, callId) => this.#answerHook(asked, callId)] }] },
      // A resumed CLI runs the deferred call of a server as soon as that is connected, be the hook registered or not.
      canUseTool: (_, args, { toolUseID }) => this.#answerPermission(args, toolUseID),
      ...(store === null ? {} : { sessionStore: store, sessionStoreFlush: "eager" }),
      ...(session ? { resume: session, forkSession: this.#mustFork } : {}),
      ...(text === null ? {} : { env: PASSING }),
    };
  }

  /** Answer a hook of `PreToolUse`: with the caller's decision, else by the gate of the tool. */
  async #answerHook({ tool_name: fullName, tool_input: args }, callId) {
    const decision = this.#decisionAbout(callId);
    if (decision !== null) {
      // An answer is about the call as it was shown; the stored session may hold another one by now.
      if (isSame(decision.request.arguments, args)) return hookAnswerTo(decision);
      return hookOutput("deny", { permissionDecisionReason: CHANGED });
    }
    const spec = this.parts.specs.get(fullName);
    if (spec === undefined) return {};
    return hookOutput((await this.needsAnswer(spec, args, callId)) ? "defer" : "allow");
  }

  /** Answer for a call that the hook was not asked about. */
  #answerPermission(args, callId) {
    const decision = this.#decisionAbout(callId);
    if (decision === null) return { behavior: "deny", message: UNANSWERED };
    if (!isSame(decision.request.arguments, args)) return { behavior: "deny", message: CHANGED };
    return permissionOf(decision);
  }

  #decisionAbout(callId) {
    return this.#decision?.request.call_id === callId ? this.#decision : null;
  }

  async #receive(client) {
    const result = await this.receiveResult(client);
    const { session_id: session, deferred_tool_use: call } = result;
    const deferred = call ? requestOf(call.id, call.name, call.input, this.parts.specs) : null;
    Object.assign(this.#state, { session, deferred });
    this.#mustFork = false;
    return result;
  }

  #outcome(result) {
    // A call whose tool is gone is an error that still names what is deferred.
    const deferred = result.is_error ? null : this.#state.deferred;
    this.showEnd(deferred);
    return deferred === null ? this.finishedOf(result) : this.pausedOf(deferred);
  }

  /** Return what the last result said to be deferred. */
  async pending() {
    const { deferred } = this.#state;
    return deferred === null ? [] : [deferred];
  }

  async dump() {
    return this.#state.write({ onlyNew: this.blueprint.history === "append" });
  }

  async load(parts) {
    this.#state.read(parts);
    // Every restored session is a fork then, so that each one that was saved stays as it is.
    this.#mustFork = this.blueprint.options.forks === true && this.#state.session !== "";
  }

  /** Take the session that the CLI wrote last, and the call that waits in its transcript. */
  async recover(parts) {
    await this.load(parts);
    const folder = configFolderOf(this.blueprint.directory);
    this.#state.session ||= await findLastSession(folder);
    this.#state.deferred = await findOpenCall(folder, this.#state, this.parts.specs);
  }

  async copyFrom(other) {
    await this.load([other.#state.write({ onlyNew: false })]);
  }
}

/** Return whether two values are the same JSON. */
function isSame(one, other) {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return one === other;
  const names = Object.keys(one);
  if (Array.isArray(one) !== Array.isArray(other) || names.length !== Object.keys(other).length) return false;
  return names.every((name) => Object.hasOwn(other, name) && isSame(one[name], other[name]));
}
