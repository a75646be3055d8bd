"""Native scripts of the framework, and that our adapter does what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.native_scripts import find_differences, find_expressible, load_few

AGENT = "strands"


def test_the_adapter_does_what_the_scripts_do(tmp_path: Path) -> None:
    """The same calls run, the same are asked about, and the model is told the same."""
    assert {} == find_differences(AGENT, load_few(AGENT), tmp_path)


@pytest.mark.slow
def test_the_adapter_does_what_all_scripts_do(tmp_path: Path) -> None:
    """In every story of the catalogue that a script can express."""
    scenarios = find_expressible(AGENT)

    assert {} == find_differences(AGENT, scenarios, tmp_path)
    assert 40 <= len(scenarios)
