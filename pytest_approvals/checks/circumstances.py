"""
The circumstances under which a call need not run, or a request need not be there.

Where good agents differ, checks accept all that they do; what is acceptable is said here, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_approvals.journal.arguments import parsed, settled
from pytest_approvals.journal.calls import CallSeen, Given
from pytest_approvals.journal.events import Cancelled, Rewritten, Trimmed
from pytest_approvals.journal.history import History
from pytest_approvals.journal.turns import TurnSeen

_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": Mapping,
}


def fits(arguments: Any, parameters: Mapping[str, Mapping[str, Any]]) -> bool:
    """Says whether *arguments* are an object that has all required parameters, each of its type after coercion."""
    given = settled(arguments, parameters)
    if not isinstance(given, Mapping):
        return False
    for name, declared in parameters.items():
        if name not in given:
            if declared.get("required", True):
                return False
        elif not _has_type(given[name], declared.get("type")):
            return False
    return True


def _has_type(value: Any, declared: str | None) -> bool:
    if declared is None or declared not in _TYPES or value is None:
        return True
    if isinstance(value, bool):
        return declared in ("boolean", "string")
    return isinstance(value, _TYPES[declared]) or declared == "string"


def exact(arguments: Any, parameters: Mapping[str, Mapping[str, Any]]) -> bool:
    """
    Says whether *arguments* fit as they are: without coercion, and with no value that is not declared.

    Frameworks differ in what they coerce and in what they take besides; only where arguments fit exactly must all of
    them run the call.
    """
    given = parsed(arguments)
    if not isinstance(given, Mapping) or not fits(given, parameters):
        return False
    strict = all(_is_of(given[name], declared.get("type")) for name, declared in parameters.items() if name in given)
    return strict and set(given) <= set(parameters)


def _is_of(value: Any, declared: str | None) -> bool:
    if declared is None or declared not in _TYPES:
        return True
    if isinstance(value, bool):
        return declared == "boolean"
    return isinstance(value, _TYPES[declared])


def cannot_run(history: History, call: CallSeen, given: Given | None) -> bool:
    """Says whether its tool is not there, its arguments need not be taken, or its save has been changed."""
    n = call.n if given is None or given.taken is None else given.taken
    if rewritten_between(history, call.n, n, call.session):
        return True
    tool, arguments = call.wanted_at(n + 1) if given is not None else (call.tool, call.arguments)
    if call.declared is None or is_gone(history, tool, n, call.session):
        return True
    parameters = history.parameters_at(call, n) if tool == call.tool else _parameters(history, tool)
    return not exact(arguments, parameters)


def is_gone(history: History, tool: str, n: int, session: str) -> bool:
    """Says whether the agent does not have a tool at position *n*."""
    tools = history.tools_at(n, session)
    return tools is not None and tool not in tools


def _parameters(history: History, tool: str) -> Mapping[str, Mapping[str, Any]]:
    return next((known.parameters for known in history.declared.values() if known.name == tool), {})


def contradicted(given: Given) -> bool:
    """Says whether the same submission holds the opposite decision about the same call."""
    call = given.call
    if call is None or not (given.approves or given.rejects):
        return False
    others = (other for other in call.decisions if other.taken == given.taken)
    return any(other.approves if given.rejects else other.rejects for other in others)


def siblings(history: History, call: CallSeen) -> list[CallSeen]:
    """Gives the other calls of the same reply, in the same fork."""
    same = (other for other in history.calls if other.n == call.n and other.fork == call.fork)
    return [other for other in same if other is not call and other.session == call.session]


def waits_for_siblings(history: History, call: CallSeen) -> bool:
    """Says whether a call of the same reply still waits for an answer where the call's line of history ends."""
    last = last_listing(history, call)
    return any(sibling.listed_at(last) for sibling in siblings(history, call)) if last else False


def last_listing(history: History, call: CallSeen) -> int:
    """Gives the end of the last turn in the call's fork that was not refused; 0 where there is none."""
    ends = [turn.end.n for turn in history.turns if turn.end is not None and of_fork(turn, call) and not turn.refused]
    return ends[-1] if ends else 0


def of_fork(turn: TurnSeen, call: CallSeen) -> bool:
    """Says whether a turn belongs to the session and the fork of a call."""
    return turn.session == call.session and turn.fork == call.fork


def was_dropped(history: History, call: CallSeen) -> bool:
    """Says whether what was pending was cancelled, or closed by a new message, after the call was made."""
    if any(event.n > call.n and event.session == call.session for event in cancellations(history)):
        return True
    return superseded_by(history, call) is not None


def cancellations(history: History) -> list[Cancelled]:
    """Gives the cancellations that worked."""
    events = history.of_kind.get(Cancelled)
    if events is None:
        return []
    return [event for event in events if isinstance(event, Cancelled) and event.error is None]


def cancelled_before(history: History, call: CallSeen, given: Given) -> int | None:
    """Gives where a call was given up before *given* was handed in; None where it was not, or was asked about again."""
    taken = given.taken or 0
    asked = min((asked.n for asked in call.asked), default=taken)
    places = [event.n for event in cancellations(history) if event.session == call.session and asked < event.n < taken]
    return places[-1] if places and not call.asked_between(places[-1], taken) else None


def superseded_by(history: History, call: CallSeen) -> TurnSeen | None:
    """Gives the turn that came with a new message while the reply of the call had an open request."""
    reply = {id(each) for each in (call, *siblings(history, call))}
    for turn in history.turns:
        if turn.start.text is None or not of_fork(turn, call) or turn.start.n < call.n or turn.failed:
            continue
        before = turn.before
        while before is not None and before.refused:
            before = before.before
        if before is not None and any(id(listed) in reply for listed in before.listed):
            return turn
    return None


def same_line(earlier: TurnSeen, later: TurnSeen) -> bool:
    """Says whether a turn belongs to the past of another one."""
    turn: TurnSeen | None = later
    while turn is not None and turn.start.n > earlier.start.n:
        turn = turn.before
    return turn is earlier


def trimmed_between(history: History, start: int, end: int, session: str) -> bool:
    """Says whether the framework trimmed its history between two positions."""
    events = history.of_kind.get(Trimmed)
    return events is not None and any(start < event.n < end and event.session == session for event in events)


def rewritten_between(history: History, start: int, end: int, session: str) -> bool:
    """Says whether somebody changed the text of a save between two positions."""
    events = history.of_kind.get(Rewritten)
    return events is not None and any(start < event.n < end and event.session == session for event in events)


def changed_between(history: History, call: CallSeen, n: int) -> bool:
    """Says whether the text of a call's save, or what its tool takes, was changed between the call and position *n*."""
    return rewritten_between(history, call.n, n, call.session) or history.parameters_at(call, n) != call.parameters


# --- decisions --------------------------------------------------------------------------------------------------------


def is_invalid(given: Given) -> bool:
    """Says whether a decision names no request that was asked, or is no decision."""
    if given.verdict == "raw":
        return not given.approves
    return given.asked is None


def settled_before(call: CallSeen, given: Given) -> int | None:
    """
    Gives where a call was settled before *given* was handed in: it had returned, its model was told of it, or a
    rejection of it was taken; None where it was still open, or asked about again since.
    """
    taken = given.taken
    if taken is None:
        return None
    places = [run.ended for run in call.runs if run.how == "returned" and run.ended is not None and run.ended < taken]
    places += [told.n for told in call.told if told.n < taken]
    if len(call.decisions) > 1:
        places += _rejected_before(call, taken)
    if not places or call.asked_between(min(places), taken):
        return None
    return min(places)


def _rejected_before(call: CallSeen, taken: int) -> list[int]:
    earlier = (other for other in call.decisions if other.rejects and other.taken is not None and other.taken < taken)
    settled = (call.settled_by(other) for other in earlier)
    return [place for place in settled if place is not None and place < taken]
