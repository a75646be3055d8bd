"""What agent processes run on: a Python with the agent's side of this package, or any program."""

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

AGENT_SIDE_FOLDER = str(Path(pytest_approvals.agent_side.__file__).parent)
"""The folder that an agent process is started from, where it is not a copy elsewhere."""


class Launcher(Protocol):
    """Starts agent processes; equal ones start equal processes."""

    @property
    def forks(self) -> bool:
        """Whether a warm process can be forked."""

    def start(self, options: Mapping[str, Any], **descriptors: Any) -> subprocess.Popen[bytes]:
        """
        Starts a process in a session of its own, so that it is ended by us and not by a Ctrl-C that is meant for us.

        Errors:
            AgentUnavailable: It cannot be started.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonLauncher:
    """
    A Python, by default what this process runs on.

    Attributes:
        python: The interpreter.
        agent_side: The folder of the agent's side there.
        path: Folders for the front of its import path.
        variables: Environment variables besides those of this process.
    """

    python: str = sys.executable
    agent_side: str = AGENT_SIDE_FOLDER
    path: tuple[str, ...] = field(default_factory=lambda: tuple(os.path.abspath(entry) for entry in sys.path))
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def forks(self) -> bool:
        """See `Launcher.forks`."""
        return True

    def start(self, options: Mapping[str, Any], **descriptors: Any) -> subprocess.Popen[bytes]:
        """See `Launcher.start`."""
        command = [self.python, self.agent_side, json.dumps({"path": self.path, **options})]
        return _start_process(command, self.variables, str(options.get("agent", "agent")), descriptors)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLauncher:
    """
    A program in any language; each of its processes is a new one.

    Attributes:
        words: The program and its arguments.
        variables: Environment variables besides those of this process.
    """

    words: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def forks(self) -> bool:
        """See `Launcher.forks`."""
        return False

    def start(self, options: Mapping[str, Any], **descriptors: Any) -> subprocess.Popen[bytes]:
        """See `Launcher.start`."""
        return _start_process(self.words, self.variables, str(options.get("agent", "agent")), descriptors)


def _start_process(
    command: Sequence[str], variables: Iterable[tuple[str, str]], agent: str, descriptors: Mapping[str, Any]
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, env=os.environ | dict(variables), start_new_session=True, **descriptors)
    except OSError as error:
        raise AgentUnavailable(agent, f"{command[0]} cannot be started ({error})", "name another one") from error
