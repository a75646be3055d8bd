"""Runs that wait: a handler of the capability `HandleDeferredToolCalls` holds a run until the caller has answered.

The run lives in a task of its own. A turn hands the caller's answers to the handler, and ends when the handler is
asked the next time or when the run ends. What the handler leaves unanswered surfaces as the run's output; it is then
answered as usual, by another run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...contract import MAIN, Blueprint, Decision, Outcome, Paused, Unsupported, World
from .metadata import INLINE_MISSING
from .session import Session

if TYPE_CHECKING:
    from typing import Self

    from pydantic_ai import DeferredToolRequests, DeferredToolResults, RunContext

    from .state import State

_ASKING_SESSION: ContextVar[Inline] = ContextVar("session whose run asks")


@dataclass(slots=True, kw_only=True)
class _PendingQuestion:
    """The requests for which a handler waits, and the future of its answer."""

    context: RunContext[Any]
    requests: DeferredToolRequests
    answer: asyncio.Future[DeferredToolResults | None]


class Inline(Session):
    """A Pydantic AI agent whose runs wait for the caller's answers in a `HandleDeferredToolCalls` handler."""

    missing = INLINE_MISSING
    needs = ("capabilities/__init__.py", "HandleDeferredToolCalls")

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._question: _PendingQuestion | None = None
        self._last: DeferredToolRequests | None = None
        self._task: asyncio.Task[Any] | None = None
        self._moved = asyncio.Event()

    def _build_capabilities(self, agent: str) -> Sequence[Any]:
        from pydantic_ai.capabilities import HandleDeferredToolCalls

        return [HandleDeferredToolCalls(handler=_ask_session)] if agent == MAIN else []

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        results = self._write_results(decisions)
        if self._question is None:
            self._last = None
            self._task = asyncio.create_task(self._run_asking(text, results, stream=stream))
        elif text is None:
            self._answer_question(results)
        else:
            raise Unsupported("message_while_pending", "a run that waits in its handler takes no prompt")
        return await self._wait_for_outcome()

    async def _run_asking(self, text: str | None, results: DeferredToolResults | None, *, stream: bool) -> Any:
        # The run is a task of its own: what is set here does not reach the turn that started it.
        _ASKING_SESSION.set(self)
        try:
            return await self._run(text, results, stream=stream)
        finally:
            self._moved.set()

    async def _wait_for_outcome(self) -> Outcome:
        # Set when the handler asks or the run ends, whichever comes first.
        await self._moved.wait()
        self._moved.clear()
        if self._question is not None:
            return Paused(requests=self._read_requests(self._question.requests))
        assert self._task is not None
        return self._to_outcome(await self._task)

    async def ask(self, context: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults | None:
        """Let the running turn end, and wait for the answers of a later one."""
        self._question = _PendingQuestion(context=context, requests=requests, answer=asyncio.Future())
        self._last = requests
        self._moved.set()
        try:
            return await self._question.answer
        finally:
            self._question = None

    def _answer_question(self, results: DeferredToolResults | None) -> None:
        assert self._question is not None
        # Both at once: until the handler wakes up, nobody may find the question and answer it again.
        self._question.answer.set_result(results)
        self._question = None

    def _open_requests(self) -> DeferredToolRequests | None:
        return self._question.requests if self._question else super()._open_requests()

    def _known_requests(self, before: State) -> DeferredToolRequests | None:
        return self._last or super()._known_requests(before)

    async def cancel(self) -> None:
        """Cancel a waiting run with `RunContext.cancel`, then close the calls that its history leaves open."""
        if self._question is not None and self._task is not None:
            from pydantic_ai import RunCancelled

            self._question.context.cancel()
            with suppress(RunCancelled):
                await self._task
            self._moved.clear()
        await super().cancel()

    async def another_session(self, world: World) -> Self:
        """See `Agent.another_session`."""
        other = await super().another_session(world)
        # The copy shares everything, and a shared event would end the turns of the other session.
        other._question, other._last, other._task, other._moved = None, None, None, asyncio.Event()
        return other

    async def close(self) -> None:
        """See `Agent.close`."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            # `CancelledError` is no `Exception`.
            with suppress(BaseException):
                await self._task


async def _ask_session(context: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults | None:
    return await _ASKING_SESSION.get().ask(context, requests)
