"""Agent processes that die, hang, print or send garbage: what happened is said at once, and nothing is left."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toy_world import BLUEPRINT, ToyWorld, pays, says

from pytest_approvals.agent_side.contract import Finished
from pytest_approvals.errors import AgentUnavailable, HostError
from pytest_approvals.processes.agent_process import ProcessTimeouts
from pytest_approvals.processes.process_pool import ProcessPool
from pytest_approvals.processes.remote_agents import RemoteAgent

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(20)]

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the children of processes")


@pytest.fixture(params=["fresh", "cold"])
def start(request: pytest.FixtureRequest, pool: ProcessPool) -> Callable[..., Any]:
    return getattr(pool, f"start_{request.param}")


def exists(pid: int | None) -> bool:
    """Return whether there is a process with that number; one that ended and was not reaped yet counts."""
    assert pid is not None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def runs(pid: int) -> bool:
    """Return whether that process runs; one that waits for whoever adopted it to reap it does not."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Dies", "its process ended (exit code 3); the end of its stderr:\nlast words"),
        ("Exits", "its process ended (exit code 4)"),
        ("IsKilled", "its process ended (signal SIGKILL)"),
        ("DiesInATool", "its process ended (exit code 0)"),
        ("WritesGarbage", "it sent a line that is not a message: garbage"),
        (
            "WritesHalfALine",
            'it sent a line that is not a message: {"re": {"re":3,"ok":{"finished":{"output":"Fine."}}}',
        ),
        ("WritesNoMessage", 'it sent a line that is not a message: {"hello": "world"}'),
        ("WritesNaN", 'it sent a line that is not a message: {"m": "shown", "p": NaN}'),
        ("AnswersNobody", 'it answered a call that is not open: {"re": 77, "ok": {}}'),
        (
            "AnswersWithABadError",
            (
                "it answered with an error that cannot be read (expected object (RemoteFailure), got 'no' (str)): "
                '{"re": 3, "err": "no"}'
            ),
        ),
        (
            "CallsTheUnknown",
            (
                "it called the unknown method 'order_pizza'; the end of its stderr:\n"
                "answered: it called the unknown method 'order_pizza'"
            ),
        ),
        ("NoticesTheUnknown", "it sent the unknown notice 'order_pizza'"),
        ("ShowsNonsense", "it showed 'text' with invalid facts: shown() got an unexpected keyword argument 'colour'"),
        ("CallsWithNonsense", "it sent invalid parameters with `model`: items: expected array, got 'none' (str)"),
        ("SpeaksOfAnotherSession", "it named the unknown session 9 in `model`"),
    ],
)
async def test_a_process_that_dies_or_sends_garbage_is_lost(start: Callable[..., Any], name: str, said: str) -> None:
    """The turn fails with what happened, every later step with the same, and the process is gone."""
    process = await start(f"toy_broken:{name}")
    agent = await RemoteAgent.build(process, ToyWorld(says("Go on.")), BLUEPRINT)
    with pytest.raises(HostError) as caught:
        await agent.turn("Go.", (), stream=False)

    assert f"the adapter of 'toy_broken:{name}' breaks its contract: `turn` was not answered: {said}" == str(
        caught.value
    )
    with pytest.raises(HostError, match="`pending` was not answered"):
        await agent.pending()
    await agent.close()
    assert not exists(process.pid)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ReturnsNonsense", "turn() returned {'finished': True} (dict), which is neither Paused nor Finished"),
        ("ReturnsNoRequest", "'c1' (str) is listed as a request, but is not a Request"),
        ("ReturnsABadRequest", "invalid result of `turn`: paused.requests[0].id: expected string, got 5 (int)"),
        (
            "AsksTheModelNonsense",
            "invalid arguments of World.model: items[0].text: expected string, got 5 (int)",
        ),
    ],
)
async def test_an_adapter_that_returns_an_invalid_value_differs_from_one_that_fails(
    start: Callable[..., Any], name: str, said: str
) -> None:
    """It is a broken contract, not a failed turn; the process can continue."""
    agent = await RemoteAgent.build(await start(f"toy_broken:{name}"), ToyWorld(), BLUEPRINT)
    with pytest.raises(HostError) as caught:
        await agent.turn("Go.", (), stream=False)

    assert f"the adapter of 'toy_broken:{name}' breaks its contract: {said}" == str(caught.value)
    assert () == await agent.pending()
    await agent.close()


async def test_a_state_that_is_not_text_is_an_adapter_error(start: Callable[..., Any]) -> None:
    """As is every other answer of a wrong type."""
    agent = await RemoteAgent.build(await start("toy_broken:DumpsNonsense"), ToyWorld(), BLUEPRINT)
    with pytest.raises(HostError, match="invalid result of `dump`: text: expected string, got b'bytes' \\(bytes\\)"):
        await agent.dump()
    await agent.close()


async def test_prints_do_no_harm(start: Callable[..., Any]) -> None:
    """Whether they go through `print`, the descriptor or a process that was started."""
    agent = await RemoteAgent.build(await start("toy_broken:Prints"), ToyWorld(), BLUEPRINT)

    assert Finished(output="Fine.") == await agent.turn("Go.", (), stream=False)
    await agent.close()


async def test_the_end_of_what_was_printed_is_kept(start: Callable[..., Any]) -> None:
    """However much it was, it neither blocks the process nor fills the memory."""
    agent = await RemoteAgent.build(await start("toy_broken:PrintsALot"), ToyWorld(), BLUEPRINT)
    with pytest.raises(HostError) as caught:
        await agent.turn("Go.", (), stream=False)

    assert caught.value.stderr.endswith("line 99998\nline 99999\n")
    assert 20_000 > len(caught.value.stderr)
    await agent.close()


@pytest.mark.parametrize("name", ["Waits", "Hangs", "Spins", "LeavesItsConnection"])
async def test_a_process_that_hangs_is_ended(name: str) -> None:
    """After its time is over; the polite signal may be ignored."""
    pool = ProcessPool(ProcessTimeouts(start=20, answer=0.2, end=0.2))
    process = await pool.start_fresh(f"toy_broken:{name}")
    agent = await RemoteAgent.build(process, ToyWorld(), BLUEPRINT)
    said = "its process ended" if name == "LeavesItsConnection" else "no answer to `turn` within 0.2 s"
    with pytest.raises(HostError, match=said):
        await agent.turn("Go.", (), stream=False)
    await agent.close()

    assert not exists(process.pid)
    await pool.close()


async def test_a_turn_that_cannot_be_cancelled_ends_its_process(pool: ProcessPool) -> None:
    """Whoever cancels it is not kept waiting."""
    process = await pool.start_fresh("toy_broken:ClingsToItsTurn")
    process._peer._stop_limit = 0.2
    agent = await RemoteAgent.build(process, ToyWorld(), BLUEPRINT)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await agent.turn("Go.", (), stream=False)
    with pytest.raises(HostError, match=r"no answer to `stop turn` within 0\.2 s"):
        await agent.pending()
    await agent.close()

    assert not exists(process.pid)


async def test_an_answer_that_comes_twice_is_noticed(start: Callable[..., Any]) -> None:
    """The first one counts; the second one ends the process."""
    agent = await RemoteAgent.build(await start("toy_broken:AnswersTwice"), ToyWorld(), BLUEPRINT)

    assert Finished(output="Fine.") == await agent.turn("Go.", (), stream=False)
    with pytest.raises(HostError, match="it answered a call that is not open"):
        await agent.pending()
    await agent.close()


async def test_a_process_that_dies_between_two_turns_is_noticed_at_the_next_step(start: Callable[..., Any]) -> None:
    """Nobody waited for it, so nothing failed before."""
    agent = await RemoteAgent.build(await start("toy_broken:DiesBetweenTurns"), ToyWorld(), BLUEPRINT)

    assert Finished(output="Fine.") == await agent.turn("Go.", (), stream=False)
    with pytest.raises(HostError, match="its process ended \\(exit code 5\\)"):
        await agent.turn("Go.", (), stream=False)
    await agent.close()


async def test_a_tool_is_cancelled_when_its_process_dies(start: Callable[..., Any]) -> None:
    """What is recorded about it comes before the turn fails."""

    async def look(amount: int) -> None:
        await asyncio.Event().wait()

    world = ToyWorld(says("It has begun."), look=look)
    agent = await RemoteAgent.build(await start("toy_broken:DiesInATool"), world, BLUEPRINT)
    with pytest.raises(HostError):
        await agent.turn("Go.", (), stream=False)

    assert ["start c1", "model 0", "CancelledError c1", "end c1"] == world.log
    await agent.close()


async def test_an_exception_that_cannot_be_sent_is_reported_by_its_name(start: Callable[..., Any]) -> None:
    """Nothing is pickled, so nothing must be picklable."""
    agent = await RemoteAgent.build(await start("toy_broken:RaisesTheUnpicklable"), ToyWorld(), BLUEPRINT)
    with pytest.raises(Exception, match="its text is unavailable: RuntimeError") as caught:
        await agent.turn("Go.", (), stream=False)

    assert "Unpicklable" == type(caught.value).__name__
    await agent.close()


async def test_an_output_of_any_kind_crosses_as_what_can_be_told_of_it(start: Callable[..., Any]) -> None:
    """As it would stand in a journal."""
    agent = await RemoteAgent.build(await start("toy_broken:ReturnsAnyOutput"), ToyWorld(), BLUEPRINT)
    finished = await agent.turn("Go.", (), stream=False)

    assert {
        "self": "<not JSON: <toy_broken.ReturnsAnyOutput object>>",
        "set": [1],
        "nan": "<not JSON: nan>",
    } == finished.output
    await agent.close()


async def test_an_agent_that_cannot_be_built_raises_as_it_does_here(start: Callable[..., Any]) -> None:
    """That the warm-up failed as well is nobody's concern."""
    process = await start("toy_broken:CannotBeBuilt")
    with pytest.raises(Exception, match="no such thing") as caught:
        await RemoteAgent.build(process, ToyWorld(), BLUEPRINT)

    assert "ValueError" == type(caught.value).__name__
    await process.end()


@pytest.mark.parametrize("name", ["nowhere:Toy", "toy_agent:Nobody", "toy_agent:ABLE", "no_adapter", "toy_agent"])
async def test_an_agent_that_is_not_there_is_unavailable(start: Callable[..., Any], name: str) -> None:
    """Whatever is wrong with its name."""
    with pytest.raises(AgentUnavailable, match=name):
        await start(name)


async def test_an_agent_that_dies_while_it_is_warmed_up_says_so(pool: ProcessPool) -> None:
    """With the exit code and what it printed."""
    with pytest.raises(HostError) as caught:
        await pool.start_fresh("toy_broken:ExitsWhenBuilt")

    assert "the process that it is forked from ended (exit code 7)" in str(caught.value)
    assert "cannot be warmed" in caught.value.stderr


async def test_a_process_that_holds_threads_is_not_forked(pool: ProcessPool) -> None:
    """Its agent gets a new interpreter, and says that it has one."""
    process = await pool.start_fresh("toy_broken:LeavesAThread")

    assert "started" == process.how
    await process.end()


@pytest.mark.parametrize("name", ["LeavesAProcess", pytest.param("LeavesADaemon", marks=ON_LINUX)])
async def test_a_process_is_ended_with_all_that_it_has_started(start: Callable[..., Any], name: str) -> None:
    """Also with what holds its standard error and continues forever, and on Linux with what has left its group."""
    agent = await RemoteAgent.build(await start(f"toy_broken:{name}"), ToyWorld(), BLUEPRINT)
    started = (await agent.turn("Go.", (), stream=False)).output
    assert exists(started)

    await agent.close()
    while runs(started):  # noqa: ASYNC110 -- it was killed, and is nobody's child that could tell
        await asyncio.sleep(0)


async def test_an_agent_that_does_not_close_is_ended(pool: ProcessPool) -> None:
    """Closing has a time limit like any other step."""
    process = await pool.start_fresh("toy_broken:IsSlowToClose")
    agent = await RemoteAgent.build(process, ToyWorld(), BLUEPRINT)
    process._timeouts = ProcessTimeouts(answer=0.2, end=0.2)
    with pytest.raises(HostError, match=r"no answer to `close` within 0\.2 s"):
        await agent.close()

    assert not exists(process.pid)


@pytest.mark.parametrize("name", ["NeverCloses", "BlocksInEveryClose"])
async def test_an_agent_that_does_not_close_while_it_is_warmed_up_can_be_forked(name: str) -> None:
    """Its process gives it up after some seconds; it would wait forever, and so would all that need it."""
    pool = ProcessPool(ProcessTimeouts(start=15, answer=5, stop=0.2, end=0.2))
    process = await pool.start_fresh(f"toy_broken:{name}")

    assert "forked" == process.how
    await process.end()
    await pool.close()


async def test_other_agents_continue_when_one_is_lost(pool: ProcessPool) -> None:
    """A process that was forked from the same warm one is not touched."""
    dying, living = await pool.start_fresh("toy_broken:Dies"), await pool.start_fresh("toy_broken:Dies")
    agents = [await RemoteAgent.build(process, ToyWorld(pays(5)), BLUEPRINT) for process in (dying, living)]
    with pytest.raises(HostError):
        await agents[0].turn("Go.", (), stream=False)

    assert () == await agents[1].pending()
    for agent in agents:
        await agent.close()
