"""What the reference agent does with messages and decisions."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from pytest_approvals.agent_side.contract.exceptions import AsksAgain
from pytest_approvals.agent_side.contract.types import Decision, Finished, ToolSpec
from pytest_approvals.simulation.reference.feedback import INTERRUPTED
from pytest_approvals.simulation.reference.persistence import (
    AlreadySettled,
    Busy,
    Contradiction,
    MalformedDecision,
    NothingToGoOn,
    UnknownRequest,
)


@pytest.mark.parametrize(
    ("decision", "refusal", "text"),
    [
        ({"verdict": "raw", "raw": "yes"}, MalformedDecision, "invalid decision: the verdict is 'yes'"),
        ({"verdict": "raw", "raw": True}, MalformedDecision, "invalid decision: the verdict is True"),
        ({"verdict": "raw", "raw": None}, MalformedDecision, "invalid decision: the verdict is None"),
        ({"verdict": "raw", "raw": []}, MalformedDecision, r"invalid decision: the verdict is \[\]"),
        ({"verdict": "edit", "arguments": {}}, MalformedDecision, "do not fit 'delete': 'path' is missing"),
        ({"verdict": "edit", "arguments": [1]}, MalformedDecision, r"the changed arguments are \[1\]"),
        ({"verdict": "edit", "tool": "wipe"}, MalformedDecision, "the call cannot be changed to 'wipe'"),
    ],
)
def test_what_is_no_decision_is_refused_and_changes_nothing(paused, kit, decision, refusal, text):
    """Nothing runs, the requests stay open, and the right answer works afterwards."""
    bench = paused()
    before = bench.pending()
    with pytest.raises(refusal, match=text):
        bench.decide(kit.answer(before[1]), kit.answer(before[0], **decision))

    assert before == bench.pending()
    assert ["read(c)"] == bench.world.ran
    assert Finished(output="done") == bench.decide(*(kit.answer(request) for request in before))


@pytest.mark.parametrize(
    ("address", "refusal"), [(None, MalformedDecision), (7, MalformedDecision), ("", UnknownRequest)]
)
def test_what_is_no_request_is_refused(paused, address, refusal):
    """A decision must say what it is about."""
    bench = paused()
    with pytest.raises(refusal):
        bench.decide(Decision(request=None, verdict="approve", address=address))


def test_a_decision_about_an_unknown_request_is_refused(paused, kit):
    """A request that was never made cannot be approved, nor can a call be approved by its call id."""
    bench = paused()
    for unknown in ("req-99", "c1", "req-0"):
        with pytest.raises(UnknownRequest, match=f"unknown approval request '{unknown}'"):
            bench.decide(kit.answer(unknown))


def test_two_decisions_about_one_request_are_refused_together(paused, kit):
    """Whether they contradict or repeat each other, neither counts."""
    bench = paused()
    request = bench.pending()[0]
    for second in ("reject", "approve"):
        with pytest.raises(Contradiction):
            bench.decide(kit.answer(request), kit.answer(request, second))

    assert ["read(c)"] == bench.world.ran


@pytest.mark.parametrize("verdict", ["approve", "reject"])
def test_a_settled_request_stays_settled(paused, kit, verdict):
    """A repeated and a late decision are refused, also when they come together with a good one."""
    bench = paused()
    first, second = bench.pending()
    bench.decide(kit.answer(first))
    with pytest.raises(AlreadySettled):
        bench.decide(kit.answer(first, verdict), kit.answer(second))
    bench.decide(kit.answer(second))
    with pytest.raises(AlreadySettled, match=r"approval request 'req-2-\d{6}' is not open any more"):
        bench.decide(kit.answer(second, verdict))

    assert ["read(c)", "delete(a)", "delete(b)"] == bench.world.ran


def test_what_runs_is_what_was_asked_and_not_what_the_answer_holds(paused, kit):
    """A copy of the request with other arguments and another tool changes nothing."""
    bench = paused()
    first, second = bench.pending()
    first.arguments["path"] = "evil"
    bench.decide(kit.answer(replace(first, tool="read", arguments={"path": "evil"})), kit.answer(second, "reject"))

    assert ["read(c)", "delete(a)"] == bench.world.ran


def test_a_turn_with_nothing_to_do_is_refused(kit):
    """After the end there is nothing to continue with."""
    bench = kit.Bench(kit.say("hello"))
    bench.send("go")
    with pytest.raises(NothingToGoOn):
        bench.decide()


def test_a_second_turn_at_the_same_time_is_refused(paused, kit):
    """While an approved tool runs, the session takes nothing else."""
    bench = paused()
    first, second = bench.pending()
    refused = []

    async def answer_meanwhile():
        try:
            await bench.agent.turn(None, [kit.answer(first)], stream=False)
        except Busy as error:
            refused.append(str(error))
        return "deleted"

    bench.world.behaviours["delete"] = [answer_meanwhile]
    bench.decide(kit.answer(first), kit.answer(second))

    assert ["a turn is running in this session; wait for its end"] == refused
    assert ["read(c)", "delete(a)", "delete(b)"] == bench.world.ran


# --- edit ---


def test_an_edit_runs_what_the_human_wrote_and_tells_the_model(paused, kit):
    """The model reads what ran together with the result; its own call stays in the history."""
    bench = paused()
    first, second = bench.pending()
    bench.decide(kit.answer(first, "edit", arguments={"path": "z"}), kit.answer(second, "reject"))

    assert "delete(z)" in bench.world.ran
    assert 'The user changed this call to delete({"path": "z"}). Its result:\ndelete done' == bench.world.told()[0]
    assert {"path": "a"} == next(item.arguments for item in bench.world.inputs[-1] if item.id == "c1")


def test_an_edit_may_name_another_tool(paused, kit):
    """The other tool runs in the place of the one that was asked for."""
    bench = paused()
    first, second = bench.pending()
    bench.decide(
        kit.answer(first, "edit", tool="read", arguments={"path": "z"}), kit.answer(second, "reject", reason="no")
    )

    assert ["read(c)", "read(z)"] == bench.world.ran


# --- standing decisions ---


@pytest.mark.parametrize("order", [1, -1])
def test_an_explicit_decision_wins_over_a_standing_one(paused, kit, order):
    """`always` about one call does not release the call that was rejected, whichever comes first."""
    bench = paused()
    first, second = bench.pending()
    bench.decide(*[kit.answer(first, "always"), kit.answer(second, "reject")][::order])

    assert ["read(c)", "delete(a)"] == bench.world.ran


@pytest.mark.parametrize(("verdict", "ran"), [("always", ["delete(a)", "delete(b)", "delete(z)"]), ("never", [])])
def test_a_standing_decision_is_about_pending_and_further_calls(paused, kit, verdict, ran):
    """It settles the other pending calls of its tool and every later one."""
    bench = paused(kit.calls(kit.call("c9", "delete", "z")), kit.say("done"))

    assert Finished(output="done") == bench.decide(kit.answer(bench.pending()[0], verdict))
    assert ran == [name for name in bench.world.ran if name.startswith("delete")]


def test_a_standing_decision_does_not_reach_another_server(kit):
    """A tool of the same name on another server is asked about."""
    bank = ToolSpec(name="lookup", kind="mcp", server="bank", approval="always")
    first = kit.calls(kit.call("h1", "search", {}, kind="hosted_mcp", server="docs"))
    second = kit.calls(kit.call("h2", "search", {}, kind="hosted_mcp", server="bank"))
    bench = kit.Bench(first, second, tools=(kit.SEARCH, bank))
    outcome = bench.decide(kit.answer(bench.send("go").requests[0], "always"))

    assert ["bank"] == [request.server for request in outcome.requests]


# --- staging ---


def test_staged_decisions_take_effect_with_the_next_turn(paused, kit):
    """Until then nothing runs, and nobody needs to be asked about them."""
    bench = paused()
    first, second = bench.pending()
    asyncio.run(bench.agent.stage([kit.answer(first), kit.answer(second, "reject", reason="keep b")]))

    assert ([], ["read(c)"]) == (list(bench.pending()), bench.world.ran)
    assert Finished(output="done") == bench.decide()
    assert ["read(c)", "delete(a)"] == bench.world.ran


def test_the_last_decision_before_submission_stands(paused, kit):
    """A staged decision can be replaced, by staging or by the turn itself."""
    bench = paused()
    first, second = bench.pending()
    asyncio.run(bench.agent.stage([kit.answer(first), kit.answer(second)]))
    asyncio.run(bench.agent.stage([kit.answer(first, "reject")]))
    bench.decide(kit.answer(second, "reject"))

    assert ["read(c)"] == bench.world.ran


# --- messages and giving up ---


def test_a_new_message_closes_what_is_pending(paused, kit):
    """The model is told, then reads the message; a decision that comes later is refused."""
    bench = paused()
    first, _ = bench.pending()

    assert Finished(output="done") == bench.send("never mind")
    superseded = "Not executed: the user sent a new message instead of approving this call."
    assert [superseded, superseded, "read done"] == bench.world.told()
    assert ("user", "never mind") == (bench.world.inputs[-1][-1].kind, bench.world.inputs[-1][-1].text)
    with pytest.raises(AlreadySettled):
        bench.decide(kit.answer(first))


def test_answers_count_before_the_message_that_comes_with_them(paused, kit):
    """Approved calls run, others are closed, and the message follows the results."""
    bench = paused()
    bench.send("and hurry", kit.answer(bench.pending()[0]))

    assert ["read(c)", "delete(a)"] == bench.world.ran
    assert ["result", "result", "result", "user"] == [item.kind for item in bench.world.inputs[-1]][-4:]


def test_cancelled_requests_are_told_with_the_next_message(paused, kit):
    """Nothing is pending after giving up, nothing runs, and a later decision is refused."""
    bench = paused()
    first, _ = bench.pending()
    asyncio.run(bench.agent.cancel())
    with pytest.raises(AlreadySettled):
        bench.decide(kit.answer(first))
    bench.send("what now?")

    assert ([], ["read(c)"]) == (list(bench.pending()), bench.world.ran)
    assert 2 * ["Not executed: the user cancelled this call."] == bench.world.told()[:2]


def test_a_message_waits_while_a_tool_asks_again(kit):
    """The answers came first: their calls are finished before the model reads the message, however long that takes."""
    bench = kit.Bench(kit.calls(kit.call("c1", "delete")), kit.say("done"))
    bench.world.behaviours["delete"] = [AsksAgain("really?"), "deleted"]
    first = bench.send("go").requests[0]
    second = bench.send("and hurry", kit.answer(first)).requests[0]

    assert 1 == len(bench.world.inputs)
    assert Finished(output="done") == bench.decide(kit.answer(second))
    assert ["user", "call", "result", "user"] == [item.kind for item in bench.world.inputs[-1]]


def test_a_standing_decision_does_not_answer_a_question_in_the_middle_of_a_tool(kit):
    """`always` is about calls; what a tool asks while it runs is asked."""
    bench = kit.Bench(kit.calls(kit.call("c1", "delete")), kit.say("done"))
    bench.world.behaviours["delete"] = [AsksAgain("really?"), "deleted"]
    outcome = bench.decide(kit.answer(bench.send("go").requests[0], "always"))

    assert ["c1"] == [request.call_id for request in outcome.requests]


def test_a_turn_that_is_cancelled_from_outside_leaves_the_session_usable(paused, kit):
    """The approved call may have had effects, so it does not run again, and the model is told; nothing else is lost."""
    bench = paused()
    first, second = bench.pending()

    async def cancelled_in_the_tool():
        started = asyncio.Event()

        async def wait():
            started.set()
            await asyncio.Event().wait()

        bench.world.behaviours["delete"] = [wait]
        turn = asyncio.create_task(bench.agent.turn(None, [kit.answer(first)], stream=False))
        await started.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn

    asyncio.run(cancelled_in_the_tool())

    assert [second] == list(bench.pending())
    assert Finished(output="done") == bench.decide(kit.answer(second, "reject"))
    assert [INTERRUPTED, "Not executed: the user rejected this call."] == bench.world.told()[:2]
