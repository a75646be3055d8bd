/** Differences between releases 6 and 7 of the SDK. */

import * as ai from "ai";

/** Whether gates are declared at the call (`toolApproval`, since 7) and not at the tool (`needsApproval`). */
export const GATES_AT_THE_CALL = "isStepCount" in ai;

/** Return the condition that ends a run after a number of model replies. */
export const afterReplies = ai.isStepCount ?? ai.stepCountIs;

/**
 * Return the messages that a call added.
 *
 * @param {any} result
 * @returns {Promise<import("ai").ModelMessage[]>}
 */
export async function addedBy(result) {
  return (await result.responseMessages) ?? (await result.response).messages;
}
