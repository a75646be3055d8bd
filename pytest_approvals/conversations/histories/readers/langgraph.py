"""Reader of LangGraph: checkpoints and states, exported as JSON.

    {"values": {"messages": [...]}, "next": [...], "interrupts": [...]}              a state, of a graph or a server
    {"checkpoint": {"channel_values": {"messages": [...]}}, "pending_writes": [...]} a checkpoint
    [...]                                                                            a history of either, newest first

Messages are read from the newest that has some. Requests are interrupts of the middleware `HumanInTheLoopMiddleware`;
its decisions are in the writes `__resume__` of the checkpoint that was interrupted, so only a history of checkpoints
shows past decisions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agent_side.contract.types import Verdict
from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    DecisionEntry,
    JsonPath,
    RequestEntry,
    ResultEntry,
    StoredConversation,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    FormatReader,
    errors_within,
    is_object_list,
    optional_list,
    optional_text,
    require_object,
    require_objects,
    require_text,
)
from pytest_approvals.conversations.histories.readers.langchain import read_message, unwrap_message
from pytest_approvals.errors import HistoryError
from pytest_approvals.errors.printable import quote, shorten
from pytest_approvals.journal.arguments import arguments_key, arguments_match

NAME = "langgraph"

_AFTER_MODEL = ".after_model"
"""How the names of nodes of middleware end that looks at what the model said."""

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
    documents = document if type(document) is list else [document]
    paths: list[JsonPath] = [(index,) for index in range(len(documents))] if type(document) is list else [()]
    snapshots = [_enter_node(snapshot, path) for path, snapshot in zip(paths, documents, strict=True)]
    lists = [located for path, snapshot in snapshots for located in _iter_message_lists(snapshot, path)]
    if not lists:
        raise HistoryError("none of its checkpoints has messages")
    path, messages = lists[0]
    shows_decisions = type(document) is list and "checkpoint" in document[0]
    builder = ConversationBuilder(NAME, shows_decisions=shows_decisions, has_whole_responses=True)
    # The oldest first, in the order of the calls in the messages.
    actions = [action for path, snapshot in reversed(snapshots) for action in _read_actions(snapshot, path)]
    reader = _CheckpointReader(builder, actions)
    first = unwrap_message(messages[0])[0] if is_object_list(messages) else ()
    builder.read_messages(path, messages, reader.message, contents=(*first, "tool_calls"))
    newest_path, newest = snapshots[0]
    if lists[0][0][: len(newest_path)] == newest_path:
        _note_losses(newest, newest_path, reader)
    return builder.conversation


def _enter_node(snapshot: Any, path: JsonPath) -> tuple[JsonPath, Any]:
    """Return the state of the agent that waits in a node and works on the messages of its graph, else the snapshot."""
    own = _message_ids(snapshot, path)
    tasks = snapshot.get("tasks") if type(snapshot) is dict else None
    for number, task in enumerate(tasks if own and is_object_list(tasks) else ()):
        inner = task.get("state") if type(task) is dict else None
        at = (*path, "tasks", number, "state")
        if own & _message_ids(inner, at):
            return _enter_node(inner, at)
    return path, snapshot


def _message_ids(snapshot: Any, path: JsonPath) -> set[str]:
    messages = [message for _, found in _iter_message_lists(snapshot, path) for message in found]
    return {each["id"] for each in messages if type(each) is dict and type(each.get("id")) is str}


def _note_losses(snapshot: Any, path: JsonPath, reader: _CheckpointReader) -> None:
    """Note what the newest snapshot says must be there, and is not.

    What waits for a decision is about calls in its messages; a state lists it a second time, by task; and the
    middleware writes for each action which decisions it allows.
    """
    for action in reader.left if _waits_itself(snapshot) else ():
        if action.at[: len(path)] == path and action.decision is None and action.call_id not in reader.settled:
            text = f"{shorten(action.tool)} waits for a decision, and no call of it is among the messages"
            reader.builder.add_note(action.at, text, "history-not-rewritten")
    for names, interrupt, _ in _iter_interrupts(snapshot):
        value = interrupt.get("value")
        actions = value.get("action_requests") if type(value) is dict else None
        configs = value.get("review_configs") if type(value) is dict else None
        if type(actions) is list and type(configs) is list:
            missing = _names(configs, "action_name") - _names(actions, "name")
            for tool in sorted(missing):
                text = f"decisions about {shorten(tool)} are allowed, and no request of it is listed"
                reader.builder.add_note((*path, *names, "value", "action_requests"), text, "pending-survives")
    listed, by_task = snapshot.get("interrupts"), snapshot.get("tasks")
    if type(listed) is list and is_object_list(by_task):
        held = [each for task in by_task for each in optional_list(task, "interrupts")]
        for place, interrupt in enumerate(held):
            if interrupt not in listed:
                text = f"interrupt {place + 1} of the tasks is not among those that the state lists"
                reader.builder.add_note((*path, "interrupts"), text, "pending-survives")


def _waits_itself(snapshot: dict[str, Any]) -> bool:
    """Return whether the middleware of the conversation's own agent waits, and not an agent in a node or in a tool."""
    nodes = snapshot.get("next")
    checkpoint = snapshot.get("checkpoint")
    channels = checkpoint.get("channel_values") if type(checkpoint) is dict else None
    if type(nodes) is not list:
        nodes = [name.removeprefix("branch:to:") for name in channels] if type(channels) is dict else []
    return any(type(name) is str and name.endswith(_AFTER_MODEL) for name in nodes)


def _names(items: list[Any], name: str) -> set[str]:
    """Return the texts of one name in the objects of a list."""
    return {item[name] for item in items if type(item) is dict and type(item.get(name)) is str}


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
    """One action of an interrupt, and the decision about it.

    Attributes:
        at: Its path.
        call_id: The call that it names.
        asked_id: The call that it is about, as its own snapshot shows.
    """

    id: str
    at: JsonPath
    tool: str
    arguments: Any
    call_id: str | None = None
    decision: DecisionEntry | None = None
    asked_id: str | None = None


def _read_actions(snapshot: Any, path: JsonPath) -> list[_InterruptedAction]:
    """Return the actions in the interrupts of one snapshot."""
    with errors_within(path):
        interrupts = list(_iter_interrupts(snapshot))
    actions: list[_InterruptedAction] = []
    for names, interrupt, answer in interrupts:
        at = (*path, *names)
        with errors_within(at):
            actions += _iter_actions(interrupt, answer, at)
    if actions:
        _name_calls(actions, snapshot, path)
    return actions


def _name_calls(actions: list[_InterruptedAction], snapshot: Any, path: JsonPath) -> None:
    """Give actions the ids of the calls that they are about: those in the last reply of their own snapshot.

    A later snapshot may hold the call as an edit has rewritten it.
    """
    for _, messages in _iter_message_lists(snapshot, path):
        items = [unwrap_message(message)[1] for message in reversed(messages) if type(message) is dict]
        calls: list[dict[str, Any]] = next(
            (item["tool_calls"] for item in items if is_object_list(item.get("tool_calls"))), []
        )
        left = [call for call in calls if type(call.get("id")) is str]
        for action in actions:
            shown = (action.tool, arguments_key(action.arguments))
            same = (call for call in left if (call.get("name"), arguments_key(call.get("args"))) == shown)
            call = next(same, None)
            if call is not None:
                action.asked_id = call["id"]
                left.remove(call)


def _iter_actions(interrupt: dict[str, Any], answer: Any, at: JsonPath) -> Iterator[_InterruptedAction]:
    """Yield the actions of one interrupt."""
    value = interrupt.get("value")
    if type(value) is not dict:
        return
    interrupt_id = optional_text(interrupt, "id") or optional_text(interrupt, "interrupt_id") or "interrupt"
    if is_object_list(value.get("action_requests")):
        names = ("value", "action_requests")
        actions = require_objects(value["action_requests"], names)
        answers = answer.get("decisions") if type(answer) is dict else None
        for place, action in enumerate(actions):
            name = interrupt_id if len(actions) == 1 else f"{interrupt_id}#{place + 1}"
            decision = answers[place] if type(answers) is list and place < len(answers) else None
            with errors_within((*names, place)):
                tool = require_text(action, "name")
            yield _InterruptedAction(
                name, (*at, *names, place), tool, action.get("args"), decision=_read_decision(name, decision)
            )
    elif value.get("type") == "tool_approval":
        with errors_within(("value",)):
            call_id, tool = optional_text(value, "tool_call_id"), require_text(value, "name")
        yield _InterruptedAction(
            interrupt_id, (*at, "value"), tool, value.get("args"), call_id, _read_decision(interrupt_id, answer)
        )


def _read_decision(interrupt_id: str, answer: Any) -> DecisionEntry | None:
    """Return a decision, whose place is not known yet."""
    if type(answer) is not dict:
        return None
    verdict = _VERDICTS.get(str(answer.get("type")), "raw")
    if verdict != "edit":
        return DecisionEntry(-1, -1, interrupt_id, verdict, optional_text(answer, "message"))
    edited = require_object(answer, "edited_action")
    return DecisionEntry(-1, -1, interrupt_id, verdict, tool=require_text(edited, "name"), arguments=edited.get("args"))


def _iter_interrupts(snapshot: Any) -> Iterator[tuple[JsonPath, dict[str, Any], Any]]:
    """Yield the interrupts of a snapshot, each with its path in it and its answer."""
    if type(snapshot) is not dict:
        return
    # A write is [id of the task, channel, value]; blanks in place of others keep the numbers in paths right.
    writes = optional_list(snapshot, "pending_writes")
    rows = [row if type(row) is list and len(row) == 3 else [None] * 3 for row in writes]
    answers = {row[0]: row[2] for row in rows if row[1] == "__resume__" and type(row[0]) is str}
    for number, (task, channel, value) in enumerate(rows):
        for place, interrupt in enumerate(value if channel == "__interrupt__" and is_object_list(value) else ()):
            resumed = answers.get(task) if type(task) is str else None
            answer = resumed[place] if type(resumed) is list and place < len(resumed) else None
            if type(interrupt) is dict:
                yield ("pending_writes", number, 2, place), interrupt, answer
    yield from _iter_state_interrupts(snapshot)


def _iter_state_interrupts(snapshot: dict[str, Any]) -> Iterator[tuple[JsonPath, dict[str, Any], Any]]:
    """Yield the interrupts of a state; a server lists them by task only."""
    if is_object_list(snapshot.get("interrupts")):
        for place, interrupt in enumerate(snapshot["interrupts"]):
            if type(interrupt) is dict:
                yield ("interrupts", place), interrupt, None
        return
    for number, task in enumerate(snapshot["tasks"] if is_object_list(snapshot.get("tasks")) else ()):
        held = task.get("interrupts") if type(task) is dict else None
        for place, interrupt in enumerate(held if is_object_list(held) else ()):
            if type(interrupt) is dict:
                yield ("tasks", number, "interrupts", place), interrupt, None


class _CheckpointReader:
    """Reader of the messages of one document, with the actions about their calls."""

    def __init__(self, builder: ConversationBuilder, actions: list[_InterruptedAction]) -> None:
        self.builder = builder
        # By the call that they name, else by what they show; each list in the order of the document.
        self.waiting: dict[Hashable, deque[tuple[int, _InterruptedAction]]] = {}
        # Those with an edit, by the call that they were about.
        self.edited: dict[str, list[_InterruptedAction]] = {}
        for number, action in enumerate(actions):
            shown = (action.tool, arguments_key(action.arguments))
            key = shown if action.call_id is None else action.call_id
            self.waiting.setdefault(key, deque()).append((number, action))
            if action.asked_id is not None and action.decision is not None and action.decision.verdict == "edit":
                self.edited.setdefault(action.asked_id, []).append(action)

    @property
    def left(self) -> list[_InterruptedAction]:
        """The actions about no call so far."""
        return [action for actions in self.waiting.values() for _, action in actions]

    @property
    def settled(self) -> set[str | None]:
        """The ids of the calls that have results."""
        return {entry.call_id for entry in self.builder.entries if isinstance(entry, ResultEntry)}

    def message(self, item: dict[str, Any], number: int) -> None:
        """Read one message; requests and decisions about its calls come after them."""
        entries = self.builder.entries
        before = len(entries)
        read_message(self.builder, item, number)
        if not self.waiting:
            return
        approvals = [self._find_approval(entry) for entry in entries[before:] if isinstance(entry, CallEntry)]
        entries += [request for request, _ in filter(None, approvals)]
        entries += [decision for _, decision in filter(None, approvals) if decision is not None]

    def _find_approval(self, call: CallEntry) -> tuple[RequestEntry, DecisionEntry | None] | None:
        action = self._find_action(call)
        if action is None:
            return None
        self._restore_call(call, action)
        number = self.builder.add_state_path(action.at)
        request = RequestEntry(number, -1, action.id, call.id, action.tool, action.arguments)
        if action.decision is not None:
            action.decision.message = number
        return request, action.decision

    def _restore_call(self, call: CallEntry, action: _InterruptedAction) -> None:
        """Give a call that an edit has rewritten the arguments that the model sent, and note it.

        Releases of LangChain before 1.4.2 write the edit into the model's message.
        """
        if _has_become(call, action):
            text = f"call {quote(call.id or '')} of {shorten(call.tool)} was rewritten by the edit of its request"
            self.builder.add_note(
                action.at, f"{text}, so the model reads what it did not send", "history-not-rewritten"
            )
            call.tool, call.arguments = action.tool, action.arguments

    def _find_action(self, call: CallEntry) -> _InterruptedAction | None:
        """Remove and return the first action that may be about a call: it names the call, or shows an equal one."""
        named = self.waiting.get(call.id) if call.id is not None else None
        equal = self.waiting.get((call.tool, arguments_key(call.arguments)))
        # Numbers differ, so that actions are never compared.
        found = min((actions for actions in (named, equal) if actions), default=None)
        return found.popleft()[1] if found is not None else self._find_rewritten(call)

    def _find_rewritten(self, call: CallEntry) -> _InterruptedAction | None:
        """Return the first action with an edit that a call has become."""
        waiting = self.edited.get(call.id or "", [])
        for place, action in enumerate(waiting):
            if _has_become(call, action):
                return waiting.pop(place)
        return None


def _has_become(call: CallEntry, action: _InterruptedAction) -> bool:
    """Return whether a call is not what was asked about, and is what an edit has made of it."""
    edit = action.decision
    if edit is None or edit.verdict != "edit" or arguments_match(call.arguments, action.arguments):
        return False
    return arguments_match(call.arguments, edit.arguments)


READERS = {NAME: FormatReader(matches, read)}
