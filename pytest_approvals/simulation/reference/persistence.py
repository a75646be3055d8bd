"""Persistence of the reference agent: one input at a time, what is refused, and the ways to save its state.

The state is saved as JSON, as what each turn added, as a reference into a durable store, or as a copy.

Refused, always before anything was changed or executed:

Refused
├── MalformedDecision    not a decision, or one that cannot be carried out
├── UnknownRequest       a decision about a request that was never made
├── AlreadySettled       a decision about a request that was decided or closed before
├── Contradiction        two decisions about one request in one submission
├── NothingToGoOn        a turn without a message, a decision, or anything left to do
└── Busy                 a turn while another one runs in the same session

LimitReached             a turn was stopped by a limit; the next one can continue
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.capabilities import CAPABILITIES
from pytest_approvals.simulation.reference.state import (
    ConversationState,
    SessionState,
    session_from_fields,
    state_fields,
    state_to_json,
)


class Refused(Exception):
    """The caller's input is refused; the state is unchanged."""


class MalformedDecision(Refused):
    """A value is not a decision, or cannot be carried out: *why* says what is wrong."""

    def __init__(self, why: str) -> None:
        super().__init__(f"invalid decision: {why}")


class UnknownRequest(Refused):
    """A decision names a request that was never made."""

    def __init__(self, request: object) -> None:
        super().__init__(f"unknown approval request {request!r}")


class AlreadySettled(Refused):
    """A decision is about a request that was decided or closed before."""

    def __init__(self, request: str) -> None:
        super().__init__(f"approval request {request!r} is not open any more")


class Contradiction(Refused):
    """One submission holds two decisions about one request."""

    def __init__(self, request: str) -> None:
        super().__init__(f"there is more than one decision about approval request {request!r}")


class NothingToGoOn(Refused):
    """A turn has nothing to do."""

    def __init__(self) -> None:
        super().__init__("nothing to continue with: send a message")


class Busy(Refused):
    """A turn is running in this session."""

    def __init__(self) -> None:
        super().__init__("a turn is running in this session; wait for its end")


class LimitReached(Exception):
    """A turn needs more than its limit of *unit* allows; completed work is kept."""

    def __init__(self, unit: str, limit: int) -> None:
        super().__init__(f"the limit of {limit} {unit} in one turn is reached")


class Store:
    """The sessions in one folder.

    Args:
        directory: Folder of the files.
        name: An existing session; default: a new one.
    """

    def __init__(self, directory: str, name: str | None = None) -> None:
        # Autocommit: each write is a transaction of its own.
        self._file = sqlite3.connect(Path(directory) / "sessions.sqlite", isolation_level=None)
        # An fsync for each write would only help against a power cut.
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute("CREATE TABLE IF NOT EXISTS sessions (number INTEGER PRIMARY KEY, state TEXT)")
        self.name = name or f"session-{self._new()}"
        self._number = int(self.name.removeprefix("session-"))
        # A file for each session, so that its lock leaves other sessions alone.
        self._lock = os.open(Path(directory) / f"{self.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)

    def _new(self) -> int | None:
        return self._file.execute("INSERT INTO sessions (state) VALUES (NULL)").lastrowid

    def read(self) -> str | None:
        """Return the last written state; None for a new session.

        Raises:
            KeyError: Unknown session.
        """
        row = self._file.execute("SELECT state FROM sessions WHERE number = ?", (self._number,)).fetchone()
        if row is None:
            raise KeyError(self.name)
        state: str | None = row[0]
        return state

    def write(self, state: str) -> None:
        """Write the state; it is durable when this returns."""
        self._file.execute("UPDATE sessions SET state = ? WHERE number = ?", (state, self._number))

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Lock the session against other turns.

        Raises:
            Busy: It is locked.
        """
        try:
            # Not in a queue: a second turn is refused. The lock of a process that is killed ends with it.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy from None
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        os.close(self._lock)


class StatefulAgent(Agent):
    """An agent whose whole memory is one state, apart from what it does with it.

    Attributes:
        state: Everything to remember.
        is_running: A turn is in progress.
    """

    stores: ClassVar = {"sqlite": "one SQLite file with all sessions of a folder"}
    capabilities = frozenset(CAPABILITIES) | {"native.sqlite"}
    wire_rules = "responses"
    recovery = "a new process loads the session from the store by its name"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.state = SessionState()
        self.is_running = False
        self._first_new = 0
        self._dumped = False
        self._store: Store | None = None

    @property
    def is_durable(self) -> bool:
        """Whether the state lives in the store and not in this object."""
        return self.blueprint.serialize == "native.sqlite"

    # --- one at a time ------------------------------------------------------------------------------------------------

    @contextmanager
    def exclusive_input(self) -> Iterator[None]:
        """Process one input at a time, on the present state, and store the result, also after an error.

        Raises:
            Busy: Another input is being processed.
        """
        if self.is_running:
            raise Busy
        with self.open_store().hold() if self.is_durable else nullcontext():
            self.is_running = True
            try:
                self.reload_state()
                self.mark_turn_start()
                yield
            finally:
                self.store_state()
                self.is_running = False

    def reload_state(self) -> None:
        """Read the present state from the store, in case another copy has advanced it."""
        if self.is_durable:
            written = self.open_store().read()
            self.state = self.decode(written) if written else SessionState()

    def store_state(self) -> None:
        """Write the present state to the store."""
        if self.is_durable:
            self.open_store().write(self.encode(self.state))

    def open_store(self) -> Store:
        """Return the open store with this session in it."""
        if self._store is None:
            self._store = Store(self.blueprint.directory)
        return self._store

    # --- to text and back ---------------------------------------------------------------------------------------------

    def encode(self, state: SessionState) -> str:
        """Return a state as text."""
        return state_to_json(state)

    def decode(self, written: str) -> SessionState:
        """Return the state that `encode` wrote."""
        return session_from_fields(json.loads(written))

    async def dump(self) -> str:
        """Return the state as text."""
        if self.is_durable:
            return self.open_store().name
        self._dumped = True
        if self.blueprint.history == "append":
            return self.encode_addition()
        return self.encode(self.state)

    async def load(self, parts: Sequence[str]) -> None:
        """Restore the state from the saved *parts*."""
        if self.is_durable:
            self._store = Store(self.blueprint.directory, parts[-1])
            self.reload_state()
        elif self.blueprint.history == "append":
            self.state = self.merge_additions([json.loads(part) for part in parts])
        else:
            self.state = self.decode(parts[-1])

    async def copy_from(self, other: Agent) -> None:
        """Take over a copy of the state of *other*."""
        assert isinstance(other, StatefulAgent)
        self.state = self.decode(self.encode(other.state))

    async def another_session(self, world: World) -> Agent:
        """Build an agent for another session."""
        return type(self)(world, self.blueprint)

    async def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()
            self._store = None

    # --- additions of a turn ------------------------------------------------------------------------------------------

    def mark_turn_start(self) -> None:
        """Remember where the additions of this turn begin, if everything before was dumped."""
        if self._dumped:
            self._first_new = self.state.main.trimmed + len(self.state.main.items)
            self._dumped = False

    def encode_addition(self) -> str:
        """Return the items since the previous turn with their position, and the rest of the state, which is small."""
        main = self.state.main
        first = max(self._first_new, main.trimmed)
        rest = {**state_fields(self.state), "main": {**state_fields(main), "items": []}}
        return state_to_json({"first": first, "items": main.items[first - main.trimmed :], "rest": rest})

    def merge_additions(self, additions: Sequence[dict[str, Any]]) -> SessionState:
        """Return the state of all additions in order; items have positions, so a repeated addition is harmless."""
        last = additions[-1]
        items = {place: item for part in additions for place, item in enumerate(part["items"], part["first"])}
        main = last["rest"]["main"]
        end = last["first"] + len(last["items"])
        # Additions may still hold items that were trimmed later.
        main["items"] = [items[place] for place in range(main["trimmed"], end)]
        # As if this object had saved the last addition: the next one begins behind it.
        self._first_new, self._dumped = last["first"], True
        return session_from_fields(last["rest"])

    # --- trimming -----------------------------------------------------------------------------------------------------

    async def trim(self, keep: int) -> None:
        """Remove old messages, so that about *keep* remain."""
        with self.exclusive_input():
            main = self.state.main
            count = self.count_trimmable_items(main, keep)
            del main.items[:count]
            main.trimmed += count

    def count_trimmable_items(self, conversation: ConversationState, keep: int) -> int:
        """Return the number of items before the last *keep* messages that can be removed.

        Only up to a message of the user, because every call stays with its result, and what is pending with its call.
        """
        numbers = sorted({item.message for item in conversation.items})
        if not 0 < keep < len(numbers):
            return 0
        oldest = numbers[-keep]
        heads = [
            place for place, item in enumerate(conversation.items) if item.kind == "user" and item.message <= oldest
        ]
        return heads[-1] if heads else 0
