"""
Checkpoints and states of LangGraph, exported as JSON.

    {"values": {"messages": [...]}, "next": [...], "interrupts": [...]}              a state, of a graph or a server
    {"checkpoint": {"channel_values": {"messages": [...]}}, "pending_writes": [...]} a checkpoint
    [...]                                                                            a history of either, newest first

Messages are read from the newest that has some. Requests are interrupts of the middleware `HumanInTheLoopMiddleware`;
its decisions stand in the writes `__resume__` of the checkpoint that was interrupted, so only a history of checkpoints
tells of those that were made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agent_side.neutral import Verdict
from pytest_approvals.errors import HistoryError
from pytest_approvals.histories.conversation import Called, Conversation, Decided, Path, Requested
from pytest_approvals.histories.draft import Draft
from pytest_approvals.histories.shapes import is_objects, optional_text, text_in
from pytest_approvals.journal.arguments import same_arguments

from .langchain import inside, read_message

NAME = "langgraph"

_VERDICTS: dict[str, Verdict] = {"approve": "approve", "reject": "reject", "edit": "edit", "respond": "reject"}
"""What the middleware's decisions mean; who responds gives a result himself, and the call does not run."""


def recognises(document: Any) -> bool | None:
    """Says whether it is of this format; None where it only may be."""
    newest = document[0] if is_objects(document) else document
    return type(newest) is dict and any(True for _ in _message_lists(newest, ()))


def read(document: Any) -> Conversation:
    """
    Reads a state, a checkpoint, or a history of either.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    snapshots = (
        [((place,), each) for place, each in enumerate(document)] if type(document) is list else [((), document)]
    )
    lists = [found for path, each in snapshots for found in _message_lists(each, path)]
    if not lists:
        raise HistoryError("none of its checkpoints has messages")
    path, messages = lists[0]
    draft = Draft(NAME, tells_decisions=type(document) is list and "checkpoint" in document[0])
    reader = _Reader(draft, [ask for at, each in reversed(snapshots) for ask in _asks(each, at)])
    first = inside(messages[0])[0] if is_objects(messages) else ()
    draft.messages(path, messages, reader.message, contents=(*first, "tool_calls"))
    return draft.conversation


def _message_lists(snapshot: Any, path: Path) -> Iterator[tuple[Path, list[Any]]]:
    """Gives the list of messages of a snapshot, if it has one."""
    if type(snapshot) is not dict:
        return
    for names in (("values",), ("checkpoint", "channel_values"), ("channel_values",)):
        held: Any = snapshot
        for name in names:
            held = held.get(name) if type(held) is dict else None
        if type(held) is dict and is_objects(held.get("messages")):
            yield (*path, *names, "messages"), held["messages"]


@dataclass(slots=True, eq=False)
class _Ask:
    """One action that a person is asked about, and what they decided; *at* is its place."""

    id: str
    at: Path
    tool: str
    arguments: Any
    call_id: str | None = None
    decision: Any = None

    def is_about(self, call: Called) -> bool:
        """Whether it may be about a call: the one it names, else one that looks like it."""
        if self.call_id is not None:
            return self.call_id == call.id
        return self.tool == call.tool and same_arguments(self.arguments, call.arguments)


def _asks(snapshot: Any, path: Path) -> Iterator[_Ask]:
    """Gives what the interrupts of one snapshot ask."""
    for at, interrupt, answer in _interrupts(snapshot, path):
        value = interrupt.get("value")
        interrupt_id = optional_text(interrupt, "id") or optional_text(interrupt, "interrupt_id") or "interrupt"
        if type(value) is not dict:
            continue
        answers = answer.get("decisions") if type(answer) is dict else None
        if is_objects(value.get("action_requests")):
            for place, action in enumerate(value["action_requests"]):
                here = (*at, "value", "action_requests", place)
                name = interrupt_id if len(value["action_requests"]) == 1 else f"{interrupt_id}#{place + 1}"
                decision = answers[place] if type(answers) is list and place < len(answers) else None
                yield _Ask(name, here, _text(action, "name", here), action.get("args"), decision=decision)
        elif value.get("type") == "tool_approval":
            here = (*at, "value")
            call_id = optional_text(value, "tool_call_id")
            yield _Ask(interrupt_id, here, _text(value, "name", here), value.get("args"), call_id, answer)


def _text(item: Any, name: str, at: Path) -> str:
    value = item.get(name) if type(item) is dict else None
    if type(value) is not str:
        raise HistoryError("must be a text", at=(*at, name))
    return value


def _interrupts(snapshot: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any], Any]]:
    """Gives the interrupts of a snapshot, each with its place and with what was answered."""
    if type(snapshot) is not dict:
        return
    writes = snapshot.get("pending_writes")
    rows = [row if type(row) is list and len(row) == 3 else [None] * 3 for row in writes if writes] if writes else []
    answers = {row[0]: row[2] for row in rows if row[1] == "__resume__" and type(row[0]) is str}
    for number, (task, channel, value) in enumerate(rows):
        for place, interrupt in enumerate(value if channel == "__interrupt__" and is_objects(value) else ()):
            given = answers.get(task) if type(task) is str else None
            answer = given[place] if type(given) is list and place < len(given) else None
            if type(interrupt) is dict:
                yield (*path, "pending_writes", number, 2, place), interrupt, answer
    yield from _of_state(snapshot, path)


def _of_state(snapshot: dict[str, Any], path: Path) -> Iterator[tuple[Path, dict[str, Any], Any]]:
    """Gives the interrupts of a state; a server lists them by task only."""
    if is_objects(snapshot.get("interrupts")):
        for place, interrupt in enumerate(snapshot["interrupts"]):
            if type(interrupt) is dict:
                yield (*path, "interrupts", place), interrupt, None
        return
    for number, task in enumerate(snapshot["tasks"] if is_objects(snapshot.get("tasks")) else ()):
        held = task.get("interrupts") if type(task) is dict else None
        for place, interrupt in enumerate(held if is_objects(held) else ()):
            if type(interrupt) is dict:
                yield (*path, "tasks", number, "interrupts", place), interrupt, None


class _Reader:
    """The messages of one document, with what was asked about their calls."""

    def __init__(self, draft: Draft, asks: list[_Ask]) -> None:
        self.draft = draft
        self.waiting = asks

    def message(self, item: dict[str, Any], number: int) -> None:
        """Reads one message; what was asked about its calls comes after them."""
        entries = self.draft.entries
        before = len(entries)
        read_message(self.draft, item, number)
        asked = [self._asked_about(entry) for entry in entries[before:] if isinstance(entry, Called)]
        entries += [request for request, _ in filter(None, asked)]
        entries += [decision for _, decision in filter(None, asked) if decision is not None]

    def _asked_about(self, call: Called) -> tuple[Requested, Decided | None] | None:
        ask = next((ask for ask in self.waiting if ask.is_about(call)), None)
        if ask is None:
            return None
        self.waiting.remove(ask)
        number = self.draft.place_beside(ask.at)
        request = Requested(number, -1, ask.id, call.id, ask.tool, ask.arguments)
        return request, _decided(ask, number) if type(ask.decision) is dict else None


def _decided(ask: _Ask, number: int) -> Decided:
    verdict = _VERDICTS.get(str(ask.decision.get("type")), "raw")
    if verdict != "edit":
        return Decided(number, -1, ask.id, verdict, optional_text(ask.decision, "message"))
    action = ask.decision.get("edited_action")
    if type(action) is not dict:
        raise HistoryError("an edit has no edited_action", at=ask.at)
    return Decided(number, -1, ask.id, verdict, tool=text_in(action, "name"), arguments=action.get("args"))
