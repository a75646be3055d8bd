"""
A stored conversation, the same for every format: what it says, in order, and where in the document each part stands.

    Said            a text of the user, the model, or the instructions
    Called          a call of a tool that the model made
    Requested       an approval request about a call
    Decided         a decision about a request
    Resulted        what a call gave, or what the model is told in its place
    Opaque          anything else: reasoning, images, what no reader knows

One element of a document may stand for several of these: a part of a user interface's message holds the call, its
request, the decision and the result. Entries are made by the million, so they are structs of msgspec.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from msgspec import Struct

from pytest_approvals.agent_side.contract.types import Kind, Verdict

JsonPath = tuple[str | int, ...]
"""The names and numbers that lead to a value in a JSON document."""

ResultOutcome = Literal["returned", "failed", "denied", "unknown"]
"""How a result says that it came about; many formats do not tell what ran from what was refused."""


class ConversationEntry(Struct):
    """
    One part of a conversation.

    Attributes:
        message: The number of its message among all messages, from 0; what stands beside them has a higher number.
        content: Its number among the message's contents, from 0; -1 where it is the message itself.
    """

    message: int
    content: int


class TextEntry(ConversationEntry):
    """A text; *role* is `user`, `assistant`, or that of instructions: `system`, `developer`."""

    role: str
    text: str


class CallEntry(ConversationEntry):
    """
    A call as the model made it.

    Attributes:
        id: The call id; None where there is none.
        arguments: As they are stored: an object, or the text that the model sent.
        server: The MCP server, for the kinds `mcp` and `hosted_mcp`.
        flagged: What the copy's own flag says about whether somebody has dealt with it; None where it has no flag.
        agent: The agent whose model made it, where the format says so and it is not the conversation's own.
    """

    id: str | None
    tool: str
    arguments: Any
    kind: Kind = "function"
    server: str | None = None
    flagged: bool | None = None
    agent: str | None = None


class RequestEntry(ConversationEntry):
    """
    An approval request.

    Attributes:
        id: The request's own id; the call id in formats where requests have none.
        call_id: The call that it is about; None where it names none, as for a hosted call, which *is* its request.
        tool, arguments: What it shows.
        stands_for_call: The request is all that is stored of the call while it waits; there is no `CallEntry` before it.
        asks: Somebody has to decide; otherwise the call only waits for one that needs it.
    """

    id: str
    call_id: str | None
    tool: str
    arguments: Any
    kind: Kind = "function"
    server: str | None = None
    flagged: bool | None = None
    agent: str | None = None
    stands_for_call: bool = False
    asks: bool = True


class DecisionEntry(ConversationEntry):
    """
    A decision.

    Attributes:
        id: The request that it answers.
        verdict: `raw` for an answer that is neither yes nor no.
        call_id, tool, arguments: What the decision's own copy of the call says, or what an edit says; None where it
            holds none.
    """

    id: str
    verdict: Verdict
    reason: str | None = None
    call_id: str | None = None
    tool: str | None = None
    arguments: Any = None
    flagged: bool | None = None


class ResultEntry(ConversationEntry):
    """
    A result.

    Attributes:
        call_id: The call whose result it says to be; for a hosted call the id of its request where that is known.
        tool: The tool that it says to come from; None where it names none.
        value: What is stored: a text, or any JSON value.
    """

    call_id: str | None
    tool: str | None
    value: Any
    how: ResultOutcome = "unknown"


class OpaqueEntry(ConversationEntry):
    """A part that plays no role in approvals, or that is not known; *what* is the name the document gives it."""

    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSection:
    """
    Where in the document a run of messages stands.

    Attributes:
        start: The number of its first message.
        path: Where the list of messages stands.
        contents: Where, in a message, the list of its contents stands.
    """

    start: int
    path: JsonPath = ()
    contents: JsonPath = ()


@dataclass(frozen=True, slots=True)
class DocumentNote:
    """Something about a document that is no mistake, and that somebody may want to know; *path* says where."""

    path: JsonPath
    what: str

    def __str__(self) -> str:
        return f"{format_path(self.path)}: {self.what}" if self.path else self.what


def verdict_from_flag(approved: bool) -> Verdict:
    """Gives the verdict of a plain yes or no."""
    return "approve" if approved else "reject"


EntryT = TypeVar("EntryT", bound=ConversationEntry)


@dataclass(slots=True, kw_only=True)
class StoredConversation:
    """
    One stored conversation.

    Attributes:
        format: The name of the format that it was read as.
        entries: In the order of the document; what the state keeps beside the messages comes last.
        length: How many messages there are, those beside the conversation left out.
        sections: In the order of their *start*.
        beside: By number, where something stands that a state keeps beside the messages: requests, decisions.
        tells_decisions: Decisions are part of the format; where they are not, nobody can say who approved what.
        begins_elsewhere: A service keeps what came before, so that answers may stand here without what they answer.
        name: What to call it in a sentence: a file, and a place in it.
    """

    format: str
    entries: list[ConversationEntry] = field(default_factory=list)
    length: int = 0
    sections: Sequence[MessageSection] = (MessageSection(start=0),)
    beside: dict[int, JsonPath] = field(default_factory=dict)
    tells_decisions: bool = True
    begins_elsewhere: bool = False
    notes: list[DocumentNote] = field(default_factory=list)
    name: str = ""

    def of(self, kind: type[EntryT]) -> Iterator[EntryT]:
        """Gives the entries of one kind, in order."""
        return (entry for entry in self.entries if type(entry) is kind)

    def path(self, entry: ConversationEntry) -> JsonPath:
        """Gives where in the document an entry stands."""
        if entry.message in self.beside:
            return self.beside[entry.message]
        section = next(section for section in reversed(self.sections) if section.start <= entry.message)
        message = (*section.path, entry.message - section.start)
        return message if entry.content < 0 else (*message, *section.contents, entry.content)

    def where(self, entry: ConversationEntry) -> str:
        """Gives where an entry stands, for people."""
        if entry.message in self.beside:
            return format_path(self.beside[entry.message])
        return f"message {entry.message}" + (f", content {entry.content}" if entry.content >= 0 else "")


def format_path(path: JsonPath) -> str:
    """
    Gives a path as people write it.

    >>> shown_path(("messages", 2, "contents", 0))
    'messages[2].contents[0]'
    """
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")
