"""
RunState of OpenAI Agents: `{"$schemaVersion", "original_input", "session_items", "context": {...}}`.

The items of the run are items of Responses, each wrapped with what the run made of it; an approval item is a request.
Decisions have no place among the items: the context keeps them by tool and call id. They are told before the first
result of a call that was asked about, or at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agent_side.neutral import Verdict
from pytest_approvals.errors import HistoryError
from pytest_approvals.histories.conversation import (
    Conversation,
    Decided,
    Opaque,
    Path,
    Requested,
    Resulted,
    Said,
)
from pytest_approvals.histories.draft import Draft
from pytest_approvals.histories.shapes import object_in, objects_in, optional_text, text_in, word_of

from .responses import entries_of

NAME = "openai_agents"


def recognises(document: Any) -> bool | None:
    """Says whether it is of this format; None where it only may be."""
    return type(document) is dict and "$schemaVersion" in document and "original_input" in document


def read(document: Any) -> Conversation:
    """
    Reads a run's state.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    if not isinstance(document, dict):
        raise HistoryError(f"must be an object, and is {word_of(document)}")
    reader = _Reader(Draft(NAME), list(_decisions(document)))
    draft = reader.draft
    draft.conversation.begins_elsewhere = bool(document.get("previous_response_id") or document.get("conversation_id"))
    given = document.get("original_input")
    if type(given) is str:
        draft.section(("original_input",), 1)
        draft.entries.append(Said(0, -1, "user", given))
    elif type(given) is list:
        draft.messages(("original_input",), given, reader.input)
    name = "session_items" if document.get("session_items") else "generated_items"
    draft.messages((name,), objects_in(document, name), reader.item, contents=("raw_item",))
    reader.decide()
    return draft.conversation


@dataclass(slots=True, eq=False)
class _Decision:
    """What the context says about the calls of a tool: about one, or about all where it has no call id."""

    at: Path
    tool: str
    verdict: Verdict
    call_id: str | None = None
    reason: str | None = None

    def is_about(self, request: Requested) -> bool:
        """Whether it decides about a request."""
        return self.call_id == request.id or (self.call_id is None and self.tool == request.tool)


def _decisions(document: dict[str, Any]) -> Iterator[_Decision]:
    """Gives all decisions, those about single calls first."""
    context = document.get("context")
    if type(context) is not dict:
        return
    records = list(_records(context))
    for at, tool, record in records:
        for name, verdict in (("approved", "approve"), ("rejected", "reject")):
            for place, call_id in enumerate(record[name]) if type(record.get(name)) is list else ():
                if type(call_id) is not str:
                    raise HistoryError("must be a text", at=(*at, name, place))
                reasons = record.get("rejection_messages")
                reason = optional_text(reasons, call_id) if type(reasons) is dict and verdict == "reject" else None
                yield _Decision(
                    (*at, name, place), tool, "approve" if verdict == "approve" else "reject", call_id, reason
                )
    for at, tool, record in records:
        if record.get("approved") is True:
            yield _Decision((*at, "approved"), tool, "always")
        elif record.get("rejected") is True:
            yield _Decision((*at, "rejected"), tool, "never", reason=optional_text(record, "sticky_rejection_message"))


def _records(context: dict[str, Any]) -> Iterator[tuple[Path, str, dict[str, Any]]]:
    """Gives what was decided about each tool; functions have records by agent since schema 1.21."""
    approvals = context.get("approvals")
    for tool, record in approvals.items() if type(approvals) is dict else ():
        if type(record) is dict:
            yield ("context", "approvals", tool), tool, record
    for place, scoped in enumerate(objects_in(context, "function_tool_approvals")):
        at = ("context", "function_tool_approvals", place)
        if type(scoped.get("decision")) is dict:
            yield (*at, "decision"), text_in(scoped, "tool_key"), scoped["decision"]


class _Reader:
    """The items of one run."""

    def __init__(self, draft: Draft, decisions: list[_Decision]) -> None:
        self.draft = draft
        self.decisions = decisions
        self.undecided: dict[str, Requested] = {}

    def input(self, item: dict[str, Any], number: int) -> None:
        """Reads an item that the run was given."""
        self.draft.entries += entries_of(item, number)

    def item(self, item: dict[str, Any], number: int) -> None:
        """Reads an item that the run made."""
        if "raw_item" not in item:
            self.draft.entries.append(Opaque(number, -1, str(item.get("type"))))
            return
        raw = object_in(item, "raw_item")
        if item.get("type") == "tool_approval_item":
            self._request(item, raw, number)
            return
        for entry in entries_of(raw, number):
            if isinstance(entry, Resulted) and entry.call_id in self.undecided:
                self.decide()
            if not isinstance(entry, Requested):  # the run's own approval item tells of it
                self.draft.entries.append(entry)

    def _request(self, item: dict[str, Any], raw: dict[str, Any], number: int) -> None:
        if raw.get("type") in ("mcp_approval_request", "hosted_tool_call"):
            (request,) = entries_of({**raw, "type": "mcp_approval_request"}, number)
            assert isinstance(request, Requested)
        else:
            call_id = text_in(raw, "call_id")
            tool = optional_text(raw, "name") or optional_text(item, "tool_name") or ""
            request = Requested(number, -1, call_id, call_id, tool, raw.get("arguments"))
        self.undecided[request.id] = request
        self.draft.entries.append(request)

    def decide(self) -> None:
        """Tells the decisions about the requests so far."""
        for request in list(self.undecided.values()):
            decision = next((each for each in self.decisions if each.is_about(request)), None)
            if decision is not None:
                del self.undecided[request.id]
                number = self.draft.place_beside(decision.at)
                self.draft.entries.append(Decided(number, -1, request.id, decision.verdict, decision.reason))
