"""The server between the CLI and the model of the script."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import pytest_approvals
from pytest_approvals.agents.environments import installers

ADAPTER = Path(pytest_approvals.__file__).parent / "agent_side" / "adapters" / "claude_agent_sdk_js"

BEGIN = """
import http from "node:http";
import { ModelProxy } from %(proxy)s;

const asked = [];
const block = { type: "tool_use", id: "c1", name: "pay", input: {} };
const model = http.createServer(async (request, response) => {
  let text = "";
  for await (const piece of request) text += piece;
  asked.push({ url: request.url, ...JSON.parse(text) });
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ content: [block] }));
});
await new Promise((listening) => model.listen(0, "127.0.0.1", listening));
const names = new Map([["pay", "mcp__tools__pay"]]);
const proxy = new ModelProxy(() => `http://127.0.0.1:${model.address().port}/at`, names);
const url = await proxy.start();
const post = async (path, body) => (await fetch(url + path, { method: "POST", body: JSON.stringify(body) })).json();
"""

END = """
proxy.close();
model.close();
"""


def run_in_node(script: str) -> Any:
    """Run a script with a proxy `proxy` at `url`, the requests `asked` of the model behind it, and a function `post`.

    Returns:
        What it logs, from JSON.
    """
    if not installers.is_npm_available():
        pytest.skip("Node is not on this machine")
    source = BEGIN % {"proxy": json.dumps((ADAPTER / "proxy.mjs").as_uri())} + script + END
    command = ["node", "--input-type=module", "--eval", source]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


def test_side_requests_take_no_reply_of_the_script() -> None:
    """Titles and counts of tokens are answered here, and the model is not asked."""
    side = "claude-haiku-side-requests"
    script = f"""
        await post("/v1/messages", {{ model: "{side}", messages: [] }});
        await post("/v1/messages/count_tokens", {{ model: "main", messages: [] }});
        console.log(JSON.stringify([proxy.sideRequests, asked.length]));
    """

    assert [[side, "count_tokens"], 0] == run_in_node(script)


def test_the_script_knows_no_prefix_of_tools() -> None:
    """The model is offered tools and told of calls under their own names, and its calls get the prefix."""
    script = """
        const tools = [{ name: "mcp__tools__pay" }, { name: "StructuredOutput" }];
        const content = [{ type: "tool_use", id: "c0", name: "mcp__tools__pay", input: { name: "mcp__tools__pay" } }];
        const answer = await post("/v1/messages", { model: "main", tools, messages: [{ role: "assistant", content }] });
        const [{ url: path, tools: offered, messages }] = asked;
        const told = messages[0].content[0];
        console.log(JSON.stringify([path, offered.map(({ name }) => name), told, answer.content[0].name]));
    """

    assert [
        "/at/v1/messages",
        ["pay", "StructuredOutput"],
        {"type": "tool_use", "id": "c0", "name": "pay", "input": {"name": "mcp__tools__pay"}},
        "mcp__tools__pay",
    ] == run_in_node(script)


def test_the_script_is_told_nothing_of_this_machine() -> None:
    """What the CLI says of its version and of its environment would differ from run to run."""
    script = """
        const system = [{ type: "text", text: "x-anthropic-billing-header: v=1" }, { type: "text", text: "Be kind." }];
        const about = { role: "system", content: "# Environment\\nIt is Monday." };
        await post("/v1/messages", { model: "main", system, messages: [about, { role: "user", content: "Hi." }] });
        const [{ system: kept, messages }] = asked;
        console.log(JSON.stringify([kept.map(({ text }) => text), messages.map(({ role }) => role)]));
    """

    assert [["Be kind."], ["user"]] == run_in_node(script)


def test_a_request_for_another_machine_is_refused() -> None:
    """The CLI is told that this server is its proxy."""
    script = """
        const port = new URL(url).port;
        const statusOf = (options) =>
          new Promise((resolve) => {
            const sent = http.request({ host: "127.0.0.1", port, ...options });
            sent.on("response", ({ statusCode }) => resolve(statusCode));
            sent.on("connect", ({ statusCode }) => resolve(statusCode));
            sent.end();
          });
        const connected = await statusOf({ method: "CONNECT", path: "example.org:443" });
        const got = await statusOf({ path: "http://example.net/" });
        console.log(JSON.stringify([connected, got, proxy.refused]));
    """

    assert [502, 502, ["example.org", "example.net"]] == run_in_node(script)
