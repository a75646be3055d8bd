/** The flavours of the AI SDK. */

import { GenerateAgent } from "./generate.mjs";
import { StreamAgent } from "./stream.mjs";
import { UiAgent } from "./ui.mjs";

export const FLAVOURS = { "": GenerateAgent, generate: GenerateAgent, stream: StreamAgent, ui: UiAgent };
