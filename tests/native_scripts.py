"""What the tests of native scripts share: a story as a script and in the harness, and what happened in each."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import json
import runpy
import subprocess
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_approvals.agents.adapters import resolve_local_agent
from pytest_approvals.agents.sources import create_source
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import UsageError
from pytest_approvals.journal.events import TurnEnd
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.scenario.catalogue import find_scenarios, stock_folder
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario, all_replies
from pytest_approvals.scenario.native_scripts import write_native_script
from pytest_approvals.scenario.variants import plan_variants

FEW = (
    "basics/approved",
    "basics/free-call-then-gated-call",
    "basics/one-more-message-after-a-rejection",
    "decisions/edited-beside-rejected-and-approved",
    "identity/odd-call-ids",
    "parallel/one-approved-one-rejected",
    "parallel/two-rounds-of-two",
    "state/three-turns-in-one-session",
    "streaming/parallel-requests-in-a-stream",
)
"""A cut of the stories that scripts can express."""

BY_NAME = frozenset({"agent_framework", "autogen"})
"""Frameworks that do not tell a function the id of its call, so that their scripts note its name."""


@dataclass(frozen=True)
class Outcome:
    """What happened, by the ids of calls; in a form that does not depend on the order of parallel calls."""

    ran: list[str]
    asked: list[str]
    told: dict[str, str]


@dataclass(frozen=True)
class NativeRun:
    """What a script ended with."""

    code: int
    last_line: str
    outcome: Outcome


def load(name: str) -> Scenario:
    """Return a story of the catalogue."""
    return load_scenario(find_scenarios([stock_folder()])[name], root=stock_folder())


def load_few(agent: str, source: AgentSource | None = None) -> list[Scenario]:
    """Return those of the cut that a script of the agent can express, and that it plays if its source is given."""
    found = []
    for scenario in map(load, FEW):
        with contextlib.suppress(UsageError):
            write_native_script(scenario, AgentSpec.parse(agent))
            found.append(scenario)
    assert len(FEW) - 1 <= len(found)
    return found if source is None else [scenario for scenario in found if plan_variants(scenario, source.facts)]


def play_natively(agent: str, scenario: Scenario, folder: Path) -> NativeRun:
    """Return what the script of a story does; it is run in this process, as importing a framework takes longest."""
    path = folder / "script.py"
    path.write_text(write_native_script(scenario, AgentSpec.parse(agent)), encoding="utf-8")
    code = 0
    with contextlib.redirect_stdout(io.StringIO()) as printed, warnings.catch_warnings(), _own_event_loop():
        warnings.simplefilter("ignore")
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            code = int(end.code or 0)
    text = printed.getvalue()
    return NativeRun(code, text.splitlines()[-1], _read_outcome(text))


@contextlib.contextmanager
def _own_event_loop() -> Iterator[None]:
    """Close the event loop of a script: what frameworks call "sync" makes one, and leaves it open."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        asyncio.set_event_loop(loop := asyncio.new_event_loop())
        try:
            yield
        finally:
            with contextlib.suppress(RuntimeError):
                asyncio.get_event_loop_policy().get_event_loop().close()
            asyncio.set_event_loop(None)
            loop.close()


def play_with_node(agent: str, scenario: Scenario, packages: Path) -> NativeRun:
    """Return what the script of a story does in a process of node.

    Args:
        agent: The agent.
        scenario: The story.
        packages: The folder `node_modules` of an environment of the agent, beside which the script is run.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "script.mjs")
        path.write_text(write_native_script(scenario, AgentSpec.parse(agent)), encoding="utf-8")
        Path(folder, "node_modules").symlink_to(packages)
        ended = subprocess.run(["node", path], capture_output=True, text=True, timeout=60, check=False)
    assert "" == ended.stderr
    return NativeRun(ended.returncode, ended.stdout.splitlines()[-1], _read_outcome(ended.stdout))


def _read_outcome(text: str) -> Outcome:
    said = dict(line.split(": ", 1) for line in text.split("\n") if ": " in line)
    ran, asked, told = (_read_value(said[name]) for name in ("ran", "asked", "told"))
    return Outcome(_sort_runs(ran), sorted(asked), {call: str(text) for call, text in told.items()})


def _read_value(text: str) -> Any:
    """Return a value that was printed by Python, or as JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return ast.literal_eval(text)


def _sort_runs(ran: Iterable[Any]) -> list[str]:
    return sorted(json.dumps(one, sort_keys=True, default=str) for one in ran)


def play_in_the_harness(agent: str, scenario: Scenario, source: AgentSource | None = None) -> Outcome:
    """Return what happens when our adapter plays a story, up to the first turn that fails: there, a script ends."""
    source = source or create_source(resolve_local_agent(AgentSpec.parse(agent)))
    variants = plan_variants(scenario, source.facts)
    variant = next(variant for variant in variants if variant.oracle in ("script", "approve_all"))
    events = get_session_loop().run(run_scenario(scenario, variant, source)).events
    failed = (n for n, event in enumerate(events) if isinstance(event, TurnEnd) and event.outcome == "failed")
    history = read_history(events[: next(failed, len(events)) + 1])
    told = {call.id: str(call.deliveries[-1].text) for call in history.calls if call.deliveries and call.id}
    ran: list[Any] = [
        (execution.tool if agent in BY_NAME else execution.call_id, execution.arguments)
        for execution in history.executions
    ]
    ids = {call.label: call.id for _, reply in all_replies(scenario) for call in reply.calls}
    asked = [str(request.label) for request in history.requests]
    # Who goes on without an answer is asked again about the same.
    for turn in history.turns:
        if turn.start.text is None and not turn.decisions and turn.end is not None:
            before = {str(request.label) for request in history.requests if request.n < turn.start.n}
            asked += [entry["label"] for entry in turn.end.requests if entry.get("label") in before]
    return Outcome(_sort_runs(ran), sorted(str(ids.get(label)) for label in asked), told)


def find_expressible(agent: str, source: AgentSource | None = None) -> list[Scenario]:
    """Return the stories of the catalogue that a script can express, and that the adapter plays."""
    facts = (source or create_source(resolve_local_agent(AgentSpec.parse(agent)))).facts
    found = []
    for name in find_scenarios([stock_folder()]):
        try:
            write_native_script(scenario := load(name), AgentSpec.parse(agent))
        except UsageError:
            continue
        found += [scenario] if plan_variants(scenario, facts) else []
    return found


Played = dict[str, tuple[Outcome, NativeRun]]
"""What happens in the harness and natively, by story."""


def play_both(agent: str, scenarios: list[Scenario], folder: Path) -> Played:
    """Play stories in the harness and natively."""
    return {
        scenario.id: (play_in_the_harness(agent, scenario), play_natively(agent, scenario, folder))
        for scenario in scenarios
    }


def play_both_elsewhere(agent: str, scenarios: list[Scenario], source: AgentSource) -> Played:
    """Play stories of an agent of JavaScript in its environment, and natively beside it."""
    where = source.facts.where
    assert where is not None
    packages = next(folder for folder in Path(where).parents if folder.name == "node_modules")
    return {
        scenario.id: (play_in_the_harness(agent, scenario, source), play_with_node(agent, scenario, packages))
        for scenario in scenarios
    }


def find_differences(played: Played) -> Played:
    """Return the stories in which something else happens natively."""
    return {name: (ours, native) for name, (ours, native) in played.items() if ours != native.outcome}


def find_failing(played: Played) -> set[str]:
    """Return the stories whose scripts say that the framework does something wrong."""
    failing = {name for name, (_, native) in played.items() if native.last_line.startswith("BUG: ")}
    assert failing == {name for name, (_, native) in played.items() if native.code != 0}
    return failing
