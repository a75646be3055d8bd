"""Which formats there are, and which one a document is of.

A reader is a module with `recognises(document)`, which gives True, False, or None where the document only may be of its
format, and `read(document)`. Texts that two formats write alike are read by the first of them: they mean the same.

The readers, a format a module; `formats.py` says which there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

from pytest_approvals.conversations.histories.conversation import StoredConversation
from pytest_approvals.errors import HistoryError, UnknownName

FORMATS = {
    "meai": "messages of Microsoft.Extensions.AI, and .NET agent sessions",
    "agent_framework": "sessions and messages of Agent Framework for Python",
    "openai_agents": "RunState of OpenAI Agents",
    "chat": "messages of OpenAI chat completions",
    "responses": "items of OpenAI Responses",
    "messages": "messages of Anthropic",
    "langchain": "messages of LangChain",
    "langgraph": "states and checkpoints of LangGraph",
    "pydantic_ai": "message histories of Pydantic AI",
    "ai_sdk": "model messages of the AI SDK",
    "ai_sdk_ui": "UI messages of the AI SDK",
}
"""The formats, in the order in which they are tried."""


class FormatReader(Protocol):
    """What a reader's module holds."""

    def recognises(self, document: Any) -> bool | None:
        """Says whether it is of this format; None where it only may be."""

    def read(self, document: Any) -> StoredConversation:
        """Reads one conversation."""


def get_reader(name: str) -> FormatReader:
    """
    Gives the reader of a format.

    Errors:
        UnknownName: There is none of that name.
    """
    if name not in FORMATS:
        raise UnknownName("format", name, FORMATS)
    return cast("FormatReader", import_module(f"pytest_approvals.conversations.histories.readers.{name}"))


@dataclass(slots=True)
class FormatDetector:
    """
    Finds the reader of each document; what was right for the last one is tried first.

    Attributes:
        named: The format that somebody named; nothing is recognised then.
    """

    named: str | None = None
    _last: FormatReader | None = None

    def reader_of(self, document: Any) -> FormatReader | None:
        """Gives the reader of a document; None where no format is recognised."""
        if self.named is not None:
            return self._named_reader(get_reader(self.named), document)
        if self._last is not None and self._last.recognises(document):
            return self._last
        found = detect_format(document)
        if found is not None:
            self._last = found
        return found

    def _named_reader(self, reader: FormatReader, document: Any) -> FormatReader | None:
        """Gives the reader, but for what is a single message to it."""
        is_message = reader.recognises(document) is False and reader.recognises([document]) is not False
        return None if is_message else reader

    def read(self, document: Any) -> StoredConversation:
        """
        Reads one conversation.

        Errors:
            HistoryError: No format is recognised, or something has the wrong shape.
        """
        reader = self.reader_of(document)
        if reader is None:
            raise HistoryError(f"no known format; name one with --format: {', '.join(FORMATS)}")
        return reader.read(document)


def detect_format(document: Any) -> FormatReader | None:
    """Gives the first reader that is sure, else the first whose format it may be."""
    perhaps = None
    for name in FORMATS:
        reader = get_reader(name)
        answer = reader.recognises(document)
        if answer:
            return reader
        if answer is None and perhaps is None:
            perhaps = reader
    return perhaps
