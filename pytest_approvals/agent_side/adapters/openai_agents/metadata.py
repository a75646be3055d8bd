"""Metadata of the flavours: what each cannot express, with the API that is missing or refuses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...kit.feature_detection import has_source

sdk_has = partial(has_source, "agents")
"""Return whether the SDK has a file and a text in it, as `has_source` does."""

CAN_ADD_INPUT = sdk_has("run_state.py", "def add_input")
"""Whether a message can be put into a paused run."""

RELEASE_MISSING: dict[str, str] = {}
"""What the installed release cannot do, with the name that it lacks."""

if not sdk_has("run_state.py", "rejection_message"):
    RELEASE_MISSING["reject_reason"] = "this release's RunState.reject takes no rejection_message"
if not CAN_ADD_INPUT:
    RELEASE_MISSING["message_with_answers"] = "this release's RunState has no add_input"


ISSUES = "https://github.com/openai/openai-agents-python/issues"

STORES = {"sqlite": "a SQLiteSession with a file, which holds the history, and the RunState as text beside it"}

MISSING = {
    "edit": "RunState.approve takes no arguments, and an item whose arguments were changed cannot be approved",
    "edit_tool": "RunState.approve takes no other tool",
    "cancel": "RunState has approve and reject; giving up a paused run is dropping its state",
    "malformed_verdict": "a decision is a method, RunState.approve or RunState.reject; no value stands for it",
    "contradiction": "RunState keeps one decision a call: until it is handed in, a later one replaces the earlier one",
    "missing_ids": "ResponseFunctionToolCall requires a call_id, and agents.Model asks for a non-empty one",
    "asks_again": "needs_approval is asked before the body; nothing that a body raises or returns is an interruption",
    "elicitation": "`MCPServer` makes its `ClientSession` without an `elicitation_callback`, and takes none",
    "limit_tool_calls": "Runner.run has max_turns; RunConfig.tool_execution limits only how many tools run at once",
    "serialize.copy": "copy.deepcopy of a RunState loses the paused runs of agent tools, which live in a registry "
    "beside it (agents.agent_tool_state)",
    "history.append": "RunState.to_json gives the whole run each time",
    "trim": "without a session nothing trims: the input list is the caller's",
    **RELEASE_MISSING,
}

SESSION_MISSING = {name: why for name, why in MISSING.items() if name != "trim"} | {
    "simultaneous": "RunState says that snapshots must not be resumed at the same time against one Session",
}

_ONE_TEXT = "with `output_type` a reply over the network is one text, and text before the answer leaves no JSON"

_CHAT = {
    "hosted_mcp": "OpenAIChatCompletionsModel refuses hosted tools with a UserError before any request",
    "text_with_answer": _ONE_TEXT,
}

if not sdk_has("models/openai_chatcompletions.py", "should_replay_reasoning_content"):
    _CHAT["reasoning"] = (
        "this release's OpenAIChatCompletionsModel sends `reasoning_content` back by the model's name only"
    )

CHAT_MISSING = SESSION_MISSING | {
    **_CHAT,
    "reasoning_between_calls": "a message has one `reasoning_content`, which precedes its calls",
    "redacted_reasoning": "`reasoning_content` is plain text",
}

PROTOCOLS: Mapping[str, Mapping[str, str]] = {"chat": _CHAT, "responses": {"text_with_answer": _ONE_TEXT}}
"""The protocols of OpenAI, and what is missing over each."""

RECOVERY = (
    "a new process reads the session by its id, and the RunState that the application kept "
    '(https://openai.github.io/openai-agents-python/ref/run_state: "RunState is the durable pause/resume boundary for '
    'human-in-the-loop flows.")'
)
"""How to go on after the process died."""
