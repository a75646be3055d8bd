"""
Strands Agents (`strands-agents`).

A gate raises an interrupt, which ends the invocation with the stop reason `interrupt`; the next one takes a list of
`interruptResponse` blocks, goes to the gates again, and hands each its response. What a response means is the gate's
business. The gate of these flavours is the one of the guide "Interrupts": `y` lets the call run, `t` lets this and all
further calls of the tool run (kept in `agent.state`), `n` cancels it.

Flavours: by default a `BeforeToolCallEvent` hook asks, and calls of one reply run concurrently; in `sequential` the
same hook asks under a `SequentialToolExecutor`; in `tool` the tools ask from within, with `tool_context.interrupt`, and
the hook only for those that have no body of ours; in `middleware` a handler of `ExecuteToolStage` asks; in `handler` an
`InterventionHandler` asks, whose errors do not stop the agent; in `intervention` the SDK's own `HumanInTheLoop` asks.
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
