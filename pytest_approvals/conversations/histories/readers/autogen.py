"""Reader of AutoGen: saved states of agents, and messages of models and of agents.

    {"type": "AssistantAgentState", "llm_context": {"messages": [...]}}
    [{"type": "UserMessage" or "AssistantMessage" or "FunctionExecutionResultMessage", "content": ...}]
    [{"type": "TextMessage" or "ToolCallRequestEvent" or "ToolCallExecutionEvent", "content": ...}]

The state of a team holds those of its agents, each of which is a conversation of its own. AutoGen stores no decisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    JsonPath,
    OpaqueEntry,
    ResultEntry,
    ResultOutcome,
    StoredConversation,
    TextEntry,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    FormatReader,
    discriminator_of,
    is_object_list,
    optional_flag,
    optional_text,
    require_text,
)
from pytest_approvals.errors import HistoryError

NAME = "autogen"

_ROLES = {"SystemMessage": "system", "UserMessage": "user", "AssistantMessage": "assistant"}
_RESULTS = ("FunctionExecutionResultMessage", "ToolCallExecutionEvent")
_CALLS = ("ToolCallRequestEvent", "AssistantMessage")
_TEXTS = ("TextMessage", "HandoffMessage", "StopMessage", "ThoughtEvent")
# A summary repeats the results that are there already.
_OTHERS = ("ToolCallSummaryMessage", "MemoryQueryEvent", "ModelClientStreamingChunkEvent")
_KNOWN = frozenset((*_ROLES, *_RESULTS, *_CALLS, *_TEXTS, *_OTHERS))
# An agent of a team, and the team of a `SocietyOfMindAgent`.
_INNER_STATES = ("agent_state", "inner_team_state")
_MAX_DEPTH = 20


def matches(document: Any) -> bool | None:
    """Return whether it is of this format."""
    if type(document) is dict:
        return any(True for _ in _find_states(document, ())) or _is_result(document)
    return is_object_list(document) and discriminator_of(document[0]) in _KNOWN and "source" in document[0]


def _is_result(document: dict[str, Any]) -> bool:
    messages = document.get("messages")
    return is_object_list(messages) and discriminator_of(messages[0]) in _KNOWN and "source" in messages[0]


def _find_states(value: Any, path: JsonPath) -> Iterator[tuple[JsonPath, list[Any]]]:
    """Yield the messages that the model of each agent knows, with their paths."""
    if type(value) is not dict or len(path) > _MAX_DEPTH:
        return
    context = value.get("llm_context")
    if type(context) is dict and type(context.get("messages")) is list:
        yield (*path, "llm_context", "messages"), context["messages"]
    for inner in _INNER_STATES:
        yield from _find_states(value.get(inner), (*path, inner))
    states = value.get("agent_states")
    for name, state in states.items() if type(states) is dict else ():
        yield from _find_states(state, (*path, "agent_states", name))


def split(document: Any) -> list[JsonPath]:
    """Return the paths of the conversations of a team's state; none for anything else."""
    found = [path for path, messages in _find_states(document, ()) if messages]
    return [path[:-2] for path in found] if len(found) > 1 else []


def read(document: Any) -> StoredConversation:
    """Read the messages of one agent.

    Raises:
        HistoryError: Something has the wrong shape, or no agent of a team has messages.
    """
    builder = ConversationBuilder(NAME, shows_decisions=False, has_whole_responses=True)

    def read_message(item: dict[str, Any], number: int) -> None:
        builder.entries.extend(_read_message(item, number))

    if type(document) is list:
        builder.read_messages((), document, read_message, contents=("content",))
        return builder.conversation
    if type(document) is not dict:
        raise HistoryError("expected messages, or the state of an agent or a team")
    found = list(_find_states(document, ()))
    path, messages = next(((path, each) for path, each in found if each), (("messages",), document.get("messages")))
    if type(messages) is not list:
        raise HistoryError("no agent of this team has messages yet")
    builder.read_messages(path, messages, read_message, contents=("content",))
    return builder.conversation


def _read_message(item: dict[str, Any], number: int) -> Iterator[ConversationEntry]:
    kind = require_text(item, "type")
    content = item.get("content")
    parts = content if type(content) is list else []
    if kind in _RESULTS:
        for place, part in enumerate(parts):
            yield _read_result(part, number, place)
    elif kind in _CALLS and type(content) is list:
        if kind == "AssistantMessage" and (thought := optional_text(item, "thought")):
            yield TextEntry(number, -1, "assistant", thought)
        for place, part in enumerate(parts):
            yield CallEntry(number, place, require_text(part, "id"), require_text(part, "name"), part.get("arguments"))
    elif kind in _OTHERS or type(content) not in (str, list):
        yield OpaqueEntry(number, -1, kind)
    else:
        role = _ROLES.get(kind) or ("user" if item.get("source") == "user" else "assistant")
        texts = [content] if type(content) is str else [part for part in parts if type(part) is str]
        yield TextEntry(number, -1, role, "\n".join(texts))


def _read_result(part: Any, number: int, place: int) -> ConversationEntry:
    if type(part) is not dict:
        return OpaqueEntry(number, place, "result")
    failed = optional_flag(part, "is_error")
    outcome: ResultOutcome = "failed" if failed else "unknown" if failed is None else "returned"
    tool = optional_text(part, "name") or None
    return ResultEntry(number, place, require_text(part, "call_id"), tool, part.get("content"), outcome)


READERS = {NAME: FormatReader(matches, read, split=split)}
