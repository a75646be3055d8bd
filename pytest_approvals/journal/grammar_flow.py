"""The grammar of what happens one after the other: the frame of a journal, and its turns."""

from __future__ import annotations

from collections.abc import Mapping

from .events import (
    Event,
    Header,
    ModelAnswer,
    ModelRequest,
    RunEnd,
    Shown,
    ToolStart,
    TurnEnd,
    TurnStart,
)
from .grammar_topic import BrokenGrammar, Listener, Topic

_OUTCOMES = ("paused", "finished", "failed", "timeout")
_ENDS_OF_RUNS = ("completed", "left", "timeout", "interrupted", "broken")


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


class Turns(Topic):
    """
    Turns are numbered as they begin; each ends once, in its session, as a turn can end. Models are asked and tools are
    entered in turns only.

    Of two turns that share one live object nobody can say which of them a stream belongs to; so what is shown needs
    some turn that runs, and no more. Who stands at the model alone sees no turns.
    """

    def __init__(self, found: list[BrokenGrammar], *, cut: bool) -> None:
        super().__init__(found, cut=cut)
        self.count = 0
        self.open: dict[int, TurnStart] = {}
        self.running: dict[str, int] = {}
        self.seen = True

    def listeners(self) -> Mapping[type[Event], Listener]:
        inside: dict[type[Event], Listener] = dict.fromkeys((ModelRequest, ModelAnswer, ToolStart), self.happens)
        return {Header: self.begins, TurnStart: self.starts, TurnEnd: self.ends, Shown: self.shows, **inside}

    def begins(self, event: Header) -> None:
        self.seen = event.sees(TurnStart)

    def starts(self, event: TurnStart) -> None:
        self.count += 1
        self.next_number(event, "turn", event.turn, self.count)
        self.open[event.turn] = event
        self.running[event.session] = self.running.get(event.session, 0) + 1

    def ends(self, event: TurnEnd) -> None:
        start = self.open.pop(event.turn, None)
        if start is not None:
            self.running[start.session] -= 1
        if start is None or start.session != event.session:
            self.broken(f"turn {event.turn} ends, and was not running in this session", event.n)
        self.word(event, event.outcome, _OUTCOMES)
        if event.requests and event.outcome != "paused":
            self.broken("a turn has requests and does not pause", event.n)
        if (event.outcome in ("failed", "timeout")) != (event.error is not None):
            self.broken("a turn fails without an error, or has an error and does not fail", event.n)

    def shows(self, event: Shown) -> None:
        if not 0 < event.turn <= self.count or not self.running.get(event.session):
            self.broken(f"turn {event.turn} shows something, and is not running", event.n)

    def happens(self, event: Event) -> None:
        if self.seen and not self.running.get(event.session):
            self.broken(f"{event.kind} while no turn of its session runs", event.n)

    def end(self) -> None:
        for start in self.open.values():
            if not self.cut:
                self.broken(f"turn {start.turn} does not end", start.n)
