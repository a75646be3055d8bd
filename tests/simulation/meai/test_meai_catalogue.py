"""The releases on plain stories: what fails is waived, and nothing fails on the robust one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_approvals.simulation.meai.releases import BEHAVIOURS

ROOT = Path(__file__).parents[3]
RELEASED = [release for release in BEHAVIOURS if release != "robust"]


def run(*agents: str) -> str:
    """Runs plain stories in this process; the whole catalogue is `pytest-approvals run --agent meai==RELEASE`."""
    named = [word for agent in agents for word in ("--agent", agent)]
    command = [
        sys.executable,
        "-m",
        "pytest_approvals.cli",
        "run",
        "basics",
        *named,
        "--strength",
        "1",
        "--resume",
        "same",
    ]
    done = subprocess.run(
        [*command, "-q", "-p", "no:cacheprovider"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.timeout(300)
def test_what_the_releases_get_wrong_is_waived() -> None:
    """With and without the binding layer."""
    said = run(*(f"meai{flavour}=={release}" for flavour in ("", ".binding") for release in RELEASED))
    assert "w fails, and is waived" in said


@pytest.mark.timeout(120)
def test_the_robust_one_needs_no_waiver() -> None:
    """Nothing fails on it."""
    assert "xfailed" not in run("meai==robust", "meai.binding==robust")
