"""
What is kept between turns, and the ways it can be kept: as JSON, as what each turn added, in a store, as a copy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

from pytest_approvals.agent_side.capabilities import CAPABILITIES
from pytest_approvals.agent_side.contract import Agent, Blueprint, World

from .refusals import Busy
from .state import Conversation, Session, fields_of, session_from, to_json
from .store import Store


class Keeping(Agent):
    """
    The layer that holds the state.

    Attributes:
        state: All that there is to remember.
        running: A turn is going on.
    """

    stores: ClassVar = {"sqlite": "one SQLite file with all sessions of a folder"}
    capabilities = frozenset(CAPABILITIES) | {"native.sqlite"}
    wire_rules = "responses"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.state = Session()
        self.running = False
        self._first_new = 0
        self._dumped = False
        self._store: Store | None = None

    @property
    def durable(self) -> bool:
        """Whether the state lives in the store and not in this object."""
        return self.blueprint.serialize == "native.sqlite"

    # --- one at a time ------------------------------------------------------------------------------------------------

    @contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """
        Lets one input be worked on at a time, on the present state, and keeps what came of it, also when it failed.

        Errors:
            Busy: Another one is being worked on.
        """
        if self.running:
            raise Busy
        with self.store().hold() if self.durable else nullcontext():
            self.running = True
            try:
                self.catch_up()
                self.note_where_the_turn_begins()
                yield
            finally:
                self.keep()
                self.running = False

    def catch_up(self) -> None:
        """Takes the present state out of the store, in case it went on elsewhere."""
        if self.durable:
            written = self.store().read()
            self.state = self.decode(written) if written else Session()

    def keep(self) -> None:
        """Puts the present state into the store."""
        if self.durable:
            self.store().write(self.encode(self.state))

    def store(self) -> Store:
        """Gives the open store, with a session of our own in it."""
        if self._store is None:
            self._store = Store(self.blueprint.directory)
        return self._store

    # --- to text and back ---------------------------------------------------------------------------------------------

    def encode(self, state: Session) -> str:
        """Writes a state."""
        return to_json(state)

    def decode(self, written: str) -> Session:
        """Reads what `encode` wrote."""
        return session_from(json.loads(written))

    async def dump(self) -> str:
        if self.durable:
            return self.store().name
        self._dumped = True
        if self.blueprint.history == "append":
            return self.encode_addition()
        return self.encode(self.state)

    async def load(self, parts: Sequence[str]) -> None:
        if self.durable:
            self._store = Store(self.blueprint.directory, parts[-1])
            self.catch_up()
        elif self.blueprint.history == "append":
            self.state = self.fold([json.loads(part) for part in parts])
        else:
            self.state = self.decode(parts[-1])

    async def copy_from(self, other: Agent) -> None:
        assert isinstance(other, Keeping)
        self.state = self.decode(self.encode(other.state))

    async def another_session(self, world: World) -> Agent:
        return type(self)(world, self.blueprint)

    async def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    # --- only what a turn added ---------------------------------------------------------------------------------------

    def note_where_the_turn_begins(self) -> None:
        """Remembers that everything said so far was given away by `dump`, if it was."""
        if self._dumped:
            self._first_new = self.state.main.trimmed + len(self.state.main.items)
            self._dumped = False

    def encode_addition(self) -> str:
        """Writes what was said since the turn before, with its position, and all the rest, which is small."""
        main = self.state.main
        first = max(self._first_new, main.trimmed)
        rest = {**fields_of(self.state), "main": {**fields_of(main), "items": []}}
        return to_json({"first": first, "items": main.items[first - main.trimmed :], "rest": rest})

    def fold(self, additions: Sequence[dict[str, Any]]) -> Session:
        """Makes the state of all additions, in order; each item has its place, so a repeated addition is harmless."""
        last = additions[-1]
        said = {place: item for part in additions for place, item in enumerate(part["items"], part["first"])}
        main = last["rest"]["main"]
        end = last["first"] + len(last["items"])
        main["items"] = [said[place] for place in range(main["trimmed"], end)]
        self._first_new, self._dumped = last["first"], True
        return session_from(last["rest"])

    # --- forgetting ---------------------------------------------------------------------------------------------------

    async def trim(self, keep: int) -> None:
        with self.one_at_a_time():
            forget(self.state.main, self.items_to_forget(self.state.main, keep))

    def items_to_forget(self, conversation: Conversation, keep: int) -> int:
        """
        Counts the items before the last *keep* messages that can go: up to a message of the user, because every call
        stays with its result, and what is pending with its call.
        """
        numbers = sorted({item.message for item in conversation.items})
        if not 0 < keep < len(numbers):
            return 0
        oldest = numbers[-keep]
        heads = [
            place for place, item in enumerate(conversation.items) if item.kind == "user" and item.message <= oldest
        ]
        return heads[-1] if heads else 0


def forget(conversation: Conversation, count: int) -> None:
    """Takes the first *count* items away."""
    del conversation.items[:count]
    conversation.trimmed += count
