"""Network guard of a session: blocks and reports connections of this process and of agent processes, test by test."""

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
"""Environment variable with the server that native stores are tested on."""


class NetworkWatch:
    """The connections that were refused in one test."""

    def __init__(self, session: SessionNetworkGuard) -> None:
        self._session = session
        self._leaks: list[BlockedHost] = []

    def noted(self, leak: BlockedHost) -> None:
        """Record a refused connection."""
        self._leaks.append(leak)

    def raise_leaks(self) -> None:
        """Raise what was refused since the last call.

        Raises:
            NetworkAccessDenied: A connection was refused.
        """
        __tracebackhide__ = True
        # Emptied before it raises, because the fixture asks again at teardown.
        leaks, self._leaks = [*self._leaks, *self._session.collect_subprocess_leaks()], []
        if leaks:
            raise NetworkAccessDenied(Counter(map(str, leaks)), list(dict.fromkeys(leak.host for leak in leaks)))


class SessionNetworkGuard:
    """Guards this process while tests ask for it, and the processes of agents always.

    Args:
        allowed: Hosts that may be reached.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = frozenset(allowed)
        self._before = os.environ.get(GUARD_VARIABLE)
        self._file: IO[str] | None = None

    def guard_subprocesses(self) -> None:
        """Make the processes that are started from now on guard themselves."""
        if self._file is None:
            self._file = tempfile.NamedTemporaryFile("r", prefix="approvals-leaks-")  # noqa: SIM115 -- `close` does
            os.environ[GUARD_VARIABLE] = encode_guard_settings(self._file.name, self._allowed)

    @contextmanager
    def watch(self) -> Iterator[NetworkWatch]:
        """Guard this process in a `with` block."""
        self.guard_subprocesses()
        watch = NetworkWatch(self)
        with guard_network(NetworkGuard(self._allowed, watch.noted)):
            yield watch

    def collect_subprocess_leaks(self) -> list[BlockedHost]:
        """Return what other processes have reported since the last call."""
        return parse_blocked_hosts(self._file) if self._file is not None else []

    def close(self) -> None:
        """End the guard of processes that are started later."""
        if self._file is None:
            return
        self._file.close()
        if self._before is None:
            del os.environ[GUARD_VARIABLE]
        else:
            os.environ[GUARD_VARIABLE] = self._before


def hosts_from_environment() -> tuple[str, ...]:
    """Return the host of the database that the environment names for tests."""
    host = urlsplit(os.environ.get(POSTGRES, "")).hostname
    return (host,) if host else ()
