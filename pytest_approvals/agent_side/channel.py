"""
One end of a connection on which both sides call.

A line is a message: a call `{"id", "m", "p"}`, a notice (a call without an id), or an answer `{"re", "ok"}` or
`{"re", "err"}`. Any number of calls may be open in both directions; each gets exactly one answer. Messages take effect
in the order in which they were sent, and whoever stops a call waits until the other side has let go of it.
"""

from __future__ import annotations

import asyncio
import json
import time
from itertools import count
from typing import Any, Protocol

from .crossing import Failure, Stopped, error_of, failure_of
from .lines import LONGEST, Lines
from .wire import WireError, from_json, to_json


def _refuse(word: str) -> None:
    raise ValueError(word)


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_decode = json.JSONDecoder(parse_constant=_refuse).decode


class Peer(Protocol):
    """What a channel asks of its own side."""

    async def answer(self, method: str, params: Any) -> Any:
        """Answers a call of the other side with JSON; whatever it raises is the answer, too."""

    def notice(self, method: str, params: Any) -> None:
        """Takes a notice of the other side."""

    def overdue(self, late: Overdue) -> None:
        """Learns that the other side did not let go of a stopped call in time."""

    def broke_off(self, why: str | None) -> None:
        """Learns that the other side is gone, or (*why*) broke the protocol; nothing comes after it."""


class ChannelEnded(Exception):
    """The other side is gone; *why* says what it broke, if it did."""

    def __init__(self, why: str | None) -> None:
        self.why = why
        super().__init__(why or "the other side is gone")


class Overdue(Exception):
    """A call was not answered in time."""

    def __init__(self, method: str, limit: float) -> None:
        self.method = method
        self.limit = limit
        super().__init__(f"no answer to `{method}` within {limit:g} s")


class Channel:
    """
    Calls the other side, and lets *peer* answer its calls, on the running event loop.

    Arguments:
        read: The descriptor to read from; the channel does not close it.
        write: The descriptor to write to; may be the same.
        stop_limit: How many seconds the other side may take to let go of a call that is stopped.
    """

    def __init__(self, read: int, write: int, peer: Peer, *, stop_limit: float = 3.0) -> None:
        self._stop_limit = stop_limit
        self._loop = asyncio.get_running_loop()
        self._lines = Lines(read, write, self._arrived)
        self._peer = peer
        self._numbers = count(1)
        self._open: dict[int, asyncio.Future[Any]] = {}
        self._given_up: set[int] = set()
        self._working: dict[int, asyncio.Task[None]] = {}
        self._stopped: set[int] = set()
        self._end: ChannelEnded | None = None

    # --- calling ---

    async def call(self, method: str, params: Any, *, limit: float) -> Any:
        """
        Calls the other side.

        Errors:
            Overdue: No answer within *limit* seconds.
            ChannelEnded: The other side is gone.
            Anything else: What the other side raised.
        """
        if self._end is not None:
            raise ChannelEnded(self._end.why)
        number = next(self._numbers)
        future = self._expect(number, method, limit)
        self._send({"id": number, "m": method, "p": params})
        try:
            return await future
        except Overdue:
            self._given_up.add(number)
            raise
        except asyncio.CancelledError:
            await self._stop(number, method)
            raise

    def call_and_block(self, method: str, params: Any, *, limit: float) -> Any:
        """
        Calls the other side and blocks the thread until it has answered, for what must be known at once by code that
        cannot wait; what comes in between is taken up afterwards. Raises what `call` raises.
        """
        if not self._lines.own_thread:
            return asyncio.run_coroutine_threadsafe(self.call(method, params, limit=limit), self._loop).result()
        number = next(self._numbers)
        deadline = time.monotonic() + limit
        self._send({"id": number, "m": method, "p": params})
        while (answer := self._picked(number)) is None:
            if self._end is not None or self._lines.over:
                raise ChannelEnded(self._end.why if self._end else None)
            if not self._lines.block(deadline - time.monotonic()):
                self._given_up.add(number)
                raise Overdue(method, limit)
        return _outcome(answer)

    def notify(self, method: str, params: Any) -> None:
        """Tells the other side something; from any thread."""
        self._send({"m": method, "p": params})

    def _expect(self, number: int, method: str, limit: float) -> asyncio.Future[Any]:
        future = self._open[number] = self._loop.create_future()
        timer = self._loop.call_later(limit, self._expire, number, Overdue(method, limit))
        future.add_done_callback(lambda _: timer.cancel())
        return future

    def _expire(self, number: int, late: Overdue) -> None:
        future = self._open.pop(number, None)
        if future is not None and not future.done():
            future.set_exception(late)

    async def _stop(self, number: int, method: str) -> None:
        if self._open.pop(number, None) is None:
            return  # it was answered in the same moment
        again = self._expect(number, f"stop {method}", self._stop_limit)
        self.notify("stop", {"call": number})
        try:
            await again
        except (Overdue, asyncio.CancelledError) as gone:
            self._open.pop(number, None)
            self._given_up.add(number)
            if isinstance(gone, Overdue):
                self._peer.overdue(gone)
        except Exception:
            return  # however it ended: it is over

    def _picked(self, number: int) -> dict[str, Any] | None:
        for line in self._lines.waiting:
            message = _parsed(line)
            if isinstance(message, dict) and message.get("re") == number:
                self._lines.waiting.remove(line)
                return message
        return None

    def _send(self, message: dict[str, Any]) -> None:
        self._lines.send(_encode(message).encode("ascii") + b"\n")

    # --- being called ---

    def _arrived(self) -> None:
        while self._lines.waiting and self._end is None:
            line = self._lines.waiting.popleft()
            broken = self._take(_parsed(line))
            if broken:
                self.close(f"{broken}: {_excerpt(line)}")
        if self._lines.too_long:
            self.close(f"it sent a line of more than {LONGEST} bytes")
        elif self._lines.over:
            self.close(None)

    def _take(self, message: Any) -> str | None:
        """Takes up a message; says what is broken about it."""
        if not isinstance(message, dict):
            return "it sent a line that is no message"
        if message.keys() in ({"re", "ok"}, {"re", "err"}):
            return self._take_answer(message["re"], message)
        method, number = message.get("m"), message.get("id")
        if not isinstance(method, str) or message.keys() not in ({"id", "m", "p"}, {"m", "p"}):
            return "it sent a line that is no message"
        if "id" not in message:
            if method == "stop" and not _is_stop(message["p"]):
                return "it sent nonsense with `stop`"
            self._loop.call_soon(self._take_notice, method, message["p"])
            return None
        if type(number) is not int or number in self._working:
            return "it called with an id that is not a new number"
        # Not `create_task`: a loop's own task factory may start tasks at once, before the messages that came earlier.
        self._working[number] = asyncio.Task(self._answer(number, method, message["p"]), loop=self._loop)
        return None

    def _take_answer(self, number: Any, message: dict[str, Any]) -> str | None:
        if type(number) is not int or (number not in self._open and number not in self._given_up):
            return "it answered a call that is not open"
        future = self._open.pop(number, None)
        self._given_up.discard(number)
        if future is None or future.done():
            return None
        try:
            future.set_result(_outcome(message))
        except WireError as mistake:
            self._open[number] = future
            return f"it answered with an error that cannot be read ({mistake})"
        except Exception as error:
            future.set_exception(error)
        return None

    def _take_notice(self, method: str, params: Any) -> None:
        if method != "stop":
            self._peer.notice(method, params)
            return
        if (number := params["call"]) in self._working:
            self._stopped.add(number)
            self._working[number].cancel()

    async def _answer(self, number: int, method: str, params: Any) -> None:
        try:
            reply = {"re": number, "ok": await self._peer.answer(method, params)}
        except asyncio.CancelledError as error:
            told = Stopped("stopped") if number in self._stopped else error
            reply = {"re": number, "err": to_json(failure_of(told))}
        except Exception as error:
            reply = {"re": number, "err": to_json(failure_of(error))}
        finally:
            del self._working[number]
            self._stopped.discard(number)
        self._send(reply)

    # --- the end ---

    def close(self, why: str | None, *, tell: bool = True) -> None:
        """
        Ends the connection: open calls fail with `ChannelEnded`, and work for the other side is cancelled.

        Arguments:
            why: What the other side broke; None where it is gone, or where this side has had enough.
            tell: Tell the peer.
        """
        if self._end is not None:
            return
        self._end = ChannelEnded(why)
        self._lines.close()
        for work in self._working.values():
            work.cancel()
        for future in self._open.values():
            if not future.done():
                future.set_exception(ChannelEnded(why))
        self._open.clear()
        if tell:
            self._peer.broke_off(why)


def _parsed(line: bytes) -> Any:
    """Gives the message, or None where the line is not JSON."""
    try:
        return _decode(line.decode())
    except (ValueError, RecursionError):
        return None


def _is_stop(params: Any) -> bool:
    return isinstance(params, dict) and params.keys() == {"call"} and type(params["call"]) is int


def _outcome(answer: dict[str, Any]) -> Any:
    if "ok" in answer:
        return answer["ok"]
    raise error_of(from_json(Failure, answer["err"]))


def _excerpt(line: bytes) -> str:
    text = line.decode(errors="backslashreplace")
    return text if len(text) <= 200 else f"{text[:200]}... ({len(line)} bytes)"
