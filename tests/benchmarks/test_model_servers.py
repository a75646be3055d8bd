"""The comparison of model servers: what its client takes for an answer, and where its table goes."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from threading import Thread

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from model_servers import (
    BEGIN,
    END,
    HELLO,
    KINDS,
    OWN,
    WAYS,
    Measured,
    NotInstalled,
    Server,
    bodies_for,
    installed,
    processor_time,
    running,
    table,
    write,
)
from raw_client import Client, is_whole, posted


@pytest.mark.parametrize(
    ("got", "whole"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Le", False),
    ],
)
def test_an_answer_is_whole_at_its_end(got: bytes, whole: bool) -> None:
    """By its length, or by its last chunk."""
    assert whole == is_whole(got)


@pytest.mark.parametrize("stream", [False, True])
def test_our_own_server_is_measured(stream: bool) -> None:
    """It starts, answers over several connections, and refuses what a provider refuses."""
    with running(OWN, Path()) as (port, first, _):
        rate = Client(port, OWN.urls, [[{**HELLO, "stream": stream}]], 4).rate(0.1)
        orphan = {"role": "tool", "tool_call_id": "c1", "content": "x"}
        refused = posted(port, OWN.url, {**HELLO, "messages": [*HELLO["messages"], orphan]})

    assert (True, True, 400) == (first > 0, rate > 0, refused)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_asked_is_accepted(kind: str) -> None:
    """All conversations are legal to their last request, none is like another, and each connection has its own."""
    asked = bodies_for(kind, stream=False, connections=2)
    with running(OWN, Path()) as (port, *_):
        statuses = {posted(port, OWN.urls[at], body) for at in range(2) for body in asked[at][:24]}
    texts = [json.dumps(body) for one in asked for body in one]

    assert ({200}, len(texts)) == (statuses, len(set(texts)))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the kernel does not tell processor time by process")
def test_processor_time_is_that_of_the_server() -> None:
    """It grows with the answers of the server, and is none for a group without processes."""
    with running(OWN, Path()) as (port, _, group):
        before = processor_time(group)
        Client(port, OWN.urls, [[HELLO]], 1).rate(0.2)
        used = processor_time(group) - before

    assert (True, 0.0) == (used > 0, processor_time(group))


def test_a_connection_that_ends_is_replaced() -> None:
    """A server that closes after an answer is measured all the same."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")

        Thread(target=serve, daemon=True).start()
        rate = Client(listener.getsockname()[1], ["/"], [[{}]], 1).rate(0.1)
        listener.shutdown(socket.SHUT_RDWR)

    assert rate > 10


def test_what_cannot_be_installed_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With the reason, and nothing is taken for installed."""
    monkeypatch.setattr("model_servers.CACHE", tmp_path)
    monkeypatch.setenv("PATH", "")
    gone = Server(name="gone", package="npm:gone@1", command=lambda *_: [])

    with pytest.raises(NotInstalled, match="npm"):
        installed(gone)
    assert not list(tmp_path.rglob("installed"))


def test_the_table_says_whether_the_goals_are_reached(tmp_path: Path) -> None:
    """It goes between the markers of a page, whatever stood there."""
    slow = Server(name="slow", package="npm:slow@1", command=lambda *_: [])
    ways = [(kind, *way) for kind in KINDS for way in WAYS]
    own = Measured(server=OWN, first=0.1, rates={way: [300.0, 100.0, 200.0] for way in ways}, broken=400, unknown=0.4)
    other = Measured(server=slow, first=1.0, rates={way: [80.0] for way in ways}, broken=200)
    for server, cost in ((own, 60.0), (other, 90.0)):
        server.costs = {way: [cost] for way in ways}
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write(page, table([own, other], {"gone": "no npm"}, (0.5, 1.5), "python x.py"))
    text = page.read_text()

    for kind in KINDS:
        row = f"| **pytest-approvals serve** | {kind} | 200, 60 µs | 200, 60 µs | 200, 60 µs | 200, 60 µs | 0.10 s |"
        assert f"{row} status 400 |\n| slow, slow@1 | {kind} | 80, 90 µs |" in text
        ratios = "2.50, 2.50, 2.50, 2.50 in answers a second, 1.50, 1.50, 1.50, 1.50 in processor time."
        assert f"by column, {kind}: {ratios}" in text
    assert "The goal of twice that is not reached." in text
    assert "within 0.25 s is reached; a scenario that was never read before takes 0.40 s." in text
    assert "load average 0.5 before and 1.5 after. Made by `python x.py`." in text
    assert "Left out: gone (no npm)." in text
    assert text.startswith(f"before\n{BEGIN}\n| server |")
    assert text.endswith(f"{END}\nafter\n")
