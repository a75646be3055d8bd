"""Saved states: a store of the application for the entries of a session, what is deferred in it, and transcripts."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from claude_agent_sdk import get_session_messages, list_sessions

from ...contract import Request, ToolSpec
from .agents import find_config_folder
from .requests import to_request


class EntryStore:
    """A `SessionStore` in memory; `append` and `load` are what the SDK needs of one.

    Attributes:
        sessions: The entries of each session, and those of its sub-agents by subpath. A fork is a session of its own,
            with a copy of all entries.
    """

    def __init__(self) -> None:
        self.sessions: dict[str, dict[str, list[Any]]] = {}

    async def append(self, key: Mapping[str, Any], entries: Sequence[Any]) -> None:
        """Add entries; one with a `uuid` that is there already is the same one."""
        kept = self.get_entries(key["session_id"]).setdefault(key.get("subpath") or "", [])
        known = {entry.get("uuid") for entry in kept} - {None}
        kept += [deepcopy(entry) for entry in entries if entry.get("uuid") not in known]

    async def load(self, key: Mapping[str, Any]) -> list[Any] | None:
        """Return the entries of a session; None if there are none."""
        kept = self.get_entries(key["session_id"]).get(key.get("subpath") or "")
        return None if kept is None else deepcopy(kept)

    def get_entries(self, session: str) -> dict[str, list[Any]]:
        """Return the entries of a session by subpath, which more can be put into."""
        return self.sessions.setdefault(session, {})


@dataclass(slots=True)
class State:
    """What the caller keeps of a session.

    Attributes:
        session: Its id; empty before its first turn.
        deferred: The request of the call that waits in it.
        passed: The ids of the calls that waited when a message went past them.
        store: Its entries; None if the CLI keeps them.
        saved: How many entries the last `dump` with history `append` had, by session and subpath.
    """

    session: str = ""
    deferred: Request | None = None
    passed: list[str] = field(default_factory=list)
    store: EntryStore | None = None
    saved: dict[tuple[str, str], int] = field(default_factory=dict)

    def write(self, *, only_new: bool) -> str:
        """Return it as text."""
        value: dict[str, Any] = {
            "session": self.session,
            "deferred": _write_request(self.deferred),
            "passed": self.passed,
        }
        if self.store is not None:
            first = self.saved if only_new else {}
            entries = self.store.get_entries(self.session)
            value["entries"] = {path: kept[first.get((self.session, path), 0) :] for path, kept in entries.items()}
            self._keep_counts()
        return json.dumps(value)

    def read(self, texts: Sequence[str]) -> None:
        """Take what `write` returned: one text, or several in order."""
        for text in texts:
            value = json.loads(text)
            self.session, self.deferred = value["session"], _read_request(value["deferred"])
            self.passed = value["passed"]
            if self.store is not None:
                kept = self.store.get_entries(self.session)
                for path, entries in value["entries"].items():
                    kept.setdefault(path, []).extend(entries)
        self._keep_counts()

    def _keep_counts(self) -> None:
        if self.store is not None:
            entries = self.store.get_entries(self.session)
            self.saved = {(self.session, path): len(kept) for path, kept in entries.items()}


def _write_request(request: Request | None) -> dict[str, Any] | None:
    if request is None:
        return None
    fields = ("id", "call_id", "tool", "arguments", "kind", "server")
    return {name: getattr(request, name) for name in fields}


def _read_request(value: dict[str, Any] | None) -> Request | None:
    return None if value is None else Request(**value)


def find_last_session(home: str, folder: str) -> str:
    """Return the id of the most recent session in a folder, which a resumed CLI would continue; empty if there is none.

    Args:
        home: The folder of the CLI's files.
        folder: The folder in which the session worked.
    """
    with _config_folder_of(home):
        sessions = list_sessions(folder, limit=1)
    return sessions[0].session_id if sessions else ""


def find_open_call(
    home: str, folder: str, session: str, specs: Mapping[str, ToolSpec], *, passed: Collection[str]
) -> Request | None:
    """Return the request about the last call of a transcript's last reply that is open and gated; None without one.

    Args:
        home: The folder of the CLI's files.
        folder: The folder in which the session worked.
        session: The id of the session.
        specs: The tools by their names in the CLI.
        passed: The ids of the calls that a message went past.
    """
    with _config_folder_of(home):
        messages = [each.message for each in get_session_messages(session, folder)]
    closed = {block["tool_use_id"] for message in messages for block in _blocks(message, "tool_result")} | {*passed}
    # The CLI stores each block of a reply as a message of its own, under the reply's id.
    calls = [(message.get("id"), block) for message in messages for block in _blocks(message, "tool_use")]
    for reply, block in reversed(calls):
        spec = specs.get(block["name"])
        is_gated = spec is None or spec.approval != "never"
        if reply == calls[-1][0] and is_gated and block["id"] not in closed:
            return to_request(block["id"], block["name"], block["input"], specs)
    return None


def _blocks(message: Any, kind: str) -> list[Any]:
    """Return the blocks of one type in a message."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else ()
    return [block for block in blocks if isinstance(block, dict) and block["type"] == kind]


@contextmanager
def _config_folder_of(home: str) -> Iterator[None]:
    """Let the SDK read the transcripts below *home*: its functions take the folder from the environment."""
    name = "CLAUDE_CONFIG_DIR"
    before = os.environ.get(name)
    os.environ[name] = find_config_folder(home)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
