"""The contract over the host: the same agent, in a process of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from toy_agent import Toy
from toy_world import BLUEPRINT, ToyWorld, pays, says

from pytest_approvals.agent_side.contract import (
    AsksAgain,
    ConditionRaised,
    Decision,
    Finished,
    Item,
    ModelDown,
    ModelRefused,
    Paused,
    Request,
    ScriptExhausted,
    ToolRaised,
    Unsupported,
)
from pytest_approvals.agent_side.contract.metadata import get_facts
from pytest_approvals.processes.agent_process import AgentProcess
from pytest_approvals.processes.remote_agents import RemoteAgent

pytestmark = pytest.mark.asyncio


def approve(*requests: Request) -> list[Decision]:
    return [Decision(request=request, verdict="approve") for request in requests]


async def test_a_process_says_what_its_agent_is(process: AgentProcess) -> None:
    """The facts that it gives are those that the class gives here."""
    assert get_facts(Toy) == process.facts
    assert process.facts.version is not None


async def test_a_gated_call_pauses_and_runs_once_it_is_approved(process: AgentProcess) -> None:
    """Model, tools and requests are the world's here and the agent's there."""
    world = ToyWorld(pays(5, 6), says("Done."))
    agent = await RemoteAgent.build(process, world, BLUEPRINT)
    paused = await agent.turn("Pay.", (), stream=False)

    assert [
        Request(id="c1", call_id="c1", tool="pay", arguments={"amount": 5}),
        Request(id="c2", call_id="c2", tool="pay", arguments={"amount": 6}),
    ] == list(paused.requests)
    assert ["model 1"] == world.log

    finished = await agent.turn(None, approve(*paused.requests), stream=False)

    assert Finished(output="Done.") == finished
    assert ["model 1", "start c1", "end c1", "start c2", "end c2", "model 5"] == world.log


async def test_the_model_gets_what_the_agent_sends(process: AgentProcess) -> None:
    """Items cross with all their fields, in order."""
    world = ToyWorld(pays(5), says("Done."))
    agent = await RemoteAgent.build(process, world, BLUEPRINT)
    paused = await agent.turn("Pay.", (), stream=False)
    await agent.turn(None, [Decision(request=paused.requests[0], verdict="reject", reason="no")], stream=False)

    assert (
        Item(kind="user", text="Pay.", message=0),
        Item(kind="call", id="c1", tool="pay", arguments={"amount": 5}, message=1),
        Item(kind="result", id="c1", tool="pay", text="rejected: no", message=2),
    ) == world.inputs[1]


async def test_a_policy_is_asked_where_the_world_is(process: AgentProcess) -> None:
    """The framework's policy is synchronous, and still gets the world's answer."""
    world = ToyWorld(pays(5, 50, tool="ask"), says("Done."))
    agent = await RemoteAgent.build(process, world, BLUEPRINT)
    paused = await agent.turn("Pay.", (), stream=False)

    assert ["c2"] == [request.id for request in paused.requests]
    assert ["model 1", "gate c1: False", "gate c2: True", "start c1", "end c1"] == world.log


async def test_a_policy_that_raises_raises_there(process: AgentProcess) -> None:
    """And what comes out of the framework is the same failure."""
    agent = await RemoteAgent.build(process, ToyWorld(pays(13, tool="ask")), BLUEPRINT)

    with pytest.raises(ConditionRaised, match="unlucky"):
        await agent.turn("Pay.", (), stream=False)


async def test_what_a_stream_shows_comes_before_the_outcome(process: AgentProcess) -> None:
    """Notices keep their place among calls."""
    world = ToyWorld(pays(5, 6))
    agent = await RemoteAgent.build(process, world, BLUEPRINT)
    await agent.turn("Pay.", (), stream=True)

    assert ["model 1 streamed", "shown request c1", "shown request c2"] == world.log


@pytest.mark.parametrize(
    "failure", [ModelDown(500), ModelDown(0), ModelRefused("two results"), ScriptExhausted("main")], ids=repr
)
async def test_failures_of_the_model_come_out_as_what_they_are(process: AgentProcess, failure: Exception) -> None:
    """Type, message and fields are those that the world raised."""
    agent = await RemoteAgent.build(process, ToyWorld(failure), BLUEPRINT)

    with pytest.raises(type(failure)) as caught:
        await agent.turn("Pay.", (), stream=False)

    assert type(failure) is type(caught.value)
    assert str(failure) == str(caught.value)
    assert vars(failure) == vars(caught.value)


@pytest.mark.parametrize("failure", [ToolRaised("no money"), AsksAgain("really?")], ids=repr)
async def test_failures_of_tools_reach_the_tool_body(process: AgentProcess, failure: Exception) -> None:
    """The toy tells the model of a tool that failed, and lets the wish to ask again out."""

    async def pay(amount: int) -> None:
        raise failure

    world = ToyWorld(pays(5), says("Done."), pay=pay)
    agent = await RemoteAgent.build(process, world, BLUEPRINT)
    paused = await agent.turn("Pay.", (), stream=False)
    if isinstance(failure, AsksAgain):
        with pytest.raises(AsksAgain, match="really"):
            await agent.turn(None, approve(*paused.requests), stream=False)
    else:
        await agent.turn(None, approve(*paused.requests), stream=False)
        assert "failed: no money" == world.inputs[-1][-1].text


async def test_an_exception_of_the_framework_keeps_its_name(process: AgentProcess) -> None:
    """Its class is unknown here, but not what it is called."""
    agent = await RemoteAgent.build(process, ToyWorld(), BLUEPRINT)
    unknown = Request(id="nobody", call_id=None, tool="pay", arguments={})

    with pytest.raises(Exception, match="nothing is pending as nobody") as caught:
        await agent.turn(None, approve(unknown), stream=False)

    assert "FrameworkError" == type(caught.value).__name__
    assert "FrameworkError" == caught.value.original_type


async def test_what_an_agent_cannot_express_is_unsupported(process: AgentProcess) -> None:
    """With the capability and the reason that the adapter names."""
    agent = await RemoteAgent.build(process, ToyWorld(), BLUEPRINT)

    with pytest.raises(Unsupported) as caught:
        await agent.turn(None, [Decision(request=None, verdict="approve", address=7)], stream=False)

    assert ("malformed_address", "the toy takes requests only") == (caught.value.capability, caught.value.why)


async def test_a_state_is_restored_in_another_process(process: AgentProcess, pool: Any) -> None:
    """What one process dumps another one loads; the requests held from the first one count as rebuilt there."""
    first = await RemoteAgent.build(process, ToyWorld(pays(5)), BLUEPRINT)
    paused = await first.turn("Pay.", (), stream=False)
    world = ToyWorld(says("Done."))
    second = await RemoteAgent.build(await pool.start_fresh("toy_agent:Toy"), world, BLUEPRINT)
    await second.load([await first.dump()])

    assert paused.requests == tuple(await second.pending())
    assert Finished(output="Done.") == await second.turn(None, approve(*paused.requests), stream=False)
    assert ["start c1", "end c1", "model 3"] == world.log
    assert first.host.number != second.host.number

    await second.close()


async def test_a_held_request_is_the_frameworks_own_object(process: AgentProcess) -> None:
    """In its own process a request comes back with the object that it went out with: a copy of it is not enough."""
    agent = await RemoteAgent.build(process, ToyWorld(pays(5), says("Done.")), BLUEPRINT)
    paused = await agent.turn("Pay.", (), stream=False)
    other = await RemoteAgent.build(process, ToyWorld(says("Done.")), BLUEPRINT)
    await other.copy_from(agent)
    request = paused.requests[0]

    assert request.handle is not None
    await agent.turn(None, approve(request), stream=False)
    with pytest.raises(Exception, match="nothing is pending as c1"):  # not open there: it is the first agent's object
        await agent.turn(None, approve(request), stream=False)
    assert 1 == len(await other.pending())


async def test_several_agents_live_in_one_process(process: AgentProcess) -> None:
    """Each has its own world; a copied state goes its own way."""
    worlds = [ToyWorld(pays(5), says("One.")), ToyWorld(says("Two.")), ToyWorld(says("Three."))]
    first = await RemoteAgent.build(process, worlds[0], BLUEPRINT)
    paused = await first.turn("Pay.", (), stream=False)
    second = await RemoteAgent.build(process, worlds[1], BLUEPRINT)
    await second.copy_from(first)
    third = await first.another_session(worlds[2])
    outcomes = await asyncio.gather(
        first.turn(None, approve(*paused.requests), stream=False),
        second.turn(None, approve(*await second.pending()), stream=False),
        third.turn("Hello.", (), stream=False),
    )

    assert [Finished(output="One."), Finished(output="Two."), Finished(output="Three.")] == outcomes
    assert ["start c1", "end c1", "model 3"] == worlds[1].log
    assert ["model 1"] == worlds[2].log


async def test_the_steps_between_turns_cross(process: AgentProcess) -> None:
    """Staging, cancelling and trimming do there what they do here."""
    world = ToyWorld(pays(5), says("Done."), pays(6))
    agent = await RemoteAgent.build(process, world, BLUEPRINT)
    paused = await agent.turn("Pay.", (), stream=False)
    await agent.stage(approve(*paused.requests))

    assert Finished(output="Done.") == await agent.turn(None, (), stream=False)

    await agent.trim(1)
    await agent.turn("Again.", (), stream=False)
    assert 2 == len(world.inputs[-1])

    await agent.cancel()
    assert [] == list(await agent.pending())


async def test_an_agent_has_the_tools_of_its_blueprint(process: AgentProcess) -> None:
    """They come back as they were sent, conditions included."""
    agent = await RemoteAgent.build(process, ToyWorld(), BLUEPRINT)

    assert BLUEPRINT.tools == agent.tools()


async def test_fifty_tools_run_at_once_and_answer_in_any_order(process: AgentProcess) -> None:
    """Each call gets its own answer, however they are mixed up."""
    started = 0
    everybody = asyncio.Event()
    turn_of = [asyncio.Event() for _ in range(51)]

    async def look(amount: int) -> str:
        nonlocal started
        started += 1
        if started == 50:
            everybody.set()
            turn_of[50].set()
        await everybody.wait()
        await turn_of[amount].wait()  # the last that was called answers first
        turn_of[amount - 1].set()
        return f"saw {amount}"

    world = ToyWorld(pays(*range(1, 51), tool="look"), says("Done."), look=look)
    agent = await RemoteAgent.build(process, world, BLUEPRINT)
    await agent.turn("Look.", (), stream=False)

    assert [f"saw {number}" for number in range(1, 51)] == [
        item.text for item in world.inputs[-1] if item.kind == "result"
    ]
    assert [f"end c{number}" for number in range(50, 0, -1)] == [line for line in world.log if line.startswith("end")]


async def test_ten_megabytes_cross(process: AgentProcess) -> None:
    """In both directions, and back."""
    text = "x" * 10_000_000
    world = ToyWorld(says(text))
    agent = await RemoteAgent.build(process, world, BLUEPRINT)

    assert Finished(output=text) == await agent.turn(text, (), stream=False)
    assert text == world.inputs[0][0].text


@pytest.mark.parametrize("text", ["ünïcödé \U0001f600", "\ud83d", "a\nb\r\u2028c\0", ""], ids=ascii)
async def test_any_text_crosses(process: AgentProcess, text: str) -> None:
    """Also text that is no line, or half a character."""
    agent = await RemoteAgent.build(process, ToyWorld(says(text)), BLUEPRINT)

    assert Finished(output=text) == await agent.turn(text, (), stream=False)


async def test_a_turn_that_is_cancelled_is_over_on_both_sides(process: AgentProcess) -> None:
    """The tool that it waited for is cancelled, and the process can be asked again."""
    entered = asyncio.Event()

    async def pay(amount: int) -> None:
        entered.set()
        await asyncio.Event().wait()

    world = ToyWorld(pays(5), pay=pay)
    agent = await RemoteAgent.build(process, world, BLUEPRINT)
    paused = await agent.turn("Pay.", (), stream=False)
    turn = asyncio.ensure_future(agent.turn(None, approve(*paused.requests), stream=False))
    await entered.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn

    assert ["model 1", "start c1", "CancelledError c1", "end c1"] == world.log
    assert [] == list(await agent.pending())


async def test_a_process_ends_with_the_last_of_its_agents(process: AgentProcess) -> None:
    """Not before, and closing an agent twice closes it once."""
    first = await RemoteAgent.build(process, ToyWorld(), BLUEPRINT)
    second = await first.another_session(ToyWorld())
    await first.close()
    await first.close()
    assert isinstance(await second.pending(), tuple)

    await second.close()
    assert not process.is_usable


async def test_paused_text_and_requests_cross(process: AgentProcess) -> None:
    """A pause is a pause."""
    agent = await RemoteAgent.build(process, ToyWorld(pays(1)), BLUEPRINT)

    assert isinstance(await agent.turn("Pay.", (), stream=False), Paused)
