"""Capabilities that each flavour lacks, with the API that is missing or refuses."""

from __future__ import annotations

from collections.abc import Mapping

from ...contract import RENAMED
from ...kit.clients import list_installed_protocols

ISSUES = "https://github.com/microsoft/autogen/issues"

_ANSWERED = "an approval function returns its answer; no request is named, and nothing takes an answer otherwise"

_ONCE = "`AssistantAgent` keeps one conversation; its documentation says not to share it between tasks"

_THOUGHT = "the one place for reasoning is `AssistantMessage.thought`, the text beside calls, which has no signature"

_INSIDE: Mapping[str, str] = {
    "reasoning": _THOUGHT,
    "reasoning_between_calls": _THOUGHT,
    "redacted_reasoning": _THOUGHT,
    "message_with_answers": "a run that waits in an approval function takes no message",
    "stage": "an approval function returns its answer to the run that waits; there is no state to put it in",
    "edit_tool": "the result of an approval function has arguments at most, and nothing for another tool",
    "always": "an approval function answers for one call; nothing approves further ones",
    "never": "an approval function answers for one call; nothing rejects further ones",
    "malformed_verdict": "an approval function is the caller's own; what it returns is a model that refuses others",
    "malformed_address": _ANSWERED,
    "unknown_request": _ANSWERED,
    "tampered_request": _ANSWERED,
    "contradiction": _ANSWERED,
    "repeated_decision": _ANSWERED,
    "late_decision": _ANSWERED,
    "hang_up": "a run that waits in an approval function is a task of its own, which outlives who hangs up",
    "missing_ids": "`FunctionCall.id` is a text, and a `FunctionExecutionResult` refuses anything else",
    "annotations": "`McpWorkbench.list_tools` gives name, description and parameters of a tool",
    "elicitation": "`McpWorkbench` makes its `ClientSession` without an `elicitation_callback`, and takes none",
    "hosted_mcp": "no client of the framework has types for approvals of hosted MCP calls",
    "limit_tool_calls": "`max_tool_iterations` counts replies of the model, and nothing counts calls",
    "sessions": _ONCE,
    "history.append": "`save_state` gives the whole conversation each time",
}

RECOVERY = (
    "a new process loads the state that the application saved last "
    "(https://microsoft.github.io/autogen/stable/user-guide/agentchat-user-guide/tutorial/state.html: "
    '"stateless endpoints respond to requests and need to load the state of the application from persistent storage")'
)
"""How to go on after the process died."""

MISSING: Mapping[str, str] = {
    **_INSIDE,
    "stores_in_turns": "the framework has no store: the application keeps what `save_state` returns after a turn",
    "nested_parallel": "the documentation of `AgentTool` forbids parallel calls next to it: agents cannot run "
    "concurrently",
    "hand_offs": "an `AssistantAgent` ends with a `HandoffMessage`; another one goes on in a team, as in `swarm`",
}
"""For flavours with approval functions around a workbench or around tools."""

_RUNNING = "the documentation of `save_state` warns that the state of a team that is running may not be consistent"

SWARM_MISSING: Mapping[str, str] = {
    **{name: why for name, why in MISSING.items() if name not in ("hand_offs", "stores_in_turns")},
    "model_failure": "a team whose run failed cannot be run again: its runtime is broken, and `run` never returns",
    "broken_stream": "a team whose run failed cannot be run again: its runtime is broken, and `run` never returns",
    "structured_answer": "a team refuses a `StructuredMessage` whose type is not registered with it",
    "limit_model_replies": "`max_tool_iterations` ends the turn of an agent, and the team gives it another one",
    "message_while_pending": "`Swarm.run` refuses with `ValueError`: the team is already running",
    "simultaneous": _RUNNING,
    "serialize.copy": _RUNNING,
    "serialize.json": _RUNNING,
    "fresh": _RUNNING,
    "rewind": _RUNNING,
    "tools_change": _RUNNING,
    **dict.fromkeys(RENAMED, _RUNNING),
    "answer.restored": _RUNNING,
}
"""For the flavour whose caller talks to a team."""


_ONE_BY_ONE = "the loop of the runtime awaits the handler, so that the next call is seen when this one is decided"

_LOCAL = "`tool_agent_caller_loop` keeps what it is at in variables of its own, and gives it away at its end"

INTERVENTION_MISSING: Mapping[str, str] = {
    **{name: why for name, why in _INSIDE.items() if name not in ("edit_tool", "malformed_verdict")},
    "streaming": "`tool_agent_caller_loop` gives nothing before it ends",
    "message_while_pending": "the loop of the runtime awaits the handler, and handles no other message meanwhile",
    "trim": "the conversation is the caller's own list",
    "broken_stream": "`tool_agent_caller_loop` asks for no stream",
    "limit_model_replies": "`tool_agent_caller_loop` goes on for as long as the model calls tools",
    "structured_answer": "`tool_agent_caller_loop` asks for no form of answer",
    "partial_answers": _ONE_BY_ONE,
    "concurrent_tools": _ONE_BY_ONE,
    "slow_conditions": _ONE_BY_ONE,
    "nested": "agents behind tools are AgentChat's (`AgentTool`)",
    "nested_gate": "agents behind tools are AgentChat's (`AgentTool`)",
    "nested_parallel": "agents behind tools are AgentChat's (`AgentTool`)",
    "hand_offs": "hand-offs are AgentChat's (`Swarm`)",
    "mcp": "a `ToolAgent` takes tools and no workbench",
    "asks_again": "a tool is not a message, so that no handler sees what happens in it",
    "serialize.copy": _LOCAL,
    "serialize.json": _LOCAL,
    "fresh": _LOCAL,
    "rewind": _LOCAL,
    "tools_change": _LOCAL,
    **dict.fromkeys(RENAMED, _LOCAL),
    "simultaneous": _LOCAL,
    "answer.restored": _LOCAL,
}
"""For the flavour with an intervention handler of autogen-core."""

_CODE = "code has neither call ids nor arguments in JSON"

_NO_TOOLS = "the executor runs code, and no tools"

CODE_MISSING: Mapping[str, str] = {
    **{name: why for name, why in SWARM_MISSING.items() if name != "model_failure"},
    "malformed_verdict": "a run whose `approval_func` returns anything else than an `ApprovalResponse` ends with it",
    "parallel": "there is one `ApprovalRequest` for all blocks of code in a message",
    "partial_answers": "there is one `ApprovalRequest` for all blocks of code in a message",
    "concurrent_tools": "there is one `ApprovalRequest` for all blocks of code in a message",
    "edit": "`ApprovalResponse` has `approved` and `reason`",
    "trim": "the context of the coder has nothing to do with the approval of the executor",
    "repeated_ids": _CODE,
    "broken_arguments": _CODE,
    "unknown_tools": _NO_TOOLS,
    "asks_again": _NO_TOOLS,
    "nested": _NO_TOOLS,
    "nested_gate": _NO_TOOLS,
    "hand_offs": _NO_TOOLS,
    "mcp": _NO_TOOLS,
    "structured_answer": _NO_TOOLS,
    "limit_model_replies": "`max_turns` of a team counts the turns of both agents",
}
"""For the flavour with the approval function of `CodeExecutorAgent`."""


_NO_TYPE = "`AnthropicChatCompletionClient` refuses a type as `json_output` with `ValueError`"

PROTOCOLS: Mapping[str, Mapping[str, str]] = {
    protocol: lacks
    for protocol, lacks in list_installed_protocols(messages={"structured_answer": _NO_TYPE}).items()
    if protocol != "responses"
}
"""Protocols of the model clients whose own client is installed; none speaks Responses."""

_BROKEN: Mapping[str, str] = {
    "broken_arguments": "`AnthropicChatCompletionClient` fails if arguments are not an object, and a team "
    "whose run failed cannot be run again"
}

SWARM_PROTOCOLS: Mapping[str, Mapping[str, str]] = {
    protocol: {**lacks, **_BROKEN} if protocol == "messages" else lacks for protocol, lacks in PROTOCOLS.items()
}
"""Those of a team, which does not survive the failure of a client."""
