/** Errors that both sides know, and their serialization. */

import { plain } from "./plain.mjs";

/** An error that both sides know; `of` is its name on the wire. */
export class ContractError extends Error {
  /**
   * @param {string} of
   * @param {string} message
   * @param {Record<string, unknown>} [fields]
   */
  constructor(of, message, fields = {}) {
    super(message);
    this.name = of;
    this.of = of;
    this.fields = fields;
  }
}

/** An adapter cannot express a step. */
export class Unsupported extends ContractError {
  /**
   * @param {string} capability the one that it should not have claimed
   * @param {string} [why]
   */
  constructor(capability, why = "") {
    const reason = why || "this adapter cannot express it";
    super("Unsupported", `${capability}: ${reason}`, { capability, why });
  }
}

/** One side did what the contract or the protocol does not allow. */
export class BrokenContract extends ContractError {
  /** @param {string} message */
  constructor(message) {
    super("BrokenContract", message);
  }
}

/** The answer to a call that was stopped on request. */
export class Stopped extends ContractError {
  constructor() {
    super("Stopped", "stopped");
  }
}

/**
 * Return an error as it is written in an answer.
 *
 * @param {unknown} error
 * @returns {{type: string, message: string, of?: string, fields?: object}}
 */
export function written(error) {
  if (error instanceof ContractError) {
    return { type: error.name, message: error.message, of: error.of, fields: plain(error.fields) };
  }
  if (error instanceof Error) return { type: error.name || error.constructor.name, message: String(error.message) };
  return { type: "Error", message: String(error) };
}

/**
 * Return the error in an answer of the other side.
 *
 * @param {{type: string, message: string, of?: string, fields?: object}} failure
 * @returns {Error}
 */
export function read(failure) {
  if (failure.of !== undefined) return new ContractError(failure.of, failure.message, failure.fields);
  const error = new Error(failure.message);
  error.name = failure.type;
  return error;
}
