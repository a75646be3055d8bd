"""Reader of LangGraph: checkpoints and states, exported as JSON.

    {"values": {"messages": [...]}, "next": [...], "interrupts": [...]}              a state, of a graph or a server
    {"checkpoint": {"channel_values": {"messages": [...]}}, "pending_writes": [...]} a checkpoint
    [...]                                                                            a history of either, newest first

Messages are read from the newest that has some. Requests are interrupts of the middleware `HumanInTheLoopMiddleware`;
its decisions are in the writes `__resume__` of the checkpoint that was interrupted, so only a history of checkpoints
shows past decisions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agent_side.contract.types import Verdict
from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    DecisionEntry,
    JsonPath,
    RequestEntry,
    StoredConversation,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    FormatReader,
    is_object_list,
    optional_text,
    require_text,
)
from pytest_approvals.conversations.histories.readers.langchain import read_message, unwrap_message
from pytest_approvals.errors import HistoryError
from pytest_approvals.journal.arguments import arguments_match

NAME = "langgraph"

_VERDICTS: dict[str, Verdict] = {"approve": "approve", "reject": "reject", "edit": "edit", "respond": "reject"}
"""The verdicts of the middleware's decisions; a response is a result from the user, without an execution."""


def matches(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
    newest = document[0] if is_object_list(document) else document
    return type(newest) is dict and any(True for _ in _iter_message_lists(newest, ()))


def read(document: Any) -> StoredConversation:
    """Read a state, a checkpoint, or a history of either.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    snapshots = (
        [((index,), snapshot) for index, snapshot in enumerate(document)]
        if type(document) is list
        else [((), document)]
    )
    lists = [located for path, snapshot in snapshots for located in _iter_message_lists(snapshot, path)]
    if not lists:
        raise HistoryError("none of its checkpoints has messages")
    path, messages = lists[0]
    builder = ConversationBuilder(NAME, shows_decisions=type(document) is list and "checkpoint" in document[0])
    # The oldest first, in the order of the calls in the messages.
    actions = [action for path, snapshot in reversed(snapshots) for action in _iter_actions(snapshot, path)]
    reader = _CheckpointReader(builder, actions)
    first = unwrap_message(messages[0])[0] if is_object_list(messages) else ()
    builder.read_messages(path, messages, reader.message, contents=(*first, "tool_calls"))
    return builder.conversation


def _iter_message_lists(snapshot: Any, path: JsonPath) -> Iterator[tuple[JsonPath, list[Any]]]:
    """Yield the list of messages of a snapshot, if it has one."""
    if type(snapshot) is not dict:
        return
    for names in (("values",), ("checkpoint", "channel_values"), ("channel_values",)):
        held: Any = snapshot
        for name in names:
            held = held.get(name) if type(held) is dict else None
        if type(held) is dict and is_object_list(held.get("messages")):
            yield (*path, *names, "messages"), held["messages"]


# Compared by identity, because two actions of one interrupt may be equal.
@dataclass(slots=True, eq=False)
class _InterruptedAction:
    """One action of an interrupt, and the decision about it; *at* is its path."""

    id: str
    at: JsonPath
    tool: str
    arguments: Any
    call_id: str | None = None
    decision: Any = None

    def is_about(self, call: CallEntry) -> bool:
        """Return whether it may be about a call: the one it names, else an equal one."""
        if self.call_id is not None:
            return self.call_id == call.id
        return self.tool == call.tool and arguments_match(self.arguments, call.arguments)


def _iter_actions(snapshot: Any, path: JsonPath) -> Iterator[_InterruptedAction]:
    """Yield the actions in the interrupts of one snapshot."""
    for at, interrupt, answer in _iter_interrupts(snapshot, path):
        value = interrupt.get("value")
        interrupt_id = optional_text(interrupt, "id") or optional_text(interrupt, "interrupt_id") or "interrupt"
        if type(value) is not dict:
            continue
        answers = answer.get("decisions") if type(answer) is dict else None
        if is_object_list(value.get("action_requests")):
            for place, action in enumerate(value["action_requests"]):
                here = (*at, "value", "action_requests", place)
                name = interrupt_id if len(value["action_requests"]) == 1 else f"{interrupt_id}#{place + 1}"
                decision = answers[place] if type(answers) is list and place < len(answers) else None
                yield _InterruptedAction(
                    name, here, _require_text(action, "name", here), action.get("args"), decision=decision
                )
        elif value.get("type") == "tool_approval":
            here = (*at, "value")
            call_id = optional_text(value, "tool_call_id")
            yield _InterruptedAction(
                interrupt_id, here, _require_text(value, "name", here), value.get("args"), call_id, answer
            )


def _require_text(item: Any, name: str, at: JsonPath) -> str:
    value = item.get(name) if type(item) is dict else None
    if type(value) is not str:
        raise HistoryError("expected a string", at=(*at, name))
    return value


def _iter_interrupts(snapshot: Any, path: JsonPath) -> Iterator[tuple[JsonPath, dict[str, Any], Any]]:
    """Yield the interrupts of a snapshot, each with its path and its answer."""
    if type(snapshot) is not dict:
        return
    # A write is [id of the task, channel, value]; blanks in place of others keep the numbers in paths right.
    writes = snapshot.get("pending_writes")
    rows = [row if type(row) is list and len(row) == 3 else [None] * 3 for row in writes] if writes else []
    answers = {row[0]: row[2] for row in rows if row[1] == "__resume__" and type(row[0]) is str}
    for number, (task, channel, value) in enumerate(rows):
        for place, interrupt in enumerate(value if channel == "__interrupt__" and is_object_list(value) else ()):
            resumed = answers.get(task) if type(task) is str else None
            answer = resumed[place] if type(resumed) is list and place < len(resumed) else None
            if type(interrupt) is dict:
                yield (*path, "pending_writes", number, 2, place), interrupt, answer
    yield from _iter_state_interrupts(snapshot, path)


def _iter_state_interrupts(snapshot: dict[str, Any], path: JsonPath) -> Iterator[tuple[JsonPath, dict[str, Any], Any]]:
    """Yield the interrupts of a state; a server lists them by task only."""
    if is_object_list(snapshot.get("interrupts")):
        for place, interrupt in enumerate(snapshot["interrupts"]):
            if type(interrupt) is dict:
                yield (*path, "interrupts", place), interrupt, None
        return
    for number, task in enumerate(snapshot["tasks"] if is_object_list(snapshot.get("tasks")) else ()):
        held = task.get("interrupts") if type(task) is dict else None
        for place, interrupt in enumerate(held if is_object_list(held) else ()):
            if type(interrupt) is dict:
                yield (*path, "tasks", number, "interrupts", place), interrupt, None


class _CheckpointReader:
    """Reader of the messages of one document, with the actions about their calls."""

    def __init__(self, builder: ConversationBuilder, asks: list[_InterruptedAction]) -> None:
        self.builder = builder
        self.waiting = asks

    def message(self, item: dict[str, Any], number: int) -> None:
        """Read one message; requests and decisions about its calls come after them."""
        entries = self.builder.entries
        before = len(entries)
        read_message(self.builder, item, number)
        approvals = [self._find_approval(entry) for entry in entries[before:] if isinstance(entry, CallEntry)]
        entries += [request for request, _ in filter(None, approvals)]
        entries += [decision for _, decision in filter(None, approvals) if decision is not None]

    def _find_approval(self, call: CallEntry) -> tuple[RequestEntry, DecisionEntry | None] | None:
        action = next((action for action in self.waiting if action.is_about(call)), None)
        if action is None:
            return None
        self.waiting.remove(action)
        number = self.builder.add_state_path(action.at)
        request = RequestEntry(number, -1, action.id, call.id, action.tool, action.arguments)
        return request, _read_decision(action, number) if type(action.decision) is dict else None


def _read_decision(action: _InterruptedAction, number: int) -> DecisionEntry:
    verdict = _VERDICTS.get(str(action.decision.get("type")), "raw")
    if verdict != "edit":
        return DecisionEntry(number, -1, action.id, verdict, optional_text(action.decision, "message"))
    edited = action.decision.get("edited_action")
    if type(edited) is not dict:
        raise HistoryError("an edit has no edited_action", at=action.at)
    return DecisionEntry(
        number, -1, action.id, verdict, tool=require_text(edited, "name"), arguments=edited.get("args")
    )


READERS = {NAME: FormatReader(matches, read)}
