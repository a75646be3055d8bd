"""What databases of frameworks hold, as documents of the formats that readers know, and the values in their columns.

Values in MessagePack are decoded without making the objects that they name, and pickles are left alone.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import msgspec

from pytest_approvals.errors import HistoryError
from pytest_approvals.errors.printable import shorten

_INTERRUPT = "__interrupt__"


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """One conversation of a database; *name* says which."""

    name: str
    format: str
    value: Any


def parse_json(text: Any, where: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        HistoryError: It is none.
    """
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise HistoryError(f"{where} is not JSON") from None


def has_messages(snapshot: dict[str, Any]) -> bool:
    """Return whether a snapshot of LangGraph holds messages."""
    checkpoint = snapshot["checkpoint"]
    values = checkpoint.get("channel_values") if type(checkpoint) is dict else None
    return type(values) is dict and bool(values.get("messages"))


Snapshot = dict[str, Any]
"""A checkpoint of LangGraph with its pending writes, as the reader of that format knows it."""


def join_subgraphs(namespaces: Mapping[str, Sequence[tuple[str, Snapshot]]]) -> Iterator[tuple[str, list[Snapshot]]]:
    """Yield the histories of one thread of LangGraph, newest first, each with its namespace.

    A sub-graph keeps its checkpoints in a namespace of its own, `NODE:TASK` below that of its graph. One that is a node
    works on the messages of its graph, and belongs to its history. One that a tool runs has messages of its own, and is
    a conversation of its own. In both cases the graph keeps a copy of its interrupts, which is left out.

    Args:
        namespaces: The checkpoints of each namespace, newest first, with their ids, which are in the order of time.
    """
    tasks = {part.partition(":")[2] for name in namespaces for part in name.split("|")} - {""}
    copied: set[Any] = set()
    targets: dict[str, str] = {}
    joined: dict[str, list[tuple[str, Snapshot]]] = {}
    for name in sorted(namespaces, key=_depth, reverse=True):
        held = namespaces[name]
        joined[name] = [(number, _drop_copies(snapshot, tasks, copied)) for number, snapshot in held]
        copied |= {each.get("id") for _, snapshot in held for _, each in _iter_interrupts(snapshot)} - {None}
        outer = name.rpartition("|")[0]
        if name and outer in namespaces and _message_ids(held) & _message_ids(namespaces[outer]):
            targets[name] = outer
    for name in sorted(targets, key=_depth, reverse=True):
        joined[targets[name]] += joined.pop(name)
    for name in sorted(joined):
        yield name, [snapshot for _, snapshot in sorted(joined[name], key=itemgetter(0), reverse=True)]


def name_threads(thread: str, histories: Iterable[tuple[str, list[Snapshot]]]) -> Iterator[StoredDocument]:
    """Yield the documents of the histories of a thread that hold messages."""
    for namespace, history in histories:
        if any(map(has_messages, history)):
            inside = f" {shorten(namespace)}" if namespace else ""
            yield StoredDocument(f"thread {shorten(str(thread))}{inside}", "langgraph", history)


def _depth(namespace: str) -> int:
    return namespace.count("|") + bool(namespace)


def _drop_copies(snapshot: Snapshot, tasks: Collection[str], ids: Collection[Any]) -> Snapshot:
    """Return a snapshot without the interrupts of sub-graphs: of their *tasks*, or with their *ids*."""
    if not any(task in tasks or each.get("id") in ids for task, each in _iter_interrupts(snapshot)):
        return snapshot
    writes = []
    for task, channel, value in snapshot["pending_writes"]:
        kept = value
        if channel == _INTERRUPT and type(value) is list:
            kept = [each for each in value if task not in tasks and not (type(each) is dict and each.get("id") in ids)]
        writes.append([task, channel, kept])
    return {**snapshot, "pending_writes": writes}


def _iter_interrupts(snapshot: Snapshot) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the interrupts of a snapshot, each with the task that it is of."""
    for task, channel, value in snapshot["pending_writes"]:
        for each in value if channel == _INTERRUPT and type(value) is list else ():
            if type(each) is dict:
                yield task, each


def _message_ids(history: Sequence[tuple[str, Snapshot]]) -> set[str]:
    """Return the ids of the newest messages in a history."""
    newest = next((snapshot for _, snapshot in history if has_messages(snapshot)), None)
    messages = [] if newest is None else newest["checkpoint"]["channel_values"]["messages"]
    return {each["id"] for each in messages if type(each) is dict and type(each.get("id")) is str}


def load_value(kind: str | None, value: Any) -> Any:
    """Return a value that LangGraph serialized, without making objects; None for a pickle."""
    if value is None or kind in (None, "null", "empty"):
        return None
    data = value.encode() if type(value) is str else value
    try:
        if kind == "msgpack":
            return _decode(data)
        if kind == "json":
            return json.loads(data)
    except (ValueError, msgspec.DecodeError, RecursionError):
        raise HistoryError(f"a value of type {kind} cannot be decoded") from None
    return None


def _decode(data: bytes | memoryview) -> Any:
    return msgspec.msgpack.decode(data, ext_hook=_decode_extension)


def _decode_extension(code: int, data: memoryview) -> Any:
    """Return what an object was made of: module, name and arguments are stored, and only the arguments are taken."""
    made = _decode(data)
    return made[2] if type(made) is list and len(made) > 2 else None
