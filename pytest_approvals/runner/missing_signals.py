"""Signals that a story leaves out: for which a tool waits in a turn, and that nothing can give before the turn ends."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_approvals.journal.arguments import arguments_fit
from pytest_approvals.journal.events import Event
from pytest_approvals.journal.history import History, RecordedCall
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.runner.caller import Caller
from pytest_approvals.scenario.model import SignalStep, TogetherStep

_OF_CALLS = ("started ", "ended ")


def find_missing_signal(caller: Caller, waited_for: Sequence[str]) -> str | None:
    """Return a signal that no agent can get past, whatever it does in this turn.

    A signal of the script is missing if a later step gives it, or none; that of a call, if the call must not run now.

    Args:
        caller: Who plays the script, in the step that does not end.
        waited_for: The signals for which something waits.
    """
    given = {part.name for part in _parts(caller) if isinstance(part, SignalStep)}
    scripted = [name for name in waited_for if not name.startswith(_OF_CALLS)]
    missing = next((name for name in scripted if name not in given), None)
    if missing is not None or len(scripted) == len(waited_for):
        return missing
    history = _read(caller.context.journal.events)
    return next((name for name in waited_for if name not in scripted and not _may_come(name, history)), None)


def _parts(caller: Caller) -> Sequence[object]:
    return caller.step.steps if isinstance(caller.step, TogetherStep) else ()


def _read(events: Sequence[Event]) -> History:
    # What the run records after this must not be missing in what is read.
    return read_history(list(events))


def _may_come(name: str, history: History) -> bool:
    """Return whether a call of that label is free to run, and has not run."""
    _, _, label = name.partition(" ")
    calls = [call for call in history.calls if call.label == label]
    # A provider runs its own calls one after the other.
    if any(run.by == "provider" and run.how == "open" for run in history.executions):
        calls = [call for call in calls if call.kind != "hosted_mcp"]
    return any(_is_free(call, len(history.events)) and not _has_twin(call, history) for call in calls)


def _has_twin(call: RecordedCall, history: History) -> bool:
    """Return whether nothing tells from another call which of the two runs."""
    return any(
        other.label != call.label
        and (other.agent, other.tool, other.arguments) == (call.agent, call.tool, call.arguments)
        for other in history.calls
    )


def _is_free(call: RecordedCall, now: int) -> bool:
    tool = call.declaration
    if call.deliveries or tool is None or tool.runs or not arguments_fit(call.arguments, call.parameters):
        return False
    decision = call.decision_at(now + 1)
    if decision is None:
        return not call.is_gated
    return decision.approves
