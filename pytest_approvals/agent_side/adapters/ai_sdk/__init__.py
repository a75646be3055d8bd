"""
The AI SDK of Vercel for JavaScript (npm `ai`), releases 6 and 7.

No run survives a pause: all state is the list of messages that the caller keeps. A pause is an ordinary end of a call
whose messages hold a `tool-approval-request`; the caller goes on by calling again with the same messages and one
message of role `tool` with all answers (guide "Tool Approvals").

- What a call was handed in stays in the list when the model fails. An answer or a message that the SDK refuses is taken
  back.
- Gates are declared at the call (`toolApproval`) from release 7 on, and at the tool (`needsApproval`) before.
"""

from __future__ import annotations

from ...contract import Agent
from ...javascript import JavaScriptAgent
from .facts import GENERATE_MISSING, ISSUES, MISSING, claimed

__all__ = ["FLAVOURS", "GenerateAgent", "StreamAgent"]


class GenerateAgent(JavaScriptAgent):
    """`generateText`: a call is answered when it is over."""

    framework = "ai"
    missing = GENERATE_MISSING
    capabilities = claimed(GENERATE_MISSING)
    wire_rules = "responses"
    native = "responses"
    issues = ISSUES


class StreamAgent(GenerateAgent):
    """`streamText`: a call is answered while it goes on."""

    missing = MISSING
    capabilities = claimed(MISSING)


FLAVOURS: dict[str, type[Agent]] = {"": GenerateAgent, "generate": GenerateAgent, "stream": StreamAgent}
"""The flavours: a call is answered when it is over, or while it goes on."""
