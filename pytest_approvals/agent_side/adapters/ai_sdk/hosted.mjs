/** The servers that the provider calls, and how their calls are named by the SDK. */

/** @typedef {import("../../javascript/agent.mjs").ToolSpec} ToolSpec */

/**
 * Gives the provider's tools for the servers of an agent.
 *
 * @param {any} openai the provider
 * @param {ToolSpec[]} specs
 */
export function hostedServers(openai, specs) {
  const servers = Map.groupBy
    ? Map.groupBy(hosted(specs), ({ server }) => server)
    : grouped(hosted(specs));
  return Object.fromEntries([...servers].map(([label, own]) => [label, serverOf(openai, label, own)]));
}

/** @param {ToolSpec[]} specs */
function hosted(specs) {
  return specs.filter(({ kind }) => kind === "hosted_mcp");
}

/** @param {ToolSpec[]} specs */
function grouped(specs) {
  const servers = new Map();
  for (const spec of specs) servers.set(spec.server, [...(servers.get(spec.server) ?? []), spec]);
  return servers;
}

function serverOf(openai, label, specs) {
  const free = specs.filter(({ approval }) => approval === "never").map(({ name }) => name);
  const requireApproval = free.length === 0 ? "always" : { never: { toolNames: free } };
  return openai.tools.mcp({
    serverLabel: label,
    serverUrl: `http://${label}.invalid/mcp`,
    allowedTools: specs.map(({ name }) => name),
    requireApproval,
  });
}
