/** Storage of suspended runs and messages: in memory, or Mastra's own for LibSQL on a file. */

import path from "node:path";

import { InMemoryStore } from "@mastra/core/storage";
import { LibSQLStore } from "@mastra/libsql";

/**
 * Open the storage that a serialize mode asks for.
 *
 * @param {import("../../javascript/agent.mjs").Blueprint} blueprint
 */
export function openStore({ serialize, directory }) {
  if (serialize !== "native.libsql") return new InMemoryStore();
  return new LibSQLStore({ id: "approvals", url: `file:${path.join(directory, "mastra.db")}` });
}
