"""
What a history remembers around a call: the declared tool, requests, decisions, executions, and what a model was told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.conditions import Approval, Condition

from .events import Decide, ToolEnd, ToolStart

if TYPE_CHECKING:
    from .calls import CallSeen
    from .turns import TurnSeen

APPROVING = frozenset({"approve", "edit", "always"})
"""The verdicts that let a call run."""

REJECTING = frozenset({"reject", "never"})
"""The verdicts that close a call."""

END = 1 << 62
"""A position behind every journal."""


@dataclass(slots=True, kw_only=True)
class Declared:
    """One tool as the header declares it."""

    name: str
    approval: Approval
    parameters: Mapping[str, Mapping[str, Any]]
    kind: str = "function"
    server: str | None = None
    agent: str = "main"
    runs: str | None = None
    hands_over_to: str | None = None

    @classmethod
    def of(cls, name: str, written: Mapping[str, Any]) -> Declared:
        """Reads one entry of `Header.tools`; its name is the one that model and agent know."""
        approval = written.get("approval", "never")
        if isinstance(approval, Mapping):
            approval = Condition(**{key: _frozen(value) for key, value in approval.items()})
        return cls(
            name=written.get("called") or name.rpartition("/")[2],
            approval=approval,
            parameters=written.get("parameters") or {},
            kind=written.get("kind") or "function",
            server=written.get("server"),
            agent=written.get("agent") or "main",
            runs=written.get("runs"),
            hands_over_to=written.get("hands_over_to"),
        )


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@dataclass(slots=True, kw_only=True)
class Asked:
    """
    A surfaced request.

    Attributes:
        q: The harness' number of it.
        n: Where it surfaced first.
        entry: The request as it was shown first: `{q, id, call_id, tool, arguments, kind, server, agent, label}`.
        listed: Every place where it was listed, with what was shown there: turn ends, restores, the end.
        call: The call that it is about; None where it is about none that the model made.
    """

    q: str
    n: int
    session: str
    fork: int
    entry: Mapping[str, Any]
    listed: list[tuple[int, Mapping[str, Any]]] = field(default_factory=list)
    call: CallSeen | None = None

    @property
    def tool(self) -> str:
        """The tool that it shows."""
        return str(self.entry.get("tool", ""))

    @property
    def arguments(self) -> Any:
        """The arguments that it shows."""
        return self.entry.get("arguments")

    @property
    def label(self) -> str | None:
        """What the scenario calls the call that it is about."""
        return self.entry.get("label")


@dataclass(slots=True, kw_only=True)
class Given:
    """
    A decision.

    Attributes:
        n: Where it was made.
        asked: The request that it answers; None where it answers nothing that was asked.
        call: The call that it is about.
        taken: Where it was handed in: the start of a turn, or a staging; None while it was not.
        turn: The turn that it takes effect in; for a staged decision the next one.
        staged: It was put into the state before that turn.
        lost: The staging failed.
    """

    event: Decide
    n: int
    verdict: str
    asked: Asked | None
    call: CallSeen | None
    taken: int | None = None
    turn: TurnSeen | None = None
    staged: bool = False
    lost: bool = False

    @property
    def approves(self) -> bool:
        """Whether it lets the call run; where a decision goes, a plain true may be one."""
        if self.verdict == "raw":
            return isinstance(self.event.raw, dict) and self.event.raw.get("verdict") is True
        return self.verdict in APPROVING

    @property
    def rejects(self) -> bool:
        """Whether it closes the call."""
        return self.verdict in REJECTING

    @property
    def refused(self) -> bool:
        """Whether the agent refused it: the turn that brought it reached neither model nor tool, and failed."""
        return self.lost or (self.turn is not None and self.turn.refused)

    def in_force(self, n: int) -> bool:
        """Whether it was handed in before position *n* and not refused."""
        return self.taken is not None and self.taken < n and not self.refused


@dataclass(slots=True, kw_only=True)
class Execution:
    """
    A tool's body was entered.

    For a call that runs another agent it stands for that agent's run: *x* is 0, *start* is None, and it begins with the
    first question to that agent's model.
    """

    n: int
    x: int
    session: str
    fork: int
    tool: str
    arguments: Any
    call_id: str | None = None
    agent: str = "main"
    by: str = "agent"
    start: ToolStart | None = None
    end: ToolEnd | None = None
    call: CallSeen | None = None
    turn: TurnSeen | None = None
    ended: int | None = None
    how: str = "open"

    @property
    def result(self) -> Any:
        """What it returned."""
        return self.end.result if self.end is not None else None

    @property
    def error(self) -> list[str] | None:
        """Type and message of what it raised."""
        return self.end.error if self.end is not None else None


@dataclass(slots=True, kw_only=True)
class Told:
    """
    A result of a call reached the model.

    Attributes:
        n: The position of the question whose input holds it, or for a hosted call of the reply that reports it.
        item: Its index in that input; None for a hosted result in a reply.
        second: Another result of the same call stands in the same input before it.
    """

    n: int
    text: str | None
    item: int | None = None
    second: bool = False
