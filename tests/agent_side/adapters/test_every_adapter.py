"""
Every flavour of every adapter plays the basic stories, in an environment with its pinned release where it is not here.

The whole catalogue on all of them is `pytest-approvals run --agent all`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_approvals.agents.adapters import find_local_agent, get_adapter, list_all_agents
from pytest_approvals.agents.environments import installers
from pytest_approvals.agents.package_registries import NPM
from pytest_approvals.agents.spec import AgentSpec

ROOT = Path(__file__).parents[3]
ELSEWHERE = [name for name in list_all_agents() if not find_local_agent(AgentSpec.parse(name)).available]


def test_there_are_agents_in_environments_of_their_own() -> None:
    """What is installed here is tested by itself; the others are."""
    python = {"agent_framework", "agno", "autogen", "google_adk", "langgraph", "strands"}
    javascript = {"ai_sdk", "ai_sdk.stream", "ai_sdk.ui", "openai_agents_js"}
    assert python | javascript <= set(ELSEWHERE)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("agent", ELSEWHERE)
def test_the_basic_stories_are_green(agent: str) -> None:
    """Nothing fails that is not waived, and no waiver is stale."""
    if get_adapter(AgentSpec.parse(agent)).registry == NPM.name and not installers.is_npm_available():
        pytest.skip("Node is not on this machine")
    command = [sys.executable, "-m", "pytest_approvals.cli", "run", "basics", "--agent", agent, "--strength", "1"]
    done = subprocess.run(
        [*command, "-q", "-p", "no:cacheprovider"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert 0 == done.returncode, f"{done.stdout}\n{done.stderr}"
