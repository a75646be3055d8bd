"""Reader of the RunState of OpenAI Agents, for Python and for JavaScript.

    {"$schemaVersion", "original_input", "session_items", "context": {...}}

The items of the run are items of Responses, each wrapped with what the run made of it; an approval item is a request.
Decisions are not items: the context keeps them by tool and call id. They are read as if made before the first result of
a call with a request, or at the end.
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
    OpaqueEntry,
    RequestEntry,
    ResultEntry,
    StoredConversation,
    TextEntry,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    FormatReader,
    errors_within,
    expected_error,
    may_be_refusal,
    optional_objects,
    optional_text,
    require_object,
    require_text,
)
from pytest_approvals.conversations.histories.readers.responses import read_item
from pytest_approvals.errors import HistoryError
from pytest_approvals.errors.printable import quote, shorten
from pytest_approvals.journal.arguments import parse_arguments

NAME = "openai_agents"


@dataclass(frozen=True, slots=True, kw_only=True)
class _FieldNames:
    """The names of a state's fields; of the lists of *items* the first that is not empty counts."""

    input: str
    items: tuple[str, ...]
    raw: str
    scoped: str
    reasons: str
    before: tuple[str, ...]
    step: str
    response: str


_PYTHON = _FieldNames(
    input="original_input",
    items=("session_items", "generated_items"),
    raw="raw_item",
    scoped="function_tool_approvals",
    reasons="rejection_messages",
    before=("previous_response_id", "conversation_id"),
    step="current_step",
    response="last_model_response",
)
_JAVASCRIPT = _FieldNames(
    input="originalInput",
    items=("generatedItems",),
    raw="rawItem",
    scoped="functionApprovals",
    reasons="messages",
    before=("previousResponseId", "conversationId"),
    step="currentStep",
    response="lastModelResponse",
)


def matches(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
    if type(document) is not dict or "$schemaVersion" not in document:
        return False
    return _PYTHON.input in document or _JAVASCRIPT.input in document


def read(document: Any) -> StoredConversation:
    """Read a run's state.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    if not isinstance(document, dict):
        raise HistoryError(expected_error("an object", document))
    names = _JAVASCRIPT if _JAVASCRIPT.input in document else _PYTHON
    reader = _RunStateReader(ConversationBuilder(NAME), names, list(_iter_decisions(document, names)))
    builder = reader.builder
    builder.conversation.is_continuation = any(document.get(name) for name in names.before)
    value = document.get(names.input)
    if type(value) is str:
        builder.begin_section((names.input,), 1)
        builder.entries.append(TextEntry(0, -1, "user", value))
    elif type(value) is list:
        builder.read_messages((names.input,), value, reader.read_input)
        builder.conversation.decided_from = len(value)
    name = next((name for name in names.items if document.get(name)), names.items[-1])
    builder.read_messages((name,), optional_objects(document, name), reader.read_item, contents=(names.raw,))
    reader.add_decisions()
    _note_losses(document, names, reader)
    return builder.conversation


def _note_losses(document: dict[str, Any], names: _FieldNames, reader: _RunStateReader) -> None:
    """Note the calls that one list of the state holds and another one lacks.

    A state has the calls of the model's last response, an item for each of them, and a list of what waits for a
    decision. Calls of agents that run as tools wait in that list, too, and have no items here.
    """
    step = document.get(names.step)
    if type(step) is not dict or step.get("type") not in ("next_step_interruption", "next_step_final_output"):
        return
    called = dict(_iter_calls(document.get(names.response), names))
    builder, entries = reader.builder, reader.builder.entries
    known = {entry.id for entry in entries if isinstance(entry, CallEntry)}
    requested = {entry.id: entry for entry in entries if isinstance(entry, RequestEntry) and entry.kind == "function"}
    for call_id, (path, tool) in called.items():
        if call_id not in known and call_id not in requested:
            text = f"call {quote(call_id)} of {shorten(tool)} is in the model's last response, and not among the items"
            builder.add_note(path, text, "history-not-rewritten")
    if step["type"] != "next_step_interruption":
        return
    path = (names.step, "data", "interruptions")
    asked = _read_waiting(step, names)
    answered = {entry.call_id for entry in entries if isinstance(entry, ResultEntry)}
    settled = answered | set(reader.of_calls)
    for call_id, request in requested.items():
        if call_id not in asked and call_id not in settled and request.tool not in reader.of_tools:
            text = f"call {quote(call_id)} of {shorten(request.tool)} waits for a decision, and is not listed here"
            builder.add_note(path, text, "pending-survives")
    for call_id in sorted(asked & set(called) - set(reader.listed) - answered):
        text = f"call {quote(call_id)} of {shorten(called[call_id][1])} is listed as one that was asked about"
        builder.add_note(path, f"{text}, and has no item that says so", "pending-survives")
    if asked <= set(called):
        for call_id in sorted(reader.tool_calls & set(called) - asked - settled - set(requested)):
            tool = called[call_id][1]
            if tool not in reader.of_tools:
                text = f"call {quote(call_id)} of {shorten(tool)} has no result, and nobody is asked about it"
                builder.add_note(path, text, "pending-survives")


def _iter_calls(response: Any, names: _FieldNames) -> Iterator[tuple[str, tuple[JsonPath, str]]]:
    """Yield the id of each function call of a response, with its path and its tool."""
    output = response.get("output") if type(response) is dict else None
    for place, item in enumerate(output if type(output) is list else ()):
        call = _to_responses_item(item) if type(item) is dict else {}
        if call.get("type") == "function_call" and type(call.get("call_id")) is str:
            yield call["call_id"], ((names.response, "output", place), str(call.get("name")))


def _read_waiting(step: dict[str, Any], names: _FieldNames) -> set[str]:
    """Return the ids of the calls that the state lists as waiting."""
    data = step.get("data")
    listed = data.get("interruptions") if type(data) is dict else None
    raws = [
        item[names.raw] for item in (listed if type(listed) is list else ()) if type(item) is dict and names.raw in item
    ]
    calls = [_to_responses_item(raw) for raw in raws if type(raw) is dict]
    return {value for call in calls if type(value := call.get("call_id", call.get("id"))) is str}


_REJECTED = "Tool execution was not approved."
"""What the model is told of a call that was rejected without a reason."""


@dataclass(slots=True, eq=False)
class _StoredDecision:
    """A decision in the context: about one call, or about all of a tool if it has no call id."""

    at: JsonPath
    tool: str
    verdict: Verdict
    call_id: str | None = None
    reason: str | None = None


def _iter_decisions(document: dict[str, Any], names: _FieldNames) -> Iterator[_StoredDecision]:
    """Yield all decisions, those about single calls first."""
    context = document.get("context")
    if type(context) is not dict:
        return
    records = list(_iter_records(context, names))
    for at, tool, record in records:
        for name, verdict in (("approved", "approve"), ("rejected", "reject")):
            for place, call_id in enumerate(record[name]) if type(record.get(name)) is list else ():
                if type(call_id) is not str:
                    raise HistoryError("expected a string", at=(*at, name, place))
                reasons = record.get(names.reasons)
                with errors_within((*at, names.reasons)):
                    reason = optional_text(reasons, call_id) if type(reasons) is dict else None
                yield _StoredDecision(
                    (*at, name, place), tool, "approve" if verdict == "approve" else "reject", call_id, reason
                )
    for at, tool, record in records:
        if record.get("approved") is True:
            yield _StoredDecision((*at, "approved"), tool, "always")
        elif record.get("rejected") is True:
            yield _StoredDecision(
                (*at, "rejected"), tool, "never", reason=optional_text(record, "sticky_rejection_message")
            )


def _iter_records(context: dict[str, Any], names: _FieldNames) -> Iterator[tuple[JsonPath, str, dict[str, Any]]]:
    """Yield the record of each tool; functions have records by agent since schema 1.21."""
    yield from _iter_tool_records(context.get("approvals"), ("context", "approvals"))
    for place, scoped in enumerate(optional_objects(context, names.scoped)):
        at = ("context", names.scoped, place)
        yield from _iter_tool_records(scoped.get("approvals"), (*at, "approvals"))
        if type(scoped.get("decision")) is dict:
            yield (*at, "decision"), require_text(scoped, "tool_key"), scoped["decision"]


def _iter_tool_records(approvals: Any, at: JsonPath) -> Iterator[tuple[JsonPath, str, dict[str, Any]]]:
    """Yield the records of an object whose keys are names of tools, or JSON lists that end with them."""
    for key, record in approvals.items() if type(approvals) is dict else ():
        if type(record) is dict:
            parts = parse_arguments(key)
            yield (*at, key), str(parts[-1]) if type(parts) is list and parts else key, record


class _RunStateReader:
    """Reader of the items of one run.

    Attributes:
        of_calls: The decisions about single calls, by call id.
        of_tools: The decisions about all calls of a tool, by its name.
        undecided: The ids of the requests that no decision follows yet.
        decidable: Those of them that the state has a decision about, by id.
        calls: Calls that the state has a decision about, and no request yet, by id.
        standing: The tools of which a call is known that a standing decision was made about.
        tool_calls: The ids of the calls that the run took for those of tools, not of hand-offs.
        listed: The tools of the requests that have an item, by id.
    """

    def __init__(self, builder: ConversationBuilder, names: _FieldNames, decisions: list[_StoredDecision]) -> None:
        self.builder = builder
        self.names = names
        self.of_calls: dict[str, _StoredDecision] = {}
        self.of_tools: dict[str, _StoredDecision] = {}
        for decision in decisions:
            if decision.call_id is None:
                self.of_tools.setdefault(decision.tool, decision)
                continue
            first = self.of_calls.setdefault(decision.call_id, decision)
            # Records of other tools may be about other calls of that id.
            if first.at[:-2] == decision.at[:-2] and first.verdict != decision.verdict:
                text = f"call {quote(decision.call_id)} of {shorten(decision.tool)} is both approved and rejected"
                builder.add_note(decision.at, text, "contradiction-not-executed")
        self.undecided: set[str] = set()
        self.decidable: dict[str, tuple[RequestEntry, _StoredDecision]] = {}
        self.calls: dict[str, CallEntry] = {}
        self.tool_calls: set[str] = set()
        self.listed: dict[str, str] = {}
        self.standing: set[str] = set()

    def read_input(self, item: dict[str, Any], number: int) -> None:
        """Read an item of the run's input."""
        self.builder.entries += read_item(_to_responses_item(item), number)

    def read_item(self, item: dict[str, Any], number: int) -> None:
        """Read an item that the run generated."""
        if self.names.raw not in item:
            self.builder.entries.append(OpaqueEntry(number, -1, str(item.get("type"))))
            return
        raw = _to_responses_item(require_object(item, self.names.raw))
        if item.get("type") == "tool_approval_item":
            self._request(item, raw, number)
            return
        for entry in read_item(raw, number):
            if isinstance(entry, CallEntry) and entry.id is not None and item.get("type") == "tool_call_item":
                self.tool_calls.add(entry.id)
            if isinstance(entry, CallEntry) and entry.id is not None and self._is_decided(entry):
                self.calls[entry.id] = entry
            elif isinstance(entry, ResultEntry):
                if entry.call_id in self.undecided or entry.call_id in self.calls:
                    self.add_decisions()
                self._read_outcome(entry)
            if not isinstance(entry, RequestEntry):  # the run's own approval item is read instead
                self.builder.entries.append(entry)

    def _is_decided(self, call: CallEntry) -> bool:
        """Return whether somebody decided about a call, as far as the state shows it.

        A standing decision about a tool was made about a call of it: the first one without a decision of its own.
        """
        if call.id in self.of_calls:
            return True
        if call.tool not in self.of_tools or call.tool in self.standing:
            return False
        self.standing.add(call.tool)
        return True

    def _read_outcome(self, result: ResultEntry) -> None:
        """Tell whether the tool ran from what a rejected call is told: the reason, or a text of the library."""
        call_id = result.call_id or ""
        decision = self.of_calls.get(call_id) or self.of_tools.get(self.listed.get(call_id, ""))
        if result.value == _REJECTED:
            result.outcome = "denied"
        elif decision is not None and decision.reason is not None:
            result.outcome = "denied" if result.value == decision.reason else "returned"
        elif decision is not None and decision.verdict in ("reject", "never"):
            # An application may have its own text for rejections.
            result.outcome = "unknown" if may_be_refusal(result.value) else "returned"

    def _request(self, item: dict[str, Any], raw: dict[str, Any], number: int) -> None:
        if raw.get("type") == "mcp_approval_request":
            (request,) = read_item(raw, number)
            assert isinstance(request, RequestEntry)
        else:
            call_id = require_text(raw, "call_id")
            tool = optional_text(raw, "name") or optional_text(item, "tool_name") or ""
            request = RequestEntry(number, -1, call_id, call_id, tool, raw.get("arguments"))
        self.listed[request.id] = request.tool
        self.calls.pop(request.id, None)
        if request.id not in self.of_calls:
            self.standing.add(request.tool)
        self._add_request(request)

    def _add_request(self, request: RequestEntry) -> None:
        self.builder.entries.append(request)
        self.undecided.add(request.id)
        decision = self.of_calls.get(request.id) or self.of_tools.get(request.tool)
        if decision is not None:
            self.decidable[request.id] = request, decision

    def add_decisions(self) -> None:
        """Add the decisions about the requests so far, and the requests that only a decision shows."""
        for call_id, call in self.calls.items():
            decision = self.of_calls.get(call_id) or self.of_tools[call.tool]
            number = self.builder.add_state_path(decision.at)
            self._add_request(RequestEntry(number, -1, call_id, call_id, call.tool, call.arguments))
        self.calls.clear()
        for request, decision in self.decidable.values():
            number = self.builder.add_state_path(decision.at)
            reason = decision.reason if decision.verdict in ("reject", "never") else None
            self.builder.entries.append(DecisionEntry(number, -1, request.id, decision.verdict, reason))
        self.undecided.difference_update(self.decidable)
        self.decidable.clear()


def _to_responses_item(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item of the JavaScript library as one of Responses; one of Responses as it is."""
    if item.get("type") == "hosted_tool_call" and type(item.get("providerData")) is dict:
        return {**item, **item["providerData"]}
    if "callId" not in item:
        return item
    converted = {**item, "call_id": item["callId"]}
    if item.get("type") == "function_call_result":
        output = item.get("output")
        value = output.get("text", output) if isinstance(output, dict) else output
        return {**converted, "type": "function_call_output", "output": value}
    return converted


READERS = {NAME: FormatReader(matches, read)}
