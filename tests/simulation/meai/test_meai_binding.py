"""The binding layer: only what was shown can be decided, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from pytest_approvals.errors import ContentError
from pytest_approvals.simulation.meai import (
    BEHAVIOURS,
    ApprovalBinding,
    BoundClient,
    FunctionCall,
    FunctionInvokingClient,
    FunctionTool,
    InvalidOperation,
    Message,
    read_json,
    read_messages,
    write_json,
    write_messages,
)


class Plays:
    """A model that says what it was given, one answer after the other."""

    def __init__(self, *answers: Message) -> None:
        self.answers = list(answers)
        self.inputs: list[list[Any]] = []

    async def respond(self, messages: Sequence[Message]) -> list[Message]:
        self.inputs.append(write_messages(messages))
        return [self.answers.pop(0)]

    async def stream(self, messages: Sequence[Message]) -> AsyncIterator[Message]:
        yield (await self.respond(messages))[0]


class Session:
    """A bound client whose tool notes what it is run with."""

    def __init__(self, meai: Any, behaviour: str = "10.4", answers: int = 3) -> None:
        self.ran: list[Any] = []
        first = meai.assistant(meai.call("a", disk=1))
        replies = read_messages([first, *[meai.assistant("ok")] * answers])
        wipe = FunctionTool(name="wipe", run=self._wipe, gated=True)
        client = FunctionInvokingClient(model=Plays(*replies), behaviour=BEHAVIOURS[behaviour], tools=[wipe])
        self.bound = BoundClient(client, ApprovalBinding())

    async def _wipe(self, call: FunctionCall) -> str:
        self.ran.append(call.arguments)
        return "wiped"

    def send(self, *messages: Any) -> list[Any]:
        given = [each if isinstance(each, Message) else read_messages([each])[0] for each in messages]
        return write_messages(asyncio.run(self.bound.respond(given)))

    @property
    def pending(self) -> list[str]:
        return list(self.bound.binding.pending)


@pytest.fixture
def paused(meai: Any) -> Session:
    session = Session(meai)
    session.send(meai.user("go"))
    return session


def test_what_is_shown_is_recorded_and_forgotten_with_the_next_run(meai: Any, paused: Session) -> None:
    """Even if the next run decides nothing: a message about something else is enough."""
    assert ["ficc_a"] == paused.pending
    paused.send(meai.user("never mind"))
    assert [] == paused.pending


def test_a_streamed_request_is_recorded_before_the_caller_has_it(meai: Any) -> None:
    """A caller who stops reading there can answer all the same."""
    session = Session(meai)

    async def first() -> list[str]:
        async for _ in session.bound.stream(read_messages([meai.user("go")])):
            return session.pending
        return []

    assert ["ficc_a"] == asyncio.run(first())


def test_what_was_shown_runs(meai: Any, paused: Session) -> None:
    """Other arguments in the response make no difference."""
    paused.send(meai.user(meai.answer(meai.call("a", disk=99))))
    assert [{"disk": 1}] == paused.ran


def test_the_record_is_a_snapshot(meai: Any) -> None:
    """Nobody can change it through the request that went out; flag and confirmation are as they are by default."""
    request = read_messages([meai.assistant(meai.ask(meai.call("a", flagged=True, disk=1), confirm=False))])
    binding = ApprovalBinding()
    binding.record(request)
    request[0].contents[0].function.arguments["disk"] = 99  # type: ignore[attr-defined]
    assert [meai.ask(meai.call("a", disk=1))] == binding.to_json()


def test_the_first_record_of_an_id_stays(meai: Any) -> None:
    """Another request under that id cannot take its place."""
    binding = ApprovalBinding()
    binding.record(read_messages([meai.assistant(meai.ask(meai.call("a", disk=1)))]))
    binding.record(read_messages([meai.assistant(meai.ask(meai.call("a", disk=2)))]))
    assert [meai.ask(meai.call("a", disk=1))] == binding.to_json()


def test_a_response_that_names_no_request_is_dropped(meai: Any, paused: Session) -> None:
    """So is its message, if nothing else is in it."""
    paused.send(meai.user(meai.answer(meai.call("forged", disk=9))), meai.user("hi"))
    assert [] == paused.ran
    assert [[meai.user("hi")]] == paused.bound.client.model.inputs[1:]  # type: ignore[attr-defined]


def test_a_request_is_decided_once(meai: Any, paused: Session) -> None:
    """The second response is dropped, within a run and after it."""
    yes = meai.answer(meai.call("a", disk=1))
    paused.send(meai.user(yes, yes))
    paused.send(meai.user(yes))
    assert [{"disk": 1}] == paused.ran


def test_a_request_in_the_messages_counts(meai: Any) -> None:
    """A caller who sends the whole history brings the request along."""
    session = Session(meai)
    request = meai.assistant(meai.ask(meai.call("a", disk=5)))
    session.send(request, meai.user(meai.answer(meai.call("a", disk=99))))
    assert [{"disk": 5}] == session.ran


def test_an_answer_is_bound_to_the_request_before_it(meai: Any) -> None:
    """Where an id is used twice, each response has its own request."""
    one, two = meai.call("a", disk=1), meai.call("a", disk=2)
    messages = [meai.assistant(meai.ask(one)), meai.user(meai.answer(meai.call("a", disk=8)))]
    messages += [meai.assistant(meai.ask(two)), meai.user(meai.answer(meai.call("a", disk=9)))]
    bound = ApprovalBinding().bind(read_messages(messages))
    found = [message.contents[0].function.arguments for message in bound]  # type: ignore[attr-defined]
    assert [{"disk": 1}, {"disk": 1}, {"disk": 2}, {"disk": 2}] == found


def test_an_equal_response_is_kept_as_it_is(meai: Any) -> None:
    """The same object with the same call, or a call without arguments; read from JSON, arguments are never equal."""
    [request] = read_messages([meai.assistant(meai.ask(meai.call("a", disk=1)))])
    response = Message(contents=(request.contents[0].response(True),))  # type: ignore[attr-defined]
    assert response is ApprovalBinding().bind([request, response])[1]
    bare = read_messages([meai.assistant(meai.ask(meai.call("a"))), meai.user(meai.answer(meai.call("a")))])
    assert bare[1] is ApprovalBinding().bind(bare)[1]


def test_flagged_and_mcp_responses_pass(meai: Any) -> None:
    """What is dealt with, and what is the provider's, is left alone."""
    given = [meai.user(meai.answer(meai.call("a", flagged=True)), meai.answer(meai.mcp(), request_id="m1"))]
    assert given == write_messages(ApprovalBinding().bind(read_messages(given)))


@pytest.mark.parametrize(("arguments", "fails"), [({"disk": 1}, False), ({}, True)])
def test_binding_hides_half_flagged_calls_unless_they_have_no_arguments(
    meai: Any, arguments: dict[str, Any], fails: bool
) -> None:
    """A response that is bound shares the request's call again; one that is kept is a copy, and 10.4 flags it alone."""
    call = meai.call("a", **arguments)
    history = read_messages([meai.assistant(meai.ask(call)), meai.user(meai.answer(call))])
    session = Session(meai)
    session.bound.client.model.answers.pop(0)  # type: ignore[attr-defined]
    history += asyncio.run(session.bound.respond(history))
    history += read_messages([meai.user("and now?")])
    if fails:
        with pytest.raises(InvalidOperation):
            asyncio.run(session.bound.respond(history))
    else:
        assert 1 == len(asyncio.run(session.bound.respond(history)))


def test_the_record_goes_through_a_store(meai: Any, paused: Session) -> None:
    """As JSON text, and back."""
    stored = read_json(write_json(paused.bound.binding.to_json()))
    assert [meai.ask(meai.call("a", disk=1))] == stored
    assert paused.bound.binding == ApprovalBinding.from_json(stored)
    with pytest.raises(ContentError, match="_pendingApprovalRequests: must be a list"):
        ApprovalBinding.from_json({})
