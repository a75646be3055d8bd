/**
 * Starts an agent process: `node main.mjs FOLDER_OF_THE_ADAPTER FACTS`.
 *
 * The adapter is `agents.mjs` in its folder, with `FLAVOURS`. What it is and can do is told by the harness as JSON, and
 * told back with the version and the folder of the package that is really here.
 */

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

import { LEAKS, watchAsTold } from "./leaks.mjs";
import { serve } from "./serve.mjs";

/**
 * Says which release of a package is here, and where.
 *
 * @param {string} name
 * @param {string} from the file that imports it
 */
function installed(name, from) {
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

if (process.env[LEAKS]) watchAsTold();
const [folder, told] = process.argv.slice(2);
const adapter = path.join(folder, "agents.mjs");
const facts = JSON.parse(told);
const { FLAVOURS } = await import(pathToFileURL(adapter).href);
serve(FLAVOURS, { ...facts, ...installed(facts.framework, adapter) });
