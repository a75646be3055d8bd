"""Native scripts of frameworks in JavaScript, and that our adapters do what they do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_approvals.processes.agent_source import AgentSource
from tests.native_scripts import find_differences, find_expressible, find_failing, load_few, play_both_elsewhere

Start = Callable[[str], AgentSource]

FAILING = {
    "ai_sdk": {"identity/same-id-gated-and-ungated"},
    "openai_agents_js": {
        "identity/id-reused-after-a-rejection",
        "identity/id-reused-in-a-later-reply",
        "identity/same-id-gated-and-ungated",
        "identity/ungated-id-reused-by-a-gated-call",
    },
}
"""The stories whose scripts end with `BUG`."""

# The schemas of its tools are Zod's in a script, whose defaults the SDK fills in; ours are JSON Schema.
DIFFERING = {"ai_sdk": set(), "openai_agents_js": {"policies/defaults-are-shown-and-run"}}

every_agent = pytest.mark.parametrize("agent", sorted(FAILING))


@every_agent
def test_the_adapter_does_what_the_scripts_do(start_elsewhere: Start, agent: str) -> None:
    """The same calls run, the same are asked about, and the model is told the same."""
    source = start_elsewhere(agent)
    played = play_both_elsewhere(agent, load_few(agent, source), source)

    assert {} == find_differences(played)
    assert set() == find_failing(played)


@pytest.mark.slow
@pytest.mark.timeout(600)
@every_agent
def test_the_adapter_does_what_all_scripts_do(start_elsewhere: Start, agent: str) -> None:
    """In every story of the catalogue that a script can express."""
    source = start_elsewhere(agent)
    played = play_both_elsewhere(agent, find_expressible(agent, source), source)

    assert DIFFERING[agent] == set(find_differences(played))
    assert FAILING[agent] == find_failing(played)
    assert 40 <= len(played)
