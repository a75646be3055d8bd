/** Questions of a program, as requests, and what is answered to them. */

import { Unsupported } from "../../javascript/failures.mjs";

/** The kinds of options that stand for a decision, the best one first. */
const KINDS = {
  approve: ["allow_once"],
  always: ["allow_always"],
  reject: ["reject_once"],
  never: ["reject_always"],
};

export const CANCELLED = { outcome: { outcome: "cancelled" } };

/**
 * Return the answer that selects an option of a kind.
 *
 * @param {string} verdict
 * @param {{optionId: string, kind: string}[]} options
 * @param {Record<string, string>} [preferred] the id of the option for a decision, if there are several of its kind
 */
export function select(verdict, options, preferred = {}) {
  const fitting = options.filter(({ kind }) => KINDS[verdict]?.includes(kind));
  const option = fitting.find(({ optionId }) => optionId === preferred[verdict]) ?? fitting[0];
  if (option === undefined) {
    const offered = options.map(({ kind }) => kind).join(", ");
    throw new Unsupported(verdict, `the program offers no such option, only ${offered}`);
  }
  return { outcome: { outcome: "selected", optionId: option.optionId } };
}

/**
 * Return the answer that a decision stands for.
 *
 * @param {import("../../javascript/agent.mjs").Decision} decision
 * @param {{optionId: string, kind: string}[]} options
 * @param {Record<string, string>} [preferred] the id of the option for a decision, if there are several of its kind
 */
export function answerOf(decision, options, preferred) {
  if (decision.verdict === "raw") return { outcome: { outcome: "selected", optionId: decision.raw } };
  if (decision.verdict === "edit") throw new Unsupported("edit");
  return select(decision.verdict, options, preferred);
}
