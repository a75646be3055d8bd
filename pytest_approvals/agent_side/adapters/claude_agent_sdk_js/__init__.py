"""Claude Agent SDK for TypeScript (npm `@anthropic-ai/claude-agent-sdk`), which drives the CLI of Claude Code.

The CLI is a program that `query` starts, and which npm installs beside the SDK; it asks the model over Messages, and
asks the application before it runs a tool. Tools of the application are MCP servers: in its process, or at an address.
The model is shown their names with a prefix, `mcp__SERVER__TOOL`.

Flavours: by default a hook of `PreToolUse` answers `defer`, which ends the run with what was deferred; a query that
resumes the session asks the hook again about the same call. The functions are tools of a server at an address then,
since a resumed CLI does not find those of a server in the process. In `inline`, `canUseTool` waits for the answer while
the run goes on. In `rules` it does, too, but a settings file decides what is asked about, and a standing approval
changes the rules in that file. The CLI runs calls of tools that may write one after the other, so of several gated
calls in one reply it asks about the next one when the one before is settled.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...contract import RENAMED, Agent
from ...javascript import JavaScriptAgent

__all__ = ["FLAVOURS", "DeferredSession", "InlineSession", "RulesSession"]

STORES: Mapping[str, str] = {"home": "the transcripts that the CLI keeps in `CLAUDE_CONFIG_DIR`"}

RECOVERY = (
    "a new process resumes the session by its id, or the most recent one of its folder if the application has no id "
    '(https://platform.claude.com/docs/en/agent-sdk/sessions: "Pick up where you left off after a process restart", '
    'with `continue: true`: "Resumes the most recent session in the directory, no ID needed")'
)
"""How to go on after the process died."""

_ONE_BY_ONE = "the CLI runs calls that may write one after the other, and asks about the next one then"
_ANSWERS_WHEN_ASKED = "the SDK asks a callback about one call and takes what it returns; no answer names a request"
_NO_SECOND_QUESTION = "a tool of an MCP server in this process cannot ask: its requests to the client are refused"
_AGENT_TOOL = "the tool `Agent` takes `description`, `prompt` and `subagent_type`, and runs agents by these alone"

MISSING: Mapping[str, str] = {
    "parallel": _ONE_BY_ONE,
    "partial_answers": _ONE_BY_ONE,
    "concurrent_tools": _ONE_BY_ONE,
    "slow_conditions": _ONE_BY_ONE,
    "edit_tool": "`updatedInput` replaces the input of a call, and nothing its tool",
    "never": "a denial is about one call; a rule that denies is a setting, and takes the tool from the model",
    "stage": "an answer goes to the callback that asks; there is no state to put it in",
    "malformed_address": _ANSWERS_WHEN_ASKED,
    "unknown_request": _ANSWERS_WHEN_ASKED,
    "tampered_request": _ANSWERS_WHEN_ASKED,
    "contradiction": _ANSWERS_WHEN_ASKED,
    "repeated_decision": _ANSWERS_WHEN_ASKED,
    "late_decision": _ANSWERS_WHEN_ASKED,
    "missing_ids": "over Messages a call has an id",
    "repeated_ids": "over Messages calls of one reply with one id are refused",
    "large_integers": "JavaScript reads the numbers of JSON as doubles",
    "asks_again": _NO_SECOND_QUESTION,
    "nested": _AGENT_TOOL,
    "nested_parallel": _AGENT_TOOL,
    "nested_gate": _AGENT_TOOL,
    "hand_offs": "a sub-agent answers its caller; none takes a conversation over",
    "hosted_mcp": "the CLI connects to servers itself; the provider runs none of their tools",
    "annotations": "`canUseTool` is told no annotations, and `mcpServerStatus()` leaves out those that are false",
    "limit_tool_calls": "`maxTurns` counts replies of the model",
    "trim": "`/compact` asks the model for a summary; nothing else takes messages out of a session",
}
"""What no flavour can express."""

DEFERRED_MISSING: Mapping[str, str] = {
    **MISSING,
    "parallel": "`defer` is documented for a reply with one call; of several deferred ones all but the last are lost",
    "always": "the output of a hook decides about one call, and adds no rule",
    "message_with_answers": "a resumed session goes on by itself with the answer; a message is a turn after that",
    "hang_up": "a query that is cut off leaves no result, and only a result says whether a call is still deferred",
    "cancel": "a deferred call stays in its session until the session goes on",
}
"""For the flavour whose hook defers calls."""

_HELD = "a run that waits in `canUseTool` is a process, and not stored"

INLINE_MISSING: Mapping[str, str] = {
    **MISSING,
    "go_on_without_answer": "`canUseTool` waits until it returns, and returns an answer",
    "message_while_pending": "a message that is sent while `canUseTool` waits is queued behind the run",
    "message_with_answers": "a message that is sent while `canUseTool` waits is queued behind the run",
    "hang_up": "a run that waits is a process, which lives longer than the turn; nobody who hangs up ends it",
    "simultaneous": "a run that waits is a process, once",
    "serialize.copy": _HELD,
    "serialize.json": _HELD,
    "history.append": _HELD,
    "native.home": _HELD,
    "fresh": _HELD,
    "rewind": _HELD,
    "tools_change": _HELD,
    **dict.fromkeys(RENAMED, _HELD),
    "answer.restored": "a run that waits cannot be restored",
}
"""For the flavours whose callback waits."""


class _Session(JavaScriptAgent):
    """What the flavours share."""

    framework = "@anthropic-ai/claude-agent-sdk"
    wire_rules = "messages"
    native = "messages"
    stores = STORES
    connects = True
    issues = "https://github.com/anthropics/claude-agent-sdk-typescript/issues"


class DeferredSession(_Session):
    """A hook defers gated calls, and each turn resumes the session with another query."""

    missing = DEFERRED_MISSING
    recovery = RECOVERY


class InlineSession(_Session):
    """`canUseTool` waits for the caller's answer, and one query lives as long as the session."""

    missing = INLINE_MISSING


class RulesSession(_Session):
    """The rules of a settings file decide; what they ask about, or have no rule for, waits in `canUseTool`."""

    missing = INLINE_MISSING


FLAVOURS: dict[str, type[Agent]] = {"": DeferredSession, "inline": InlineSession, "rules": RulesSession}
