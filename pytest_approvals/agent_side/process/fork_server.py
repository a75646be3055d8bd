"""Start of an agent process: it serves at once, or becomes a fork server.

A fork server is a warm process that has imported an agent's framework, and forks agent processes on command.

Frameworks build much on first use. So the process first runs one warm-up flow (a gated call, requested, approved and
executed) with a world that records nothing; a process that has done this once is worth forking.

A command is one byte on the control socket with two descriptors: the protocol's and standard error's of the new
process. Nothing is answered; the forked process answers on its own connection. A warm process has no event loop and no
threads when it forks. It ends with the harness and terminates its children.
"""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from importlib import import_module
from itertools import chain
from typing import Any, NoReturn

from ..contract.agent import Agent
from ..contract.metadata import get_facts, load_agent_class
from ..contract.types import (
    MAIN,
    Blueprint,
    Chunk,
    Decision,
    ElicitationAnswer,
    Item,
    ModelAddress,
    ModelCall,
    Parameter,
    Paused,
    Reply,
    ToolSpec,
)
from ..rpc.messages import CALLBACKS, COMMANDS, NOTICES
from ..rpc.remote_errors import RemoteFailure
from ..rpc.serialization import get_codec
from .agent_server import serve
from .load_clock import LoadClock, join_thread, wait_until_done
from .network_guard import GUARD_VARIABLE, guard_from_environment
from .process_exit import EXIT_TIMEOUT, exit_with_parent, log_to_stderr

WARMUP_TOOL = ToolSpec(name="practise", parameters={"what": Parameter()}, description="Practises.", approval="always")

MCP_CLIENT_MODULES = ("mcp.client.streamable_http", "mcp.client.stdio")
"""The modules below clients of MCP servers; most frameworks import them when they connect, which takes seconds."""


UNREACHABLE_URL = "http://127.0.0.1:1/v1"
"""An address at which no model is reached."""


class WarmupWorld:
    """Implementation of `World` that asks for the tool once, then says that it is done."""

    async def model(
        self, items: Sequence[Item], *, agent: str = MAIN, stream: bool = False, tools: Sequence[str] = ()
    ) -> Reply:
        """See `World.model`."""
        if any(item.kind == "result" for item in items):
            return Reply(say="Done.", chunks=(Chunk(text="Done."),))
        call = ModelCall(id="p1", tool=WARMUP_TOOL.name, arguments={"what": "this"})
        return Reply(
            calls=(call,), chunks=(Chunk(call=0, id="p1", tool=WARMUP_TOOL.name, arguments='{"what": "this"}'),)
        )

    def address(self) -> ModelAddress | None:
        """See `World.address`."""
        return None

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
        return "practised"

    async def elicit(
        self, message: str, *, form: Mapping[str, Any] | None = None, url: str | None = None
    ) -> ElicitationAnswer:
        """See `World.elicit`."""
        return ElicitationAnswer(action="cancel")

    def gate(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """See `World.gate`."""
        return True

    async def gate_slowly(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """See `World.gate_slowly`."""
        return True

    def shown(self, what: str, **facts: Any) -> None:
        """See `World.shown`."""


LimitClose = Callable[[], AbstractContextManager[None]]
"""Returns what limits the time of closing an agent."""


async def warm_up(adapter: type[Agent], limit_close: LimitClose = nullcontext) -> None:
    """Run the warm-up flow on *adapter*, streamed and not, with a new agent after the pause if its state can be saved.

    Over a protocol the flow ends with the first request, which nobody answers: by then the provider's client is there.
    """
    for module in MCP_CLIENT_MODULES if adapter.connects else ():
        with suppress(ImportError):
            import_module(module)
    saves = "serialize.json" in adapter.capabilities
    for stream in (False, True) if "streaming" in adapter.capabilities else (False,):
        blueprint = Blueprint(tools=(WARMUP_TOOL,), serialize="json" if saves else "none")
        if not adapter.native:
            await _run_flow(adapter, blueprint, limit_close, saves=saves, stream=stream)
        for protocol in filter(None, (adapter.native, *adapter.protocols)):
            await _send_unanswered_request(adapter, blueprint, limit_close, protocol, stream=stream)


async def _run_flow(
    adapter: type[Agent], blueprint: Blueprint, limit_close: LimitClose, *, saves: bool, stream: bool
) -> None:
    world = WarmupWorld()
    agent = adapter(world, blueprint)
    outcome = await agent.turn("Practise this.", (), stream=stream)
    if saves:
        before, agent = agent, adapter(world, blueprint)
        await agent.load((await before.dump(),))
        with limit_close():
            await before.close()
    requests = await agent.pending() if isinstance(outcome, Paused) else ()
    if requests:
        decisions = [Decision(request=request, verdict="approve") for request in requests]
        await agent.turn(None, decisions, stream=stream)
    with limit_close():
        await agent.close()


async def _send_unanswered_request(
    adapter: type[Agent], blueprint: Blueprint, limit_close: LimitClose, protocol: str, *, stream: bool
) -> None:
    # What cannot be reached over this protocol here may be reached over another one, or not be asked for.
    with suppress(Exception):
        address = ModelAddress(protocol=protocol, url=UNREACHABLE_URL)
        agent = adapter(WarmupWorld(), replace(blueprint, model=address))
        with suppress(Exception):
            await agent.turn("Practise this.", (), stream=stream)
        with limit_close():
            await agent.close()


FORK_COMMAND = b"F"
"""The command to fork a process."""

CANNOT_FORK_EXIT_CODE = 75
"""The exit code of a process that cannot be forked because something in it has started threads."""

WARMUP_TIMEOUT = 20.0
WARMUP_CLOSE_TIMEOUT = 3.0
"""The seconds that an agent may take to close; a process that waits for it would serve nobody."""

THREAD_TIMEOUT = 1.0
"""The seconds that threads may take to end after the flow."""


def run_fork_server(control: socket.socket, agent: str) -> None:
    """Warm up with that agent, then fork on command until the harness is gone."""
    with exit_with_parent(control.fileno()):
        _warm_up_agent(agent)
    threads = _list_running_threads()
    if threads:
        log_to_stderr(f"a process with threads cannot be forked: {', '.join(threads)}")
        raise SystemExit(CANNOT_FORK_EXIT_CODE)
    # Frozen objects are left out of collections, so that a fork does not copy their pages.
    gc.collect()
    gc.freeze()
    _ForkServer(control).run()
    os._exit(0)  # nothing here needs an orderly end


def _list_running_threads() -> list[str]:
    """Return the names of the threads that are not about to end."""
    clock = LoadClock()
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    for thread in others:
        join_thread(thread, THREAD_TIMEOUT - clock.read())
    return sorted(thread.name for thread in others if thread.is_alive())


def _warm_up_agent(agent: str) -> None:
    """Run the warm-up flow, so that what a framework builds on first use exists; a failure will show again later."""
    for kind in (RemoteFailure, *chain.from_iterable([*COMMANDS.values(), *CALLBACKS.values()]), *NOTICES.values()):
        get_codec(kind)
    try:
        adapter = load_agent_class(agent)
        get_facts(adapter)
        asyncio.run(_warm_up_in_time(adapter))
    except (Exception, CloseBlocks):
        traceback.print_exc()


class CloseBlocks(BaseException):
    """An agent did not close in time; raised wherever it is then, and not an Exception, because agents catch those."""


@contextmanager
def _limit_close() -> Iterator[None]:
    """Interrupt what is inside, even if it blocks the thread."""

    def on_alarm(*_: Any) -> NoReturn:
        raise CloseBlocks(f"its close() did not return within {WARMUP_CLOSE_TIMEOUT:g} s")

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, WARMUP_CLOSE_TIMEOUT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


async def _warm_up_in_time(adapter: type[Agent]) -> None:
    flow = asyncio.ensure_future(warm_up(adapter, _limit_close))
    if not await wait_until_done(flow, WARMUP_TIMEOUT):
        flow.cancel()
        await asyncio.wait([flow])
        raise TimeoutError(f"the warm-up flow took longer than {WARMUP_TIMEOUT:g} s")
    await flow


class _ForkServer:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, int] = {}
        self._child_ended, self._wake = os.pipe()
        for end in (self._child_ended, self._wake):
            os.set_blocking(end, False)

    def run(self) -> None:
        # Only a signal with a Python handler is written to the wake-up descriptor.
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake)
        while True:
            ready, _, _ = select.select([self._control.fileno(), self._child_ended], [], [])
            if self._child_ended in ready:
                self._reap()
            if self._control.fileno() in ready:
                command, descriptors, _, _ = socket.recv_fds(self._control, 1, 2)
                if command != FORK_COMMAND:
                    break
                self._fork(*descriptors)
        self._terminate_all()

    def _fork(self, protocol: int, stderr: int) -> None:
        for received in (protocol, stderr):
            os.set_inheritable(received, False)
        pid = os.fork()
        if pid == 0:
            self._become_agent(protocol, stderr)
        os.close(protocol)
        self._children[pid] = stderr

    def _become_agent(self, protocol: int, stderr: int) -> NoReturn:
        try:
            # The pipe and the handler are the fork server's; a child's signals must not wake it.
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # A group of its own: `_kill_group` then also ends what the agent has started.
            os.setsid()
            os.dup2(stderr, 1)
            os.dup2(stderr, 2)
            for inherited in (stderr, self._child_ended, self._wake, *self._children.values()):
                os.close(inherited)
            self._control.close()
            serve(protocol, protocol, "forked")
        finally:
            os._exit(1)

    def _reap(self) -> None:
        """Reap the processes that have ended, report how on their standard error, and kill what they left behind."""
        _drain_pipe(self._child_ended)
        for pid, stderr in list(self._children.items()):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
                continue
            # Before it is reaped: until then no other process can get this number.
            _kill_group(pid)
            _, status = os.waitpid(pid, 0)
            os.set_blocking(stderr, False)
            with suppress(OSError):  # nobody has to read it
                os.write(stderr, b"\0" + describe_exit(os.waitstatus_to_exitcode(status)).encode())
            os.close(stderr)
            del self._children[pid]

    def _terminate_all(self) -> None:
        deadline = time.monotonic() + EXIT_TIMEOUT
        while self._children and (left := deadline - time.monotonic()) > 0:
            select.select([self._child_ended], [], [], left)
            self._reap()
        for pid in self._children:
            _kill_group(pid)
            os.waitpid(pid, 0)


def describe_exit(code: int) -> str:
    """Return how a process ended: its exit code, or the signal that ended it.

    >>> describe_exit(3), describe_exit(-9)
    ('exit code 3', 'signal SIGKILL')
    """
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it may not be the leader of a group yet
        os.killpg(pid, signal.SIGKILL)


def _drain_pipe(descriptor: int) -> None:
    with suppress(BlockingIOError):
        while os.read(descriptor, 4096):
            pass


def start(options: dict[str, Any]) -> None:
    """Reserve the descriptors for the protocol, then serve or become a fork server.

    Args:
        options: With `control` (a descriptor) and `agent`, the process becomes a fork server of that agent.
    """
    if GUARD_VARIABLE in os.environ:
        guard_from_environment()
    if "control" in options:
        _redirect_stdout_to_stderr()
        with socket.socket(fileno=options["control"]) as control:
            run_fork_server(control, options["agent"])
        return
    # The protocol takes standard input and output for itself: what a framework prints goes to standard error.
    read, write = os.dup(0), os.dup(1)
    _redirect_stdout_to_stderr()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    with exit_with_parent(read):
        serve(read, write, "started")


def _redirect_stdout_to_stderr() -> None:
    os.dup2(2, 1)
    # A framework may have replaced `sys.stdout` by an object that cannot be reconfigured.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
