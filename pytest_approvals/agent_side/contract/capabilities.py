"""Capabilities of agents: a scenario needs some, an adapter claims some.

A capability is declared, never detected. What an adapter does not claim it lists as missing, with the API that is
missing or refuses.
"""

from __future__ import annotations

CAPABILITIES: dict[str, str] = {
    # how a turn can begin
    "streaming": "a turn can be streamed",
    "go_on_without_answer": "a paused session can be resumed without text and without decisions",
    "message_while_pending": "a new message can be sent while requests are pending",
    "message_with_answers": "a message and decisions can be handed in together",
    # what can be decided
    "partial_answers": "some of the pending requests can be answered, the others stay pending",
    "runs_beside_pending": "a call runs while others of its reply stay pending",
    "reject_reason": "a rejection can carry a reason",
    "goes_on_after_rejection": "a turn that rejects all that was asked goes on with the model",
    "edit": "a call can be approved with other arguments",
    "edit_tool": "a call can be approved with another tool in its place",
    "always": "a call can be approved together with all further calls of its tool",
    "never": "a call can be rejected together with all further calls of its tool",
    "stage": "decisions can be put into the state without going on",
    "cancel": "what is pending can be given up",
    # how a caller can misbehave
    "malformed_verdict": "something that is no decision can be put where a decision goes",
    "malformed_address": "something that is no request can be put where a request goes",
    "unknown_request": "a decision can name a request that was never asked",
    "tampered_request": "a decision can carry a request that says other arguments than were asked",
    "contradiction": "one submission can hold two decisions about one request",
    "repeated_decision": "a decision about a settled request can be handed in again while the session goes on",
    "late_decision": "a decision can be handed in after the session finished",
    "hang_up": "a turn can be cancelled while it runs, and the session goes on",
    "crash": "the process of the agent can be killed, and another one goes on from what was stored",
    "stores_in_turns": "a turn writes to a durable store before it ends, so that a write can be cut off or fail",
    "simultaneous": "two turns can run at the same time on two copies of one state",
    # what a model can do
    "parallel": "one reply can hold several calls",
    "text_with_calls": "one reply can hold text and calls",
    "reasoning": "the model can reason before its text and calls, and is sent its reasoning back",
    "reasoning_between_calls": "the model can reason between the calls of one reply",
    "redacted_reasoning": "the provider can show nothing of the reasoning but its encrypted form",
    "repeated_ids": "a call id can come again, in one reply or in a later one",
    "missing_ids": "a call can come without an id",
    "changing_ids": "a stream can give a call another id in each chunk",
    "unknown_tools": "the model can call a tool that does not exist",
    "broken_arguments": "arguments can be text that is not a JSON object",
    "large_integers": "an integer beyond 2**53, which a double cannot hold, keeps its value",
    "model_failure": "the model can fail with a status",
    "broken_stream": "the model's stream can break in its middle",
    # what tools can do
    "tool_errors": "a tool can raise, and the model is told or the turn fails",
    "non_text_results": "a tool can return any JSON value",
    "concurrent_tools": "approved calls of one reply run at the same time",
    "asks_again": "a running tool can ask for a second approval",
    "nested": "a tool can run another agent, whose requests surface",
    "nested_parallel": "several such agents can be paused at the same time",
    "nested_gate": "the call that runs another agent can be gated itself",
    "hand_offs": "a call can hand the conversation over to another agent, which keeps it",
    "hand_off_gate": "the call that hands a conversation over can be gated itself",
    # what an answer is
    "structured_answer": "the final answer can be asked for as an object with declared fields",
    "text_with_answer": "one reply can hold text and the structured answer",
    # what is gated
    "conditional_approval": "whether a call is gated can depend on its arguments",
    "slow_conditions": "such a condition may be asynchronous, and holds up its own call only",
    "raising_conditions": "such a condition may raise",
    "mcp": "calls of a server that the agent connects to can be gated",
    "annotations": "a policy of the application is handed what such a server says about its tool",
    "elicitation": "a server that the agent connects to can ask the caller to fill in a form in the middle of a call",
    "elicitation_url": "such a server can ask the caller to open an address",
    "hosted_mcp": "calls that the provider runs can be gated",
    # where the framework stops by itself
    "limit_model_replies": "the number of model replies in a turn can be limited",
    "limit_tool_calls": "the number of tool calls can be limited",
    # where the state goes
    "serialize.copy": "the state can be deep-copied",
    "serialize.json": "the framework's own serializer gives the state as text",
    "history.append": "a caller can keep only what each turn added",
    "fresh": "a saved state can be restored in another process",
    "rewind": "an older save can be restored",
    "tools_change": "the set of tools can differ after a restart",
    "main_renamed": "the agent that the caller talks to can have another name after a restart",
    "sub_agent_renamed": "an agent that a tool runs can have another name after a restart",
    "hand_off_renamed": "an agent that the conversation is handed over to can have another name after a restart",
    "trim": "the framework can trim its history while a request is pending",
    "sessions": "two sessions can run on the same agent object",
    # what a decision is made from
    "answer.held": "from the object that was held since before the save",
    "answer.restored": "from the object read from the restored state",
    "answer.rebuilt": "from the request's JSON",
}

IMPLIED: dict[str, str] = {"stores_requests": "a request that waits is part of the saved state"}
"""What an adapter can unless `missing` names it, which it does not claim.

The state of an agent whose requests are held by a process is saved while none waits, and only then.
"""

_CALLS_HAVE_IDS = "a call without an id is no call there"

RENAMED: tuple[str, ...] = ("main_renamed", "sub_agent_renamed", "hand_off_renamed")
"""Capabilities of an adapter that gives its agents the names in `Blueprint.names`."""

_NO_NEW_NAME = "the adapter gives this agent no other name"

OPTIONAL: dict[str, str] = {
    "hand_off_gate": "the adapter does not build a gate for hand-offs",
    **dict.fromkeys(RENAMED, _NO_NEW_NAME),
}
"""Capabilities that an adapter has only if it claims them by name, with why it lacks them otherwise."""

DERIVED: dict[str, tuple[str, str]] = {
    "runs_beside_pending": ("partial_answers", "no request of a reply can be answered alone"),
    "stores_in_turns": ("crash", "no process is killed that writes to a store"),
    "annotations": ("mcp", "there is no server that could say anything"),
    "elicitation": ("mcp", "there is no server that could ask"),
    "sub_agent_renamed": ("nested", "no tool runs an agent"),
    "hand_off_renamed": ("hand_offs", "no agent is handed over to"),
    "elicitation_url": ("elicitation", "no server can ask anything"),
}
"""Capabilities that nobody has who lacks another one, with that one and the reason."""

PROTOCOLS: dict[str, dict[str, str]] = {
    "chat": {
        "hosted_mcp": "a provider runs no tools there",
        "missing_ids": _CALLS_HAVE_IDS,
        "reasoning_between_calls": "a message has one `reasoning_content`, which precedes its calls",
        "redacted_reasoning": "`reasoning_content` is plain text",
    },
    "responses": {"missing_ids": _CALLS_HAVE_IDS},
    "messages": {
        "hosted_mcp": "a call of a server is not asked about there",
        "missing_ids": _CALLS_HAVE_IDS,
        "repeated_ids": "calls of one reply with one id are refused there",
    },
    "gemini": {
        "hosted_mcp": "a call of a server is not asked about there",
        "broken_arguments": "the arguments of a call are an object there",
        "reasoning_between_calls": "of parallel calls only the first has a thought signature",
    },
    "converse": {"hosted_mcp": "a call of a server is not asked about there", "missing_ids": _CALLS_HAVE_IDS},
}
"""The provider protocols, with what no model can do over them.

They are Chat Completions and Responses of OpenAI, Messages of Anthropic, `generateContent` of Google's Gemini, and
Converse of Amazon's Bedrock.
"""
