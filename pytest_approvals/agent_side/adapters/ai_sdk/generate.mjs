/** Flavour `generate`: `generateText`, without streaming. */

import { generateText } from "ai";

import { addedBy } from "./releases.mjs";
import { MessagesAgent } from "./session.mjs";

export class GenerateAgent extends MessagesAgent {
  async call(settings) {
    const result = await generateText(settings);
    return { added: await addedBy(result), content: result.content, text: result.text, output: () => result.output };
  }
}
