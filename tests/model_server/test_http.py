"""What the server makes of the bytes of a connection, byte for byte."""

from __future__ import annotations

import select
import socket
import threading

import pytest

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.model_server.server import ScriptedModelServer
from pytest_approvals.protocols.endpoint import HttpResponse
from pytest_approvals.protocols.http.server import MAX_HEAD_SIZE, HttpServer

HEALTH = b"GET /health HTTP/1.1\r\nHost: x\r\n"
TOLD = b'{"ok": true, "conversations": 0}'


@pytest.fixture
def connection():
    with ScriptedModelServer().running() as server:
        place = server.addresses[0]
        with socket.create_connection((place.host, place.port), timeout=10) as connection:
            yield connection


def until(connection, end):
    """What comes, until it ends so."""
    got = b""
    while not got.endswith(end) and (piece := connection.recv(65536)):
        got += piece
    return got


def to_the_end(connection):
    return until(connection, b"\0")


def test_requests_that_come_at_once(connection):
    """Requests that come in one piece are answered in their order, each in one write."""
    connection.sendall(HEALTH + b"\r\n" + b"GET /conversations HTTP/1.1\r\n\r\n")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
    assert head + b"32\r\n\r\n" + TOLD + head + b"2\r\n\r\n[]" == until(connection, b"[]")


def test_request_that_comes_byte_by_byte(connection):
    """A request may be torn anywhere."""
    for byte in HEALTH + b"\r\n":
        connection.send(bytes([byte]))
    assert until(connection, TOLD).startswith(b"HTTP/1.1 200 OK\r\n")


def test_client_that_wants_the_connection_to_end(connection):
    """The connection ends behind the answer that is to be the last one."""
    connection.sendall(HEALTH + b"Connection: close\r\n\r\n" + HEALTH + b"\r\n")
    got = to_the_end(connection)
    assert (1, True) == (got.count(b"HTTP/1.1 "), b"\r\nConnection: close\r\n" in got)


def test_client_that_speaks_of_a_newer_protocol(connection):
    """A client that would rather speak HTTP/2 is answered in HTTP/1.1, and the connection ends."""
    connection.sendall(HEALTH + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
    got = to_the_end(connection)
    assert (b"HTTP/1.1 200 OK", True) == (got[:15], got.endswith(TOLD))


def test_client_that_waits_with_its_body(connection):
    """A client that asks whether it may send a body is told so, before the body comes."""
    connection.sendall(b"POST /conversations HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    assert b"HTTP/1.1 100 Continue\r\n\r\n" == until(connection, b"\r\n\r\n")
    connection.sendall(b"{}")
    assert until(connection, b"}}").startswith(b"HTTP/1.1 400 Bad Request\r\n")


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"hello\r\n\r\n", b"400 Bad Request"),
        (b"POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n", b"400 Bad Request"),
        (b"PATCH /health HTTP/1.1\r\n\r\n", b"501 Not Implemented"),
    ],
    ids=["no-http", "no-length", "no-such-method"],
)
def test_what_is_not_served(connection, raw, status):
    """What is no HTTP, or a method that nothing is done for, is answered with a status, and the connection ends."""
    connection.sendall(raw)
    got = to_the_end(connection)
    assert (b"HTTP/1.1 " + status, True) == (got.partition(b"\r\n")[0], b"\r\nConnection: close\r\n" in got)


@pytest.mark.parametrize(
    "field", [b"X-Long: " + b"a" * 60_000, b"Cookie: " + b"b" * 30_000 + b"\r\nX: " + b"c" * 30_000]
)
def test_head_of_many_bytes(connection, field):
    """Fields of a real client are never too long."""
    connection.sendall(HEALTH + field + b"\r\n\r\n")
    assert until(connection, TOLD).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    "begun",
    [HEALTH + b"X-Long: ", b"GET /", HEALTH + 3000 * b"X-Many: 0123456789\r\n"],
    ids=["field", "path", "fields"],
)
def test_head_that_does_not_end(connection, begun):
    """It is refused before it fills the memory, and the connection ends."""
    connection.sendall(begun + b"a" * (MAX_HEAD_SIZE - len(begun) + 1))
    got = to_the_end(connection)
    assert got.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
    assert got.endswith(b'{"error": {"message": "the head of the request is larger than 131072 bytes"}}')


@pytest.mark.parametrize("base", [b"http://127.0.0.1:1", b"HTTP://model.invalid", b"https://[::1]:80"])
def test_address_in_full(connection, base):
    """A client that takes the server for a proxy writes the whole address, of which the path counts."""
    connection.sendall(b"GET " + base + b"/health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert until(connection, TOLD).startswith(b"HTTP/1.1 200 OK\r\n")


def test_address_without_a_path(connection):
    """It is the root, where no conversation is."""
    connection.sendall(b"GET http://model.invalid?x=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert to_the_end(connection).startswith(b"HTTP/1.1 404 Not Found\r\n")


@pytest.fixture
def server():
    """A server that answers in its loop: `/echo` the body, `/down` nothing, `/fault` by an error of its own."""

    def serve(method, path, raw):
        if path == "/down":
            raise ModelDown(0, "timeout")
        if path == "/fault":
            raise ZeroDivisionError
        return HttpResponse(status=200, content_type="text/plain", pieces=iter([raw]))

    server = HttpServer(socket.AF_INET, "127.0.0.1", 0, serve, None, serve_now=serve)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.stop()
    thread.join()
    server.close()


def connect(server):
    return socket.create_connection(("127.0.0.1", server.server_port), timeout=10)


def echo(connection, body, field=b"Content-Length"):
    connection.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\n%b: %d\r\nX-More: y\r\n\r\n%b" % (field, len(body), body))
    return until(connection, body or b"\r\n\r\n").partition(b"\r\n\r\n")[2]


def test_heads_that_are_alike(server):
    """A request is as long as its own head says, whatever the length in those before it was."""
    with connect(server) as connection:
        for body in (b"a", b"bb", b"", b"c" * 70_000, b"d", b"e" * 100):
            assert body == echo(connection, body)
            assert body == echo(connection, body, b"content-length")


def test_head_that_was_known_and_is_torn(server):
    """What was read before is no help to a request that comes in pieces, and does it no harm."""
    with connect(server) as connection:
        echo(connection, b"one")
        for cut in (1, 10, 50, 62, 64):
            raw = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nX-More: y\r\n\r\ntwo"
            connection.sendall(raw[:cut])
            assert [] == select.select([connection], [], [], 0.02)[0]
            connection.sendall(raw[cut:])
            assert until(connection, b"two").endswith(b"\r\n\r\ntwo")


def test_two_lengths_are_refused(server):
    """Also if one of them alone is known."""
    with connect(server) as connection:
        echo(connection, b"one")
        connection.sendall(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\none")
        assert to_the_end(connection).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_idle_connections_have_no_threads(server):
    """A connection on which nothing waits costs a socket."""
    threads = threading.active_count()
    idle = [connect(server) for _ in range(100)]
    try:
        assert all(b"x" == echo(one, b"x") for one in idle)
        assert threads >= threading.active_count()
    finally:
        for one in idle:
            one.close()


def test_client_that_does_not_read(server):
    """Others are answered meanwhile, and it loses nothing."""
    body = b"x" * 1_000_000
    raw = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    with connect(server) as slow, connect(server) as other:
        sender = threading.Thread(target=slow.sendall, args=(raw * 20,))
        sender.start()
        assert b"hello" == echo(other, b"hello")
        got = 0
        while got < 20 * len(body):
            got += len(slow.recv(1 << 20))
        sender.join()


def test_connection_that_is_held(server):
    """A response that never comes keeps nobody else waiting."""
    with connect(server) as held, connect(server) as other:
        held.sendall(b"GET /down HTTP/1.1\r\n\r\n")
        assert b"hello" == echo(other, b"hello")
        assert [] == select.select([held], [], [], 0)[0]


def test_response_that_fails(server):
    """It ends its connection, and no other."""
    with connect(server) as one, connect(server) as other:
        one.sendall(b"GET /fault HTTP/1.1\r\n\r\n")
        assert b"" == to_the_end(one)
        assert b"hello" == echo(other, b"hello")
