"""
A scenario as it is while it is made smaller: turns, each with the replies of the model that it took.

Drafts are values; what a tool takes and gives is not written down in them, but seen from the calls that are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

DraftVerdict = Literal["approve", "reject", "edit", "always", "never", "raw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftResult:
    """What a call gave: a value, or the text of what its tool raised."""

    value: Any = None
    raised: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftCall:
    """
    A call of the model.

    Attributes:
        key: Names the call within the draft, whatever is taken out of it.
        id: The id that the model gave, as it was stored; None where it gave none.
        arguments: An object, or text that was none.
        result: None where the conversation does not tell, or nobody needs to know.
    """

    key: str
    id: str | None
    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    result: DraftResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftReply:
    """A reply of the model."""

    say: str | None = None
    calls: tuple[DraftCall, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftDecision:
    """
    A decision.

    Attributes:
        call: The key of the call that it is about; None for a decision about nothing that was asked.
        unknown: What it says it is about, where it is about nothing.
        text: The reason of a rejection.
        arguments: Of an edit, or the raw value.
    """

    call: str | None
    verdict: DraftVerdict
    unknown: str = ""
    text: str | None = None
    arguments: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTurn:
    """
    A step of the caller, with the replies that the model gave then.

    Attributes:
        oracle: What is pending is left to the oracle.
    """

    send: str | None = None
    answers: tuple[DraftDecision, ...] = ()
    oracle: bool = False
    replies: tuple[DraftReply, ...] = ()

    @property
    def is_step(self) -> bool:
        """Whether the caller does anything."""
        return self.send is not None or bool(self.answers) or self.oracle


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftTool:
    """A tool: whether its calls are gated, and who runs it."""

    gated: bool = False
    kind: str = "function"
    server: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioDraft:
    """
    A scenario.

    Attributes:
        vary: The dimensions that vary besides.
    """

    tools: Mapping[str, DraftTool]
    turns: tuple[DraftTurn, ...]
    vary: tuple[str, ...] = ()

    def replies(self) -> Iterator[DraftReply]:
        """Gives the model's replies in order."""
        return (reply for turn in self.turns for reply in turn.replies)

    def calls(self) -> Iterator[DraftCall]:
        """Gives the model's calls in order."""
        return (call for reply in self.replies() for call in reply.calls)

    def tidy(self) -> ScenarioDraft:
        """Gives the draft without what means nothing any more: answers about calls that are gone, empty steps."""
        keys = {call.key for call in self.calls()}
        turns: list[DraftTurn] = []
        for turn in self.turns:
            answers = tuple(answer for answer in turn.answers if answer.call is None or answer.call in keys)
            replies = tuple(reply for reply in turn.replies if reply.calls or reply.say is not None)
            kept = replace(turn, answers=answers, replies=replies)
            if kept.is_step or not turns:
                turns.append(kept)
            else:
                turns[-1] = replace(turns[-1], replies=(*turns[-1].replies, *replies))
        return replace(self, turns=tuple(turns))
