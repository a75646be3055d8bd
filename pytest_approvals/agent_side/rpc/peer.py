"""Messages as lines: how they are written and read, and what makes a line one kind of message or another.

One end of a connection on which both sides call.

A line is a message: a call `{"id", "m", "p"}`, a notice (a call without an id), or an answer `{"re", "ok"}` or
`{"re", "err"}`. Any number of calls may be open in both directions; each gets exactly one answer. Messages take effect
in the order in which they were sent, and whoever stops a call waits until the other side has let go of it.

Whoever calls with `"blocks": true` stands still until the answer is there, or until it is told with the notice `is_wait_notice`
that the other side has to wait for something first: what is done without waiting is done in one go, as if both sides
were one process.
"""

from __future__ import annotations

import asyncio
import json
import time
from itertools import count
from typing import Any, Protocol

from .line_transport import MAX_LINE_BYTES, LineTransport
from .remote_errors import Failure, Stopped, to_exception, to_failure
from .serialization import SerializationError, from_json, to_json


def _reject_constant(word: str) -> None:
    raise ValueError(word)


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_decode = json.JSONDecoder(parse_constant=_reject_constant).decode

_CALL_AND_NOTICE_KEYS = ({"id", "m", "p"}, {"id", "m", "p", "blocks"}, {"m", "p"})


def encode_message(message: dict[str, Any]) -> bytes:
    """Gives the line that says it."""
    return _encode(message).encode("ascii") + b"\n"


def decode_message(line: bytes) -> Any:
    """Gives the message, or None where the line is not JSON."""
    try:
        return _decode(line.decode())
    except (ValueError, RecursionError):
        return None


def is_call_or_notice(message: dict[str, Any]) -> bool:
    """Says whether it has what one of them must have, and nothing else."""
    known = message.keys() in _CALL_AND_NOTICE_KEYS and message.get("blocks", True) is True
    return known and isinstance(message["m"], str)


def is_call_reference(params: Any) -> bool:
    """Says whether the parameters of a notice are the number of a call."""
    return isinstance(params, dict) and params.keys() == {"call"} and type(params["call"]) is int


def is_wait_notice(message: dict[str, Any], number: int) -> bool:
    """Says whether it tells who called that the call has to wait."""
    return message.get("m") == "waits" and message.get("p") == {"call": number}


def unwrap_answer(answer: dict[str, Any]) -> Any:
    """Gives what a call returned, or raises what it raised."""
    if "ok" in answer:
        return answer["ok"]
    raise to_exception(from_json(Failure, answer["err"]))


def format_excerpt(line: bytes) -> str:
    """Gives a line as it is quoted in a complaint."""
    text = line.decode(errors="backslashreplace")
    return text if len(text) <= 200 else f"{text[:200]}... ({len(line)} bytes)"


class RpcHandler(Protocol):
    """What a channel asks of its own side."""

    async def answer(self, method: str, params: Any) -> Any:
        """Answers a call of the other side with JSON; whatever it raises is the answer, too."""

    def notice(self, method: str, params: Any) -> None:
        """Takes a notice of the other side."""

    def overdue(self, late: CallTimeout) -> None:
        """Learns that the other side did not let go of a stopped call in time."""

    def broke_off(self, why: str | None) -> None:
        """Learns that the other side is gone, or (*why*) broke the protocol; nothing comes after it."""


class ConnectionEnded(Exception):
    """The other side is gone; *why* says what it broke, if it did."""

    def __init__(self, why: str | None) -> None:
        self.why = why
        super().__init__(why or "the other side is gone")


class CallTimeout(Exception):
    """A call was not answered in time."""

    def __init__(self, method: str, limit: float) -> None:
        self.method = method
        self.limit = limit
        super().__init__(f"no answer to `{method}` within {limit:g} s")


class RpcPeer:
    """
    Calls the other side, and lets *peer* answer its calls, on the running event loop.

    Arguments:
        read: The descriptor to read from; the channel does not close it.
        write: The descriptor to write to; may be the same.
        stop_limit: How many seconds the other side may take to let go of a call that is stopped.
    """

    def __init__(self, read: int, write: int, peer: RpcHandler, *, stop_limit: float = 3.0) -> None:
        self._stop_limit = stop_limit
        self._loop = asyncio.get_running_loop()
        self._lines = LineTransport(read, write, self._arrived)
        self._peer = peer
        self._numbers = count(1)
        self._open: dict[int, asyncio.Future[Any]] = {}
        self._given_up: set[int] = set()
        self._working: dict[int, asyncio.Task[None]] = {}
        self._stopped: set[int] = set()
        self._end: ConnectionEnded | None = None

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
            raise ConnectionEnded(self._end.why)
        number = next(self._numbers)
        self._send({"id": number, "m": method, "p": params})
        return await self._answer_to(number, method, limit)

    def call_and_block(self, method: str, params: Any, *, limit: float) -> Any:
        """
        Calls the other side and blocks the thread until it has answered, for what must be known at once by code that
        cannot wait; what comes in between is taken up afterwards. Raises what `call` raises.
        """
        if not self._lines.own_thread:
            return asyncio.run_coroutine_threadsafe(self.call(method, params, limit=limit), self._loop).result()
        number = next(self._numbers)
        self._send({"id": number, "m": method, "p": params})
        return unwrap_answer(self._block_for(number, method, limit))

    async def call_at_once(self, method: str, params: Any, *, limit: float) -> Any:
        """
        Calls the other side and blocks the thread for as long as it goes on with the call; only a call that has to
        wait there is waited for here. Raises what `call` raises.
        """
        if not self._lines.own_thread:
            return await self.call(method, params, limit=limit)
        number = next(self._numbers)
        self._send({"id": number, "m": method, "p": params, "blocks": True})
        first = self._block_for(number, method, limit)
        if is_wait_notice(first, number):
            return await self._answer_to(number, method, limit)
        self._arrived()  # what this answer has led to there is known here as soon as the answer
        return unwrap_answer(first)

    def notify(self, method: str, params: Any) -> None:
        """Tells the other side something; from any thread."""
        self._send({"m": method, "p": params})

    async def _answer_to(self, number: int, method: str, limit: float) -> Any:
        try:
            return await self._expect(number, method, limit)
        except CallTimeout:
            self._given_up.add(number)
            raise
        except asyncio.CancelledError:
            await self._stop(number, method)
            raise

    def _block_for(self, number: int, method: str, limit: float) -> dict[str, Any]:
        """Gives the first message about a call: its answer, or that it waits."""
        deadline = time.monotonic() + limit
        while (message := self._picked(number)) is None:
            if self._end is not None or self._lines.over:
                raise ConnectionEnded(self._end.why if self._end else None)
            if not self._lines.block(deadline - time.monotonic()):
                self._given_up.add(number)
                raise CallTimeout(method, limit)
        return message

    def _expect(self, number: int, method: str, limit: float) -> asyncio.Future[Any]:
        future = self._open[number] = self._loop.create_future()
        timer = self._loop.call_later(limit, self._expire, number, CallTimeout(method, limit))
        future.add_done_callback(lambda _: timer.cancel())
        return future

    def _expire(self, number: int, late: CallTimeout) -> None:
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
        except (CallTimeout, asyncio.CancelledError) as gone:
            self._open.pop(number, None)
            self._given_up.add(number)
            if isinstance(gone, CallTimeout):
                self._peer.overdue(gone)
        except Exception:
            return  # however it ended: it is over

    def _picked(self, number: int) -> dict[str, Any] | None:
        for line in self._lines.waiting:
            message = decode_message(line)
            if isinstance(message, dict) and (message.get("re") == number or is_wait_notice(message, number)):
                self._lines.waiting.remove(line)
                return message
        return None

    def _send(self, message: dict[str, Any]) -> None:
        self._lines.send(encode_message(message))

    # --- being called ---

    def _arrived(self) -> None:
        while self._lines.waiting and self._end is None:
            line = self._lines.waiting.popleft()
            broken = self._take(decode_message(line))
            if broken:
                self.close(f"{broken}: {format_excerpt(line)}")
        if self._lines.too_long:
            self.close(f"it sent a line of more than {MAX_LINE_BYTES} bytes")
        elif self._lines.over:
            self.close(None)

    def _take(self, message: Any) -> str | None:
        """Takes up a message; says what is broken about it."""
        if not isinstance(message, dict):
            return "it sent a line that is no message"
        if message.keys() in ({"re", "ok"}, {"re", "err"}):
            return self._take_answer(message["re"], message)
        method, number = message.get("m"), message.get("id")
        if not isinstance(method, str) or not is_call_or_notice(message):
            return "it sent a line that is no message"
        if "id" not in message:
            if method in ("stop", "waits") and not is_call_reference(message["p"]):
                return f"it sent nonsense with `{method}`"
            self._loop.call_soon(self._take_notice, method, message["p"])
            return None
        if type(number) is not int or number in self._working:
            return "it called with an id that is not a new number"
        # Not `create_task`: a loop's own task factory may start tasks at once, before the messages that came earlier.
        self._working[number] = asyncio.Task(self._answer(number, method, message["p"]), loop=self._loop)
        if message.get("blocks"):
            self._loop.call_soon(self._tell_that_it_waits, number)
        return None

    def _take_answer(self, number: Any, message: dict[str, Any]) -> str | None:
        if type(number) is not int or (number not in self._open and number not in self._given_up):
            return "it answered a call that is not open"
        future = self._open.pop(number, None)
        self._given_up.discard(number)
        if future is None or future.done():
            return None
        try:
            future.set_result(unwrap_answer(message))
        except SerializationError as mistake:
            self._open[number] = future
            return f"it answered with an error that cannot be read ({mistake})"
        except Exception as error:
            future.set_exception(error)
        return None

    def _tell_that_it_waits(self, number: int) -> None:
        if number in self._working:
            self.notify("waits", {"call": number})

    def _take_notice(self, method: str, params: Any) -> None:
        if method == "stop":
            if (number := params["call"]) in self._working:
                self._stopped.add(number)
                self._working[number].cancel()
        elif method != "waits":  # which is too late for who blocked
            self._peer.notice(method, params)

    async def _answer(self, number: int, method: str, params: Any) -> None:
        try:
            reply = {"re": number, "ok": await self._peer.answer(method, params)}
        except asyncio.CancelledError as error:
            told = Stopped("stopped") if number in self._stopped else error
            reply = {"re": number, "err": to_json(to_failure(told))}
        except Exception as error:
            reply = {"re": number, "err": to_json(to_failure(error))}
        finally:
            del self._working[number]
            self._stopped.discard(number)
        self._send(reply)

    # --- the end ---

    def close(self, why: str | None, *, tell: bool = True) -> None:
        """
        Ends the connection: open calls fail with `ConnectionEnded`, and work for the other side is cancelled.

        Arguments:
            why: What the other side broke; None where it is gone, or where this side has had enough.
            tell: Tell the peer.
        """
        if self._end is not None:
            return
        self._end = ConnectionEnded(why)
        self._lines.close()
        for work in self._working.values():
            work.cancel()
        for future in self._open.values():
            if not future.done():
                future.set_exception(ConnectionEnded(why))
        self._open.clear()
        if tell:
            self._peer.broke_off(why)
