"""One session of an agent: its turns, and what is kept between them."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_approvals.agent_side.contract import (
    Agent,
    Blueprint,
    Decision,
    Finished,
    Outcome,
    Paused,
    Request,
    ToolSpec,
    Unsupported,
    World,
)

from .facts import PROTOCOLS
from .naming import named
from .releases import has

if TYPE_CHECKING:
    from typing import Self

    from pydantic_ai import DeferredToolRequests, DeferredToolResults

    from .state import State


class Session(Agent):
    """
    A session on a Pydantic AI agent; flavours differ in what gates calls and in what is kept between turns.

    After a failed turn it keeps the messages that `capture_run_messages` holds; `state.after_failure` names the places.
    """

    framework = "pydantic-ai-slim"
    wire_rules = "chat"
    protocols = PROTOCOLS
    issues = "https://github.com/pydantic/pydantic-ai/issues"
    packages = ("pydantic_ai",)
    connects = True

    raised: ClassVar[bool] = False
    needs: ClassVar[tuple[str, str] | None] = None
    """The file of the framework, and the name in it, without which there is no such flavour."""

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._check_release()
        from .state import State
        from .subject import Subject

        self._state = State()
        self._append = blueprint.history == "append"
        self._specs = named(blueprint.tools)
        self._subject = Subject(blueprint, raised=self.raised, capabilities=self._handlers())

    def _check_release(self) -> None:
        if self.needs is not None and not has(*self.needs):
            module, name = self.needs
            raise ImportError(f"this release of {self.framework} has no {name!r} in pydantic_ai/{module}")

    def _handlers(self) -> Sequence[Any]:
        """The capabilities of the framework that a built agent has besides its tools."""
        return ()

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        return self._outcome(await self._run(text, self._results(decisions), stream=stream))

    async def _run(self, text: str | None, results: DeferredToolResults | None, *, stream: bool) -> Any:
        from .state import after

        with self._running() as before:
            result = await self._subject.run(text, before.messages, results, shown=self._shown if stream else None)
        self._state = after(before, result, append=self._append)
        return result

    @contextmanager
    def _running(self) -> Iterator[State]:
        """Within, the framework's objects find this session's world; a run that fails leaves what it got to."""
        from pydantic_ai import capture_run_messages

        from .state import after_failure

        before = self._state
        try:
            with self._playing(), capture_run_messages() as captured:
                yield before
        except BaseException as error:
            self._state = after_failure(
                before,
                captured,
                asked=self._asked(before),
                append=self._append,
                cancelled=isinstance(error, CancelledError),
            )
            raise

    @contextmanager
    def _playing(self) -> Iterator[None]:
        """Within, the framework's objects find this session's world."""
        from .model import RUNNING

        token = RUNNING.set(self.world)
        try:
            yield
        finally:
            RUNNING.reset(token)

    def _asked(self, before: State) -> DeferredToolRequests | None:
        """The requests that the caller knew of when a run failed that had begun with the state *before*."""
        return before.requests

    def _outcome(self, result: Any) -> Outcome:
        from .results import output, said

        waiting = self._state.requests
        if waiting is None:
            return Finished(output=output(result))
        requests = self._listed(waiting)
        if not requests:
            raise Unsupported("attach", "the run waits for calls that run elsewhere; only approvals can be answered")
        return Paused(requests=requests, text=said(result))

    def _shown(self, event: Any) -> None:
        from .streaming import seen

        for what, told in seen(event, self._specs):
            self.world.shown(what, **told)

    # --- requests and decisions ---------------------------------------------------------------------------------------

    async def pending(self) -> Sequence[Request]:
        return self._listed(self._open())

    def _open(self) -> DeferredToolRequests | None:
        return self._state.requests

    def _listed(self, requests: DeferredToolRequests | None) -> tuple[Request, ...]:
        from .decisions import open_requests

        return open_requests(requests, self._specs)

    def _results(self, decisions: Sequence[Decision]) -> DeferredToolResults | None:
        from .decisions import results

        place = self.blueprint.options.get("raw_in", "approvals")
        return results(decisions, self._open(), aside=self._state.results, raw_in=place)

    async def cancel(self) -> None:
        """Closes the open calls with `repair_messages`, which the framework names where a new prompt is refused."""
        from .state import given_up

        self._state = given_up(self._state)

    # --- state --------------------------------------------------------------------------------------------------------

    async def another_session(self, world: World) -> Self:
        from .state import State

        other = copy(self)
        other.world = world
        other._state = State()
        return other

    def tools(self) -> tuple[ToolSpec, ...]:
        return self._subject.tools()
