/** Packages of providers: their models for each protocol, and the servers that a provider calls itself. */

import { NOWHERE, fetchOfTurn } from "../../javascript/world.mjs";
import { hostedServers } from "./hosted.mjs";

const CLIENT = { apiKey: "none", baseURL: NOWHERE, fetch: fetchOfTurn };

/** @typedef {import("../../javascript/agent.mjs").ToolSpec} ToolSpec */
/** @typedef {{model: (name: string) => any, hosted: (specs: ToolSpec[]) => Record<string, any>}} Provider */

/** @type {Record<string, () => Promise<Provider>>} the providers by the protocol that they speak */
export const providers = {
  chat: async () => ({ model: (await openAI()).chat, hosted: none }),
  responses: async () => {
    const openai = await openAI();
    return { model: openai.responses, hosted: (specs) => hostedServers(openai, specs) };
  },
  messages: async () => ({ model: await anthropic(), hosted: none }),
};

async function openAI() {
  return (await import("@ai-sdk/openai")).createOpenAI(CLIENT);
}

async function anthropic() {
  return (await import("@ai-sdk/anthropic")).createAnthropic(CLIENT);
}

function none() {
  return {};
}
