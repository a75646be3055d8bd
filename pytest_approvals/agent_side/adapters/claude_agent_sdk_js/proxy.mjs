/**
 * Server between the CLI and the scripted model of a session.
 *
 * Some things of the CLI are kept from the script, which knows nothing of them: the prefix of the names of MCP tools, the
 * requests that ask a small model for titles and summaries, and those that count tokens, which are answered here; and what
 * the CLI tells the model of its version, of this machine and of the date, which would differ from run to run.
 *
 * The server is also the proxy that the CLI is told to reach all other machines through. It reaches none.
 */

import http from "node:http";
import net from "node:net";
import { once } from "node:events";

import { LEAKS } from "../../javascript/leaks.mjs";
import { SIDE_MODEL, sideReply } from "./side_replies.mjs";

const BILLING = "x-anthropic-billing-header:";
const ENVIRONMENT = "# Environment\n";
const STARTS_BLOCK = '"content_block_start"';
const NEWLINE = 10;

/** Headers of a request that reach the model. */
const KEPT_HEADERS = ["content-type", "anthropic-version", "anthropic-beta", "x-api-key", "authorization"];

export class ModelProxy {
  #model;
  #toCli;
  #toScript;
  #server = http.createServer((request, response) => this.#answer(request, response).catch(() => response.destroy()));
  /** What it has answered itself: the model that was asked, or `count_tokens`. */
  sideRequests = [];
  /** The machines that it was asked for as a proxy. */
  refused = [];

  /**
   * @param {() => string} model returns the address of the model
   * @param {Map<string, string>} fullNames the names of tools in the CLI, by those in the script
   */
  constructor(model, fullNames) {
    this.#model = model;
    this.#toCli = fullNames;
    this.#toScript = new Map([...fullNames].map(([name, full]) => [full, name]));
  }

  /** @returns {Promise<string>} its address, once it listens on the loopback interface */
  async start() {
    this.#server.on("connect", (request, socket) => this.#refuse(`http://${request.url}`, socket));
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  /** Stop listening, and end what is being answered. */
  close() {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request, response) {
    if (request.url.includes("://")) return this.#refuse(request.url, request.socket);
    const { pathname } = new URL(request.url, "http://localhost");
    const { value: text } = await wholeOf(request).next();
    if (pathname === "/v1/messages/count_tokens") {
      this.sideRequests.push("count_tokens");
      writeJson(response, 200, { input_tokens: 1 });
    } else if (request.method !== "POST" || pathname !== "/v1/messages") {
      writeJson(response, 404, { error: { type: "not_found_error", message: pathname } });
    } else {
      const body = JSON.parse(text);
      if (body.model !== SIDE_MODEL) return this.#passOn(request, body, response);
      this.sideRequests.push(SIDE_MODEL);
      const reply = sideReply(Boolean(body.stream));
      response.writeHead(200, { "content-type": reply.type }).end(reply.text);
    }
  }

  #refuse(place, socket) {
    const { hostname, port } = new URL(place);
    this.refused.push(hostname);
    // The network guard of this process refuses and reports it.
    if (process.env[LEAKS]) net.connect({ host: hostname, port: Number(port) || 80 }).on("error", () => {});
    socket.on("error", () => {}); // the CLI went away
    socket.end("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  }

  #passOn(request, body, response) {
    const raw = JSON.stringify(this.#forScript(body));
    const kept = KEPT_HEADERS.filter((name) => name in request.headers).map((name) => [name, request.headers[name]]);
    const headers = { ...Object.fromEntries(kept), "content-length": Buffer.byteLength(raw) };
    const upstream = http.request(this.#model() + request.url, { method: "POST", headers });
    upstream.on("error", () => response.destroy());
    response.on("close", () => upstream.destroy());
    upstream.on("response", async (answer) => {
      const { "content-length": _, "transfer-encoding": __, connection: ___, ...others } = answer.headers;
      response.writeHead(answer.statusCode, others);
      try {
        const isStream = String(answer.headers["content-type"]).includes("event-stream");
        for await (const piece of isStream ? linesOf(answer) : wholeOf(answer)) response.write(this.#forCli(piece, isStream));
        response.end();
      } catch {
        // Without its last chunk, a body is one that broke off.
        response.destroy();
      }
    });
    upstream.end(raw);
  }

  // --- names ---

  /** Return a request with the names of the script, and without what the CLI says of this machine. */
  #forScript(body) {
    const { system, messages, tools } = body;
    const isPrompt = ({ text }) => !text.startsWith(BILLING);
    return {
      ...body,
      ...(Array.isArray(system) ? { system: system.filter(isPrompt) } : {}),
      ...(tools ? { tools: tools.map((tool) => renamed(tool, this.#toScript)) } : {}),
      messages: messages.filter((message) => !isAboutMachine(message)).map((message) => this.#messageForScript(message)),
    };
  }

  #messageForScript(message) {
    if (!Array.isArray(message.content)) return message;
    const rename = (block) => (block.type === "tool_use" ? renamed(block, this.#toScript) : block);
    return { ...message, content: message.content.map(rename) };
  }

  /** Return a line of a stream, or a whole reply, with the names of the CLI. */
  #forCli(bytes, isStream) {
    // What holds no name goes through as it is, also if it is no text.
    if (isStream && !bytes.includes(STARTS_BLOCK)) return bytes;
    const [, prefix, text, end] = /^((?:data: )?)(.*?)(\r?\n?)$/s.exec(bytes.toString());
    const rename = (block) => (block?.type === "tool_use" ? renamed(block, this.#toCli) : block);
    try {
      const value = JSON.parse(text);
      if (value.content_block) value.content_block = rename(value.content_block);
      if (Array.isArray(value.content)) value.content = value.content.map(rename);
      return prefix + JSON.stringify(value) + end;
    } catch {
      return bytes;
    }
  }
}

function renamed(named, names) {
  return { ...named, name: names.get(named.name) ?? named.name };
}

function isAboutMachine({ role, content }) {
  if (role !== "system") return false;
  return (typeof content === "string" ? content : (content[0]?.text ?? "")).startsWith(ENVIRONMENT);
}

async function* wholeOf(stream) {
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  yield Buffer.concat(pieces);
}

async function* linesOf(stream) {
  let rest = Buffer.alloc(0);
  for await (const piece of stream) {
    rest = Buffer.concat([rest, piece]);
    for (let end = rest.indexOf(NEWLINE); end >= 0; end = rest.indexOf(NEWLINE)) {
      yield rest.subarray(0, end + 1);
      rest = rest.subarray(end + 1);
    }
  }
  if (rest.length) yield rest;
}

function writeJson(response, status, value) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}
