"""Native scripts of the framework, and that our adapter does what they do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_approvals.processes.agent_source import AgentSource
from tests.native_scripts import find_differences, find_expressible, find_failing, load_few, play_both_elsewhere

AGENT = "openai_agents_js"

Start = Callable[[str], AgentSource]


def test_the_adapter_does_what_the_scripts_do(start_elsewhere: Start) -> None:
    """The same calls run, the same are asked about, and the model is told the same."""
    source = start_elsewhere(AGENT)
    played = play_both_elsewhere(AGENT, load_few(AGENT, source), source)

    assert {} == find_differences(played)
    assert set() == find_failing(played)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_adapter_does_what_all_scripts_do(start_elsewhere: Start) -> None:
    """In every story of the catalogue that a script can express."""
    source = start_elsewhere(AGENT)
    played = play_both_elsewhere(AGENT, find_expressible(AGENT, source), source)

    # The schemas of its tools are Zod's in a script, whose defaults the SDK fills in; ours are JSON Schema.
    assert {"policies/defaults-are-shown-and-run"} == set(find_differences(played))
    assert {
        "identity/id-reused-after-a-rejection",
        "identity/id-reused-in-a-later-reply",
        "identity/same-id-gated-and-ungated",
        "identity/ungated-id-reused-by-a-gated-call",
    } == find_failing(played)
    assert 40 <= len(played)
