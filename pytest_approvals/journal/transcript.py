"""Transcript: a journal as text that is made to be read in a code review.

    turn 1
      caller  sends "Delete a.txt"
      model   is asked "Delete a.txt"
      model   calls c1 delete_file(path="a.txt")
      agent   pauses for c1

    turn 2
      caller  approves c1
      tool    c1 delete_file(path="a.txt") starts
      tool    c1 returns "deleted a.txt"
      model   is told c1: "deleted a.txt"
      model   says "Done."
      agent   finishes with "Done."

    end
      run     ends

    calls
      c1 delete_file(path="a.txt"): asked → approved → ran → told "deleted a.txt"

It is the same for every variant of a correct agent: how the state was kept between turns, how the reply was streamed
and from which copy a decision was made leave no trace in it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from pytest_approvals.errors.printable import escape_lines
from pytest_approvals.journal.descriptions import EventDescriber, find_rewinds
from pytest_approvals.journal.events import (
    AgentStart,
    CloseTimeout,
    Event,
    Header,
    ModelAnswer,
    ModelExhausted,
    ModelFailure,
    ModelRefusal,
    ModelRequest,
    PolicyAsked,
    RunEnd,
    StateRestored,
    StateSaved,
    StreamShown,
    TurnStart,
)
from pytest_approvals.journal.formatting import format_call, format_call_lifecycle
from pytest_approvals.journal.history import History, RecordedTurn
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.normalization import (
    LAST_POSITION,
    CallPosition,
    CallPositions,
    TranscriptPassage,
    build_placeholder_replacer,
    sort_passages,
)

_MODEL_EVENTS = (ModelRequest, ModelAnswer, ModelFailure, ModelRefusal, ModelExhausted)


class Transcript:
    """What happened in a run, as text. Transcripts are equal if their texts are.

    Attributes:
        lines: The lines of the text.
    """

    __slots__ = ("lines",)

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(lines)

    @classmethod
    def of(cls, events: Iterable[Event]) -> Transcript:
        """Return the transcript of a journal, whole or cut off."""
        return cls.of_history(read_history(events))

    @classmethod
    def of_history(cls, history: History) -> Transcript:
        """Return the transcript of a journal that was read already."""
        replaced = build_placeholder_replacer(history.header.fakes if history.header is not None else {})
        return cls(replaced(line).rstrip() for line in _TranscriptWriter(history).lines())

    @classmethod
    def parse(cls, text: str) -> Transcript:
        """Read a rendered transcript."""
        # Not `splitlines`: a text of a run may have a line separator of Unicode.
        return cls(text.removesuffix("\n").split("\n") if text.strip("\n") else ())

    def render(self) -> str:
        """Return the text, which ends with a line feed."""
        return "\n".join(self.lines) + "\n"

    def differences(self, other: Transcript) -> list[str]:
        """Return the lines that differ, `-` for those of this one and `+` for those of *other*, with their turns."""
        diff = difflib.unified_diff(self.lines, other.lines, n=3, lineterm="")
        return [line for line in diff if not line.startswith(("---", "+++", "@@"))]

    def __eq__(self, other: object) -> bool:
        return self.lines == other.lines if isinstance(other, Transcript) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.lines)

    def __str__(self) -> str:
        return self.render()

    def __repr__(self) -> str:
        # pytest prints it if a comparison fails.
        return escape_lines(self.render())


class _TranscriptWriter:
    """Writes the transcript of one journal."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.sentences = EventDescriber(history)
        self.places = CallPositions(history)
        self.rewinds = find_rewinds(history)
        self.blocks: dict[int, list[TranscriptPassage]] = {turn.number: [] for turn in history.turns}
        self.last: list[TranscriptPassage] = []
        self.turn_of: dict[int, int] = {}
        self.place_of: dict[int, CallPosition] = {}
        self.gates: set[tuple[int | None, tuple[str, ...]]] = set()
        self._note_places()

    def lines(self) -> Iterator[str]:
        for event in self.history.events:
            if not self._is_left_out(event):
                self._tell(event)
        for turn in self.history.turns:
            yield _format_heading(turn, self.history)
            yield from _format_passages(self.blocks[turn.number])
            yield ""
        yield "end"
        yield from _format_passages(self.last)
        yield from self._calls()

    # --- the turn and place of an event ---

    def _note_places(self) -> None:
        for turn in self.history.turns:
            self.turn_of[turn.start.n] = turn.number
            if turn.end is not None:
                self.turn_of[turn.end.n] = turn.number
            for decision in turn.decisions:
                if not decision.staged:
                    self.turn_of[decision.n] = turn.number
        for exchange in self.history.exchanges:
            place = self.places.of_conversation(exchange.session, exchange.branch, exchange.conversation)
            for n in (exchange.n, *((exchange.reply.n,) if exchange.reply is not None else ())):
                self._note(n, exchange.turn, place)
        for execution in self.history.executions:
            if execution.start is not None:
                place = self.places.of_call(execution.call) if execution.call is not None else LAST_POSITION
                for n in (execution.n, *((execution.end.n,) if execution.end is not None else ())):
                    self._note(n, execution.turn, place)
        for elicitation in self.history.elicitations:
            by = elicitation.execution
            for event in (elicitation.asked, *elicitation.shown, elicitation.answered):
                if event is not None and by is not None:
                    self._note(event.n, by.turn, self.place_of.get(by.n, LAST_POSITION))
        for call in self.history.calls:
            for gate in call.gates:
                self.place_of.setdefault(gate.n, self.places.of_call(call))

    def _note(self, n: int, turn: RecordedTurn | None, place: CallPosition) -> None:
        self.place_of[n] = place
        if turn is not None:
            self.turn_of[n] = turn.number

    def _tell(self, event: Event) -> None:
        number = self._turn(event)
        sentences = tuple(self.sentences.of(event))
        if isinstance(event, PolicyAsked):
            # How often the same is asked in a turn differs between variants.
            if (number, sentences) in self.gates:
                return
            self.gates.add((number, sentences))
        block = self.last if number is None else self.blocks[number]
        block.append(TranscriptPassage(place=self.place_of.get(event.n, ()), sentences=sentences))

    def _turn(self, event: Event) -> int | None:
        """Return the turn in which an event is told: its own, else the one that runs, else the next one."""
        known = self.turn_of.get(event.n)
        if known is not None or isinstance(event, RunEnd):
            return known
        for turn in self.history.turns:
            if turn.end is None or turn.end.n > event.n:
                return turn.number
        return None

    def _is_left_out(self, event: Event) -> bool:
        # How an agent closes says nothing about what it does, and a check warns of it.
        if isinstance(event, (Header, AgentStart, StreamShown, CloseTimeout)):
            return True
        if isinstance(event, (StateSaved, StateRestored)):
            return event.error is None and event.n not in self.rewinds
        return isinstance(event, TurnStart) and event.text is None and bool(event.decisions)

    # --- the calls ---

    def _calls(self) -> Iterator[str]:
        restores = {event.n for event in self.history.events_of(StateRestored)}
        for branch in self.history.branches:
            calls = [
                call for call in self.history.calls if (call.session, call.branch) == (branch.session, branch.number)
            ]
            if calls:
                session = f" of session {branch.session}" if branch.session else ""
                again = f" after going back ({branch.number})" if branch.number else ""
                yield ""
                yield f"calls{session}{again}"
                for call in sorted(calls, key=self.places.of_call):
                    lifecycle = format_call_lifecycle(call, restores)
                    yield f"  {call.label} {format_call(call.tool, call.arguments)}: {lifecycle}"


def _format_heading(turn: RecordedTurn, history: History) -> str:
    session = f" of session {turn.session}" if turn.session else ""
    before = [
        other.number
        for other in history.turns
        if other.start.n < turn.start.n and (other.end is None or other.end.n > turn.start.n)
    ]
    overlap = f", while turn {before[0]} runs" if before else ""
    return f"turn {turn.number}{session}{overlap}"


def _format_passages(passages: list[TranscriptPassage]) -> Iterator[str]:
    for passage in sort_passages(passages):
        for sentence in passage.sentences:
            yield f"  {sentence}"
