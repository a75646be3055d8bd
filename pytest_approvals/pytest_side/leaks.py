"""The leak guard of a session: this process and those that are started for agents, watched test by test."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO
from urllib.parse import urlsplit

from pytest_approvals.agent_side.leaks import Leak, LeakGuard, leaks_told, told_to, watched_by
from pytest_approvals.agent_side.process import LEAKS
from pytest_approvals.errors import Leaked

POSTGRES = "PYTEST_APPROVALS_POSTGRES"
"""The environment variable with the server that native stores are tested on."""


class Watch:
    """What was refused in one test."""

    def __init__(self, session: SessionGuard) -> None:
        self._session = session
        self._leaks: list[Leak] = []

    def noted(self, leak: Leak) -> None:
        """Takes in a leak."""
        self._leaks.append(leak)

    def raise_leaks(self) -> None:
        """
        Raises what was refused since this was asked last.

        Errors:
            Leaked: Something was.
        """
        __tracebackhide__ = True
        found, self._leaks = [*self._leaks, *self._session.told_elsewhere()], []
        if found:
            raise Leaked(Counter(map(str, found)), list(dict.fromkeys(leak.host for leak in found)))


class SessionGuard:
    """
    Watches this process while tests ask it to, and the processes of agents always.

    Arguments:
        allowed: Hosts that may be reached.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = frozenset(allowed)
        self._before = os.environ.get(LEAKS)
        self._file: IO[str] | None = None

    def tell_processes(self) -> None:
        """Lets processes that are started from now on watch themselves."""
        if self._file is None:
            self._file = tempfile.NamedTemporaryFile("r", prefix="approvals-leaks-")  # noqa: SIM115 -- `close` does
            os.environ[LEAKS] = told_to(self._file.name, self._allowed)

    @contextmanager
    def watch(self) -> Iterator[Watch]:
        """Watches this process until the block is over."""
        self.tell_processes()
        watch = Watch(self)
        with watched_by(LeakGuard(self._allowed, watch.noted)):
            yield watch

    def told_elsewhere(self) -> list[Leak]:
        """Gives what other processes have told since this was asked last."""
        return leaks_told(self._file) if self._file is not None else []

    def close(self) -> None:
        """Forgets all."""
        if self._file is None:
            return
        self._file.close()
        if self._before is None:
            del os.environ[LEAKS]
        else:
            os.environ[LEAKS] = self._before


def allowed_by_environment() -> tuple[str, ...]:
    """Gives the host of the database that the environment names for tests."""
    host = urlsplit(os.environ.get(POSTGRES, "")).hostname
    return (host,) if host else ()
