"""What is seen on the tools' side: gates, and executions with their starts and ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .event import Event, event


@event
@dataclass(slots=True, kw_only=True)
class Gate(Event):
    """The framework asked the policy about a call; *answer* is None where the policy raised."""

    kind: ClassVar[str] = "tool.gate"
    tool: str
    arguments: Any
    call_id: str | None
    agent: str = "main"
    answer: bool | None = None
    raised: str | None = None


@event
@dataclass(slots=True, kw_only=True)
class ToolStart(Event):
    """
    A tool's body was entered; *by* is `agent`, or `provider` for a hosted call. *real* where a person's own tool ran.
    """

    kind: ClassVar[str] = "tool.start"
    x: int
    tool: str
    arguments: Any
    call_id: str | None = None
    agent: str = "main"
    by: str = "agent"
    real: bool | None = None


@event
@dataclass(slots=True, kw_only=True)
class ToolEnd(Event):
    """The execution *x* ended: `returned`, `raised`, `asked` (it wants a second approval), or `cancelled`."""

    kind: ClassVar[str] = "tool.end"
    x: int
    how: str = "returned"
    result: Any = None
    error: list[str] | None = None
