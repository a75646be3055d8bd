"""Stored conversation: its entries in order, the same for every format.

    TextEntry       a text of the user, the model, or the instructions
    CallEntry       a call of a tool that the model made
    RequestEntry    an approval request about a call
    DecisionEntry   a decision about a request
    ExecutionEntry  an execution of a call, which only traces show
    ResultEntry     the result of a call, or the text that the model gets in its place
    OpaqueEntry     anything else: reasoning, images, unknown parts

One element of a document may become several of these: a part of a UI message holds the call, its request, the decision
and the result. Entries are created by the million, so they are structs of msgspec.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Literal, TypeVar

from msgspec import Struct

from pytest_approvals.agent_side.contract.types import Kind, Verdict
from pytest_approvals.errors.printable import shorten
from pytest_approvals.journal.arguments import parse_arguments

JsonPath = tuple[str | int, ...]
"""The names and numbers that lead to a value in a JSON document."""

ResultOutcome = Literal["returned", "failed", "denied", "interrupted", "unknown"]
"""How a result came about; many formats do not distinguish executed calls from refused ones.

What was interrupted has no result, and the model is told that in its place.
"""


# Entries hold parsed JSON and nothing that leads back to them, so the garbage collector need not look at them.
class ConversationEntry(Struct, gc=False):
    """One part of a conversation.

    Attributes:
        message: The number of its message among all messages, from 0; entries outside of messages have higher numbers.
        content: Its number among the message's contents, from 0; -1 if it is the message itself.
    """

    message: int
    content: int


class TextEntry(ConversationEntry):
    """A text; *role* is `user`, `assistant`, or that of instructions: `system`, `developer`."""

    role: str
    text: str


class CallEntry(ConversationEntry):
    """A call as the model made it.

    Attributes:
        id: The call id, if any.
        arguments: As they are stored: an object, or the text that the model sent.
        server: The MCP server, for the kinds `mcp` and `hosted_mcp`.
        flagged: The copy's own flag that the call is handled; None if it has no flag.
        agent: The agent whose model made it, if the format says so and it is not the conversation's own.
    """

    id: str | None
    tool: str
    arguments: Any
    kind: Kind = "function"
    server: str | None = None
    flagged: bool | None = None
    agent: str | None = None


class RequestEntry(ConversationEntry):
    """An approval request.

    Attributes:
        id: The request's own id; the call id in formats whose requests have none.
        call_id: The call that it is about; None if it names none, as for a hosted call, which *is* its request.
        tool: The tool that it shows.
        arguments: The arguments that it shows.
        replaces_call: The request is all that is stored of the call while it waits; there is no `CallEntry` before it.
        needs_decision: Somebody has to decide; otherwise the call only waits for another that needs a decision.
    """

    id: str
    call_id: str | None
    tool: str
    arguments: Any
    kind: Kind = "function"
    server: str | None = None
    flagged: bool | None = None
    agent: str | None = None
    replaces_call: bool = False
    needs_decision: bool = True


class DecisionEntry(ConversationEntry):
    """A decision.

    Attributes:
        id: The request that it answers.
        verdict: `raw` for an answer that is neither yes nor no.
        call_id: The call id in the decision's own copy of the call, if it holds one.
        tool: The tool in that copy, or that of an edit.
        arguments: The arguments in that copy, or those of an edit.
    """

    id: str
    verdict: Verdict
    reason: str | None = None
    call_id: str | None = None
    tool: str | None = None
    arguments: Any = None
    flagged: bool | None = None


class ResultEntry(ConversationEntry):
    """A result.

    Attributes:
        call_id: The call that it names; for a hosted call the id of its request if that is known.
        tool: The tool that it names, if any.
        value: The stored text or JSON value.
        hands_over_to: The agent that the conversation was handed over to, if the result says so.
    """

    call_id: str | None
    tool: str | None
    value: Any
    outcome: ResultOutcome = "unknown"
    hands_over_to: str | None = None


class ExecutionEntry(ConversationEntry):
    """An execution of a tool, as a trace shows it.

    Attributes:
        arguments: What the tool was called with; None if that was not captured.
        outcome: `unknown` if the tool may not have been reached.
        value: What it returned, if that was captured.
    """

    call_id: str | None
    tool: str
    arguments: Any
    outcome: ResultOutcome = "unknown"
    value: Any = None


class OpaqueEntry(ConversationEntry):
    """A part that plays no role in approvals, or an unknown one; *type_name* is its type in the document."""

    type_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSection:
    """The place of a list of messages in the document.

    Attributes:
        start: The number of its first message.
        path: The path of the list.
        contents: The path of the list of contents in a message.
    """

    start: int
    path: JsonPath = ()
    contents: JsonPath = ()


@dataclass(frozen=True, slots=True)
class DocumentNote:
    """An irregularity of a document.

    Attributes:
        path: Its place.
        rule: The rule of the linter that it breaks; empty if it is not a mistake.
        where: Its place in words, if not those for the path.
    """

    path: JsonPath
    text: str
    rule: str = ""
    where: str = ""

    def __str__(self) -> str:
        return f"{format_path(self.path)}: {self.text}" if self.path else self.text


def verdict_from_flag(approved: bool) -> Verdict:
    """Return the verdict of a plain yes or no."""
    return "approve" if approved else "reject"


EntryT = TypeVar("EntryT", bound=ConversationEntry)


@dataclass(slots=True, kw_only=True)
class StoredConversation:
    """One stored conversation.

    Attributes:
        format: The name of the format that it was read as.
        entries: The entries in the order of the document; those outside of messages come last.
        length: The number of messages.
        sections: The lists of messages, in the order of their *start*.
        state_paths: By number, the paths of requests and decisions that a state keeps outside of messages.
        shows_decisions: Decisions are part of the format; otherwise nobody can tell who approved what.
        decided_from: The first message about whose calls decisions are shown; those before it are stored elsewhere.
        is_continuation: A service keeps what came before, so that answers may be here without what they answer.
        shows_executions: Executions are entries; otherwise a result that nobody refused implies one.
        has_whole_responses: A message of the model is a whole response, so that a text in a later one is of another.
        lacks_content: Texts, arguments and results were not captured, as far as is known.
        places: By number, paths and words for messages that are no elements of lists, such as spans.
        notes: Irregularities.
        name: Its name in messages: a file, and a place in it.
    """

    format: str
    entries: list[ConversationEntry] = field(default_factory=list)
    length: int = 0
    sections: Sequence[MessageSection] = (MessageSection(start=0),)
    state_paths: dict[int, JsonPath] = field(default_factory=dict)
    shows_decisions: bool = True
    decided_from: int = 0
    is_continuation: bool = False
    shows_executions: bool = False
    has_whole_responses: bool = False
    lacks_content: bool = False
    places: dict[int, tuple[JsonPath, str]] = field(default_factory=dict)
    notes: list[DocumentNote] = field(default_factory=list)
    name: str = ""

    def of(self, kind: type[EntryT]) -> Iterator[EntryT]:
        """Return the entries of one class, in order."""
        return (entry for entry in self.entries if type(entry) is kind)

    def values(self) -> Iterator[Any]:
        """Iterate over what the conversation says: texts, arguments, reasons and results."""
        for entry in self.entries:
            match entry:
                case TextEntry():
                    yield entry.text
                case CallEntry() | RequestEntry():
                    yield parse_arguments(entry.arguments)
                case DecisionEntry():
                    yield entry.reason
                    yield parse_arguments(entry.arguments)
                case ExecutionEntry():
                    yield parse_arguments(entry.arguments)
                    yield entry.value
                case ResultEntry():
                    yield entry.value

    def path(self, entry: ConversationEntry) -> JsonPath:
        """Return the path of an entry in the document."""
        if entry.message in self.places:
            return self.places[entry.message][0]
        if entry.message in self.state_paths:
            return self.state_paths[entry.message]
        # Sections follow each other, so the last one that starts before the message holds it.
        section = self.sections[bisect_right(self.sections, entry.message, key=attrgetter("start")) - 1]
        message = (*section.path, entry.message - section.start)
        return message if entry.content < 0 else (*message, *section.contents, entry.content)

    def where(self, entry: ConversationEntry) -> str:
        """Return the place of an entry in words."""
        if entry.message in self.places:
            return self.places[entry.message][1]
        if entry.message in self.state_paths:
            return format_path(self.state_paths[entry.message])
        return f"message {entry.message}" + (f", content {entry.content}" if entry.content >= 0 else "")


def format_path(path: JsonPath) -> str:
    """Return a path as JavaScript writes it; long names are shortened.

    >>> format_path(("messages", 2, "contents", 0))
    'messages[2].contents[0]'
    """
    return "".join(f"[{step}]" if isinstance(step, int) else f".{shorten(step)}" for step in path).removeprefix(".")
