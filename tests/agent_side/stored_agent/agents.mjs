/** An agent without a framework that keeps its messages in a file: one write before and one after each call. */

import fs from "node:fs";
import path from "node:path";

const { Agent } = await import(process.env.AGENT_SIDE + "/agent.mjs");

class Stored extends Agent {
  items = [];
  open = null;

  get file() {
    return path.join(this.blueprint.directory, "messages.json");
  }

  store(item) {
    this.items.push(item);
    // Longer than what a limit on the size of files lets through.
    fs.writeFileSync(this.file, JSON.stringify({ items: this.items, open: this.open }).padEnd(500));
  }

  async turn(text, decisions, { stream }) {
    if (text !== null) this.store({ kind: "user", text });
    if (decisions.length) {
      const call = this.open;
      const value = await this.world.run(call.tool, call.arguments, call.id);
      this.open = null;
      this.store({ kind: "result", id: call.id, tool: call.tool, text: String(value) });
    }
    const { say, calls = [] } = await this.world.model(this.items, { stream });
    if (calls.length) {
      const { id, tool, arguments: given } = calls[0];
      this.open = { id, tool, arguments: given };
      this.store({ kind: "call", id, tool, arguments: given });
      return { paused: { requests: await this.pending() } };
    }
    for (const word of stream ? say.split(" ") : []) this.world.shown("text", { text: word });
    this.store({ kind: "say", text: say });
    return { finished: { output: say } };
  }

  async pending() {
    const { open } = this;
    return open ? [{ id: open.id, call_id: open.id, tool: open.tool, arguments: open.arguments }] : [];
  }

  async dump() {
    return this.file;
  }

  async load() {
    Object.assign(this, JSON.parse(fs.readFileSync(this.file, "utf8")));
  }

  async recover(parts) {
    // Half a file is what a process leaves that dies in the middle of a write.
    if (!fs.existsSync(this.file) || !fs.readFileSync(this.file, "utf8").endsWith(" ")) throw new Error("half a file");
    await this.load(parts);
  }
}

export const FLAVOURS = { "": Stored };
