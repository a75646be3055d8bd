"""An agent in Google ADK without history, after https://google.github.io/adk-docs/agents/llm-agents/#managing-context-include_contents.

With `include_contents="none"` each message begins anew.
"""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool

from pytest_approvals import Approvals, calls, say, send


def look_up(city: str) -> str:
    """Looks a city up."""
    return f"{city} is large"


def build(model: Any) -> LlmAgent:
    return LlmAgent(name="guide", model=model, include_contents="none", tools=[FunctionTool(look_up)])


@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_may_forget_on_purpose(approvals: Approvals, stream: bool) -> None:
    """A message that the agent's settings leave out of the history is not missing."""
    model = [calls("look_up", city="Rome"), say("Large."), say("Hi."), calls("look_up", city="Bonn"), say("Large.")]
    caller = [send("Rome?"), send("Hello"), send("Bonn?")]
    run = approvals.run(build, model=model, caller=caller, gated=[], stream=stream)

    assert ["Rome is large", "Bonn is large"] == [one.result for one in run.calls["look_up"].executions]
