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
 * @returns {{write: (line: string) => void, block: () => void}} writes a line, and blocks the process for good
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
  return {
    write: (line) => output.write(`${line}\n`),
    block: () => {
      // What was written is sent first, although nothing else runs in this process any more.
      if (output.writableLength === 0) sleepForGood();
      else output.write("", sleepForGood);
    },
  };
}

function sleepForGood() {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}
