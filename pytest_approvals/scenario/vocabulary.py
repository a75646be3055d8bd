"""Vocabulary of the scenario language: dimensions of variants, counted events, parameter types."""

from __future__ import annotations

from pytest_approvals.agent_side.contract.capabilities import PROTOCOLS

DIMENSIONS: dict[str, tuple[object, ...]] = {
    "serialize": ("none", "copy", "json"),
    "resume": ("same", "fresh", "cold"),
    "history": ("whole", "append"),
    "stream": (False, True),
    "source": ("held", "restored", "rebuilt"),
    "oracle": ("script", "approve_all", "reject_all", "random", "allowlist"),
    "chunking": (
        *("whole", "tokens", "ids_first", "split", "interleaved", "empty"),
        *("repeated_ids", "late_ids", "blank_ids", "changing_ids"),
    ),
    "protocol": ("native", *PROTOCOLS),
}
"""Dimensions of a variant with their values, the plainest first.

`serialize` may also be `native.NAME`; the last two oracles take arguments: `random:7`,
`allowlist:read_file,list_files`.
"""

ANY_STORE = "native"
"""Value of `only: {serialize: ...}` for all durable stores of the agent."""

SERVER_STORES = ("native.postgres",)
"""Serialize modes whose files a server writes: the agent's process dies without cutting off a write to them."""

ANNOTATIONS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
"""What an MCP server can say about a tool, in the words of MCP (`ToolAnnotations`, 2025-06-18)."""

ELICITED_TYPES = ("string", "integer", "number", "boolean")
"""Types of the fields of an elicitation, whose schema is restricted to primitive ones (MCP of 2025-06-18)."""

VARIED_ON_REQUEST = ("resume", "history", "source", "chunking", "protocol")
"""Dimensions that `vary` may name."""

REACHES: dict[str, str] = {
    "paused": "turns that ended with open requests",
    "finished": "turns that ended with an output",
    "failed": "turns that failed",
    "refused": "turns that failed before model or tool was reached",
    "called": "calls that a model made",
    "surfaced": "requests that surfaced, each counted once",
    "approved": "decisions to approve",
    "rejected": "decisions to reject",
    "edited": "decisions to approve with other arguments",
    "always": "decisions to approve this and all further calls",
    "never": "decisions to reject this and all further calls",
    "malformed": "answers that are not a decision, or name no request",
    "unknown": "decisions about a request that was never asked",
    "staged": "stagings that worked",
    "cancelled": "times that what was pending was cancelled",
    "hung_up": "turns that the caller disconnected from",
    "crashed": "turns in which the agent's process was killed",
    "disk_full": "turns in which nothing could be stored any more",
    "write_failed": "turns in which something could not be stored",
    "lost": "times that the store had lost what a turn had stored",
    "stale": "times that the store was read as it was before the last turn",
    "stopped": "turns in which the agent's process was stopped over other turns",
    "ran": "executions of tools that began",
    "raised": "executions of tools that raised",
    "asked_again": "executions of tools that asked for a second approval",
    "elicited": "questions of MCP servers that the caller was shown",
    "gated": "questions to an approval condition",
    "saved": "times that the state was saved",
    "restored": "times that a save was restored",
    "trimmed": "times that the history was trimmed",
    "rewritten": "times that the text of a save was changed",
    "model_failed": "failures of the model",
    "model_refused": "inputs that the model refused",
    "exhausted": "questions to a model whose script had no further reply",
    "nested": "conversations of agents that a tool ran",
}
"""Keys of `reaches`, each with what it counts."""

AT_MODEL = "model"
"""Value of `hangs_up`, `crashes` and `stops` for the first model request of a turn."""

AT_STREAM = "shown"
"""Value of `crashes` for the first thing that the turn's stream shows."""

AT_OUTCOME = "outcome"
"""Value of `crashes` for the end of a turn, before its caller learns of it."""

AT_WRITE = "write"
"""Value of `crashes`, `disk_full` and `fails_once` for the first write of a turn to a durable store.

With the label of a call behind it, for the next write after that call has returned.
"""

STOPS_IN_CALLS = ("before", "started", "ended")
"""First words of `stops` with the label of a call: before its effect, in the middle of it, and right after it."""

CRASHES_IN_CALLS = (*STOPS_IN_CALLS, AT_WRITE)
"""First words of `crashes` with the label of a call: also in the middle of the next write after it has returned."""

TURN_KEYS = ("hangs_up", "crashes", "stops", "disk_full", "fails_once", "loses", "reads")
"""Keys of a step that is a turn: what cuts it off, holds it up, or becomes of what it stores or reads."""

PARAMETER_TYPES = ("string", "integer", "number", "boolean", "array", "object")
"""Types of tool parameters, as in JSON Schema."""
