"""
LangChain's `create_agent` on LangGraph (`langchain`).

A gated call stops the graph with an `interrupt`, which the checkpointer keeps with the rest of the thread; a decision
is the next run of that thread, with `Command(resume=...)`. What the caller keeps is the id of the thread and, to go on
from an older place, the id of a checkpoint. As the documentation has it, a new message is a run with that message,
whatever waits, and a thread whose run failed is taken up again by running it with None.

Flavours: by default, `HumanInTheLoopMiddleware` asks once for all calls of a reply, and answers are a list by position;
in `per_call` it asks for each call, and answers go by the interrupt's id; in `retry` that gate stands inside of a
`ToolRetryMiddleware`; in `interrupt` there is no middleware, and the tools ask with `interrupt()` from within;
in `tool_node` they do so in a graph of one's own, in which one `ToolNode` runs all calls of a reply.
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
