"""Flags on calls, who shares them, and what a store does to that."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from pytest_approvals.simulation.meai import (
    BEHAVIOURS,
    FunctionCall,
    FunctionInvokingClient,
    FunctionTool,
    InvalidOperation,
    Message,
    Text,
    ToolApprovalRequest,
    read_json,
    read_messages,
    write_json,
    write_messages,
)

RELEASED = ("10.2", "10.4", "10.6", "10.7", "10.9", "robust")


class Says:
    """A model that says ok."""

    async def respond(self, messages: Sequence[Message]) -> list[Message]:
        return [Message(role="assistant", contents=(Text(text="ok"),))]

    async def stream(self, messages: Sequence[Message]) -> AsyncIterator[Message]:
        yield (await self.respond(messages))[0]


async def wiped(call: FunctionCall) -> str:
    return "wiped"


def served(behaviour: str, messages: list[Message]) -> list[Message]:
    wipe = FunctionTool(name="wipe", run=wiped, gated=True)
    client = FunctionInvokingClient(model=Says(), behaviour=BEHAVIOURS[behaviour], tools=[wipe])
    return asyncio.run(client.respond(messages))


def decided(approved: bool) -> tuple[FunctionCall, list[Message]]:
    """A request, and a response that shares its call."""
    call = FunctionCall(call_id="a", name="wipe", arguments={"disk": 1})
    request = ToolApprovalRequest(request_id="ficc_a", tool_call=call)
    messages = [
        Message(role="assistant", contents=(request,)),
        Message(role="user", contents=(request.response(approved),)),
    ]
    return call, messages


def stored(messages: list[Message]) -> list[Message]:
    return read_messages(read_json(write_json(write_messages(messages))))


@pytest.mark.parametrize("approved", [True, False])
def test_one_object_is_flagged_wherever_it_is_held(approved: bool) -> None:
    """Request, response and the call that comes back are one object, and the caller sees its flag."""
    call, messages = decided(approved)
    rebuilt = served("10.4", messages)[0].contents[0]
    assert (True, True) == (call is rebuilt, call.informational_only)


def test_a_store_makes_two_copies_of_one_call() -> None:
    """After JSON, a flag on one copy is none on the other."""
    _, messages = decided(True)
    request, response = (message.contents[0] for message in stored(messages))
    assert isinstance(request, ToolApprovalRequest)
    assert request.tool_call == response.tool_call  # type: ignore[attr-defined]
    assert request.tool_call is not response.tool_call  # type: ignore[attr-defined]


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize(
    ("behaviour", "flags"),
    [("10.2", [False, False]), ("10.4", [False, True]), ("10.6", [True, True]), ("10.7", [True, True])],
)
def test_which_copies_are_flagged(behaviour: str, flags: list[bool], approved: bool) -> None:
    """10.4 flags the response's copy alone, for approvals and rejections alike."""
    _, messages = decided(approved)
    copies = stored(messages)
    served(behaviour, copies)
    found = [message.contents[0].tool_call.informational_only for message in copies]  # type: ignore[attr-defined]
    assert flags == found


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("behaviour", RELEASED)
def test_only_10_4_fails_in_the_turn_after_a_stored_decision(behaviour: str, approved: bool) -> None:
    """The session goes through a store at the pause; the turn after the decided one fails if one copy is flagged."""
    _, paused = decided(approved)
    history = stored(paused)
    history += served(behaviour, history)
    history.append(Message(role="user", contents=(Text(text="and now?"),)))
    if behaviour == "10.4":
        with pytest.raises(InvalidOperation, match=r"CallId\(s\) 'a'"):
            served(behaviour, history)
    else:
        assert ["ok"] == [content.text for message in served(behaviour, history) for content in message.contents]  # type: ignore[attr-defined]


@pytest.mark.parametrize("behaviour", RELEASED)
def test_without_a_store_every_release_goes_on(behaviour: str) -> None:
    """One object cannot be half flagged."""
    _, history = decided(False)
    history += served(behaviour, history)
    history.append(Message(role="user", contents=(Text(text="and now?"),)))
    assert 1 == len(served(behaviour, history))


@pytest.mark.parametrize(
    ("behaviour", "fails"),
    [("10.2", False), ("10.4", True), ("10.6", False), ("10.7", True), ("10.9", True), ("robust", False)],
)
def test_which_releases_read_a_session_that_10_4_has_stored(meai: Any, behaviour: str, fails: bool) -> None:
    """The request's copy is not flagged, the response's is: 10.6 makes up for that, later releases do not."""
    outcome = meai.play(
        meai.assistant(meai.ask(meai.call("a"))),
        meai.user(meai.answer(meai.call("a", flagged=True))),
        meai.assistant(meai.call("a", flagged=True)),
        meai.tool(meai.result("a", "wiped")),
        meai.user("and now?"),
        behaviour=behaviour,
        model=[] if fails else None,
    )
    assert fails == (outcome["error"] is not None)
    assert [] == outcome["invocations"]


def test_flagged_items_are_kept_and_sent_to_the_model(meai: Any) -> None:
    """Settled calls are left alone, even if a model sends them again."""
    flagged = meai.call("a", flagged=True)
    outcome = meai.play(meai.assistant(meai.ask(flagged)), meai.user(meai.answer(flagged)), meai.user("go"))
    assert ["assistant: ask call a!", "user: yes call a!", "user: go"] == meai.told(outcome["model_inputs"][0])


def test_10_6_keeps_the_flagged_response_that_closed_a_request(meai: Any) -> None:
    """Only the request is taken out."""
    outcome = meai.play(
        meai.assistant(meai.ask(meai.call("a"))),
        meai.user(meai.answer(meai.call("a", flagged=True))),
        behaviour="10.6",
    )
    assert ["user: yes call a!"] == meai.told(outcome["model_inputs"][0])


def test_a_flagged_request_with_an_open_response_is_harmless(meai: Any) -> None:
    """Its result is there, so the response is skipped; the caller's copy stays as it was."""
    outcome = meai.play(
        meai.assistant(meai.ask(meai.call("a", flagged=True))),
        meai.user(meai.answer(meai.call("a"))),
        meai.tool(meai.result("a", "wiped")),
    )
    assert ([], None) == (outcome["invocations"], outcome["error"])
    assert "user: yes call a" == meai.told(outcome["messages_after"])[1]


def test_the_outcome_shows_the_flags_that_the_caller_is_left_with(meai: Any) -> None:
    """The caller's own messages are changed: that is where the bug lives on."""
    a = meai.call("a")
    messages = [meai.assistant(meai.ask(a)), meai.user(meai.answer(a))]
    after = {
        behaviour: meai.told(meai.play(*messages, behaviour=behaviour)["messages_after"]) for behaviour in RELEASED
    }
    assert {
        "10.2": ["assistant: ask call a", "user: yes call a"],
        "10.4": ["assistant: ask call a", "user: yes call a!"],
        "10.6": ["assistant: ask call a!", "user: yes call a!"],
        "10.7": ["assistant: ask call a!", "user: yes call a!"],
        "10.9": ["assistant: ask call a!", "user: yes call a!"],
        "robust": ["assistant: ask call a!", "user: yes call a!"],
    } == after


def test_a_case_does_not_change_the_document_it_was_read_from(meai: Any) -> None:
    """Flags are set on what was read, not on the JSON."""
    a = meai.call("a")
    document = json.dumps(a)
    meai.play(meai.assistant(meai.ask(a)), meai.user(meai.answer(a)))
    assert document == json.dumps(a)
