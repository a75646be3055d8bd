"""How a journal is read, event by event, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .calls import CallSeen, Declared
from .events import (
    AgentStart,
    Decide,
    Event,
    Gate,
    Header,
    HungUp,
    ModelAnswer,
    ModelExhausted,
    ModelFailure,
    ModelRefusal,
    ModelRequest,
    Restored,
    RunEnd,
    Saved,
    Shown,
    Staged,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
)
from .history import History
from .lines import Line
from .reader_sides import SideReader
from .turns import Fork, RestoreSeen, SaveSeen, TurnSeen


class Reader(SideReader):
    """Reads a journal into a `History`."""

    def read(self) -> History:
        for event in self.history.events:
            reads = _READS.get(type(event))
            if reads is None:
                self.history.of_kind.setdefault(type(event), []).append(event)
            else:
                reads(self, event)
        return self.history

    # --- the frame ---

    def header(self, event: Header) -> None:
        self.history.header = event
        self.history.declared = {name: Declared.of(name, tool) for name, tool in event.tools.items()}
        for tool in self.history.declared.values():
            self.declared.setdefault(tool.name, []).append(tool)

    def end(self, event: RunEnd) -> None:
        self.history.end = event
        for entry in event.pending:
            known = next((line for line in self.lines.values() if entry.get("q") in line.by_q), None)
            line = known or self.line(event.session)
            self._list(line, event.n, (entry,), [])

    def build(self, event: AgentStart) -> None:
        self.history.builds.append(event)

    # --- the caller's side ---

    def turn_start(self, event: TurnStart) -> None:
        line = self.line(event.session)
        turn = TurnSeen(
            number=event.turn, session=event.session, fork=line.fork.number, start=event, before=line.last_turn
        )
        others = self.open.setdefault(event.session, [])
        for other in others:
            other.overlaps = turn.overlaps = True
        others.append(turn)
        self.unsaved.setdefault(event.session, []).append(turn)
        line.last_turn = self.turns[event.session, event.turn] = turn
        self.history.turns.append(turn)
        self._hand_in(line, turn, event)

    def _hand_in(self, line: Line, turn: TurnSeen, event: TurnStart) -> None:
        for given in line.staged:
            given.turn = turn
            turn.decisions.append(given)
        line.staged = []
        for n in event.decisions:
            given_now = self.decisions.get(n)
            if given_now is not None:
                given_now.taken, given_now.turn = event.n, turn
                turn.decisions.append(given_now)

    def turn_end(self, event: TurnEnd) -> None:
        turn = self.turns.get((event.session, event.turn))
        if turn is None:
            return
        turn.end = event
        self.open[event.session] = [each for each in self.open[event.session] if each is not turn]
        line = self.lines[event.session] = self.all_lines[event.session, turn.fork]
        self._list(line, event.n, event.requests, turn.listed)

    def _list(self, line: Line, n: int, entries: Sequence[Mapping[str, Any]], taken: list[CallSeen]) -> None:
        for entry in entries:
            asked, fresh = line.list_request(n, entry, taken)
            if asked.call is not None:
                taken.append(asked.call)
            if fresh:
                self.history.requests.append(asked)

    def decide(self, event: Decide) -> None:
        given = self.line(event.session).decide(event)
        self.decisions[event.n] = given
        self.history.decisions.append(given)

    def stage(self, event: Staged) -> None:
        line = self.line(event.session)
        for n in event.decisions:
            given = self.decisions.get(n)
            if given is not None:
                given.taken, given.staged, given.lost = event.n, True, event.error is not None
                line.staged.append(given)
        self.history.of_kind.setdefault(Staged, []).append(event)

    def hang_up(self, event: HungUp) -> None:
        turn = self.turns.get((event.session, event.turn))
        if turn is not None:
            turn.hung_up = event.n

    def shown(self, event: Shown) -> None:
        turn = self.turns.get((event.session, event.turn))
        if turn is not None:
            turn.shown.append(event)

    # --- the store's side ---

    def save(self, event: Saved) -> None:
        """Turns on two copies of one state are saved after both of them, in their order."""
        unsaved = self.unsaved.get(event.session, [])
        if event.mode == "none":
            unsaved.clear()
        turn = unsaved.pop(0) if unsaved else None
        line = self.all_lines[event.session, turn.fork] if turn is not None else self.line(event.session)
        seen = SaveSeen(event=event, fork=line.fork.number, turn=line.last_turn)
        self.history.saves.append(seen)
        if event.error is None:
            self.saves[event.session, event.name] = seen

    def restore(self, event: Restored) -> None:
        seen = RestoreSeen(event=event, save=self.saves.get((event.session, event.name)))
        self.history.restores.append(seen)
        if event.error is None:
            self._list(self._line_of_save(event, seen.save), event.n, event.pending, seen.listed)

    def _line_of_save(self, event: Restored, saved: SaveSeen | None) -> Line:
        """A restore of a save after which a turn ran is a rewind: it forks the line that was saved."""
        if saved is None:
            return self.line(event.session)
        number, n = saved.fork, saved.event.n
        line = self.all_lines[event.session, number]
        if line.last_turn is None or line.last_turn.start.n < n:
            self.lines[event.session] = line
            return line
        new = Fork(
            number=sum(1 for fork in self.history.forks if fork.session == event.session),
            session=event.session,
            parent=number,
            save=n,
            n=event.n,
            mode=event.mode,
        )
        return self._new_line(line.fork_at(n, new))


_READS: dict[type[Event], Callable[[Any, Any], None]] = {
    Header: Reader.header,
    AgentStart: Reader.build,
    RunEnd: Reader.end,
    TurnStart: Reader.turn_start,
    TurnEnd: Reader.turn_end,
    Decide: Reader.decide,
    Staged: Reader.stage,
    HungUp: Reader.hang_up,
    Shown: Reader.shown,
    ModelRequest: Reader.question,
    ModelAnswer: Reader.answer,
    ModelFailure: Reader.reply,
    ModelRefusal: Reader.reply,
    ModelExhausted: Reader.reply,
    Gate: Reader.gate,
    ToolStart: Reader.tool_start,
    ToolEnd: Reader.tool_end,
    Saved: Reader.save,
    Restored: Reader.restore,
}
"""What each event does to the reading; the others are kept as they are (skips, signals, cancels, losses, trims)."""
