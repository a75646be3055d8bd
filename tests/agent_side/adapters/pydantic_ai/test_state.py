"""What is kept between turns."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import (
    approve,
    calls,
    cancel,
    decide,
    fails,
    go_on,
    reject,
    restart,
    restore,
    save,
    say,
    send,
    trim,
)
from pytest_approvals.agent_side.adapters.pydantic_ai import FLAVOURS
from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.scenario.model import Variant
from pytest_approvals.testing import FakeWorld, call, reply, tool
from pytest_approvals.testing import approve as approved

Play = Callable[..., Any]

JSON = Variant(serialize="json", source="restored")
APPEND = Variant(serialize="json", history="append")


def test_an_append_only_store_gets_what_each_turn_added() -> None:
    """The parts of three turns hold six messages, each once, and start where the ones before end."""

    async def parts() -> list[dict[str, Any]]:
        pay = tool("pay", "always", amount="integer")
        world = FakeWorld([reply(None, call("pay", amount=5)), reply("Done."), reply("Bye.")], [pay])
        agent = FLAVOURS[""](world, Blueprint(tools=(pay,), serialize="json", history="append"))
        dumped = []
        for text, answer in (("Pay.", False), (None, True), ("Thanks.", False)):
            decisions = [approved(request) for request in await agent.pending()] if answer else []
            await agent.turn(text, decisions, stream=False)
            dumped.append(json.loads(await agent.dump()))
        return dumped

    kinds = [[message["kind"] for message in json.loads(part["messages"])] for part in asyncio.run(parts())]

    assert [["request", "response"], ["request", "response"], ["request", "response"]] == kinds


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        ("", "is no JSON .*: nothing was kept, or only half of it was written; restore the state that was kept before"),
        ('{"since": 0, "mess', "is no JSON .*only half of it was written"),
        ("[]", "lacks messages, requests, results, since: it is of another application, or of another version"),
        ('{"messages": "[]"}', "lacks messages, requests, results, since"),
        (
            json.dumps({"since": 0, "messages": '[{"kind": "novel"}]', "requests": None, "results": None}),
            "novel",
        ),
    ],
)
def test_a_state_that_cannot_be_read_is_named(kept: str, message: str) -> None:
    """Nothing, half a state, another application's and another release's are told apart, with what to do."""
    with pytest.raises(ValueError, match=message):
        asyncio.run(FLAVOURS[""](FakeWorld([], []), Blueprint(serialize="json")).load([kept]))


def test_a_failed_turn_adds_to_an_append_only_store(play: Play) -> None:
    """What the run got to comes as the next part; the one after it continues there."""
    played = play(
        calls("pay", amount=5), fails(500), say("Done."), say("Bye."),
        caller=["Pay.", decide(approve("c1")), go_on(), "Thanks."], variant=APPEND,
    )  # fmt: skip

    assert ["user Pay.", "call c1 {'amount': 5}", "result c1 paid 5", "say Done.", "user Thanks."] == played.inputs[-1]


def test_a_call_that_was_cancelled_is_told(play: Play, variant: Variant) -> None:
    """The history says that its run was interrupted, so that a new message can be sent and nobody is asked again."""
    played = play(caller=["Pay.", decide(approve("c1"), hangs_up="started c1"), "Thanks."], variant=variant)

    assert ["paused", "CallerGone", "finished"] == played.outcomes
    assert "interrupted" in played.told["c1"]
    assert [] == played.pending


def test_what_ran_before_the_model_was_cancelled_is_kept(play: Play, variant: Variant) -> None:
    """Its result is told with the next message."""
    played = play(caller=["Pay.", decide(approve("c1"), hangs_up="model"), "Thanks."], variant=variant)

    assert ["user Pay.", "call c1 {'amount': 5}", "result c1 paid 5", "user Thanks."] == played.inputs[-1]


def test_saving_again_gives_the_same_text(play: Play) -> None:
    """What is loaded is written as it was."""
    played = play(caller=["Pay.", decide(approve("c1")), "Thanks."], variant=JSON)
    saves = {one["name"]: one["digest"] for one in played.events("store.save")}

    assert {one["name"]: one["again"] for one in played.events("store.restore")}.items() <= saves.items()


def test_an_older_save_can_be_taken_up(play: Play) -> None:
    """Its request is open again, and is decided anew."""
    played = play(
        calls("pay", amount=5), say("Paid."), say("Not paid."), variant=JSON,
        caller=["Pay.", save("before"), decide(approve("c1")), restore("before"), decide(reject("c1", "no"))],
    )  # fmt: skip

    assert ["paused", "finished", "finished"] == played.outcomes
    assert {"c1": "no"} == played.told


def test_giving_up_closes_what_is_open(play: Play, variant: Variant) -> None:
    """Nothing is pending, and a new message can be sent; the model is told that the call was interrupted."""
    played = play(caller=["Pay.", cancel(), "Thanks."], variant=variant)

    assert ["paused", "finished"] == played.outcomes
    assert "interrupted" in played.told["c1"]
    assert [] == played.pending


@pytest.mark.parametrize("variant", [Variant(), JSON, APPEND], ids=lambda one: one.id)
def test_trimming_keeps_the_last_messages_and_what_is_pending(play: Play, variant: Variant) -> None:
    """The store's window begins with the pausing reply."""
    played = play(
        say("Hello."), calls("pay", amount=5), say("Done."), variant=variant,
        caller=["Hi.", "Pay.", trim(1), decide(approve("c1"))],
    )  # fmt: skip

    assert ["paused", "finished"] == played.outcomes[1:]
    assert ["call c1 {'amount': 5}", "result c1 paid 5"] == played.inputs[-1]


def test_a_tool_that_is_gone_after_a_restart_is_told(play: Play) -> None:
    """The approval runs nothing, and the model reads why."""
    played = play(caller=["Pay.", restart(without=["pay"]), decide(approve("c1"))], variant=JSON)

    assert [] == played.ran
    assert "Unknown tool name: 'pay'" in played.told["c1"]


@pytest.mark.parametrize("variant", [Variant(), JSON], ids=lambda one: one.id)
def test_sessions_on_one_agent_are_apart(play: Play, variant: Variant) -> None:
    """Each finds its own world, though model and tools are shared."""
    played = play(
        variant=variant,
        caller=[
            send("Pay.", session="a"), send("Pay.", session="b"),
            decide(approve("c1"), session="a"), decide(reject("c1", "no"), session="b"),
        ],
    )  # fmt: skip
    last = [(one["session"], one["items"][-1]["text"]) for one in played.events("model.request")[-2:]]

    assert ["a"] == [one["session"] for one in played.events("tool.start")]
    assert [("a", "paid 5"), ("b", "no")] == last
