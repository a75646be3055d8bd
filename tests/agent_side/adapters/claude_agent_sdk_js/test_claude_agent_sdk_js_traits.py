"""The traits of the agent on the page of the agents."""

from __future__ import annotations

import pytest


# Each run of a scenario starts the CLI once a turn.
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_listed_traits_are_current(observed_traits: str, page_of_agents: str) -> None:
    """`python -m pytest_approvals.devtools.pages.traits NAME` writes them."""
    assert observed_traits in page_of_agents
