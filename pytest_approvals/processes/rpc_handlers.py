"""RPC handlers: answer what an agent process asks of the worlds of its sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from typing import Any, Protocol, runtime_checkable

from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.agent_side.contract.types import MAIN, ElicitationAnswer, Reply
from pytest_approvals.agent_side.rpc.messages import (
    CALLBACKS,
    NOTICES,
    AskGate,
    AskModel,
    Elicit,
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


@runtime_checkable
class GateRecorder(Protocol):
    """World that records the answers of policies that were evaluated in the agent's process."""

    def record_gate(
        self,
        tool: str,
        arguments: Any,
        call_id: str | None,
        *,
        agent: str = MAIN,
        answer: bool | None = None,
        raised: str | None = None,
    ) -> None:
        """Record the answer, or the message of what was raised."""


RunToolBody = Callable[[RunReal], Awaitable[Value]]
"""Runs the body of a user's own tool in the agent's process."""


class RpcHandlers:
    """The worlds of one process, as the process reaches them.

    Args:
        run_body: Calls the process for a body that it has announced.
    """

    def __init__(self, run_body: RunToolBody) -> None:
        self._run_body = run_body
        self._worlds: dict[int, World] = {}
        self._bodies: dict[int, Context] = {}
        self._handlers: dict[str, Callable[[World, Any], Awaitable[Any]]] = {
            "model": self._model,
            "run": self._run,
            "gate": self._gate,
            "elicit": self._elicit,
        }

    def add(self, session: int, world: World) -> None:
        """Route the requests of a session to *world*."""
        self._worlds[session] = world

    async def answer(self, method: str, params: Any) -> Any:
        """Return the world's answer as JSON; an exception of the world is propagated.

        Raises:
            BrokenContract: The method or its parameters are invalid.
        """
        if method not in CALLBACKS:
            raise BrokenContract(f"it called the unknown method {method!r}")
        request_type, answer_type = CALLBACKS[method]
        world, request = self._read(method, request_type, params)
        return to_json(await self._handlers[method](world, request), answer_type)

    def handle_notice(self, method: str, params: Any) -> None:
        """Handle a notice.

        Raises:
            BrokenContract: The notice or its parameters are invalid.
        """
        if method not in NOTICES:
            raise BrokenContract(f"it sent the unknown notice {method!r}")
        world, notice = self._read(method, NOTICES[method], params)
        if isinstance(notice, Shown):
            self._record_shown(world, notice)
        elif isinstance(notice, Gated):
            self._record_gate(world, notice)

    def _read(self, method: str, kind: Any, params: Any) -> tuple[World, Any]:
        try:
            message = from_json(kind, params)
        except SerializationError as error:
            raise BrokenContract(f"it sent invalid parameters with `{method}`: {error}") from None
        if message.session not in self._worlds:
            raise BrokenContract(f"it named the unknown session {message.session} in `{method}`")
        return self._worlds[message.session], message

    async def _model(self, world: World, request: AskModel) -> Reply:
        reply = world.model(request.items, agent=request.agent, stream=request.stream, tools=request.tools)
        body = None if request.inside is None else self._bodies.get(request.inside)
        # By the context, the world knows for which call the body runs.
        return await (reply if body is None else asyncio.create_task(reply, context=body.copy()))

    async def _gate(self, world: World, request: AskGate) -> GateAnswer:
        if request.slowly:
            needed = await world.gate_slowly(request.tool, request.arguments, request.call_id, agent=request.agent)
        else:
            needed = world.gate(request.tool, request.arguments, request.call_id, agent=request.agent)
        return GateAnswer(needed=needed)

    async def _elicit(self, world: World, request: Elicit) -> ElicitationAnswer:
        return await world.elicit(request.message, form=request.form, url=request.url)

    async def _run(self, world: World, run: RunTool) -> Ran:
        if run.real is None:
            value = await world.run(run.tool, run.arguments, run.call_id, agent=run.agent, elicited=run.elicited)
            return Ran(value=value)
        body = _RemoteToolBody(self._run_body, run.real, self._bodies)
        try:
            value = await world.run(run.tool, run.arguments, run.call_id, agent=run.agent, real=body)
        except Exception as error:
            # The process still has the exception object that its own tool raised, and raises that.
            if error is body.error:
                raise Kept from None
            raise
        # The process still has the object that its own tool returned, unless the world replaced it.
        return Ran(kept=True) if body.has_returned and value is body.value else Ran(value=value)

    def _record_shown(self, world: World, notice: Shown) -> None:
        try:
            world.shown(notice.what, **notice.facts)
        except TypeError as error:
            raise BrokenContract(f"it showed {notice.what!r} with invalid facts: {error}") from None

    def _record_gate(self, world: World, notice: Gated) -> None:
        assert isinstance(world, GateRecorder)
        world.record_gate(
            notice.tool,
            notice.arguments,
            notice.call_id,
            agent=notice.agent,
            answer=notice.answer,
            raised=notice.raised,
        )


class _RemoteToolBody:
    """A user's own tool, which runs in the agent's process while the world here records it."""

    def __init__(self, run: RunToolBody, number: int, running: dict[int, Context]) -> None:
        self._run = run
        self._number = number
        self._running = running
        self.has_returned = False
        self.value: Any = None
        self.error: Exception | None = None

    async def __call__(self) -> Any:
        self._running[self._number] = copy_context()
        try:
            self.value = (await self._run(RunReal(number=self._number))).value
        except Exception as error:
            self.error = error
            raise
        finally:
            del self._running[self._number]
        self.has_returned = True
        return self.value
