"""Causes played: the story of a record in the harness, and its native script with a release of the framework."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pytest_approvals.agents.adapters import get_adapter, list_adapter_names
from pytest_approvals.agents.causes import Cause
from pytest_approvals.agents.environments.cache import CachedEnvironment
from pytest_approvals.agents.environments.installers import find_node
from pytest_approvals.agents.launch import get_environment_cache, resolve_recipe
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.agents.waivers import Waiver, get_waiver_file, load_waivers
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.checks import CHECKS, Verdict, judge, judge_group
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.reporting.upstream import get_script_language, parse_story, write_cause_script
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import Scenario, Variant, owns_processes

SECONDS = 30.0
SECONDS_OF_HANGS = 4.0
"""Time limits of runs; a run that hangs has shown it after the second one."""

_SCRIPT_SECONDS = 120.0
_PINNED = re.compile(r"^# dependencies = .*$", re.MULTILINE)


@cache
def load_every_waiver() -> tuple[Waiver, ...]:
    """Load the waivers of all adapters."""
    return tuple(waiver for name in list_adapter_names() for waiver in load_waivers(get_waiver_file(name), CHECKS))


def build_variant(cause: Cause) -> Variant:
    """Return the variant in which a cause shows."""
    given: dict[str, Any] = dict(cause.variant)
    return Variant(**given)


@cache
def create_cause_source(agent: str) -> AgentSource:
    """Return the source of an agent: here, or in the environment with its pinned release."""
    return AgentRuns(AgentRelease(spec=AgentSpec.parse(agent)), {}, SECONDS_OF_HANGS).source


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedCause:
    """What the story of a cause shows today.

    Attributes:
        transcript: That of the variant that the record names.
        verdicts: Those of this variant, and of it and the base variant together.
        problem: Why the run shows nothing: it timed out, or the model had nothing more to say; empty if it does.
    """

    transcript: str
    verdicts: tuple[Verdict, ...]
    problem: str

    def shows(self, cause: Cause) -> bool:
        """Return whether the check of the record has the status that it states."""
        return (cause.check, cause.status) in {(verdict.check, verdict.status) for verdict in self.verdicts}


def play_cause(cause: Cause) -> PlayedCause:
    """Play the story of a cause on its agent."""
    scenario, variant = parse_story(cause), build_variant(cause)
    # What a killed process has not stored is gone, so the base variant cannot play a crash.
    variants = [variant] if owns_processes(scenario) else dict.fromkeys([variant, Variant()])
    shown, *others = [_play(cause, scenario, one) for one in variants]
    transcript = Transcript.of_history(shown).render().rstrip("\n")
    return PlayedCause(
        transcript=transcript,
        verdicts=(*judge(shown), *(judge_group([*others, shown]) if others else ())),
        problem="" if cause.check == "run-ends" else find_transcript_problem(transcript),
    )


def _play(cause: Cause, scenario: Scenario, variant: Variant) -> History:
    limit = RunLimits(seconds=SECONDS_OF_HANGS if cause.check == "run-ends" else SECONDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = create_cause_source(cause.agent)
        return read_history(get_session_loop().run(run_scenario(scenario, variant, source, limit=limit)).events)


def find_transcript_problem(transcript: str) -> str:
    """Return the line of a transcript that says that its run shows nothing about the agent; empty if there is none.

    >>> find_transcript_problem("  agent   takes too long")
    'agent   takes too long'
    >>> find_transcript_problem("  agent   finishes")
    ''
    """
    found = re.search(r"^ +(agent +takes too long.*|model +.*has no further reply.*)$", transcript, re.MULTILINE)
    return found[1] if found else ""


# --- native scripts ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRun:
    """How a native script ended."""

    code: int
    output: str

    @property
    def last_line(self) -> str:
        """Its verdict: a line that begins with `BUG` or `OK`."""
        return self.output.rstrip("\n").rpartition("\n")[2]


def run_cause_script(cause: Cause, folder: Path, release: str | None = None) -> ScriptRun:
    """Run the native script of a cause with Python or node.

    Args:
        cause: The cause.
        folder: Where the script is put.
        release: The release of the framework; None for the one on which the cause was seen.
    """
    language = get_script_language(cause)
    path = folder / f"{cause.id.replace('-', '_')}_script{language.suffix}"
    path.write_text(write_cause_script(cause), encoding="utf-8")
    program = find_python(cause, release) if language.suffix == ".py" else _prepare_node(cause, folder, release)
    done = subprocess.run(
        [program, str(path)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_SCRIPT_SECONDS,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONWARNINGS": "ignore"},
    )
    return ScriptRun(code=done.returncode, output=done.stdout if done.stdout.strip() else done.stderr)


def find_python(cause: Cause, release: str | None = None) -> str:
    """Return the interpreter whose environment has a release of the framework of a cause."""
    adapter = get_adapter(AgentSpec.parse(cause.agent))
    if release is None and adapter.framework is not None and _is_here(adapter.framework, cause.releases.seen):
        return sys.executable
    return str(_get_environment(cause, release).python)


def _prepare_node(cause: Cause, folder: Path, release: str | None) -> str:
    """Let scripts in *folder* find the packages of a cause's environment, and return node."""
    # Node looks for packages in the folder of a script and those above it, and nowhere else.
    (folder / "node_modules").symlink_to(_get_environment(cause, release).folder / "node_modules")
    return find_node(cause.agent)


def _get_environment(cause: Cause, release: str | None) -> CachedEnvironment:
    # The flavour, too: some are in a distribution of their own.
    spec = AgentSpec.parse(f"{cause.agent}=={release or cause.releases.seen}")
    recipe = resolve_recipe(spec)
    assert recipe is not None, "a spec with a version has a recipe"
    return get_environment_cache().get(recipe, str(spec))


def _is_here(distribution: str, release: str) -> bool:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution) == release
    except PackageNotFoundError:
        return False


def list_waived_scenarios(cause: Cause) -> Iterator[tuple[str, str]]:
    """Yield the scenarios of the catalogue, or patterns, and the checks that the waivers of a cause are about."""
    yield from dict.fromkeys(
        (waiver.scenario, waiver.check) for waiver in load_every_waiver() if waiver.cause == cause.id
    )
