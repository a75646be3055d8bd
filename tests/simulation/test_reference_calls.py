"""What the reference agent does with the calls of a reply."""

from __future__ import annotations

import asyncio

import pytest

from pytest_approvals.agent_side.contract.exceptions import AsksAgain, ModelDown, ToolRaised
from pytest_approvals.agent_side.contract.types import (
    Condition,
    Finished,
    Limits,
    ModelCall,
    Parameter,
    Paused,
    ToolSpec,
)
from pytest_approvals.simulation import ReferenceAgent, ReferenceAgentOverChat
from pytest_approvals.simulation.reference.persistence import LimitReached


def kinds(bench, place=-1):
    return [item.kind for item in bench.world.inputs[place]]


def test_ungated_siblings_run_at_once_and_gated_calls_wait(paused):
    """In a reply with both, the ungated call has run when the pause comes, and the gated ones have not."""
    bench = paused()

    assert ["read(c)"] == bench.world.ran
    assert ["c1", "c2"] == [request.call_id for request in bench.pending()]


def test_the_model_gets_all_results_in_the_order_of_its_calls(paused, kit):
    """Results come in call order, each once, regardless of which ran first."""
    bench = paused()
    first, second = bench.pending()
    bench.decide(kit.answer(second), kit.answer(first, "reject", reason="keep a"))

    told = [(item.id, item.text) for item in bench.world.inputs[-1] if item.kind == "result"]
    assert [
        ("c1", "Not executed: the user rejected this call. Reason: keep a"),
        ("c2", "delete done"),
        ("c3", "read done"),
    ] == told


def test_partial_answers_run_what_was_decided_and_keep_the_rest(paused, kit):
    """An approved call runs at once, the undecided one stays pending, and the model is not asked."""
    bench = paused()
    first, second = bench.pending()
    outcome = bench.decide(kit.answer(first))

    assert Paused(requests=(second,)) == outcome
    assert ["read(c)", "delete(a)"] == bench.world.ran
    assert 1 == len(bench.world.inputs)


def test_going_on_without_an_answer_changes_nothing(paused):
    """The same requests come again, nothing runs, and the model is not asked."""
    bench = paused()
    before = bench.pending()
    outcome = bench.decide()

    assert Paused(requests=tuple(before)) == outcome
    assert (["read(c)"], 1) == (bench.world.ran, len(bench.world.inputs))


def test_calls_run_at_the_same_time(kit):
    """A call that waits for another one to start gets what it waits for."""
    bench = kit.Bench(kit.calls(kit.call("c1", "read", "a"), kit.call("c2", "read", "b")), kit.say("done"))
    started = asyncio.Event()

    async def wait():
        await started.wait()
        return "waited"

    async def start():
        started.set()
        return "started"

    bench.world.behaviours["read"] = [wait, start]

    assert Finished(output="done") == bench.send("go")
    assert ["waited", "started"] == bench.world.told()


def test_arguments_are_coerced_and_defaults_filled_before_anyone_is_asked(kit):
    """The request shows what is going to run; the model's own call stays as the model wrote it."""
    pay = ToolSpec(
        name="pay",
        approval="always",
        parameters={
            "amount": Parameter(type="integer"),
            "currency": Parameter(required=False, default="EUR"),
        },
    )
    bench = kit.Bench(kit.calls(kit.call("c1", "pay", {"amount": "5"})), kit.say("done"), tools=(pay,))
    outcome = bench.send("go")
    bench.decide(kit.answer(outcome.requests[0]))

    assert {"amount": 5, "currency": "EUR"} == outcome.requests[0].arguments
    assert ["pay(5, EUR)"] == bench.world.ran
    assert [{"amount": "5"}] == [item.arguments for item in bench.world.inputs[-1] if item.kind == "call"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("{broken", "they are not a JSON object"),
        ({}, "'path' is missing"),
        ({"path": 7}, "'path' is 7, not of type string"),
        ({"path": "a", "force": True}, "there is no parameter 'force'"),
    ],
)
def test_arguments_that_do_not_fit_are_answered_to_the_model(kit, arguments, why):
    """Nobody is asked and nothing runs; the model reads what is wrong."""
    bench = kit.Bench(kit.calls(ModelCall(id="c1", tool="delete", arguments=arguments)))
    bench.world.replies["main"].append(kit.say("sorry"))

    assert Finished(output="sorry") == bench.send("go")
    assert [f"Error: the arguments do not fit 'delete': {why}."] == bench.world.told()
    assert [] == bench.world.ran


def test_an_unknown_tool_is_answered_to_the_model(kit):
    """A call of a tool that does not exist gets an error as its result."""
    bench = kit.Bench(kit.calls(kit.call("c1", "wipe")), kit.say("sorry"))
    bench.send("go")

    assert ["Error: there is no tool 'wipe'."] == bench.world.told()


def test_a_tool_that_raises_is_told_to_the_model(kit):
    """The error's text is the result of the call."""
    bench = kit.Bench(kit.calls(kit.call("c1", "read")), kit.say("sorry"))
    bench.world.behaviours["read"] = [ToolRaised("no such file")]

    assert Finished(output="sorry") == bench.send("go")
    assert ["Error: no such file"] == bench.world.told()


def test_results_that_are_no_text_are_told_as_json(kit):
    """Any JSON value can be returned."""
    bench = kit.Bench(kit.calls(kit.call("c1", "read")), kit.say("done"))
    bench.world.behaviours["read"] = [{"lines": [1, None]}]
    bench.send("go")

    assert ['{"lines": [1, null]}'] == bench.world.told()


def test_missing_and_repeated_ids_are_made_unique_within_a_reply(kit):
    """Every call has an id of its own; an id that comes again in a later reply is kept."""
    first = kit.calls(kit.call(None, "read", "a"), kit.call("c1", "read", "b"), kit.call("c1", "read", "c"))
    bench = kit.Bench(first, kit.calls(kit.call("c1", "read", "d")), kit.say("done"))
    bench.send("go")

    ids = [item.id for item in bench.world.inputs[-1] if item.kind == "result"]
    assert ["call-1", "c1", "c1-2", "c1"] == ids


def test_a_tool_may_ask_again_in_its_middle(kit):
    """The call gets a second request, and its body is entered again after the second approval."""
    bench = kit.Bench(kit.calls(kit.call("c1", "delete")), kit.say("done"))
    bench.world.behaviours["delete"] = [AsksAgain("really?"), "deleted"]
    first = bench.send("go").requests[0]
    second = bench.decide(kit.answer(first)).requests[0]
    bench.decide(kit.answer(second))

    assert ("req-1", "req-2", "c1") == (first.id[:5], second.id[:5], second.call_id)
    assert ["delete(a)", "delete(a)"] == bench.world.ran
    assert ["deleted"] == bench.world.told()


# --- policies ---


def conditional(**condition):
    return ToolSpec(name="pay", parameters={"amount": Parameter(type="integer")}, approval=Condition(**condition))


def pay(kit, amount=5):
    return kit.calls(kit.call("c1", "pay", {"amount": amount}))


def test_a_condition_decides_who_is_asked(kit):
    """Below the threshold the call runs, above it the call waits."""
    tool = conditional(argument="amount", greater_than=10)
    bench = kit.Bench(pay(kit, 5), pay(kit, 50), kit.say("done"), tools=(tool,))
    outcome = bench.send("go")

    assert ["pay(5)"] == bench.world.ran
    assert [{"amount": 50}] == [request.arguments for request in outcome.requests]


def test_a_condition_that_raises_asks(kit):
    """A policy that cannot answer does not open the gate."""
    bench = kit.Bench(pay(kit), tools=(conditional(raises="the policy is down"),))

    assert 1 == len(bench.send("go").requests)


def test_a_condition_is_asked_once_a_call(kit):
    """What the condition would say later neither stops an approved call nor releases a waiting one."""
    bench = kit.Bench(pay(kit), kit.say("done"), tools=(conditional(answers=(True, False)),))
    outcome = bench.send("go")
    bench.decide()
    bench.decide(kit.answer(outcome.requests[0]))

    assert 1 == len(bench.world.gates)
    assert ["pay(5)"] == bench.world.ran


def test_a_slow_condition_keeps_nobody_from_running(kit):
    """While the policy thinks about one call, its sibling runs."""
    slow = conditional(argument="amount", greater_than=1, waits_for="signal")
    reply = kit.calls(kit.call("c1", "pay", {"amount": 5}), kit.call("c2", "read", "b"))
    bench = kit.Bench(reply, tools=(slow, kit.READ))

    async def open_the_gate():
        bench.world.gates_may_open.set()
        return "text"

    bench.world.behaviours["read"] = [open_the_gate]

    assert ["c1"] == [request.call_id for request in bench.send("go").requests]


# --- failures and limits ---


def test_a_failing_model_loses_nothing(paused, kit):
    """The approved call is not run again on the retry, and the model gets the same input again."""
    bench = paused(ModelDown(500), kit.say("done"))
    decisions = [kit.answer(request) for request in bench.pending()]
    with pytest.raises(ModelDown):
        bench.decide(*decisions)
    ran = list(bench.world.ran)

    assert Finished(output="done") == bench.decide()
    assert ran == bench.world.ran
    assert bench.world.inputs[-1] == bench.world.inputs[-2]


def test_a_failing_model_keeps_the_message(kit):
    """The message that the model never answered is in the next input, once."""
    bench = kit.Bench(ModelDown(0), kit.say("hello"))
    with pytest.raises(ModelDown):
        bench.send("go")
    bench.decide()

    assert ["go"] == [item.text for item in bench.world.inputs[-1]]


def test_a_limit_of_replies_stops_the_turn_and_the_next_one_goes_on(kit):
    """The turn fails; the result of the call that ran is kept."""
    bench = kit.Bench(kit.calls(kit.call("c1", "read")), kit.say("done"), limits=Limits(model_replies=1))
    with pytest.raises(LimitReached, match="the limit of 1 model replies in one turn is reached"):
        bench.send("go")

    assert Finished(output="done") == bench.decide()
    assert ["read(a)"] == bench.world.ran


def test_a_limit_of_calls_runs_as_many_and_keeps_the_rest(kit):
    """Every turn runs what its limit allows; no call runs twice and none is lost."""
    reply = kit.calls(kit.call("c1", "read", "a"), kit.call("c2", "read", "b"))
    bench = kit.Bench(reply, kit.say("done"), limits=Limits(tool_calls=1))
    with pytest.raises(LimitReached):
        bench.send("go")

    assert Finished(output="done") == bench.decide()
    assert ["read(a)", "read(b)"] == bench.world.ran


# --- hosted calls ---


def test_a_hosted_call_is_answered_to_the_provider(kit):
    """The decision goes into the next input, and what the provider reports becomes part of the history."""
    report = kit.HostedResult(call_id="h1", tool="search", server="docs", arguments={"q": "x"}, output="found")
    first = kit.calls(kit.call("h1", "search", {"q": "x"}, kind="hosted_mcp", server="docs"))
    bench = kit.Bench(first, kit.say("done", hosted=(report,)), kit.say("bye"), tools=(kit.SEARCH,))
    outcome = bench.send("go")
    bench.decide(kit.answer(outcome.requests[0]))
    bench.send("thanks")

    assert ("hosted_mcp", "docs") == (outcome.requests[0].kind, outcome.requests[0].server)
    assert ["user", "approval_request", "approval_response"] == kinds(bench, 1)
    assert ["user", "approval_request", "approval_response", "hosted_result", "say", "user"] == kinds(bench)
    assert [] == bench.world.ran


def test_a_rejected_hosted_call_carries_its_reason_to_the_provider(kit):
    """The provider reads that it is not approved, and why."""
    first = kit.calls(kit.call("h1", "search", {"q": "x"}, kind="hosted_mcp", server="docs"))
    bench = kit.Bench(first, kit.say("done"), tools=(kit.SEARCH,))
    outcome = bench.send("go")
    bench.decide(kit.answer(outcome.requests[0], "reject", reason="private"))

    response = bench.world.inputs[-1][-1]
    assert (False, "Not executed: the user rejected this call. Reason: private") == (response.approved, response.text)


def test_results_stand_next_to_their_calls_in_a_mixed_reply(kit):
    """Decisions about hosted calls come after the results of the others."""
    first = kit.calls(kit.call("h1", "search", {}, kind="hosted_mcp", server="docs"), kit.call("c1", "read"))
    bench = kit.Bench(first, kit.say("done"), tools=(kit.SEARCH, kit.READ))
    outcome = bench.send("go")
    bench.decide(kit.answer(outcome.requests[0]))

    assert ["user", "approval_request", "call", "result", "approval_response"] == kinds(bench)


def test_tools_of_one_name_on_two_servers_are_two_tools(kit):
    """Each has its own gate, and only the server tells them apart."""
    docs = ToolSpec(name="look", kind="mcp", server="docs")
    bank = ToolSpec(name="look", kind="mcp", server="bank", approval="always")
    reply = kit.calls(
        kit.call("c1", "look", "a", kind="mcp", server="docs"), kit.call("c2", "look", "b", kind="mcp", server="bank")
    )
    bench = kit.Bench(reply, kit.say("done"), tools=(docs, bank))

    assert ["bank"] == [request.server for request in bench.send("go").requests]
    assert ["look(a)"] == bench.world.ran


def test_over_chat_only_hosted_calls_are_missing():
    """The flavour claims everything else."""
    assert ReferenceAgent.capabilities - ReferenceAgentOverChat.capabilities == {"hosted_mcp"}
    assert ("chat", "responses") == (ReferenceAgentOverChat.wire_rules, ReferenceAgent.wire_rules)


def test_a_structured_answer_beside_a_gated_call_is_no_text(kit):
    """The pause says only what is text; the answer counts when nothing waits."""
    answers = {"answer": {"total": Parameter(type="integer")}}
    bench = kit.Bench(kit.calls(kit.call("c1", "delete"), answer={"total": 5}), **answers)

    outcome = bench.send("go")

    assert isinstance(outcome, Paused)
    assert outcome.text is None
