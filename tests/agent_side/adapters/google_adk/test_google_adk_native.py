"""Native scripts of the framework, and that our adapter does what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.native_scripts import find_differences, find_expressible, find_failing, load_few, play_both

AGENT = "google_adk"


def test_the_adapter_does_what_the_scripts_do(tmp_path: Path) -> None:
    """The same calls run, the same are asked about, and the model is told the same."""
    played = play_both(AGENT, load_few(AGENT), tmp_path)

    assert {} == find_differences(played)
    assert set() == find_failing(played)


@pytest.mark.slow
def test_the_adapter_does_what_all_scripts_do(tmp_path: Path) -> None:
    """In every story of the catalogue that a script can express."""
    played = play_both(AGENT, find_expressible(AGENT), tmp_path)

    assert {} == find_differences(played)
    assert {"identity/same-id-gated-and-ungated"} == find_failing(played)
    assert 40 <= len(played)
