/** Models of the AI SDK's providers, which several frameworks take: they ask the model of the running turn. */

import { NOWHERE, fetchOfTurn } from "./world.mjs";

const CLIENT = { apiKey: "none", baseURL: NOWHERE, fetch: fetchOfTurn };

/** Return OpenAI's provider. */
export async function openAI() {
  return (await import("@ai-sdk/openai")).createOpenAI(CLIENT);
}

/** Return Anthropic's provider. */
export async function anthropic() {
  return (await import("@ai-sdk/anthropic")).createAnthropic(CLIENT);
}

/** @type {Record<string, () => Promise<(name: string) => any>>} factories of models, by the protocol that they speak */
export const modelFactories = {
  chat: async () => (await openAI()).chat,
  responses: async () => (await openAI()).responses,
  messages: anthropic,
};
