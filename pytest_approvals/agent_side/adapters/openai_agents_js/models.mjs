/** The SDK's models, on the provider's client. */

import { OpenAIChatCompletionsModel, OpenAIResponsesModel } from "@openai/agents";
import { OpenAI } from "openai";

import { NOWHERE, fetchOfTurn } from "../../javascript/world.mjs";

const CLASSES = { chat: OpenAIChatCompletionsModel, responses: OpenAIResponsesModel };

/**
 * Gives what makes the model of an agent.
 *
 * @param {string} protocol
 * @returns {(name: string) => import("@openai/agents").Model}
 */
export function modelsOf(protocol) {
  const client = new OpenAI({ apiKey: "none", baseURL: NOWHERE, fetch: fetchOfTurn, maxRetries: 0 });
  const made = CLASSES[protocol];
  return (name) => new made(client, name);
}
