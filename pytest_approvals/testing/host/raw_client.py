"""Raw client of an agent process, which can send what the protocol does not allow."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Self

from pytest_approvals.processes.launchers import CommandLauncher

ANSWER_TIMEOUT = 20.0
"""Seconds that a process may take to respond, or to end."""


class RuleBroken(Exception):
    """The process broke a rule of the protocol; *args* say how."""


class RawHost:
    """A process and the connection to it; the process is killed when the block is left.

    Args:
        command: The program of the process, with its arguments.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._connection, theirs = socket.socketpair()
        self._connection.settimeout(ANSWER_TIMEOUT)
        try:
            self.child: subprocess.Popen[bytes] = CommandLauncher(words=tuple(command)).start(
                {}, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.DEVNULL
            )
        except BaseException:
            self._connection.close()
            raise
        finally:
            theirs.close()
        self._lines = self._connection.makefile("rb")
        self._numbers = count(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: object) -> None:
        self.hang_up()
        self.child.kill()
        self.child.wait()

    def ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Call a method of the process, and return its response; None if it closed the connection instead.

        Raises:
            RuleBroken: It sends something else, or nothing in time.
        """
        number = next(self._numbers)
        self._send({"id": number, "m": method, "p": params})
        message = self._receive(method)
        if message is not None and message.get("re") != number:
            raise RuleBroken(f"`{method}` was call {number}, and what came is {_short_json(message)}")
        if message is not None and message.keys() not in ({"re", "ok"}, {"re", "err"}):
            raise RuleBroken(f"an answer has `re` and either `ok` or `err`; to `{method}` came {_short_json(message)}")
        return message

    def hang_up(self) -> None:
        """Close the connection, as a harness does that has exited."""
        self._lines.close()
        self._connection.close()

    def ends(self) -> bool:
        """Return whether the process exits by itself."""
        try:
            self.child.wait(ANSWER_TIMEOUT)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            raise RuleBroken("it ended before it was asked") from None

    def _receive(self, method: str) -> dict[str, Any] | None:
        try:
            line = self._lines.readline()
        except TimeoutError:
            raise RuleBroken(f"`{method}` was not answered within {ANSWER_TIMEOUT:g} s") from None
        # A connection that was reset counts as closed.
        except OSError:
            line = b""
        if not line:
            return None
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise RuleBroken(f"a line is one JSON object; what came is {line[:100]!r}")
        return message


def _short_json(message: Mapping[str, Any]) -> str:
    text = json.dumps(message)
    return text if len(text) <= 120 else f"{text[:117]}..."
