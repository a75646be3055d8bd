"""Queries on a history that several checks share.

They say under which conditions a call need not run or a request need not surface, what is pending at a point, and
what came between two points. If good agents differ, checks accept all that they do; what is acceptable is defined
here, once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_approvals.journal.arguments import arguments_fit_exactly, normalize_arguments
from pytest_approvals.journal.events import Event, HistoryTrimmed, PendingCancelled, StateRewritten
from pytest_approvals.journal.history import (
    END_POSITION,
    DeliveredResult,
    Exchange,
    Execution,
    History,
    RecordedCall,
    RecordedDecision,
    RecordedTurn,
    SurfacedRequest,
)


def is_answered_by_guard(call: RecordedCall) -> bool:
    """Return whether the user's own code around a tool may be what the model is told about a call."""
    if call.declaration is None or not call.deliveries:
        return False
    return call.declaration.guarded or (call.declaration.screened and not call.requests)


def cannot_run(history: History, call: RecordedCall, decision: RecordedDecision | None) -> bool:
    """Return whether its tool is missing, its arguments need not be accepted, or its save was changed.

    A call that a provider runs cannot be edited, either: what a provider is sent approves or rejects.
    """
    # A standing decision is of a turn before the call that it covers, and a staged one of the next turn, whose agent
    # may be another.
    n = call.n if decision is None or decision.turn is None else max(call.n, decision.turn.start.n)
    if was_rewritten_between(history, call.n, n, call.session) or is_answered_by_guard(call):
        return True
    # One position later, because a decision is in force only after it was handed in.
    tool, arguments = call.effective_call_at(n + 1) if decision is not None else (call.tool, call.arguments)
    # An edit that was refused was never in force, but may have been refused because it cannot be carried out.
    if decision is not None:
        edited = decision.event.arguments
        tool, arguments = decision.event.tool or tool, arguments if edited is None else edited
    if call.declaration is None or is_tool_missing(history, call, tool, n):
        return True
    if decision is not None and decision.verdict == "edit" and call.kind == "hosted_mcp":
        return True
    parameters = history.parameters_at(call, n, tool)
    if not arguments_fit_exactly(arguments, parameters):
        return True
    # An agent may have read the arguments when they came, when the tool took other types.
    read = normalize_arguments(arguments, call.parameters) if tool == call.tool else arguments
    if not arguments_fit_exactly(read, parameters):
        return True
    # One that nobody was asked about may have been closed when it came, if it did not fit then.
    return not call.requests and not arguments_fit_exactly(call.arguments, history.parameters_at(call, call.n))


def is_tool_missing(history: History, call: RecordedCall, tool: str, n: int) -> bool:
    """Return whether the agent that made a call does not have *tool* at position *n*."""
    if _was_hidden(history, call, tool):
        return True
    build = history.agent_start_at(n, call.session)
    if build is None:
        return False
    owners = sum(known.name == tool for known in history.declarations.values())
    listed = sum(name == tool for name in build.tools)
    if not 0 < listed < owners:
        return not listed
    # Several agents have a tool of that name, and the list does not say whose is left; what the model is offered does.
    offers = [each for each in history.exchanges if each.n > build.n and _is_of_same_agent(each, call)]
    return not any(tool in offer.tools for offer in offers)


def is_tried_again(history: History, first: Execution, second: Execution) -> bool:
    """Return whether a retry of a user's agent, such as its middleware, runs again in one turn what raised."""
    is_attached = history.header is not None and history.header.attached
    return is_attached and first.how == "raised" and first.turn is not None and first.turn is second.turn


def outlives_its_turn(call: RecordedCall, execution: Execution) -> bool:
    """Return whether the turn of an execution was cut off before it ended, so that nobody waited for its result.

    A connected server may begin only then with a call that it was sent, and even in the turn after that.
    """
    is_served = call.kind == "mcp"
    turn = _turn_that_sent(call, execution) if is_served and call.executions[0] is execution else execution.turn
    if turn is None or turn.cut_off_at is None or turn.cut_off_at > (execution.ended or 0):
        return False
    return execution.n < turn.cut_off_at or is_served


def _turn_that_sent(call: RecordedCall, execution: Execution) -> RecordedTurn | None:
    """Return the last turn before an execution that made or decided its call."""
    turns = [call.turn, *(decision.turn for decision in call.decisions)]
    return next((turn for turn in reversed(turns) if turn is not None and turn.start.n < execution.n), None)


def _was_hidden(history: History, call: RecordedCall, tool: str) -> bool:
    """Return whether a user's own agent did not offer *tool*, which it has, to the model when that made a call."""
    if history.header is None or not history.header.attached:
        return False
    offer = next((each for each in history.exchanges if each.answer is call.answer), None)
    if offer is None or tool in offer.tools:
        return False
    # An agent may offer its tools by other names.
    own = {known.name for known in history.declarations.values() if known.agent == call.agent}
    return not own.isdisjoint(offer.tools)


def _is_of_same_agent(exchange: Exchange, call: RecordedCall) -> bool:
    return (exchange.session, exchange.conversation) == (call.session, call.conversation)


def is_contradicted(decision: RecordedDecision) -> bool:
    """Return whether the same submission holds the opposite decision about the same call.

    A submission that the state refused to take is none.
    """
    call = decision.call
    if call is None or decision.staging_failed or not (decision.approves or decision.rejects):
        return False
    others = (other for other in call.decisions if other.handed_in_at == decision.handed_in_at)
    return any(other.approves if decision.rejects else other.rejects for other in others)


def sibling_calls(history: History, call: RecordedCall) -> list[RecordedCall]:
    """Return the other calls of the same reply, in the same branch."""
    same = (other for other in history.calls if other.n == call.n and other.branch == call.branch)
    return [other for other in same if other is not call]


def exchanges_of_agent(history: History, call: RecordedCall) -> list[Exchange]:
    """Return the exchanges of the agent that a call runs, in any branch, without those of agents inside it."""
    return [
        exchange
        for exchange in history.exchanges
        if exchange.session == call.session and exchange.conversation.rpartition("/")[0] == call.label
    ]


def outer_calls(history: History, call: RecordedCall) -> list[RecordedCall]:
    """Return the calls that run the agent of a call, and those around it, in the same branch."""
    return [
        other
        for other in history.calls
        if (other.session, other.branch) == (call.session, call.branch) and call.label.startswith(f"{other.label}/")
    ]


def awaited_calls(history: History, call: RecordedCall) -> list[RecordedCall]:
    """Return the calls that a call may have to wait for: those of its reply, and those of the agents that these run.

    In an agent that a call runs, so are those beside that call.
    """
    around = (call, *outer_calls(history, call))
    siblings = [sibling for one in around for sibling in sibling_calls(history, one)]
    inside = tuple(f"{sibling.label}/" for sibling in siblings)
    return siblings + [
        inner for inner in history.calls if inner.session == call.session and inner.label.startswith(inside)
    ]


def has_pending_siblings(history: History, call: RecordedCall) -> bool:
    """Return whether a call of the same reply, or of an agent that one runs, still waits at the end of the branch."""
    last = last_turn_end(history, call)
    return any(awaited.is_listed_at(last) for awaited in awaited_calls(history, call))


def last_turn_end(history: History, call: RecordedCall) -> int:
    """Return the end of the last turn in the call's branch that was not refused; 0 if there is none."""
    turns = reversed(turns_on_branch(history, call))
    return next((turn.end.n for turn in turns if turn.end is not None and not turn.refused), 0)


def turns_on_branch(history: History, call: RecordedCall) -> list[RecordedTurn]:
    """Return the turns of the call's branch, with those before the save that the branch began with."""
    lines = {branch.number: branch for branch in history.branches if branch.session == call.session}
    turns: list[RecordedTurn] = []
    number: int | None = call.branch
    before: float = math.inf
    while number is not None:
        own = [turn for turn in history.turns if turn.session == call.session and turn.branch == number]
        turns = [turn for turn in own if turn.start.n < before] + turns
        line = lines.get(number)
        before = line.save if line is not None and line.save is not None else 0
        number = line.parent if line is not None else None
    return turns


def was_forgotten(history: History, earlier: Execution, later: Execution) -> bool:
    """Return whether the store had lost an execution, or did not show it, when a later one of another branch began."""
    lines = {branch.number: branch for branch in history.branches if branch.session == later.session}
    line = lines.get(later.branch)
    while line is not None:
        if line.forgets and (line.save or 0) < earlier.n < line.n:
            return True
        line = lines.get(line.parent) if line.parent is not None else None
    return False


def is_on_branch(turn: RecordedTurn, call: RecordedCall) -> bool:
    """Return whether a turn belongs to the session and the branch of a call."""
    return turn.session == call.session and turn.branch == call.branch


def is_durable(history: History) -> bool:
    """Return whether the branches of a session share a framework's own durable store, in which each turn is kept."""
    return any(branch.shares_store for branch in history.branches)


def may_know_other_branches(history: History) -> bool:
    """Return whether an agent may know in one branch of what was done in another one, from its store or elsewhere."""
    return any(branch.may_know_parent for branch in history.branches)


def list_copies(history: History, call: RecordedCall) -> list[RecordedCall]:
    """Return a call as each branch has it; a branch may have another call under the same label."""
    return [copy for copy in history.find_calls(call.label, call.session) if copy.n == call.n]


def was_dropped(history: History, call: RecordedCall) -> bool:
    """Return whether the reply of the call had an open request when what was pending was cancelled or superseded."""
    return next(dropping_positions(history, call), None) is not None


def dropping_positions(history: History, call: RecordedCall) -> Iterator[int]:
    """Yield where what was pending was cancelled, or closed by a new message, while the reply had an open request."""
    reply = {(member.label, member.n) for member in (call, *awaited_calls(history, call))}
    for event in successful_cancellations(history):
        if event.session == call.session and event.n > call.n:
            before = [turn for turn in turns_on_branch(history, call) if turn.start.n < event.n]
            pending = pending_after(history, before[-1] if before else None, event.n)
            # A failed turn may have left open requests that it did not show.
            if pending is None or any((listed.label, listed.n) in reply for listed in pending.calls):
                yield event.n
    turn = superseded_by(history, call)
    if turn is not None:
        yield turn.start.n


def successful_cancellations(history: History) -> list[PendingCancelled]:
    """Return the cancellations that worked."""
    return [event for event in history.events_of(PendingCancelled) if event.error is None]


def cancelled_position(history: History, call: RecordedCall, decision: RecordedDecision) -> int | None:
    """Return where a call was given up before *decision* was handed in, or None.

    A call that was asked about again in between was not given up.
    """
    taken = decision.handed_in_at or 0
    request = min((request.n for request in call.requests), default=taken)
    places = [
        event.n
        for event in successful_cancellations(history)
        if event.session == call.session and request < event.n < taken
    ]
    return places[-1] if places and not call.is_requested_between(places[-1], taken) else None


def superseded_by(history: History, call: RecordedCall) -> RecordedTurn | None:
    """Return the turn that came with a new message while the reply of the call had an open request."""
    # The turn before may be one of the branch that this one has left, with its own copies of the calls.
    reply = {(member.label, member.n) for member in (call, *awaited_calls(history, call))}
    for turn in turns_on_branch(history, call):
        if turn.start.text is None or turn.start.n < call.n or turn.failed:
            continue
        before = turn.previous
        # A refused turn leaves pending what was pending before it.
        while before is not None and before.refused:
            before = before.previous
        if before is not None and any((listed.label, listed.n) in reply for listed in before.requested_calls):
            return turn
    return None


def is_ancestor(earlier: RecordedTurn, later: RecordedTurn) -> bool:
    """Return whether *earlier* belongs to the past of *later*."""
    turn: RecordedTurn | None = later
    while turn is not None and turn.start.n > earlier.start.n:
        turn = turn.previous
    return turn is earlier


def was_approved_before_limit(history: History, call: RecordedCall, n: int) -> bool:
    """Return whether a call was approved in a turn before position *n* that a limit may have ended at once.

    Such a turn can have taken the decision before it came to a model or a tool.
    """
    limited = history.header is not None and history.header.limits
    return bool(limited) and any(
        decision.approves and decision.turn is not None and decision.turn.refused and decision.turn.ended < n
        for decision in call.decisions
    )


def has_reached_limit(history: History, turn: RecordedTurn) -> bool:
    """Return whether a turn has used up a limit of the application: framework and model have no more to say then."""
    limits = (history.header.limits if history.header is not None else None) or {}
    replies = sum(exchange.answer is not None for exchange in turn.exchanges)
    runs = len(turn.executions)
    return replies >= limits.get("model_replies", END_POSITION) or runs >= limits.get("tool_calls", END_POSITION)


def was_trimmed_between(history: History, start: int, end: int, session: str) -> bool:
    """Return whether the framework trimmed its history between two positions."""
    return _happened_between(history.events_of(HistoryTrimmed), start, end, session)


def last_trimmed_size(history: History, end: int, session: str) -> int | None:
    """Return to how many messages the framework last trimmed its history before a position; None if it did not."""
    sizes = [event.keep for event in history.events_of(HistoryTrimmed) if event.n < end and event.session == session]
    return sizes[-1] if sizes else None


def was_rewritten_between(history: History, start: int, end: int, session: str) -> bool:
    """Return whether the text of a save was changed between two positions."""
    return _happened_between(history.events_of(StateRewritten), start, end, session)


def _happened_between(events: Sequence[Event], start: int, end: int, session: str) -> bool:
    return any(start < event.n < end and event.session == session for event in events)


def was_shown_in_other_future(history: History, request: SurfacedRequest, n: int, entry: Mapping[str, Any]) -> bool:
    """Return whether what the end of the run lists of a request at position *n* was shown in another future of a save.

    A caller that leaves after turns at the same time may hold the agent of any of them. A restore lists what its save
    holds, whatever other futures have shown.
    """
    if history.end is None or n != history.end.n:
        return False
    shown = [entry.get(name) for name in ("id", "tool", "arguments")]
    return any(
        [other.get(name) for name in ("id", "tool", "arguments")] == shown
        for each in history.requests
        if each.session == request.session and each.branch != request.branch
        for _, other in each.listings
    )


def has_moved_approval(history: History, call: RecordedCall, n: int) -> bool:
    """Return whether a change of the save has made a standing approval of another tool one of the call's tool."""
    return any(change.n < n for change, _ in list_moved_decisions(history, call, "always"))


def list_moved_decisions(
    history: History, call: RecordedCall, verdict: str
) -> Iterator[tuple[StateRewritten, RecordedDecision]]:
    """Yield the standing decisions of other tools that a change of the save has made those of the call's tool."""
    for change in history.events_of(StateRewritten):
        for decision in history.decisions if change.session == call.session else ():
            is_earlier = decision.verdict == verdict and decision.n < change.n
            if is_earlier and decision.call is not None and _are_renamed(decision.call.tool, call.tool, change):
                yield change, decision


def _are_renamed(before: str, after: str, change: StateRewritten) -> bool:
    return before != after and before.replace(change.old, change.new) == after


def repeats_rewritten_text(history: History, call: RecordedCall, delivery: DeliveredResult) -> bool:
    """Return whether the model is told what it was told of the call before, as a change of the save has left it."""
    before = [(each.n, each.text) for each in call.deliveries if each.n < delivery.n and each.text is not None]
    if not before or delivery.text is None:
        return False
    changes = [
        (event.old, event.new)
        for event in history.events_of(StateRewritten)
        if event.session == call.session and before[-1][0] < event.n < delivery.n
    ]
    texts = [before[-1][1], delivery.text]
    # Not each place that holds a text need have been changed, so both are compared as they were before.
    for old, new in reversed(changes):
        texts = [text.replace(new, old) if new else text.replace(old, "") for text in texts]
    return bool(changes) and texts[0] == texts[1]


def was_changed_between(history: History, call: RecordedCall, n: int) -> bool:
    """Return whether the call's save, or what its tool takes, was changed between the call and position *n*."""
    return was_rewritten_between(history, call.n, n, call.session) or history.parameters_at(call, n) != call.parameters


def has_renamed_agent(history: History, turn: RecordedTurn) -> bool:
    """Return whether an agent has another name in a turn than when its session began."""
    build = history.agent_start_at(turn.start.n, turn.session)
    return build is not None and bool(build.renamed)


def has_lost_its_tool(history: History, call: RecordedCall, n: int) -> bool:
    """Return whether the tool of a call is missing at position *n*, or does not take its arguments."""
    fits = arguments_fit_exactly(call.arguments, history.parameters_at(call, n))
    return not fits or is_tool_missing(history, call, call.tool, n)


def was_closed_around(history: History, call: RecordedCall, n: int) -> bool:
    """Return whether a model was told before position *n* of a call around this one, which was not listed since."""
    outer = call.label.rpartition("/")[0]
    while outer:
        for around in history.find_calls(outer, call.session):
            told = (delivery.n for delivery in around.deliveries if call.n < delivery.n < n)
            if any(not call.is_requested_between(closed, n) for closed in told):
                return True
        outer = outer.rpartition("/")[0]
    return False


def was_closed_before(history: History, call: RecordedCall, n: int) -> bool:
    """Return whether a call was asked about, and the last list before position *n* does not have it any more."""
    lists = [turn.ended for turn in history.turns if turn.session == call.session]
    lists += [restore.event.n for restore in history.restores if restore.event.session == call.session]
    last = max((at for at in lists if call.n < at < n), default=None)
    return last is not None and call.is_requested_between(call.n, last) and not call.is_listed_at(last)


# --- decisions --------------------------------------------------------------------------------------------------------


def is_invalid(decision: RecordedDecision) -> bool:
    """Return whether a decision names no surfaced request, or is malformed."""
    if decision.verdict == "raw":
        return not (decision.approves or decision.rejects)
    return decision.request is None


def settled_position(call: RecordedCall, decision: RecordedDecision) -> int | None:
    """Return where a call was settled before *decision* was handed in, or None.

    It was settled when it returned, when its model was told of it, or when a rejection of it was taken; not if it was
    asked about again since.
    """
    taken = decision.handed_in_at
    if taken is None:
        return None
    places = [
        execution.ended
        for execution in call.executions
        if execution.how == "returned" and execution.ended is not None and execution.ended < taken
    ]
    places += [delivery.n for delivery in call.deliveries if delivery.n < taken]
    # What others settled by running the call, or by telling of it, is in the list: what is left is what they rejected.
    settled = (call.settling_position(other) for other in call.decisions)
    places += [place for place in settled if place is not None and place < taken]
    # A call that was asked about again is open again.
    if not places or call.is_requested_between(min(places), taken):
        return None
    return min(places)


@dataclass(slots=True, kw_only=True)
class PendingCalls:
    """The calls that are asked about at a point.

    Attributes:
        calls: The calls.
        n: The position of the event that listed them last.
    """

    calls: Sequence[RecordedCall]
    n: int


def pending_after(history: History, turn: RecordedTurn | None, n: int) -> PendingCalls | None:
    """Return what is pending at position *n*, after *turn* and before the next one; None if the journal does not say.

    A paused turn lists it. A refused turn leaves it as it was. After a turn that failed half-way it is unknown, and
    also after one that may have reached a limit, since it can have taken decisions before it came to a model or a
    tool; or a server, which executes nothing that does not fit.
    """
    limited = history.header is not None and history.header.limits
    while turn is not None and turn.refused and not (limited and turn.decisions):
        if any(map(_may_be_refused_by_its_server, turn.decisions)):
            return None
        turn = turn.previous
    if turn is None:
        return PendingCalls(calls=(), n=0)
    end = turn.end
    if end is None or end.n > n or turn.overlaps or end.outcome not in ("paused", "finished"):
        return None
    if any(end.n < event.n < n and event.session == turn.session for event in successful_cancellations(history)):
        return PendingCalls(calls=(), n=end.n)
    return PendingCalls(calls=turn.requested_calls, n=end.n)


def _may_be_refused_by_its_server(decision: RecordedDecision) -> bool:
    """Return whether a decision approves a call that does not fit, and that a connected server would be sent."""
    call = decision.call
    if call is None or call.kind != "mcp" or not decision.approves:
        return False
    return not arguments_fit_exactly(call.arguments, call.parameters)


def pending_before(history: History, turn: RecordedTurn) -> PendingCalls | None:
    """Return what is pending when *turn* begins."""
    return pending_after(history, turn.previous, turn.start.n)
