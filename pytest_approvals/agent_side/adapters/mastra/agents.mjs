/** The flavours of Mastra. */

import { MastraAgent } from "./session.mjs";

export const FLAVOURS = { "": MastraAgent };
