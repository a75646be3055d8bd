/** Packages of providers: their models for each protocol, and the servers that a provider calls itself. */

import { anthropic, openAI } from "../../javascript/ai_sdk_models.mjs";
import { hostedServers } from "./hosted.mjs";

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

function none() {
  return {};
}
