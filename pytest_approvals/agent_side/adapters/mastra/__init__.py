"""Mastra (npm `@mastra/core`).

A call of a tool with `requireApproval` suspends the run whose model made it. The storage of the `Mastra` instance keeps
the run until it is resumed by its id, with `approveToolCall` or `declineToolCall` (guide "Human-in-the-loop"):

- A session is a thread of the agent's memory. Each message is a run of its own; what is suspended in a thread is what
  `listSuspendedRuns` lists, also in another process.
- Calls of a reply are asked about one after the other: Mastra runs the calls of agents with gated tools one by one.
- A turn that is streamed uses `stream` and `approveToolCall`, any other one `generate` and `approveToolCallGenerate`.
- The models are those of the AI SDK's providers.

With `durable: true` each run is a workflow, which is stored as it goes on.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...contract import RENAMED, Agent
from ...javascript import JavaScriptAgent

__all__ = ["FLAVOURS", "MastraAgent"]

ISSUES = "https://github.com/mastra-ai/mastra/issues"

STORES: Mapping[str, str] = {"libsql": "`LibSQLStore` on a file"}

RECOVERY = (
    "a new process opens the storage and answers what `listSuspendedRuns` lists for the thread "
    '(https://mastra.ai/reference/agents/listSuspendedRuns: "Storage-backed discovery continues to work after a server '
    'restart and across multiple server instances")'
)
"""How to go on after the process died."""

DURABLE_RECOVERY = (
    "a new process recovers the runs that are stored as running (https://mastra.ai/docs/agents/durable-agents: "
    '"re-drive these orphaned runs so they pick up where they left off"), '
    "and answers what `listSuspendedRuns` lists then"
)
"""How to go on after the process died, if runs are workflows."""

_ONE_BY_ONE = "`toolCallConcurrency` is 1 if approval may be required: the next call is asked about after the answer"
_ANSWER = "`approveToolCall` and `declineToolCall` take the id of a run, the id of a call, and a reason"
_STORED = "a run is in the storage of the instance, and nothing gives it as text"

MISSING: Mapping[str, str] = {
    "go_on_without_answer": "`stream` takes a message, and what resumes a run takes an answer",
    "message_with_answers": _ANSWER,
    "partial_answers": _ONE_BY_ONE,
    "concurrent_tools": _ONE_BY_ONE,
    "slow_conditions": _ONE_BY_ONE,
    "edit": _ANSWER,
    "edit_tool": _ANSWER,
    "always": _ANSWER,
    "never": _ANSWER,
    "stage": "an answer resumes the run at once",
    "cancel": "a suspended run is answered or left; nothing takes it back",
    "tampered_request": _ANSWER,
    "contradiction": "a call of the API is one answer; a submission holds no second one",
    "large_integers": "JavaScript reads the numbers of JSON as doubles: `JSON.parse` rounds an integer beyond 2**53",
    "missing_ids": "the Responses client refuses a function_call without a call_id",
    "hand_offs": "a sub-agent answers its caller; none takes a conversation over",
    "text_with_answer": "with `structuredOutput` the text of a reply is the answer, and text before it leaves no JSON",
    "hosted_mcp": "calls that the provider runs are passed on as they are; its requests for approval are no chunks",
    "limit_tool_calls": "`maxSteps` and `stopWhen` count the model's replies; nothing counts the calls of tools",
    "serialize.copy": _STORED,
    "serialize.json": _STORED,
    "history.append": _STORED,
    "rewind": "the storage holds the newest state of a run, and none when it has ended",
    "trim": "`lastMessages` limits what a new message loads; a resumed run has its messages in its snapshot",
}

PROTOCOLS: dict[str, Mapping[str, str]] = {
    "chat": {"reasoning": "the model class of `@ai-sdk/openai` for Chat Completions knows no `reasoning_content`"},
    "messages": {},
}
"""The protocols in addition to its native one, and what is missing over each."""


class MastraAgent(JavaScriptAgent):
    """An agent with memory, whose suspended runs are in the storage of its `Mastra` instance."""

    framework = "@mastra/core"
    missing = MISSING
    wire_rules = "responses"
    native = "responses"
    protocols = PROTOCOLS
    recovery = RECOVERY
    stores = STORES
    connects = True
    renames = RENAMED
    issues = ISSUES


class DurableMastraAgent(MastraAgent):
    """The same with `durable: true`: its runs are durable workflows."""

    recovery = DURABLE_RECOVERY


FLAVOURS: dict[str, type[Agent]] = {"": MastraAgent, "durable": DurableMastraAgent}
