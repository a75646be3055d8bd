"""Agents in environments that uv really makes: somebody's own adapter, which needs nothing but Python."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_approvals.agents.cache_folder import CACHE_FOLDER_VARIABLE
from pytest_approvals.agents.launch import create_environment_source, resolve_recipe
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import AgentUnavailable, UnknownName
from pytest_approvals.journal.events import AgentStart, RunEnd
from pytest_approvals.processes import remote_agents
from pytest_approvals.processes.process_pool import ProcessPool
from pytest_approvals.processes.remote_agents import SharedProcessSource
from pytest_approvals.runner.event_loops import SessionLoop
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Variant

ADAPTER = '''
"""An agent that says nothing but `Done.`, of a framework that is a folder here."""
import os
from pytest_approvals.agent_side.contract.capabilities import CAPABILITIES
from pytest_approvals.agent_side.contract import Agent, Finished, Item

class Quiet(Agent):
    framework = "quiet-frame"
    packages = ("quiet_frame",)
    capabilities = frozenset({"serialize.json", "answer.restored", "fresh"})
    missing = dict.fromkeys(set(CAPABILITIES) - capabilities, "it only says something")

    async def turn(self, text, decisions, *, stream):
        import quiet_frame
        reply = await self.world.model([Item(kind="user", text=text)], tools=[])
        return Finished(output=quiet_frame.said(reply.say))

    async def pending(self):
        return ()

    async def dump(self):
        return str(os.getpid())

    async def load(self, parts):
        self.loaded = parts

FLAVOURS = {"": Quiet}
'''
PROJECT = """
[project]
name = "quiet-frame"
version = "3.1"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = '''
"""Builds wheels of this folder with nothing but Python, so that no network is needed."""
import zipfile
INFO = "quiet_frame-3.1.dist-info"
def _wheel(folder, files):
    name = "quiet_frame-3.1-py3-none-any.whl"
    meta = {
        f"{INFO}/METADATA": "Metadata-Version: 2.1\\nName: quiet-frame\\nVersion: 3.1\\n",
        f"{INFO}/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    record = "".join(f"{path},,\\n" for path in (*files, *meta, f"{INFO}/RECORD"))
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        for path, text in (files | meta | {f"{INFO}/RECORD": record}).items():
            wheel.writestr(path, text)
    return name
def build_wheel(folder, config_settings=None, metadata_directory=None):
    return _wheel(folder, {"quiet_frame.py": open("quiet_frame.py").read()})
def build_editable(folder, config_settings=None, metadata_directory=None):
    import os
    return _wheel(folder, {"quiet_frame.pth": os.getcwd()})
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with an adapter, and the checkout of its framework next to it."""
    folder = tmp_path_factory.mktemp("project")
    checkout = folder / "frame"
    checkout.mkdir()
    (folder / "quiet_adapter.py").write_text(ADAPTER)
    (checkout / "pyproject.toml").write_text(PROJECT)
    (checkout / "backend.py").write_text(BACKEND)
    (checkout / "quiet_frame.py").write_text("def said(text):\n    return f'{text} (quietly)'\n")
    return folder


@pytest.fixture
def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The project as current folder, with a cache of its own."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv(CACHE_FOLDER_VARIABLE, str(folder / "cache"))
    yield folder
    sys.modules.pop("quiet_adapter", None)
    sys.path[:] = [entry for entry in sys.path if entry != str(folder)]


@pytest.fixture
def loop() -> Iterator[SessionLoop]:
    """A loop that outlives runs."""
    loop = SessionLoop()
    yield loop
    loop.close()


@pytest.fixture
def pool() -> Iterator[ProcessPool]:
    """A pool of processes, all of which end."""
    pool = ProcessPool()
    yield pool
    pool.close_now()


@pytest.fixture
def source(project: Path, loop: SessionLoop, pool: ProcessPool) -> SharedProcessSource:
    """The agent in an environment with the checkout."""
    spec = AgentSpec.parse("quiet@frame")
    recipe = resolve_recipe(spec)
    assert recipe is not None
    source = create_environment_source(spec, recipe, progress=lambda line: None, pool=pool)
    loop.run(source.fetch_facts())
    return source


def played(source: SharedProcessSource, loop: SessionLoop, variant: Variant | None = None) -> RecordedRun:
    """Play the plainest scenario."""
    root = stock_folder()
    scenario = load_scenario(root / "basics" / "no-call-at-all.approval.yaml", root=root)
    return loop.run(run_scenario(scenario, variant or Variant(), source))


def starts(run: RecordedRun) -> list[AgentStart]:
    """Return the starts of agents in a run."""
    return [event for event in run.events if isinstance(event, AgentStart)]


def test_version_and_path_come_from_the_process(source: SharedProcessSource, folder: Path) -> None:
    """A checkout is imported from its own folder, in the version that it is."""
    facts = source.facts

    assert ("quiet-frame", "3.1", str(folder / "frame")) == (facts.framework, facts.version, facts.where)
    assert "fresh" in facts.capabilities


def test_many_runs_share_a_process(source: SharedProcessSource, loop: SessionLoop, pool: ProcessPool) -> None:
    """It was started for the facts; two runs later there is no other one."""
    runs = [played(source, loop), played(source, loop)]

    assert [("completed", None)] * 2 == [
        (end.how, end.error) for run in runs if isinstance(end := run.events[-1], RunEnd)
    ]
    assert runs[0].output.endswith("(quietly)")
    assert 1 == len(pool._processes)


def test_a_process_that_built_enough_is_replaced(
    source: SharedProcessSource, loop: SessionLoop, pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What agents leave in a process goes with it."""
    monkeypatch.setattr(remote_agents, "MAX_AGENTS_PER_PROCESS", 1)
    first = set(pool._processes)
    for _ in range(2):
        played(source, loop)

    assert first.isdisjoint(pool._processes)
    assert 1 == len(pool._processes)


def test_a_process_that_died_is_replaced(source: SharedProcessSource, loop: SessionLoop, pool: ProcessPool) -> None:
    """A run loses its agent; the next one has another."""
    [process] = pool._processes.values()
    assert process.pid is not None
    os.kill(process.pid, 9)
    lost, after = played(source, loop), played(source, loop)

    assert "completed" == after.events[-1].how  # type: ignore[attr-defined]
    assert isinstance(lost.events[-1], RunEnd)


def test_an_agent_that_is_not_here_is_unknown(project: Path) -> None:
    """The nearest name is suggested."""
    with pytest.raises(UnknownName, match="did you mean 'quiet'"):
        resolve_recipe(AgentSpec.parse("quite==1"))


def test_a_release_that_does_not_exist_is_reported_in_uvs_words(project: Path) -> None:
    """The reason is uv's own."""
    spec = AgentSpec.parse("quiet==99")
    recipe = resolve_recipe(spec)
    assert recipe is not None

    with pytest.raises(AgentUnavailable) as error:
        create_environment_source(spec, recipe, progress=lambda line: None)

    assert "uv cannot provide quiet-frame==99; " in str(error.value)
    assert "quiet-frame" in str(error.value).partition("uv says:")[2]


def test_without_a_release_and_without_the_framework_nothing_can_be_made(project: Path) -> None:
    """Somebody's own adapter has no pin."""
    with pytest.raises(AgentUnavailable) as error:
        resolve_recipe(AgentSpec.parse("quiet"))

    assert "quiet-frame is not installed, and no release is pinned" in str(error.value)


@pytest.mark.slow
def test_several_releases_stand_in_one_report(tmp_path: Path) -> None:
    """The command makes the environments, and the matrix has a column for each."""
    words = ["run", "basics/approved", "--agent", "openai_agents==0.19.4", "--agent", "openai_agents==0.20.0"]
    command = [sys.executable, "-m", "pytest_approvals.cli", *words, "--strength", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout
    assert "0.19.4" in done.stdout
    assert "0.20.0" in done.stdout
