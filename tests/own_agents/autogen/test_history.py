"""An agent in AutoGen with a limited context.

After https://microsoft.github.io/autogen/stable/user-guide/agentchat-user-guide/tutorial/agents.html#using-model-context.
"""

from __future__ import annotations

from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core.model_context import BufferedChatCompletionContext

from pytest_approvals import Approvals, say, send


def build(model: Any) -> AssistantAgent:
    context = BufferedChatCompletionContext(buffer_size=2)
    return AssistantAgent("guide", model_client=model, model_context=context)


@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_may_forget_on_purpose(approvals: Approvals, stream: bool) -> None:
    """A message that the agent's context leaves out is not missing."""
    model = [say("Hi."), say("Good."), say("Bye.")]
    run = approvals.run(
        build, model=model, caller=[send("Hello"), send("How are you?"), send("Bye")], gated=[], stream=stream
    )

    assert "Bye." == run.output
