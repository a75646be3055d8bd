/** The SDK's models, on the provider's client. */

import { OpenAIChatCompletionsModel, OpenAIResponsesModel } from "@openai/agents";
import { OpenAI } from "openai";

import { NOWHERE, fetchOfTurn } from "../../javascript/world.mjs";

const CLASSES = { chat: OpenAIChatCompletionsModel, responses: OpenAIResponsesModel };

/**
 * Return a factory of agents' models, by name.
 *
 * @param {string} protocol
 * @returns {(name: string) => import("@openai/agents").Model}
 */
export function modelsOf(protocol) {
  const client = new OpenAI({ apiKey: "none", baseURL: NOWHERE, fetch: fetchOfTurn, maxRetries: 0 });
  const Model = CLASSES[protocol];
  return (name) => new Model(client, name);
}
