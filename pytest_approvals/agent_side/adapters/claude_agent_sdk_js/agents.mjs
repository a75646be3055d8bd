/** The flavours of the Claude Agent SDK. */

import { DeferredSession } from "./deferred.mjs";
import { InlineSession } from "./inline.mjs";
import { RulesSession } from "./rules.mjs";

export const FLAVOURS = { "": DeferredSession, inline: InlineSession, rules: RulesSession };
