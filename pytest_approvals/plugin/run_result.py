"""Result of a run in a user's test: calls, requests, output, transcript and verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_approvals.errors import UnknownName
from pytest_approvals.journal.events import Event
from pytest_approvals.journal.history import Execution, History, RecordedCall, RecordedTurn, SurfacedRequest
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.runner.journal_values import describe_error
from pytest_approvals.runner.run import RecordedRun

if TYPE_CHECKING:
    from pytest_approvals.checks import Verdict
    from pytest_approvals.scenario.model import Variant


class ToolCalls:
    """Everything that happened to the calls of one tool.

    Attributes:
        made: The calls that the model made, in order.
        requests: The approval requests that surfaced.
        executions: The executions, with `.arguments`, `.result` and `.error`.
    """

    def __init__(
        self, made: Sequence[RecordedCall], requests: Sequence[SurfacedRequest], executions: Sequence[Execution]
    ) -> None:
        self.made = list(made)
        self.requests = list(requests)
        self.executions = list(executions)

    def __repr__(self) -> str:
        return f"<{len(self.made)} made, {len(self.requests)} asked about, {len(self.executions)} run>"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """One turn of a run.

    Attributes:
        text: The caller's message; None if the turn only answers requests.
        outcome: `paused`, `finished`, `failed`, `timeout`, or `open` if it has no end.
        output: What the agent said at its end.
        failure: Type and message of the exception that it failed with; None if it did not fail.
        refused: The same if the agent refused the caller's input: it failed before it reached a model or a tool.
    """

    text: str | None
    outcome: str
    output: Any = None
    failure: tuple[str, str] | None = None
    refused: tuple[str, str] | None = None

    @classmethod
    def of(cls, turn: RecordedTurn) -> TurnResult:
        """Return what a test sees of a turn."""
        error = turn.end.error if turn.end is not None else None
        failure = (error[0], error[1]) if turn.failed and error is not None else None
        return cls(
            text=turn.start.text,
            outcome=turn.outcome,
            output=turn.end.output if turn.end is not None else None,
            failure=failure,
            refused=failure if turn.refused else None,
        )

    def __repr__(self) -> str:
        outcome = "refused" if self.refused is not None else self.outcome
        ended = f"with {self.output!r}" if self.output is not None else ""
        failed = f": {': '.join(self.failure)}" if self.failure is not None else ""
        text = f" on {self.text!r}" if self.text is not None else ""
        return f"<turn{text}: {' '.join(filter(None, (outcome, ended)))}{failed}>"


class CallsByTool(Mapping[str, ToolCalls]):
    """The calls of a run by tool; a tool that was never called has none."""

    def __init__(self, history: History) -> None:
        made = [call.tool for call in history.calls]
        ran = [run.tool for run in history.executions]
        self._history = history
        self._names = tuple(dict.fromkeys([*history.declarations, *made, *ran]))

    def __getitem__(self, tool: str) -> ToolCalls:
        if tool not in self._names:
            raise UnknownName("tool", tool, self._names)
        history = self._history
        return ToolCalls(
            [call for call in history.calls if call.tool == tool],
            [asked for asked in history.requests if asked.entry.get("tool") == tool],
            [run for run in history.executions if run.tool == tool],
        )

    def __contains__(self, tool: object) -> bool:
        # That of Mapping waits for a KeyError, which UnknownName is not.
        return tool in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return repr(dict(self))


class RunResult:
    """One recorded and judged run.

    It compares with `transcript_snapshot`, and with nothing else.

    Attributes:
        agent: The agent as reports name it.
        output: The output of the last turn that finished.
        verdicts: One verdict for each check.
    """

    def __init__(self, run: RecordedRun, verdicts: Sequence[Verdict]) -> None:
        self._run = run
        self.agent = run.agent
        self.output = run.output
        self.verdicts = tuple(verdicts)

    @property
    def variant(self) -> Variant:
        """How it was run: `run.variant.serialize`, `.stream`, `.source`, ..."""
        return self._run.variant

    @property
    def events(self) -> Sequence[Event]:
        """The journal: all that was recorded, in order."""
        return self._run.events

    @cached_property
    def history(self) -> History:
        """The journal, read into turns, calls, requests and decisions."""
        return read_history(self.events)

    @property
    def calls(self) -> CallsByTool:
        """The calls by tool: `run.calls["refund"].executions`."""
        return CallsByTool(self.history)

    @property
    def turns(self) -> list[TurnResult]:
        """The turns, in order: `run.turns[-1].refused`."""
        return [TurnResult.of(turn) for turn in self.history.turns]

    @property
    def failure(self) -> tuple[str, str] | None:
        """Type and message of what the last turn failed with, or of what broke the run; None if neither happened."""
        error = self._run.errors.broken
        if error is not None:
            kind, message = describe_error(error)
            return kind, message
        return self.turns[-1].failure if self.history.turns else None

    @property
    def requests(self) -> list[SurfacedRequest]:
        """The approval requests, in the order in which they surfaced."""
        return list(self.history.requests)

    @property
    def transcript(self) -> Transcript:
        """What happened, as text for human readers."""
        return Transcript.of_history(self.history)

    def __repr__(self) -> str:
        requests = _count(len(self.requests), "request")
        return f"<run of {self.agent}: {requests}, {_count(len(self.history.executions), 'execution')}>"

    def __str__(self) -> str:
        return str(self.transcript)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
