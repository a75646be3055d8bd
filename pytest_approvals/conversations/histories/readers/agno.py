"""Reader of the runs of Agno.

    {"run_id", "status", "messages": [...], "tools": [...], "requirements": [...]}       a run, `RunOutput.to_dict()`
    {"session_id", "runs": [...]}                                                        a session; or a list of runs

The messages are those of chat completions. A requirement is the request about a call, with the decision of the user;
the tools say what became of each call. A run has the messages of earlier runs once more, which are left out, and a
member of a team has runs of its own, which name that of the team.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    DecisionEntry,
    JsonPath,
    OpaqueEntry,
    RequestEntry,
    ResultEntry,
    ResultOutcome,
    StoredConversation,
    TextEntry,
    verdict_from_flag,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    FormatReader,
    errors_within,
    is_object_list,
    optional_flag,
    optional_objects,
    optional_text,
    require_objects,
    require_text,
)
from pytest_approvals.errors import HistoryError
from pytest_approvals.errors.printable import quote, shorten
from pytest_approvals.protocols.text import text_of

NAME = "agno"

_REJECTED = "Function call was rejected"


def matches(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
    runs = document.get("runs") if type(document) is dict and "run_id" not in document else document
    first = runs[0] if is_object_list(runs) else runs
    return type(first) is dict and type(first.get("run_id")) is str and ("messages" in first or "tools" in first)


def read(document: Any) -> StoredConversation:
    """Read a run, a session or a list of runs.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    reader = _RunReader(ConversationBuilder(NAME, has_whole_responses=True))
    located = list(_iter_runs(document))
    if not located:
        raise HistoryError("it holds no run")
    # A member's run is not one of the conversation, unless only such runs are there.
    own = [each for each in located if not each[1].get("parent_run_id")] or located
    for path, run in own:
        with errors_within(path):
            reader.begin(run, path)
        name = (*path, "messages")
        messages = run.get("messages") or []
        if type(messages) is not list:
            raise HistoryError("expected an array", at=name)
        reader.builder.read_messages(name, messages, reader.message, contents=("tool_calls",))
        reader.end(run, path)
    reader.add_state_paths()
    return reader.builder.conversation


def _iter_runs(document: Any) -> Iterator[tuple[JsonPath, dict[str, Any]]]:
    if type(document) is dict and "run_id" in document:
        yield (), document
        return
    path: JsonPath = () if type(document) is list else ("runs",)
    runs = document if type(document) is list else document.get("runs") if type(document) is dict else None
    if type(runs) is not list:
        raise HistoryError("expected an array of runs", at=path)
    for number, run in enumerate(require_objects(runs, path)):
        yield (*path, number), run


class _RunReader:
    """Reader of the runs of one conversation.

    Attributes:
        asked: The requirements of the current run by call id, each with its path.
        states: What is outside of messages, with its path: numbers follow those of all messages.
    """

    def __init__(self, builder: ConversationBuilder) -> None:
        self.builder = builder
        self.asked: dict[str, tuple[JsonPath, str, dict[str, Any]]] = {}
        self.states: list[tuple[RequestEntry | DecisionEntry, JsonPath]] = []
        self.calls: set[str | None] = set()

    def begin(self, run: dict[str, Any], path: JsonPath) -> None:
        """Read which calls of a run were asked about."""
        self.asked = {}
        for place, tool in enumerate(optional_objects(run, "tools")):
            if optional_flag(tool, "requires_confirmation") or tool.get("confirmed") is not None:
                self._add(tool, (*path, "tools", place), None)
        # What was decided is said there first: a tool is changed by what becomes of it.
        for place, requirement in enumerate(optional_objects(run, "requirements")):
            execution = requirement.get("tool_execution")
            if type(execution) is dict:
                at = (*path, "requirements", place, "tool_execution")
                self._add(execution, at, optional_text(requirement, "id"), requirement.get("confirmation"))

    def _add(self, tool: dict[str, Any], at: JsonPath, request_id: str | None, confirmation: Any = None) -> None:
        call_id = optional_text(tool, "tool_call_id")
        if call_id is not None and type(tool.get("tool_name")) is str:
            confirmed = tool.get("confirmed") if tool.get("confirmed") is not None else confirmation
            self.asked[call_id] = at, request_id or call_id, {**tool, "confirmed": confirmed}

    def message(self, item: dict[str, Any], number: int) -> None:
        """Read one message."""
        if item.get("from_history") is True:
            return
        role, content = require_text(item, "role"), item.get("content")
        entries = self.builder.entries
        if role == "tool":
            text = content if type(content) is str else text_of(content)
            call_id, tool = optional_text(item, "tool_call_id"), optional_text(item, "tool_name")
            note = self.asked[call_id][2].get("confirmation_note") if call_id in self.asked else None
            is_refusal = text.startswith(_REJECTED) or text == note
            entries.append(
                ResultEntry(number, -1, call_id, tool, text, "denied" if is_refusal else _read_outcome(item))
            )
            return
        if content:
            entries.append(TextEntry(number, -1, role, content if type(content) is str else text_of(content)))
        before = len(entries)
        self.builder.read_contents(("tool_calls",), item.get("tool_calls"), number, _read_call)
        calls = [entry for entry in entries[before:] if isinstance(entry, CallEntry)]
        self.calls |= {call.id for call in calls}
        asked = [self.asked[call.id] for call in calls if call.id in self.asked]
        entries += [self._request(*each) for each in asked]
        entries += [self._decision(*each) for each in asked if type(each[2]["confirmed"]) is bool]

    def _request(self, at: JsonPath, request_id: str, tool: dict[str, Any]) -> RequestEntry:
        entry = RequestEntry(-1, -1, request_id, tool["tool_call_id"], tool["tool_name"], tool.get("tool_args"))
        self.states.append((entry, at))
        return entry

    def _decision(self, at: JsonPath, request_id: str, tool: dict[str, Any]) -> DecisionEntry:
        verdict = verdict_from_flag(tool["confirmed"])
        note = tool.get("confirmation_note")
        entry = DecisionEntry(-1, -1, request_id, verdict, note if type(note) is str else None)
        self.states.append((entry, at))
        return entry

    def end(self, run: dict[str, Any], path: JsonPath) -> None:
        """Note what a run says must be there, and is not."""
        required = {
            tool["tool_execution"].get("tool_call_id")
            for tool in optional_objects(run, "requirements")
            if type(tool.get("tool_execution")) is dict
        }
        for place, requirement in enumerate(optional_objects(run, "requirements")):
            execution = requirement.get("tool_execution")
            # Those of a member of a team are about calls of its own run.
            is_own = not (requirement.get("member_run_id") or requirement.get("member_agent_id"))
            if type(execution) is dict and is_own and execution.get("tool_call_id") not in self.calls:
                required_id, tool_name = str(execution.get("tool_call_id")), str(execution.get("tool_name"))
                what = f"call {quote(required_id)} of {shorten(tool_name)}"
                text = f"the requirement is about {what}, which the model did not make"
                self.builder.add_note((*path, "requirements", place), text, "request-shows-the-call")
        for place, tool in enumerate(optional_objects(run, "tools")):
            call_id, name = tool.get("tool_call_id"), shorten(str(tool.get("tool_name")))
            at = (*path, "tools", place)
            waits = tool.get("requires_confirmation") is True and tool.get("confirmed") is None
            if run.get("status") == "PAUSED" and "requirements" in run and waits and call_id not in required:
                text = f"call {quote(str(call_id))} of {name} waits for a decision, and has no requirement"
                self.builder.add_note(at, text, "pending-survives")
            if call_id not in self.calls and tool.get("result") is not None:
                text = f"{name} ran as call {quote(str(call_id))}, which the model did not make"
                self.builder.add_note(at, text, "result-matches-its-call")

    def add_state_paths(self) -> None:
        """Give numbers to what is outside of messages."""
        for entry, at in self.states:
            entry.message = self.builder.add_state_path(at)


def _read_outcome(item: dict[str, Any]) -> ResultOutcome:
    failed = item.get("tool_call_error")
    return "unknown" if type(failed) is not bool else "failed" if failed else "returned"


def _read_call(item: dict[str, Any], message: int, place: int) -> CallEntry | OpaqueEntry:
    call = item.get("function")
    if type(call) is not dict:
        return OpaqueEntry(message, place, str(item.get("type")))
    return CallEntry(message, place, optional_text(item, "id"), require_text(call, "name"), call.get("arguments"))


READERS = {NAME: FormatReader(matches, read)}
