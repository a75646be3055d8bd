/** An agent without a framework, on the JavaScript of the agent's side: it keeps its messages and asks before it runs. */

const { Agent } = await import(process.env.AGENT_SIDE + "/agent.mjs");

class Plain extends Agent {
  items = [];
  open = [];

  async turn(text, decisions, { signal }) {
    if (text !== null) this.items.push({ kind: "user", text });
    for (const { request, verdict, reason } of decisions) {
      const call = this.open.find(({ id }) => id === request.id);
      this.open = this.open.filter((one) => one !== call);
      await (verdict === "approve" ? this.run(call, signal) : this.tell(call, reason ?? "rejected"));
    }
    while (this.open.length === 0) {
      const { say, calls = [] } = await this.world.model(this.items);
      if (calls.length === 0) {
        this.items.push({ kind: "say", text: say });
        return { finished: { output: say } };
      }
      for (const { id, tool, arguments: given } of calls) this.items.push({ kind: "call", id, tool, arguments: given });
      for (const call of calls) await (this.isGated(call.tool) ? this.open.push(call) : this.run(call, signal));
    }
    return { paused: { requests: await this.pending() } };
  }

  isGated(tool) {
    return this.blueprint.tools.find(({ name }) => name === tool).approval === "always";
  }

  async run(call, signal) {
    const value = await this.world.run(call.tool, call.arguments, call.id, { signal });
    this.tell(call, String(value));
  }

  tell({ id, tool }, text) {
    this.items.push({ kind: "result", id, tool, text });
  }

  async pending() {
    return this.open.map(({ id, tool, arguments: given }) => ({ id, call_id: id, tool, arguments: given }));
  }

  async dump() {
    return JSON.stringify({ items: this.items, open: this.open });
  }

  async load(parts) {
    Object.assign(this, JSON.parse(parts.at(-1)));
  }
}

export const FLAVOURS = { "": Plain };
