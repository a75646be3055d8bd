"""Realistic agents of each framework, in a folder with the name of its adapter, tested as the docs say.

Those of frameworks that have an environment of their own are run by `tools/adapter_tests.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from pytest_approvals.agents.adapters import get_adapter, is_installed
from pytest_approvals.agents.spec import AgentSpec

collect_ignore = [
    folder.name
    for folder in sorted(Path(__file__).parent.iterdir())
    if folder.is_dir() and folder.name != "__pycache__" and not is_installed(get_adapter(AgentSpec.parse(folder.name)))
]


@pytest.fixture
def notes(pytester: pytest.Pytester) -> Callable[[str], list[str]]:
    """Runs a test file on its own, and gives the tools that the end of the session lists as without a gate."""

    def run(text: str) -> list[str]:
        pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
        pytester.makepyfile(test_it=text)
        # Where the package is installed, its plugin is loaded already.
        is_loaded = bool(entry_points(group="pytest11", name="approvals"))
        plugin = () if is_loaded else ("-p", "pytest_approvals.plugin")
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *plugin)
        result.assert_outcomes(passed=1)
        listed = re.compile(
            r"note: these tools have effects, by their annotations or names, and need no approval: (.*) \(test_it.py\)"
        )
        return [found[1] for line in result.outlines if (found := listed.match(line))]

    return run
