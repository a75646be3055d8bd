"""What is gated: conditions, nested agents, tools of servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import approve, call, calls, decide, go_on, raises, reject, returns, say, stage, tool, when
from pytest_approvals.agent_side.contract import Parameter
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]

AMOUNT = {"amount": "integer"}
BIG = tool("pay", returns("paid {amount}"), parameters=AMOUNT, approval=when("amount", greater_than=100))
DONE = say("Done.")


@pytest.mark.parametrize("flavour", ["", "raised", "inline"])
def test_a_condition_decides_on_the_arguments(play: Play, flavour: str) -> None:
    """The policy is asked once about each call, and not again after the approval."""
    both = calls(call("pay", amount=5), call("pay", amount=500))
    played = play(both, DONE, tools=[BIG], flavour=flavour)
    gates = [(one["call_id"], one["arguments"], one["answer"]) for one in played.events("tool.gate")]

    assert [("c1", {"amount": 5}, False), ("c2", {"amount": 500}, True)] == gates
    assert [["c2"], []] == played.requests


@pytest.mark.parametrize("flavour", ["", "raised", "inline"])
def test_a_condition_that_raises_fails_the_turn(play: Play, flavour: str) -> None:
    """Nothing runs."""
    broken = tool("pay", parameters=AMOUNT, approval=when(raises="policy is down"))
    played = play(calls("pay", amount=5), DONE, tools=[broken], flavour=flavour)

    assert (["ConditionRaised"], []) == (played.outcomes, played.ran)


def test_a_condition_may_wait_where_a_tool_asks_from_within(play: Play) -> None:
    """In the flavour `raised` the policy is asynchronous."""
    slow = tool("pay", parameters=AMOUNT, approval=when("amount", greater_than=100, waits_for="ended c2"))
    look = tool("look")
    played = play(
        calls(call("pay", amount=500), call("look")), DONE, tools=[slow, look], flavour="raised",
        requires=["slow_conditions"],
    )  # fmt: skip

    assert [["c1"], []] == played.requests


@pytest.mark.parametrize("flavour", ["", "raised"])
def test_arguments_are_validated_before_anybody_is_asked(play: Play, flavour: str) -> None:
    """Defaults are filled in, text becomes a number, and what does not fit is told to the model."""
    pay = tool(
        "pay", approval="always",
        parameters={"amount": "integer", "currency": Parameter(required=False, default="EUR")},
    )  # fmt: skip
    several = calls(
        call("pay", {"amount": "5"}, invalid=True),
        call("pay", {"amount": "much"}, invalid=True),
        call("pay", "{"),
    )
    played = play(several, DONE, tools=[pay], flavour=flavour)

    assert [["c1"], []] == played.requests
    assert [("pay", {"amount": 5, "currency": "EUR"})] == played.ran
    assert {"c2": True, "c3": True} == {key: "error" in text for key, text in played.told.items() if key != "c1"}


# --- nested agents ----------------------------------------------------------------------------------------------------

HELP = tool("help", parameters={"input": "string"}, runs="helper")
WIPE = tool("wipe", returns("wiped {disk}"), parameters={"disk": "string"}, approval="always", agent="helper")


def test_what_a_nested_agent_asks_surfaces(play: Play, variant: Variant) -> None:
    """The request names the inner agent; the answer finds its way back, and both agents go on."""
    played = play(
        calls("help", input="clean up"), DONE, tools=[HELP, WIPE], variant=variant,
        agents={"helper": [calls("wipe", disk="a"), say("Cleaned.")]},
    )  # fmt: skip
    (request,) = played.events("turn.end")[0]["requests"]

    assert ("c1/c1", "c1", "helper") == (request["id"], request["call_id"], request["agent"])
    assert ["paused", "finished"] == played.outcomes
    assert ["main", "c1/helper", "c1/helper", "main"] == [one["conversation"] for one in played.events("model.request")]
    assert {"c1": "Cleaned."} == played.told


def test_nested_agents_side_by_side_are_told_apart(play: Play, variant: Variant) -> None:
    """Both ask with the same call id; each gets its own answer, and the main agent's call has its own, too."""
    pay = tool("pay", returns("paid"), approval="always")
    played = play(
        calls(call("help", id="o1", input="a"), call("help", id="o2", input="b"), call("pay", id="c1")), DONE,
        tools=[HELP, WIPE, pay], variant=variant,
        agents={
            "helper": {
                "a": [calls("wipe", disk="a"), say("Cleaned a.")],
                "b": [calls("wipe", disk="b"), say("Left b.")],
            }
        },
        caller=["Go.", decide(approve("o1/c1"), reject("o2/c1", "keep b"), approve("c1"))],
    )  # fmt: skip

    assert ["o1/c1", "o2/c1", "c1"] == played.requests[0]
    assert [("pay", {}), ("wipe", {"disk": "a"})] == sorted(played.ran, key=lambda one: one[0])
    assert {"o1": "Cleaned a.", "o2": "Left b.", "c1": "paid"} == played.told


def test_a_gated_delegation_asks_first_for_itself(play: Play, variant: Variant) -> None:
    """Then for what the inner agent wants to run."""
    gated = tool("help", parameters={"input": "string"}, runs="helper", approval="always")
    played = play(
        calls("help", input="clean up"), DONE, tools=[gated, WIPE], variant=variant,
        agents={"helper": [calls("wipe", disk="a"), say("Cleaned.")]},
    )  # fmt: skip

    assert [["c1"], ["c1/c1"], []] == played.requests


def test_answers_to_a_nested_request_can_be_put_aside(play: Play, variant: Variant) -> None:
    """They are saved inside the answer to the outer call."""
    played = play(
        calls("help", input="clean up"), DONE, tools=[HELP, WIPE], variant=variant,
        agents={"helper": [calls("wipe", disk="a"), say("Left.")]},
        caller=["Go.", stage(reject("c1/c1", "keep it")), go_on()],
    )  # fmt: skip

    assert (["paused", "finished"], []) == (played.outcomes, played.ran)


# --- servers ----------------------------------------------------------------------------------------------------------


def _mcp(name: str, *does: Any, server: str = "bank", **more: Any) -> Any:
    return tool(name, *does, kind="mcp", server=server, **more)


@pytest.mark.parametrize("flavour", ["", "raised", "inline"])
def test_calls_of_a_server_are_gated(play: Play, flavour: str) -> None:
    """Always, on a condition and never, together with the agent's own tools; the server runs them."""
    tools = [
        _mcp("send", returns("sent {amount}"), parameters=AMOUNT, approval="always"),
        _mcp("move", returns("moved {amount}"), parameters=AMOUNT, approval=when("amount", greater_than=100)),
        _mcp("read", returns({"balance": 7})),
        tool("pay", returns("paid"), approval="always"),
    ]
    several = calls(call("send", amount=1), call("move", amount=2), call("move", amount=300), call("read"), call("pay"))
    played = play(several, DONE, tools=tools, flavour=flavour)
    (kinds,) = {tuple((one["label"], one["kind"]) for one in played.events("turn.end")[0]["requests"])}

    assert {("c1", "mcp"), ("c3", "mcp"), ("c5", "function")} == set(kinds)
    assert {"c1": "sent 1", "c2": "moved 2", "c3": "moved 300", "c4": '{"balance":7}', "c5": "paid"} == played.told


def test_a_failing_tool_of_a_server_is_told(play: Play) -> None:
    """The server answers with an error, which the model reads."""
    played = play(calls("read"), DONE, tools=[_mcp("read", raises("no such account"))])

    assert ["finished"] == played.outcomes
    assert "no such account" in played.told["c1"]


def test_tools_of_one_name_on_two_servers_are_told_apart(play: Play, variant: Variant) -> None:
    """One is gated, the other is not; towards the world both keep their name."""
    tools = [
        _mcp("bank_send", returns("sent"), called="send", parameters=AMOUNT, approval="always"),
        _mcp("shop_send", returns("shipped"), called="send", parameters=AMOUNT, server="shop"),
    ]
    both = calls(call("bank_send", amount=1), call("shop_send", amount=2))
    played = play(both, DONE, tools=tools, variant=variant)
    (request,) = played.events("turn.end")[0]["requests"]

    assert ("send", "bank") == (request["tool"], request["server"])
    assert {"c1": "sent", "c2": "shipped"} == played.told
