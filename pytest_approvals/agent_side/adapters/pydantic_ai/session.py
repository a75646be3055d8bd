"""One session of an agent: its turns, and what is kept between them.

The flavours whose runs end where they need approval, so that a caller keeps what a run leaves.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_approvals.agent_side.contract import (
    Blueprint,
    Decision,
    Finished,
    Outcome,
    Paused,
    Request,
    ToolSpec,
    Unsupported,
)
from pytest_approvals.agent_side.contract.agent import Agent, World

from . import metadata
from .messages import index_specs
from .metadata import PROTOCOLS, framework_has

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
        from .agents import AgentGraph
        from .state import State

        self._state = State()
        self._append = blueprint.history == "append"
        self._specs = index_specs(blueprint.tools)
        self._subject = AgentGraph(blueprint, raised=self.raised, capabilities=self._handlers())

    def _check_release(self) -> None:
        if self.needs is not None and not framework_has(*self.needs):
            module, name = self.needs
            raise ImportError(f"this release of {self.framework} has no {name!r} in pydantic_ai/{module}")

    def _handlers(self) -> Sequence[Any]:
        """The capabilities of the framework that a built agent has besides its tools."""
        return ()

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        return self._outcome(await self._run(text, self._results(decisions), stream=stream))

    async def _run(self, text: str | None, results: DeferredToolResults | None, *, stream: bool) -> Any:
        from .state import update_state

        with self._running() as before:
            result = await self._subject.run(text, before.messages, results, shown=self._shown if stream else None)
        self._state = update_state(before, result, append=self._append)
        return result

    @contextmanager
    def _running(self) -> Iterator[State]:
        """Within, the framework's objects find this session's world; a run that fails leaves what it got to."""
        from pydantic_ai import capture_run_messages

        from .state import update_state_after_failure

        before = self._state
        try:
            with self._playing(), capture_run_messages() as captured:
                yield before
        except BaseException as error:
            self._state = update_state_after_failure(
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
        from .model import CURRENT_WORLD

        token = CURRENT_WORLD.set(self.world)
        try:
            yield
        finally:
            CURRENT_WORLD.reset(token)

    def _asked(self, before: State) -> DeferredToolRequests | None:
        """The requests that the caller knew of when a run failed that had begun with the state *before*."""
        return before.requests

    def _outcome(self, result: Any) -> Outcome:
        from .requests import read_output, read_text

        waiting = self._state.requests
        if waiting is None:
            return Finished(output=read_output(result))
        requests = self._listed(waiting)
        if not requests:
            raise Unsupported("attach", "the run waits for calls that run elsewhere; only approvals can be answered")
        return Paused(requests=requests, text=read_text(result))

    def _shown(self, event: Any) -> None:
        from .requests import read_event

        for what, told in read_event(event, self._specs):
            self.world.shown(what, **told)

    # --- requests and decisions ---------------------------------------------------------------------------------------

    async def pending(self) -> Sequence[Request]:
        return self._listed(self._open())

    def _open(self) -> DeferredToolRequests | None:
        return self._state.requests

    def _listed(self, requests: DeferredToolRequests | None) -> tuple[Request, ...]:
        from .requests import read_requests

        return read_requests(requests, self._specs)

    def _results(self, decisions: Sequence[Decision]) -> DeferredToolResults | None:
        from .requests import write_decisions

        place = self.blueprint.options.get("raw_in", "approvals")
        return write_decisions(decisions, self._open(), aside=self._state.results, raw_in=place)

    async def cancel(self) -> None:
        """Closes the open calls with `repair_messages`, which the framework names where a new prompt is refused."""
        from .state import close_open_calls

        self._state = close_open_calls(self._state)

    # --- state --------------------------------------------------------------------------------------------------------

    async def another_session(self, world: World) -> Self:
        from .state import State

        other = copy(self)
        other.world = world
        other._state = State()
        return other

    def tools(self) -> tuple[ToolSpec, ...]:
        return self._subject.tools()


class PydanticAI(Session):
    """
    A Pydantic AI agent whose gates are declared: `requires_approval=True`, and `approval_required(predicate)` for
    conditions.

    What it keeps between turns is what the documentation tells a caller to keep: the message history, and beside it the
    `DeferredToolRequests` of the last result, from which `pending` reads.
    """

    capabilities = metadata.CLAIMED
    missing = metadata.MISSING

    async def stage(self, decisions: Sequence[Decision]) -> None:
        """
        Keeps a `DeferredToolResults` with the history until the next run: its type adapter is documented for that.
        """
        self._state.results = self._results(decisions)

    async def trim(self, keep: int) -> None:
        """Takes the conversation from a `ConversationStore` with a `limit`, the framework's own window."""
        from .state import trim_state

        self._state = await trim_state(self._state, keep)

    async def dump(self) -> str:
        from .state import dump_state

        return dump_state(self._state, append=self._append)

    async def load(self, parts: Sequence[str]) -> None:
        from .state import load_state

        self._state = load_state(parts)

    async def copy_from(self, other: Agent) -> None:
        assert isinstance(other, PydanticAI)
        self._state = deepcopy(other._state)


class Raised(PydanticAI):
    """
    A Pydantic AI agent whose tools ask from within: their bodies raise `ApprovalRequired` unless
    `ctx.tool_call_approved`.
    """

    capabilities = metadata.CLAIMED_RAISED
    missing = metadata.MISSING_RAISED
    raised = True
