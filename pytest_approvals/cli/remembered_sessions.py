"""Remembered sessions: whole sessions that need not run again, because nothing that they depend on changed.

A session that passed is kept with what it printed at its end and with its report, if each of its runs can be remembered
alone. The same command prints them again as long as all files that it reads, and all that is installed, are the same.
"""

from __future__ import annotations

import base64
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_approvals.agents.adapters import get_adapter
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import ApprovalsError
from pytest_approvals.plugin import STATE_KEY
from pytest_approvals.processes.agent_source import find_launcher
from pytest_approvals.runner.remembered_runs import RememberedRuns, get_runs_folder
from pytest_approvals.runner.run_dependencies import (
    are_unchanged,
    digest,
    digest_environments,
    digest_file,
    digest_folder,
    digest_here,
    digest_package,
    list_local_files,
)
from pytest_approvals.scenario.catalogue import find_project_folders, find_root

if TYPE_CHECKING:
    from pytest_approvals.plugin.state import PluginState
    from pytest_approvals.reporting.report import Report

_PROJECT_FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""The files in which pytest looks for options."""

_PLAYED_OPTIONS = ("fault", "fresh-runs", "journals", "times", "waivers", "update-waivers")
"""Options of sessions that leave something behind which only a played run does, or that want all runs played."""

_PYTEST_VARIABLES = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")

_WORKER_WORDS = re.compile(r"-n ?\w+|-n|--numprocesses(=\w+)?|auto|logical|\d+|-q|--quiet")
"""Words for pytest that change neither verdicts nor what is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedSession:
    """What a session that passed printed at its end, and its report.

    Attributes:
        text: What it printed, with each run marked as remembered.
        report: The content of its report; None if none was wanted.
    """

    text: str
    report: bytes | None


class SessionMemory:
    """Plugin of pytest that keeps a session which passed, and reader of what was kept.

    Args:
        key: The digest of what the session depends on.
        store: Where sessions are kept.
    """

    def __init__(self, key: str, store: RememberedRuns) -> None:
        self._key = key
        self._store = store

    @classmethod
    def of_command(
        cls, texts: Mapping[str, Any], files: Sequence[Path], passed: Sequence[str], here: Path
    ) -> SessionMemory | None:
        """Return the memory for a command; None if its session can be neither found nor kept.

        Args:
            texts: Options of this package, by name.
            files: The scenario files.
            passed: Words for pytest itself.
            here: The current folder.
        """
        folder = get_runs_folder()
        if (
            folder is None
            or any(texts.get(name) for name in _PLAYED_OPTIONS)
            or any(os.environ.get(name) for name in _PYTEST_VARIABLES)
            or not all(_WORKER_WORDS.fullmatch(word) for word in passed)
        ):
            return None
        options = {**texts, "report": texts.get("report") is not None}
        places = [path.absolute() for path in files]
        own = find_project_folders(here)
        folders = sorted({*own, *(find_root(path, own) for path in places)})
        key = digest(
            "session",
            options,
            [str(path) for path in (here, *places)],
            [digest_file(folder / name) for folder in (here, *here.parents) for name in _PROJECT_FILES],
            [digest_folder(folder) for folder in folders],
            digest_package(),
            digest_here(),
            [digest_file(Path(name)) for name in _list_inputs(texts.get("agents") or ())],
        )
        return cls(key, RememberedRuns(folder))

    def find(self) -> RememberedSession | None:
        """Return the session that passed before; None if there is none, or if something has changed since."""
        row = self._store.find(self._key)
        if row is None or not are_unchanged(row["files"]):
            return None
        if digest_environments(row["environments"]) != row["installed"]:
            return None
        report = row["report"]
        return RememberedSession(
            text=row["text"], report=None if report is None else zlib.decompress(base64.b64decode(report))
        )

    def close(self) -> None:
        """Write what was kept."""
        self._store.close()

    # Last, after the verdicts on groups and waivers.
    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, exitstatus: int, config: pytest.Config) -> None:
        """Keep a session that passed."""
        state = config.stash.get(STATE_KEY, None)
        if state is not None and exitstatus == pytest.ExitCode.OK and _can_be_kept(state):
            self._keep(state)

    def _keep(self, state: PluginState) -> None:
        from pytest_approvals.plugin.session_finish import format_session

        results = state.results
        runs = {(scenario, agent, name) for (scenario, agent), names in results.ran.items() for name in names}
        report = replace(results.build_report(state.settings.seed), remembered=runs)
        environments = _list_environments(state)
        self._store.keep(
            self._key,
            {
                "files": {**list_local_files(), **results.local_files},
                "environments": environments,
                "installed": digest_environments(environments),
                "text": format_session(report, state.memory),
                "report": _encode(report) if state.settings.report is not None else None,
            },
        )


def _can_be_kept(state: PluginState) -> bool:
    """Return whether all that a session did is what its runs did, and each of these can be remembered."""
    results, memory = state.results, state.memory
    return (
        not state.is_worker
        and memory is not None
        and memory.store.problem is None
        and results.complete
        and results.are_runs_keyed
        and bool(results.ran)
        and not (results.user_runs or results.absent)
        and all(agent.local.spec.checkout is None for agent in state.agents)
    )


def _list_environments(state: PluginState) -> list[str]:
    launchers = (find_launcher(agent.source) for agent in state.agents)
    return sorted(
        {str(launcher.environment) for launcher in launchers if launcher is not None and launcher.environment}
    )


def _encode(report: Report) -> str:
    from pytest_approvals.reporting.compact import encode_report

    return base64.b64encode(zlib.compress(encode_report(report), 1)).decode()


def _list_inputs(agents: Iterable[str]) -> Iterator[str]:
    """Yield the files of the user's project that agents depend on, besides the scenarios."""
    for agent in agents:
        # One that does not exist is refused before anything is played.
        with suppress(ApprovalsError):
            yield from get_adapter(AgentSpec.parse(agent)).inputs
