"""Agents behind a web client: what the client sends, makes of the stream, and keeps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests

from pytest_approvals import approve, calls, decide, fails, go_on, raw, reject, restart, say, send
from pytest_approvals.agent_side.adapters.pydantic_ai import FLAVOURS
from pytest_approvals.agent_side.contract import Attachment, Blueprint, Decision
from pytest_approvals.scenario.model import Variant
from pytest_approvals.testing import AdapterSession, FakeWorld, call, reply, tool

Play = Callable[..., Any]

JSON = Variant(serialize="json", source="rebuilt")
WEB = pytest.mark.parametrize("flavour", ["vercel", "agui"])


def kept(flavour: str, *turns: Callable[[AdapterSession], Any]) -> dict[str, Any]:
    """What the client holds after some turns of a session that pays 5."""
    pay = tool("pay", "always", amount="integer")
    world = FakeWorld([reply(None, call("pay", amount=5)), reply("Done.")], [pay])
    story = AdapterSession(FLAVOURS[flavour], Blueprint(tools=(pay,), serialize="json"), world)
    for turn in turns:
        turn(story)
    text: dict[str, Any] = json.loads(story.wait(story.agent.dump()))
    story.end()
    return text


def paused(story: AdapterSession) -> None:
    story.paused("Pay.")


def answered(story: AdapterSession) -> None:
    (request,) = story.wait(story.agent.pending())
    story.finished(None, Decision(request=request, verdict="approve"))


def staged(story: AdapterSession) -> None:
    (request,) = story.wait(story.agent.pending())
    story.wait(story.agent.stage([Decision(request=request, verdict="reject", reason="no")]))


@WEB
@pytest.mark.parametrize("variant", [Variant(), Variant(stream=True), Variant(serialize="copy"), JSON], ids=str)
def test_an_approved_call_runs_once_and_is_told(play: Play, flavour: str, variant: Variant) -> None:
    """In every mode the call waits, runs after the approval, and the model reads its result."""
    played = play(flavour=flavour, variant=variant)

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


@WEB
def test_the_reason_of_a_rejection_reaches_the_model(play: Play, flavour: str) -> None:
    """It is the result of the call."""
    played = play(flavour=flavour, variant=JSON, caller=["Pay.", decide(reject("c1", "too much"))])

    assert ([], {"c1": "too much"}) == (played.ran, played.told)


@WEB
def test_a_model_that_fails_after_the_tool_ran_is_asked_again(play: Play, flavour: str) -> None:
    """The client has seen the result, and sends it with its messages."""
    played = play(
        calls("pay", amount=5), fails(500), say("Done."), flavour=flavour,
        caller=["Pay.", decide(approve("c1")), go_on()],
    )  # fmt: skip

    assert ["paused", "RunFailed", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


@WEB
def test_a_message_and_an_answer_go_together(play: Play, flavour: str) -> None:
    """The message follows the result."""
    played = play(flavour=flavour, caller=["Pay.", send("And hurry.", approve("c1"))])

    assert ["result c1 paid 5", "user And hurry."] == played.inputs[-1][-2:]


@WEB
def test_a_word_in_place_of_a_decision_is_refused(play: Play, flavour: str) -> None:
    """What is no boolean approves nothing; the request stays open for the right answer."""
    played = play(flavour=flavour, caller=["Pay.", decide(raw("c1", "yes")), decide(approve("c1"))])

    assert ["paused", "finished"] == [one for one in played.outcomes if one in ("paused", "finished")]
    assert 3 == len(played.outcomes)
    assert [("pay", {"amount": 5})] == played.ran


@WEB
def test_a_stream_shows_what_the_client_is_sent(play: Play, flavour: str) -> None:
    """The call, the request, the result after the approval, and the text."""
    played = play(flavour=flavour, variant=Variant(stream=True))
    shown = [one["what"] for one in played.events("caller.shown") if one["what"] != "text"]

    assert ["call", "request", "end", "result", "end"] == shown


@WEB
def test_a_session_goes_on_after_a_restart(play: Play, flavour: str) -> None:
    """The request is there again, and what was said before is in the model's input."""
    played = play(
        calls("pay", amount=5), say("Done."), say("Bye."), flavour=flavour, variant=JSON,
        caller=["Pay.", restart(), decide(approve("c1")), restart(), "Thanks."],
    )  # fmt: skip

    assert ["user Pay.", "call c1 {'amount': 5}", "result c1 paid 5", "say Done.", "user Thanks."] == played.inputs[-1]


def test_a_paused_run_is_stored_with_its_request() -> None:
    """vercel: `dump_messages` says of the call's part that an answer is awaited."""
    part = kept("vercel", paused)["messages"][-1]["parts"][-1]

    assert ("tool-pay", "approval-requested", {"id": "c1"}) == (part["type"], part["state"], part["approval"])


def test_an_answer_stands_in_the_part_of_its_call() -> None:
    """vercel: staged, it is in the messages as the browser will send it."""
    part = kept("vercel", paused, staged)["messages"][-1]["parts"][-1]

    assert ("approval-responded", {"id": "c1", "approved": False, "reason": "no"}) == (part["state"], part["approval"])


def test_interrupts_are_kept_beside_the_messages() -> None:
    """agui: no message says that a call waits; after the answer there is no interrupt."""
    assert ["int-c1"] == [one["id"] for one in kept("agui", paused)["interrupts"]]
    assert [] == kept("agui", paused, answered)["interrupts"]


def test_a_flavour_that_a_release_lacks_cannot_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is named."""
    monkeypatch.setattr(FLAVOURS["vercel"], "needs", ("ui/vercel_ai/_adapter.py", "no such name"))

    with pytest.raises(ImportError, match=r"pydantic-ai-slim has no 'no such name' in pydantic_ai/ui/vercel_ai"):
        FLAVOURS["vercel"](FakeWorld([], []), Blueprint())


@WEB
def test_turns_that_overlap_are_two_tabs(flavour: str) -> None:
    """Both begin with what the client held, so that two answers to one request run the call twice."""
    pay = tool("pay", "always", amount="integer")
    world = FakeWorld([reply(None, call("pay", amount=5)), reply("Done."), reply("Done.")], [pay])

    async def played() -> list[Any]:
        agent = FLAVOURS[flavour](world, Blueprint(tools=(pay,)))
        await agent.turn("Pay.", (), stream=False)
        (request,) = await agent.pending()
        decision = Decision(request=request, verdict="approve")
        await asyncio.gather(*(agent.turn(None, [decision], stream=False) for _ in range(2)))
        return list(world.ran)

    assert [("pay", {"amount": 5})] * 2 == asyncio.run(played())


@WEB
def test_a_persons_own_agent_can_stand_behind_a_client(play: Play, flavour: str) -> None:
    """Its tools are probed, and its approvals travel as any other's."""
    paid = []
    agent = Agent("test", output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        paid.append(amount)
        return f"really paid {amount}"

    played = play(flavour=flavour, attach=Attachment(subject=lambda _: agent), tools=(), attached=True, variant=JSON)

    assert ["paused", "finished"] == played.outcomes
    assert ([5], {"c1": "really paid 5"}) == (paid, played.told)
