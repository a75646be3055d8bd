/**
 * The leak guard, as `network_guard.py` has it: nothing in this process connects to another machine.
 *
 * All clients connect by `net.Socket`, also `fetch` and TLS; names are looked up in it, so they are refused before that.
 */

import { appendFileSync } from "node:fs";
import { Socket } from "node:net";
import { hostname } from "node:os";

/** The environment variable that tells a process to watch itself. */
export const LEAKS = "PYTEST_APPROVALS_LEAKS";

const LOCAL = ["", "localhost", "ip6-localhost", "ip6-loopback", "0.0.0.0", "::", "::1", "0:0:0:0:0:0:0:1"];

/** Watches this process for good, as its environment says. */
export function watchAsTold() {
  const { file, allowed } = JSON.parse(process.env[LEAKS]);
  const connect = Socket.prototype.connect;
  Socket.prototype.connect = function (...given) {
    const place = placeOf(given);
    if (place === null || isLocal(place.host) || allowed.includes(place.host.toLowerCase())) {
      return connect.apply(this, given);
    }
    appendFileSync(file, `${JSON.stringify([place.host, place.port])}\n`);
    const said = `${place.host}:${place.port} is not on this machine, and a scripted model is active`;
    process.nextTick(() => this.destroy(Object.assign(new Error(said), { code: "ECONNREFUSED" })));
    return this;
  };
}

/** Gives host and port of what `connect` was called with; null for a path of this machine. */
function placeOf(given) {
  const [first, second] = Array.isArray(given[0]) ? given[0] : given;
  if (typeof first === "object" && first !== null) {
    return first.path ? null : { host: first.host ?? "localhost", port: Number(first.port) };
  }
  if (Number.isNaN(Number(first))) return null;
  return { host: typeof second === "string" ? second : "localhost", port: Number(first) };
}

function isLocal(host) {
  const plain = host.toLowerCase().replace(/\.$/, "").replace(/%.*/, "").replace(/^::ffff:/, "");
  return (
    LOCAL.includes(plain) ||
    plain.endsWith(".localhost") ||
    plain === hostname().toLowerCase() ||
    /^127\.[\d.]+$/.test(plain)
  );
}
