"""The AI SDK of Vercel for JavaScript (npm `ai`), releases 6 and 7.

No run survives a pause: all state is the list of messages that the caller keeps. A pause is an ordinary end of a call
whose messages hold a `tool-approval-request`; the caller goes on by calling again with the same messages and one
message of role `tool` with all answers (guide "Tool Approvals").

- The input of a call stays in the list when the model fails. An answer or a message that the SDK refuses is removed
  again.
- In the flavour `ui`, the client is the SDK's own chat (`AbstractChat`), which sends nothing before every request of a
  pause is answered (guide "Chatbot Tool Usage").
- Gates are declared at the call (`toolApproval`) from release 7 on, and at the tool (`needsApproval`) before.
- The model is reached with the package of its provider: `@ai-sdk/openai` for Responses and Chat Completions of OpenAI,
  `@ai-sdk/anthropic` for Messages of Anthropic.
"""

from __future__ import annotations

from ...contract import Agent
from ...javascript import JavaScriptAgent
from .metadata import GENERATE_MISSING, ISSUES, PROTOCOLS, STREAM_MISSING, UI_MISSING

__all__ = ["FLAVOURS", "GenerateAgent", "StreamAgent", "UiAgent"]


class GenerateAgent(JavaScriptAgent):
    """`generateText`: a call is answered when it is over."""

    framework = "ai"
    missing = GENERATE_MISSING
    wire_rules = "responses"
    native = "responses"
    protocols = PROTOCOLS
    connects = True
    issues = ISSUES


class StreamAgent(GenerateAgent):
    """`streamText`: a call is answered while it goes on."""

    missing = STREAM_MISSING


class UiAgent(GenerateAgent):
    """A chat: the client keeps UI messages and answers in them; the server makes model messages of them."""

    missing = UI_MISSING


FLAVOURS: dict[str, type[Agent]] = {
    "": GenerateAgent,
    "generate": GenerateAgent,
    "stream": StreamAgent,
    "ui": UiAgent,
}
"""The flavours: a call is answered when it is over, or while it goes on; or a chat with UI messages."""
