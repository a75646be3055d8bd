"""Formats of stored conversations, their readers, and recognition of a document's format.

The module of a reader has a table `READERS` with the readers of its formats by name. Texts that two formats write alike
are read by the first of them: they mean the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from pytest_approvals.conversations.histories.conversation import StoredConversation
from pytest_approvals.conversations.histories.reader_kit import FormatReader
from pytest_approvals.errors import HistoryError, UnknownName

FORMATS = {
    "meai": "messages of Microsoft.Extensions.AI, and .NET agent sessions",
    "agent_framework": "sessions and messages of Agent Framework for Python",
    "agno": "runs and sessions of Agno",
    "openai_agents": "RunState of OpenAI Agents",
    "chat": "messages of OpenAI chat completions",
    "responses": "items of OpenAI Responses",
    "messages": "messages of Anthropic",
    "langchain": "messages of LangChain",
    "langgraph": "states and checkpoints of LangGraph",
    "google_adk": "sessions of Google ADK",
    "pydantic_ai": "message histories of Pydantic AI",
    "ai_sdk": "model messages of the AI SDK",
    "ai_sdk_ui": "UI messages of the AI SDK",
    "strands": "messages and file sessions of Strands",
    "autogen": "states and messages of AutoGen",
    "claude_code": "transcripts of Claude Code and the Claude Agent SDK",
    "opencode": "exported sessions of OpenCode",
    "acp": "recordings of the Agent Client Protocol",
    "spans": "traces: spans of OpenTelemetry and OpenAI Agents, runs of LangSmith, observations of Langfuse",
}
"""The formats, in the order in which they are tried."""

_MODULES = {"ai_sdk_ui": "ai_sdk"}
"""The modules of readers that are not named like their format."""


def get_reader(name: str) -> FormatReader:
    """Return the reader of a format, whose module is imported when it is first used.

    Raises:
        UnknownName: No format has that name.
    """
    if name not in FORMATS:
        raise UnknownName("format", name, FORMATS)
    return _load_reader(name)


# Every text without a call is compared with all formats.
@cache
def _load_reader(name: str) -> FormatReader:
    readers: dict[str, FormatReader] = import_module(f"{__name__}.{_MODULES.get(name, name)}").READERS
    return readers[name]


@dataclass(slots=True)
class FormatDetector:
    """Finder of the reader of each document; that of the last document is tried first.

    Attributes:
        format_name: The format that the user named; nothing is recognized then.
    """

    format_name: str | None = None
    _last: FormatReader | None = None

    def find_reader(self, document: Any) -> FormatReader | None:
        """Return the reader of a document; None if its format is unknown."""
        if self.format_name is not None:
            return self._named_reader(get_reader(self.format_name), document)
        # Documents of one file are mostly of one format.
        if self._last is not None and self._last.matches(document):
            return self._last
        reader = detect_format(document)
        if reader is not None:
            self._last = reader
        return reader

    def _named_reader(self, reader: FormatReader, document: Any) -> FormatReader | None:
        """Return the reader, unless the document is a single message to it."""
        is_message = reader.matches(document) is False and reader.matches([document]) is not False
        return None if is_message else reader

    def read(self, document: Any) -> StoredConversation:
        """Read one conversation.

        Raises:
            HistoryError: The format is unknown, or something has the wrong shape.
        """
        reader = self.find_reader(document)
        if reader is None:
            raise HistoryError(f"unknown format; name one with --format: {', '.join(FORMATS)}")
        return reader.read(document)


def detect_format(document: Any) -> FormatReader | None:
    """Return the first reader that is sure, else the first whose format it may be."""
    candidate = None
    for reader in map(_load_reader, FORMATS):
        answer = reader.matches(document)
        if answer:
            return reader
        if answer is None and candidate is None:
            candidate = reader
    return candidate
