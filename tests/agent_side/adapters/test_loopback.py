"""What agents that are programs connect to while they run: nothing but the loopback interface.

A run is traced in a network namespace that has only the loopback interface. The run shows that the agent needs no
network, and the trace what it has tried: it has each process that was started, whatever language it is written in and
however it is linked, and it ends when all of them have.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from ipaddress import IPv6Address, ip_address
from pathlib import Path

import pytest

AGENTS = ["acp.opencode", "acp.claude_code", "acp.codex", "acp.gemini", "claude_agent_sdk", "mastra"]

Trace = Callable[..., list[str]]

_ADDRESS = re.compile(
    r"sin_port=htons\((?P<port>\d+)\), sin_addr=inet_addr\(\"(?P<host>[\d.]+)\"\)"
    r"|sin6_port=htons\((?P<port6>\d+)\).*?inet_pton\(AF_INET6, \"(?P<host6>[0-9a-f:.]+)\""
)

_LOOKUP_PORTS = (53, 5353)
"""A name is looked up by a resolver on this machine, too, which asks others."""


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Runs a command without a network, and returns where its processes have tried to connect to or send to."""
    for program in ("strace", "unshare", "ip"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on this machine")
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make a network namespace")

    def traced(*command: str) -> list[str]:
        file = tmp_path / "trace"
        strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg"]
        inner = shlex.join([*strace, "-o", str(file), *command])
        environment = os.environ | {"PYTEST_APPROVALS_RUNS": str(tmp_path / "runs")}
        done = subprocess.run(
            ["unshare", "--net", "sh", "-c", f"ip link set lo up && exec {inner}"],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert 0 == done.returncode, done.stdout + done.stderr
        return list(find_places(file.read_text(errors="replace")))

    return traced


def find_places(text: str) -> Iterator[str]:
    """Yield the addresses in a trace, with their ports."""
    for match in _ADDRESS.finditer(text):
        yield f"{match['host'] or match['host6']} {match['port'] or match['port6']}"


def is_on_loopback(place: str) -> bool:
    """Return whether a place is this machine, and no resolver of names."""
    host, port = place.split()
    address = ip_address(host)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback and int(port) not in _LOOKUP_PORTS


@pytest.mark.parametrize(
    ("attempt", "place"),
    [
        ("socket.create_connection(('192.0.2.1', 443), 1)", "192.0.2.1 443"),
        ("socket.create_connection(('2001:db8::1', 443), 1)", "2001:db8::1 443"),
        ("socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 8125))", "192.0.2.1 8125"),
    ],
)
def test_an_attempt_is_seen(trace: Trace, attempt: str, place: str) -> None:
    """A connection and a datagram for another machine are in the trace, though there is no way to it."""
    code = f"import contextlib, socket\nwith contextlib.suppress(OSError): {attempt}"

    assert [place] == [one for one in trace(sys.executable, "-c", code) if not is_on_loopback(one)]


def test_a_look_up_of_a_name_is_seen(trace: Trace) -> None:
    """It is no connection to a machine of that name."""
    code = "import contextlib, socket\nwith contextlib.suppress(OSError): socket.getaddrinfo('example.org', 443)"

    assert {"53"} == {place.split()[1] for place in trace(sys.executable, "-c", code) if not is_on_loopback(place)}


def test_a_connection_to_this_machine_is_none(trace: Trace) -> None:
    """Nobody listens there."""
    code = "import contextlib, socket\nwith contextlib.suppress(OSError): socket.create_connection(('127.0.0.1', 9))"

    assert [("127.0.0.1 9", True)] == [(one, is_on_loopback(one)) for one in trace(sys.executable, "-c", code)]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_connects_to_this_machine_only(
    trace: Trace, prepare_environment: Callable[[str], Path], agent: str
) -> None:
    """An approved call runs without a network, and no process of the agent has tried to reach one."""
    prepare_environment(agent)
    words = ["basics/approved", "--agent", agent, "--stream", "off", "--time-limit", "120", "-n", "0"]
    places = trace(sys.executable, "-m", "pytest_approvals.cli", "run", *words)

    assert ([], True) == ([place for place in places if not is_on_loopback(place)], bool(places))
