/** MCP servers that the provider calls. */

import { byServer } from "../../javascript/agent.mjs";

/**
 * Return the provider's tools for the servers of an agent.
 *
 * @param {any} openai the provider
 * @param {import("../../javascript/agent.mjs").ToolSpec[]} specs
 */
export function hostedServers(openai, specs) {
  const servers = [...byServer(specs, "hosted_mcp")];
  return Object.fromEntries(servers.map(([label, own]) => [label, serverOf(openai, label, own)]));
}

/** A provider only knows `always` and `never`; a call with a condition is always asked about. */
function serverOf(openai, label, specs) {
  const ungated = specs.filter(({ approval }) => approval === "never").map(({ name }) => name);
  return openai.tools.mcp({
    serverLabel: label,
    serverUrl: `https://${label}.invalid/mcp`,
    allowedTools: specs.map(({ name }) => name),
    requireApproval: ungated.length === 0 ? "always" : { never: { toolNames: ungated } },
  });
}
