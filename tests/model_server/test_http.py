"""What the server makes of the bytes of a connection, byte for byte."""

from __future__ import annotations

import socket

import pytest

from pytest_approvals.model_server.server import ScriptedModelServer
from pytest_approvals.protocols.http.server import MAX_HEAD_SIZE

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
