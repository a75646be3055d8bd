"""The leak guard by itself."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection

import pytest

from pytest_approvals.agent_side.process.network_guard import (
    GUARD_VARIABLE,
    BlockedHost,
    NetworkGuard,
    encode_guard_settings,
    find_proxy_variable,
    guard_network,
    is_local,
    parse_blocked_hosts,
)

PLACE = ("192.0.2.1", 443)


def connect(place=PLACE):
    with socket.socket() as one:
        one.connect_ex(place)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.255.0.9", True),
        ("::1", True),
        ("::1%lo", True),
        ("::ffff:127.0.0.1", True),
        ("::ffff:192.0.2.1", False),
        ("LOCALHOST.", True),
        ("model.localhost", True),
        ("localhost.example.org", False),
        ("127.example.org", False),
        ("192.0.2.127", False),
        ("fe80::1", False),
    ],
)
def test_what_is_of_this_machine(host, local):
    """Loopback addresses in all their spellings, and their names."""
    assert local == is_local(host)


def test_innermost_guard_is_told():
    """Of two guards the one that came last watches, and the first one again when that is over."""
    outer, inner = [], []
    with guard_network(NetworkGuard((), outer.append)):
        with guard_network(NetworkGuard((), inner.append)), pytest.raises(ConnectionRefusedError):
            connect()
        with pytest.raises(ConnectionRefusedError, match=r"192\.0\.2\.1:443 is not on this machine"):
            connect()
    assert ([BlockedHost(*PLACE)], [BlockedHost(*PLACE)]) == (outer, inner)


def test_addresses_of_an_allowed_name_are_allowed():
    """A client that has looked an allowed name up connects to one of its addresses."""
    name = socket.gethostname()
    address = socket.getaddrinfo(name, None, socket.AF_INET)[0][4][0]
    told = []
    NetworkGuard([name.upper()], told.append).check(address, 443)
    assert [] == told


def test_guard_that_is_over_refuses_nothing():
    """Nothing is judged where nobody watches."""
    told = []
    with guard_network(NetworkGuard((), told.append)):
        pass
    with socket.socket(type=socket.SOCK_DGRAM) as one:
        one.connect_ex(PLACE)
    assert [] == told


@pytest.mark.parametrize(("host", "said"), [("192.0.2.1", "192.0.2.1:443"), ("2001:db8::1", "[2001:db8::1]:443")])
def test_leak_is_said_as_an_address(host, said):
    """As in an address, so that it can be searched for in code."""
    assert (said, host) == (str(BlockedHost(host, 443)), str(BlockedHost(host)).strip("[]"))


CHILD = """
import os, socket
from pytest_approvals.agent_side.process.network_guard import guard_from_environment
guard_from_environment()
def ask(port):
    with socket.socket() as one:
        try:
            one.connect(("192.0.2.1", port))
        except ConnectionRefusedError:
            pass
if os.fork() == 0:
    ask(1)
    os._exit(0)
os.wait()
ask(2)
"""


def test_other_processes_tell_their_leaks(tmp_path):
    """A process that is told to watches itself and its forks for good, and tells what it refused in a file."""
    file = tmp_path / "leaks.jsonl"
    subprocess.run(
        [sys.executable, "-c", CHILD],
        env={GUARD_VARIABLE: encode_guard_settings(str(file), ["db.invalid"])},
        check=True,
    )
    assert [BlockedHost("192.0.2.1", 1), BlockedHost("192.0.2.1", 2)] == parse_blocked_hosts(
        file.read_text().splitlines()
    )


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({"http_proxy": "http://127.0.0.1:3128"}, "http_proxy"),
        ({"HTTPS_PROXY": "http://me:secret@localhost:3128/"}, "HTTPS_PROXY"),
        ({"ALL_PROXY": "socks5h://[::1]:3128"}, "ALL_PROXY"),
        ({"https_proxy": "localhost:3128"}, "https_proxy"),
        ({"http_proxy": "http://127.0.0.1:31280"}, None),
        ({"http_proxy": "http://proxy.invalid:3128"}, None),
        ({"http_proxy": "http://approvals:x@127.0.0.1:3128"}, None),
        ({"http_proxy": ""}, None),
        ({}, None),
    ],
)
def test_proxies_of_the_environment(environment, found):
    """Those on this machine with the port that is connected to; the harness' own one refuses by itself."""
    assert found == find_proxy_variable(environment, 3128)


def test_a_proxy_can_be_allowed():
    """By its host, as any other."""
    told = []
    guard = NetworkGuard(["127.0.0.1"], told.append)
    guard.check("127.0.0.1", 3128)
    assert [] == told


@pytest.mark.parametrize(
    ("request_line", "refused"),
    [
        (b"CONNECT api.invalid:443 HTTP/1.1\r\n\r\n", [BlockedHost("api.invalid", 443)]),
        (b"GET http://api.invalid/v1 HTTP/1.1\r\nHost: x\r\n\r\n", [BlockedHost("api.invalid")]),
        (b"GET http://127.0.0.1:8000/v1 HTTP/1.1\r\n\r\n", []),
        (b"POST /v1?to=http://api.invalid/ HTTP/1.1\r\n\r\n", []),
        (b"CONNECT", []),
    ],
)
def test_requests_for_other_machines_are_refused(request_line, refused):
    """What `http.client` sends to an address of this machine may be for another one."""
    told = []
    ours, theirs = socket.socketpair()
    connection = HTTPConnection("localhost")
    connection.sock = ours
    with guard_network(NetworkGuard((), told.append)), suppress(ConnectionRefusedError):
        connection.send(request_line)
    connection.close()
    theirs.close()
    assert refused == told


def test_threads_of_a_pool_work_for_whoever_asks():
    """A thread that one test has started and another one uses is not late."""
    told = []
    with ThreadPoolExecutor(1) as pool:
        with guard_network(NetworkGuard((), told.append, "first")):
            pool.submit(int).result()
        with guard_network(NetworkGuard((), told.append, "second")):
            pool.submit(connect).exception()
    assert [BlockedHost(*PLACE)] == told


UVLOOP = '''
import asyncio

class Loop(asyncio.SelectorEventLoop):
    """Event loop that connects without the interpreter, as uvloop does."""

    async def create_connection(self, factory, host=None, port=None, **_):
        return f"connected to {host}"

    async def create_datagram_endpoint(self, factory, local_addr=None, remote_addr=None, **_):
        return f"sends to {remote_addr}"

    async def getaddrinfo(self, host, port=None, **_):
        return f"knows {host}"

    async def getnameinfo(self, sockaddr, flags=0):
        return f"knows {sockaddr}"
'''

ASKS = """
import asyncio, sys
from pytest_approvals.agent_side.process.network_guard import NetworkGuard, guard_network

if {early}:
    import uvloop
blocked = []
with guard_network(NetworkGuard((), lambda host: blocked.append(str(host)))):
    import uvloop
    loop = uvloop.Loop()
    for ask in (
        lambda: loop.create_connection(None, "192.0.2.1", 1),
        lambda: loop.create_connection(None, host="far.invalid", port=2),
        lambda: loop.create_datagram_endpoint(None, remote_addr=("192.0.2.1", 3)),
        lambda: loop.getaddrinfo("look.invalid", 4),
        lambda: loop.getnameinfo(("192.0.2.5", 80)),
        lambda: loop.create_connection(None, "localhost", 6),
        lambda: loop.create_connection(None, sock=None),
        lambda: loop.create_datagram_endpoint(None, local_addr=("127.0.0.1", 0)),
    ):
        try:
            print(loop.run_until_complete(ask()))
        except OSError:
            print("refused")
print(loop.run_until_complete(loop.create_connection(None, "192.0.2.1", 1)))
print(blocked)
loop.close()
"""


@pytest.mark.parametrize("early", [True, False], ids=["before", "meanwhile"])
def test_event_loops_of_uvloop(tmp_path, early):
    """They are guarded, whenever uvloop was imported, and only while a guard is active."""
    (tmp_path / "uvloop.py").write_text(UVLOOP)
    words = [sys.executable, "-c", ASKS.format(early=early)]
    ran = subprocess.run(words, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)

    assert [
        *["refused"] * 5,
        "connected to localhost",
        "connected to None",
        "sends to None",
        "connected to 192.0.2.1",
        "['192.0.2.1:1', 'far.invalid:2', '192.0.2.1:3', 'look.invalid:4', '192.0.2.5:80']",
    ] == ran.stdout.splitlines(), ran.stderr
