"""The grammar of what happens one after the other: the frame of a journal, agents and their saves, turns."""

from __future__ import annotations

from collections.abc import Mapping

from .events import (
    AgentStart,
    Cancelled,
    Event,
    Header,
    Restored,
    RunEnd,
    Saved,
    Shown,
    Staged,
    Trimmed,
    TurnEnd,
    TurnStart,
)
from .grammar_topic import BrokenGrammar, Listener, Topic

_OUTCOMES = ("paused", "finished", "failed", "timeout")
_ENDS_OF_RUNS = ("completed", "left", "timeout", "interrupted", "broken")
_TAKEN_UP = ("copied", "restored", "fresh", "cold")
_BUILT = ("built", "session")


class Frame(Topic):
    """The header stands first and the end last, each once."""

    def __init__(self, found: list[BrokenGrammar], *, cut: bool) -> None:
        super().__init__(found, cut=cut)
        self.header = 0
        self.ended = 0

    def listeners(self) -> Mapping[type[Event], Listener]:
        return {Header: self.begins, RunEnd: self.ends}

    def begins(self, event: Header) -> None:
        if self.header:
            self.broken("a second header", self.header, event.n)
        self.header = event.n

    def ends(self, event: RunEnd) -> None:
        if self.ended:
            self.broken("the run ends twice", self.ended, event.n)
        self.ended = event.n
        self.word(event, event.how, _ENDS_OF_RUNS)


class Agents(Topic):
    """An agent is built before a session begins; one that is built anew takes up a save of that session."""

    def __init__(self, found: list[BrokenGrammar], *, cut: bool) -> None:
        super().__init__(found, cut=cut)
        self.built: dict[str, int] = {}
        self.empty: dict[str, int] = {}
        self.saves: dict[tuple[str, str], Saved] = {}

    def listeners(self) -> Mapping[type[Event], Listener]:
        needing: dict[type[Event], Listener] = dict.fromkeys((TurnStart, Staged, Cancelled, Trimmed), self.goes_on)
        return {AgentStart: self.starts, Saved: self.saved, Restored: self.restored, **needing}

    def starts(self, event: AgentStart) -> None:
        self.word(event, event.how, (*_BUILT, *_TAKEN_UP))
        before = self.built.get(event.session)
        if event.how in _TAKEN_UP:
            if before is None:
                self.broken("an agent is built anew in a session that has not begun", event.n)
            self.empty[event.session] = event.n
        elif before is not None:
            self.broken("a session begins twice", before, event.n)
        self.built[event.session] = event.n

    def goes_on(self, event: Event) -> None:
        if event.session not in self.built:
            self.broken(f"{event.kind} in a session that has no agent", event.n)
        if event.session in self.empty:
            self.broken("a session goes on though its new agent took up no save", self.empty[event.session], event.n)

    def saved(self, event: Saved) -> None:
        self.goes_on(event)
        if event.error is None:
            self.saves[event.session, event.name] = event

    def restored(self, event: Restored) -> None:
        if self.empty.pop(event.session, None) is None:
            self.broken("a save is taken up, and no agent was built for it", event.n)
        save = self.saves.get((event.session, event.name))
        if save is None:
            self.broken(f"{event.name!r} is taken up, and was not saved in this session", event.n)
        elif save.mode != event.mode:
            self.broken(f"what was saved as {save.mode} is taken up as {event.mode}", save.n, event.n)


class Turns(Topic):
    """
    Turns are numbered as they begin; each ends once, in its session, as a turn can end.

    Of two turns that share one live object nobody can say which of them a stream belongs to; so what is shown needs
    some turn that runs, and no more.
    """

    def __init__(self, found: list[BrokenGrammar], *, cut: bool) -> None:
        super().__init__(found, cut=cut)
        self.count = 0
        self.open: dict[int, TurnStart] = {}

    def listeners(self) -> Mapping[type[Event], Listener]:
        return {TurnStart: self.starts, TurnEnd: self.ends, Shown: self.shows}

    def starts(self, event: TurnStart) -> None:
        self.count += 1
        self.next_number(event, "turn", event.turn, self.count)
        self.open[event.turn] = event

    def ends(self, event: TurnEnd) -> None:
        start = self.open.pop(event.turn, None)
        if start is None or start.session != event.session:
            self.broken(f"turn {event.turn} ends, and was not running in this session", event.n)
        self.word(event, event.outcome, _OUTCOMES)
        if (event.outcome == "paused") != bool(event.requests):
            self.broken("a turn pauses without a request, or has requests and does not pause", event.n)
        if (event.outcome in ("failed", "timeout")) != (event.error is not None):
            self.broken("a turn fails without an error, or has an error and does not fail", event.n)

    def shows(self, event: Shown) -> None:
        running = {start.session for start in self.open.values()}
        if not 0 < event.turn <= self.count or event.session not in running:
            self.broken(f"turn {event.turn} shows something, and is not running", event.n)

    def end(self) -> None:
        for start in self.open.values():
            if not self.cut:
                self.broken(f"turn {start.turn} does not end", start.n)
