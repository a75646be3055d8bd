"""RPC peer: one end of a connection on which both sides call, and the framing of its messages.

A line is a message: a call `{"id", "m", "p"}`, a notice (a call without an id), or an answer `{"re", "ok"}` or
`{"re", "err"}`. Any number of calls may be open in both directions; each gets exactly one answer. Messages take effect
in the order in which they were sent, and a side that stops a call waits until the other side has dropped it.

A side that calls with `"blocks": true` blocks until the answer arrives, or until the notice `waits` tells it that
the other side has to wait for something first: what is done without waiting is done at once, as if both sides were one
process.
"""

from __future__ import annotations

import asyncio
import json
import time
from itertools import count
from typing import Any, Protocol

from ..process.load_clock import LoadClock, LoadTimer, get_interval
from .line_transport import MAX_LINE_BYTES, LineTransport
from .remote_errors import RemoteFailure, Stopped, to_exception, to_failure
from .serialization import SerializationError, from_json, to_json


def _reject_constant(word: str) -> None:
    raise ValueError(word)


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_decode = json.JSONDecoder(parse_constant=_reject_constant).decode

_CALL_AND_NOTICE_KEYS = ({"id", "m", "p"}, {"id", "m", "p", "blocks"}, {"m", "p"})


def encode_message(message: dict[str, Any]) -> bytes:
    """Return *message* as a line."""
    return _encode(message).encode("ascii") + b"\n"


def decode_message(line: bytes) -> Any:
    """Return the message in *line*, or None if it is not JSON."""
    try:
        return _decode(line.decode())
    except (ValueError, RecursionError):
        return None


def is_call_or_notice(message: dict[str, Any]) -> bool:
    """Return whether *message* has exactly the keys of a call or of a notice."""
    has_keys = message.keys() in _CALL_AND_NOTICE_KEYS and message.get("blocks", True) is True
    return has_keys and isinstance(message["m"], str)


def is_call_reference(params: Any) -> bool:
    """Return whether the parameters of a notice are the number of a call."""
    return isinstance(params, dict) and params.keys() == {"call"} and type(params["call"]) is int


def is_wait_notice(message: dict[str, Any], number: int) -> bool:
    """Return whether *message* says that the call with this number has to wait."""
    return message.get("m") == "waits" and message.get("p") == {"call": number}


def unwrap_answer(answer: dict[str, Any]) -> Any:
    """Return what a call returned, or raise what it raised."""
    if "ok" in answer:
        return answer["ok"]
    raise to_exception(from_json(RemoteFailure, answer["err"]))


def format_excerpt(line: bytes) -> str:
    """Return a line as it is quoted in an error message."""
    text = line.decode(errors="backslashreplace")
    return text if len(text) <= 200 else f"{text[:200]}... ({len(line)} bytes)"


class RpcHandler(Protocol):
    """The own side of a peer: it answers calls and learns of notices and failures."""

    async def answer(self, method: str, params: Any) -> Any:
        """Answer a call of the other side with JSON; an exception is sent as the answer."""

    def notice(self, method: str, params: Any) -> None:
        """Handle a notice of the other side."""

    def call_timed_out(self, late: CallTimeout) -> None:
        """Handle a stopped call that the other side did not drop in time."""

    def connection_ended(self, why: str | None) -> None:
        """Handle the end: the other side is gone or, with *why*, broke the protocol. Nothing follows."""


class ConnectionEnded(Exception):
    """The other side is gone; *why* names its breach of the protocol, if any."""

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
    """Caller of the other side that lets *handler* answer its calls, on the running event loop.

    Args:
        read: The descriptor to read from; the peer does not close it.
        write: The descriptor to write to; may be the same.
        handler: The own side.
        stop_limit: How many seconds the other side may take to drop a call that is stopped.
    """

    def __init__(self, read: int, write: int, handler: RpcHandler, *, stop_limit: float = 3.0) -> None:
        self._stop_limit = stop_limit
        self._loop = asyncio.get_running_loop()
        self._lines = LineTransport(read, write, self._read_messages)
        self._handler = handler
        self._numbers = count(1)
        self._open: dict[int, asyncio.Future[Any]] = {}
        self._abandoned: set[int] = set()
        self._working: dict[int, asyncio.Task[None]] = {}
        self._stopped: set[int] = set()
        self._end: ConnectionEnded | None = None

    # --- calling ---

    async def call(self, method: str, params: Any, *, limit: float) -> Any:
        """Call the other side and return its answer.

        Raises:
            CallTimeout: No answer within *limit* seconds.
            ConnectionEnded: The other side is gone.
            Exception: Whatever the other side raised.
        """
        if self._end is not None:
            raise ConnectionEnded(self._end.why)
        number = next(self._numbers)
        self._send({"id": number, "m": method, "p": params})
        return await self._answer_to(number, method, limit)

    def call_and_block(self, method: str, params: Any, *, limit: float) -> Any:
        """Call the other side and block the thread until it has answered, for callers that cannot await.

        Messages that arrive in between are handled afterwards. Raises what `call` raises.
        """
        if not self._lines.own_thread:
            return asyncio.run_coroutine_threadsafe(self.call(method, params, limit=limit), self._loop).result()
        number = next(self._numbers)
        self._send({"id": number, "m": method, "p": params})
        return unwrap_answer(self._block_for(number, method, limit))

    async def call_at_once(self, method: str, params: Any, *, limit: float) -> Any:
        """Call the other side and block the thread for as long as it works on the call without waiting.

        Only a call that has to wait there is awaited here. Raises what `call` raises.
        """
        if not self._lines.own_thread:
            return await self.call(method, params, limit=limit)
        number = next(self._numbers)
        self._send({"id": number, "m": method, "p": params, "blocks": True})
        message = self._block_for(number, method, limit)
        if is_wait_notice(message, number):
            return await self._answer_to(number, method, limit)
        self._read_messages()  # messages that arrived with the answer take effect together with it
        return unwrap_answer(message)

    def notify(self, method: str, params: Any) -> None:
        """Send the other side a notice; from any thread."""
        self._send({"m": method, "p": params})

    def block(self, seconds: float) -> None:
        """Send what was written, and do nothing else for so long, or until the connection ends."""
        end = time.monotonic() + seconds
        while self._lines.own_thread and self._end is None and not self._lines.over:
            if (left := end - time.monotonic()) <= 0:
                return
            self._lines.block(left)

    async def _answer_to(self, number: int, method: str, limit: float) -> Any:
        try:
            return await self._expect(number, method, limit)
        except CallTimeout:
            # Its late answer is dropped; without the entry it would be a breach of the protocol.
            self._abandoned.add(number)
            raise
        except asyncio.CancelledError:
            await self._stop(number, method)
            raise

    def _block_for(self, number: int, method: str, limit: float) -> dict[str, Any]:
        """Return the first message about a call: its answer, or that it waits."""
        clock, left = LoadClock(), limit
        while (message := self._pick_message(number)) is None:
            if self._end is not None or self._lines.over:
                raise ConnectionEnded(self._end.why if self._end else None)
            if left <= 0:
                self._abandoned.add(number)
                raise CallTimeout(method, limit)
            if not self._lines.block(min(left, get_interval(limit))):
                left = limit - clock.read()
        return message

    def _expect(self, number: int, method: str, limit: float) -> asyncio.Future[Any]:
        future = self._open[number] = self._loop.create_future()
        timer = LoadTimer(self._loop, limit, lambda: self._expire(number, CallTimeout(method, limit)))
        # Else the timer of every answered call would stay on the loop for its limit, which may be minutes.
        future.add_done_callback(lambda _: timer.cancel())
        return future

    def _expire(self, number: int, late: CallTimeout) -> None:
        future = self._open.pop(number, None)
        if future is not None and not future.done():
            future.set_exception(late)

    async def _stop(self, number: int, method: str) -> None:
        if self._open.pop(number, None) is None:
            return  # the answer arrived at the same moment
        stopped = self._expect(number, f"stop {method}", self._stop_limit)
        self.notify("stop", {"call": number})
        try:
            await stopped
        except (CallTimeout, asyncio.CancelledError) as error:
            self._open.pop(number, None)
            self._abandoned.add(number)
            if isinstance(error, CallTimeout):
                self._handler.call_timed_out(error)
        except Exception:
            return  # the stopped call is over, whatever it raised

    def _pick_message(self, number: int) -> dict[str, Any] | None:
        for line in self._lines.waiting:
            message = decode_message(line)
            if isinstance(message, dict) and (message.get("re") == number or is_wait_notice(message, number)):
                self._lines.waiting.remove(line)
                return message
        return None

    def _send(self, message: dict[str, Any]) -> None:
        self._lines.send(encode_message(message))

    # --- being called ---

    def _read_messages(self) -> None:
        while self._lines.waiting and self._end is None:
            line = self._lines.waiting.popleft()
            breach = self._handle_message(decode_message(line))
            if breach:
                self.close(f"{breach}: {format_excerpt(line)}")
        if self._lines.too_long:
            self.close(f"it sent a line of more than {MAX_LINE_BYTES} bytes")
        elif self._lines.over:
            self.close(None)

    def _handle_message(self, message: Any) -> str | None:
        """Handle a message, and return how it breaks the protocol, if it does."""
        if not isinstance(message, dict):
            return "it sent a line that is not a message"
        if message.keys() in ({"re", "ok"}, {"re", "err"}):
            return self._handle_answer(message["re"], message)
        method, number = message.get("m"), message.get("id")
        if not isinstance(method, str) or not is_call_or_notice(message):
            return "it sent a line that is not a message"
        if "id" not in message:
            if method in ("stop", "waits") and not is_call_reference(message["p"]):
                return f"it sent invalid parameters of `{method}`"
            # Scheduled as the task of a call is, so that notices and calls take effect in the order of their lines.
            self._loop.call_soon(self._handle_notice, method, message["p"])
            return None
        # `True` is an int, too, so the type must be exact.
        if type(number) is not int or number in self._working:
            return "it called with an id that is not a new number"
        # Not `create_task`: a loop's own task factory may start tasks eagerly, before the messages that came earlier.
        self._working[number] = asyncio.Task(self._answer(number, method, message["p"]), loop=self._loop)
        if message.get("blocks"):
            # Runs after the first step of the task: if that has answered, nothing had to wait.
            self._loop.call_soon(self._notify_waiting, number)
        return None

    def _handle_answer(self, number: Any, message: dict[str, Any]) -> str | None:
        if type(number) is not int or (number not in self._open and number not in self._abandoned):
            return "it answered a call that is not open"
        future = self._open.pop(number, None)
        self._abandoned.discard(number)
        if future is None or future.done():
            return None
        try:
            future.set_result(unwrap_answer(message))
        except SerializationError as error:
            # Open again, so that it fails with the connection, which this breach ends.
            self._open[number] = future
            return f"it answered with an error that cannot be read ({error})"
        except Exception as error:
            future.set_exception(error)
        return None

    def _notify_waiting(self, number: int) -> None:
        if number in self._working:
            self.notify("waits", {"call": number})

    def _handle_notice(self, method: str, params: Any) -> None:
        if method == "stop":
            if (number := params["call"]) in self._working:
                self._stopped.add(number)
                self._working[number].cancel()
        elif method != "waits":  # a late `waits` means nothing: the caller does not block any more
            self._handler.notice(method, params)

    async def _answer(self, number: int, method: str, params: Any) -> None:
        try:
            reply = {"re": number, "ok": await self._handler.answer(method, params)}
        except asyncio.CancelledError as error:
            failure = Stopped("stopped") if number in self._stopped else error
            reply = {"re": number, "err": to_json(to_failure(failure))}
        except Exception as error:
            reply = {"re": number, "err": to_json(to_failure(error))}
        finally:
            del self._working[number]
            self._stopped.discard(number)
        self._send(reply)

    # --- the end ---

    def close(self, why: str | None, *, tell: bool = True) -> None:
        """End the connection: open calls fail with `ConnectionEnded`, and work for the other side is cancelled.

        Args:
            why: How the other side broke the protocol; None if it is gone, or if this side ends the connection.
            tell: Tell the handler.
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
            self._handler.connection_ended(why)
