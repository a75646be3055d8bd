"""Strands Agents (`strands-agents`).

A gate raises an interrupt, which ends the invocation with the stop reason `interrupt`. The next invocation takes a list
of `interruptResponse` blocks, reaches the gates again, and passes each its response. The gate defines what a response
means. The gate of these flavours is the one of the guide "Interrupts": `y` lets the call run, `t` lets this and all
further calls of the tool run (stored in `agent.state`), `n` cancels it.

Flavours: by default a `BeforeToolCallEvent` hook asks, and calls of one reply run concurrently. In `sequential` the
same hook asks under a `SequentialToolExecutor`. In `tool` the tools ask themselves, with `tool_context.interrupt`, and
the hook only asks for those without a body of ours. In `middleware` a handler of `ExecuteToolStage` asks; in `handler`
an `InterventionHandler` asks, whose errors do not stop the agent; in `intervention` the SDK's own `HumanInTheLoop`.
"""

from __future__ import annotations

from ...contract.agent import Agent
from .session import HandlerSession, HookSession, InterventionSession, MiddlewareSession, SequentialSession, ToolSession

__all__ = [
    "FLAVOURS",
    "HandlerSession",
    "HookSession",
    "InterventionSession",
    "MiddlewareSession",
    "SequentialSession",
    "ToolSession",
]

FLAVOURS: dict[str, type[Agent]] = {
    "": HookSession,
    "sequential": SequentialSession,
    "tool": ToolSession,
    "middleware": MiddlewareSession,
    "handler": HandlerSession,
    "intervention": InterventionSession,
}
