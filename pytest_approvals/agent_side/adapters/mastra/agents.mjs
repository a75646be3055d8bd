/** The flavours of Mastra. */

import "./quiet.mjs";

import { MastraAgent } from "./session.mjs";

export const FLAVOURS = { "": MastraAgent };
