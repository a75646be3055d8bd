"""What each flavour can express, and for the rest the API of the framework that is missing or refuses."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from ...capabilities import CAPABILITIES

FRAMEWORK = "agent-framework-core"
ISSUES = "https://github.com/microsoft/agent-framework/issues"
PACKAGES = ("agent_framework",)


def _offers(name: str) -> bool:
    """Says whether the release that is installed gives away a name; the newest one where none is."""
    found = find_spec("agent_framework")
    if found is None or found.origin is None:
        return True
    return f'"{name}"' in Path(found.origin).read_text(encoding="utf-8")


def _lacks() -> dict[str, str]:
    """Says what the framework's client of MCP servers would import and cannot."""
    found = find_spec("agent_framework")
    if found is None or found.origin is None:
        return {}
    client = Path(found.origin).with_name("_mcp.py").read_text(encoding="utf-8")
    absent = [name for name in ("mcp", "tenacity") if f"from {name} import" in client and find_spec(name) is None]
    return {"mcp": f"`MCPTool` needs {' and '.join(absent)}, and that is not installed here"} if absent else {}


STORES: Mapping[str, str] = {"file": "`FileSessionStore` in a folder"} if _offers("FileSessionStore") else {}

CHECKPOINTS: Mapping[str, str] = {"file": "`FileCheckpointStorage` in a folder"}

_RESPONSES: Mapping[str, str] = {
    "go_on_without_answer": "a run without a message asks the model anew, or is refused where the provider keeps all",
    "structured_answer": "the provider's own client fails at an answer that does not fit, before the framework sees it",
}

PROTOCOLS: Mapping[str, Mapping[str, str]] = {"chat": {}, "responses": _RESPONSES, "messages": {}}
"""Over which the framework's own clients reach the model, with what is missing there."""

OF_RESPONSES: Mapping[str, Mapping[str, str]] = {"responses": _RESPONSES}
"""That of a flavour whose scripted client answers as the one for Responses."""

OF_CHAT: Mapping[str, Mapping[str, str]] = {"chat": {}}
"""That of a flavour whose scripted client answers as the one for Chat Completions."""

_ALL: Mapping[str, str] = {
    "edit": "a response runs the call as it was asked; arguments in it are not read",
    "edit_tool": "a response runs the call as it was asked; a tool in it is not read",
    "never": "`ToolApprovalMiddleware` has rules that approve, and none that reject",
    "stage": "a response goes in with the run that it resumes",
    "cancel": "nothing gives up a request",
    "history.append": "`AgentSession.to_dict` gives the whole session each time",
    "limit_model_replies": "`max_iterations` limits rounds of tool calls; the model is asked once more afterwards",
    **({} if _offers("CompactionProvider") else {"trim": "this release has no compaction of stored histories"}),
    "hand_offs": "agents hand over in workflows of another distribution, agent-framework-orchestrations",
    **_lacks(),
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

MIDDLEWARE_MISSING: Mapping[str, str] = {
    **_ALL,
    **_ASKING_AGAIN,
    **_CHAT,
    "partial_answers": "one request is shown at a time, so that there is no other one to leave open",
    "slow_conditions": "a rule is awaited before any call of its reply starts, and so cannot wait for one of them",
}
"""With `ToolApprovalMiddleware`."""

REPLAYED_MISSING: Mapping[str, str] = {
    **{name: why for name, why in MISSING.items() if name != "history.append"},
    "trim": "the messages are the caller's, and so is their trimming",
}
"""Where the caller keeps the messages."""

_STORED: Mapping[str, str] = {
    "trim": "the provider keeps the conversation; compaction works on histories that the session holds",
}

RESPONSES_MISSING: Mapping[str, str] = {
    **_ALL,
    **_ASKING_AGAIN,
    **_NO_POLICY,
    "missing_ids": "Responses gives every call an id",
    **_RESPONSES,
    **_STORED,
}
"""With the client for Responses."""

UNSTORED_MISSING: Mapping[str, str] = {
    name: why for name, why in RESPONSES_MISSING.items() if name in _ALL or name not in _STORED
}
"""With the client for Responses, where the session holds the history."""

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
"""Where a workflow runs the agent."""


def claimed(missing: Mapping[str, str], stores: Mapping[str, str] = STORES) -> frozenset[str]:
    """Gives all other capabilities."""
    return (frozenset(CAPABILITIES) | {f"native.{name}" for name in stores}) - frozenset(missing)
