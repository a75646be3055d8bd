"""The tools of a scenario and what they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_approvals.agent_side.conditions import Approval
from pytest_approvals.agent_side.contract import Kind, Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """
    What one execution of a tool does; the first of these that is set happens, in this order.

    Attributes:
        waits_for: A signal that must be given first: a name that a `signal` step gives, `started LABEL` or `ended
            LABEL` of another call.
        asks_again: The tool asks for a second approval with this question; the execution ends there.
        raises: The tool fails with this text.
        returns: Any JSON value; in text, `{parameter}` stands for that argument.
    """

    waits_for: str | None = None
    asks_again: str | None = None
    raises: str | None = None
    returns: Any = "ok"


def behaviours(
    *, waits_for: str | None = None, asks_again: str | None = None, raises: str | None = None, returns: Any = "ok"
) -> tuple[Behaviour, ...]:
    """
    Gives what one call does that raises or returns: one behaviour, or two where it asks again before that, the question
    and what follows.
    """
    then = Behaviour(raises=raises, returns=returns, waits_for=None if asks_again else waits_for)
    return (Behaviour(waits_for=waits_for, asks_again=asks_again), then) if asks_again else (then,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """
    One tool and what it does.

    Attributes:
        behaviours: What its executions do: the k-th execution of one call does the k-th, the last one for ever.
        per_call: Behaviours of single calls, by label, instead.
        runs: The agent that a call runs; its behaviour is then that agent's.
        hands_over_to: The agent that a call hands the conversation over to; what that agent's model replies stands in
            the same script, and calls its tools `AGENT/TOOL`.
        called: What model and agent call the tool, where that differs from its name here: two servers may offer tools
            of one name.
    """

    name: str
    called: str | None = None
    description: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    approval: Approval = "never"
    kind: Kind = "function"
    server: str | None = None
    agent: str = "main"
    runs: str | None = None
    hands_over_to: str | None = None
    behaviours: tuple[Behaviour, ...] = (Behaviour(),)
    per_call: Mapping[str, tuple[Behaviour, ...]] = field(default_factory=dict)

    @property
    def visible_name(self) -> str:
        """The name that model and agent know."""
        return self.called or self.name

    @property
    def key(self) -> str:
        """The name that is unique in the scenario: that of another agent's tool begins with the agent."""
        return self.name if self.agent == "main" else f"{self.agent}/{self.name}"
