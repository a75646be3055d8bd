"""What the reference agent keeps between turns, and the ways it is kept."""

from __future__ import annotations

import asyncio
import json

import pytest

from pytest_approvals.agent_side.contract.types import Finished, Parameter, ToolSpec
from pytest_approvals.simulation import ReferenceAgent
from pytest_approvals.simulation.reference.designs.telling import ResultsInCompletionOrder
from pytest_approvals.simulation.reference.persistence import AlreadySettled, Busy


def restore_agent(bench, *parts, blueprint=None):
    """A new agent in the same world that loaded *parts*."""
    agent = ReferenceAgent(bench.world, blueprint or bench.blueprint)
    asyncio.run(agent.load(parts))
    return agent


def dump(agent):
    return asyncio.run(agent.dump())


def test_a_pause_survives_json(paused, kit):
    """The same requests are open, and the answers to the old objects count."""
    bench = paused(serialize="json")
    held = bench.pending()
    bench.restart()

    assert held == bench.pending()
    assert Finished(output="done") == bench.decide(*(kit.answer(request) for request in held))


def test_a_hosted_call_is_restored_wherever_it_stands(kit):
    """An agent that keeps its calls in the order in which they ended is asked about the same call after a restore."""
    tools = (kit.SEARCH, ToolSpec(name="look", parameters={"path": Parameter()}))
    first = kit.calls(
        kit.call("h1", "search", {"q": "x"}, kind="hosted_mcp", server="docs"), kit.call("c2", "look", "a")
    )
    bench = kit.Bench(first, kit.say("done"), tools=tools)
    bench.agent = ResultsInCompletionOrder(bench.world, bench.blueprint)
    bench.send("go")
    restored = restore_agent(bench, dump(bench.agent))

    asked = [(request.tool, request.arguments) for request in asyncio.run(restored.pending())]
    assert [("search", {"q": "x"})] == asked


def test_hosted_calls_of_one_id_stay_apart(kit):
    """Two requests of a provider under one id are restored each with its own arguments."""
    first = kit.calls(
        kit.call("h1", "search", {"q": "x"}, kind="hosted_mcp", server="docs"),
        kit.call("h1", "search", {"q": "y"}, kind="hosted_mcp", server="docs"),
    )
    bench = kit.Bench(first, kit.say("done"), tools=(kit.SEARCH,))
    bench.send("go")
    restored = restore_agent(bench, dump(bench.agent))

    assert [{"q": "x"}, {"q": "y"}] == [request.arguments for request in asyncio.run(restored.pending())]


def test_a_dump_loaded_and_dumped_is_the_same(paused):
    """The round trip is stable, and the dump is plain JSON."""
    bench = paused(serialize="json")
    saved = dump(bench.agent)

    assert saved == dump(restore_agent(bench, saved))
    assert json.loads(saved)["asked"] == 2


def test_staged_and_standing_decisions_survive_json(paused, kit):
    """A staged `always` counts after the restart, for the pending calls and the further ones."""
    bench = paused(kit.calls(kit.call("c7", "delete", "z")), kit.say("done"), serialize="json")
    asyncio.run(bench.agent.stage([kit.answer(bench.pending()[0], "always")]))
    bench.restart()
    bench.decide()

    assert ["read(c)", "delete(a)", "delete(b)", "delete(z)"] == bench.world.ran


def test_a_copy_shares_nothing(paused, kit):
    """What happens to the copy is not seen by the original."""
    bench = paused(serialize="copy")
    copy = ReferenceAgent(bench.world, bench.blueprint)
    asyncio.run(copy.copy_from(bench.agent))
    asyncio.run(copy.turn(None, [kit.answer(request, "reject") for request in bench.pending()], stream=False))

    assert 2 == len(bench.pending())


def test_additions_fold_into_the_whole(kit):
    """With history `append` each dump holds what the last turn added, and all of them make the state."""
    bench = kit.Bench(
        kit.calls(kit.call("c1", "delete", "a")), kit.say("one"), kit.say("two"), serialize="json", history="append"
    )
    bench.send("go")
    parts = [dump(bench.agent)]
    bench.decide(kit.answer(bench.pending()[0]))
    parts.append(dump(bench.agent))
    bench.send("more")
    parts += [dump(bench.agent), dump(bench.agent)]

    assert [2, 2, 2, 2] == [len(json.loads(part)["items"]) for part in parts]
    assert bench.agent.state == restore_agent(bench, *parts).state


def test_additions_fold_after_trimming(kit):
    """What was trimmed between two dumps is gone from the folded state, too."""
    bench = kit.Bench(*(kit.say(str(n)) for n in range(4)), serialize="json", history="append")
    parts = []
    for text in ("a", "b", "c"):
        bench.send(text)
        parts.append(dump(bench.agent))
    asyncio.run(bench.agent.trim(2))
    bench.send("d")
    parts.append(dump(bench.agent))

    assert ["c", "2", "d", "3"] == [item.text for item in restore_agent(bench, *parts).state.main.items]


def test_an_agent_that_took_up_additions_adds_to_them(kit):
    """The next dump continues the list that was loaded."""
    bench = kit.Bench(kit.say("one"), kit.say("two"), serialize="json", history="append")
    bench.send("a")
    first = dump(bench.agent)
    again = restore_agent(bench, first)
    asyncio.run(again.turn("b", (), stream=False))

    assert again.state == restore_agent(bench, first, dump(again)).state


def test_trimming_keeps_calls_with_their_results_and_what_is_pending(paused, kit):
    """The history is cut before a message of the user only."""
    bench = paused(kit.say("one"), kit.calls(kit.call("c9", "delete", "z")), kit.say("end"))
    bench.decide(*(kit.answer(request) for request in bench.pending()))
    bench.send("next")
    asyncio.run(bench.agent.trim(1))
    bench.decide(kit.answer(bench.pending()[0]))

    assert ["user", "call", "result"] == [item.kind for item in bench.world.inputs[-1]]


# --- changed tools ---


def test_an_approved_call_of_a_tool_that_is_gone_is_answered_to_the_model(paused, kit):
    """Nothing runs, and nothing is left pending."""
    bench = paused(serialize="json")
    bench.restart(tools=(kit.READ,))
    bench.decide(*(kit.answer(request) for request in bench.pending()))

    assert ["read(c)"] == bench.world.ran
    assert 2 * ["Error: there is no tool 'delete'."] == bench.world.told()[:2]


def test_a_new_tool_can_be_called_after_a_restart(paused, kit):
    """The model is offered the tools that are there now."""
    bench = paused(kit.calls(kit.call("n1", "new")), kit.say("done"), serialize="json")
    bench.restart(tools=(*bench.blueprint.tools, ToolSpec(name="new")))
    bench.decide(*(kit.answer(request, "reject") for request in bench.pending()))

    assert ["read(c)", "new(a)"] == bench.world.ran


# --- the store ---


@pytest.fixture
def stored(paused, tmp_path):
    bench = paused(serialize="native.sqlite", directory=str(tmp_path))
    yield bench
    asyncio.run(bench.agent.close())


@pytest.fixture
def second(stored):
    agent = restore_agent(stored, dump(stored.agent))
    yield agent
    asyncio.run(agent.close())


def test_the_store_keeps_a_session_under_its_name(stored, second):
    """The dump is a reference that leads to the session."""
    assert "session-1" == dump(stored.agent) == dump(second)
    assert stored.pending() == asyncio.run(second.pending())


def test_a_decision_settles_once_for_all_copies(stored, second, kit):
    """A copy that took the reference up before sees what was decided since, and cannot decide it again."""
    first, _ = stored.pending()
    stored.decide(kit.answer(first))
    with pytest.raises(AlreadySettled):
        asyncio.run(second.turn(None, [kit.answer(first)], stream=False))

    assert ["read(c)", "delete(a)"] == stored.world.ran


def test_two_copies_cannot_take_a_turn_at_the_same_time(stored, second, kit):
    """The second one is refused while a tool runs, and works afterwards."""
    first, other = stored.pending()
    refused = []

    async def answer_meanwhile():
        try:
            await second.turn(None, [kit.answer(first)], stream=False)
        except Busy as error:
            refused.append(error)
        return "deleted"

    stored.world.behaviours["delete"] = [answer_meanwhile]
    stored.decide(kit.answer(first))

    assert 1 == len(refused)
    assert Finished(output="done") == asyncio.run(second.turn(None, [kit.answer(other)], stream=False))
    assert ["read(c)", "delete(a)", "delete(b)"] == stored.world.ran


def test_a_decision_is_in_the_store_before_anything_runs(stored, second, kit):
    """While the tool runs, the request is settled for every reader."""
    first, other = stored.pending()
    seen = []

    async def look():
        seen.extend(await second.pending())
        return "deleted"

    stored.world.behaviours["delete"] = [look]
    stored.decide(kit.answer(first))

    assert [other] == seen


def test_sessions_in_one_store_are_apart(stored):
    """A second session has a name and a state of its own."""
    other = asyncio.run(stored.agent.another_session(stored.world))

    assert "session-2" == dump(other)
    assert () == asyncio.run(other.pending())
    asyncio.run(other.close())


def test_an_unknown_reference_is_refused(stored):
    """A session that is not there is an error, not a new session."""
    agent = ReferenceAgent(stored.world, stored.blueprint)
    with pytest.raises(KeyError):
        asyncio.run(agent.load(["session-9"]))
    asyncio.run(agent.close())
