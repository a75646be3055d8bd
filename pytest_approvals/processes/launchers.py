"""Launchers of agent processes: a Python interpreter with the agent side, or any program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest_approvals.agent_side
from pytest_approvals.errors import AgentUnavailable
from pytest_approvals.processes.process_groups import orphan_killer

AGENT_SIDE_FOLDER = str(Path(pytest_approvals.agent_side.__file__).parent)
"""The folder that agent processes are started from, unless an environment has a copy."""


class Launcher(Protocol):
    """Starts agent processes; equal launchers start equal processes."""

    @property
    def can_fork(self) -> bool:
        """Whether a fork server can run on it."""

    @property
    def environment(self) -> str:
        """The folder of the environment that the processes run in; empty for the one of this process."""

    def start(self, options: Mapping[str, Any], **descriptors: Any) -> subprocess.Popen[bytes]:
        """Start a process in a session of its own, so that a Ctrl-C for this process does not end it.

        Args:
            options: Options of the agent side.
            descriptors: Arguments for `subprocess.Popen`.

        Raises:
            AgentUnavailable: It cannot be started.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonLauncher:
    """Launcher of a Python interpreter, by default the one of this process.

    Attributes:
        python: The interpreter.
        agent_side: The folder of the agent side.
        path: Folders for the front of its import path.
        variables: Environment variables in addition to those of this process.
        environment: See `Launcher.environment`.
    """

    python: str = sys.executable
    agent_side: str = AGENT_SIDE_FOLDER
    path: tuple[str, ...] = field(default_factory=lambda: tuple(os.path.abspath(entry) for entry in sys.path))
    variables: tuple[tuple[str, str], ...] = ()
    environment: str = ""

    @property
    def can_fork(self) -> bool:
        """See `Launcher.can_fork`."""
        return True

    def start(self, options: Mapping[str, Any], **descriptors: Any) -> subprocess.Popen[bytes]:
        """See `Launcher.start`."""
        command = [self.python, self.agent_side, json.dumps({"path": self.path, **options})]
        return _start_process(command, self.variables, str(options.get("agent", "agent")), descriptors)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLauncher:
    """Launcher of a program in any language; it never forks.

    Attributes:
        words: The program and its arguments.
        variables: Environment variables in addition to those of this process.
        environment: See `Launcher.environment`.
    """

    words: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()
    environment: str = ""

    @property
    def can_fork(self) -> bool:
        """See `Launcher.can_fork`."""
        return False

    def start(self, options: Mapping[str, Any], **descriptors: Any) -> subprocess.Popen[bytes]:
        """See `Launcher.start`."""
        return _start_process(self.words, self.variables, str(options.get("agent", "agent")), descriptors)


def _start_process(
    command: Sequence[str], variables: Iterable[tuple[str, str]], agent: str, descriptors: Mapping[str, Any]
) -> subprocess.Popen[bytes]:
    try:
        environment = os.environ | orphan_killer.variables | dict(variables)
        return subprocess.Popen(command, env=environment, start_new_session=True, **descriptors)
    except OSError as error:
        raise AgentUnavailable(agent, f"{command[0]} cannot be started ({error})", "name another one") from error
