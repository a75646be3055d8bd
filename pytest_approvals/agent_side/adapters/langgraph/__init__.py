"""LangChain's `create_agent` on LangGraph (`langchain`).

A gated call stops the graph with an `interrupt`, which the checkpointer stores with the rest of the thread. A decision
is the next run of that thread, with `Command(resume=...)`. The caller keeps the id of the thread and, to resume from an
older place, the id of a checkpoint. As documented, a new message is a run with that message, whatever is pending, and a
thread whose run failed is resumed by a run with None.

Flavours: by default, `HumanInTheLoopMiddleware` asks once for all calls of a reply, and decisions are a list by
position. In `per_call` it asks for each call, and decisions go by the interrupt's id; in `retry` that gate is inside a
`ToolRetryMiddleware`. In `interrupt` there is no middleware, and the tools call `interrupt()` themselves; in
`tool_node` they do so in a custom graph in which one `ToolNode` runs all calls of a reply.
"""

from __future__ import annotations

from ...contract.agent import Agent
from .session import BatchedSession, InterruptSession, PerCallSession, RetrySession, ToolNodeSession

__all__ = ["FLAVOURS", "BatchedSession", "InterruptSession", "PerCallSession", "RetrySession", "ToolNodeSession"]

FLAVOURS: dict[str, type[Agent]] = {
    "": BatchedSession,
    "batched": BatchedSession,
    "per_call": PerCallSession,
    "retry": RetrySession,
    "interrupt": InterruptSession,
    "tool_node": ToolNodeSession,
}
