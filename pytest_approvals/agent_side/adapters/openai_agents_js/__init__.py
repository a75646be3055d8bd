"""The OpenAI Agents SDK for JavaScript (npm `@openai/agents`).

A paused run is a `RunState`: decisions go into it with `approve` and `reject`, and `run(agent, state)` goes on with it.
What the caller keeps between turns follows the SDK's guides "Human in the loop" and "Running agents":

- A new message starts a run of its own, with the history of the last result followed by the message. A message that
  comes together with decisions is put into the paused run (`RunState.addInput`).
- After a resumed run failed, the same `RunState` is resumed again. After a run that began with a message failed, its
  input is handed in again.
- A finished run's state is kept until the next run, so that a decision that comes late can be handed in.
"""

from __future__ import annotations

from ...contract import Agent
from ...javascript import JavaScriptAgent
from .metadata import ISSUES, MISSING, PROTOCOLS

__all__ = ["FLAVOURS", "OpenAIAgentsJs"]


class OpenAIAgentsJs(JavaScriptAgent):
    """The caller keeps the input list of the conversation, the agent that has it, and the `RunState` of its run."""

    framework = "@openai/agents"
    missing = MISSING
    wire_rules = "responses"
    native = "responses"
    protocols = PROTOCOLS
    connects = True
    issues = ISSUES


FLAVOURS: dict[str, type[Agent]] = {"": OpenAIAgentsJs}
