"""How turns end: paused, finished, failed, and what can be done after that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import approve, calls, decide, edit, fails, go_on, let_oracle, raises, reject, returns, say, tool
from pytest_approvals.agent_side.contract import Limits
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]


def two(first: tuple[str, Any], second: tuple[str, Any], **more: Any) -> Any:
    """One reply with two calls, c1 and c2."""
    return calls(*calls(first[0], **first[1]).calls, *calls(second[0], **second[1]).calls, **more)


PAYS = ("pay", {"amount": 5}), ("pay", {"amount": 6})


def test_an_approved_call_runs_once_and_is_told(play: Play, variant: Variant, flavour: str) -> None:
    """In every mode the call waits, runs after the approval, and the model reads its result."""
    played = play(variant=variant, flavour=flavour)

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


def test_a_rejection_reaches_the_model_with_its_reason(play: Play, flavour: str) -> None:
    """The tool does not run, and the result says why."""
    played = play(caller=["Pay.", decide(reject("c1", "too much"))], flavour=flavour)

    assert ([], True) == (played.ran, "too much" in played.told["c1"])


def test_an_edited_call_runs_with_the_other_arguments(play: Play, flavour: str) -> None:
    """What the person wrote runs, and the call in the history stays as the model made it."""
    played = play(caller=["Pay.", decide(edit("c1", {"amount": 1}))], flavour=flavour)

    assert [("pay", {"amount": 1})] == played.ran
    assert "call c1 {'amount': 5}" in played.inputs[-1]


def test_batched_calls_wait_for_all_answers(play: Play) -> None:
    """The free sibling runs only when the gated one was answered."""
    played = play(two(PAYS[0], ("look", {"what": "x"})), say("Done."), caller=["Go.", decide(approve("c1"))])
    started = [event["n"] for event in played.events("tool.start")]
    paused = played.events("turn.end")[0]["n"]

    assert [True, True] == [number > paused for number in started]


@pytest.mark.parametrize("flavour", ["per_call", "retry", "interrupt"])
def test_single_calls_wait_for_their_own_answer(play: Play, flavour: str, variant: Variant) -> None:
    """The other request stays open, and what ran is not run again."""
    played = play(
        two(*PAYS),
        say("Done."),
        caller=["Go.", decide(approve("c2")), decide(approve("c1"))],
        flavour=flavour,
        variant=variant,
    )

    assert [["c1", "c2"], ["c1"], []] == played.requests
    assert [("pay", {"amount": 6}), ("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5", "c2": "paid 6"} == played.told


def test_text_beside_a_pause_is_told(play: Play, flavour: str) -> None:
    """The last message of the thread has it."""
    played = play(calls(*calls("pay", amount=5).calls, say="Let me pay."), say("Done."), flavour=flavour)

    assert "Let me pay." == played.events("turn.end")[0]["text"]


def test_going_on_without_an_answer_asks_again(play: Play, flavour: str, variant: Variant) -> None:
    """A thread that waits still waits when it is run with None."""
    played = play(caller=["Pay.", go_on(), decide(approve("c1"))], flavour=flavour, variant=variant)

    assert [["c1"], ["c1"], []] == played.requests
    assert [("pay", {"amount": 5})] == played.ran


def test_a_model_that_fails_after_the_tool_ran_is_asked_again(play: Play, flavour: str, variant: Variant) -> None:
    """The thread has the result, so that going on runs nothing twice."""
    played = play(
        calls("pay", amount=5),
        fails(500),
        say("Done."),
        caller=["Pay.", decide(approve("c1")), go_on()],
        flavour=flavour,
        variant=variant,
    )

    assert ["paused", "ModelDown", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert played.inputs[-2] == played.inputs[-1]


def test_a_tool_that_raises_fails_the_turn_and_is_run_again_by_going_on(play: Play, flavour: str) -> None:
    """The guide has it so: the thread is run with None, and resumes what failed, also behind a retry."""
    flaky = tool("pay", raises("no money"), returns("paid"), parameters={"amount": "integer"}, approval="always")
    played = play(tools=[flaky], caller=["Pay.", decide(approve("c1")), go_on()], flavour=flavour)

    assert ["paused", "ToolRaised", "finished"] == played.outcomes
    assert 2 == len(played.ran)
    assert {"c1": "paid"} == played.told


@pytest.mark.parametrize(
    ("limit", "error"), [({"model_replies": 1}, "ModelCallLimit"), ({"tool_calls": 1}, "ToolCall")]
)
def test_limits_fail_the_turn(play: Play, limit: dict[str, int], error: str) -> None:
    """The framework's own middleware stops a run that goes on too long."""
    played = play(
        calls("look", what="a"), calls("look", what="b"), say("Done."), caller=["Look."], limits=Limits(**limit)
    )

    assert played.outcomes[-1].startswith(error)


def test_a_stream_shows_calls_requests_results_and_text(play: Play, flavour: str) -> None:
    """What a consumer sees is told in the order in which it is shown."""
    played = play(flavour=flavour, variant=Variant(stream=True))
    kinds = [event["what"] for event in played.shown]

    assert kinds.index("call") < kinds.index("request") < kinds.index("text")
    assert 2 == kinds.count("end")
    assert 1 == kinds.count("request")
    assert (0 if flavour == "interrupt" else 1) == kinds.count("result")


def test_a_stream_shows_no_call_before_its_id(play: Play) -> None:
    """A first piece without an id does not say which call it begins."""
    played = play(variant=Variant(stream=True, chunking="late_ids"))

    assert [] == [event for event in played.shown if event["what"] == "call" and event.get("id") is None]


def test_a_result_that_is_streamed_again_is_shown_once(play: Play) -> None:
    """What a finished sibling did comes again with the next run, marked by the framework."""
    played = play(
        two(*PAYS),
        say("Done."),
        caller=["Go.", decide(approve("c1")), decide(approve("c2"))],
        flavour="per_call",
        variant=Variant(stream=True),
    )
    shown = [event["id"] for event in played.shown if event["what"] == "result"]

    assert ["c1", "c2"] == shown


def test_a_tool_asks_again_in_its_middle(play: Play, flavour: str, variant: Variant) -> None:
    """What it did before the question is not done again, and a rejection ends it there."""
    from pytest_approvals import asks_again

    wire = tool("pay", asks_again("Really?"), returns("sent"), parameters={"amount": "integer"}, approval="always")
    played = play(
        tools=[wire], caller=["Pay.", decide(approve("c1")), decide(reject("c1"))], flavour=flavour, variant=variant
    )

    assert [["c1"], ["c1"], []] == played.requests
    assert 1 == len(played.ran)
    assert "rejected" in played.told["c1"]


@pytest.mark.parametrize("gate", ["misspelt", "empty"])
@pytest.mark.parametrize("flavour", ["", "per_call"])
def test_a_gate_with_a_mistake_does_not_start(play: Play, flavour: str, gate: str) -> None:
    """The option `gate` writes the configuration wrong, and the framework refuses it."""
    played = play(caller=["Pay."], flavour=flavour, options={"gate": gate})

    assert (["ValueError"], []) == (played.outcomes, played.ran)


def test_an_answer_at_the_newest_checkpoint_is_an_answer(play: Play, flavour: str) -> None:
    """The option `pinned` hands in the checkpoint that the thread stands at anyway."""
    stored = Variant(serialize="native.sqlite", source="rebuilt")
    played = play(flavour=flavour, variant=stored, options={"pinned": True})

    assert [("pay", {"amount": 5})] == played.ran


def test_what_a_failed_turn_did_not_show_is_not_answered(play: Play) -> None:
    """The free call raises; whatever the thread lists of its sibling, nobody has seen a request."""
    broken = tool("look", raises("the site is down"), parameters={"what": "string"})
    pay = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")
    asked = two(("look", {"what": "x"}), PAYS[0])
    played = play(asked, tools=[broken, pay], caller=["Go.", let_oracle()], flavour="per_call")

    assert (["ToolRaised"], []) == (played.outcomes, played.events("caller.decide"))


def test_requests_of_a_sub_agent_stand_in_the_order_of_their_calls(play: Play) -> None:
    """They come up in any order."""
    text = """
tools:
  delegate: {parameters: {input: string}, runs: helper}
  helper/pay: {approval: always, parameters: {amount: integer}}
agents:
  helper:
    model:
      - calls: [{id: c1, tool: pay, arguments: {amount: 5}}, {id: c2, tool: pay, arguments: {amount: 6}}]
      - say: Paid.
model:
  - calls: [{id: o1, tool: delegate, arguments: {input: Pay}}]
  - say: Done.
oracles: [approve_all]
"""
    played = [play(text=text, flavour="per_call") for _ in range(5)]

    assert [["o1/c1", "o1/c2"]] * 5 == [one.requests[0] for one in played]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_the_durability_of_a_run_is_an_option(play: Play, durability: str) -> None:
    """A run that ends by itself has stored the same in each mode."""
    stored = Variant(serialize="native.sqlite", source="rebuilt")
    played = play(variant=stored, options={"durability": durability, "write_delay": 0.01})

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


@pytest.mark.parametrize("stream", [False, True])
def test_a_blocking_checkpointer_runs_every_flavour(play: Play, flavour: str, stream: bool) -> None:
    """`SqliteSaver` runs the graph by `invoke` and `stream`, whose tools block, too."""
    stored = Variant(serialize="native.sqlite", source="rebuilt", stream=stream)
    played = play(variant=stored, flavour=flavour, options={"checkpointer": "blocking", "write_delay": 0.01})

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"durability": "asynch"}, "Invalid option durability 'asynch': expected sync, async, exit"),
        ({"checkpointer": "sync"}, "Invalid option checkpointer 'sync': expected blocking"),
        ({"write_delay": "long"}, "Invalid option write_delay 'long': expected seconds, 60 at most"),
        ({"write_delay": True}, "Invalid option write_delay True: expected seconds, 60 at most"),
        ({"write_delay": 61}, "Invalid option write_delay 61: expected seconds, 60 at most"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(play: Play, options: dict[str, Any], message: str) -> None:
    """And the run is no verdict on the agent."""
    (end,) = play(options=options).events("run.end")

    assert ("broken", ["ValueError", message]) == (end["how"], end["error"])
