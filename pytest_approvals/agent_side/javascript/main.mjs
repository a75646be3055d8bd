/**
 * Start an agent process: `node main.mjs FOLDER_OF_THE_ADAPTER FACTS`.
 *
 * The adapter is `agents.mjs` in its folder, with `FLAVOURS`. The harness passes its facts as JSON, and gets
 * them back with the version and the folder of the installed package.
 */

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

import { LEAKS, watchAsTold } from "./leaks.mjs";
import { serve } from "./serve.mjs";

/**
 * Return the installed version of a package and its folder; empty if it is not installed.
 *
 * @param {string} name
 * @param {string} from the file that imports it
 */
function findInstalled(name, from) {
  // Not `require.resolve`: the `exports` of a package may hide its `package.json`.
  for (const folder of createRequire(from).resolve.paths(name) ?? []) {
    const where = path.join(folder, name);
    try {
      return { version: JSON.parse(readFileSync(path.join(where, "package.json"), "utf8")).version, where };
    } catch {
      continue;
    }
  }
  return {};
}

// Before the adapter is imported: a framework may connect when it is loaded.
if (process.env[LEAKS]) watchAsTold();
const [folder, factsText] = process.argv.slice(2);
const adapter = path.join(folder, "agents.mjs");
const facts = JSON.parse(factsText);
const { FLAVOURS } = await import(pathToFileURL(adapter).href);
serve(FLAVOURS, { ...facts, ...findInstalled(facts.framework, adapter) });
