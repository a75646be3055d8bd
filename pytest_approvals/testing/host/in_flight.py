"""Rules about a process in the middle of a turn: one of its tools is held, and something else happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from pytest_approvals.agent_side.contract import Finished
from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.types import Blueprint
from pytest_approvals.errors import HostError
from pytest_approvals.journal.files import Journal
from pytest_approvals.processes.agent_process import AgentProcess, ProcessTimeouts
from pytest_approvals.processes.launchers import CommandLauncher
from pytest_approvals.processes.process_pool import ProcessPool
from pytest_approvals.processes.remote_agents import RemoteAgent, SharedProcessSource, SubprocessFactory
from pytest_approvals.runner.journal_values import build_header
from pytest_approvals.runner.run_context import RunContext
from pytest_approvals.runner.world import RecordingWorld, create_world_dispatcher
from pytest_approvals.scenario.build import calls, returns, say, scenario, tool
from pytest_approvals.scenario.build_steps import send, signal, together
from pytest_approvals.scenario.model import Variant
from pytest_approvals.testing.host.raw_client import ANSWER_TIMEOUT, RuleBroken

_RELEASE_SIGNAL = "let it go"
_HELD_TOOL_SCENARIO = scenario(
    title="A tool is held",
    tools=[tool("look", returns("seen", waits_for=_RELEASE_SIGNAL))],
    model=[calls("look"), say("Done.")],
    caller=[together(send("Look."), signal(_RELEASE_SIGNAL))],
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFixture:
    """A process whose session is in a turn, while a tool is held."""

    process: AgentProcess
    agent: Agent
    turn: asyncio.Task[Any]
    context: RunContext
    blueprint: Blueprint


def keeps_sessions_apart(command: Sequence[str], agent: str) -> None:
    """Check that another session is served meanwhile: sessions of many runs share a process."""

    async def attempt(fixture: HostFixture) -> None:
        world = RecordingWorld(fixture.context, "other")
        other = await _within_timeout(RemoteAgent.build(fixture.process, world, fixture.blueprint), "`build`")
        if await _within_timeout(other.pending(), "`pending`"):
            raise RuleBroken("a session that has done nothing lists requests")
        fixture.context.signals.send(_RELEASE_SIGNAL)
        outcome = await _within_timeout(fixture.turn, "`turn`")
        if outcome != Finished(output="Done."):
            raise RuleBroken(f"the turn that was held came to {outcome}")

    _run_attempt(command, agent, attempt)


def stops_a_turn(command: Sequence[str], agent: str) -> None:
    """Check that the process can be used for the next run after a run that took too long was given up."""

    async def attempt(fixture: HostFixture) -> None:
        fixture.turn.cancel()
        # Not awaited directly, which would raise the cancellation here.
        await asyncio.wait({fixture.turn})
        if not fixture.process.is_usable:
            raise RuleBroken(f"it did not let go of the turn: {fixture.process.lost}")
        await _within_timeout(fixture.agent.pending(), "`pending` after a turn that was stopped")

    _run_attempt(command, agent, attempt)


def ends_while_it_works(command: Sequence[str], agent: str) -> None:
    """Check that a framework that waits for something does not keep the process alive."""

    async def attempt(fixture: HostFixture) -> None:
        await fixture.process.end()
        if fixture.process.exit_code is not None and fixture.process.exit_code < 0:
            raise RuleBroken("it had to be ended by a signal")

    _run_attempt(command, agent, attempt)


def _run_attempt(command: Sequence[str], agent: str, attempt: Callable[[HostFixture], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with _start_held_turn(command, agent) as fixture:
            await attempt(fixture)

    try:
        asyncio.run(whole())
    except HostError as error:
        raise RuleBroken(str(error)) from None


@asynccontextmanager
async def _start_held_turn(command: Sequence[str], agent: str) -> AsyncIterator[HostFixture]:
    pool = ProcessPool(ProcessTimeouts(start=ANSWER_TIMEOUT, answer=ANSWER_TIMEOUT, end=2.0))
    source = SharedProcessSource(
        agent, SubprocessFactory(agent=agent, launcher=CommandLauncher(words=tuple(command)), pool=pool)
    )
    turn = None
    try:
        await source.fetch_facts()
        context = RunContext(
            scenario=_HELD_TOOL_SCENARIO,
            variant=Variant(),
            journal=Journal(),
            header=build_header(_HELD_TOOL_SCENARIO, Variant(), source, seed=0),
        )
        context.model_endpoint = _serve_model(source.facts.native)
        world = RecordingWorld(context, "")
        blueprint = replace(context.build_blueprint("", create_world_dispatcher(world)), model=world.address())
        driven = await source.build(world, blueprint)
        assert isinstance(driven, RemoteAgent)
        turn = asyncio.ensure_future(driven.turn("Look.", (), stream=False))
        # `c1` is the label of the scenario's only call.
        started = asyncio.ensure_future(context.signals.wait("started c1"))
        await asyncio.wait({turn, started}, timeout=ANSWER_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        if not started.done():
            started.cancel()
            raise RuleBroken(f"a turn whose reply calls a tool did not run it: {_describe_turn(turn)}")
        yield HostFixture(process=driven.host, agent=driven, turn=turn, context=context, blueprint=blueprint)
    finally:
        if turn is not None:
            turn.cancel()
            await asyncio.wait({turn})
        await pool.close()


def _serve_model(protocol: str) -> Any:
    if not protocol:
        return None
    # Agents that ask the world itself need no HTTP server.
    from pytest_approvals.runner.model_endpoint import ModelEndpoint

    return ModelEndpoint(protocol)


def _describe_turn(turn: asyncio.Task[Any]) -> str:
    if not turn.done():
        return "it is still at it"
    return repr(turn.exception() or turn.result())


async def _within_timeout(step: Awaitable[Any], what: str) -> Any:
    try:
        return await asyncio.wait_for(step, ANSWER_TIMEOUT)
    except TimeoutError:
        raise RuleBroken(f"{what} was not answered while a tool was held") from None
