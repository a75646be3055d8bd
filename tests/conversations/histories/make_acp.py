"""
Writes what clients record of programs that speak ACP, in one story and what may happen to it, and OpenCode's exports.

Run it from this folder, with the packages of npm in a folder; the files in `stored` are written anew:

    npm install --prefix FOLDER opencode-ai@1.18.33 @agentclientprotocol/claude-agent-acp@0.101.0
    python make_acp.py FOLDER/node_modules
"""

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from scripted_provider import CALLS, PROMPT, ScriptedProvider

STORED = Path(__file__).parent / "stored"
STORY = [("Let me see.", CALLS), "Done."]
PACKAGES = Path(sys.argv[1] if len(sys.argv) > 1 else "node_modules").absolute()
PLATFORM = "linux-x64"


# --- the tools --------------------------------------------------------------------------------------------------------


def serve_tools():
    """Serve the tools `pay` and `read` over MCP."""
    number = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
    text = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tools = [
        {"name": "pay", "description": "Pays.", "inputSchema": number},
        {"name": "read", "description": "Reads.", "inputSchema": text},
    ]
    for line in sys.stdin:
        asked = json.loads(line)
        given = asked.get("params") or {}
        if asked.get("method") == "initialize":
            info = {"name": "bank", "version": "1"}
            result = {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
        elif asked.get("method") == "tools/list":
            result = {"tools": tools}
        elif asked.get("method") == "tools/call":
            values = given["arguments"]
            said = f"paid {values['amount']}" if given["name"] == "pay" else f"text of {values['path']}"
            result = {"content": [{"type": "text", "text": said}]}
        else:
            result = {}
        if "id" in asked:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) + "\n")
            sys.stdout.flush()


# --- the client -------------------------------------------------------------------------------------------------------


class Client:
    """A client of a program, which keeps the messages of both sides.

    Args:
        command: The program.
        folder: The folder of its files and of the session.
        environment: Variables besides those of this process.
    """

    def __init__(self, command, folder, environment):
        self.folder, self.records, self.session, self.number = folder, [], None, 0
        env = {**os.environ, "HOME": folder, "XDG_DATA_HOME": f"{folder}/data", **environment}
        self.process = subprocess.Popen(
            command, cwd=folder, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)  # fmt: skip
        self.messages = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.messages.put(json.loads(line))
        self.messages.put(None)

    def send(self, message):
        message = {"jsonrpc": "2.0", **message}
        self.records.append({"direction": "out", "message": message})
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def receive(self):
        message = self.messages.get(timeout=90)
        if message is not None:
            self.records.append({"direction": "in", "message": message})
        return message

    def call(self, method, params):
        """Send a request."""
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        return self.number

    def answer(self, request, choice):
        """Answer a request for a permission with an option of a kind, or `cancelled`."""
        options = {option["kind"]: option["optionId"] for option in request["params"]["options"]}
        outcome = {"outcome": "selected", "optionId": options[choice]} if choice in options else {"outcome": choice}
        self.send({"id": request["id"], "result": {"outcome": outcome}})

    def wait(self, number, decide=None):
        """Read up to the response of a request; answer what is asked with what *decide* returns."""
        while (message := self.receive()) is not None:
            if message.get("method") == "session/request_permission":
                choice = decide(message) if decide is not None else None
                if choice is not None:
                    self.answer(message, choice)
            elif "id" in message and "method" in message:
                self.send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
            elif message.get("id") == number:
                return message
        return None

    def begin(self, session=None):
        """Begin a session, or load one."""
        capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        self.wait(self.call("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities}))
        server = {"name": "bank", "command": sys.executable, "args": [__file__, "--tools"], "env": []}
        given = {"cwd": self.folder, "mcpServers": [server]}
        if session is None:
            self.session = self.wait(self.call("session/new", given))["result"]["sessionId"]
        else:
            self.session = session
            self.wait(self.call("session/load", {**given, "sessionId": session}))

    def prompt(self, text):
        """Send a prompt."""
        content = [{"type": "text", "text": text}]
        return self.call("session/prompt", {"sessionId": self.session, "prompt": content})

    def close(self):
        self.process.kill()
        self.process.wait()


def decide(request):
    """Approve everything but a payment of 6."""
    # OpenCode asks before it shows the arguments.
    return "reject_once" if request["params"]["toolCall"]["toolCallId"] == "c2" else "allow_once"


class OpenCode:
    """OpenCode, started as `opencode acp`."""

    name = "opencode"

    def __init__(self, url, folder):
        self.folder = folder
        self.binary = str(PACKAGES / f"opencode-{PLATFORM}" / "bin" / "opencode")
        models = {"scripted": {}, "side": {}}
        # A rejection rejects the other calls that wait, so one of them does not.
        options = {"baseURL": f"{url}/v1", "apiKey": "none"}
        loopback = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}
        settings = {
            "model": "loopback/scripted", "small_model": "loopback/side", "share": "disabled", "autoupdate": False,
            "permission": {"*": "ask", "bank_read": "allow"}, "experimental": {"continue_loop_on_deny": True},
            "provider": {"loopback": loopback}}  # fmt: skip
        Path(folder, "opencode.json").write_text(json.dumps(settings))
        quiet = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        self.environment = {f"OPENCODE_DISABLE_{name}": "1" for name in quiet}

    def start(self):
        return Client([self.binary, "acp"], self.folder, self.environment)

    @staticmethod
    def name_tool(name):
        return f"bank_{name}"

    def export(self, client, name):
        """Write what `opencode export` prints of a session."""
        env = {**os.environ, "HOME": self.folder, "XDG_DATA_HOME": f"{self.folder}/data", **self.environment}
        command = [self.binary, "export", client.session]
        printed = subprocess.run(command, cwd=self.folder, env=env, capture_output=True, text=True, check=True).stdout
        session = json.loads(printed)
        session["info"].pop("path", None)
        text = json.dumps(session, indent=1) + "\n"
        (STORED / f"opencode_{name}.json").write_text(text.replace(self.folder, "/project"), encoding="utf-8")


class ClaudeCode:
    """Claude Code behind its adapter for ACP."""

    name = "claude_code"

    def __init__(self, url, folder):
        self.folder = folder
        settings = Path(folder, ".claude", "settings.json")
        settings.parent.mkdir()
        settings.write_text(json.dumps({"permissions": {"defaultMode": "default"}}))
        names = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "IS_SANDBOX", "DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY")
        self.environment = {
            **dict.fromkeys(names, "1"), "CLAUDE_CODE_MAX_RETRIES": "0", "ENABLE_TOOL_SEARCH": "false",
            "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false", "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_MODEL": "scripted", "ANTHROPIC_DEFAULT_HAIKU_MODEL": "side"}  # fmt: skip

    def start(self):
        script = PACKAGES / "@agentclientprotocol" / "claude-agent-acp" / "dist" / "index.js"
        return Client(["node", str(script)], self.folder, self.environment)

    @staticmethod
    def name_tool(name):
        return f"mcp__bank__{name}"

    def export(self, client, name):
        """Claude Code has its own transcripts."""


def write(program, name, records, *, plain=False):
    """Write a recording: an object on each line, or the messages alone."""
    for record in records:
        for left_out in ("configOptions", "modes", "models", "_meta", "usage"):
            (record["message"].get("result") or {}).pop(left_out, None)
    kept = [record for record in records if is_kept(record["message"])]
    text = "".join(f"{json.dumps(record['message'] if plain else record)}\n" for record in kept)
    text = text.replace(json.dumps(__file__)[1:-1], "make_acp.py").replace(sys.executable, "python")
    (STORED / f"acp_{program.name}_{name}.jsonl").write_text(text.replace(program.folder, "/project"), encoding="utf-8")


def is_kept(message):
    """Return whether a message is about the conversation, and not about the commands and the costs of the program."""
    if message.get("method", "").startswith("_"):
        return False
    update = (message.get("params") or {}).get("update") or {}
    return update.get("sessionUpdate") not in (
        "available_commands_update", "usage_update", "config_option_update", "session_info_update")  # fmt: skip


def done(program):
    """All calls of one reply, one of them rejected; then the session is loaded by another process."""
    client = program.start()
    client.begin()
    client.wait(client.prompt(PROMPT), decide)
    client.close()
    write(program, "done", client.records)
    program.export(client, "done")
    other = program.start()
    other.begin(client.session)
    other.wait(other.prompt("Thanks"), decide)
    other.close()
    write(program, "loaded", other.records, plain=True)


def paused(program):
    """A prompt that waits for an answer when the recording ends."""
    client = program.start()
    client.begin()
    client.prompt(PROMPT)
    while (client.receive() or {}).get("method") != "session/request_permission":
        pass
    program.export(client, "paused")
    client.close()
    write(program, "paused", client.records)
    program.export(client, "killed")


def cancelled(program):
    """A prompt that is cancelled while it asks, and the message after it."""
    client = program.start()
    client.begin()

    def cancel(request):
        client.send({"method": "session/cancel", "params": {"sessionId": client.session}})
        return "cancelled"

    client.wait(client.prompt(PROMPT), cancel)
    client.wait(client.prompt("Hi"), decide)
    client.close()
    write(program, "cancelled", client.records)
    program.export(client, "cancelled")


def main():
    chosen = sys.argv[2:]
    for kind in (OpenCode, ClaudeCode):
        for story in (done, paused, cancelled):
            if chosen and f"{kind.name}.{story.__name__}" not in chosen:
                continue
            folder = tempfile.mkdtemp(prefix="acp-")
            with ScriptedProvider(STORY, kind.name_tool) as provider:
                try:
                    story(kind(provider.url, folder))
                finally:
                    shutil.rmtree(folder, ignore_errors=True)


if "--tools" in sys.argv:
    serve_tools()
else:
    main()
