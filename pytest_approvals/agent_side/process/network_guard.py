"""Network guard: while it is active, nothing in this process reaches another machine.

An agent without the scripted model would ask the real one, with a real key. So connections and name look-ups are
refused before a packet leaves, as if nobody listened, and are reported, because clients swallow such errors and try
again. The guard listens to the interpreter's own audit events, which sockets of every library raise; code that calls
the operating system without them (libuv, for example) is not seen.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

GUARD_VARIABLE = "PYTEST_APPROVALS_LEAKS"
"""The environment variable that makes a process guard itself."""

_LOCAL_NAMES = frozenset({"", "localhost", "ip6-localhost", "ip6-loopback", "0.0.0.0", "::", "::1", "0:0:0:0:0:0:0:1"})


@dataclass(frozen=True, order=True)
class BlockedHost:
    """A host that was not reached, because the guard refused it.

    Attributes:
        host: The host as the client named it.
        port: The port; None if it is unknown.
    """

    host: str
    port: int | None = None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"


class NetworkGuard:
    """Guard that refuses connections and look-ups outside of this machine.

    Args:
        allowed: Hosts that may be reached, by name or address.
        report: Called with each blocked host.
    """

    def __init__(self, allowed: Iterable[str], report: Callable[[BlockedHost], None]) -> None:
        self.allowed = frozenset(name.lower() for name in allowed)
        self.report = report
        self._addresses: dict[str, frozenset[str]] = {}

    def check(self, host: str, port: int | None) -> None:
        """Let a host pass, or refuse it.

        Raises:
            ConnectionRefusedError: It is another machine and not allowed.
        """
        if is_local(host) or self._is_allowed(host.lower()):
            return
        blocked = BlockedHost(host, port)
        self.report(blocked)
        raise ConnectionRefusedError(f"{blocked} is not on this machine, and a scripted model is active")

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


@contextmanager
def guard_network(guard: NetworkGuard) -> Iterator[None]:
    """Activate *guard* in this process; of several, the last one decides."""
    _install_audit_hook()
    _active_guards.append(guard)
    try:
        yield
    finally:
        _active_guards.remove(guard)


def _install_audit_hook() -> None:
    """Add the hook once: it cannot be removed, and does nothing while no guard is active."""
    if not _hook_installed.is_set():
        _hook_installed.set()
        sys.addaudithook(_audit)


@contextmanager
def _unguarded() -> Iterator[None]:
    _thread_state.passes = True
    try:
        yield
    finally:
        _thread_state.passes = False


def _audit(event: str, facts: tuple[Any, ...]) -> None:
    if not _active_guards or event not in _DESTINATION_READERS or getattr(_thread_state, "passes", False):
        return
    destination = _DESTINATION_READERS[event](facts)
    if destination is not None:
        _active_guards[-1].check(*destination)


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


def _host_text(host: Any) -> str:
    return host.decode("ascii", "replace") if isinstance(host, (bytes, bytearray)) else str(host)


_DESTINATION_READERS: dict[str, Callable[[tuple[Any, ...]], Destination]] = {
    "socket.connect": _socket_destination,
    "socket.sendto": _socket_destination,
    "socket.sendmsg": _socket_destination,
    "socket.getaddrinfo": _lookup_destination,
    "socket.gethostbyname": _lookup_destination,
    "socket.gethostbyaddr": _lookup_destination,
}
"""The readers of the host in the arguments of each audit event."""


# --- other processes --------------------------------------------------------------------------------------------------


def encode_guard_settings(file: str, allowed: Iterable[str]) -> str:
    """Return the value of `GUARD_VARIABLE` that lets a process guard itself and report in *file*."""
    return json.dumps({"file": file, "allowed": sorted(allowed)})


def guard_from_environment() -> None:
    """Activate a guard for good, as `GUARD_VARIABLE` says; forks of this process are guarded, too."""
    settings = json.loads(os.environ[GUARD_VARIABLE])

    def report(blocked: BlockedHost) -> None:
        with open(settings["file"], "a", encoding="utf-8") as file:
            file.write(json.dumps([blocked.host, blocked.port]) + "\n")

    _install_audit_hook()
    _active_guards.append(NetworkGuard(settings["allowed"], report))


def parse_blocked_hosts(lines: Iterable[str]) -> list[BlockedHost]:
    """Return the hosts that another process has reported."""
    return [BlockedHost(*json.loads(line)) for line in lines]
