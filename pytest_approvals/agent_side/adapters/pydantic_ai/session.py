"""Sessions: turns, what is kept between them, and the flavours whose runs end when they need approval."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

from ...contract import (
    RENAMED,
    Agent,
    Blueprint,
    Decision,
    Finished,
    Outcome,
    Paused,
    Request,
    ToolSpec,
    World,
)
from ...kit.context import use_world
from .messages import index_specs
from .metadata import MISSING, PROTOCOLS, RAISED_MISSING, RECOVERY, framework_has

if TYPE_CHECKING:
    from typing import Self

    from pydantic_ai import DeferredToolRequests, DeferredToolResults

    from .state import State


class Session(Agent):
    """A session on a Pydantic AI agent; flavours differ in what gates calls and in what is kept between turns.

    After a failed turn it keeps the messages that `capture_run_messages` holds; `update_state_after_failure` names the
    places in the documentation.
    """

    framework = "pydantic-ai-slim"
    wire_rules = "chat"
    protocols = PROTOCOLS
    issues = "https://github.com/pydantic/pydantic-ai/issues"
    packages = ("pydantic_ai",)
    given_options = ("user_prompt", "message_history", "deferred_tool_results", "model")
    connects = True
    renames = RENAMED

    raised: ClassVar[bool] = False
    runs_in_workflow: ClassVar[bool] = False
    """A run is a workflow, in which a stream has a handler, and servers have an id."""
    needs: ClassVar[tuple[str, str] | None] = None
    """The file of the framework and the name in it that the flavour needs."""

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._check_release()
        # These modules import the framework, which may be missing when the flavours are listed.
        from .agents import AgentGraph
        from .state import State

        self._state = State()
        self._append = blueprint.history == "append"
        self._specs = index_specs(blueprint.tools)
        self._subject = AgentGraph(
            blueprint,
            raised=self.raised,
            build_capabilities=self._build_capabilities,
            in_workflow=self.runs_in_workflow,
        )

    def _check_release(self) -> None:
        if self.needs is not None and not framework_has(*self.needs):
            module, name = self.needs
            raise ImportError(f"this release of {self.framework} has no {name!r} in pydantic_ai/{module}")

    def _build_capabilities(self, agent: str) -> Sequence[Any]:
        """Return the framework's capabilities that a built agent has in addition to its tools."""
        return ()

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        results = self._write_results(await self._execute_outside(decisions))
        return self._to_outcome(await self._run(text, results, stream=stream))

    async def _execute_outside(self, decisions: Sequence[Decision]) -> Sequence[Decision]:
        attachment = self.blueprint.attachment
        if attachment is None:
            return decisions
        from .requests import execute_outside

        requests = self._open_requests()
        return [await execute_outside(decision, requests, self.world, attachment.stubs) for decision in decisions]

    async def _run(self, text: str | None, results: DeferredToolResults | None, *, stream: bool) -> Any:
        from .state import update_state

        with self._keep_progress() as before:
            result = await self._subject.run(
                text, before.messages, results, shown=self._report_event if stream else None
            )
        self._state = update_state(before, result, append=self._append)
        return result

    @contextmanager
    def _keep_progress(self) -> Iterator[State]:
        """Run a block in this session's world; if it fails, keep the state that the run has reached."""
        from pydantic_ai import capture_run_messages

        from .state import update_state_after_failure

        before = self._state
        try:
            # It captures the first run of the block only: those of agents inside tools do not mix in.
            with use_world(self.world), capture_run_messages() as captured:
                yield before
        except BaseException as error:  # a cancelled turn leaves messages, too
            self._state = update_state_after_failure(
                before,
                captured,
                asked=self._known_requests(before),
                append=self._append,
                cancelled=isinstance(error, CancelledError),
            )
            raise

    def _known_requests(self, before: State) -> DeferredToolRequests | None:
        """Return the requests that the caller knew of when a run failed that had begun with the state *before*."""
        return before.requests

    def _to_outcome(self, result: Any) -> Outcome:
        from .requests import read_output, read_text

        waiting = self._state.requests
        if waiting is None:
            return Finished(output=read_output(result))
        return Paused(requests=self._read_requests(waiting), text=read_text(result))

    def _report_event(self, event: Any) -> None:
        from .requests import read_event

        for what, details in read_event(event, self._specs, answers=self.blueprint.attachment is not None):
            self.world.shown(what, **details)

    # --- requests and decisions ---------------------------------------------------------------------------------------

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        return self._read_requests(self._open_requests())

    def _open_requests(self) -> DeferredToolRequests | None:
        return self._state.requests

    def _read_requests(self, requests: DeferredToolRequests | None) -> tuple[Request, ...]:
        from .requests import read_requests

        return read_requests(requests, self._specs)

    def _write_results(self, decisions: Sequence[Decision]) -> DeferredToolResults | None:
        from .requests import write_decisions

        place = self.blueprint.options.get("raw_in", "approvals")
        return write_decisions(decisions, self._open_requests(), aside=self._state.results, raw_in=place)

    async def cancel(self) -> None:
        """Close the open calls with `repair_messages`, which the framework names when it refuses a new prompt."""
        from .state import close_open_calls

        self._state = close_open_calls(self._state)

    # --- state --------------------------------------------------------------------------------------------------------

    async def another_session(self, world: World) -> Self:
        """See `Agent.another_session`."""
        from .state import State

        other = copy(self)
        other.world = world
        other._state = State()
        return other

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._subject.tools()

    def earlier_turns(self) -> int | None:
        """See `Agent.earlier_turns`."""
        return self._subject.earlier_turns()


class PydanticAI(Session):
    """A Pydantic AI agent whose gates are declared.

    That is `requires_approval=True`, and `approval_required(predicate)` for conditions.

    Between turns it keeps what the documentation tells a caller to keep: the message history and the
    `DeferredToolRequests` of the last result, from which `pending` reads.
    """

    missing = MISSING
    recovery = RECOVERY

    async def stage(self, decisions: Sequence[Decision]) -> None:
        """Keep a `DeferredToolResults` with the history until the next run, as its type adapter is documented for."""
        self._state.results = self._write_results(await self._execute_outside(decisions))

    async def trim(self, keep: int) -> None:
        """Load the conversation from a `ConversationStore` with a `limit`, the framework's own window."""
        from .state import trim_state

        self._state = await trim_state(self._state, keep)

    async def dump(self) -> str:
        """See `Agent.dump`."""
        from .state import dump_state

        return dump_state(self._state, append=self._append)

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        from .state import load_state

        self._state = load_state(parts)

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        assert isinstance(other, PydanticAI)
        self._state = deepcopy(other._state)


class Raised(PydanticAI):
    """A Pydantic AI agent whose tool bodies raise `ApprovalRequired` unless `ctx.tool_call_approved`."""

    missing = RAISED_MISSING
    raised = True
