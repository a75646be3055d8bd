"""Network guard of a session: blocks and reports connections of this process and of others, test by test.

Agents run in processes that guard themselves. Python processes that a test starts do so by a `sitecustomize` on their
import path, those of Node.js by a module that `NODE_OPTIONS` preloads. Any other program gets the address of a proxy on
this machine, which refuses and reports all requests.
"""

from __future__ import annotations

import base64
import os
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property, wraps
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from pytest_approvals.agent_side.process import network_guard
from pytest_approvals.agent_side.process.network_guard import (
    GUARD_VARIABLE,
    PROXY_VARIABLES,
    RECORDER_USER,
    TEST_VARIABLE,
    BlockedHost,
    NetworkGuard,
    encode_guard_settings,
    guard_network,
    is_local,
    parse_blocked_hosts,
    write_report,
)
from pytest_approvals.errors import NetworkAccessDenied

POSTGRES = "PYTEST_APPROVALS_POSTGRES"
"""Environment variable with the server that native stores are tested on."""

CHILD_GUARD_FOLDER = str(Path(network_guard.__file__).with_name("child_guard"))
"""The folder with the `sitecustomize` that guards Python processes."""

_NODE_GUARD = Path(network_guard.__file__).parents[1] / "javascript" / "leaks.cjs"
"""The module that guards processes of Node.js."""

_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


class NetworkWatch:
    """The connections that were refused in one test.

    Args:
        session: The guard of the session.
        test: The node id of the test.
    """

    def __init__(self, session: SessionNetworkGuard, test: str) -> None:
        self._session = session
        self._test = test
        self._process = os.getpid()
        self._leaks: list[BlockedHost] = []
        self.is_over = False

    def noted(self, leak: BlockedHost) -> None:
        """Record a refused connection."""
        if os.getpid() != self._process:
            # In a fork of this process: its memory is not that of the one that judges the test.
            self._session.report_from_fork(leak, f"a process that {self._test} started")
        elif self.is_over:
            self._session.late_leaks.append(leak)
        else:
            self._leaks.append(leak)

    def raise_leaks(self) -> None:
        """Raise what was refused since the last call.

        Raises:
            NetworkAccessDenied: A connection was refused.
        """
        __tracebackhide__ = True
        own = f"a process that {self._test} started"
        # Emptied before it raises, because the fixture asks again at teardown.
        leaks, self._leaks = [*self._leaks, *self._session.collect_leaks()], []
        if denial := describe_leaks(replace(leak, by="") if leak.by == own else leak for leak in leaks):
            raise denial


def describe_leaks(leaks: Iterable[BlockedHost]) -> NetworkAccessDenied | None:
    """Return the error that names what was refused; None if nothing was."""
    leaks = list(leaks)
    hosts = list(dict.fromkeys(leak.host for leak in leaks))
    return NetworkAccessDenied(Counter(map(str, leaks)), hosts) if leaks else None


class SessionNetworkGuard:
    """Guards this process while tests ask for it, and the processes of agents always.

    Args:
        allowed: Hosts that may be reached.

    Attributes:
        late_leaks: What threads have tried to reach after the end of their tests, until it is collected.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = frozenset(allowed)
        self._before = os.environ.get(GUARD_VARIABLE)
        self._file: IO[str] | None = None
        self.late_leaks: list[BlockedHost] = []

    def guard_subprocesses(self) -> None:
        """Make the processes that are started from now on guard themselves."""
        if self._file is None:
            self._file = tempfile.NamedTemporaryFile("r", prefix="approvals-leaks-")  # noqa: SIM115 -- `close` does
            os.environ[GUARD_VARIABLE] = encode_guard_settings(self._file.name, self._allowed)

    @contextmanager
    def watch(self, test: str = "a test") -> Iterator[NetworkWatch]:
        """Guard this process, and the processes that it starts, in a `with` block.

        Args:
            test: The node id of the test.
        """
        self.guard_subprocesses()
        watch = NetworkWatch(self, test)
        path = os.pathsep.join(filter(None, (CHILD_GUARD_FOLDER, os.environ.get("PYTHONPATH"))))
        variables = {TEST_VARIABLE: test, "PYTHONPATH": path, _NODE_OPTIONS: _with_node_guard(os.environ)}
        if any(os.environ.get(name) for name in PROXY_VARIABLES):
            # Else clients would ask the proxy for the scripted model, too.
            variables |= self._list_direct_hosts(os.environ)
        with (
            _set_variables(variables),
            _change_child_environments(self._guard_environment),
            guard_network(NetworkGuard(self._allowed, watch.noted, test)),
        ):
            try:
                yield watch
            finally:
                watch.is_over = True

    def _guard_environment(self, environment: dict[str, str]) -> dict[str, str]:
        """Return the environment of a process that a test starts, whatever the test has put there."""
        for name in (GUARD_VARIABLE, TEST_VARIABLE):
            environment[name] = os.environ[name]
        path = environment.get("PYTHONPATH", "")
        if CHILD_GUARD_FOLDER not in path.split(os.pathsep):
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, (CHILD_GUARD_FOLDER, path)))
        environment[_NODE_OPTIONS] = _with_node_guard(environment)
        environment |= self._list_direct_hosts(environment)
        return environment | dict.fromkeys(PROXY_VARIABLES, self._recorder.address_for(os.environ[TEST_VARIABLE]))

    def _list_direct_hosts(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that name what is reached without a proxy."""
        direct = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
        hosts = list(dict.fromkeys([*filter(None, direct.split(",")), *_LOCAL_NAMES, *sorted(self._allowed)]))
        return dict.fromkeys(("no_proxy", "NO_PROXY"), ",".join(hosts))

    @cached_property
    def _recorder(self) -> RefusingProxy:
        return RefusingProxy(self._allowed)

    def report_from_fork(self, leak: BlockedHost, by: str) -> None:
        """Report a refused connection in a fork of this process."""
        if self._file is not None:
            write_report(self._file.name, leak, by)

    def collect_leaks(self) -> list[BlockedHost]:
        """Return what other processes and late threads have reported since the last call."""
        late, self.late_leaks = self.late_leaks, []
        refused = self._recorder.take_refused() if "_recorder" in vars(self) else []
        return [*late, *refused, *(parse_blocked_hosts(self._file) if self._file is not None else [])]

    def close(self) -> None:
        """End the guard of processes that are started later."""
        if "_recorder" in vars(self):
            self._recorder.close()
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


@contextmanager
def _set_variables(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            # A test may have changed it itself; its own change stays.
            if os.environ.get(name) == variables[name]:
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


# --- processes that a test starts -------------------------------------------------------------------------------------


@contextmanager
def _change_child_environments(change: Callable[[dict[str, str]], dict[str, str]]) -> Iterator[None]:
    """Change the environment of every process that is started by `subprocess`, but for those of this package."""
    popen: Any = subprocess.Popen
    original = popen.__init__

    @wraps(original)
    def start(self: Any, *args: Any, **words: Any) -> None:
        # By position, the environment is the eleventh argument; nobody writes that.
        if len(args) < _ENVIRONMENT_POSITION:
            environment = dict(os.environ if words.get("env") is None else words["env"])
            words["env"] = _unguard_environment(environment) if _is_started_by_package() else change(environment)
        original(self, *args, **words)

    popen.__init__ = start
    try:
        yield
    finally:
        popen.__init__ = original


_ENVIRONMENT_POSITION = 11

_NODE_OPTIONS = "NODE_OPTIONS"

# Node.js reads a word in quotes as JSON does, but for its escapes.
_PRELOAD = '--require "{}"'.format(str(_NODE_GUARD).replace("\\", "\\\\").replace('"', '\\"'))


def _with_node_guard(environment: Mapping[str, str]) -> str:
    """Return the options of Node.js with those that guard it."""
    options = environment.get(_NODE_OPTIONS, "")
    return options if _PRELOAD in options else f"{_PRELOAD} {options}".strip()


def _is_started_by_package() -> bool:
    """Return whether a module of this package starts a process: an agent, which guards itself, or an installer."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("subprocess", "asyncio.")):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).startswith("pytest_approvals.")


def _unguard_environment(environment: Mapping[str, str]) -> dict[str, str]:
    changed = {name: value for name, value in environment.items() if name != TEST_VARIABLE}
    options = changed.pop(_NODE_OPTIONS, "").replace(_PRELOAD, "").strip()
    changed |= {_NODE_OPTIONS: options} if options else {}
    path = [entry for entry in changed.pop("PYTHONPATH", "").split(os.pathsep) if entry not in ("", CHILD_GUARD_FOLDER)]
    return changed | ({"PYTHONPATH": os.pathsep.join(path)} if path else {})


class RefusingProxy:
    """Proxy on the loopback interface that refuses and reports all requests.

    Args:
        allowed: Hosts that are refused without a report: a client that is sent here may reach them itself.
    """

    def __init__(self, allowed: Iterable[str]) -> None:
        self._allowed = frozenset(allowed)
        self._refused: list[BlockedHost] = []
        self._server = _ProxyServer(("127.0.0.1", 0), _ProxyConnection)
        self._server.refuse = self._refuse
        threading.Thread(target=self._server.serve_forever, name="approvals-proxy", daemon=True).start()

    def address_for(self, test: str) -> str:
        """Return the address that a test's processes get; its password names the test."""
        # Not its plain id, which may contain whatever an address may not.
        password = base64.urlsafe_b64encode(test.encode()).decode()
        return f"http://{RECORDER_USER}:{password}@127.0.0.1:{self._server.server_address[1]}"

    def take_refused(self) -> list[BlockedHost]:
        """Return what was refused since the last call."""
        refused, self._refused = self._refused, []
        return refused

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()

    def _refuse(self, target: str, password: str) -> None:
        try:
            parts = urlsplit(target if "://" in target else f"//{target}")
            host, port = parts.hostname or target, parts.port
        except ValueError:
            host, port = target, None
        if not is_local(host) and host not in self._allowed:
            with suppress(ValueError):
                test = base64.urlsafe_b64decode(password).decode()
                self._refused.append(BlockedHost(host, port, by=f"a process that {test} started" if test else ""))


class _ProxyServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    refuse: Callable[[str, str], None]


class _ProxyConnection(socketserver.StreamRequestHandler):
    server: _ProxyServer
    timeout = 5.0

    def handle(self) -> None:
        with suppress(OSError):
            words = self.rfile.readline(4096).decode("latin-1").split(" ")
            password = ""
            while (line := self.rfile.readline(4096).strip()) and len(words) > 1:
                name, _, value = line.decode("latin-1").partition(":")
                if name.lower() == "proxy-authorization":
                    with suppress(ValueError):
                        password = base64.b64decode(value.split()[-1]).decode("latin-1").partition(":")[2]
            if len(words) > 1:
                self.server.refuse(words[1], password)
            self.wfile.write(
                b"HTTP/1.1 403 Network access is blocked\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
