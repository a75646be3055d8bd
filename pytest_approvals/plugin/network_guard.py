"""The leak guard of a session: this process and those that are started for agents, watched test by test."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO
from urllib.parse import urlsplit

from pytest_approvals.agent_side.process.network_guard import (
    GUARD_VARIABLE,
    BlockedHost,
    NetworkGuard,
    encode_guard_settings,
    guard_network,
    parse_blocked_hosts,
)
from pytest_approvals.errors import NetworkAccessDenied

POSTGRES = "PYTEST_APPROVALS_POSTGRES"
"""The environment variable with the server that native stores are tested on."""


class NetworkWatch:
    """What was refused in one test."""

    def __init__(self, session: SessionNetworkGuard) -> None:
        self._session = session
        self._leaks: list[BlockedHost] = []

    def noted(self, leak: BlockedHost) -> None:
        """Takes in a leak."""
        self._leaks.append(leak)

    def raise_leaks(self) -> None:
        """
        Raises what was refused since this was asked last.

        Errors:
            Leaked: Something was.
        """
        __tracebackhide__ = True
        found, self._leaks = [*self._leaks, *self._session.collect_subprocess_leaks()], []
        if found:
            raise NetworkAccessDenied(Counter(map(str, found)), list(dict.fromkeys(leak.host for leak in found)))


class SessionNetworkGuard:
    """
    Watches this process while tests ask it to, and the processes of agents always.

    Arguments:
        allowed: Hosts that may be reached.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = frozenset(allowed)
        self._before = os.environ.get(GUARD_VARIABLE)
        self._file: IO[str] | None = None

    def guard_subprocesses(self) -> None:
        """Lets processes that are started from now on watch themselves."""
        if self._file is None:
            self._file = tempfile.NamedTemporaryFile("r", prefix="approvals-leaks-")  # noqa: SIM115 -- `close` does
            os.environ[GUARD_VARIABLE] = encode_guard_settings(self._file.name, self._allowed)

    @contextmanager
    def watch(self) -> Iterator[NetworkWatch]:
        """Watches this process until the block is over."""
        self.guard_subprocesses()
        watch = NetworkWatch(self)
        with guard_network(NetworkGuard(self._allowed, watch.noted)):
            yield watch

    def collect_subprocess_leaks(self) -> list[BlockedHost]:
        """Gives what other processes have told since this was asked last."""
        return parse_blocked_hosts(self._file) if self._file is not None else []

    def close(self) -> None:
        """Forgets all."""
        if self._file is None:
            return
        self._file.close()
        if self._before is None:
            del os.environ[GUARD_VARIABLE]
        else:
            os.environ[GUARD_VARIABLE] = self._before


def hosts_from_environment() -> tuple[str, ...]:
    """Gives the host of the database that the environment names for tests."""
    host = urlsplit(os.environ.get(POSTGRES, "")).hostname
    return (host,) if host else ()
