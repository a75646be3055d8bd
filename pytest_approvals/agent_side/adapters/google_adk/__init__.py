"""Google's Agent Development Kit (`google-adk`).

A gated call ends the run with a call of `adk_request_confirmation`, which is in the session's events like any other. A
decision is the next run, whose message is the result of that call: `{"confirmed": true}`. All that is kept is the
session, in one of the framework's session services.

Flavours: by default, tools are `FunctionTool(..., require_confirmation=...)`. In `resumable` these are in an `App` with
`ResumabilityConfig(is_resumable=True)`, and a decision names the invocation that asked. In `dynamic` the bodies ask
with `tool_context.request_confirmation(...)` and read the payload of the answer. In `custom_tool` each tool is a
subclass with `check_require_confirmation`. An agent that a tool runs is a sub-agent of mode `single_turn`, as the
framework advises in place of `AgentTool`; in releases without modes it is an `AgentTool`.
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
