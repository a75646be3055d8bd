"""
Writes the transcripts that Claude Code keeps of one story and of what may happen to it.

Run it from this folder; the files in `stored` are written anew:

    uv run --no-project --with claude-agent-sdk==0.2.187 python make_claude_code.py
"""

import asyncio
import json
import shutil
import sys
import tempfile
from pathlib import Path

from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)
from scripted_provider import CALLS, PROMPT, ScriptedProvider

STORED = Path(__file__).parent / "stored"
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "ENABLE_TOOL_SEARCH": "false",
    "IS_SANDBOX": "1",
}


@tool("pay", "Pays.", {"amount": int})
async def pay(given):
    return {"content": [{"type": "text", "text": f"paid {given['amount']}"}]}


@tool("read", "Reads.", {"path": str})
async def read(given):
    return {"content": [{"type": "text", "text": f"text of {given['path']}"}]}


def name_tool(name):
    return f"mcp__bank__{name}"


class Folder:
    """A folder with the files of the CLI, in which one session or several of them work."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="claude-")

    def options(self, url, **more):
        env = {**QUIET, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "HOME": self.path,
               "ANTHROPIC_DEFAULT_HAIKU_MODEL": "side", "CLAUDE_CONFIG_DIR": f"{self.path}/.claude"}  # fmt: skip
        return ClaudeAgentOptions(
            tools=[], mcp_servers={"bank": create_sdk_mcp_server("bank", tools=[pay, read])}, strict_mcp_config=True,
            setting_sources=[], system_prompt="", model="scripted", cwd=self.path, env=env, **more)  # fmt: skip

    def transcripts(self):
        """Return the transcripts, the oldest first."""
        files = Path(self.path, ".claude", "projects").rglob("*.jsonl")
        return sorted(files, key=lambda file: file.stat().st_mtime)

    def write(self, name, place=-1):
        """Write a transcript, without what is of this machine or of no use, and remove the folder."""
        lines = map(json.loads, self.transcripts()[place].read_text(encoding="utf-8").splitlines())
        text = "".join(f"{json.dumps(tidy(line))}\n" for line in lines if line["type"] not in LEFT_OUT)
        (STORED / f"claude_code_{name}.jsonl").write_text(text.replace(self.path, "/project"), encoding="utf-8")

    def close(self):
        shutil.rmtree(self.path, ignore_errors=True)


def tidy(entry):
    """Return an entry without what describes the machine, the account and the prompts of the CLI."""
    if entry.get("type") == "attachment" and entry["attachment"].get("type") not in KEPT_ATTACHMENTS:
        entry["attachment"] = {"type": entry["attachment"].get("type")}
    for name in ("gitBranch", "slug", "rendered"):
        entry.pop(name, None)
    if entry.get("type") == "assistant":
        for name in ("usage", "stop_details"):
            entry["message"].pop(name, None)
    return entry


KEPT_ATTACHMENTS = {"hook_deferred_tool"}
LEFT_OUT = {"api-request", "api-request-blob", "api-request-shape", "atis-latch", "cost-state", "tools-used"}
"""What the CLI notes about its requests and costs."""


STORY = [("Let me see.", CALLS), "Done."]
ONE_CALL = ("Let me see.", CALLS[:1])


async def follow(client):
    """Read messages up to a result."""
    async for message in client.receive_messages():
        if isinstance(message, ResultMessage):
            return message
    return None


async def decide(name, given, context):
    if given.get("amount") == 6:
        return PermissionResultDeny(message="no 6")
    return PermissionResultAllow(updated_input=given)


async def defer(asked, call_id, context):
    verdict = "defer" if asked["tool_name"].endswith("pay") else "allow"
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": verdict}}


async def allow(asked, call_id, context):
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}


def hooks(hook):
    return {"PreToolUse": [HookMatcher(hooks=[hook])]}


async def say(folder, replies, text, **options):
    """Let a client say one message, or nothing but what a resumed session goes on with."""
    with ScriptedProvider(replies, name_tool) as provider:
        async with ClaudeSDKClient(folder.options(provider.url, **options)) as client:
            if text is not None:
                await client.query(text)
            return await follow(client)


async def done(folder):
    """All calls of one reply, one of them rejected with a reason."""
    await say(folder, STORY, PROMPT, can_use_tool=decide)
    folder.write("done")


async def paused(folder):
    """A call that a hook deferred, then what becomes of it when the session is resumed."""
    result = await say(folder, [ONE_CALL], PROMPT, hooks=hooks(defer))
    folder.write("deferred")
    await say(folder, [("", CALLS[2:]), "Done."], None, resume=result.session_id, hooks=hooks(allow))
    folder.write("deferred_approved")


async def passed(folder):
    """A message that goes past a deferred call."""
    result = await say(folder, [ONE_CALL], PROMPT, hooks=hooks(defer))
    with ScriptedProvider(["Hello.", "Hello.", "Hello."], name_tool) as provider:
        options = folder.options(provider.url, resume=result.session_id, hooks=hooks(defer))
        async with ClaudeSDKClient(options) as client:
            await follow(client)
            await client.query("Hi")
            await follow(client)
    folder.write("deferred_passed")


async def forked(folder):
    """A fork of a finished session, in which one more message is said."""
    result = await say(folder, STORY, PROMPT, can_use_tool=decide)
    await say(folder, ["You are welcome."], "Thanks", resume=result.session_id, fork_session=True, can_use_tool=decide)
    folder.write("forked")


async def rewound(folder):
    """A session that goes on from its first reply, so that a deferred call stays in a branch of its own."""
    result = await say(folder, ["Hello."], "Hi", hooks=hooks(defer))
    entries = map(json.loads, folder.transcripts()[-1].read_text().splitlines())
    [reply] = [entry["uuid"] for entry in entries if entry["type"] == "assistant"]
    await say(folder, [ONE_CALL], PROMPT, resume=result.session_id, hooks=hooks(defer))
    back = {"resume-session-at": reply}
    await say(folder, ["Bye."], "Bye", resume=result.session_id, extra_args=back, hooks=hooks(defer))
    folder.write("rewound")


async def sub_agent(folder):
    """A sub-agent whose call was rejected, which has a transcript of its own."""
    agents = {"clerk": AgentDefinition(description="Pays.", prompt="Pay.", tools=["mcp__bank__pay"])}
    asked = {"subagent_type": "clerk", "description": "Pay", "prompt": "Pay 6", "run_in_background": False}
    with ScriptedProvider([("", [("t1", "Agent", asked)])]) as provider:
        provider.inner = iter([("", CALLS[1:2]), "Not paid."])
        provider.name_tool = lambda name: name if name == "Agent" else name_tool(name)
        options = folder.options(provider.url, can_use_tool=decide, agents=agents)
        options.tools = ["Agent"]
        async with ClaudeSDKClient(options) as client:
            await client.query(PROMPT)
            await follow(client)
    for place, file in enumerate(folder.transcripts()):
        folder.write("of_sub_agent" if file.name.startswith("agent-") else "with_sub_agent", place)


async def edited(folder):
    """A call whose arguments the application changed."""

    async def change(name, given, context):
        return PermissionResultAllow(updated_input={"amount": 4})

    await say(folder, [ONE_CALL, "Done."], PROMPT, can_use_tool=change)
    folder.write("edited")


async def interrupted(folder):
    """A turn that is interrupted while it asks, and the message after it."""
    asked = asyncio.Event()

    async def wait(name, given, context):
        asked.set()
        await asyncio.sleep(3600)

    with ScriptedProvider([ONE_CALL, "Hello."], name_tool) as provider:
        async with ClaudeSDKClient(folder.options(provider.url, can_use_tool=wait)) as client:
            await client.query(PROMPT)
            await asyncio.wait_for(asked.wait(), 60)
            await client.interrupt()
            await follow(client)
            await client.query("Hi")
            await follow(client)
    folder.write("interrupted")


async def killed(folder):
    """A process that is killed while a call runs, and the session resumed by another one."""
    running = asyncio.Event()

    async def hang(asked, call_id, context):
        running.set()
        await asyncio.sleep(3600)

    with ScriptedProvider([ONE_CALL, "Hello."], name_tool) as provider:
        client = ClaudeSDKClient(folder.options(provider.url, hooks=hooks(hang)))
        await client.connect()
        await client.query(PROMPT)
        await asyncio.wait_for(running.wait(), 60)
        # The CLI writes the call a moment after it asks.
        while not any('"tool_use"' in file.read_text() for file in folder.transcripts()):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        client._transport._process.kill()
        await client.disconnect()
        folder.write("killed")
        session = folder.transcripts()[-1].stem
        async with ClaudeSDKClient(folder.options(provider.url, resume=session, hooks=hooks(allow))) as client:
            await client.query("Hi")
            await follow(client)
    folder.write("killed_resumed")


async def main():
    chosen = sys.argv[1:]
    for story in (done, paused, passed, forked, rewound, sub_agent, edited, interrupted, killed):
        if chosen and story.__name__ not in chosen:
            continue
        folder = Folder()
        try:
            await asyncio.wait_for(story(folder), 100)
        finally:
            folder.close()


asyncio.run(main())
