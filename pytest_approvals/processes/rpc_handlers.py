"""Answers what an agent process asks of its worlds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.agent_side.contract.types import Reply
from pytest_approvals.agent_side.rpc.messages import (
    CALLBACKS,
    NOTICES,
    AskGate,
    AskModel,
    GateAnswer,
    Gated,
    Ran,
    RunReal,
    RunTool,
    Shown,
    Value,
)
from pytest_approvals.agent_side.rpc.remote_errors import BrokenContract, Kept
from pytest_approvals.agent_side.rpc.serialization import SerializationError, from_json, to_json


class GateRecorder(Protocol):
    """A world that records what a policy said beside the agent."""

    def gated(
        self,
        tool: str,
        arguments: Any,
        call_id: str | None,
        *,
        agent: str = "main",
        answer: bool | None = None,
        raised: str | None = None,
    ) -> None:
        """Records it."""


RunToolBody = Callable[[RunReal], Awaitable[Value]]
"""Runs the body of a person's own tool in the agent's process."""


class RpcHandlers:
    """
    The worlds of one process, as the process reaches them.

    Arguments:
        run_body: Calls the process for a body that it has announced.
    """

    def __init__(self, run_body: RunToolBody) -> None:
        self._run_body = run_body
        self._worlds: dict[int, World] = {}
        self._answers: dict[str, Callable[[World, Any], Awaitable[Any]]] = {
            "model": self._model,
            "run": self._run,
            "gate": self._gate,
        }

    def add(self, session: int, world: World) -> None:
        """Lets *world* answer for a session."""
        self._worlds[session] = world

    async def answer(self, method: str, params: Any) -> Any:
        """
        Gives the world's answer as JSON; raises what the world raises.

        Errors:
            BrokenContract: The process asks what cannot be asked.
        """
        if method not in CALLBACKS:
            raise BrokenContract(f"it called the unknown method {method!r}")
        asked_as, answered_as = CALLBACKS[method]
        world, asked = self._read(method, asked_as, params)
        return to_json(await self._answers[method](world, asked), answered_as)

    def notice(self, method: str, params: Any) -> None:
        """
        Takes a notice.

        Errors:
            BrokenContract: It is none that can be taken.
        """
        if method not in NOTICES:
            raise BrokenContract(f"it sent the unknown notice {method!r}")
        world, told = self._read(method, NOTICES[method], params)
        if isinstance(told, Shown):
            self._shown(world, told)
        elif isinstance(told, Gated):
            self._gated(world, told)

    def _read(self, method: str, kind: Any, params: Any) -> tuple[World, Any]:
        try:
            said = from_json(kind, params)
        except SerializationError as mistake:
            raise BrokenContract(f"it sent nonsense with `{method}`: {mistake}") from None
        if said.session not in self._worlds:
            raise BrokenContract(f"it spoke of session {said.session} in `{method}`, and there is none")
        return self._worlds[said.session], said

    async def _model(self, world: World, asked: AskModel) -> Reply:
        return await world.model(asked.items, agent=asked.agent, stream=asked.stream, tools=asked.tools)

    async def _gate(self, world: World, asked: AskGate) -> GateAnswer:
        if asked.slowly:
            needed = await world.gate_slowly(asked.tool, asked.arguments, asked.call_id, agent=asked.agent)
        else:
            needed = world.gate(asked.tool, asked.arguments, asked.call_id, agent=asked.agent)
        return GateAnswer(needed=needed)

    async def _run(self, world: World, run: RunTool) -> Ran:
        if run.real is None:
            return Ran(value=await world.run(run.tool, run.arguments, run.call_id, agent=run.agent))
        body = _RemoteToolBody(self._run_body, run.real)
        try:
            value = await world.run(run.tool, run.arguments, run.call_id, agent=run.agent, real=body)
        except Exception as error:
            if error is body.error:
                raise Kept from None
            raise
        return Ran(kept=True) if body.returned and value is body.value else Ran(value=value)

    def _shown(self, world: World, told: Shown) -> None:
        try:
            world.shown(told.what, **told.facts)
        except TypeError as error:
            raise BrokenContract(f"it showed {told.what!r} with nonsense: {error}") from None

    def _gated(self, world: World, told: Gated) -> None:
        recorder: GateRecorder = world  # type: ignore[assignment]  # every world of the harness is one
        recorder.gated(
            told.tool, told.arguments, told.call_id, agent=told.agent, answer=told.answer, raised=told.raised
        )


class _RemoteToolBody:
    """A person's own tool, which runs in the agent's process while the world here records it."""

    def __init__(self, run: RunToolBody, number: int) -> None:
        self._run = run
        self._number = number
        self.returned = False
        self.value: Any = None
        self.error: Exception | None = None

    async def __call__(self) -> Any:
        try:
            self.value = (await self._run(RunReal(number=self._number))).value
        except Exception as error:
            self.error = error
            raise
        self.returned = True
        return self.value
