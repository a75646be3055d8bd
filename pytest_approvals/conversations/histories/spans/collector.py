"""Collector of spans: the steps of all files, kept outside of memory, and put together by their ids.

Spans of one trace belong together, and traces that have an id of a conversation or a random call id in common; traces
in different files only if that id looks random, too. Only the steps of the conversation that is read are in memory; the
others, and all ids, are in a temporary file.
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


_MAX_KNOWN = 10_000
"""How many ids are in memory at a time: the spans of a conversation are often near each other."""


@dataclass(slots=True)
class SpanCollector:
    """Collector of spans of any number of documents and files.

    Attributes:
        count: The number of different spans so far.
        relevant: How many of them are of models, tools or agents.
    """

    count: int = 0
    relevant: int = 0
    _joined: set[tuple[str, str]] = field(default_factory=set)
    # An empty name is a temporary file, which is in memory while it is small.
    _store: sqlite3.Connection = field(default_factory=lambda: sqlite3.connect("", isolation_level=None))

    def __post_init__(self) -> None:
        self._store.execute(
            "create table span (trace text, span text, file text, line integer, start integer, step text,"
            " primary key (trace, span)) without rowid"
        )
        # Each key has a parent, and keys that belong together have the same root.
        self._store.execute("create table key (key text primary key, parent text) without rowid")
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
            self._join(f"trace:{key[0]}", _storable(_scope(other, file)))

    def _join(self, first: str, second: str) -> None:
        if (first, second) in self._joined:
            return
        if len(self._joined) >= _MAX_KNOWN:
            self._joined.clear()
        self._joined.add((first, second))
        first, second = self._find(first), self._find(second)
        if first != second:
            self._set_parent(max(first, second), min(first, second))

    def _find(self, key: str) -> str:
        parent = self._get_parent(key)
        while parent != key:
            grandparent = self._get_parent(parent)
            if grandparent != parent:
                # Each step halves the way for the next search.
                self._set_parent(key, grandparent)
            key, parent = parent, grandparent
        return key

    def _get_parent(self, key: str) -> str:
        found = self._store.execute("select parent from key where key = ?", (key,)).fetchone()
        return key if found is None else str(found[0])

    def _set_parent(self, key: str, parent: str) -> None:
        self._store.execute("insert or replace into key values (?, ?)", (key, parent))

    def conversations(self) -> Iterator[tuple[StoredConversation, dict[JsonPath, SpanPlace]]]:
        """Yield each conversation, in the order in which they began, with the places of its spans."""
        self._group_traces()
        is_content_missing = False
        for (root,) in self._store.execute("select root from member group by root order by min(place)"):
            traces = self._store.execute("select trace from member where root = ? order by place", (root,))
            steps, places = self._load([trace for (trace,) in traces])
            for conversation in build_conversations(steps, says_missing_content=not is_content_missing):
                is_content_missing = is_content_missing or conversation.lacks_content
                yield conversation, places

    def _group_traces(self) -> None:
        """Write a table of the traces in the order in which they began, each with the root of its ids."""
        self._store.execute("drop table if exists member")
        self._store.execute("create table member (place integer primary key, root text, trace text)")
        order = self._store.execute("select trace from span group by trace order by min(start), trace")
        for (trace,) in order:
            root = self._find(f"trace:{trace}")
            self._store.execute("insert into member (root, trace) values (?, ?)", (root, trace))
        self._store.execute("create index member_root on member (root, place)")

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
