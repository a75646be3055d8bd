/** Sessions whose `canUseTool` waits for the caller's answer; one client lives as long as the session. */

import { Unsupported } from "../../javascript/failures.mjs";
import { allowInSession, decisionAbout, permissionOf, requestOf } from "./requests.mjs";
import { Session } from "./session.mjs";

export class InlineSession extends Session {
  #client = null;
  /** The call about which `canUseTool` waits: its request, the updates of a standing approval, and where the answer goes. */
  #question = null;
  #run = null;
  #wake = () => {};

  async turn(text, decisions, { stream }) {
    this.isStreamed = stream;
    if (text !== null) await this.#send(text);
    else if (decisions.length) this.#answer(decisions);
    else throw new Unsupported("go_on_without_answer");
    return this.#outcome();
  }

  async #send(text) {
    if (this.#question !== null) throw new Unsupported("message_while_pending");
    // The CLI is started once, so that a later turn may be streamed, too.
    this.#client ??= await this.startClient({ includePartialMessages: true, canUseTool: this.#ask, ...this.options() });
    this.#client.send(text);
    const run = { ended: false, result: null, error: null };
    const end = (facts) => {
      Object.assign(run, { ended: true, ...facts });
      this.#wake();
    };
    run.done = this.receiveResult(this.#client).then(
      (result) => end({ result }),
      (error) => end({ error }),
    );
    this.#run = run;
  }

  /** Return what a flavour adds to the options of its client. */
  options() {
    return {};
  }

  #answer(decisions) {
    const question = this.#question;
    const decision = decisionAbout(decisions, question?.request ?? null);
    const permission = permissionOf(decision, question.standing);
    this.#question = null;
    question.answer(permission);
  }

  /** Let the running turn end, and wait for the answer of a later one. */
  #ask = async (fullName, args, { toolUseID, suggestions, signal }) => {
    const spec = this.parts.specs.get(fullName);
    if (spec !== undefined && !(await this.needsAnswer(spec, args, toolUseID))) return { behavior: "allow" };
    const question = {
      request: requestOf(toolUseID, fullName, args, this.parts.specs),
      standing: this.standingOf(fullName, suggestions ?? []),
    };
    const answered = new Promise((resolve, reject) => {
      question.answer = resolve;
      signal.addEventListener("abort", () => reject(signal.reason));
    });
    this.#question = question;
    this.#wake();
    try {
      return await answered;
    } finally {
      if (this.#question === question) this.#question = null;
    }
  };

  /**
   * Return the updates of a standing approval of a tool that the CLI asks about.
   *
   * @param {string} fullName
   * @param {import("@anthropic-ai/claude-agent-sdk").PermissionUpdate[]} suggestions what the CLI proposes
   */
  standingOf(fullName, suggestions) {
    return allowInSession(fullName);
  }

  /** Wait until `canUseTool` asks or the run ends, whichever comes first. */
  async #outcome() {
    while (this.#question === null && !this.#run.ended) await new Promise((resolve) => (this.#wake = resolve));
    const request = this.#question?.request ?? null;
    if (request !== null) {
      this.showEnd(request);
      return this.pausedOf(request);
    }
    const { result, error } = this.#run;
    if (error !== null) throw error;
    this.showEnd(null);
    return this.finishedOf(result);
  }

  /** Return the call about which `canUseTool` waits. */
  async pending() {
    return this.#question === null ? [] : [this.#question.request];
  }

  /** Interrupt the run that waits, and wait for its end. */
  async cancel() {
    if (this.#client === null || this.#question === null) return;
    // No turn shows what comes of it.
    this.isStreamed = false;
    await this.#client.interrupt();
    await this.#run.done;
  }

  async close() {
    try {
      // A CLI whose question nobody answers any more tells its model so, which is in no turn.
      this.closeModel();
      // Nor does it end by itself while it waits for the answer.
      if (this.#question === null) await this.#client?.close();
      else this.#client.abandon();
    } finally {
      await super.close();
    }
  }
}
