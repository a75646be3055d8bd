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

from collections.abc import Mapping

from ...contract import Agent
from ...javascript import JavaScriptAgent

__all__ = ["FLAVOURS", "GenerateAgent", "StreamAgent", "UiAgent"]

ISSUES = "https://github.com/vercel/ai/issues"

RECOVERY = (
    "a new process calls the SDK with the messages that the application stored last "
    '(https://ai-sdk.dev/docs/ai-sdk-ui/chatbot-message-persistence: "we need to load the chat messages from storage"; '
    'https://ai-sdk.dev/docs/agents/workflow-agent: of an agent in memory, "if the process crashes, all progress is '
    'lost")'
)
"""How to go on after the process died."""

MISSING = {
    "edit": "a tool-approval-response has `approved` and `reason`, and no arguments",
    "message_with_answers": "approval responses count in the last message only; a message behind them hides them",
    "edit_tool": "a tool-approval-response has `approved` and `reason`, and no tool",
    "always": "a tool-approval-response answers one request; nothing approves further calls",
    "never": "a tool-approval-response answers one request; nothing rejects further calls",
    "cancel": "a request is given up by writing something else; nothing takes it back",
    "tampered_request": "a tool-approval-response carries the approvalId, and nothing else of the request",
    "large_integers": "JavaScript reads the numbers of JSON as doubles: `JSON.parse` rounds an integer beyond 2**53",
    "missing_ids": "the Responses client refuses a function_call without a call_id",
    "asks_again": "a gate is asked before `execute`; nothing that `execute` does asks for another approval",
    "nested": "a tool that runs another agent returns when that agent pauses; its request does not surface",
    "nested_parallel": "a tool that runs another agent returns when that agent pauses; its request does not surface",
    "text_with_answer": "with `Output.object` the text of a reply is the answer, and text before it leaves no JSON",
    "nested_gate": "a tool that runs another agent returns when that agent pauses; its request does not surface",
    "hand_offs": "an agent does not hand a conversation over to another one",
    "elicitation_url": "`ElicitationRequest` has a message and a schema, and no address to open",
    "main_renamed": "an agent has no name: `generateText` and `streamText` take a model and tools",
    "stores_in_turns": "the SDK has no store: the application keeps the messages of a call when that has ended",
    "limit_tool_calls": "`stopWhen` counts the model's replies; nothing counts the calls of tools",
}

STREAM_MISSING = MISSING | {
    "message_while_pending": "a user message behind an open request is refused with AI_MissingToolResultsError",
}

GENERATE_MISSING = STREAM_MISSING | {
    "streaming": "`generateText` gives its result when it is over; `streamText` is the flavour `stream`",
    "broken_stream": "`generateText` does not stream",
}

UI_MISSING = MISSING | {
    "malformed_verdict": "the server refuses a chat in which an answer is no boolean (`validateUIMessages`)",
    "history.append": "an answer is written into the message that asks; a turn does not only add to the messages",
    "trim": "`pruneMessages` takes model messages, which the server makes anew of the chat's messages for each call",
}

PROTOCOLS: dict[str, Mapping[str, str]] = {
    "chat": {"reasoning": "the model class of `@ai-sdk/openai` for Chat Completions knows no `reasoning_content`"},
    "messages": {},
}
"""The protocols in addition to its native one, and what is missing over each."""


class GenerateAgent(JavaScriptAgent):
    """`generateText`: a call is answered when it is over."""

    framework = "ai"
    missing = GENERATE_MISSING
    recovery = RECOVERY
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
