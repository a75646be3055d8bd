"""
Every adapter plays basic stories, in an environment with its pinned release where it is not here.

`-m slow` plays all of these, and two on every flavour; other sessions play two on the default one, and the tests of the
adapters play the flavours. The whole catalogue on all of them is `pytest-approvals run --agent all`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_approvals.agents.adapters import find_local_agent, get_adapter, list_all_agents
from pytest_approvals.agents.environments import installers
from pytest_approvals.agents.package_registries import NPM
from pytest_approvals.agents.spec import AgentSpec

ROOT = Path(__file__).parents[3]
ELSEWHERE = [name for name in list_all_agents() if not find_local_agent(AgentSpec.parse(name)).available]

FLAVOURS = {
    framework: sorted(flavours)
    for framework in {name.partition(".")[0] for name in ELSEWHERE}
    if (flavours := [name for name in ELSEWHERE if name.startswith(f"{framework}.")])
}
"""The flavours that are not their framework's default one."""

FEW = ["basics/both-approved", "basics/rejected-with-a-reason"]


def test_there_are_agents_in_environments_of_their_own() -> None:
    """What is installed here is tested by itself; the others are."""
    python = {"agent_framework", "agno", "autogen", "claude_agent_sdk", "google_adk", "langgraph", "strands"}
    javascript = {"ai_sdk", "ai_sdk.stream", "ai_sdk.ui", "claude_agent_sdk_js", "mastra", "openai_agents_js"}
    assert python | javascript <= set(ELSEWHERE)


def run_basics(*words: str, agents: Sequence[str]) -> subprocess.CompletedProcess[str]:
    if get_adapter(AgentSpec.parse(agents[0])).registry == NPM.name and not installers.is_npm_available():
        pytest.skip("Node is not on this machine")
    named = [word for agent in agents for word in ("--agent", agent)]
    command = [sys.executable, "-m", "pytest_approvals.cli", "run", *words, *named, "--strength", "1"]
    return subprocess.run(
        [*command, "-q", "-p", "no:cacheprovider"], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("agent", ELSEWHERE)
def test_the_basic_stories_are_green(agent: str) -> None:
    """Nothing fails that is not waived, and no waiver is stale."""
    done = run_basics("basics", agents=[agent])

    assert 0 == done.returncode, f"{done.stdout}\n{done.stderr}"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("agent", [name for name in ELSEWHERE if "." not in name])
def test_a_few_stories_are_green(agent: str) -> None:
    """Of the basic stories, two with decisions, in all modes and over all protocols."""
    done = run_basics(*FEW, agents=[agent])

    assert 0 == done.returncode, f"{done.stdout}\n{done.stderr}"


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("framework", sorted(FLAVOURS))
def test_a_few_stories_are_green_on_the_other_flavours(framework: str) -> None:
    """Those with decisions, without the clients of providers and without new processes."""
    done = run_basics(*FEW, "--protocol", "native", "--resume", "same", agents=FLAVOURS[framework])

    assert 0 == done.returncode, f"{done.stdout}\n{done.stderr}"
