"""Closing of agents after a run: bounded by the time limit, and a close that hangs is a warning."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agent_side.contract.types import Decision, Outcome
from pytest_approvals.checks import judge
from pytest_approvals.journal.events import CloseTimeout, RunEnd
from pytest_approvals.journal.files import Journal, read_journal
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.simulation.reference import ReferenceAgent

Story = Callable[..., Scenario]
Played = Callable[..., RecordedRun]


class NeverCloses(ReferenceAgent):
    """An agent whose close waits forever."""

    async def close(self) -> None:
        await asyncio.Event().wait()


class BlocksInClose(ReferenceAgent):
    """An agent whose close holds the event loop."""

    async def close(self) -> None:
        time.sleep(15)  # noqa: ASYNC251 -- it blocks, as it must not


class RaisesWhenStopped(ReferenceAgent):
    """An agent whose close turns its cancellation into an error."""

    async def close(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise OSError("broken pipe") from None


class Clings(ReferenceAgent):
    """An agent that does not let itself be cancelled: it waits, waits for a task, or looks on."""

    how = "waits"

    async def cling(self) -> None:
        while True:
            try:
                await (asyncio.sleep(0) if self.how == "looks on" else asyncio.Event().wait())
            except asyncio.CancelledError:
                continue

    async def close(self) -> None:
        await (asyncio.create_task(self.cling()) if self.how == "waits for a task" else self.cling())


class ClingsToItsTurn(Clings):
    """An agent whose turn does not let itself be cancelled."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        await self.cling()
        raise AssertionError

    async def close(self) -> None:
        pass


class ClosesStepByStep(ReferenceAgent):
    """An agent whose close has limits of its own, a task of its own, and is in the task in which it was built."""

    async def close(self) -> None:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            assert "later" == await asyncio.create_task(asyncio.sleep(0, "later"))
        own = asyncio.ensure_future(asyncio.Event().wait())
        asyncio.get_running_loop().call_soon(own.cancel)
        try:
            await own
        except asyncio.CancelledError:
            type(self).closed.append(asyncio.current_task())

    closed: ClassVar[list[Any]] = []

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        type(self).closed.append(asyncio.current_task())
        return await super().turn(text, decisions, stream=stream)


class TimesOutInClose(ReferenceAgent):
    """An agent whose close gives up by itself."""

    async def close(self) -> None:
        raise TimeoutError


class HangsAndNeverCloses(NeverCloses):
    """An agent that never comes back from anything."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.timeout(0)  # it takes the alarm with which the event loop is interrupted
@pytest.mark.parametrize("agent", [NeverCloses, BlocksInClose, RaisesWhenStopped])
def test_a_close_that_hangs_is_a_warning(story: Story, played: Played, agent: type[Agent]) -> None:
    """The run is completed and judged as any other; that its agent does not close is told by `run-ends`."""
    run = played(story(), agent=agent, limit=RunLimits(seconds=0.05))

    warned = [(verdict.check, verdict.actual) for verdict in judge(run.events) if verdict.status == "warning"]
    assert [("run-ends", "its close() did not return within 0.05 s")] == warned
    assert [] == [verdict.check for verdict in judge(run.events) if verdict.fails]


@pytest.mark.parametrize("how", ["waits", "waits for a task", "looks on"])
@pytest.mark.parametrize(("agent", "check"), [(Clings, "warning"), (ClingsToItsTurn, "fail")], ids=["close", "turn"])
def test_an_agent_that_cannot_be_cancelled_is_given_up(
    story: Story, monkeypatch: pytest.MonkeyPatch, agent: type[Clings], check: str, how: str
) -> None:
    """After the time limit and some seconds; `run-ends` says so. A task of its own stays with its event loop."""
    monkeypatch.setattr("pytest_approvals.runner.timeouts.STOP_SECONDS", 0.05)
    monkeypatch.setattr(agent, "how", how)
    source = InProcessSource(name="clings", adapter=agent, facts=describe_adapter(agent))
    loop = asyncio.new_event_loop()
    run = loop.run_until_complete(run_scenario(story(), Variant(), source, limit=RunLimits(seconds=0.1)))
    # Its tasks would keep a loop from closing that asks them to end.
    for task in asyncio.all_tasks(loop):
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.close()

    assert [check] == [verdict.status for verdict in judge(run.events) if verdict.check == "run-ends"]


def test_a_close_waits_as_in_a_task(story: Story, played: Played) -> None:
    """Its own limits, cancellations and tasks work, and it is in the task in which the turns were."""
    ClosesStepByStep.closed.clear()
    run = played(story(), agent=ClosesStepByStep)

    assert [] == [event for event in run.events if isinstance(event, CloseTimeout)]
    assert (3, 1) == (len(ClosesStepByStep.closed), len(set(ClosesStepByStep.closed)))


@pytest.mark.parametrize("agent", [ReferenceAgent, TimesOutInClose])
def test_a_close_that_returns_or_raises_is_no_finding(story: Story, played: Played, agent: type[Agent]) -> None:
    """Only one that was stopped is told."""
    run = played(story(), agent=agent)

    assert [] == [event for event in run.events if isinstance(event, CloseTimeout)]


def test_an_agent_that_was_cut_off_is_not_waited_for_as_long(
    story: Story, played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its run has used up its time; that it does not close says nothing new."""
    monkeypatch.setattr("pytest_approvals.runner.run.CUT_OFF_CLOSE_SECONDS", 0.1)
    run = played(story(), agent=HangsAndNeverCloses, limit=RunLimits(seconds=0.2))

    said = [event.what for event in run.events if isinstance(event, CloseTimeout)]
    assert ["its close() did not return within 0.1 s"] == said
    assert ["run-ends"] == [v.check for v in judge(run.events) if v.check == "run-ends" and v.fails]
    assert [] == [verdict for verdict in judge(run.events) if verdict.status == "warning"]


def test_the_journal_of_a_run_whose_agent_does_not_close_is_well_formed(
    story: Story, played: Played, tmp_path: Path
) -> None:
    """It holds the end first, and can be read and judged again; the transcript is that of a run that closed."""
    path = tmp_path / "run.jsonl"
    run = played(story(), agent=NeverCloses, journal=Journal(path), limit=RunLimits(seconds=0.3))
    stored = read_journal(path)
    closed = played(story())

    assert [RunEnd, CloseTimeout] == [type(event) for event in stored.events[-2:]]
    assert [v.status for v in judge(run.events)] == [v.status for v in judge(stored.events)]
    assert Transcript.of(closed.events).render() == Transcript.of(stored.events).render()
