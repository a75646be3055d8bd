"""Whole runs over the host: the run loop, the reference agent in other processes, and journals that do not show it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from toy_agent import Toy

import pytest_approvals
from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agent_side.contract.types import Blueprint, Condition, Parameter
from pytest_approvals.journal.events import AgentLost, AgentStart, CloseTimeout, RunEnd, ToolEnd, TurnEnd
from pytest_approvals.processes.agent_process import ProcessTimeouts
from pytest_approvals.processes.agent_source import AgentSource, InProcessSource
from pytest_approvals.processes.process_pool import ProcessPool
from pytest_approvals.processes.remote_agents import SharedProcessSource, SubprocessFactory
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import (
    Call,
    RestartStep,
    Scenario,
    Script,
    ScriptedDecision,
    ScriptedReply,
    Tool,
    ToolBehaviour,
    TurnStep,
    Variant,
)
from pytest_approvals.simulation.reference import ReferenceAgent

pytestmark = pytest.mark.timeout(30)

PAY = Tool(
    name="pay",
    parameters={"amount": Parameter(type="integer")},
    approval=Condition(argument="amount", answers=(True, False)),
    behaviours=(ToolBehaviour(returns="paid {amount}"),),
)


def pays(*amounts: int) -> ScriptedReply:
    calls = (Call(label=f"c{amount}", id=f"c{amount}", tool="pay", arguments={"amount": amount}) for amount in amounts)
    return ScriptedReply(calls=tuple(calls))


def story(**parts: Any) -> Scenario:
    """Two payments behind a policy that changes its mind, one approved and one rejected; then a message."""
    caller = (
        TurnStep(text="Pay."),
        TurnStep(answers=(ScriptedDecision(label="c5"), ScriptedDecision(label="c6", verdict="reject", reason="no"))),
        TurnStep(text="And now?"),
    )
    replies = (pays(5, 6), ScriptedReply(say="Paid."), ScriptedReply(say="Nothing."))
    defaults: dict[str, Any] = {"tools": (PAY,), "agents": {"main": Script(replies=replies)}, "caller": caller}
    return Scenario(id="tests/story", title="A story.", **(defaults | parts))


def here(pool: ProcessPool) -> AgentSource:
    return InProcessSource(
        name="reference", adapter=ReferenceAgent, facts=describe_adapter(ReferenceAgent), elsewhere=elsewhere(pool)
    )


def elsewhere(pool: ProcessPool, agent: type[Agent] = ReferenceAgent) -> SubprocessFactory:
    return SubprocessFactory(agent=f"{agent.__module__}:{agent.__qualname__}", pool=pool)


async def there(pool: ProcessPool) -> AgentSource:
    source = SharedProcessSource("reference", elsewhere(pool))
    await source.fetch_facts()
    return source


async def run_there(pool: ProcessPool, variant: Variant) -> RecordedRun:
    return await run_scenario(story(), variant, await there(pool))


class OwnProcesses:
    """Builds every agent in a process of its own, which ends with it."""

    facts = describe_adapter(ReferenceAgent)
    gated = None

    def __init__(self, name: str, processes: SubprocessFactory) -> None:
        self.name = name
        self._processes = processes

    async def build(self, world: World, blueprint: Blueprint) -> Agent:
        return await self.build_fresh(world, blueprint, cold=False)

    async def build_fresh(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        return await self._processes.build(world, blueprint, cold=cold)


def broken(pool: ProcessPool, name: str) -> AgentSource:
    return OwnProcesses(name, SubprocessFactory(agent=f"toy_broken:{name}", pool=pool))


def written(run: RecordedRun) -> list[dict[str, Any]]:
    """The journal, but for the numbers of processes and the folder of the adapter."""
    return [
        {name: held for name, held in event.to_dict().items() if name not in ("process", "where")}
        for event in run.events
    ]


VARIANTS = [
    Variant(),
    Variant(stream=True),
    Variant(serialize="copy", source="restored"),
    Variant(serialize="json", source="rebuilt"),
    Variant(serialize="json", source="restored", stream=True),
    Variant(serialize="json", source="held"),
    Variant(serialize="json", source="restored", resume="fresh"),
    Variant(serialize="json", source="restored", resume="cold"),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.id)
def test_a_run_behind_the_host_is_recorded_as_one_in_this_process(pool: ProcessPool, variant: Variant) -> None:
    """Event by event; policies that change their mind and sources of answers included."""
    scenario = story()
    expected = asyncio.run(run_scenario(scenario, variant, here(pool)))

    assert written(expected) == written(asyncio.run(run_there(pool, variant)))
    assert RunEnd(n=len(expected.events)) == expected.events[-1]


@pytest.mark.parametrize("resume", ["fresh", "cold"])
def test_a_fresh_run_goes_through_several_processes(pool: ProcessPool, resume: Any) -> None:
    """Each time the agent is built anew, in one that was never there before."""
    variant = Variant(serialize="json", source="restored", resume=resume)
    run = asyncio.run(run_scenario(story(), variant, here(pool)))
    starts = [event for event in run.events if isinstance(event, AgentStart)]

    assert ["built", resume, resume] == [start.how for start in starts]
    assert [None, 1, 2] == [start.process for start in starts]


def test_a_step_of_the_story_can_ask_for_a_fresh_process(pool: ProcessPool) -> None:
    """If the variant stays in the same one."""
    caller = (
        TurnStep(text="Pay."),
        RestartStep(fresh=True),
        TurnStep(answers=(ScriptedDecision(label="c5"), ScriptedDecision(label="c6"))),
    )
    run = asyncio.run(run_scenario(story(caller=caller), Variant(serialize="json", source="restored"), here(pool)))

    assert ["built", "fresh"] == [event.how for event in run.events if isinstance(event, AgentStart)][:2]
    assert ["paid 5", "paid 6"] == [event.result for event in run.events if isinstance(event, ToolEnd)]


def test_an_agent_that_dies_is_an_event_of_the_run(pool: ProcessPool) -> None:
    """With how it died and its last words; the run is broken, which is nobody's verdict about a requirement."""
    run = asyncio.run(run_scenario(story(), Variant(), broken(pool, "Dies")))
    lost = next(event for event in run.events if isinstance(event, AgentLost))

    assert "last words\n" == lost.stderr
    assert "`turn` was not answered: its process ended (exit code 3)" in lost.what
    assert ["HostError"] == [event.error[0] for event in run.events if isinstance(event, TurnEnd) and event.error]
    assert "broken" == run.events[-1].to_dict()["how"]


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "own"])
def test_a_close_that_blocks_its_process_is_bounded_by_the_time_limit(shared: bool) -> None:
    """Whether the process serves one run or many: it is ended, and the run says that its agent did not close."""
    pool = ProcessPool(ProcessTimeouts(start=20, stop=0.2, end=0.2))
    processes = SubprocessFactory(agent="toy_broken:BlocksInClose", pool=pool)
    source = SharedProcessSource("toy", processes) if shared else OwnProcesses("toy", processes)

    async def play() -> list[RecordedRun]:
        if isinstance(source, SharedProcessSource):
            await source.fetch_facts()
        return [await run_scenario(story(), Variant(), source, limit=RunLimits(seconds=1)) for _ in range(2)]

    runs = asyncio.run(play())

    said = ["its close() did not return within 1 s"] * 2
    assert said == [event.what for run in runs for event in run.events if isinstance(event, CloseTimeout)]
    started = [process.pid for process in pool._processes.values()]
    pool.close_now()
    assert [] == [pid for pid in started if Path(f"/proc/{pid}").exists()]


@pytest.mark.parametrize(
    ("name", "seconds", "events"),
    [("BlocksInClose", 1.5, ["CloseTimeout"]), ("AnswersSlowly", 15, [])],
    ids=["close", "turn"],
)
def test_a_run_may_take_longer_than_a_process_to_answer(name: str, seconds: float, events: list[str]) -> None:
    """The time limit of the run counts, be it longer than the one of all other calls between processes."""
    pool = ProcessPool(ProcessTimeouts(start=20, answer=0.5, stop=0.2, end=0.2))
    source = OwnProcesses("toy", SubprocessFactory(agent=f"toy_broken:{name}", pool=pool))
    run = asyncio.run(run_scenario(story(), Variant(), source, limit=RunLimits(seconds=seconds)))
    pool.close_now()

    assert "completed" == next(event.how for event in run.events if isinstance(event, RunEnd))
    assert events == [type(event).__name__ for event in run.events if isinstance(event, CloseTimeout | AgentLost)]


def test_agents_in_several_processes_close_at_the_same_time() -> None:
    """Each that is restored has one; in turn, they would take longer than the run may."""
    pool = ProcessPool(ProcessTimeouts(start=20, stop=0.2, end=0.2))
    source = OwnProcesses("toy", SubprocessFactory(agent="toy_broken:ClosesSlowly", pool=pool))
    variant = Variant(serialize="json", source="restored")
    run = asyncio.run(run_scenario(story(), variant, source, limit=RunLimits(seconds=3)))
    pool.close_now()

    assert 3 == len([event for event in run.events if isinstance(event, AgentStart)])
    assert [] == [event for event in run.events if isinstance(event, CloseTimeout)]


def test_an_agent_that_hangs_is_ended_with_its_run() -> None:
    """The run's own time limit comes first; nothing of the process is left."""
    pool = ProcessPool(ProcessTimeouts(start=20, end=0.2))
    run = asyncio.run(run_scenario(story(), Variant(), broken(pool, "Hangs"), limit=RunLimits(seconds=1)))

    assert "timeout" == run.events[-1].to_dict()["how"]
    assert [] == [process.pid for process in pool._processes.values() if Path(f"/proc/{process.pid}").exists()]
    pool.close_now()


def test_many_runs_at_once_share_a_process(pool: ProcessPool) -> None:
    """One loop, one source; each run has its own sessions."""

    async def runs() -> list[RecordedRun]:
        source = await there(pool)
        return await asyncio.gather(*[run_scenario(story(), Variant(serialize="json"), source) for _ in range(10)])

    several = asyncio.run(runs())
    assert 1 == len({str(written(run)) for run in several})


TESTS = """
import asyncio, pytest
from pytest_approvals.processes.remote_agents import SharedProcessSource, SubprocessFactory
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.scenario.model import Scenario, Script, ScriptedReply, Variant

SCENARIO = Scenario(id="x/y", title="A story.", agents={"main": Script(replies=(ScriptedReply(say="Hello."),))})

@pytest.mark.parametrize("number", range(6))
def test_run(number):
    processes = SubprocessFactory(agent="pytest_approvals.simulation.reference:ReferenceAgent")
    source = SharedProcessSource("reference", processes)

    async def run_there():
        await source.fetch_facts()
        return await run_scenario(SCENARIO, Variant(), source)

    run = asyncio.run(run_there())
    assert "Hello." == run.output
    warm = next(iter(processes.pool._warm.values()))
    with open("pids", "a") as pids:
        pids.write(f"{warm._child.pid}\\n")
"""


def test_workers_of_xdist_have_hosts_of_their_own(tmp_path: Path) -> None:
    """They start them, share them among their tests, and leave none behind."""
    (tmp_path / "test_runs.py").write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:approvals", "-p", "no:cacheprovider", "."]
    path = str(Path(pytest_approvals.__file__).parents[1])
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    pids = set((tmp_path / "pids").read_text(encoding="utf-8").split())

    assert "6 passed" in done.stdout, done.stdout + done.stderr
    assert 2 == len(pids)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_a_request_held_from_another_process_counts_as_rebuilt_in_this_one(pool: ProcessPool) -> None:
    """Its object stayed there, and what stands for it is nothing to an agent here."""
    agents = {"main": Script(replies=(ScriptedReply(say="Hello."), pays(5), ScriptedReply(say="Paid.")))}
    caller = (
        TurnStep(text="Hello."),
        RestartStep(fresh=True),
        TurnStep(text="Pay."),
        TurnStep(answers=(ScriptedDecision(label="c5", source="held"),)),
    )
    toy = SubprocessFactory(agent="toy_agent:Toy", pool=pool)
    source = InProcessSource(name="toy", adapter=Toy, facts=describe_adapter(Toy), elsewhere=toy)
    scenario = story(agents=agents, caller=caller)
    run = asyncio.run(run_scenario(scenario, Variant(serialize="json", source="restored"), source))

    assert ["finished", "paused", "finished"] == [event.outcome for event in run.events if isinstance(event, TurnEnd)]
