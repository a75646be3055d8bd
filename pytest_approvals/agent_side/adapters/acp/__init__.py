"""Programs that speak the Agent Client Protocol (ACP), as coding agents do.

The protocol knows a session, a prompt that runs until it ends, and questions of the program to the client
(`session/request_permission`) while it runs. Everything else is played from outside: the program is told that its model
is on the loopback interface, its tools are MCP servers of the session, and the client is the official library
`@agentclientprotocol/sdk`. The program asks about every call, and the client answers by itself for the tools that need
no approval, as editors do.

Flavours: the default one, also called `opencode`, is OpenCode; `claude_code` is Claude Code behind its ACP adapter, and
`codex` Codex behind its own; `gemini` is Gemini CLI; `program` is any other program, which its command or a file
describes.
"""

from __future__ import annotations

from ...contract import RENAMED, Agent
from ...contract.capabilities import PROTOCOLS
from ...javascript import JavaScriptAgent
from ...kit.acp_program import NO_PROGRAM, get_description, list_inputs, read_protocol

__all__ = ["FLAVOURS", "ClaudeCode", "Codex", "Gemini", "OpenCode", "UserProgram"]

_ONE_BY_ONE = "of several calls in one reply the program asks about the next one when the one before is answered"
_OPTIONS = "an answer selects one of the options of the question that waits (`RequestPermissionOutcome`)"
_HELD = "a prompt that waits for a permission is a running process, and not stored"
_IN_FILES = "a session is in files of the program, and nothing gives it as text"
_REPLACED = "a prompt that is sent while another one runs cancels that one"
_UNLOADED = "Gemini CLI cannot load a session in the minute in which it began"
_UNKNOWN = "whether a program announces `loadSession` is known when it runs; a description does not say it"
_QUEUED = "a prompt that is sent while another one runs waits for its end"

SESSIONS = {"sessions": "the files in which the program keeps its sessions, and which `session/load` reads"}

MISSING = {
    "go_on_without_answer": "a question waits until it is answered",
    "message_while_pending": _QUEUED,
    "message_with_answers": _QUEUED,
    "reject_reason": "the options of a question are names; none carries a text",
    "edit": _OPTIONS,
    "edit_tool": _OPTIONS,
    "stage": _OPTIONS,
    "malformed_address": _OPTIONS,
    "unknown_request": _OPTIONS,
    "tampered_request": _OPTIONS,
    "contradiction": _OPTIONS,
    "repeated_decision": _OPTIONS,
    "late_decision": _OPTIONS,
    "simultaneous": "a prompt that waits is a process, once",
    "partial_answers": _ONE_BY_ONE,
    "slow_conditions": _ONE_BY_ONE,
    "large_integers": "JavaScript reads the numbers of JSON as doubles",
    "asks_again": "a tool of an MCP server asks by elicitation, which the protocol of the client does not pass on",
    "nested": "the protocol has one agent; sub-agents are a program's own tools",
    "nested_parallel": "the protocol has one agent; sub-agents are a program's own tools",
    "nested_gate": "the protocol has one agent; sub-agents are a program's own tools",
    "hand_offs": "the protocol has one agent; none takes a conversation over",
    "structured_answer": "the answer to a prompt is text",
    "hosted_mcp": "the program connects to servers itself; the provider runs none of their tools",
    "annotations": "the program is the client of the server; a permission request has no annotations",
    "elicitation": "the program is the client of the server; the stable protocol has no such request",
    "limit_model_replies": "the protocol has no limit that a client could set",
    "limit_tool_calls": "the protocol has no limit that a client could set",
    "trim": "the protocol takes no messages out of a session",
    "stores_requests": _HELD,
    "serialize.copy": _IN_FILES,
    "serialize.json": _IN_FILES,
    "history.append": _IN_FILES,
    "rewind": "`session/load` takes a session up at its end, and `session/fork` copies all of it",
    **dict.fromkeys(RENAMED, "the protocol has one agent, to which a client gives no name"),
    "answer.restored": _HELD,
    "answer.rebuilt": _HELD,
}

OPENCODE_MISSING = MISSING | {
    "never": "OpenCode offers `once`, `always` and `reject`",
    "missing_ids": "its client of Chat Completions fails the turn: \"Expected 'id' to be a string.\"",
    "model_failure": "OpenCode asks a model that failed again; a script says what is answered to each request",
    "broken_stream": "OpenCode asks a model whose stream broke again; a script says what is answered to each request",
    "redacted_reasoning": "its model is asked over Chat Completions, whose `reasoning_content` is plain text",
}


CLAUDE_CODE_MISSING = (
    MISSING
    | PROTOCOLS["messages"]
    | {
        "never": "Claude Code offers `allow_always`, `allow` and `reject`",
        "repeated_ids": "Claude Code leaves out a call whose id its session has, as Messages wants them unique",
    }
)


CODEX_MISSING = (
    MISSING
    | PROTOCOLS["responses"]
    | {
        "never": "Codex offers `allow_once`, `allow_session`, `allow_always` and `cancel`",
        "broken_stream": "Codex goes on with the calls that a stream has completed before it breaks",
        "concurrent_tools": "Codex runs the calls of a reply one after the other",
        "sessions": "a process of Codex has one model provider, whose address is that of one session's model",
    }
)

GEMINI_MISSING = (
    MISSING
    | PROTOCOLS["gemini"]
    | {
        "message_while_pending": _REPLACED,
        "message_with_answers": _REPLACED,
        "concurrent_tools": "Gemini CLI runs the calls of a reply one after the other",
        "fresh": _UNLOADED,
        "tools_change": _UNLOADED,
        "never": "Gemini CLI offers `proceed_once`, `proceed_always_tool`, `proceed_always_server` and `cancel`",
    }
)


class OpenCode(JavaScriptAgent):
    """OpenCode (npm `opencode-ai`), started as `opencode acp`."""

    framework = "opencode-ai"
    stores = SESSIONS
    missing = OPENCODE_MISSING
    wire_rules = "chat"
    native = "chat"
    connects = True
    issues = "https://github.com/anomalyco/opencode/issues"


class ClaudeCode(JavaScriptAgent):
    """Claude Code behind `@agentclientprotocol/claude-agent-acp`, which holds its CLI."""

    framework = "@agentclientprotocol/claude-agent-acp"
    stores = SESSIONS
    missing = CLAUDE_CODE_MISSING
    wire_rules = "messages"
    native = "messages"
    connects = True
    issues = "https://github.com/agentclientprotocol/claude-agent-acp/issues"


class Codex(JavaScriptAgent):
    """Codex behind `@agentclientprotocol/codex-acp`, which holds its CLI."""

    framework = "@agentclientprotocol/codex-acp"
    stores = SESSIONS
    missing = CODEX_MISSING
    wire_rules = "responses"
    native = "responses"
    connects = True
    issues = "https://github.com/agentclientprotocol/codex-acp/issues"


class Gemini(JavaScriptAgent):
    """Gemini CLI (npm `@google/gemini-cli`), started as `gemini --acp`."""

    framework = "@google/gemini-cli"
    missing = GEMINI_MISSING
    wire_rules = "gemini"
    native = "gemini"
    connects = True
    issues = "https://github.com/google-gemini/gemini-cli/issues"


class UserProgram(JavaScriptAgent):
    """A program that the user describes: its command, and how it is told where its model is."""

    framework = "@agentclientprotocol/sdk"
    missing = MISSING | {"fresh": _UNKNOWN, "tools_change": _UNKNOWN}
    wire_rules = read_protocol()
    native = wire_rules
    unavailable = None if get_description() else NO_PROGRAM
    inputs = list_inputs()
    connects = True
    issues = "https://github.com/agentclientprotocol/agent-client-protocol/issues"


FLAVOURS: dict[str, type[Agent]] = {
    "": OpenCode,
    "opencode": OpenCode,
    "claude_code": ClaudeCode,
    "codex": Codex,
    "gemini": Gemini,
    "program": UserProgram,
}
"""The flavours: OpenCode, Claude Code, or the program that the user describes."""
