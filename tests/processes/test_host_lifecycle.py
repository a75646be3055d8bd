"""Agent processes come and go: on whatever interpreter and event loop, and never later than the harness."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from toy_world import BLUEPRINT, ToyWorld, pays, says

import pytest_approvals
from pytest_approvals.agent_side.contract import Decision, Finished, ToolRaised
from pytest_approvals.errors import AgentUnavailable, HostError
from pytest_approvals.processes.agent_process import AgentProcess, ProcessTimeouts
from pytest_approvals.processes.launchers import AGENT_SIDE_FOLDER, PythonLauncher
from pytest_approvals.processes.process_pool import ProcessPool
from pytest_approvals.processes.remote_agents import RemoteAgent

HERE = Path(__file__).parent
TOY = "toy_agent:Toy"

pytestmark = pytest.mark.timeout(30)

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment of processes")


@pytest.fixture
def own_pool() -> Iterator[ProcessPool]:
    pool = ProcessPool(ProcessTimeouts(start=20, answer=5, end=1))
    yield pool
    pool.close_now()


async def pay(process: AgentProcess) -> str:
    """Has the toy pay once, with approval."""
    world = ToyWorld(pays(5), says("Done."))
    agent = await RemoteAgent.build(process, world, BLUEPRINT)
    paused = await agent.turn("Pay.", (), stream=False)
    decisions = [Decision(request=request, verdict="approve") for request in paused.requests]
    finished = await agent.turn(None, decisions, stream=False)
    await agent.close()
    return str(finished.output)


def runs(pid: int) -> bool:
    """Return whether that process runs; one that waits for its parent to reap it does not."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False


def harness(*words: str) -> tuple[subprocess.Popen[str], list[int]]:
    """Start a harness of its own, and return it with the numbers of its processes."""
    path = os.pathsep.join([str(HERE), str(Path(pytest_approvals.__file__).parents[1])])
    child = subprocess.Popen(
        [sys.executable, str(HERE / "harness_script.py"), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert child.stdout is not None
    return child, [int(word) for word in child.stdout.readline().split()]


@pytest.mark.parametrize(
    ("end", "state"),
    [
        ("killed", "idle"),
        ("killed", "spins"),
        ("killed", "stopped"),
        ("killed", "warming"),
        pytest.param("killed", "daemons", marks=ON_LINUX),
        pytest.param("returns", "daemons", marks=ON_LINUX),
        ("interrupted", "spins"),
        ("returns", "idle"),
        ("returns", "warming"),
        ("raises", "idle"),
    ],
)
def test_nothing_outlives_the_harness(state: str, end: str) -> None:
    """Whether it is killed, gets a Ctrl-C, or forgets to close anything; and however busy the processes are.

    Those that were stopped by a signal cannot notice anything, and are continued or killed. On Linux, those are found
    that have left the group of their agent.
    """
    child, processes = harness(state, end if end in ("returns", "raises") else "stays")
    with child:
        if end in ("killed", "interrupted"):
            child.send_signal(signal.SIGKILL if end == "killed" else signal.SIGINT)
        child.communicate()

    assert {"warming": 1, "daemons": 5}.get(state, 3) == len(processes)
    while any(runs(pid) for pid in processes):  # within the time limit of the test
        time.sleep(0.01)


def test_one_pool_serves_one_event_loop_after_the_other(own_pool: ProcessPool) -> None:
    """The warm process is the same; an agent process that was left behind by its loop is ended."""
    left: list[AgentProcess] = []

    async def run() -> str:
        left.append(await own_pool.start_fresh(TOY))
        return await pay(await own_pool.start_fresh(TOY))

    assert ["Done.", "Done."] == [asyncio.run(run()) for _ in range(2)]
    assert 1 == len(own_pool._warm)
    assert not runs(left[0].pid or 0)


def test_many_processes_at_the_same_time(own_pool: ProcessPool) -> None:
    """They are asked for before there is a warm one, and all come."""

    async def run() -> list[str]:
        return await asyncio.gather(*[pay(await process) for process in [own_pool.start_fresh(TOY) for _ in range(10)]])

    assert ["Done."] * 10 == asyncio.run(run())


def test_the_least_used_warm_processes_are_ended() -> None:
    """Unless a process that was forked from them is still there."""
    pool = ProcessPool(ProcessTimeouts(end=1), max_warm=1)

    async def run() -> None:
        used = await pool.start_fresh(TOY)
        pool.warm_up("toy_agent:Attached")
        idle = pool.warm_up("toy_broken:Prints")
        assert [TOY, "toy_broken:Prints"] == [agent for agent, _ in pool._warm]
        await used.end()
        pool.warm_up("toy_agent:Attached")
        assert ["toy_agent:Attached"] == [agent for agent, _ in pool._warm]
        assert idle.is_gone

    asyncio.run(run())
    pool.close_now()


def test_a_closed_pool_can_be_used_again(own_pool: ProcessPool) -> None:
    """It starts from nothing then."""

    async def run() -> str:
        done = await pay(await own_pool.start_fresh(TOY))
        await own_pool.close()
        return done

    assert ["Done.", "Done."] == [asyncio.run(run()) for _ in range(2)]


def test_an_interpreter_that_is_not_there_is_unavailable(own_pool: ProcessPool) -> None:
    """Whether a warm or a cold process is wanted."""
    environment = PythonLauncher(python="no-such-python")
    for start in (own_pool.start_fresh, own_pool.start_cold):
        with pytest.raises(AgentUnavailable, match="no-such-python cannot be started"):
            asyncio.run(start(TOY, environment))


def test_something_that_is_no_agent_process_is_a_host_error(own_pool: ProcessPool, tmp_path: Path) -> None:
    """It ends or sends garbage, and both are said."""
    (tmp_path / "hello.py").write_text("print('hello')")
    (tmp_path / "breaks.py").write_text("import no_such_module")
    with pytest.raises(HostError, match="`hello` was not answered: it sent a line that is not a message: hello"):
        asyncio.run(own_pool.start_cold("any", PythonLauncher(agent_side=str(tmp_path / "hello.py"))))
    with pytest.raises(HostError, match=r"(?s)ended \(exit code 1\); .*No module named 'no_such"):
        asyncio.run(own_pool.start_cold("any", PythonLauncher(agent_side=str(tmp_path / "breaks.py"))))


def interpreter(version: str) -> str:
    """Find an interpreter of that version on this machine, or skip the test."""
    beside_this_one = sorted(Path(sys.base_prefix).parent.glob(f"{version}*/bin/python{version}"))
    for found in filter(None, (shutil.which(f"python{version}"), *beside_this_one)):
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        printed = subprocess.run([found, "-c", code], capture_output=True, text=True, check=False).stdout
        if printed.strip() == version:
            return str(found)
    pytest.skip(f"Python {version} is not on this machine")


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_the_agent_side_runs_from_a_copy_on_every_python(own_pool: ProcessPool, tmp_path: Path, version: str) -> None:
    """Nothing else of the package is there; names and imports of adapters are the same as here."""
    copied = shutil.copytree(
        AGENT_SIDE_FOLDER, tmp_path / "copied", ignore=shutil.ignore_patterns("__pycache__", "adapters")
    )
    environment = PythonLauncher(python=interpreter(version), agent_side=str(copied), path=(str(HERE),))

    async def run() -> list[str]:
        return [await pay(await start(TOY, environment)) for start in (own_pool.start_fresh, own_pool.start_cold)]

    assert ["Done.", "Done."] == asyncio.run(run())


def test_a_copy_is_not_mixed_with_the_package_that_is_installed(own_pool: ProcessPool, tmp_path: Path) -> None:
    """The agent's side is all that a process gets to see of the package, and none of it as top-level modules."""
    copied = shutil.copytree(AGENT_SIDE_FOLDER, tmp_path / "copied", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "prying.py").write_text(
        "import sys\n"
        "from importlib.util import find_spec\n"
        "import pytest_approvals.agent_side as side\n"
        "raise ImportError([side.__file__, find_spec('pytest_approvals.errors'), find_spec('wire')])\n"
    )
    environment = PythonLauncher(agent_side=str(copied), path=(str(tmp_path),))
    with pytest.raises(AgentUnavailable) as caught:
        asyncio.run(own_pool.start_cold("prying:Toy", environment))

    assert f"[{str(copied / '__init__.py')!r}, None, None]" in str(caught.value)


@pytest.mark.parametrize(
    "command", [[AGENT_SIDE_FOLDER], ["-m", "pytest_approvals.agent_side"]], ids=["folder", "module"]
)
def test_the_agent_side_can_be_driven_by_hand(command: list[str]) -> None:
    """Over any pipe: lines in, lines out; it ends when nothing more comes in."""
    lines = (
        b'{"id": 1, "m": "hello", "p": {"protocol": 1, "process": 1, "agent": "toy_agent:Toy"}}\n'
        b'{"id": 2, "m": "build", "p": {"session": 1, "blueprint": {}}}\n'
        b'{"id": 3, "m": "dump", "p": {"session": 1}}\n'
        b'{"id": 4, "m": "x", "p": {}}\n'
    )
    path = os.pathsep.join([str(HERE), str(Path(pytest_approvals.__file__).parents[1])])
    done = subprocess.run(
        [sys.executable, *command], input=lines, capture_output=True, check=True, env=os.environ | {"PYTHONPATH": path}
    )
    _, *answers = done.stdout.splitlines()

    assert [
        b'{"re":2,"ok":{}}',
        b'{"re":3,"ok":{"text":"{\\"messages\\": [], \\"open\\": []}"}}',
        b'{"re":4,"err":{"type":"BrokenContract","message":"unknown method \'x\'","of":"BrokenContract"}}',
    ] == answers


def test_an_agent_can_be_written_in_any_language(own_pool: ProcessPool) -> None:
    """One that knows the protocol from its description only is driven like any other."""
    environment = PythonLauncher(agent_side=str(HERE / "other_language.py"))

    async def no_money(amount: int) -> None:
        raise ToolRaised("no money")

    async def run() -> None:
        process = await own_pool.start_cold("other", environment)
        assert ("other", "0.1") == (process.facts.framework, process.facts.version)
        world = ToyWorld(pays(5, 50, tool="ask"), says("Done."), ask=no_money)
        first = await RemoteAgent.build(process, world, BLUEPRINT)
        assert BLUEPRINT.tools == first.tools()
        paused = await first.turn("Pay.", (), stream=False)
        second = await RemoteAgent.build(process, world, BLUEPRINT)
        await second.load([await first.dump()])
        assert paused.requests == await second.pending()
        decisions = [Decision(request=paused.requests[0], verdict="approve")]
        assert Finished(output="Done.") == await second.turn(None, decisions, stream=False)
        assert "failed: no money" == world.inputs[-1][-1].text
        with pytest.raises(Exception, match="'cancel'") as caught:
            await second.cancel()
        assert "KeyError" == type(caught.value).__name__
        await first.close()
        await second.close()

    asyncio.run(run())
