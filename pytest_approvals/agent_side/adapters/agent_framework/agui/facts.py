"""What the flavours can express, and for the rest the API of the framework that is missing or refuses."""

from __future__ import annotations

from collections.abc import Mapping

FRAMEWORK = "agent-framework-ag-ui"

_ENTRY = "an entry of `resume` is about one interrupt"
_MEMORY = "`InMemoryAGUIApprovalStateStore` is documented as local to one process, and there is no other store"
_NESTED = "`Agent.as_tool` is documented to fail closed where an inner call needs a person"
_MODE = "`approval_mode` is always or never"

MISSING: Mapping[str, str] = {
    "partial_answers": "a `resume` has to say something about every open interrupt, or is refused",
    "go_on_without_answer": "a run without answers is refused while interrupts are open",
    "structured_answer": "a structured answer becomes state that is shared with the interface, and no message",
    "reject_reason": "a payload with a reason is refused: fields besides the answer are taken for edited arguments",
    "edit_tool": "`editedArgs` replaces the arguments, and nothing replaces the tool",
    "always": _ENTRY,
    "never": _ENTRY,
    "tampered_request": "an entry of `resume` holds the id of an interrupt and nothing else of it",
    "stage": "an entry of `resume` goes in with the run that it resumes",
    "cancel": "`cancelled` is an answer, which the run goes on with as with a rejection",
    "trim": "the interface sends the whole thread each time",
    "asks_again": "a function has no way to ask; `UserInputRequiredException` is for tools that run agents",
    "limit_model_replies": "`max_iterations` limits rounds of tool calls; the model is asked once more afterwards",
    "nested": _NESTED,
    "nested_parallel": _NESTED,
    "conditional_approval": _MODE,
    "slow_conditions": _MODE,
    "raising_conditions": _MODE,
    "hand_offs": "agents hand over in workflows of another distribution, agent-framework-orchestrations",
    "serialize.copy": _MEMORY,
    "serialize.json": _MEMORY,
    "history.append": _MEMORY,
    "fresh": _MEMORY,
    "rewind": _MEMORY,
    "tools_change": _MEMORY,
    "answer.restored": _MEMORY,
    "missing_ids": "Responses has an id for every call",
    "mcp": "tools of a server that an agent connects to are the business of the flavours without an interface",
}
"""Where the model is reached with Responses."""

CHAT_MISSING: Mapping[str, str] = {
    **{name: why for name, why in MISSING.items() if name != "missing_ids"},
    "hosted_mcp": "Chat Completions has no hosted servers",
}
"""Where the model is reached with Chat Completions."""
