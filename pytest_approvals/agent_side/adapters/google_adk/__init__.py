"""
Google's Agent Development Kit (`google-adk`).

A gated call ends the run with a call of `adk_request_confirmation`, which stands in the session's events like any
other; a decision is the next run, whose message is the result of that call: `{"confirmed": true}`. All that is kept is
the session, in one of the framework's session services.

Flavours: by default, tools are `FunctionTool(..., require_confirmation=...)`; in `resumable` these stand in an `App`
with `ResumabilityConfig(is_resumable=True)`, and an answer names the invocation that asked; in `dynamic` the bodies ask
with `tool_context.request_confirmation(...)` and read the answer's payload; in `custom_tool` each tool is a class of
its own with `check_require_confirmation`. An agent that a tool runs is a sub-agent of mode `single_turn`, as the
framework advises in place of `AgentTool`; before there were modes it is an `AgentTool`.
"""

from __future__ import annotations

from ...contract.agent import Agent
from .session import CustomToolSession, DynamicSession, ResumableSession, StaticSession

__all__ = ["FLAVOURS", "CustomToolSession", "DynamicSession", "ResumableSession", "StaticSession"]

FLAVOURS: dict[str, type[Agent]] = {
    "": StaticSession,
    "resumable": ResumableSession,
    "dynamic": DynamicSession,
    "custom_tool": CustomToolSession,
}
