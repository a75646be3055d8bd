/** A host that breaks what its first argument says. */

import readline from "node:readline";

const breaks = process.argv[2];
const facts = { capabilities: breaks === "capability" ? ["flying"] : [], wire_rules: "chat" };
const welcome = { protocol: breaks === "version" ? 7 : 1, pid: process.pid, facts };
const send = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, m: method } = JSON.parse(line);
  if (breaks === "prints") process.stdout.write("starting\n");
  if (breaks === "silent") return;
  if (method === "hello") send({ re: id, ok: breaks === "facts" ? { ...welcome, colour: "red" } : welcome });
  else send({ re: id, ok: {} });
});
if (breaks === "stays") setInterval(() => {}, 1000);
