"""What a session records of its tools, its policies and its streams, whoever runs, asks and shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.failures import AsksAgain
from pytest_approvals.agent_side.neutral import MAIN
from pytest_approvals.journal.events import Gate, Shown, ToolEnd, ToolStart

from .errors import described
from .play import Play
from .progress import PlayedCall, Progress

if TYPE_CHECKING:
    from .hangup import HangUp


class SessionRecord:
    """
    The record of one session, as one agent object sees it.

    Attributes:
        progress: How far the session's story has got.
        hang_up: The caller who hangs up in the turn that runs, where one does.
    """

    def __init__(self, play: Play, session: str, progress: Progress | None = None) -> None:
        self.play = play
        self.session = session
        self.progress = progress or Progress()
        self.hang_up: HangUp | None = None
        self._turns: list[int] = []
        self._record = play.journal.record

    # --- turns ---

    @property
    def in_turn(self) -> bool:
        """Whether a turn of the session runs just now."""
        return bool(self._turns)

    @contextmanager
    def turn(self, number: int) -> Iterator[None]:
        """Books what streams show inside on the turn with that number."""
        self._turns.append(number)
        token = _TURN.set(number)
        try:
            yield
        finally:
            _TURN.reset(token)
            self._turns.remove(number)

    def shown(self, what: str, **facts: Any) -> None:
        """See `contract.World.shown`."""
        # Two turns at the same time are told apart by the context that each runs in; what comes from another process
        # has none, but belongs to a world with one turn.
        mine = _TURN.get()
        turn = mine if mine in self._turns else self._turns[-1] if self._turns else 0
        self._record(Shown(session=self.session, turn=turn, what=what, **facts))

    # --- tools and policies ---

    def started(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        call_id: str | None,
        *,
        agent: str = MAIN,
        by: str = "agent",
        real: bool = False,
        call: PlayedCall | None = None,
    ) -> int:
        """Records the start of an execution and gives its number."""
        number = self.play.counters.next_execution()
        self._record(
            ToolStart(
                session=self.session,
                x=number,
                tool=tool,
                arguments=dict(arguments),
                call_id=call_id,
                agent=agent,
                by=by,
                real=real or None,
            )
        )
        if real:
            self.play.journal.flush()
        if call is not None:
            self.play.signals.give(f"started {call.label}")
        return number

    def ended(
        self,
        number: int,
        *,
        result: Any = None,
        error: BaseException | None = None,
        call: PlayedCall | None = None,
    ) -> None:
        """Records the end of the execution with that number."""
        how = "returned" if error is None else _how(error)
        told = None if error is None else described(error)
        self._record(ToolEnd(session=self.session, x=number, how=how, result=result, error=told))
        if call is not None:
            if how == "asked":
                self.play.requests.close(self.session, call.label)
            self.play.signals.give(f"ended {call.label}")

    def gated(
        self,
        tool: str,
        arguments: Any,
        call_id: str | None,
        *,
        agent: str = MAIN,
        answer: bool | None = None,
        raised: str | None = None,
    ) -> None:
        """Records what a policy said about a call, here or beside the agent."""
        self._record(
            Gate(
                session=self.session,
                tool=tool,
                arguments=arguments,
                call_id=call_id,
                agent=agent,
                answer=answer,
                raised=raised,
            )
        )


_TURN: ContextVar[int] = ContextVar("turn", default=0)


def _how(error: BaseException) -> str:
    if isinstance(error, AsksAgain):
        return "asked"
    return "raised" if isinstance(error, Exception) else "cancelled"
