"""How turns end: paused, finished, failed, and what can be done after that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pytest_approvals import approve, calls, decide, edit, fails, go_on, reject, returns, say, tool
from pytest_approvals.agent_side.contract import Limits
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]
PAYS = ("pay", {"amount": 5}), ("pay", {"amount": 6})


def two(first: tuple[str, Any], second: tuple[str, Any], **more: Any) -> Any:
    """One reply with two calls, c1 and c2."""
    return calls(*calls(first[0], **first[1]).calls, *calls(second[0], **second[1]).calls, **more)


def test_an_approved_call_runs_once_and_is_told(play: Play, variant: Variant, flavour: str) -> None:
    """In every mode the call waits, runs after the approval, and the model reads its result."""
    played = play(variant=variant, flavour=flavour)

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


def test_a_rejected_call_does_not_run(play: Play, flavour: str) -> None:
    """The model is told so in every flavour."""
    played = play(caller=["Pay.", decide(reject("c1", "too much"))], flavour=flavour)

    assert ([], True) == (played.ran, played.told["c1"].startswith("This tool call is rejected."[:-1]))


def test_a_tool_that_asks_reads_the_payload(play: Play) -> None:
    """The reason reaches the model, and other arguments reach the body."""
    rejected = play(caller=["Pay.", decide(reject("c1", "too much"))], flavour="dynamic")
    edited = play(caller=["Pay.", decide(edit("c1", {"amount": 1}))], flavour="dynamic")

    assert "This tool call is rejected: too much" == rejected.told["c1"]
    assert [("pay", {"amount": 1})] == edited.ran


def test_the_model_is_asked_before_all_have_answered(play: Play) -> None:
    """It is told that the other call requires a confirmation; the request stays open, and is answered later."""
    played = play(two(*PAYS), say("One."), say("Two."), caller=["Go.", decide(approve("c2")), decide(approve("c1"))])

    assert [["c1", "c2"], ["c1"], []] == played.requests
    assert "result c1 This tool call requires confirmation, please approve or reject." in played.inputs[1]
    assert {"c1": "paid 5", "c2": "paid 6"} == played.told


def test_a_resumable_app_waits_for_all_answers(play: Play) -> None:
    """The model is asked once, with both results."""
    played = play(
        two(*PAYS),
        say("Done."),
        caller=["Go.", decide(approve("c2")), decide(approve("c1"))],
        flavour="resumable",
    )

    assert [["c1", "c2"], ["c1"], []] == played.requests
    assert 2 == len(played.inputs)


def test_a_free_sibling_runs_at_once(play: Play, flavour: str) -> None:
    """Its result is kept, and sent together with the other one."""
    played = play(two(PAYS[0], ("look", {"what": "x"})), say("Done."), caller=["Go.", decide(approve("c1"))])

    assert ["look", "pay"] == [name for name, _ in played.ran]
    assert {"c1": "paid 5", "c2": "saw x"} == played.told


def test_a_resumable_app_goes_on_where_its_model_failed(play: Play) -> None:
    """The invocation is resumed without a message, and the tool does not run again."""
    played = play(
        calls("pay", amount=5),
        fails(500),
        say("Done."),
        caller=["Pay.", decide(approve("c1")), go_on()],
        flavour="resumable",
    )

    assert ["paused", "ModelDown", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


def test_the_replies_of_the_model_are_limited(play: Play) -> None:
    """`max_llm_calls` fails the turn."""
    limit = Limits(model_replies=1)
    played = play(calls("look", what="a"), say("Done."), caller=["Look."], limits=limit)

    assert ["LlmCallsLimitExceededError"] == played.outcomes


def test_a_stream_shows_calls_requests_results_and_text(play: Play, flavour: str) -> None:
    """What a consumer sees is told in the order in which it is shown; what stands in for a result is none."""
    played = play(flavour=flavour, variant=Variant(stream=True))
    kinds = [event["what"] for event in played.shown]

    assert ["call", "request", "end", "result", "text", "end"] == kinds


def test_a_reply_with_nothing_in_it_fails_the_turn(play: Play) -> None:
    """The framework ends the run with an error event, which a person sees."""
    played = play(say(""), caller=["Hello."])

    assert ["RunFailed"] == played.outcomes


def test_a_call_without_an_id_gets_its_own_result(play: Play) -> None:
    """The framework makes ids up and takes them out again; results are told by the tool and the order."""
    first, second = (calls("look", what=what).calls[0] for what in ("a", "b"))
    nameless = calls(replace(first, id=None, label="c1"), replace(second, id=None, label="c2"))
    played = play(nameless, say("Done."), caller=["Look."])

    assert {"unnamed-1": "saw a", "unnamed-2": "saw b"} == played.told


def test_tools_of_a_server_are_gated_each_by_its_own_policy(play: Play) -> None:
    """One is asked about, the other runs at once; the server is told no ids."""
    drop = tool("drop", returns("dropped"), parameters={"table": "string"}, approval="always", kind="mcp", server="db")
    show = tool("show", returns("shown"), parameters={"table": "string"}, kind="mcp", server="db")
    played = play(
        two(("drop", {"table": "a"}), ("show", {"table": "a"})),
        say("Done."),
        tools=[drop, show],
        caller=["Go.", decide(approve("c1"))],
    )

    assert ["show", "drop"] == [name for name, _ in played.ran]
    assert [["c1"], []] == played.requests
