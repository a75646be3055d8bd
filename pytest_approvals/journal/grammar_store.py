"""The grammar of what lives between turns: agents, and what is saved of them and taken up again."""

from __future__ import annotations

from collections.abc import Mapping

from .events import (
    AgentStart,
    Cancelled,
    Decide,
    Event,
    Header,
    Restored,
    Rewritten,
    RunEnd,
    Saved,
    Skipped,
    Staged,
    Trimmed,
    TurnEnd,
    TurnStart,
)
from .grammar_topic import BrokenGrammar, Listener, Topic

_TAKEN_UP = ("copied", "restored", "fresh", "cold")
_BUILT = ("built", "session")
_WHOLE_VARIANT = {"serialize", "resume", "history"}
"""What a header says of the variant where the harness made the journal, which then keeps to its habits."""


class Agents(Topic):
    """An agent is built before a session begins; one that is built anew takes up a save of that session."""

    def __init__(self, found: list[BrokenGrammar], *, cut: bool) -> None:
        super().__init__(found, cut=cut)
        self.built: dict[str, int] = {}
        self.empty: dict[str, int] = {}
        self.lost: dict[str, int] = {}
        self.saves: dict[tuple[str, str], Saved] = {}

    def listeners(self) -> Mapping[type[Event], Listener]:
        kinds = (TurnStart, Staged, Cancelled, Trimmed, Decide)
        needing: dict[type[Event], Listener] = dict.fromkeys(kinds, self.goes_on)
        stored: dict[type[Event], Listener] = {Saved: self.saved, Rewritten: self.rewritten, Restored: self.restored}
        return {AgentStart: self.starts, **stored, **needing}

    def starts(self, event: AgentStart) -> None:
        self.word(event, event.how, (*_BUILT, *_TAKEN_UP))
        before = self.built.get(event.session)
        if event.how in _TAKEN_UP:
            if before is None:
                self.broken("an agent is built anew in a session that has not begun", event.n)
            if event.session in self.empty:
                self.broken("an agent is built anew twice", self.empty[event.session], event.n)
            self.empty[event.session] = event.n
        elif before is not None:
            self.broken("a session begins twice", before, event.n)
        self.built[event.session] = event.n

    def goes_on(self, event: Event) -> None:
        self.happens(event)
        if event.session in self.lost:
            self.broken("a session goes on though its new agent took up no save", self.lost[event.session], event.n)

    def happens(self, event: Event) -> None:
        if event.session not in self.built:
            self.broken(f"{event.kind} in a session that has no agent", event.n)
        if event.session in self.empty:
            self.broken("a session goes on though its new agent took up no save", self.empty[event.session], event.n)

    def saved(self, event: Saved) -> None:
        self.happens(event)
        if event.error is None:
            self.saves[event.session, event.name] = event

    def rewritten(self, event: Rewritten) -> None:
        self.happens(event)
        if (event.session, event.name) not in self.saves:
            self.broken(f"{event.name!r} is changed, and was not saved in this session", event.n)

    def restored(self, event: Restored) -> None:
        if self.empty.pop(event.session, None) is None:
            self.broken("a save is taken up, and no agent was built for it", event.n)
        self.lost.pop(event.session, None)
        if event.error is not None:
            self.lost[event.session] = event.n
        save = self.saves.get((event.session, event.name))
        if save is None:
            self.broken(f"{event.name!r} is taken up, and was not saved in this session", event.n)
        elif save.mode != event.mode:
            self.broken(f"what was saved as {save.mode} is taken up as {event.mode}", save.n, event.n)


class Saves(Topic):
    """
    A session is saved between its turns, under a name of its own; where its state does not live on, it is saved after
    each turn, and goes on from what was saved.
    """

    def __init__(self, found: list[BrokenGrammar], *, cut: bool) -> None:
        super().__init__(found, cut=cut)
        self.lives_on = True
        self.known = False
        self.running: dict[str, int] = {}
        self.unsaved: dict[str, int] = {}
        self.saved_at: dict[str, int] = {}
        self.taken_at: dict[str, int] = {}
        self.skipped: set[str] = set()
        self.names: set[tuple[str, str]] = set()

    def listeners(self) -> Mapping[type[Event], Listener]:
        changing: dict[type[Event], Listener] = dict.fromkeys((Staged, Cancelled, Trimmed), self.changes)
        turns: dict[type[Event], Listener] = {TurnStart: self.turn_starts, TurnEnd: self.turn_ends}
        stored: dict[type[Event], Listener] = {Saved: self.saved, Restored: self.restored, Skipped: self.skips}
        return {Header: self.begins, RunEnd: self.ends, **stored, **turns, **changing}

    def begins(self, event: Header) -> None:
        self.known = event.variant.keys() >= _WHOLE_VARIANT
        self.lives_on = not self.known or event.variant["serialize"] == "none"

    def turn_starts(self, event: TurnStart) -> None:
        if not self.running.get(event.session) and event.session not in self.taken_at:
            self._is_saved(event.session, event.n)
        self.changes(event)
        self.running[event.session] = self.running.get(event.session, 0) + 1

    def turn_ends(self, event: TurnEnd) -> None:
        self.running[event.session] = self.running.get(event.session, 1) - 1
        self.unsaved[event.session] = self.unsaved.get(event.session, 0) + 1

    def changes(self, event: Event) -> None:
        if self.known and event.session in self.saved_at:
            self.broken("a session goes on without what was saved of it", self.saved_at[event.session], event.n)
        self.taken_at.pop(event.session, None)

    def saved(self, event: Saved) -> None:
        if self.running.get(event.session):
            self.broken("a session is saved while a turn of it runs", event.n)
        if (event.session, event.name) in self.names:
            self.broken(f"{event.name!r} is saved twice", event.n)
        if event.error is None:
            self.names.add((event.session, event.name))
            self.saved_at[event.session] = event.n
        self.unsaved[event.session] = self.unsaved.get(event.session, 1) - 1
        self.taken_at.pop(event.session, None)

    def restored(self, event: Restored) -> None:
        self.saved_at.pop(event.session, None)
        if event.session in self.taken_at and event.session not in self.skipped:
            self.broken("a save is taken up twice, and nothing happens between", self.taken_at[event.session], event.n)
        self.taken_at[event.session] = event.n
        self.skipped.discard(event.session)

    def skips(self, event: Skipped) -> None:
        """The save was taken up for a step that cannot be played."""
        self.skipped.add(event.session)

    def ends(self, event: RunEnd) -> None:
        for session in self.unsaved if not self.cut else ():
            self._is_saved(session, event.n)

    def _is_saved(self, session: str, n: int) -> None:
        if not self.lives_on and self.unsaved.get(session, 0) > 0:
            self.broken("a turn ended, and its session was not saved", n)
