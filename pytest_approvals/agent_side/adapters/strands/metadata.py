"""Capabilities that each flavour lacks, with the API that is missing or refuses."""

from __future__ import annotations

from collections.abc import Mapping

from ...kit.clients import list_installed_protocols
from ...kit.feature_detection import has_source

ISSUES = "https://github.com/strands-agents/harness-sdk/issues"

STORES: Mapping[str, str] = {
    "files": "`FileSessionManager` in a folder",
    "snapshots": "`SnapshotSessionManager` with `LocalFileStorage`",
}

ATTACHED_MISSING: Mapping[str, str] = {
    f"native.{store}": "an agent gets its session manager when it is made, and a user's agent has its own or none"
    for store in STORES
}
"""Capabilities that a user's own agent lacks."""

CAN_BE_ASKED = has_source("strands", "tools/mcp/mcp_client.py", "elicitation_callback")
"""Whether a client takes an answer to what its server asks in the middle of a call."""

HANDS_ANNOTATIONS_ON = has_source("strands", "tools/mcp/mcp_agent_tool.py", 'spec["annotations"]')
"""Whether the specification of a tool says what its server says about it."""

MISSING: Mapping[str, str] = {
    **({} if HANDS_ANNOTATIONS_ON else {"annotations": "this release's `MCPAgentTool.tool_spec` has no annotations"}),
    **({} if CAN_BE_ASKED else {"elicitation": "this release's `MCPClient` takes no `elicitation_callback`"}),
    "never": "the documented gate remembers trust, and no refusal",
    "stage": "responses go in with the invocation that they resume",
    "cancel": "`Agent.cancel` stops an invocation that runs; nothing gives up an interrupt",
    "tampered_request": "an `interruptResponse` holds the id of an interrupt; nothing else of it is handed over",
    "message_with_answers": "with an `interruptResponse` every other block is refused with `TypeError`",
    "nested_parallel": "an agent runs one call at a time; a second one is told `is already processing a request`",
    "missing_ids": "a tool use without `toolUseId` is skipped as incomplete; model classes fill in missing ids",
    "hosted_mcp": "hooks see the tools that the agent runs, and none that a provider runs",
    "hand_offs": "`handoff_to_agent` of a Swarm hands over a task; each agent keeps messages of its own",
    "limit_tool_calls": "`Limits` counts turns and tokens",
    "history.append": "a snapshot is the whole state",
}
"""For the flavours with a gate of this adapter."""

TOOL_MISSING: Mapping[str, str] = {
    **MISSING,
    "edit_tool": "`tool_context.interrupt` gives the answer to the body of one tool, which cannot become another one",
}
"""For the flavour whose tools ask themselves."""

_FAILS_OPEN = "`on_error` says that the agent goes on when the handler fails"

HANDLER_MISSING: Mapping[str, str] = {
    **MISSING,
    "raising_conditions": _FAILS_OPEN,
    "malformed_verdict": f"{_FAILS_OPEN}, as it does for an answer that it cannot read",
}
"""For the flavour with a handler whose errors do not stop the agent."""

_FIRST = "`SequentialToolExecutor` stops at the first question; about the calls behind it nobody is asked until then"

SEQUENTIAL_MISSING: Mapping[str, str] = {
    **MISSING,
    "concurrent_tools": "`SequentialToolExecutor` runs one call after the other",
    "parallel": _FIRST,
    "partial_answers": _FIRST,
    "slow_conditions": _FIRST,
}
"""For the flavour whose calls run one by one."""

_YES_OR_NO = "`HumanInTheLoop` takes a response as yes, as trust, or as no"

INTERVENTION_MISSING: Mapping[str, str] = {
    **MISSING,
    "reject_reason": f"{_YES_OR_NO}; the model is told the question",
    "edit": _YES_OR_NO,
    "edit_tool": _YES_OR_NO,
    "malformed_verdict": f"{_YES_OR_NO}: everything else is a no",
}
"""For the flavour with the SDK's own intervention."""


_CLASSES = {
    "chat": "models/openai.py",
    "responses": "models/openai_responses.py",
    "messages": "models/anthropic.py",
    "converse": "models/bedrock.py",
}
"""Source file of the model class for each protocol."""

CAN_GIVE_UP = has_source("strands", "agent/agent.py", "retry_strategy")
"""Whether an agent can be told not to repeat requests after status 429."""

_LACKS = {} if CAN_GIVE_UP else {"model_failure": "this release's loop asks again after status 429, for minutes"}

_UNSENT = "`{}` leaves `reasoningContent` out of requests, with a warning"

_NO_REASONING: Mapping[str, Mapping[str, str]] = {
    "chat": {"reasoning": _UNSENT.format("OpenAIModel")},
    "responses": {"reasoning": _UNSENT.format("OpenAIResponsesModel")},
}

PROTOCOLS: Mapping[str, Mapping[str, str]] = {
    protocol: {**_LACKS, **_NO_REASONING.get(protocol, {})}
    # The client of Bedrock comes with the framework.
    for protocol in (*list_installed_protocols(), "converse")
    if has_source("strands", _CLASSES[protocol])
}
"""Protocols of the model classes that this release has and whose clients are installed."""

RECOVERY = (
    "a new process builds the agent with a session manager for the same id "
    '(https://strandsagents.com/docs/user-guide/sdk/agents/session-management/: "Built-in session persistence captures '
    'and restores this information automatically, so an agent continues a conversation where it left off.")'
)
"""How to go on after the process died."""
