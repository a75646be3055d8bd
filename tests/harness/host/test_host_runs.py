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
from pytest_approvals.agent_side.conditions import Condition
from pytest_approvals.agent_side.contract import Agent
from pytest_approvals.agent_side.neutral import Parameter
from pytest_approvals.harness.elsewhere import BehindTheHost, OtherProcesses
from pytest_approvals.harness.host import HostPool
from pytest_approvals.harness.play import Limit
from pytest_approvals.harness.process import Patience
from pytest_approvals.harness.run import Run, run_scenario
from pytest_approvals.harness.sources import AgentSource, InThisProcess, facts_of
from pytest_approvals.journal.events import AgentLost, AgentStart, RunEnd, ToolEnd, TurnEnd
from pytest_approvals.scenario.parts import (
    Answer,
    Behaviour,
    Call,
    Reply,
    Restart,
    Scenario,
    Script,
    Tool,
    Turn,
    Variant,
)
from pytest_approvals.simulation.reference import ReferenceAgent

pytestmark = pytest.mark.timeout(30)

PAY = Tool(
    name="pay",
    parameters={"amount": Parameter(type="integer")},
    approval=Condition(argument="amount", answers=(True, False)),
    behaviours=(Behaviour(returns="paid {amount}"),),
)


def pays(*amounts: int) -> Reply:
    calls = (Call(label=f"c{amount}", id=f"c{amount}", tool="pay", arguments={"amount": amount}) for amount in amounts)
    return Reply(calls=tuple(calls))


def story(**parts: Any) -> Scenario:
    """Two payments behind a policy that changes its mind, one approved and one rejected; then a message."""
    caller = (
        Turn(text="Pay."),
        Turn(answers=(Answer(label="c5"), Answer(label="c6", verdict="reject", reason="no"))),
        Turn(text="And now?"),
    )
    replies = (pays(5, 6), Reply(say="Paid."), Reply(say="Nothing."))
    defaults: dict[str, Any] = {"tools": (PAY,), "agents": {"main": Script(replies=replies)}, "caller": caller}
    return Scenario(id="tests/story", title="A story.", **(defaults | parts))


def here(pool: HostPool) -> AgentSource:
    return InThisProcess(
        name="reference", adapter=ReferenceAgent, facts=facts_of(ReferenceAgent), elsewhere=elsewhere(pool)
    )


def elsewhere(pool: HostPool, agent: type[Agent] = ReferenceAgent) -> OtherProcesses:
    return OtherProcesses(agent=f"{agent.__module__}:{agent.__qualname__}", pool=pool)


def there(pool: HostPool) -> AgentSource:
    return BehindTheHost("reference", facts_of(ReferenceAgent), elsewhere(pool))


def broken(pool: HostPool, name: str) -> AgentSource:
    return BehindTheHost(name, facts_of(ReferenceAgent), OtherProcesses(agent=f"toy_broken:{name}", pool=pool))


def written(run: Run) -> list[dict[str, Any]]:
    """The journal, but for the numbers of processes."""
    return [{name: held for name, held in event.to_dict().items() if name != "process"} for event in run.events]


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
def test_a_run_behind_the_host_is_recorded_as_one_in_this_process(pool: HostPool, variant: Variant) -> None:
    """Event by event; policies that change their mind and sources of answers included."""
    scenario = story()
    expected = asyncio.run(run_scenario(scenario, variant, here(pool)))

    assert written(expected) == written(asyncio.run(run_scenario(scenario, variant, there(pool))))
    assert RunEnd(n=len(expected.events)) == expected.events[-1]


@pytest.mark.parametrize("resume", ["fresh", "cold"])
def test_a_fresh_run_goes_through_several_processes(pool: HostPool, resume: Any) -> None:
    """Each time the agent is built anew, in one that was never there before."""
    variant = Variant(serialize="json", source="restored", resume=resume)
    run = asyncio.run(run_scenario(story(), variant, here(pool)))
    starts = [event for event in run.events if isinstance(event, AgentStart)]

    assert ["built", resume, resume] == [start.how for start in starts]
    assert [None, 1, 2] == [start.process for start in starts]


def test_a_step_of_the_story_can_ask_for_a_fresh_process(pool: HostPool) -> None:
    """Where the variant stays in the same one."""
    caller = (Turn(text="Pay."), Restart(fresh=True), Turn(answers=(Answer(label="c5"), Answer(label="c6"))))
    run = asyncio.run(run_scenario(story(caller=caller), Variant(serialize="json", source="restored"), here(pool)))

    assert ["built", "fresh"] == [event.how for event in run.events if isinstance(event, AgentStart)][:2]
    assert ["paid 5", "paid 6"] == [event.result for event in run.events if isinstance(event, ToolEnd)]


def test_an_agent_that_dies_is_an_event_of_the_run(pool: HostPool) -> None:
    """With how it died and its last words; the run is broken, which is nobody's verdict about a requirement."""
    run = asyncio.run(run_scenario(story(), Variant(), broken(pool, "Dies")))
    lost = next(event for event in run.events if isinstance(event, AgentLost))

    assert "last words\n" == lost.stderr
    assert "`turn` was not answered: its process ended (exit code 3)" in lost.what
    assert ["HostError"] == [event.error[0] for event in run.events if isinstance(event, TurnEnd) and event.error]
    assert "broken" == run.events[-1].to_dict()["how"]


def test_an_agent_that_hangs_is_ended_with_its_run() -> None:
    """The run's own time limit comes first; nothing of the process is left."""
    pool = HostPool(Patience(start=20, end=0.2))
    run = asyncio.run(run_scenario(story(), Variant(), broken(pool, "Hangs"), limit=Limit(seconds=1)))

    assert "timeout" == run.events[-1].to_dict()["how"]
    assert [] == [process.pid for process in pool._processes.values() if Path(f"/proc/{process.pid}").exists()]
    pool.close_now()


def test_many_runs_at_once_share_a_process(pool: HostPool) -> None:
    """One loop, one source; each run has its own sessions."""

    async def runs() -> list[Run]:
        source = there(pool)
        return await asyncio.gather(*[run_scenario(story(), Variant(serialize="json"), source) for _ in range(10)])

    several = asyncio.run(runs())
    assert 1 == len({str(written(run)) for run in several})


TESTS = """
import asyncio, pytest
from pytest_approvals.harness.elsewhere import BehindTheHost, OtherProcesses
from pytest_approvals.harness.run import run_scenario
from pytest_approvals.harness.sources import facts_of
from pytest_approvals.scenario.parts import Reply, Scenario, Script, Variant
from pytest_approvals.simulation.reference import ReferenceAgent

SCENARIO = Scenario(id="x/y", title="A story.", agents={"main": Script(replies=(Reply(say="Hello."),))})

@pytest.mark.parametrize("number", range(6))
def test_run(number):
    processes = OtherProcesses(agent="pytest_approvals.simulation.reference:ReferenceAgent")
    source = BehindTheHost("reference", facts_of(ReferenceAgent), processes)
    run = asyncio.run(run_scenario(SCENARIO, Variant(), source))
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


def test_a_request_held_from_another_process_counts_as_rebuilt_in_this_one(pool: HostPool) -> None:
    """Its object stayed there, and what stands for it is nothing to an agent here."""
    agents = {"main": Script(replies=(Reply(say="Hello."), pays(5), Reply(say="Paid.")))}
    caller = (
        Turn(text="Hello."),
        Restart(fresh=True),
        Turn(text="Pay."),
        Turn(answers=(Answer(label="c5", source="held"),)),
    )
    toy = OtherProcesses(agent="toy_agent:Toy", pool=pool)
    source = InThisProcess(name="toy", adapter=Toy, facts=facts_of(Toy), elsewhere=toy)
    scenario = story(agents=agents, caller=caller)
    run = asyncio.run(run_scenario(scenario, Variant(serialize="json", source="restored"), source))

    assert ["finished", "paused", "finished"] == [event.outcome for event in run.events if isinstance(event, TurnEnd)]
