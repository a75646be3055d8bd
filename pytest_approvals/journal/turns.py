"""
The turns, forks and exchanges of a journal: the frame that its calls stand in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .events import Event, ModelAnswer, Restored, Saved, Shown, TurnEnd, TurnStart

if TYPE_CHECKING:
    from .calls import CallSeen, Execution, Given


@dataclass(slots=True, kw_only=True)
class Fork:
    """
    A line of one session's history.

    Attributes:
        number: 0 for the first line of a session; unique within the session.
        parent: The fork that it left; None for the first.
        save: The position of the save that it took up.
        n: Where it began.
        mode: What the state went through: `copy`, `json`, `native.NAME`; empty for the first line.
    """

    number: int
    session: str
    parent: int | None = None
    save: int | None = None
    n: int = 0
    mode: str = ""


@dataclass(slots=True, kw_only=True)
class TurnSeen:
    """
    A turn.

    Attributes:
        decisions: What takes effect in it, staged decisions included.
        exchanges: The questions that it put to models.
        executions: The tools that it entered.
        shown: What its stream showed.
        overlaps: Another turn of the same session ran at the same time.
        before: The turn before it in its line of history, that of a parent fork included.
        listed: The calls that its end asks about.
        hung_up: Where the caller hung up, so that it was cancelled; None where that did not happen.
    """

    number: int
    session: str
    fork: int
    start: TurnStart
    end: TurnEnd | None = None
    decisions: list[Given] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    executions: list[Execution] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    overlaps: bool = False
    before: TurnSeen | None = None
    listed: list[CallSeen] = field(default_factory=list)
    hung_up: int | None = None

    @property
    def outcome(self) -> str:
        """`paused`, `finished`, `failed`, `timeout`, or `open` where it has no end."""
        return self.end.outcome if self.end is not None else "open"

    @property
    def ended(self) -> int:
        """The position of its end; 0 where it has none."""
        return self.end.n if self.end is not None else 0

    @property
    def failed(self) -> bool:
        """Whether it ended with an error that the caller could see."""
        return self.end is not None and self.end.outcome == "failed"

    @property
    def refused(self) -> bool:
        """Whether it failed before it reached a model or a tool."""
        return self.failed and not self.exchanges and not self.executions

    @property
    def requests(self) -> Sequence[Mapping[str, Any]]:
        """What surfaced at its end."""
        return self.end.requests if self.end is not None else ()


@dataclass(slots=True, kw_only=True)
class Exchange:
    """
    A question to a model and what came of it.

    Attributes:
        reply: The answer, failure, refusal or exhaustion that followed; None where the journal ends before.
        placed: The calls of the journal that the input contains, each with the index of its item.
        unanswered: Those of them that have no result in it.
        orphans: Indexes of results whose call is not in it.
        strangers: Indexes of calls in it that the model never made.
        approvals: Indexes of approval requests and responses in it.
        before: The exchange that the conversation had before, in the same fork.
        repeats: The input begins with exactly that one's input.
        differs: Where the input ceases to repeat that one by kind, id and text; None where it repeats all of it.
    """

    n: int
    m: int
    session: str
    fork: int
    conversation: str
    agent: str
    items: Sequence[Mapping[str, Any]]
    tools: Sequence[str] = ()
    turn: TurnSeen | None = None
    reply: Event | None = None
    placed: list[tuple[int, CallSeen]] = field(default_factory=list)
    unanswered: list[CallSeen] = field(default_factory=list)
    orphans: list[int] = field(default_factory=list)
    strangers: list[int] = field(default_factory=list)
    approvals: list[int] = field(default_factory=list)
    before: Exchange | None = None
    repeats: bool = False
    differs: int | None = None

    @property
    def answer(self) -> ModelAnswer | None:
        """The reply, where it is an answer."""
        return self.reply if isinstance(self.reply, ModelAnswer) else None

    @property
    def texts(self) -> list[str | None]:
        """The messages of the input."""
        return [item.get("text") for item in self.items if item["kind"] == "user"]


@dataclass(slots=True, kw_only=True)
class SaveSeen:
    """
    A save, whether it worked or not.

    Attributes:
        turn: The last turn of the line that was saved; None where there was none.
    """

    event: Saved
    fork: int
    turn: TurnSeen | None = None


@dataclass(slots=True, kw_only=True)
class RestoreSeen:
    """
    A restore, whether it worked or not.

    Attributes:
        save: What was taken up; None where the journal does not have it.
        listed: The calls that are asked about right after it.
    """

    event: Restored
    save: SaveSeen | None = None
    listed: list[CallSeen] = field(default_factory=list)
