"""What a run costs all in, with collection, verdicts, transcript and report, and when the first verdict comes."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

CHECKOUT = Path(__file__).parents[2]

FIRST_VERDICT = """
import os, sys, time
import pytest
from pytest_approvals.cli import main

class Stop:
    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            print(f"first verdict after {time.process_time():.3f} s", file=sys.__stderr__, flush=True)
            os._exit(0)

start = pytest.main
pytest.main = lambda words, plugins=(): start(words, plugins=[Stop(), *plugins])
main(["run", "parallel", "--agent", "reference", *sys.argv[1:]])
"""


def milliseconds_a_run(agent: str, *scenarios: str) -> float:
    command = [sys.executable, "-m", "pytest_approvals.devtools.profile", "--agent", agent, *scenarios]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    found = re.search(r"^\| all \| ([\d.]+) \|", done.stdout, re.MULTILINE)
    assert found, done.stdout
    return float(found[1])


@pytest.mark.parametrize(
    ("agent", "scenarios", "before", "goal"),
    [("reference", (), 15, 4), ("pydantic_ai", ("parallel", "decisions", "state"), 80, 25)],
)
def test_a_run_is_cheap(
    tell: Callable[[str], None], agent: str, scenarios: tuple[str, ...], before: float, goal: float
) -> None:
    """A run on the reference agent takes at most 4 ms of CPU time all in, one on Pydantic AI 25 ms."""
    taken = min(milliseconds_a_run(agent, *scenarios) for _ in range(2))

    tell(f"{agent}: {taken:.1f} ms CPU a run (before {before} ms, goal {goal} ms), {taken / goal:.2f} times the goal")
    assert taken <= goal


def test_the_first_verdict_comes_soon(tell: Callable[[str], None]) -> None:
    """`pytest-approvals run parallel --agent reference` has its first verdict after at most 0.6 s of CPU time."""
    command = [sys.executable, "-c", FIRST_VERDICT, "-p", "no:cacheprovider"]
    outputs = [subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True).stderr for _ in range(6)]
    # The first one may have to fill the caches.
    taken = min(float(re.findall(r"first verdict after ([\d.]+) s", output)[0]) for output in outputs[1:])

    tell(f"first verdict: {taken:.2f} s CPU (goal 0.6 s), {taken / 0.6:.2f} times the goal")
    assert taken <= 0.6
