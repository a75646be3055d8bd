/**
 * Line transport over standard input and output.
 *
 * The protocol takes both for itself: what a framework prints goes to standard error.
 */

import net from "node:net";

/**
 * Take over standard input and output.
 *
 * @param {(line: string) => void} arrived is called with every line
 * @param {() => void} over is called when the other side is gone
 * @returns {(line: string) => void} writes a line
 */
export function takeOver(arrived, over) {
  const output = new net.Socket({ fd: 1, readable: false, writable: true });
  // `console.log` and frameworks write to `process.stdout`; their text would break the protocol.
  Object.defineProperty(process, "stdout", { get: () => process.stderr });
  output.on("error", over);

  let partial = "";
  process.stdin.setEncoding("utf8");
  process.stdin.on("data", (piece) => {
    const [first, ...others] = piece.split("\n");
    partial += first;
    for (const next of others) {
      arrived(partial);
      partial = next;
    }
  });
  process.stdin.on("end", over);
  process.stdin.on("error", over);
  return (line) => output.write(`${line}\n`);
}
