"""The programs that install what an environment has: how one is run, and what is told when it fails."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_approvals.errors import AgentUnavailable

PATIENCE = 900.0
"""How many seconds an installer may take for one step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """
    One such program.

    Attributes:
        name: What people call it.
        remedy: What to do where it cannot provide something.
        anew: What to do where it cannot be started.
        reason: Gives, of what it wrote to stderr, what it says about a failure.
    """

    name: str
    remedy: str
    anew: str
    reason: Callable[[str], str]

    def run(
        self,
        command: list[str],
        agent: str,
        what: str,
        *,
        folder: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """
        Lets it provide *what*.

        Arguments:
            folder: Where it runs; None where this process does.
            variables: Its environment variables; None: those of this process.

        Errors:
            AgentUnavailable: It cannot; its reason is told.
        """
        try:
            done = subprocess.run(
                command, cwd=folder, env=variables, capture_output=True, text=True, timeout=PATIENCE, check=False
            )
        except subprocess.TimeoutExpired:
            raise AgentUnavailable(
                agent, f"{self.name} took longer than {PATIENCE:g} s for {what}", self.remedy
            ) from None
        except OSError as error:
            raise AgentUnavailable(agent, f"{self.name} cannot be started ({error})", self.anew) from None
        if done.returncode:
            told = f"{self.remedy}; {self.name} says:\n{self.reason(done.stderr) or '  it says nothing'}"
            raise AgentUnavailable(agent, f"{self.name} cannot provide {what}", told)
