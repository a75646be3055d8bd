"""The rules that are about a process in the middle of its work: a tool of it is held, and something else happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from pytest_approvals import Scenario, calls, returns, say, send, signal, together, tool
from pytest_approvals.agent_side.contract import Agent, Finished
from pytest_approvals.agent_side.neutral import Blueprint
from pytest_approvals.errors import HostError
from pytest_approvals.harness.elsewhere import OtherProcesses
from pytest_approvals.harness.host import HostPool
from pytest_approvals.harness.hosted import Hosted
from pytest_approvals.harness.play import Play, header
from pytest_approvals.harness.process import AgentProcess, Patience
from pytest_approvals.harness.residents import InEnvironment
from pytest_approvals.harness.runtimes import Command
from pytest_approvals.harness.servers import runs_in
from pytest_approvals.harness.world import RecordingWorld
from pytest_approvals.journal.write import Journal
from pytest_approvals.scenario.parts import Variant

from .raw import PATIENCE, Broken

_HELD = "let it go"
_STORY = Scenario(
    title="A tool is held",
    tools=[tool("look", returns("seen", waits_for=_HELD))],
    model=[calls("look"), say("Done.")],
    caller=[together(send("Look."), signal(_HELD))],
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A process at work: its session is in a turn, whose tool is held."""

    process: AgentProcess
    agent: Agent
    turn: asyncio.Task[Any]
    play: Play
    blueprint: Blueprint


def keeps_sessions_apart(command: Sequence[str], agent: str) -> None:
    """Sessions of many runs share a process."""

    async def attempt(bench: Bench) -> None:
        world = RecordingWorld(bench.play, "other")
        other = await _in_time(Hosted.build(bench.process, world, bench.blueprint), "`build`")
        if await _in_time(other.pending(), "`pending`"):
            raise Broken("a session that has done nothing lists requests")
        bench.play.signals.give(_HELD)
        outcome = await _in_time(bench.turn, "`turn`")
        if outcome != Finished(output="Done."):
            raise Broken(f"the turn that was held came to {outcome}")

    _tried(command, agent, attempt)


def stops_a_turn(command: Sequence[str], agent: str) -> None:
    """A run that takes too long is given up; the process is used for the next one."""

    async def attempt(bench: Bench) -> None:
        bench.turn.cancel()
        await asyncio.wait({bench.turn})
        if not bench.process.usable:
            raise Broken(f"it did not let go of the turn: {bench.process.lost}")
        await _in_time(bench.agent.pending(), "`pending` after a turn that was stopped")

    _tried(command, agent, attempt)


def ends_while_it_works(command: Sequence[str], agent: str) -> None:
    """A framework that waits for something must not keep the process."""

    async def attempt(bench: Bench) -> None:
        await bench.process.end()
        if bench.process.exit_code is not None and bench.process.exit_code < 0:
            raise Broken("it had to be ended by a signal")

    _tried(command, agent, attempt)


def _tried(command: Sequence[str], agent: str, attempt: Callable[[Bench], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with _at_work(command, agent) as bench:
            await attempt(bench)

    try:
        asyncio.run(whole())
    except HostError as error:
        raise Broken(str(error)) from None


@asynccontextmanager
async def _at_work(command: Sequence[str], agent: str) -> AsyncIterator[Bench]:
    pool = HostPool(Patience(start=PATIENCE, answer=PATIENCE, end=2.0))
    source = InEnvironment(agent, OtherProcesses(agent=agent, environment=Command(words=tuple(command)), pool=pool))
    turn = None
    try:
        await source.ask()
        play = Play(
            scenario=_STORY, variant=Variant(), journal=Journal(), header=header(_STORY, Variant(), source, seed=0)
        )
        play.served = _served(source.facts.native)
        world = RecordingWorld(play, "")
        blueprint = replace(play.blueprint("", runs_in(world)), model=world.address())
        driven = await source.build(world, blueprint)
        assert isinstance(driven, Hosted)
        turn = asyncio.ensure_future(driven.turn("Look.", (), stream=False))
        started = asyncio.ensure_future(play.signals.wait("started c1"))
        await asyncio.wait({turn, started}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            started.cancel()
            raise Broken(f"a turn whose reply calls a tool did not run it: {_ended(turn)}")
        yield Bench(process=driven.host, agent=driven, turn=turn, play=play, blueprint=blueprint)
    finally:
        if turn is not None:
            turn.cancel()
            await asyncio.wait({turn})
        await pool.close()


def _served(protocol: str) -> Any:
    if not protocol:
        return None
    from pytest_approvals.harness.served import ServedModel

    return ServedModel(protocol)


def _ended(turn: asyncio.Task[Any]) -> str:
    if not turn.done():
        return "it is still at it"
    return repr(turn.exception() or turn.result())


async def _in_time(step: Awaitable[Any], what: str) -> Any:
    try:
        return await asyncio.wait_for(step, PATIENCE)
    except TimeoutError:
        raise Broken(f"{what} was not answered while a tool was held") from None
