/**
 * Network guard, as in `network_guard.py`: nothing in this process connects to another machine.
 *
 * All clients connect by `net.Socket`, also `fetch` and TLS. It looks names up, so they are refused before that.
 *
 * Processes that a test starts get this module by `NODE_OPTIONS`, and are guarded from the start. It is no ES module,
 * because no other can be preloaded by every release of Node.js.
 */

"use strict";

const { appendFileSync } = require("node:fs");
const { Socket } = require("node:net");
const { hostname } = require("node:os");

/** Environment variable that turns the guard on: where to write refusals, and the allowed hosts, as JSON. */
const LEAKS = "PYTEST_APPROVALS_LEAKS";

const LOCAL = ["", "localhost", "ip6-localhost", "ip6-loopback", "0.0.0.0", "::", "::1", "0:0:0:0:0:0:0:1"];

/** Environment variable that names the test that has started this process. */
const TEST = "PYTEST_APPROVALS_TEST";

/** Guard this process until it ends, with the settings of its environment. */
function watchAsTold() {
  const { file, allowed } = JSON.parse(process.env[LEAKS]);
  const test = process.env[TEST];
  const by = test ? `a process that ${test} started` : "";
  const connect = Socket.prototype.connect;
  Socket.prototype.connect = function (...args) {
    const place = placeOf(args);
    if (place === null || isLocal(place.host) || allowed.includes(place.host.toLowerCase())) {
      return connect.apply(this, args);
    }
    appendFileSync(file, `${JSON.stringify([place.host, place.port, "", by])}\n`);
    const message = `${place.host}:${place.port} is not on this machine, and a scripted model is active`;
    // As with a real refusal, the error comes after `connect` has returned and the caller listens for it.
    process.nextTick(() => this.destroy(Object.assign(new Error(message), { code: "ECONNREFUSED" })));
    return this;
  };
}

/** Return the host and port of a call of `connect`; null for a path of this machine. */
function placeOf(args) {
  // `net.connect` hands over its arguments normalized, as one array.
  const [first, second] = Array.isArray(args[0]) ? args[0] : args;
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

if (process.env[LEAKS] && process.env[TEST]) watchAsTold();

module.exports = { LEAKS, watchAsTold };
