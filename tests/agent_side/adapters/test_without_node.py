"""Agents in JavaScript on a machine without node."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_what_needs_node_is_not_judged_and_fails_the_run(tmp_path: Path) -> None:
    """The others are judged; the run says why, and fails because the agent was asked for."""
    command = [sys.executable, "-m", "pytest_approvals.cli", "run", "basics/approved", "--strength", "1"]
    agents = ["--agent", "reference", "--agent", "ai_sdk", "--agent", "openai_agents_js"]
    variables = os.environ | {"PATH": str(tmp_path), "PYTEST_APPROVALS_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [*command, *agents, "-p", "no:cacheprovider"],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )

    told = " ".join(done.stdout.split())
    assert 1 == done.returncode, done.stdout + done.stderr
    for agent in ("ai_sdk", "openai_agents_js"):
        why = f"agent '{agent}' cannot be started: it is written in JavaScript, which needs node and npm"
        assert f"{why}, and node is not on PATH" in told
    assert "reference" in told
