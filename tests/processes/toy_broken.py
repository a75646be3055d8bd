"""Agents that break the contract or the protocol, each in one way; only ever imported by agent processes."""

# ruff: noqa: ASYNC220, ASYNC221, T201 -- they do what one must not

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from toy_agent import Toy

from pytest_approvals.agent_side.contract import Decision, Finished, Item, Outcome, Paused, Request
from pytest_approvals.agent_side.process.fork_server import WarmupWorld


def protocol_descriptor() -> int:
    """The descriptor of the protocol: the only socket beyond the standard three that is connected."""
    for name in sorted(os.listdir("/dev/fd"), key=int):
        number = int(name)
        try:
            with socket.socket(fileno=os.dup(number)) as candidate:
                candidate.getpeername()
        except OSError:
            continue
        loop: Any = asyncio.get_running_loop()
        if number not in (0, 1, 2, loop._csock.fileno(), loop._ssock.fileno()):
            return number
    raise LookupError("no protocol")


def write(line: bytes) -> None:
    """Write to the protocol behind everybody's back."""
    os.write(protocol_descriptor(), line)


class Broken(Toy):
    """Behaves as long as it only practises."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if isinstance(self.world, WarmupWorld):
            return await super().turn(text, decisions, stream=stream)
        return await self.broken()

    async def broken(self) -> Any:
        raise NotImplementedError


class Dies(Broken):
    async def broken(self) -> Any:
        sys.stderr.write("last words\n")
        sys.stderr.flush()
        os._exit(3)


class Exits(Broken):
    async def broken(self) -> Any:
        sys.exit(4)


class IsKilled(Broken):
    async def broken(self) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class DiesInATool(Broken):
    """Dies while the harness runs a tool for it."""

    async def broken(self) -> Any:
        self.running = asyncio.ensure_future(self.world.run("look", {"amount": 1}, "c1"))
        await asyncio.sleep(0)  # until the tool has begun
        await self.world.model([])
        os._exit(0)


class DiesBetweenTurns(Broken):
    async def broken(self) -> Any:
        self.dying = asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(os._exit, 5))
        return Finished(output="Fine.")


class LeavesItsConnection(Broken):
    """Closes the connection and lives on, deaf to the polite signal."""

    async def broken(self) -> Any:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with socket.socket(fileno=protocol_descriptor()) as connection:
            connection.shutdown(socket.SHUT_RDWR)
        threading.Event().wait()


class Waits(Broken):
    """Never answers, but listens."""

    async def broken(self) -> Any:
        await asyncio.Event().wait()


class AnswersSlowly(Toy):
    """Takes its time for a turn."""

    async def turn(self, text: Any, decisions: Any, *, stream: bool) -> Any:
        await asyncio.sleep(0.7)
        return await super().turn(text, decisions, stream=stream)


class Hangs(Broken):
    """Never answers, and hears nothing."""

    async def broken(self) -> Any:
        threading.Event().wait()


class Spins(Broken):
    """Never answers, burns its processor, and ignores the polite signal."""

    async def broken(self) -> Any:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            pass


class ClingsToItsTurn(Broken):
    """Does not let itself be cancelled."""

    async def broken(self) -> Any:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue


class Prints(Broken):
    async def broken(self) -> Any:
        print("{'id': 1}")
        sys.stdout.flush()
        os.write(1, b"not a message\n")
        subprocess.run(["echo", "neither this"], check=True)
        return Finished(output="Fine.")


class PrintsALot(Broken):
    async def broken(self) -> Any:
        for number in range(100_000):
            print(f"line {number}")
        sys.stdout.flush()
        os._exit(3)


class WritesGarbage(Broken):
    async def broken(self) -> Any:
        write(b"garbage\n")
        return Finished(output="Fine.")


class WritesHalfALine(Broken):
    async def broken(self) -> Any:
        write(b'{"re": ')
        return Finished(output="Fine.")


class WritesNoMessage(Broken):
    async def broken(self) -> Any:
        write(b'{"hello": "world"}\n')
        return Finished(output="Fine.")


class WritesNaN(Broken):
    async def broken(self) -> Any:
        write(b'{"m": "shown", "p": NaN}\n')
        return Finished(output="Fine.")


class AnswersTwice(Broken):
    """Answers its first turn (the third call: hello, build, turn), and then lets the real answer follow."""

    async def broken(self) -> Any:
        write(b'{"re": 3, "ok": {"finished": {"output": "Fine."}}}\n')
        return Finished(output="Fine.")


class AnswersNobody(Broken):
    async def broken(self) -> Any:
        write(b'{"re": 77, "ok": {}}\n')
        await asyncio.Event().wait()


class AnswersWithABadError(Broken):
    async def broken(self) -> Any:
        write(b'{"re": 3, "err": "no"}\n')
        await asyncio.Event().wait()


class CallsTheUnknown(Broken):
    async def broken(self) -> Any:
        try:
            await self.world._connection.peer.call("order_pizza", {}, limit=5)  # type: ignore[attr-defined]
        except Exception as error:
            sys.stderr.write(f"answered: {error}\n")
            sys.stderr.flush()
            raise


class NoticesTheUnknown(Broken):
    async def broken(self) -> Any:
        self.world._connection.peer.notify("order_pizza", {})  # type: ignore[attr-defined]
        await asyncio.Event().wait()


class ShowsNonsense(Broken):
    async def broken(self) -> Any:
        self.world.shown("text", colour="red")
        await asyncio.Event().wait()


class CallsWithNonsense(Broken):
    async def broken(self) -> Any:
        await self.world._connection.peer.call("model", {"session": 1, "items": "none"}, limit=5)  # type: ignore[attr-defined]


class SpeaksOfAnotherSession(Broken):
    async def broken(self) -> Any:
        await self.world._connection.peer.call("model", {"session": 9}, limit=5)  # type: ignore[attr-defined]


class AsksTheModelNonsense(Broken):
    """And hides what it is told about that."""

    async def broken(self) -> Any:
        try:
            await self.world.model([Item(kind="user", text=5)])  # type: ignore[arg-type]
        except Exception:
            return Finished(output="Fine.")


class ReturnsNonsense(Broken):
    async def broken(self) -> Any:
        return {"finished": True}


class ReturnsNoRequest(Broken):
    async def broken(self) -> Any:
        return Paused(requests=("c1",))  # type: ignore[arg-type]


class ReturnsABadRequest(Broken):
    async def broken(self) -> Any:
        return Paused(requests=(Request(id=5, call_id=None, tool="pay", arguments={}),))  # type: ignore[arg-type]


class ReturnsAnyOutput(Broken):
    async def broken(self) -> Any:
        return Finished(output={"self": self, "set": {1}, "nan": float("nan")})


class Unpicklable(Exception):
    """Cannot be pickled, and not even be told."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self.connection = connection

    def __str__(self) -> str:
        raise RuntimeError("no words")


class RaisesTheUnpicklable(Broken):
    async def broken(self) -> Any:
        left, right = socket.socketpair()
        left.close()
        right.close()
        raise Unpicklable(left)


class CannotBeBuilt(Toy):
    def __init__(self, *arguments: Any) -> None:
        raise ValueError("no such thing")


class ExitsWhenBuilt(Toy):
    def __init__(self, *arguments: Any) -> None:
        sys.stderr.write("cannot be warmed\n")
        os._exit(7)


class LeavesAThread(Toy):
    """Starts a thread on first use that never ends, as frameworks do that send traces."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        threading.Thread(target=threading.Event().wait, name="traces", daemon=True).start()


class LeavesAProcess(Broken):
    """Starts a process that holds its standard error and never ends."""

    async def broken(self) -> Any:
        child = subprocess.Popen([sys.executable, "-c", "import threading; threading.Event().wait()"])
        return Finished(output=child.pid)


class LeavesADaemon(Broken):
    """Starts a process in a session of its own that never ends."""

    async def broken(self) -> Any:
        command = [sys.executable, "-c", "import threading; threading.Event().wait()"]
        return Finished(output=subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL).pid)


class IsSlowToClose(Toy):
    async def close(self) -> None:
        if not isinstance(self.world, WarmupWorld):
            await asyncio.Event().wait()


class BlocksInClose(Toy):
    """Blocks its process when it is closed, and ignores the polite signal."""

    async def close(self) -> None:
        if not isinstance(self.world, WarmupWorld):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            threading.Event().wait()


class ClosesSlowly(Toy):
    """Takes its time to close."""

    async def close(self) -> None:
        if not isinstance(self.world, WarmupWorld):
            await asyncio.sleep(1.6)


class NeverCloses(Toy):
    """Waits in close forever, also while it practises."""

    async def close(self) -> None:
        await asyncio.Event().wait()


class BlocksInEveryClose(Toy):
    """Blocks its process in close, also while it practises."""

    async def close(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        threading.Event().wait()


class DumpsNonsense(Toy):
    async def dump(self) -> Any:
        return b"bytes"
