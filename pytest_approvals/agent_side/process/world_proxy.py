"""The world as an agent in another process sees it: everything is asked of the harness."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, TypeVar

from ..contract.types import MAIN, Item, ModelAddress, Reply
from ..rpc.messages import AskGate, AskModel, GateAnswer, Ran, RunTool, Shown, Value
from ..rpc.peer import RpcPeer
from ..rpc.remote_errors import BrokenContract, Kept
from ..rpc.serialization import SerializationError, from_json, to_json, to_json_safe

T = TypeVar("T")


class PendingToolBodies:
    """The bodies of a person's own tools that wait for the harness to call them."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._waiting: dict[int, _ToolBody] = {}

    def add(self, real: Callable[[], Awaitable[Any]]) -> tuple[int, _ToolBody]:
        """Takes in a body and gives its number."""
        number = next(self._numbers)
        body = self._waiting[number] = _ToolBody(real)
        return number, body

    def drop(self, number: int) -> None:
        """Forgets a body that the harness did not call."""
        self._waiting.pop(number, None)

    async def run(self, number: int) -> Value:
        """Has the body with that number run where it waits, and gives what it returned."""
        body = self._waiting.pop(number, None)
        if body is None:
            raise BrokenContract(f"no tool waits under the number {number}")
        body.entered.set_result(None)
        await body.over
        if body.error is not None:
            raise body.error
        return Value(value=to_json_safe(body.result))


class _ToolBody:
    """One execution of a person's own tool; it runs in the task that the framework called it in."""

    def __init__(self, real: Callable[[], Awaitable[Any]]) -> None:
        loop = asyncio.get_running_loop()
        self._real = real
        self.entered: asyncio.Future[None] = loop.create_future()
        self.over: asyncio.Future[None] = loop.create_future()
        self.result: Any = None
        self.error: Exception | None = None

    async def play(self) -> None:
        try:
            self.result = await self._real()
        except Exception as error:
            self.error = error
        if not self.over.done():
            self.over.set_result(None)


@dataclass(slots=True, kw_only=True)
class HarnessConnection:
    """
    What the worlds of one process share.

    Attributes:
        limit: How many seconds the harness may take for an answer.
        breaches: What adapters said that the contract does not allow, until somebody tells the harness.
    """

    channel: RpcPeer
    limit: float
    bodies: PendingToolBodies = field(default_factory=PendingToolBodies)
    breaches: list[str] = field(default_factory=list)


class WorldProxy:
    """
    Implements `contract.World` for one session by calls to the harness.

    What the harness does not wait for is there before anything else happens, as if it were in this process.
    """

    def __init__(self, home: HarnessConnection, session: int, model: ModelAddress | None) -> None:
        self._home = home
        self._session = session
        self._model = model

    async def model(
        self, items: Sequence[Item], *, agent: str = MAIN, stream: bool = False, tools: Sequence[str] = ()
    ) -> Reply:
        """See `contract.World.model`."""
        asked = AskModel(session=self._session, items=tuple(items), agent=agent, stream=stream, tools=tuple(tools))
        return await self._call("model", asked, Reply)

    def address(self) -> ModelAddress | None:
        """See `contract.World.address`."""
        return self._model

    async def run(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        call_id: str | None,
        *,
        agent: str = MAIN,
        real: Callable[[], Awaitable[Any]] | None = None,
    ) -> Any:
        """See `contract.World.run`."""
        run = RunTool(session=self._session, tool=tool, arguments=arguments, call_id=call_id, agent=agent)
        if real is None:
            return (await self._call("run", run, Ran)).value
        number, body = self._home.bodies.add(real)
        try:
            return await self._run_real(replace(run, real=number), body)
        finally:
            self._home.bodies.drop(number)

    async def _run_real(self, run: RunTool, body: _ToolBody) -> Any:
        written = self._written("run", run)
        asking = asyncio.ensure_future(self._home.channel.call("run", written, limit=self._home.limit))
        try:
            waiting: set[asyncio.Future[Any]] = {asking, body.entered}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if body.entered.done():
                await body.play()
            ran = from_json(Ran, await asking)
        except asyncio.CancelledError:
            asking.cancel()
            await asyncio.wait({asking})
            raise
        except Kept:
            assert body.error is not None
            raise body.error from None
        return body.result if ran.kept else ran.value

    def gate(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """See `contract.World.gate`: the thread waits for the answer, because the framework's policy cannot."""
        asked = AskGate(session=self._session, tool=tool, arguments=arguments, call_id=call_id, agent=agent)
        answer = self._home.channel.call_and_block("gate", self._written("gate", asked), limit=self._home.limit)
        return from_json(GateAnswer, answer).needed

    async def gate_slowly(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """See `contract.World.gate_slowly`."""
        asked = AskGate(
            session=self._session, tool=tool, arguments=arguments, call_id=call_id, agent=agent, slowly=True
        )
        return (await self._call("gate", asked, GateAnswer)).needed

    def shown(self, what: str, **facts: Any) -> None:
        """See `contract.World.shown`."""
        told = Shown(session=self._session, what=what, facts=facts)
        self._home.channel.notify("shown", self._written("shown", told))

    async def _call(self, method: str, params: Any, kind: type[T]) -> T:
        written = self._written(method, params)
        return from_json(kind, await self._home.channel.call_at_once(method, written, limit=self._home.limit))

    def _written(self, method: str, params: Any) -> Any:
        try:
            return to_json(params, anything=to_json_safe)
        except SerializationError as mistake:
            self._home.breaches.append(f"World.{method} was called with nonsense: {mistake}")
            raise BrokenContract(self._home.breaches[-1]) from None
