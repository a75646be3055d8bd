"""Collector of spans: the steps of all files, kept outside of memory, and put together by their ids.

Spans of one trace belong together, and traces that have an id of a conversation or a random call id in common; traces
in different files only if that id looks random, too. Only these ids stay in memory, and the steps of the conversation
that is read; the others are in a temporary file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from pytest_approvals.conversations.histories.conversation import JsonPath, StoredConversation
from pytest_approvals.conversations.histories.spans.conversation import build_conversations
from pytest_approvals.conversations.histories.spans.span import Span
from pytest_approvals.conversations.histories.spans.steps import RANDOM_ID_LENGTH, SpanStep, read_step


class SpanPlace(NamedTuple):
    """Where a span is stored."""

    file: str
    line: int


@dataclass(slots=True)
class SpanCollector:
    """Collector of spans of any number of documents and files.

    Attributes:
        count: The number of different spans so far.
        relevant: How many of them are of models, tools or agents.
    """

    count: int = 0
    relevant: int = 0
    _groups: dict[str, str] = field(default_factory=dict)
    # An empty name is a temporary file, which is in memory while it is small.
    _store: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect("", isolation_level=None))

    def __post_init__(self) -> None:
        self._store.execute(
            "create table span (trace text, span text, file text, line integer, start integer, step text,"
            " primary key (trace, span)) without rowid"
        )
        self._store.execute("begin")

    def add(self, span: Span, file: str, line: int) -> None:
        """Add a span; of a span that is exported twice the one that says more counts."""
        step = read_step(span)
        key = (_storable(step.trace_id), _storable(step.span_id))
        # Not the encoder of msgspec, which refuses lone surrogates.
        encoded = json.dumps(msgspec.to_builtins(step))
        known = self._store.execute("select step from span where trace = ? and span = ?", key).fetchone()
        if known is not None and len(known[0]) >= len(encoded):
            return
        self.count += known is None
        self.relevant += known is None and step.kind != "other"
        self._store.execute(
            "insert or replace into span values (?, ?, ?, ?, ?, ?)", (*key, _storable(file), line, step.start, encoded)
        )
        for other in step.keys:
            self._join(f"trace:{key[0]}", _scope(other, file))

    def _join(self, first: str, second: str) -> None:
        first, second = self._find(first), self._find(second)
        if first != second:
            self._groups[max(first, second)] = min(first, second)

    def _find(self, key: str) -> str:
        parent = self._groups.get(key, key)
        while parent != key:
            # Each step halves the way for the next search.
            self._groups[key] = grandparent = self._groups.get(parent, parent)
            key, parent = parent, grandparent
        return key

    def conversations(self) -> Iterator[tuple[StoredConversation, dict[JsonPath, SpanPlace]]]:
        """Yield each conversation, in the order in which they began, with the places of its spans."""
        traces: dict[str, list[str]] = {}
        order = self._store.execute("select trace from span group by trace order by min(start), trace")
        for (trace,) in order.fetchall():
            traces.setdefault(self._find(f"trace:{trace}"), []).append(trace)
        is_content_missing = False
        for group in traces.values():
            steps, places = self._load(group)
            for conversation in build_conversations(steps, says_missing_content=not is_content_missing):
                is_content_missing = is_content_missing or conversation.lacks_content
                yield conversation, places

    def _load(self, traces: list[str]) -> tuple[list[SpanStep], dict[JsonPath, SpanPlace]]:
        steps: list[SpanStep] = []
        places: dict[JsonPath, SpanPlace] = {}
        for trace in traces:
            for file, line, step in self._store.execute("select file, line, step from span where trace = ?", (trace,)):
                steps.append(msgspec.convert(json.loads(step), SpanStep))
                places[(steps[-1].span_id,)] = SpanPlace(file, line)
        return steps, places

    def close(self) -> None:
        """Remove the temporary file."""
        self._store.close()


def _scope(key: str, file: str) -> str:
    """Return a key that other files share only if its id looks random: two services may both call a session `1`."""
    kind, _, given = key.partition(":")
    return f"{key} in {file}" if kind == "session" and len(given) < RANDOM_ID_LENGTH else key


def _storable(text: str) -> str:
    """Return a text without lone surrogates, which SQLite cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode()
