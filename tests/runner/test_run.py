from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agent_side.contract.types import Blueprint, Decision, Outcome, Paused, Request
from pytest_approvals.checks import judge
from pytest_approvals.journal.events import AgentLost, ModelExhausted, RunEnd, ToolEnd, TurnEnd
from pytest_approvals.journal.files import Journal, read_journal
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.runner.timeouts import watchdog
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.simulation.reference import ReferenceAgent

Story = Callable[..., Scenario]
Played = Callable[..., RecordedRun]


def last(run: RecordedRun) -> RunEnd:
    end = run.events[-1]
    assert isinstance(end, RunEnd)
    return end


class GivesNonsense(ReferenceAgent):
    """An adapter whose turn ends with a word."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        return "paused"  # type: ignore[return-value]


class PausesForNothing(ReferenceAgent):
    """An adapter that pauses without a request."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        return Paused(requests=())


class ListsNonsense(ReferenceAgent):
    """An adapter that lists what is no request."""

    async def pending(self) -> Sequence[Request]:
        return ["c1"]  # type: ignore[list-item]


class DumpsNonsense(ReferenceAgent):
    """An adapter whose dump is no text."""

    async def dump(self) -> str:
        return {"state": 1}  # type: ignore[return-value]


class Hangs(ReferenceAgent):
    """An agent that never comes back."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        await asyncio.Event().wait()
        raise AssertionError


class AsksForEver(ReferenceAgent):
    """An agent that asks its model again and again."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        while True:
            await self.world.model([])


class CannotSave(ReferenceAgent):
    """An agent whose state cannot be written."""

    async def dump(self) -> str:
        raise TypeError("not serializable")


class CannotLoad(ReferenceAgent):
    """An agent that cannot restore its own state."""

    async def load(self, parts: Sequence[str]) -> None:
        raise ValueError("unknown version")


class CannotBuild(ReferenceAgent):
    """An agent that cannot be built."""

    def __init__(self, *args: Any) -> None:
        raise ImportError("its framework is not here")


class Interrupts(ReferenceAgent):
    """An agent in whose turn the person presses Ctrl-C."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
        raise AssertionError


class TestEnd:
    def test_a_run_that_goes_well_is_completed(self, story: Story, played: Played) -> None:
        """A run that reaches its last word is completed, with nothing pending."""
        run = played(story())

        assert ("completed", []) == (last(run).how, last(run).pending)
        assert "Done." == run.output

    def test_an_agent_that_hangs_runs_into_the_time_limit(self, story: Story, played: Played) -> None:
        """A run past its time limit ends as `timeout`, and its open turn with it."""
        run = played(story(), agent=Hangs, limit=RunLimits(seconds=0.05))

        assert "timeout" == last(run).how
        assert ["timeout"] == [event.outcome for event in run.events if isinstance(event, TurnEnd)]

    def test_an_endless_loop_runs_out_of_model_calls(self, story: Story, played: Played) -> None:
        """An agent that asks its model forever is stopped by the limit of model calls."""
        run = played(story(), agent=AsksForEver, limit=RunLimits(model_calls=1), lenient=True)

        assert [1] == [event.limit for event in run.events if isinstance(event, ModelExhausted)]
        assert "completed" == last(run).how

    def test_a_pause_without_a_request_is_a_finding(self, story: Story, played: Played) -> None:
        """Nobody can answer it: the run does not end, and no call was asked about."""
        run = played(story(), Variant(serialize="json", source="restored"), agent=PausesForNothing)

        assert [] == [event for event in run.events if isinstance(event, AgentLost)]
        assert "run-ends" in {verdict.check for verdict in judge(run.events) if verdict.fails}

    @pytest.mark.parametrize(
        ("agent", "what"),
        [
            (GivesNonsense, "the adapter of 'toy' breaks its contract: turn() returned 'paused'"),
            (DumpsNonsense, "the adapter of 'toy' breaks its contract: dump() returned dict; expected text"),
        ],
    )
    def test_an_adapter_that_returns_an_invalid_value_breaks_the_run(
        self, story: Story, played: Played, agent: type[Agent], what: str
    ) -> None:
        """Nonsense from an adapter is recorded with what it was and what it must be, and ends the run."""
        run = played(story(), Variant(serialize="json", source="restored"), agent=agent)

        (lost,) = [event for event in run.events if isinstance(event, AgentLost)]
        assert lost.what.startswith(what)
        assert "broken" == last(run).how

    def test_a_list_of_garbage_breaks_the_run(self, story: Story, played: Played) -> None:
        """What an adapter lists as pending must be requests."""
        run = played(story(), Variant(serialize="json", source="restored"), agent=ListsNonsense)

        assert last(run).error == [
            "AdapterError",
            "the adapter of 'toy' breaks its contract: pending() returned ['c1']; expected Requests",
        ]

    def test_an_agent_that_cannot_be_built_breaks_the_run(self, story: Story, played: Played) -> None:
        """A journal begins with its header and says why, also where no agent came to life."""
        run = played(story(), agent=CannotBuild)

        assert ["header", "run.end"] == [event.kind for event in run.events]
        assert ["ImportError", "its framework is not here"] == last(run).error


class TestState:
    def test_a_save_that_fails_leaves_the_agent_alive(self, story: Story, played: Played) -> None:
        """If the state cannot be written, that is recorded and the story continues with the living agent."""
        run = played(story(), Variant(serialize="json", source="restored"), agent=CannotSave)

        errors = [event.error for event in run.events if event.kind == "store.save"]  # type: ignore[attr-defined]
        assert ["TypeError", "not serializable"] == errors[0]
        assert "Done." == run.output

    def test_a_state_that_cannot_be_restored_ends_the_story(self, story: Story, played: Played) -> None:
        """If a save cannot be restored, that is recorded and nothing more is played."""
        run = played(story(), Variant(serialize="json", source="restored"), agent=CannotLoad)

        restored = [event for event in run.events if event.kind == "store.restore"]
        assert [["ValueError", "unknown version"]] == [event.error for event in restored]  # type: ignore[attr-defined]
        assert "completed" == last(run).how
        assert run.output is None

    @pytest.mark.parametrize("mode", ["none", "copy", "json", "native.sqlite"])
    def test_every_mode_ends_alike(self, story: Story, played: Played, mode: str) -> None:
        """What the state goes through makes no difference to the reference agent."""
        source = "held" if mode == "none" else "restored"

        assert "Done." == played(story(), Variant(serialize=mode, source=source)).output


class TestInterrupt:
    def test_an_interrupt_leaves_a_readable_journal(self, story: Story, played: Played, tmp_path: Any) -> None:
        """Ctrl-C ends the run at once, and the journal is whole and says so."""
        path = tmp_path / "run.jsonl"

        with pytest.raises(KeyboardInterrupt):
            played(story(), agent=Interrupts, journal=Journal(path))

        stored = read_journal(path)
        assert stored.complete
        assert ("run.end", "interrupted") == (stored.events[-1].kind, stored.events[-1].how)  # type: ignore[attr-defined]


class TestLoops:
    def test_a_run_needs_no_loop_of_its_own(self, story: Story) -> None:
        """Runs play side by side inside a running event loop without disturbing each other."""
        source = InProcessSource(name="reference", adapter=ReferenceAgent, facts=describe_adapter(ReferenceAgent))

        async def many() -> list[Any]:
            runs = (run_scenario(story(id=f"tests/story-{number}"), Variant(), source) for number in range(5))
            return [run.output for run in await asyncio.gather(*runs)]

        assert ["Done."] * 5 == asyncio.run(many())

    def test_the_same_run_gives_the_same_journal(self, story: Story, played: Played) -> None:
        """Nothing in a journal depends on time or chance."""
        first, second = (played(story(), Variant(serialize="json", source="restored")) for _ in range(2))

        assert [event.to_dict() for event in first.events] == [event.to_dict() for event in second.events]


class Blocks(ReferenceAgent):
    """An agent that never gives the event loop back."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        while True:
            pass


class SlowToBuild(ReferenceAgent):
    """An agent whose framework takes its time to import."""

    def __init__(self, *args: Any) -> None:
        end = time.perf_counter() + 0.2
        while time.perf_counter() < end:
            pass
        super().__init__(*args)


class Works(ReferenceAgent):
    """An agent that needs the processor for 0.2 s in each turn."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        began = time.thread_time()
        while time.thread_time() < began + 0.2:  # noqa: ASYNC110 -- it works, and lets the event loop turn
            await asyncio.sleep(0)
        return await super().turn(text, decisions, stream=stream)


@dataclass(frozen=True, kw_only=True)
class SlowSource(InProcessSource):
    """A source of agents that waits before it builds one, as for a process that starts."""

    async def build(self, world: World, blueprint: Blueprint) -> Agent:
        await asyncio.sleep(0.3)
        return await super().build(world, blueprint)


class TestPatience:
    def test_a_limit_does_not_depend_on_the_load(self, story: Story, played: Played, shared_processor: None) -> None:
        """An agent that takes 0.4 s keeps within a limit of 1 s also where that takes it 2 s."""
        began = time.monotonic()
        run = played(story(), agent=Works, limit=RunLimits(seconds=1.0))

        assert "completed" == last(run).how
        assert time.monotonic() > began + 1.0

    @pytest.mark.timeout(0)
    def test_blocking_does_not_depend_on_the_load(self, shared_processor: None) -> None:
        """Code that holds the event loop for 0.5 s may do so within a limit of 1 s, also where it takes 2.5 s."""

        async def calculate() -> str:
            with watchdog(1.0):
                began = time.thread_time()
                while time.thread_time() < began + 0.5:
                    pass
                return "over"

        assert "over" == asyncio.run(calculate())

    def test_a_start_longer_than_the_limit_does_not_end_the_run(self, story: Story) -> None:
        """Waiting for a process that is to be built ends no run, though it takes longer than the run may."""
        source = SlowSource(name="slow", adapter=ReferenceAgent, facts=describe_adapter(ReferenceAgent))
        run = asyncio.run(run_scenario(story(), Variant(), source, limit=RunLimits(seconds=0.2)))

        assert "completed" == last(run).how

    @pytest.mark.timeout(0)
    def test_an_agent_that_blocks_is_stopped(self, story: Story, played: Played) -> None:
        """An agent that holds the event loop is interrupted, and the journal says that it did."""
        run = played(story(), agent=Blocks, limit=RunLimits(seconds=0.05))

        assert ("timeout", "AgentBlocks") == (last(run).how, (last(run).error or [""])[0])

    def test_an_event_loop_that_waits_is_left_in_peace(self) -> None:
        """As for a process that is slow to start: nobody holds the loop, so there is nobody to interrupt."""

        async def waits() -> str:
            with watchdog(0.02):
                over = asyncio.Event()
                asyncio.get_running_loop().call_later(0.1, over.set)
                await over.wait()
                return "over"

        assert "over" == asyncio.run(waits())

    def test_building_an_agent_takes_no_time_of_the_run(self, story: Story, played: Played) -> None:
        """The time limit is for what the agent does, not for importing its framework."""
        run = played(
            story(), Variant(serialize="json", source="restored"), agent=SlowToBuild, limit=RunLimits(seconds=0.15)
        )

        assert "completed" == last(run).how


class EntersBodiesThatAsked(ReferenceAgent):
    """An agent that enters the body of a waiting call with each turn, as one does that runs its calls anew."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        for call in self.state.main.calls:
            if not decisions and call.stage == "waiting":
                self.approve_call(call)
        return await super().turn(text, decisions, stream=stream)


@pytest.mark.parametrize(
    ("steps", "ends"),
    [("- go_on: true\n- decide: {c1: approve}", ["asked", "asked", "returned"]), ("- go_on: true", ["asked"] * 2)],
)
def test_a_body_asks_until_somebody_answers(steps: str, ends: list[str]) -> None:
    """That it is entered again is no answer to what it has asked."""
    scenario = parse_scenario(
        f"""
title: Read
tools:
  read: {{asks_again: "Really?", returns: text}}
model:
- calls: [{{id: c1, tool: read}}]
- say: Done.
caller:
- send: Read
{steps}
- leave: true
""",
        name="policies/asks",
        path="asks.approval.yaml",
    )
    source = InProcessSource(
        name="reference", adapter=EntersBodiesThatAsked, facts=describe_adapter(EntersBodiesThatAsked)
    )
    run = asyncio.run(run_scenario(scenario, Variant(), source, limit=RunLimits(seconds=10.0)))

    assert ends == [event.how for event in run.events if isinstance(event, ToolEnd)]


def test_a_call_that_is_changed_to_another_tool_behaves_as_that() -> None:
    """What the scenario says of the tool that the model called is not said of the other one."""
    scenario = parse_scenario(
        """
title: Tag
tools:
  wire: {approval: always, asks_again: "Really?", returns: sent}
  tag: {approval: always, returns: tagged}
model:
- calls: [{id: c1, tool: wire}]
- say: Done.
caller:
- send: Wire
- decide: {c1: {edit: {}, tool: tag}}
""",
        name="policies/changed",
        path="changed.approval.yaml",
    )
    source = InProcessSource(name="reference", adapter=ReferenceAgent, facts=describe_adapter(ReferenceAgent))
    run = asyncio.run(run_scenario(scenario, Variant(), source, limit=RunLimits(seconds=10.0)))

    assert ["tagged"] == [event.result for event in run.events if isinstance(event, ToolEnd)]
