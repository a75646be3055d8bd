"""
One agent process, as the harness sees it: asked by calls, ended by its number, and when it is lost, told how.

However it fails, whoever waits for it learns it at once as a `HostError`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.agent_side.contract.metadata import Facts
from pytest_approvals.agent_side.process.fork_server import describe_exit
from pytest_approvals.agent_side.rpc.messages import COMMANDS, PROTOCOL_VERSION, Hello, RunReal, Value, Welcome
from pytest_approvals.agent_side.rpc.peer import CallTimeout, ConnectionEnded, RpcPeer
from pytest_approvals.agent_side.rpc.remote_errors import BrokenContract, Stopped
from pytest_approvals.agent_side.rpc.serialization import SerializationError, from_json, to_json
from pytest_approvals.errors import HostError, UsageError
from pytest_approvals.processes.rpc_handlers import RpcHandlers
from pytest_approvals.processes.stderr import LoopStderrTail

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTimeouts:
    """
    How many seconds an agent process may take.

    Attributes:
        start: From its start to its first answer.
        answer: For any other answer.
        end: To end by itself, and again after each signal that it gets then.
    """

    start: float = 60.0
    answer: float = 60.0
    end: float = 2.0


class AgentProcess:
    """
    An agent process and the connection to it; it belongs to the event loop that it was begun on.

    Arguments:
        agent: The agent as it is named, for messages and for the process itself.
        number: The number that the harness gives to the process.
        connection: This side of the protocol's connection.
        stderr: Where to read what the process prints.
        child: The process, where it is a child of this one.

    Attributes:
        facts: What the agent says of itself.
        how: `forked` or `started`.
        lost: What happened, once the process is lost.
        sessions: The sessions that are open.
    """

    def __init__(
        self,
        agent: str,
        number: int,
        connection: socket.socket,
        stderr: int,
        *,
        patience: ProcessTimeouts,
        child: subprocess.Popen[bytes] | None = None,
    ) -> None:
        self.agent = agent
        self.number = number
        self.facts = Facts()
        self.how = ""
        self.lost: str | None = None
        self.sessions: set[int] = set()
        self.pid = child.pid if child else None
        self._child = child
        self._patience = patience
        self._connection = connection
        self._stderr = LoopStderrTail(stderr)
        self._callbacks = RpcHandlers(self._run_body)
        self._channel = RpcPeer(connection.fileno(), connection.fileno(), self)
        self._examination: asyncio.Task[None] | None = None
        self._ended = False
        self._hangs = False
        self._session_numbers = count(1)

    async def begin(self) -> None:
        """
        Greets the process.

        Errors:
            HostError: It did not answer as it should.
            RemoteError: It cannot find the agent.
        """
        hello = Hello(protocol=PROTOCOL_VERSION, process=self.number, agent=self.agent)
        welcome = await self.call("hello", hello, Welcome, limit=self._patience.start)
        if welcome.protocol != PROTOCOL_VERSION:
            raise HostError(
                self.agent, f"its process speaks protocol {welcome.protocol}; the harness speaks {PROTOCOL_VERSION}"
            )
        self.pid, self.facts, self.how = welcome.pid, welcome.facts, welcome.how

    def begin_session(self, world: World) -> int:
        """Gives the number of a new session; *world* answers what the process asks for it, to its end."""
        session = next(self._session_numbers)
        self.sessions.add(session)
        self._callbacks.add(session, world)
        return session

    @property
    def usable(self) -> bool:
        """Whether it can be asked anything from here."""
        return not self._ended and self.lost is None and self.here

    @property
    def here(self) -> bool:
        """Whether it belongs to the running event loop."""
        return self._stderr.here

    @property
    def ended(self) -> bool:
        """Whether it was ended."""
        return self._ended

    @property
    def exit_code(self) -> int | None:
        """What it ended with, negative for a signal; None before, and where it is no child of this process."""
        return self._child.returncode if self._child is not None else None

    @property
    def forsaken(self) -> bool:
        """Whether nobody can end it any more but by `end_now`: its event loop was closed."""
        return not self._ended and self._stderr.loop_closed

    async def call(self, method: str, params: Any, kind: type[T], *, limit: float | None = None) -> T:
        """
        Asks the process.

        Errors:
            HostError: The process is lost, or gives an answer that it must not give.
            UsageError: *params* hold something that cannot cross.
            Anything else: What was raised there.
        """
        assert COMMANDS[method] == (type(params), kind)
        try:
            written = to_json(params)
        except SerializationError as mistake:
            raise UsageError(f"`{method}` cannot be told to another process: {mistake}") from None
        try:
            answer = await self._channel.call(method, written, limit=limit or self._patience.answer)
            return from_json(kind, answer)
        except CallTimeout as late:
            self.call_timed_out(late)
            raise await self._loss(method) from None
        except ConnectionEnded:
            raise await self._loss(method) from None
        except (BrokenContract, Stopped) as broken:
            raise HostError(self.agent, str(broken)) from None
        except SerializationError as mistake:
            raise HostError(self.agent, f"its process answered `{method}` with nonsense: {mistake}") from None

    async def _run_body(self, command: RunReal) -> Value:
        return await self.call("real", command, Value)

    # --- what the channel asks ---

    async def answer(self, method: str, params: Any) -> Any:
        """See `channel.Peer`."""
        try:
            return await self._callbacks.answer(method, params)
        except BrokenContract as broken:
            # Once it has been answered: whoever writes such a process learns from the answer what was wrong.
            asyncio.get_running_loop().call_soon(self._channel.close, str(broken))
            raise

    def notice(self, method: str, params: Any) -> None:
        """See `channel.Peer`."""
        try:
            self._callbacks.notice(method, params)
        except BrokenContract as broken:
            self._channel.close(str(broken))

    def call_timed_out(self, late: CallTimeout) -> None:
        """See `channel.Peer`."""
        self._hangs = True
        self._channel.close(str(late))

    def connection_ended(self, why: str | None) -> None:
        """See `channel.Peer`."""
        self.lost = why or "its process ended"
        self._examination = asyncio.ensure_future(self._examine(why))

    async def _loss(self, method: str) -> HostError:
        if self._examination is not None:
            await asyncio.shield(self._examination)
        what = self.lost or "its process was ended before"
        return HostError(self.agent, f"`{method}` was not answered: {what}", self._stderr.text)

    async def _examine(self, why: str | None) -> None:
        """Sees to it that a lost process is gone, and finds out how it went."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
        if not await self._stderr.rest(0.0 if self._hangs else self._patience.end):
            await self._kill()
        self._reap()
        if why is None:
            self.lost = f"its process ended ({self._status()})"

    def _status(self) -> str:
        if self._child is not None and self._child.returncode is not None:
            return describe_exit(self._child.returncode)
        return self._stderr.status or "nobody knows how"

    # --- the end ---

    async def end(self) -> None:
        """Ends the process: lets it go, then asks it to go, then makes it go; nothing of it is left."""
        if self._ended:
            return
        self._ended = True
        try:
            if self._examination is not None:
                await self._examination
            else:
                self._channel.close(None, tell=False)
                self._connection.shutdown(socket.SHUT_WR)
                if not await self._stderr.rest(self._patience.end):
                    await self._kill()
        finally:
            self.end_now()

    def end_now(self) -> None:
        """Ends the process without waiting for anything but the operating system; for when no event loop runs."""
        self._ended = True
        with suppress(RuntimeError):  # its event loop may be closed
            self._channel.close(None, tell=False)
        self._connection.close()
        if not self._stderr.over:
            self._signal(signal.SIGKILL)
        self._stderr.close()
        self._reap()

    async def _kill(self) -> None:
        if self.pid is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            if await self._stderr.rest(self._patience.end):
                return

    def _signal(self, number: signal.Signals) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _reap(self) -> None:
        if self._child is not None and self._child.returncode is None:
            self._signal(signal.SIGKILL)  # its number cannot be another's before it is reaped
            self._child.wait()
