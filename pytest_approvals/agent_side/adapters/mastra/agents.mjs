/** The flavours of Mastra. */

import "./quiet.mjs";

import { DurableMastraAgent, MastraAgent } from "./session.mjs";

export const FLAVOURS = { "": MastraAgent, durable: DurableMastraAgent };
