"""Requests to a server that runs in this process."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pytest_approvals.agent_side.adapters.agent_framework.hosting_client import open_exchange


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with what it was sent, in two pieces."""
    request = await receive()
    await send({"type": "http.response.start", "status": 201, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode(), "more_body": True})
    await send({"type": "http.response.body", "body": request["body"]})


async def events(scope: Any, receive: Any, send: Any) -> None:
    """Sends two events in pieces that are torn apart, with a comment between."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for piece in (b'event: a\ndata: {"n"', b": 1}\n\n: still there\n\nda", b'ta: {"n": 2}\n\n'):
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body"})


async def breaks(scope: Any, receive: Any, send: Any) -> None:
    """Fails after the head of its answer."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    raise LookupError("nothing here")


async def waits_for_the_end(scope: Any, receive: Any, send: Any) -> None:
    """Answers, and then waits until the client is gone."""
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})
    assert {"type": "http.disconnect"} == await receive()


async def asked(application: Any, body: Any = None) -> tuple[int, str]:
    async with open_exchange(application, "POST", "/here", body) as one:
        text = await one.read_text()
    return one.status, text


def test_a_request_reaches_the_application_and_its_answer_comes_back() -> None:
    """Path and body go there, status and body come back."""
    assert (201, '/here{"x": 1}') == asyncio.run(asked(echo, {"x": 1}))


def test_events_are_told_one_by_one() -> None:
    """Wherever the pieces break off, also with comments in between."""

    async def read() -> list[Any]:
        async with open_exchange(events, "GET", "/") as one:
            return [event async for event in one.iterate_events()]

    assert [{"n": 1}, {"n": 2}] == asyncio.run(read())


def test_what_the_application_raises_comes_out() -> None:
    """A client in the same process sees why there is no answer."""
    with pytest.raises(LookupError, match="nothing here"):
        asyncio.run(asked(breaks))


def test_the_application_runs_to_its_end() -> None:
    """What it does after its answer is waited for."""
    assert (200, "done") == asyncio.run(asked(waits_for_the_end))


def test_leaving_early_ends_the_application() -> None:
    """A client that gives up takes the application's task with it."""
    ended: list[str] = []

    async def hangs(scope: Any, receive: Any, send: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    async def left() -> None:
        async with open_exchange(hangs, "GET", "/"):
            await asyncio.sleep(0)
            raise TimeoutError

    with pytest.raises(TimeoutError):
        asyncio.run(left())
    assert ["ended"] == ended


def test_the_body_is_json() -> None:
    """What is sent is written as JSON."""
    _, text = asyncio.run(asked(echo, {"a": [None, "ü"]}))

    assert {"a": [None, "ü"]} == json.loads(text.removeprefix("/here"))
