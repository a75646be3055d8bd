"""Reader of traces: spans of OpenTelemetry and OpenAI Agents, runs of LangSmith, observations of Langfuse.

A conversation is spread over spans, traces and files, so their documents are collected by `SpanCollector`; what is read
here alone is one document with one conversation.
"""

from __future__ import annotations

from typing import Any

from pytest_approvals.conversations.histories.conversation import StoredConversation
from pytest_approvals.conversations.histories.reader_kit import FormatReader, expected_error
from pytest_approvals.conversations.histories.spans.collector import SpanCollector
from pytest_approvals.conversations.histories.spans.conversation import NAME
from pytest_approvals.conversations.histories.spans.span import holds_spans, read_spans
from pytest_approvals.errors import HistoryError

NO_STEPS = "no spans of models or tools of an agent: expected attributes such as gen_ai.operation.name"


def matches(document: Any) -> bool | None:
    """Return whether it is a span, or holds some; a list of spans is one of documents."""
    return holds_spans(document)


def read(document: Any) -> StoredConversation:
    """Read the first conversation of a document.

    Raises:
        HistoryError: Something has the wrong shape, or there is no conversation in it.
    """
    if not isinstance(document, dict):
        raise HistoryError(expected_error("an object", document))
    collector = SpanCollector()
    for span in read_spans(document):
        collector.add(span, "", 0)
    found = next(collector.conversations(), None)
    collector.close()
    if found is None:
        raise HistoryError(NO_STEPS)
    return found[0]


READERS = {NAME: FormatReader(matches, read, is_spread=True)}
