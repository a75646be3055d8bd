"""What the agents of Mastra do whose runs are durable workflows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import approve, call, calls, decide, leave, reject, returns, say, send, tool
from pytest_approvals.scenario.model import Variant

PAY = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")
DROP = tool("drop", returns("dropped {name}"), parameters={"name": "string"}, approval="always")
BOTH = calls(call("pay", amount=1), call("pay", amount=2))
AGENT = "mastra.durable"
STORED = Variant(serialize="native.libsql", resume="fresh", source="restored")
VARIANTS = [Variant(), Variant(stream=True), STORED]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.id)
def test_an_approved_call_runs(play_elsewhere: Callable[..., Any], variant: Variant) -> None:
    """It runs once, also in a process that knows the run from the storage only; the model is told the result."""
    played = play_elsewhere(AGENT, calls("pay", amount=5), say("Done."), tools=[PAY], variant=variant)

    assert (["paused", "finished"], [("pay", {"amount": 5})]) == (played.outcomes, played.ran)
    assert {"c1": "paid 5"} == played.told


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.id)
def test_a_turn_ends_with_what_the_storage_has(play_elsewhere: Callable[..., Any], variant: Variant) -> None:
    """The run's result comes before the storage has it: a turn shows the next call, and not the one just answered."""
    story = [send("Pay both"), decide(reject("c1", "too much")), decide(approve("c2"))]
    played = play_elsewhere(AGENT, BOTH, say("Done."), tools=[PAY], caller=story, variant=variant)

    assert ([["c1"], ["c2"], []], [("pay", {"amount": 2})]) == (played.requests, played.ran)


def test_a_restored_request_has_the_arguments_that_were_shown(play_elsewhere: Callable[..., Any]) -> None:
    """The storage lists none for a durable run, so that the caller keeps them, by run: ids of calls come again."""
    story = [send("Pay 5"), send("Pay 6"), decide(reject("c1#2")), leave()]
    model = [calls("pay", amount=5), calls(call("pay", id="c1", label="c1#2", repeats=True, amount=6)), say("No.")]
    played = play_elsewhere(AGENT, *model, tools=[PAY], caller=story, variant=STORED)
    *_, restored = played.events("store.restore")

    assert [5, 6] == [request["arguments"]["amount"] for request in restored["pending"]]


def test_an_answer_names_its_run_only(play_elsewhere: Callable[..., Any]) -> None:
    """Mastra does not compare the call: an approval that comes twice runs the next call."""
    story = [send("Pay, then drop"), decide(approve("c1")), decide(approve("c1"))]
    model = [calls("pay", amount=5), calls("drop", name="all"), say("Done.")]
    played = play_elsewhere(AGENT, *model, tools=[PAY, DROP], caller=story)

    assert ["pay", "drop"] == [name for name, _ in played.ran]
