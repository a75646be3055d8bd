"""The steps of the caller's script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_approvals.agent_side.contract import Parameter, Verdict

AnswerSource = Literal["held", "restored", "rebuilt"]
"""Which copy of a request a decision is made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    One decision in the caller's script.

    Attributes:
        label: The call that it is about; None for a decision about nothing that was asked.
        unknown_id: In place of a label: a request id that the framework never gave.
        address: In place of both, where *malformed_address*: this value, verbatim.
        shows: The request that is handed over says these arguments in place of the real ones: a tampered copy. With
            *unknown_id*, the arguments of a request that is forged from nothing.
        shows_tool: Likewise, the tool.
        source: Which copy of the request the answer is made from; None leaves it to the variant.
        unknown_tool: The tool of an edit does not exist, on purpose.
        invalid: The arguments of an edit do not fit the declared parameters, on purpose.
    """

    label: str | None = None
    verdict: Verdict = "approve"
    reason: str | None = None
    arguments: Mapping[str, Any] | None = None
    tool: str | None = None
    raw: Any = None
    unknown_id: str | None = None
    malformed_address: bool = False
    address: Any = None
    shows: Mapping[str, Any] | None = None
    shows_tool: str | None = None
    source: AnswerSource | None = None
    unknown_tool: bool = False
    invalid: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """
    The caller hands in text and answers, either or none of them: with none, it goes on without an answer.

    Attributes:
        hangs_up: Where the caller hangs up, so that the turn is cancelled while it runs: `started LABEL` of a call, or
            `model` for the first question to a model in the turn.
    """

    text: str | None = None
    answers: tuple[Answer, ...] = ()
    session: str = ""
    hangs_up: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LetOracle:
    """The oracle answers what is pending, until nothing is or *rounds* are over."""

    rounds: int | None = None
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Decisions go into the state, nothing runs yet."""

    answers: tuple[Answer, ...]
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Save:
    """The state is saved under a name, to be rewound to."""

    name: str
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """The state saved under that name is taken up again."""

    name: str
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """
    The agent is built anew from the saved state; in a *fresh* process, or with some tools missing (*without*), more of
    them (*with_tools*, held back so far), or other *parameters* of some.
    """

    fresh: bool = False
    without: tuple[str, ...] = ()
    with_tools: tuple[str, ...] = ()
    parameters: Mapping[str, Mapping[str, Parameter]] = field(default_factory=dict)
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """What is pending is given up."""

    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trim:
    """The framework's own history trimming keeps the last *keep* messages."""

    keep: int
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """
    Somebody changes the text of what was saved: it says *new* where it said *old*, in every place, in those alone that
    say what a person is shown, or in all others.
    """

    old: str
    new: str
    where: Literal["every", "shown", "hidden"] = "every"
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A signal is given, for the tools and conditions that wait for it."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """
    These turns run at the same time.

    Each turn after the first begins when the one before it waits in a tool or has ended, so that the order is the same
    in every run. Turns of one session run on two copies of its state where the state is saved between turns, on one
    live object where it is not.
    """

    steps: tuple[Turn | Signal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """The caller leaves: nobody answers what is pending now. Without it, the oracle answers until the end."""


Step = Turn | LetOracle | Stage | Save | Restore | Restart | Cancel | Trim | Rewrite | Signal | Together | Leave
