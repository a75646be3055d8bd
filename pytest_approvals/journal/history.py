"""
A journal read once from start to end: its turns, forks, conversations and calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .calls import Asked, CallSeen, Declared, Execution, Given
from .events import AgentStart, Event, Header, RunEnd
from .turns import Exchange, Fork, RestoreSeen, SaveSeen, TurnSeen


@dataclass(slots=True)
class History:
    """
    What one journal tells; see `calls.py` for all that is in it.

    Attributes:
        events: The events that it was made from.
        of_kind: The events by class, each in order, of those that no record here stands for: skips, stages, gates, ...
        builds: Every start of an agent: which tools there were from then on.
    """

    events: Sequence[Event]
    header: Header | None = None
    end: RunEnd | None = None
    declared: dict[str, Declared] = field(default_factory=dict)
    turns: list[TurnSeen] = field(default_factory=list)
    calls: list[CallSeen] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    requests: list[Asked] = field(default_factory=list)
    decisions: list[Given] = field(default_factory=list)
    forks: list[Fork] = field(default_factory=list)
    saves: list[SaveSeen] = field(default_factory=list)
    restores: list[RestoreSeen] = field(default_factory=list)
    builds: list[AgentStart] = field(default_factory=list)
    of_kind: dict[type[Event], list[Event]] = field(default_factory=dict)

    @classmethod
    def of(cls, events: Iterable[Event]) -> History:
        """Reads a journal, whole or cut off; it judges nothing and raises nothing about what the events say."""
        from .reader import Reader

        return Reader(events if isinstance(events, list) else list(events)).read()

    @property
    def sessions(self) -> tuple[str, ...]:
        """The sessions, in the order in which they began."""
        return tuple(dict.fromkeys(fork.session for fork in self.forks))

    def call(self, label: str, session: str = "") -> CallSeen | None:
        """Gives the call of that label, as the latest fork that has it knows it."""
        found = (call for call in reversed(self.calls) if call.label == label and call.session == session)
        return next(found, None)

    def calls_of(self, label: str, session: str = "") -> Iterator[CallSeen]:
        """Gives the call of that label in each fork."""
        return (call for call in self.calls if call.label == label and call.session == session)

    def events_of(self, *kinds: type[Event]) -> list[Event]:
        """Gives the events of these classes, in order, of those that no other record here stands for."""
        found = [event for kind in kinds for event in self.of_kind.get(kind, ())]
        return sorted(found, key=lambda event: event.n) if len(kinds) > 1 else found

    def tools_at(self, n: int, session: str = "") -> Sequence[str] | None:
        """Gives the tools that the agent had at position *n*; None where the journal does not say."""
        build = self.build_at(n, session)
        return build.tools if build is not None else None

    def parameters_at(self, call: CallSeen, n: int) -> Mapping[str, Mapping[str, Any]]:
        """Gives the parameters that the tool of a call has at position *n*; they may have been others before."""
        build = self.build_at(n, call.session)
        others: Mapping[str, Mapping[str, Any]] = {} if build is None else build.parameters or {}
        return next((others[name] for name in others if self.declared.get(name) is call.declared), call.parameters)

    def build_at(self, n: int, session: str) -> AgentStart | None:
        """Gives the start of the agent that a session had at position *n*; None where the journal does not say."""
        known = [build for build in self.builds if build.n < n and build.session == session]
        return known[-1] if known else None
