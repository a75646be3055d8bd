/**
 * Server between a program and the scripted model.
 *
 * The model of a script knows nothing of the program: the prefix of the names of its MCP tools, tools of its own, its
 * system prompt, and the requests with which it asks a small model for titles and summaries, which are answered here.
 * The server is also the proxy that the program is told to reach all other machines through. It reaches none: it
 * answers with an error, and tries the address where the network guard of this process sees and refuses it.
 */

import http from "node:http";
import net from "node:net";
import { once } from "node:events";

import { forScript, namesOffered, renamedLine } from "./requests.mjs";
import { SIDE_MODEL, sideReply } from "./side_replies.mjs";

/**
 * @typedef {object} Route the model of a session, and the names of its tools
 * @property {import("../../javascript/world.mjs").ModelAddress} address
 * @property {Map<string, string>} toProgram the names in the program, by those in the script
 * @property {Map<string, string>} toScript
 * @property {string} [main] the name of the model, if the program asks models of other names for titles and summaries
 * @property {(why: string) => void} fail reports that the program cannot be played
 * @property {{name: string, server: string}[]} unnamed tools of the script whose names in the program are not known yet
 */

/** How the paths of requests to a model end, by protocol. */
const ENDINGS = {
  chat: ["/chat/completions"],
  responses: ["/responses"],
  messages: ["/messages"],
  gemini: [":generateContent", ":streamGenerateContent", ":countTokens"],
};

/** The name of a model in the path of a request. */
const MODEL_IN_PATH = /\/models\/([^/:]+):/;

export class ModelProxy {
  #routes = new Map();
  // What cannot be answered ends its connection, not this process.
  #server = http.createServer((request, response) => this.#answer(request, response).catch(() => response.destroy()));
  /** Other machines that it was asked for. */
  refused = [];

  /** Begin to listen on the loopback interface. */
  async start() {
    this.#server.on("connect", (request, socket) => this.#refuse(`//${request.url}`, socket));
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.url = `http://127.0.0.1:${this.#server.address().port}`;
  }

  /**
   * Add a session, and return the path of its model.
   *
   * @param {Route} route
   */
  add(route) {
    const name = `session-${this.#routes.size + 1}`;
    this.#routes.set(name, route);
    return `${this.url}/${name}`;
  }

  close() {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request, response) {
    if (request.url.includes("://")) return this.#refuse(request.url, request.socket);
    const { route, model, path } = this.#find(request.url);
    let text = "";
    try {
      // A character may be torn between two pieces.
      request.setEncoding("utf8");
      for await (const piece of request) text += piece;
    } catch {
      return; // the program went away
    }
    if ((route ?? model) === undefined || request.method !== "POST") {
      response.writeHead(404, { "content-type": "application/json" });
      response.end(JSON.stringify({ error: { message: `nothing is at ${request.url}` } }));
      return;
    }
    const body = JSON.parse(text);
    // A program that names its model in the path has no other one there than those of its side requests.
    if (route === undefined || isAside(model ?? body.model, route)) {
      const isStream = model === undefined ? Boolean(body.stream) : path.includes(":stream");
      const { type, text: side } = sideReply(model === undefined ? route.address.protocol : "gemini", isStream);
      response.writeHead(200, { "content-type": type });
      response.end(side);
      return;
    }
    const why = findMistake(route, path, body);
    if (why !== undefined) {
      route.fail(why);
      response.writeHead(404).end();
      return;
    }
    this.#passOn(route, path, request, body, response);
  }

  /** Find the session of a request by the first part of its path, or by the name of the model in it. */
  #find(url) {
    const [, first, ...rest] = url.split("/");
    const [, model] = MODEL_IN_PATH.exec(url) ?? [];
    const route = this.#routes.get(first);
    const path = (route === undefined ? url : `/${rest.join("/")}`).replace(/^\/v1(beta)?(?=\/)/, "");
    return { route: route ?? this.#routes.get(model), model, path };
  }

  #passOn(route, path, request, body, response) {
    const target = new URL(targetOf(route.address, path));
    const raw = JSON.stringify(forScript(body, route));
    const kept = ["content-type", "authorization", "x-api-key", "anthropic-version", "anthropic-beta"];
    const headers = Object.fromEntries(kept.filter((key) => key in request.headers).map((key) => [key, request.headers[key]]));
    const upstream = http.request(target, { method: "POST", headers: { ...headers, "content-length": Buffer.byteLength(raw) } });
    upstream.on("error", () => response.destroy());
    response.on("close", () => upstream.destroy());
    upstream.on("response", async (answer) => {
      const { "content-length": _, "transfer-encoding": __, connection: ___, ...others } = answer.headers;
      response.writeHead(answer.statusCode, others);
      try {
        const streamed = String(answer.headers["content-type"]).includes("event-stream");
        for await (const line of streamed ? linesOf(answer) : wholeOf(answer)) response.write(renamedLine(line, route));
        response.end();
      } catch {
        // Without its last chunk, a body is one that broke off.
        response.destroy();
      }
    });
    upstream.end(raw);
  }

  #refuse(place, socket) {
    const { hostname, port } = new URL(place.startsWith("//") ? `http:${place}` : place);
    this.refused.push(hostname);
    // The network guard of this process refuses and reports it.
    net.connect({ host: hostname, port: Number(port) || 80 }).on("error", () => {}).on("connect", function () { this.destroy(); });
    socket.on("error", () => {}); // the program went away
    socket.end("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  }
}

/** Return whether a model is one of those that are asked for titles and summaries. */
function isAside(model, { main }) {
  return model === SIDE_MODEL || (main !== undefined && model !== main);
}

/** Return the protocol of a request that comes over another one than it should. */
function otherProtocol(expected, path) {
  const [plain] = path.split("?");
  const isOver = (protocol) => ENDINGS[protocol].some((ending) => plain.endsWith(ending));
  return isOver(expected) ? undefined : Object.keys(ENDINGS).find(isOver);
}

/** Return why a request cannot be answered by a script, if that is so. */
function findMistake(route, path, body) {
  const { protocol } = route.address;
  const other = otherProtocol(protocol, path);
  if (other !== undefined) return `asks its model over ${other}, not ${protocol}; say so with \`protocol\` of its description`;
  const offered = namesOffered(body);
  if (!offered.length) return undefined;
  for (const { name, server } of route.unnamed.splice(0)) {
    const full = findName(name, server, offered);
    if (full === undefined) {
      return `offers its model no tool called ${name}, only ${offered.join(", ")}; say how it names them with \`tool\``;
    }
    route.toProgram.set(name, full);
    route.toScript.set(full, name);
  }
}

/** Return how the program calls a tool of an MCP server, among the tools that it offers to its model. */
function findName(name, server, offered) {
  const ending = offered.filter((full) => full === name || (full.endsWith(name) && /[\W_]/.test(full.at(-name.length - 1))));
  // Servers may have tools of equal names, and the program one of its own.
  return ending.find((full) => full.includes(server)) ?? ending[0];
}

function targetOf({ protocol, url }, path) {
  // The addresses of Chat Completions and Responses hold the version.
  return url + ({ messages: "/v1", gemini: "/v1beta" }[protocol] ?? "") + path;
}

async function* linesOf(stream) {
  let rest = "";
  stream.setEncoding("utf8");
  for await (const piece of stream) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    for (const line of lines) yield `${line}\n`;
  }
  if (rest) yield rest;
}

async function* wholeOf(stream) {
  let text = "";
  stream.setEncoding("utf8");
  for await (const piece of stream) text += piece;
  yield text;
}
