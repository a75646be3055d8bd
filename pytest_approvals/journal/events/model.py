"""What is seen on the model's side: requests, answers, failures and refusals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from .event import Event, event


@event
@dataclass(slots=True, kw_only=True)
class ModelRequest(Event):
    """
    The model was asked; exactly one of the next four kinds follows, with the same *m*.

    Attributes:
        m: Numbers the questions to the model.
        conversation: Which conversation: the agent's name, with the label of the call that runs it where it is nested:
            `main`, `o1/helper`.
        items: The complete input, each `{kind, id, tool, arguments, text, approved, message}` without what is None.
        tools: The tools that the model was offered.
    """

    kind: ClassVar[str] = "model.request"
    m: int
    conversation: str
    agent: str
    items: list[dict[str, Any]]
    tools: list[str] = field(default_factory=list)
    stream: bool = False


@event
@dataclass(slots=True, kw_only=True)
class ModelAnswer(Event):
    """
    The model replied; each call is `{label, id, tool, arguments, kind, server}`, each hosted result `{label, output,
    error}`; *answer* is a structured one.
    """

    kind: ClassVar[str] = "model.answer"
    m: int
    conversation: str
    say: str | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)
    answer: dict[str, Any] | None = None
    hosted: list[dict[str, Any]] = field(default_factory=list)


@event
@dataclass(slots=True, kw_only=True)
class ModelFailure(Event):
    """
    The model failed as the script says; *shown* counts the pieces of the stream that came before.

    Attributes:
        how: A name in `failures.BREAKS`, where there is no status and it is not `disconnect`; `hung_up` where nobody
            waited for the answer.
    """

    kind: ClassVar[str] = "model.failure"
    m: int
    conversation: str
    status: int
    shown: int | None = None
    how: str | None = None
    retry_after: float | None = None


@event
@dataclass(slots=True, kw_only=True)
class ModelRefusal(Event):
    """The model refused its input as a real provider does; *broken* holds `{rule, ids, text}` for each rule."""

    kind: ClassVar[str] = "model.refusal"
    m: int
    conversation: str
    broken: list[dict[str, Any]]


@event
@dataclass(slots=True, kw_only=True)
class ModelExhausted(Event):
    """
    The model was asked once more than its script has replies; *limit* where the harness' own limit of model calls was
    reached.
    """

    kind: ClassVar[str] = "model.exhausted"
    m: int
    conversation: str
    limit: int | None = None
