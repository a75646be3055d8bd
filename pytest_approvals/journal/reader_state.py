"""What is known while a journal is read: the lines of its sessions, and what is open in them."""

from __future__ import annotations

from collections.abc import Sequence

from .calls import Declared, Execution, Given
from .events import Event
from .history import History
from .lines import Line
from .turns import Exchange, Fork, SaveSeen, TurnSeen


class ReaderState:
    """The state of reading one journal."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.history = History(events)
        self.lines: dict[str, Line] = {}
        self.all_lines: dict[tuple[str, int], Line] = {}
        self.saves: dict[tuple[str, str], SaveSeen] = {}
        self.open: dict[str, list[TurnSeen]] = {}
        self.turns: dict[tuple[str, int], TurnSeen] = {}
        self.decisions: dict[int, Given] = {}
        self.executions: dict[tuple[str, int], Execution] = {}
        self.exchanges: dict[tuple[str, int], Exchange] = {}
        self.declared: dict[str, list[Declared]] = {}
        self.unsaved: dict[str, list[TurnSeen]] = {}

    def line(self, session: str) -> Line:
        found = self.lines.get(session)
        if found is None:
            found = self._new_line(Line(Fork(number=0, session=session)))
        return found

    def _new_line(self, line: Line) -> Line:
        fork = line.fork
        self.history.forks.append(fork)
        self.lines[fork.session] = self.all_lines[fork.session, fork.number] = line
        self.history.calls.extend(line.calls)
        return line
