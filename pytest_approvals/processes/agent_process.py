"""Agent process: the connection to one process, its calls, and its end.

However the process fails, every call that waits for it fails at once with a `HostError` that names the cause.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, TypeVar

from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.agent_side.contract.metadata import Facts
from pytest_approvals.agent_side.process.fork_server import describe_exit
from pytest_approvals.agent_side.rpc.messages import COMMANDS, PROTOCOL_VERSION, Hello, RunReal, Value, Welcome
from pytest_approvals.agent_side.rpc.peer import CallTimeout, ConnectionEnded, RpcPeer
from pytest_approvals.agent_side.rpc.remote_errors import BrokenContract, Stopped
from pytest_approvals.agent_side.rpc.serialization import SerializationError, from_json, to_json
from pytest_approvals.errors import HostError, UsageError
from pytest_approvals.processes.process_groups import Stray, find_strays, orphan_killer
from pytest_approvals.processes.rpc_handlers import RpcHandlers
from pytest_approvals.processes.stderr import LoopStderrTail

T = TypeVar("T")

SIZE_OF_CUT_FILES = 64
"""The bytes up to which a process may write to a file whose next write is cut off: less than any store writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTimeouts:
    """Time limits of an agent process, in seconds.

    Attributes:
        start: From its start to its first answer.
        answer: For any other answer.
        stop: Until it has dropped a call that is stopped.
        end: For its end without a signal, and again after each signal that it gets then.
    """

    start: float = 60.0
    answer: float = 60.0
    stop: float = 3.0
    end: float = 2.0


class AgentProcess:
    """An agent process and the connection to it; it belongs to the event loop that it was started on.

    Args:
        agent: The name of the agent, for messages and for the process itself.
        number: The number that the pool assigns to the process.
        connection: This side of the protocol's connection.
        stderr: The descriptor to read what the process prints.
        timeouts: Its time limits.
        child: The process, if it is a child of this one.

    Attributes:
        facts: The agent's metadata.
        how: `forked` or `started`.
        lost: The cause, once the process is lost.
        sessions: The numbers of the open sessions.
        on_loss: Called at once when the connection to it ends.
        can_cut_writes: Whether this system can limit the size of the files that another process writes, as Linux can.
    """

    can_cut_writes: ClassVar[bool] = hasattr(resource, "prlimit")

    def __init__(
        self,
        agent: str,
        number: int,
        connection: socket.socket,
        stderr: int,
        *,
        timeouts: ProcessTimeouts,
        child: subprocess.Popen[bytes] | None = None,
    ) -> None:
        self.agent = agent
        self.number = number
        self.facts = Facts()
        self.how = ""
        self.lost: str | None = None
        self.sessions: set[int] = set()
        self.on_loss: Callable[[], object] | None = None
        self.pid = child.pid if child else None
        self._child = child
        self._timeouts = timeouts
        self._connection = connection
        self._stderr = LoopStderrTail(stderr)
        self._handlers = RpcHandlers(self._run_body)
        self._peer = RpcPeer(connection.fileno(), connection.fileno(), self, stop_limit=timeouts.stop)
        self._examination: asyncio.Task[None] | None = None
        self._strays: list[Stray] = []
        self._ended = False
        self._hangs = False
        self._session_numbers = count(1)
        if self.pid is not None:
            orphan_killer.add(self.pid)

    async def greet(self) -> None:
        """Exchange greetings with the process, which loads the agent.

        Raises:
            HostError: It broke the protocol.
            RemoteError: It cannot find the agent.
        """
        hello = Hello(protocol=PROTOCOL_VERSION, process=self.number, agent=self.agent)
        welcome = await self.call("hello", hello, Welcome, limit=self._timeouts.start)
        if welcome.protocol != PROTOCOL_VERSION:
            raise HostError(
                self.agent, f"its process speaks protocol {welcome.protocol}; the harness speaks {PROTOCOL_VERSION}"
            )
        self.facts, self.how = welcome.facts, welcome.how
        if self.pid is None:
            self.pid = welcome.pid
            orphan_killer.add(self.pid)

    def begin_session(self, world: World) -> int:
        """Return the number of a new session; *world* answers what the process asks for it."""
        session = next(self._session_numbers)
        self.sessions.add(session)
        self._handlers.add(session, world)
        return session

    @property
    def is_usable(self) -> bool:
        """Whether it can be called from the running event loop."""
        return not self._ended and self.lost is None and self.is_on_running_loop

    @property
    def is_on_running_loop(self) -> bool:
        """Whether it belongs to the running event loop."""
        return self._stderr.is_on_running_loop

    @property
    def is_ended(self) -> bool:
        """Whether it was ended."""
        return self._ended

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None before its end, and if it is not a child."""
        return self._child.returncode if self._child is not None else None

    @property
    def is_orphaned(self) -> bool:
        """Whether only `end_now` can end it, because its event loop was closed."""
        return not self._ended and self._stderr.is_loop_closed

    async def call(self, method: str, params: Any, kind: type[T], *, limit: float | None = None) -> T:
        """Call the process, and raise here what is raised there.

        Args:
            method: One of `COMMANDS`.
            params: Its parameters.
            kind: The type of its answer.
            limit: Seconds until the process must have answered; by default that of `ProcessTimeouts`.

        Raises:
            HostError: The process is lost, or its answer is invalid.
            UsageError: *params* hold something that cannot be serialized.
        """
        assert COMMANDS[method] == (type(params), kind)
        try:
            message = to_json(params)
        except SerializationError as error:
            raise UsageError(f"Cannot send `{method}` to another process: {error}") from None
        try:
            answer = await self._peer.call(method, message, limit=limit or self._timeouts.answer)
            return from_json(kind, answer)
        except CallTimeout as late:
            self.call_timed_out(late)
            raise await self._loss(method) from None
        except ConnectionEnded:
            raise await self._loss(method) from None
        except (BrokenContract, Stopped) as broken:
            raise HostError(self.agent, str(broken)) from None
        except SerializationError as error:
            raise HostError(self.agent, f"invalid response to `{method}`: {error}") from None

    def find_limit(self, seconds: float | None) -> float:
        """Return the time limit of a call; one that has a limit of so many seconds itself is to be ended by that."""
        return self._timeouts.answer if seconds is None else max(self._timeouts.answer, seconds + 1.0)

    async def _run_body(self, command: RunReal) -> Value:
        return await self.call("real", command, Value)

    # --- what the peer calls ---

    async def answer(self, method: str, params: Any) -> Any:
        """See `peer.RpcHandler`."""
        try:
            return await self._handlers.answer(method, params)
        except BrokenContract as broken:
            # Closed only after the answer, from which the author of such a process learns what was wrong.
            asyncio.get_running_loop().call_soon(self._peer.close, str(broken))
            raise

    def notice(self, method: str, params: Any) -> None:
        """See `peer.RpcHandler`."""
        try:
            self._handlers.handle_notice(method, params)
        except BrokenContract as broken:
            self._peer.close(str(broken))

    def call_timed_out(self, late: CallTimeout) -> None:
        """See `peer.RpcHandler`."""
        self._hangs = True
        self._peer.close(str(late))

    def connection_ended(self, why: str | None) -> None:
        """See `peer.RpcHandler`."""
        self.lost = why or "its process ended"
        if self.on_loss is not None:
            self.on_loss()
        # The peer does not wait for this; the calls that failed do, in `_loss`.
        self._examination = asyncio.ensure_future(self._examine(why))

    async def _loss(self, method: str) -> HostError:
        # Several calls may wait for the examination; one that is cancelled must not cancel it for the others.
        if self._examination is not None:
            await asyncio.shield(self._examination)
        cause = self.lost or "its process was ended before"
        return HostError(self.agent, f"`{method}` was not answered: {cause}", self._stderr.text)

    async def _examine(self, why: str | None) -> None:
        """Ensure that a lost process is gone, and find out how it ended."""
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
        # A process that did not answer in time is not waited for once more.
        if not await self._stderr.wait_until_over(0.0 if self._hangs else self._timeouts.end):
            await self._kill()
        self._reap()
        if why is None:
            self.lost = f"its process ended ({self._status()})"

    def _status(self) -> str:
        if self._child is not None and self._child.returncode is not None:
            return describe_exit(self._child.returncode)
        return self._stderr.status or "exit status unknown"

    # --- the end ---

    async def end(self) -> None:
        """Close the connection, then send SIGTERM, then SIGKILL to the process group."""
        if self._ended:
            return
        self._ended = True
        try:
            if self._examination is not None:
                await self._examination
            else:
                self._find_strays()
                self._peer.close(None, tell=False)
                # A process exits when its input ends.
                self._connection.shutdown(socket.SHUT_WR)
                if not await self._stderr.wait_until_over(self._timeouts.end):
                    await self._kill()
        finally:
            self.end_now()

    def end_now(self) -> None:
        """Kill the process without an event loop, waiting only for the operating system."""
        self._ended = True
        with suppress(RuntimeError):  # its event loop may be closed
            self._peer.close(None, tell=False)
        self._connection.close()
        if not self._stderr.is_over:
            self._find_strays()
            self._signal(signal.SIGKILL)
        self._stderr.close()
        self._reap()
        for stray in self._strays:
            stray.kill()
        if self.pid is not None:
            orphan_killer.remove(self.pid)

    def kill(self) -> None:
        """Send SIGKILL to the process group, as a crash; nothing that the process has still sent is answered."""
        self._find_strays()
        self._signal(signal.SIGKILL)
        self._peer.close("its process was killed")

    def stop(self) -> None:
        """Send SIGSTOP to the process group: nothing of it runs until `wake`."""
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Send SIGCONT to the process group."""
        self._signal(signal.SIGCONT)

    def cut_next_write(self) -> None:
        """Let the kernel end the process in the middle of its next write to a file, with `SIZE_OF_CUT_FILES`.

        A process whose turn is to die in a write leaves the signal SIGXFSZ alone; others get an error from that write.
        """
        self._set_limit(resource.RLIMIT_CORE, 0)
        self._set_limit(resource.RLIMIT_FSIZE, SIZE_OF_CUT_FILES)

    def allow_writes(self) -> None:
        """Lift the limit of `cut_next_write`, if the process still lives."""
        with suppress(ProcessLookupError):
            self._set_limit(resource.RLIMIT_FSIZE, None)

    @property
    def has_died_in_write(self) -> bool:
        """Whether the limit of `cut_next_write` has ended it."""
        return self.lost is not None and self._status() == describe_exit(-signal.SIGXFSZ)

    def _set_limit(self, limit: int, value: int | None) -> None:
        """Set a soft limit of the process, to the hard limit if *value* is None."""
        assert self.pid is not None
        _, hard = resource.prlimit(self.pid, limit)
        resource.prlimit(self.pid, limit, (hard if value is None else value, hard))

    async def _kill(self) -> None:
        # The id of a forked process is unknown before its greeting; until then its fork server ends it.
        if self.pid is None:
            return
        self._find_strays()
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._signal(number)
            if await self._stderr.wait_until_over(self._timeouts.end):
                return

    def _find_strays(self) -> None:
        """Find what has left its group, which nobody could find after its end."""
        if self.pid is not None and not self._strays:
            self._strays = find_strays(self.pid)

    def _signal(self, number: signal.Signals) -> None:
        if self.pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _reap(self) -> None:
        if self._child is not None and self._child.returncode is None:
            self._signal(signal.SIGKILL)  # its number cannot be another's before it is reaped
            self._child.wait()
            orphan_killer.remove(self._child.pid)
