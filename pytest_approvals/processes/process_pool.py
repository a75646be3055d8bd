"""Process pool: starts agent processes, keeps fork servers warm, and ends all of them.

A process is started in a new interpreter, or forked in milliseconds from a fork server. One fork server for each agent
and environment serves a whole session, whatever event loops come and go in it.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import socket
import subprocess
from contextlib import suppress
from functools import cache
from itertools import count

from pytest_approvals.agent_side.process.fork_server import CANNOT_FORK_EXIT_CODE, FORK_COMMAND, describe_exit
from pytest_approvals.agent_side.rpc.remote_errors import RemoteError
from pytest_approvals.errors import AgentUnavailable, HostError
from pytest_approvals.processes.agent_process import AgentProcess, ProcessTimeouts
from pytest_approvals.processes.launchers import Launcher, PythonLauncher
from pytest_approvals.processes.process_groups import orphan_killer
from pytest_approvals.processes.stderr import ThreadStderrTail


class ForkServer:
    """Process that has imported an agent's framework and forks agent processes on command."""

    def __init__(self, agent: str, launcher: Launcher) -> None:
        self.agent = agent
        self._control, theirs = socket.socketpair()
        reading, writing = os.pipe()
        try:
            self._child = launcher.start(
                {"agent": agent, "control": theirs.fileno()},
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                pass_fds=[theirs.fileno()],
            )
        except BaseException:
            self._control.close()
            os.close(reading)
            raise
        finally:
            theirs.close()
            os.close(writing)
        orphan_killer.add(self._child.pid)
        self._tail = ThreadStderrTail(reading)

    def fork(self, protocol: int, stderr: int) -> None:
        """Fork a process that has these descriptors, once the fork server is warm."""
        with suppress(BrokenPipeError):  # the end of the connection will be noticed
            socket.send_fds(self._control, [FORK_COMMAND], [protocol, stderr])

    @property
    def is_gone(self) -> bool:
        """Whether it has ended."""
        return self._child.poll() is not None

    @property
    def has_refused_to_fork(self) -> bool:
        """Whether it has ended because the framework holds threads, which a fork would lose."""
        return self._child.poll() == CANNOT_FORK_EXIT_CODE

    async def end_after_loss(self, loss: str) -> HostError:
        """End it, and return an error that names its exit, or *loss* if it had not exited by itself."""
        has_died = await asyncio.to_thread(self._tail.wait_until_over, 1.0)
        self.end(0.0)
        happened = f"the process that it is forked from ended ({describe_exit(self._child.returncode)})"
        return HostError(self.agent, happened if has_died else loss, self._tail.text)

    def disconnect(self) -> None:
        """Close the connection, after which it ends with all that it has forked."""
        self._control.close()

    def end(self, timeout: float) -> None:
        """Close the connection, then send SIGTERM, then SIGKILL to it and all that it has forked."""
        self.disconnect()
        if not self._tail.wait_until_over(timeout):
            self._signal(signal.SIGTERM)
            if not self._tail.wait_until_over(timeout):
                self._signal(signal.SIGKILL)
        self._signal(signal.SIGKILL)  # whatever else is in its group
        self._child.wait()
        orphan_killer.remove(self._child.pid)
        self._tail.wait_until_over(timeout)

    def _signal(self, number: signal.Signals) -> None:
        if self._child.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, number)


class ProcessPool:
    """Pool of agent processes: starts them, keeps fork servers warm, and ends all of them.

    It may be used on several event loops, one after the other; each process belongs to the loop it was started on.

    Args:
        timeouts: Time limits of its processes.
        max_warm: Number of fork servers to keep; beyond it, those used least recently are ended.
    """

    def __init__(self, timeouts: ProcessTimeouts | None = None, *, max_warm: int = 8) -> None:
        self._timeouts = timeouts or ProcessTimeouts()
        self._max_warm = max_warm
        self._forked_from: dict[int, ForkServer] = {}
        self._warm: dict[tuple[str, Launcher], ForkServer] = {}
        self._processes: dict[int, AgentProcess] = {}
        self._numbers = count(1)
        self._owner = os.getpid()
        atexit.register(self.close_now)

    def warm_up(self, agent: str, launcher: Launcher | None = None) -> ForkServer:
        """Start a fork server for that agent, unless there is one; do not wait until it is warm."""
        launcher = launcher or PythonLauncher()
        # Popped and put back, so that the dictionary is ordered by the latest use.
        known = self._warm.pop((agent, launcher), None)
        if known is not None and known.is_gone:
            known.end(0.0)
            known = None
        warm = self._warm[agent, launcher] = known or ForkServer(agent, launcher)
        self._end_idle_servers(keep=warm)
        return warm

    def _end_idle_servers(self, keep: ForkServer) -> None:
        self._drop_ended()
        for key, warm in list(self._warm.items()):
            if len(self._warm) > self._max_warm and warm is not keep and warm not in self._forked_from.values():
                del self._warm[key]
                warm.end(self._timeouts.end)

    async def start_fresh(self, agent: str, launcher: Launcher | None = None) -> AgentProcess:
        """Start a process, forked if its language and the framework's threads allow that.

        Raises:
            HostError: It breaks the protocol.
            AgentUnavailable: The interpreter cannot be started, or cannot import the agent.
        """
        launcher = launcher or PythonLauncher()
        if not launcher.can_fork:
            return await self.start_cold(agent, launcher)
        warm = self.warm_up(agent, launcher)
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        warm.fork(theirs.fileno(), writing)
        theirs.close()
        os.close(writing)
        process = AgentProcess(agent, next(self._numbers), ours, reading, timeouts=self._timeouts)
        self._forked_from[process.number] = warm
        try:
            return await self._greet(process)
        except HostError as error:
            loss = await warm.end_after_loss(str(process.lost or error))
            if warm.has_refused_to_fork:
                return await self.start_cold(agent, launcher)
            raise loss from None

    async def start_cold(self, agent: str, launcher: Launcher | None = None) -> AgentProcess:
        """Start a process in a new interpreter.

        Raises:
            HostError: It breaks the protocol.
            AgentUnavailable: The interpreter cannot be started, or cannot import the agent.
        """
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        try:
            child = (launcher or PythonLauncher()).start(
                {}, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=writing
            )
        except BaseException:
            ours.close()
            os.close(reading)
            raise
        finally:
            theirs.close()
            os.close(writing)
        process = AgentProcess(agent, next(self._numbers), ours, reading, timeouts=self._timeouts, child=child)
        return await self._greet(process)

    async def _greet(self, process: AgentProcess) -> AgentProcess:
        self._drop_ended()
        self._processes[process.number] = process
        try:
            await process.greet()
        except RemoteError as error:
            await process.end()
            raise AgentUnavailable(process.agent, str(error), "name an agent that can be imported there") from None
        except BaseException:
            await process.end()
            raise
        return process

    def _drop_ended(self) -> None:
        """Drop the processes that have ended, and end those whose event loop was closed before them."""
        for number, process in list(self._processes.items()):
            if process.is_orphaned:
                process.end_now()
            if process.is_ended:
                del self._processes[number]
                self._forked_from.pop(number, None)

    async def close(self) -> None:
        """End all processes."""
        for process in list(self._processes.values()):
            if process.is_on_running_loop:
                await process.end()
        # Kills the processes of other loops; in a thread, because it waits for the fork servers.
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """End all processes, without an event loop; do nothing in a fork of this process."""
        if os.getpid() != self._owner:
            return
        for process in self._processes.values():
            process.end_now()
        # All are disconnected before the first is waited for, so that they end at the same time.
        for warm in self._warm.values():
            warm.disconnect()
        for warm in self._warm.values():
            warm.end(self._timeouts.end)
        self._processes.clear()
        self._forked_from.clear()
        self._warm.clear()


@cache
def get_shared_pool() -> ProcessPool:
    """Return the pool of this process; it is closed when the process ends."""
    return ProcessPool()
