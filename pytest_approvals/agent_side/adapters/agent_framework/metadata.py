"""Capabilities that each flavour lacks, with the API that is missing or refuses."""

from __future__ import annotations

from collections.abc import Mapping

from ...contract import RENAMED
from ...kit.feature_detection import find_missing_imports, has_source

FRAMEWORK = "agent-framework-core"
ISSUES = "https://github.com/microsoft/agent-framework/issues"
PACKAGES = ("agent_framework",)

RECOVERY = (
    "a new process reads the session that the application stored last "
    '(https://learn.microsoft.com/agent-framework/tutorials/agents/persisted-conversation: "By persisting the '
    'AgentSession, you can save the conversation context and reload it later.")'
)
"""How to go on after the process died."""

WORKFLOW_RECOVERY = (
    "a new process restores the newest checkpoint of the folder, alone or with the decisions "
    '(https://learn.microsoft.com/agent-framework/workflows/checkpoints: for "long-running workflows where you want to '
    'avoid losing progress in case of failures"; `Workflow`: "Workflows can be paused and resumed across process '
    'restarts using checkpoint storage.")'
)
"""As `RECOVERY`, if a workflow runs the agent."""

HOSTING_RECOVERY = (
    "a new server reads the files of the dead one, and the client continues from the last response that it has seen "
    '(agent-framework-foundry-hosting: "The Responses host continues regular agents through its existing session '
    'store"; a request that was being answered is not taken up: "Other regular-agent runs are not crash-recoverable.")'
)
"""As `RECOVERY`, for a client of a server."""


STORES: Mapping[str, str] = (
    {"file": "`FileSessionStore` in a folder"}
    if has_source("agent_framework", "__init__.py", '"FileSessionStore"')
    else {}
)

CHECKPOINTS: Mapping[str, str] = {"file": "`FileCheckpointStorage` in a folder"}

_OVER_RESPONSES: Mapping[str, str] = {
    "go_on_without_answer": "a run without a message asks the model anew, or is refused if the provider stores all",
    "structured_answer": "the provider's own client fails at an answer that does not fit, before the framework sees it",
}

_REASONING_OVER_CHAT: Mapping[str, str] = {
    "reasoning": "the client reads and sends `reasoning_details`, and no `reasoning_content`",
}

PROTOCOLS: Mapping[str, Mapping[str, str]] = {
    "chat": _REASONING_OVER_CHAT,
    "responses": _OVER_RESPONSES,
    "messages": {},
}
"""Protocols of the framework's own clients, with what is missing over each."""

_NO_REASONING_OVER_CHAT = dict.fromkeys(
    ("reasoning", "reasoning_between_calls", "redacted_reasoning"), _REASONING_OVER_CHAT["reasoning"]
)

RESPONSES_PROTOCOLS: Mapping[str, Mapping[str, str]] = {"responses": _OVER_RESPONSES}
"""For a flavour whose scripted client streams as Responses does."""

CHAT_PROTOCOLS: Mapping[str, Mapping[str, str]] = {"chat": _REASONING_OVER_CHAT}
"""For a flavour whose scripted client streams as Chat Completions does."""

_ABSENT = find_missing_imports("agent_framework", "_mcp.py", ("mcp", "tenacity"))

_REASONING = (
    {}
    if has_source("agent_framework", "_types.py", "protected_data")
    else dict.fromkeys(
        ("reasoning", "reasoning_between_calls", "redacted_reasoning"),
        "this release's `Content.from_text_reasoning` has no place for a signature",
    )
)

_ALL: Mapping[str, str] = {
    **_REASONING,
    "text_with_answer": "all text of a response is the answer, so that text before it leaves no JSON",
    "edit": "a response runs the call as it was asked; arguments in it are not read",
    "edit_tool": "a response runs the call as it was asked; a tool in it is not read",
    "never": "`ToolApprovalMiddleware` has rules that approve, and none that reject",
    "stage": "a response goes in with the run that it resumes",
    "cancel": "nothing gives up a request",
    "history.append": "`AgentSession.to_dict` gives the whole session each time",
    "limit_model_replies": "`max_iterations` limits rounds of tool calls; the model is asked once more afterwards",
    **(
        {}
        if has_source("agent_framework", "__init__.py", '"CompactionProvider"')
        else {"trim": "this release has no compaction of stored histories"}
    ),
    "changing_ids": "an update with another id for a call that has begun raises `ContentError`",
    "annotations": "`MCPTool.approval_mode` takes words and lists of names; no function is asked about a tool",
    "elicitation": "`MCPTool` makes its client without a handler of elicitations, and takes none",
    "hand_offs": "agents hand over in workflows of another distribution, agent-framework-orchestrations",
    **({"mcp": f"`MCPTool` needs {' and '.join(_ABSENT)}, and that is not installed here"} if _ABSENT else {}),
}

_ASKING_AGAIN: Mapping[str, str] = {
    "asks_again": "a function has no way to ask; `UserInputRequiredException` is for tools that run agents",
}

_CHAT: Mapping[str, str] = {"hosted_mcp": "Chat Completions has no hosted servers"}

_NO_POLICY: Mapping[str, str] = {
    "conditional_approval": "`approval_mode` is always or never",
    "slow_conditions": "`approval_mode` is always or never",
    "raising_conditions": "`approval_mode` is always or never",
    "always": "standing approvals are read by `ToolApprovalMiddleware` only",
}

MISSING: Mapping[str, str] = {**_ALL, **_ASKING_AGAIN, **_CHAT, **_NO_POLICY}
"""Without any middleware."""

STORED_AFTER_RUNS: Mapping[str, str] = {
    "stores_in_turns": "the application stores an `AgentSession` after a run; a run writes to no store",
}
"""For the flavour whose process can be killed."""

CHAT_MISSING: Mapping[str, str] = {
    **MISSING,
    **_NO_REASONING_OVER_CHAT,
}
"""With the client for Chat Completions."""

MIDDLEWARE_MISSING: Mapping[str, str] = {
    **_ALL,
    **_ASKING_AGAIN,
    **_CHAT,
    "partial_answers": "one request is shown at a time, so there is no other one to leave open",
    "slow_conditions": "a rule is awaited before any call of its reply starts, and so cannot wait for one of them",
}
"""With `ToolApprovalMiddleware`."""

REPLAYED_MISSING: Mapping[str, str] = {
    **{name: reason for name, reason in MISSING.items() if name != "history.append"},
    "trim": "the messages are the caller's, and so is their trimming",
}
"""For the flavour whose caller keeps the messages."""

_STORED: Mapping[str, str] = {
    "trim": "the provider keeps the conversation; compaction works on histories that the session holds",
}

RESPONSES_MISSING: Mapping[str, str] = {
    **_ALL,
    **_ASKING_AGAIN,
    **_NO_POLICY,
    "missing_ids": "Responses gives every call an id",
    **_OVER_RESPONSES,
    **_STORED,
}
"""With the client for Responses."""

UNSTORED_MISSING: Mapping[str, str] = {
    name: reason for name, reason in RESPONSES_MISSING.items() if name in _ALL or name not in _STORED
}
"""With the client for Responses, if the session holds the history."""

_CHECKPOINT = "a workflow is kept in checkpoints, which a storage keeps; nothing gives one as text"

WORKFLOW_MISSING: Mapping[str, str] = {
    **MISSING,
    "serialize.json": _CHECKPOINT,
    "message_with_answers": "`Workflow.run` takes a message or responses, and refuses both together",
    "contradiction": "responses are a mapping by the ids of requests, which holds one for each",
    "malformed_address": "responses are a mapping by the ids of requests, so that an address is an id",
    "cancel": "`cancel_pending_requests` goes on with the run at once, as with rejections",
    "trim": "the session of an agent in a workflow is the workflow's own",
    "structured_answer": "an executor's output is a response with text and messages",
}
"""For the flavour in which a workflow runs the agent."""


_NESTED = "`Agent.as_tool` is documented to fail closed if an inner call needs a person"

_SERVED: Mapping[str, str] = {
    **_ASKING_AGAIN,
    **{name: reason for name, reason in _NO_POLICY.items() if name != "always"},
    "limit_model_replies": _ALL["limit_model_replies"],
    "hand_offs": _ALL["hand_offs"],
    "nested": _NESTED,
    "nested_parallel": _NESTED,
    "missing_ids": "Responses has an id for every call",
}
"""Missing behind any server."""


def _over_chat(missing: Mapping[str, str]) -> Mapping[str, str]:
    """Return what is missing over Chat Completions in place of Responses."""
    return {**{name: reason for name, reason in missing.items() if name != "missing_ids"}, **_CHAT}


HOSTING_FRAMEWORK = "agent-framework-foundry-hosting"

# Early releases keep requests and responses in memory.
HOSTING_STORES: Mapping[str, str] = (
    {"files": "the server's own files below `AGENTSERVER_STATE_ROOT`"}
    if has_source("agent_framework_foundry_hosting", "__init__.py", '"AgentSessionStoreProvider"')
    else {}
)

_HOSTING_ANSWER = "an `mcp_approval_response` says yes or no, and why"
_HOSTING_STORE = "the server keeps its state in its own store"

HOSTING_MISSING: Mapping[str, str] = {
    **_SERVED,
    "edit": _HOSTING_ANSWER,
    "edit_tool": _HOSTING_ANSWER,
    "always": _HOSTING_ANSWER,
    "never": _HOSTING_ANSWER,
    "tampered_request": "an `mcp_approval_response` holds the id of a request and nothing else of it",
    "stage": "an `mcp_approval_response` goes in with the input that it is part of",
    "cancel": "`POST /responses/{id}/cancel` ends a response that still runs in the background, and no request",
    "trim": "the server reads the whole transcript each time",
    "serialize.copy": _HOSTING_STORE,
    "serialize.json": f"{_HOSTING_STORE}; nothing gives it as text",
    "history.append": _HOSTING_STORE,
    "mcp": "tools of a server that an agent connects to are the business of the flavours without a server in front",
}
"""Behind a server, for a client that continues with `previous_response_id`."""

HOSTING_CHAT_MISSING = _over_chat(HOSTING_MISSING)
"""Behind a server, if the model speaks Chat Completions."""

HOSTING_CONVERSATION_MISSING: Mapping[str, str] = {
    **HOSTING_MISSING,
    "rewind": "a conversation has one end, and nothing takes it back to an earlier place",
}
"""Behind a server, for a client that continues with `conversation`."""

HOSTING_WORKFLOW_MISSING: Mapping[str, str] = {
    **HOSTING_MISSING,
    "go_on_without_answer": "an agent made of a workflow does nothing with an input that answers nothing",
    "message_with_answers": "an agent made of a workflow takes a message or answers, and refuses both together",
    "structured_answer": "an agent made of a workflow takes no options for a run",
}
"""Behind a server, for an agent made of a workflow."""


AGUI_FRAMEWORK = "agent-framework-ag-ui"

_AGUI_ENTRY = "an entry of `resume` is about one interrupt"
_AGUI_MEMORY = "`InMemoryAGUIApprovalStateStore` is documented as local to one process, and there is no other store"

_AGUI_REASONING = "messages of the role `reasoning` are the interface's own state, and are not in the agent's input"

AGUI_MISSING: Mapping[str, str] = {
    **_SERVED,
    **dict.fromkeys(("reasoning", "reasoning_between_calls", "redacted_reasoning"), _AGUI_REASONING),
    "partial_answers": "a `resume` has to say something about every open interrupt, or is refused",
    "go_on_without_answer": "a run without answers is refused while interrupts are open",
    "structured_answer": "a structured answer becomes state that is shared with the interface, and no message",
    "reject_reason": "a payload with a reason is refused: other fields than the answer are read as edited arguments",
    "edit_tool": "`editedArgs` replaces the arguments, and nothing replaces the tool",
    "always": _AGUI_ENTRY,
    "never": _AGUI_ENTRY,
    "tampered_request": "an entry of `resume` holds the id of an interrupt and nothing else of it",
    "stage": "an entry of `resume` goes in with the run that it resumes",
    "cancel": "`cancelled` is an answer, which the run goes on with as with a rejection",
    "trim": "the interface sends the whole thread each time",
    "serialize.copy": _AGUI_MEMORY,
    "serialize.json": _AGUI_MEMORY,
    "history.append": _AGUI_MEMORY,
    "fresh": _AGUI_MEMORY,
    "rewind": _AGUI_MEMORY,
    "tools_change": _AGUI_MEMORY,
    **dict.fromkeys(RENAMED, _AGUI_MEMORY),
    "answer.restored": _AGUI_MEMORY,
    "mcp": "tools of a server that an agent connects to are the business of the flavours without an interface",
}
"""Behind AG-UI, if the model speaks Responses."""

AGUI_CHAT_MISSING = _over_chat(AGUI_MISSING)
"""Behind AG-UI, if the model speaks Chat Completions."""
