from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]


def test_the_idle_plugin_costs_little(tell: Callable[[str], None], tmp_path: Path) -> None:
    """The plugin adds at most 5 ms of CPU time to a pytest run that does not use it."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]

    def cpu(*options: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, *options], cwd=tmp_path, env=environment, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    cpu(), cpu("-p", "pytest_approvals.plugin")
    rows = [(cpu(), cpu("-p", "pytest_approvals.plugin")) for _ in range(25)]
    without = statistics.median(row[0] for row in rows)
    added = statistics.median(row[1] - row[0] for row in rows)

    tell(f"idle plugin: {without * 1e3:.0f} ms without, {added * 1e3:+.1f} ms with it (target +5 ms)")
    assert added <= 0.005
