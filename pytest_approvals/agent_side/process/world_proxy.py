"""World proxy of an agent process: it asks the harness for everything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeVar

from ..contract.types import MAIN, ElicitationAnswer, Item, ModelAddress, Reply
from ..rpc.messages import AskGate, AskModel, Elicit, GateAnswer, Ran, RunTool, Shown, Value
from ..rpc.peer import RpcPeer
from ..rpc.remote_errors import BrokenContract, Kept
from ..rpc.serialization import SerializationError, from_json, to_json, to_json_safe

T = TypeVar("T")


class PendingToolBodies:
    """Bodies of a user's own tools that wait for the harness to call them."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._waiting: dict[int, _ToolBody] = {}

    def add(self, real: Callable[[], Awaitable[Any]]) -> tuple[int, _ToolBody]:
        """Add a body and return its number."""
        number = next(self._numbers)
        body = self._waiting[number] = _ToolBody(number, real)
        return number, body

    def drop(self, number: int) -> None:
        """Remove a body that the harness did not call."""
        self._waiting.pop(number, None)

    async def run(self, number: int) -> Value:
        """Let the body with that number run where it waits, and return its result."""
        body = self._waiting.pop(number, None)
        if body is None:
            raise BrokenContract(f"no tool body waits under the number {number}")
        body.entered.set_result(None)
        await body.over
        if body.error is not None:
            raise body.error
        return Value(value=to_json_safe(body.result))


_RUNNING_BODY: ContextVar[int | None] = ContextVar("number of the tool body that runs", default=None)


class _ToolBody:
    """One execution of a user's own tool; it runs in the task in which the framework called it."""

    def __init__(self, number: int, real: Callable[[], Awaitable[Any]]) -> None:
        loop = asyncio.get_running_loop()
        self._number = number
        self._real = real
        self.entered: asyncio.Future[None] = loop.create_future()
        self.over: asyncio.Future[None] = loop.create_future()
        self.result: Any = None
        self.error: Exception | None = None

    async def execute(self) -> None:
        token = _RUNNING_BODY.set(self._number)
        try:
            self.result = await self._real()
        except Exception as error:
            self.error = error
        finally:
            _RUNNING_BODY.reset(token)
        if not self.over.done():
            self.over.set_result(None)


@dataclass(slots=True, kw_only=True)
class HarnessConnection:
    """Connection to the harness that the worlds of one process share.

    Attributes:
        peer: The connection.
        limit: The seconds that the harness may take for an answer.
        bodies: The tool bodies that wait to be called.
        breaches: What adapters did that the contract does not allow, until it is reported to the harness.
        stops_when_shown: The harness kills this process as soon as something was shown.
    """

    peer: RpcPeer
    limit: float
    stops_when_shown: bool = False
    bodies: PendingToolBodies = field(default_factory=PendingToolBodies)
    breaches: list[str] = field(default_factory=list)


class WorldProxy:
    """Implementation of `World` for one session by calls to the harness.

    Answers for which the harness does not wait arrive before anything else happens, as if it were in this process.
    """

    def __init__(self, connection: HarnessConnection, session: int, model: ModelAddress | None) -> None:
        self._connection = connection
        self._session = session
        self._model = model

    async def model(
        self, items: Sequence[Item], *, agent: str = MAIN, stream: bool = False, tools: Sequence[str] = ()
    ) -> Reply:
        """See `World.model`."""
        command = AskModel(
            session=self._session,
            items=tuple(items),
            agent=agent,
            stream=stream,
            tools=tuple(tools),
            inside=_RUNNING_BODY.get(),
        )
        return await self._call("model", command, Reply)

    def address(self) -> ModelAddress | None:
        """See `World.address`."""
        return self._model

    async def run(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        call_id: str | None,
        *,
        agent: str = MAIN,
        real: Callable[[], Awaitable[Any]] | None = None,
        elicited: ElicitationAnswer | None = None,
    ) -> Any:
        """See `World.run`."""
        run = RunTool(
            session=self._session, tool=tool, arguments=arguments, call_id=call_id, agent=agent, elicited=elicited
        )
        if real is None:
            return (await self._call("run", run, Ran)).value
        number, body = self._connection.bodies.add(real)
        try:
            return await self._run_real(replace(run, real=number), body)
        finally:
            self._connection.bodies.drop(number)

    async def _run_real(self, run: RunTool, body: _ToolBody) -> Any:
        written = self._write("run", run)
        asking = asyncio.ensure_future(self._connection.peer.call("run", written, limit=self._connection.limit))
        try:
            waiting: set[asyncio.Future[Any]] = {asking, body.entered}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if body.entered.done():
                await body.execute()
            ran = from_json(Ran, await asking)
        except asyncio.CancelledError:
            asking.cancel()
            # Until the harness has dropped the call: else it would record the tool after the end of the turn.
            await asyncio.wait({asking})
            raise
        except Kept:
            assert body.error is not None
            raise body.error from None
        return body.result if ran.kept else ran.value

    async def elicit(
        self, message: str, *, form: Mapping[str, Any] | None = None, url: str | None = None
    ) -> ElicitationAnswer:
        """See `World.elicit`."""
        command = Elicit(session=self._session, message=message, form=form, url=url)
        return await self._call("elicit", command, ElicitationAnswer)

    def gate(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """See `World.gate`: the thread waits for the answer, because the framework's policy cannot."""
        command = AskGate(session=self._session, tool=tool, arguments=arguments, call_id=call_id, agent=agent)
        answer = self._connection.peer.call_and_block(
            "gate", self._write("gate", command), limit=self._connection.limit
        )
        return from_json(GateAnswer, answer).needed

    async def gate_slowly(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """See `World.gate_slowly`."""
        command = AskGate(
            session=self._session, tool=tool, arguments=arguments, call_id=call_id, agent=agent, slowly=True
        )
        return (await self._call("gate", command, GateAnswer)).needed

    def shown(self, what: str, **facts: Any) -> None:
        """See `World.shown`."""
        notice = Shown(session=self._session, what=what, facts=facts)
        self._connection.peer.notify("shown", self._write("shown", notice))
        if self._connection.stops_when_shown:
            # What the process does meanwhile would depend on how soon the signal arrives.
            self._connection.peer.block(self._connection.limit)

    async def _call(self, method: str, params: Any, kind: type[T]) -> T:
        written = self._write(method, params)
        return from_json(kind, await self._connection.peer.call_at_once(method, written, limit=self._connection.limit))

    def _write(self, method: str, params: Any) -> Any:
        try:
            return to_json(params, anything=to_json_safe)
        except SerializationError as error:
            self._connection.breaches.append(f"invalid arguments of World.{method}: {error}")
            raise BrokenContract(self._connection.breaches[-1]) from None
