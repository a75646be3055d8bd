"""The frame of a journal: its header, the starts and losses of agents, the end of the run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from .event import FORMAT, Event, event


@event
@dataclass(slots=True, kw_only=True)
class Header(Event):
    """
    What ran; always the first event.

    Attributes:
        agent: The agent as it was named; *framework*, *version* and *where* say what it was in truth.
        tools: By name, that of another agent's tool as `AGENT/NAME`: `approval` (a word or the fields of a condition),
            `parameters` (name to type, required, default), `kind`, `server`, `agent`, `runs`.
        answer: The fields of the answer that the main agent has to end with, as parameters; None where it is text.
        limits: Where the framework itself must stop a turn: `model_replies`, `tool_calls`; None where it need not.
        observes: The kinds of events that whoever recorded the journal could see; None for all of them.
    """

    kind: ClassVar[str] = "header"
    format: int = FORMAT
    scenario: str
    agent: str
    framework: str | None = None
    version: str | None = None
    where: str | None = None
    variant: dict[str, Any] = field(default_factory=dict)
    tools: dict[str, Any] = field(default_factory=dict)
    answer: dict[str, Any] | None = None
    wire_rules: str = "none"
    capabilities: list[str] = field(default_factory=list)
    reaches: dict[str, int] = field(default_factory=dict)
    expect: dict[str, Any] = field(default_factory=dict)
    fakes: dict[str, str] = field(default_factory=dict)
    limits: dict[str, int] | None = None
    observes: list[str] | None = None
    seed: int = 0

    def sees(self, kind: type[Event]) -> bool:
        """Whether whoever recorded the journal could see events of that kind."""
        return self.observes is None or kind.kind in self.observes


@event
@dataclass(slots=True, kw_only=True)
class AgentStart(Event):
    """
    An agent was built or built anew.

    Attributes:
        how: `built`, `copied`, `restored`, `fresh`, `cold` or `session`.
        parameters: By the header's names of the tools, the parameters of those that take others than it declares.
    """

    kind: ClassVar[str] = "agent.start"
    tools: list[str]
    how: str = "built"
    process: int | None = None
    parameters: dict[str, Any] | None = None


@event
@dataclass(slots=True, kw_only=True)
class AgentLost(Event):
    """
    The agent's process died, hung, or broke the contract: *what* says how. A verdict about the harness or the adapter,
    never about a requirement.
    """

    kind: ClassVar[str] = "agent.lost"
    what: str
    stderr: str = ""


@event
@dataclass(slots=True, kw_only=True)
class RunEnd(Event):
    """
    The run is over; always the last event.

    Attributes:
        how: `completed`, `left` (the caller left on purpose), `timeout`, `interrupted`, or `broken` (the harness could
            not go on; *error* says why).
        pending: The requests that the agent still lists, as in `TurnEnd.requests`.
        error: Its type and message.
    """

    kind: ClassVar[str] = "run.end"
    how: str = "completed"
    pending: list[dict[str, Any]] = field(default_factory=list)
    error: list[str] | None = None
