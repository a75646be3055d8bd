"""Correlation of requests, executions and policy questions with the calls that the model made.

Call ids come again, are renamed, or are missing; so a call is recognized by id, tool and arguments together, the best
match first. This relies on arguments that are unique within a scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from pytest_approvals.journal.arguments import are_same_values, arguments_match, arguments_satisfy
from pytest_approvals.journal.events import PolicyAsked, ToolStart
from pytest_approvals.journal.history import Execution, History, RecordedCall

# Ranks of a match between a call and an execution; smaller ones match better.
APPROVED = 0
UNGATED = 1
UNDECIDED = 2
RETRIED = 3
REPEATED = 4
OTHER_ARGUMENTS = 5
OTHER_TOOL = 6
NOTHING_BUT_THE_ID = 7
REPEATED_WITH_OTHER_ARGUMENTS = 8
NO_MATCH = 9


def find_call_of_execution(pool: Sequence[RecordedCall], event: ToolStart) -> tuple[int, RecordedCall | None]:
    """Return the call that an execution belongs to, with the rank of the match.

    In this order: approved, not run, and asked for with these arguments; ungated and not run; any not run; a second
    execution of a call with these arguments; with the same id also an execution with other arguments, and a second
    one of the last call.

    Args:
        pool: The calls with the same id, or, if the tool was told no id, the calls of the same tool.
        event: The start of the execution.
    """
    best = NO_MATCH
    chosen: RecordedCall | None = None
    for call in _filter_by_agent(drop_lost_calls(pool), event.agent):
        rank = _rank_match(call, event)
        # Of equal matches the earliest call, but of repeated executions that of the latest, and a call of just what ran
        # before one with more, which the tool does not take.
        if rank < best or (rank == best and (rank >= REPEATED or _is_nearer(call, chosen, event))):
            best, chosen = rank, call
    return best, chosen


def _is_nearer(call: RecordedCall, other: RecordedCall | None, event: ToolStart) -> bool:
    """Return whether a call, and not the other one, has all of the arguments that a tool got and no more."""
    return other is not None and _has_just(call, event) and not _has_just(other, event)


def _has_just(call: RecordedCall, event: ToolStart) -> bool:
    return _fits(call, event.arguments, call.effective_call_at(event.n)[1], arguments_match)


def fits_as_first(call: RecordedCall, execution: Execution) -> bool:
    """Return whether an execution, the first of a call, has the tool and the arguments of the call."""
    tool, arguments = call.effective_call_at(execution.n)
    fits = tool == execution.tool and _fits(call, execution.arguments, arguments)
    return fits and (not call.executions or call.executions[0] is execution)


def _fits(
    call: RecordedCall,
    seen: Any,
    meant: Any,
    are_same: Callable[[Any, Any, Mapping[str, Mapping[str, Any]]], bool] = arguments_satisfy,
) -> bool:
    """Return whether arguments that were seen are those that are meant, by the types of the tool then or now."""
    return any(are_same(seen, meant, parameters) for parameters in call.possible_parameters)


def _rank_match(call: RecordedCall, event: ToolStart) -> int:
    tool, arguments = call.effective_call_at(event.n)
    fits = tool == event.tool and _fits(call, event.arguments, arguments)
    if call.executions:
        if fits:
            return _rank_repeated_execution(call, event)
        return NO_MATCH if event.call_id is None else REPEATED_WITH_OTHER_ARGUMENTS
    if fits:
        decision = call.decision_at(event.n)
        if decision is not None and decision.approves:
            return APPROVED
        return UNDECIDED if call.is_gated_at(event.n) else UNGATED
    if call.tool == event.tool or tool == event.tool:
        return OTHER_ARGUMENTS
    if event.call_id is None:
        return NO_MATCH
    return OTHER_TOOL if _fits(call, event.arguments, arguments) else NOTHING_BUT_THE_ID


def _rank_repeated_execution(call: RecordedCall, event: ToolStart) -> int:
    """Rank a call that may rightly run again before calls that may not."""
    last = call.executions[-1]
    return RETRIED if last.how in ("raised", "asked", "cancelled") else REPEATED


def is_judged(call: RecordedCall, event: PolicyAsked) -> bool:
    """Return whether the policy was asked about the tool and the arguments of a call."""
    return call.tool == event.tool and _fits(call, event.arguments, call.arguments, arguments_match)


def find_call_of_gate(pool: Iterable[RecordedCall], event: PolicyAsked) -> RecordedCall | None:
    """Return the call that the policy was asked about; of several equal ones the last."""
    chosen: RecordedCall | None = None
    for call in pool:
        if call.tool != event.tool:
            continue
        if is_judged(call, event) or chosen is None:
            chosen = call
    return chosen


def find_call_of_request(
    by_id: Sequence[RecordedCall],
    by_tool: Sequence[RecordedCall],
    entry: Mapping[str, Any],
    taken: Iterable[RecordedCall],
) -> RecordedCall | None:
    """Return the call that a surfaced request is about.

    In this order, each call once per pause: same agent, id, tool and arguments; same id and tool; and, since an agent
    may rename ids, same tool and arguments.

    Args:
        by_id: The calls with the id that the request shows.
        by_tool: The calls of the tool that it shows.
        entry: The request as it was listed.
        taken: The calls that other requests of the same pause are about.
    """
    used = {id(call) for call in taken}
    agent = entry.get("agent") or "main"
    same_id = [call for call in reversed(by_id) if _has_tool(call, entry) and id(call) not in used]
    same_values = [call for call in same_id if _is_shown(call, entry)] or [
        call for call in same_id if _is_shown(call, entry, arguments_satisfy)
    ]
    ranked = [call for call in same_values if call.agent == agent] or same_values or same_id
    if ranked:
        return ranked[0]
    # A made up id is that of a call without one, if the reply has any.
    free = (call for call in reversed(by_tool) if id(call) not in used)
    renamed = sorted(free, key=lambda call: (-call.n, call.id is not None))
    return next((call for call in renamed if _is_shown(call, entry)), None) or next(
        (call for call in renamed if _is_shown_by_edit(call, entry)), None
    )


def _has_tool(call: RecordedCall, entry: Mapping[str, Any]) -> bool:
    return any(entry.get("tool") == tool for tool, _ in _known_values(call))


def _is_shown(
    call: RecordedCall,
    entry: Mapping[str, Any],
    are_same: Callable[[Any, Any, Mapping[str, Mapping[str, Any]]], bool] = arguments_match,
) -> bool:
    tool, arguments = entry.get("tool"), entry.get("arguments")
    return any(tool == name and _fits(call, arguments, values, are_same) for name, values in _known_values(call))


def _is_shown_by_edit(call: RecordedCall, entry: Mapping[str, Any]) -> bool:
    """Return whether a request shows the other tool that an edit has named, with what it has left out filled in."""
    shown = entry.get("arguments")
    return any(
        name == entry.get("tool") != call.tool
        and isinstance(values, Mapping)
        and isinstance(shown, Mapping)
        and all(key in shown and are_same_values(shown[key], value) for key, value in values.items())
        for name, values in _known_values(call)
    )


def _known_values(call: RecordedCall) -> Iterator[tuple[str, Any]]:
    """Yield tool and arguments of a call as the model made it, and as people have changed it."""
    yield call.tool, call.arguments
    for decision in call.decisions:
        if decision.verdict == "edit":
            edited = decision.event.arguments
            yield decision.event.tool or call.tool, call.arguments if edited is None else edited


def drop_lost_calls(pool: Sequence[RecordedCall]) -> Sequence[RecordedCall]:
    """Return the calls without those of a reply that was lost with the process, and that the model has made again."""
    if len(pool) < 2 or not any(call.turn is not None and call.turn.crashed for call in pool):
        return pool
    return [call for call in pool if not _is_made_again(call, pool)]


def _is_made_again(call: RecordedCall, pool: Sequence[RecordedCall]) -> bool:
    if call.executions or call.turn is None or not call.turn.crashed:
        return False
    made = call.id, call.tool, call.arguments
    return any(other.n > call.n and made == (other.id, other.tool, other.arguments) for other in pool)


def _filter_by_agent(pool: Sequence[RecordedCall], agent: str) -> Sequence[RecordedCall]:
    if len(pool) < 2:
        return pool
    return [call for call in pool if call.agent == agent] or pool


def exchange_equal_calls(history: History) -> None:
    """Give equal calls of one reply one another's requests and decisions, if that fits better what became of them.

    If requests show no ids of calls, nothing tells two with the same tool and arguments apart but their place in the
    list, and in which order an agent lists them is its own. To people they are the same.
    """
    groups: dict[tuple[Any, ...], list[RecordedCall]] = {}
    for call in history.calls:
        if call.requests and all(request.entry.get("call_id") is None for request in call.requests):
            listed = tuple(n for request in call.requests for n, _ in request.listings)
            groups.setdefault((call.n, call.session, call.branch, call.tool, listed[0]), []).append(call)
    for calls in groups.values():
        for one, other in combinations(calls, 2):
            if are_same_values(one.arguments, other.arguments) and _fit_better_exchanged(one, other):
                _exchange(history, one, other)


def _fit_better_exchanged(one: RecordedCall, other: RecordedCall) -> bool:
    now = _count_misfits(one, one) + _count_misfits(other, other)
    return now > _count_misfits(one, other) + _count_misfits(other, one)


def _count_misfits(call: RecordedCall, decided: RecordedCall) -> int:
    """Return how often what became of a call is not what was decided about another, equal one."""
    taken = [each for each in decided.decisions if not each.refused and each.handed_in_at is not None]
    if not taken:
        return int(bool(call.executions))
    texts = [delivery.text or "" for delivery in call.deliveries]
    if taken[-1].approves:
        edited = taken[-1].event.arguments if taken[-1].verdict == "edit" else None
        meant = call.arguments if edited is None else edited
        return int(not call.executions or not _fits(call, call.executions[0].arguments, meant))
    reason = taken[-1].event.reason
    is_lost = bool(reason and texts) and not any(str(reason) in text for text in texts)
    return int(bool(call.executions)) + int(taken[-1].rejects and is_lost)


def _exchange(history: History, one: RecordedCall, other: RecordedCall) -> None:
    one.exchange_decisions(other)
    pair = {id(one): other, id(other): one}
    for lists in (history.turns, history.restores):
        for listed in lists:
            listed.requested_calls[:] = [pair.get(id(call), call) for call in listed.requested_calls]
