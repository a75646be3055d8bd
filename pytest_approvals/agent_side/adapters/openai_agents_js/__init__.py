"""The OpenAI Agents SDK for JavaScript (npm `@openai/agents`).

A paused run is a `RunState`: decisions go into it with `approve` and `reject`, and `run(agent, state)` goes on with it.
What the caller keeps between turns follows the SDK's guides "Human in the loop" and "Running agents":

- A new message starts a run of its own, with the history of the last result followed by the message. A message that
  comes together with decisions is put into the paused run (`RunState.addInput`).
- After a resumed run failed, the same `RunState` is resumed again, unless the error holds the history with all results:
  then the next message begins a run with it. After a run that began with a message failed, its input is handed in
  again.
- A finished run's state is kept until the next run, so that a decision that comes late can be handed in.
"""

from __future__ import annotations

from ...contract import RENAMED, Agent
from ...javascript import JavaScriptAgent

__all__ = ["FLAVOURS", "OpenAIAgentsJs"]

ISSUES = "https://github.com/openai/openai-agents-js/issues"

RECOVERY = (
    "a new process reads the RunState and the history that the application kept "
    '(https://openai.github.io/openai-agents-js/guides/human-in-the-loop: the SDK "lets you resume later from the same '
    'RunState")'
)
"""How to go on after the process died."""

MISSING = {
    "edit": "RunState.approve takes no arguments, and an item whose arguments were changed is not what was asked",
    "edit_tool": "RunState.approve takes no other tool",
    "cancel": "RunState has approve and reject; giving up a paused run is dropping its state",
    "malformed_verdict": "a decision is a method, RunState.approve or RunState.reject; no value stands for it",
    "contradiction": "RunState keeps one decision a call: until it is handed in, a later one replaces the earlier one",
    "large_integers": "JavaScript reads the numbers of JSON as doubles: `JSON.parse` rounds an integer beyond 2**53",
    "missing_ids": "a function_call item requires a callId",
    "text_with_answer": "with `outputType` the text of a reply is the answer, and text before it leaves no JSON",
    "asks_again": "needsApproval is asked before the body; nothing that a body throws or returns is an interruption",
    "annotations": "`needsApproval` and `requireApproval` are told nothing of what a server says about a tool",
    "elicitation": "`MCPServerStreamableHttp` makes its client without capabilities, and takes no handler of requests",
    "limit_tool_calls": "run has maxTurns; nothing counts the calls of tools",
    "serialize.copy": "a RunState has private fields, which structuredClone refuses; its copy is its text",
    "history.append": "RunState.toString gives the whole run each time",
    "tools_change": "RunState.fromString refuses a state that waits for a tool that the agent does not have",
    "stores_in_turns": "the application stores a RunState after a run; the SDK's own sessions are not in files",
    "trim": "nothing trims: the input list is the caller's",
}

PROTOCOLS = {
    "chat": {
        "hosted_mcp": "OpenAIChatCompletionsModel refuses hosted tools before any request",
        "reasoning": "OpenAIChatCompletionsModel does not send `reasoning_content` back",
    },
}
"""The protocol in addition to its native one, and what is missing over it."""


class OpenAIAgentsJs(JavaScriptAgent):
    """The caller keeps the input list of the conversation, the agent that has it, and the `RunState` of its run."""

    framework = "@openai/agents"
    missing = MISSING
    recovery = RECOVERY
    wire_rules = "responses"
    native = "responses"
    protocols = PROTOCOLS
    connects = True
    renames = RENAMED
    issues = ISSUES


FLAVOURS: dict[str, type[Agent]] = {"": OpenAIAgentsJs}
