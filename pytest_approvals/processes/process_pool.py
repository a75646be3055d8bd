"""
Where agent processes come from: started from nothing, or forked from a warm one in milliseconds.

One warm process for each agent and environment serves a whole session, whatever event loops come and go in it.
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
from pytest_approvals.processes.stderr import ThreadStderrTail


class ForkServer:
    """A process that has imported an agent's framework and forks agent processes on command."""

    def __init__(self, agent: str, environment: Launcher) -> None:
        self.agent = agent
        self._control, theirs = socket.socketpair()
        reading, writing = os.pipe()
        try:
            self._child = environment.start(
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
        self._tail = ThreadStderrTail(reading)

    def fork(self, protocol: int, stderr: int) -> None:
        """Has a process forked that has these descriptors; one that still gets warm does it then."""
        with suppress(BrokenPipeError):  # the end of the connection will tell
            socket.send_fds(self._control, [FORK_COMMAND], [protocol, stderr])

    @property
    def gone(self) -> bool:
        """Whether it has ended."""
        return self._child.poll() is not None

    @property
    def has_refused_to_fork(self) -> bool:
        """Whether it has ended because it holds threads."""
        return self._child.poll() == CANNOT_FORK_EXIT_CODE

    async def lost(self, what: str) -> HostError:
        """Ends it, and says what happened."""
        died = await asyncio.to_thread(self._tail.rest, 1.0)
        self.end(0.0)
        happened = f"the process that it is forked from ended ({describe_exit(self._child.returncode)})"
        return HostError(self.agent, happened if died else what, self._tail.text)

    def let_go(self) -> None:
        """Tells it to end, with all that it has forked."""
        self._control.close()

    def end(self, patience: float) -> None:
        """Ends it and all that it has forked; nothing of them is left."""
        self.let_go()
        if not self._tail.rest(patience):
            self._signal(signal.SIGTERM)
            if not self._tail.rest(patience):
                self._signal(signal.SIGKILL)
        self._signal(signal.SIGKILL)  # whatever else is in its group
        self._child.wait()
        self._tail.rest(patience)

    def _signal(self, number: signal.Signals) -> None:
        if self._child.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, number)


class ProcessPool:
    """
    Starts agent processes, keeps warm ones, and sees to it that all of them end.

    It may be used on several event loops, one after the other; each process belongs to the loop it was started on.

    Arguments:
        most_warm: How many processes are kept warm; of more, the one that was idle longest is ended.
    """

    def __init__(self, patience: ProcessTimeouts | None = None, *, most_warm: int = 8) -> None:
        self._patience = patience or ProcessTimeouts()
        self._most_warm = most_warm
        self._forked_from: dict[int, ForkServer] = {}
        self._warm: dict[tuple[str, Launcher], ForkServer] = {}
        self._processes: dict[int, AgentProcess] = {}
        self._numbers = count(1)
        self._owner = os.getpid()
        atexit.register(self.close_now)

    def warm_up(self, agent: str, environment: Launcher | None = None) -> ForkServer:
        """Starts to warm a process for that agent, unless there is one; does not wait for it."""
        environment = environment or PythonLauncher()
        known = self._warm.pop((agent, environment), None)
        if known is not None and known.gone:
            known.end(0.0)
            known = None
        warm = self._warm[agent, environment] = known or ForkServer(agent, environment)
        self._cool_down(keep=warm)
        return warm

    def _cool_down(self, keep: ForkServer) -> None:
        self._tidy()
        for key, warm in list(self._warm.items()):
            if len(self._warm) > self._most_warm and warm is not keep and warm not in self._forked_from.values():
                del self._warm[key]
                warm.end(self._patience.end)

    async def fresh(self, agent: str, environment: Launcher | None = None) -> AgentProcess:
        """
        Gives a new process, forked from a warm one; where its language or the framework's threads forbid that, a cold
        one.

        Errors:
            HostError: It does not answer as it should.
            AgentUnavailable: The interpreter cannot be started, or does not know the agent.
        """
        environment = environment or PythonLauncher()
        if not environment.forks:
            return await self.cold(agent, environment)
        warm = self.warm_up(agent, environment)
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        warm.fork(theirs.fileno(), writing)
        theirs.close()
        os.close(writing)
        process = AgentProcess(agent, next(self._numbers), ours, reading, patience=self._patience)
        self._forked_from[process.number] = warm
        try:
            return await self._begun(process)
        except HostError as error:
            if process.pid is not None:
                raise
            loss = await warm.lost(str(process.lost or error))
            if warm.has_refused_to_fork:
                return await self.cold(agent, environment)
            raise loss from None

    async def cold(self, agent: str, environment: Launcher | None = None) -> AgentProcess:
        """
        Gives a new process in a new interpreter.

        Errors:
            HostError: It does not answer as it should.
            AgentUnavailable: The interpreter cannot be started, or does not know the agent.
        """
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        try:
            child = (environment or PythonLauncher()).start(
                {}, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=writing
            )
        except BaseException:
            ours.close()
            os.close(reading)
            raise
        finally:
            theirs.close()
            os.close(writing)
        process = AgentProcess(agent, next(self._numbers), ours, reading, patience=self._patience, child=child)
        return await self._begun(process)

    async def _begun(self, process: AgentProcess) -> AgentProcess:
        self._tidy()
        self._processes[process.number] = process
        try:
            await process.begin()
        except RemoteError as error:
            await process.end()
            raise AgentUnavailable(process.agent, str(error), "name an agent that can be imported there") from None
        except BaseException:
            await process.end()
            raise
        return process

    def _tidy(self) -> None:
        """Forgets the processes that have ended, and ends those whose event loop was closed before them."""
        for number, process in list(self._processes.items()):
            if process.forsaken:
                process.end_now()
            if process.ended:
                del self._processes[number]
                self._forked_from.pop(number, None)

    async def close(self) -> None:
        """Ends all processes."""
        for process in list(self._processes.values()):
            if process.here:
                await process.end()
        await asyncio.to_thread(self.close_now)

    def close_now(self) -> None:
        """Ends all processes; works without an event loop, and does nothing in a process that was forked from ours."""
        if os.getpid() != self._owner:
            return
        for process in self._processes.values():
            process.end_now()
        for warm in self._warm.values():
            warm.let_go()
        for warm in self._warm.values():
            warm.end(self._patience.end)
        self._processes.clear()
        self._forked_from.clear()
        self._warm.clear()


@cache
def get_shared_pool() -> ProcessPool:
    """Gives the pool that this process shares; it is closed when the process ends."""
    return ProcessPool()
