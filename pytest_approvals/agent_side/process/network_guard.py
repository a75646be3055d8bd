"""Network guard: while it is active, nothing in this process reaches another machine.

An agent without the scripted model would ask the real one, with a real key. So connections and name look-ups are
refused before a packet leaves, as if nobody listened, and are reported, because clients swallow such errors and try
again. The guard listens to the interpreter's own audit events, which sockets of every library raise; code that calls
the operating system without them (grpc, for example) is not seen. uvloop calls libuv, so its event loops are patched.

A proxy on this machine passes requests on to others. A connection to one that the environment names is refused, and so
is a request for another machine that `http.client` sends to any address of this one.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

GUARD_VARIABLE = "PYTEST_APPROVALS_LEAKS"
"""The environment variable that makes a process guard itself."""

TEST_VARIABLE = "PYTEST_APPROVALS_TEST"
"""The environment variable that names the test that has started a process."""

PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
"""The environment variables that name proxies."""

RECORDER_USER = "approvals"
"""The user in the address of a proxy that is the harness' own, which refuses and reports all requests."""

_LOCAL_NAMES = frozenset({"", "localhost", "ip6-localhost", "ip6-loopback", "0.0.0.0", "::", "::1", "0:0:0:0:0:0:0:1"})


@dataclass(frozen=True, order=True)
class BlockedHost:
    """A host that was not reached, because the guard refused it.

    Attributes:
        host: The host as the client named it.
        port: The port; None if it is unknown.
        proxy: The environment variable that names it as a proxy; empty if it is none.
        by: What tried to reach it after its test had ended, or in another process; empty for the test itself.
    """

    host: str
    port: int | None = None
    proxy: str = ""
    by: str = ""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        place = host if self.port is None else f"{host}:{self.port}"
        notes = [f"the proxy of {self.proxy}"] if self.proxy else []
        notes += [f"by {self.by}"] if self.by else []
        return f"{place} ({', '.join(notes)})" if notes else place


class NetworkGuard:
    """Guard that refuses connections and look-ups outside of this machine.

    Args:
        allowed: Hosts that may be reached, by name or address.
        report: Called with each blocked host.
        test: The test that it guards; empty if it guards a process for good.

    Attributes:
        is_over: Whether the test has ended.
    """

    def __init__(self, allowed: Iterable[str], report: Callable[[BlockedHost], None], test: str = "") -> None:
        self.allowed = frozenset(name.lower() for name in allowed)
        self.report = report
        self.test = test
        self.is_over = False
        self._addresses: dict[str, frozenset[str]] = {}

    def check(self, host: str, port: int | None, by: str = "") -> None:
        """Let a host pass, or refuse it.

        Args:
            host: Its name or address.
            port: The port; None if it is unknown.
            by: See `BlockedHost`.

        Raises:
            ConnectionRefusedError: It is another machine or a proxy to one, and not allowed.
        """
        proxy = ""
        if is_local(host):
            proxy = find_proxy_variable(os.environ, port) or ""
            if not proxy:
                return
        if self._is_allowed(host.lower()):
            return
        blocked = BlockedHost(host, port, proxy, by)
        self.report(blocked)
        why = "leads to other machines" if proxy else "is not on this machine"
        raise ConnectionRefusedError(f"{blocked} {why}, and a scripted model is active")

    def _is_allowed(self, host: str) -> bool:
        if host in self.allowed:
            return True
        # A client looks an allowed name up first, and then connects to one of its addresses.
        return _is_address(host) and any(host in self._addresses_of(name) for name in self.allowed)

    def _addresses_of(self, name: str) -> frozenset[str]:
        if name not in self._addresses:
            # This look-up raises audit events, too.
            with _unguarded():
                self._addresses[name] = _resolve_addresses(name)
        return self._addresses[name]


def is_local(host: str) -> bool:
    """Return whether a name or an address is this machine's, without a look-up.

    >>> [is_local(host) for host in ("127.0.0.53", "::1", "::ffff:127.0.0.1", "127.example.org", "10.0.0.1")]
    [True, True, True, False, False]
    """
    plain = host.lower().rstrip(".").partition("%")[0].removeprefix("::ffff:")
    if plain in _LOCAL_NAMES or plain.endswith(".localhost") or plain == socket.gethostname().lower():
        return True
    return plain.startswith("127.") and plain.replace(".", "").isdigit()


def find_proxy_variable(environment: Mapping[str, str], port: int | None) -> str | None:
    """Return the environment variable that names a proxy on this machine with that port.

    >>> find_proxy_variable({"https_proxy": "http://localhost:3128"}, 3128)
    'https_proxy'
    """
    for name in PROXY_VARIABLES if port is not None else ():
        value = environment.get(name)
        if value and f":{port}" in value:
            # A proxy may be written without a scheme.
            parts = urlsplit(value if "://" in value else f"//{value}")
            if parts.username != RECORDER_USER and parts.port == port and is_local(parts.hostname or ""):
                return name
    return None


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _resolve_addresses(name: str) -> frozenset[str]:
    try:
        return frozenset(str(entry[4][0]) for entry in socket.getaddrinfo(name, None))
    except OSError:
        return frozenset()


# --- audit events -----------------------------------------------------------------------------------------------------

_active_guards: list[NetworkGuard] = []
_hook_installed = threading.Event()
_thread_state = threading.local()
_thread_guards: WeakKeyDictionary[threading.Thread, NetworkGuard] = WeakKeyDictionary()
"""The guard of the test that started a thread."""


@contextmanager
def guard_network(guard: NetworkGuard) -> Iterator[None]:
    """Activate *guard* in this process; of several, the last one decides.

    A thread that is started meanwhile stays guarded when the test has ended, unless it serves other tests, too.
    """
    _install_audit_hook()
    _active_guards.append(guard)
    try:
        with _following_threads(guard):
            yield
    finally:
        _active_guards.remove(guard)
        guard.is_over = True


def _install_audit_hook() -> None:
    """Add the hook once: it cannot be removed, and does nothing while no guard is active."""
    if not _hook_installed.is_set():
        _hook_installed.set()
        if "uvloop" in sys.modules:
            _uvloop_awaited.set()
        sys.addaudithook(_audit)


# --- uvloop -----------------------------------------------------------------------------------------------------------

_uvloop_awaited = threading.Event()
"""uvloop is being imported, or was; its event loops are not yet guarded."""


def _guard_uvloop() -> None:
    """Let the event loops of uvloop raise the audit events of what they connect to, look up and send to."""
    loops: Any = getattr(sys.modules.get("uvloop"), "Loop", None)
    if loops is None:
        return
    _uvloop_awaited.clear()

    def announce(name: str, find_address: Callable[..., Any]) -> None:
        original = getattr(loops, name)

        @wraps(original)
        async def call(loop: Any, *args: Any, **words: Any) -> Any:
            address = find_address(*args, **words)
            if address is not None and address[0] is not None:
                sys.audit("socket.getaddrinfo", address[0], address[1], 0, 0, 0)
            return await original(loop, *args, **words)

        setattr(loops, name, call)

    announce("create_connection", lambda factory, host=None, port=None, **_: (host, port))
    announce("create_datagram_endpoint", lambda factory, local_addr=None, remote_addr=None, **_: remote_addr)
    announce("getaddrinfo", lambda host, port=None, **_: (host, port))
    announce("getnameinfo", lambda sockaddr, *_: sockaddr)


@contextmanager
def _unguarded() -> Iterator[None]:
    _thread_state.passes = True
    try:
        yield
    finally:
        _thread_state.passes = False


def _audit(event: str, facts: tuple[Any, ...]) -> None:
    if event == "import" and facts[0] == "uvloop":
        _uvloop_awaited.set()
    elif _uvloop_awaited.is_set():
        _guard_uvloop()
    if event not in _DESTINATION_READERS or getattr(_thread_state, "passes", False):
        return
    starter = _thread_guards.get(threading.current_thread()) if _thread_guards else None
    late = starter is not None and starter.is_over and not _serves_others()
    guard = _active_guards[-1] if _active_guards else starter if late else None
    if guard is None:
        return
    destination = _DESTINATION_READERS[event](facts)
    if destination is not None:
        by = f"a thread that {starter.test} started" if late and starter is not None else ""
        guard.check(*destination, by=by)


@contextmanager
def _following_threads(guard: NetworkGuard) -> Iterator[None]:
    """Let *guard* follow the threads that are started in a `with` block."""
    # The audit event of a new thread is younger than Python 3.11.
    patched: Any = threading.Thread
    original = patched.start

    @wraps(original)
    def start(thread: threading.Thread) -> None:
        _thread_guards[thread] = _thread_guards.get(threading.current_thread(), guard)
        original(thread)

    patched.start = start
    try:
        yield
    finally:
        patched.start = original


def _serves_others() -> bool:
    """Return whether this thread is one of a pool or runs an event loop, and so works for whoever asks it."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and asyncio._get_running_loop() is not None:
        return True
    frame = sys._getframe()
    while frame.f_back is not None:
        if frame.f_globals.get("__name__", "").startswith(_POOL_MODULES):
            return True
        frame = frame.f_back
    return False


_POOL_MODULES = ("concurrent.futures.", "multiprocessing.pool", "anyio.")

Destination = tuple[str, int | None] | None


def _socket_destination(facts: tuple[Any, ...]) -> Destination:
    """Return where a socket connects or sends to; None for sockets that cannot leave this machine."""
    address = facts[1]
    if facts[0].family not in (socket.AF_INET, socket.AF_INET6) or not isinstance(address, tuple):
        return None
    return _host_text(address[0]), address[1]


def _lookup_destination(facts: tuple[Any, ...]) -> Destination:
    """Return what is looked up, with the port if it is numeric."""
    if facts[0] is None:
        return None
    port = str(facts[1]) if len(facts) > 1 else ""
    return _host_text(facts[0]), int(port) if port.isdigit() else None


def _name_look_up_destination(facts: tuple[Any, ...]) -> Destination:
    """Return the address whose name is looked up."""
    address = facts[0]
    return (_host_text(address[0]), None) if isinstance(address, tuple) else None


_PROXY_REQUEST = re.compile(
    rb"(?:CONNECT (?P<tunnel>[^ /]+)|[A-Z]+ https?://(?P<place>[^ /]+)[^ ]*) HTTP/1\.[01]\r?$", re.MULTILINE
)


def _proxy_request_destination(facts: tuple[Any, ...]) -> Destination:
    """Return what a proxy is asked for; None if a request is not for a proxy."""
    data = facts[1]
    first = bytes(data[:4096]).split(b"\n", 1)[0] if isinstance(data, (bytes, bytearray)) else b""
    match = _PROXY_REQUEST.match(first)
    if match is None:
        return None
    try:
        parts = urlsplit("//" + (match["tunnel"] or match["place"]).decode("latin-1"))
        return (parts.hostname or "", parts.port)
    except ValueError:
        return None


def _host_text(host: Any) -> str:
    return host.decode("ascii", "replace") if isinstance(host, (bytes, bytearray)) else str(host)


_DESTINATION_READERS: dict[str, Callable[[tuple[Any, ...]], Destination]] = {
    "socket.connect": _socket_destination,
    "socket.sendto": _socket_destination,
    "socket.sendmsg": _socket_destination,
    "socket.getaddrinfo": _lookup_destination,
    "socket.gethostbyname": _lookup_destination,
    "socket.gethostbyaddr": _lookup_destination,
    "socket.getnameinfo": _name_look_up_destination,
    "http.client.send": _proxy_request_destination,
}
"""The readers of the host in the arguments of each audit event."""


# --- other processes --------------------------------------------------------------------------------------------------


def encode_guard_settings(file: str, allowed: Iterable[str]) -> str:
    """Return the value of `GUARD_VARIABLE` that lets a process guard itself and report in *file*."""
    return json.dumps({"file": file, "allowed": sorted(allowed)})


def guard_from_environment() -> None:
    """Activate a guard for good, as `GUARD_VARIABLE` says; forks of this process are guarded, too."""
    settings = json.loads(os.environ[GUARD_VARIABLE])
    test = os.environ.get(TEST_VARIABLE, "")
    by = f"a process that {test} started" if test else ""
    _install_audit_hook()
    _active_guards.append(
        NetworkGuard(settings["allowed"], lambda blocked: write_report(settings["file"], blocked, by))
    )


def write_report(file: str, blocked: BlockedHost, by: str = "") -> None:
    """Report a blocked host of this process to the one that reads *file*."""
    blocked = replace(blocked, by=blocked.by or by)
    # One write at the end of the file, so that processes that report at the same time keep their lines apart.
    with open(file, "a", encoding="utf-8") as reports:
        reports.write(json.dumps([blocked.host, blocked.port, blocked.proxy, blocked.by]) + "\n")


def parse_blocked_hosts(lines: Iterable[str]) -> list[BlockedHost]:
    """Return the hosts that another process has reported."""
    return [BlockedHost(*json.loads(line)) for line in lines]
