"""Traits: design choices of an agent that are neither right nor wrong, observed in its journals.

If good agents differ, checks accept all of the alternatives; which one was seen is a trait.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from pytest_approvals.checks._queries import (
    is_contradicted,
    is_invalid,
    pending_before,
    settled_position,
    sibling_calls,
)
from pytest_approvals.journal.arguments import are_same_values, arguments_fit_exactly, arguments_satisfy
from pytest_approvals.journal.coverage import is_malformed
from pytest_approvals.journal.events import HistoryTrimmed, SignalSent
from pytest_approvals.journal.history import (
    END_POSITION,
    Exchange,
    History,
    RecordedCall,
    RecordedDecision,
    RecordedTurn,
)

TraitFunction = Callable[[History], Iterator[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait:
    """One design choice.

    Attributes:
        name: Its name: `ungated-siblings`.
        description: What is looked at, with the values that can be seen in backticks.
        function: Yields the values that a journal shows.
    """

    name: str
    description: str
    function: TraitFunction


TRAITS: dict[str, Trait] = {}
"""All traits by name."""


def observe_traits(history: History) -> dict[str, tuple[str, ...]]:
    """Return the traits that one journal shows: the sorted values of each, without those that it does not show."""
    observed = ((name, tuple(sorted(set(trait.function(history))))) for name, trait in TRAITS.items())
    return {name: values for name, values in observed if values}


def merge_traits(observed: Iterable[Mapping[str, Iterable[str]]]) -> dict[str, tuple[str, ...]]:
    """Return the traits that several journals show, in the order of `TRAITS`.

    >>> merge_traits([{"raising-tool": ["model"]}, {"raising-tool": ["fail"], "raising-policy": ["ask"]}])
    {'raising-policy': ('ask',), 'raising-tool': ('fail', 'model')}
    """
    merged: dict[str, set[str]] = {name: set() for name in TRAITS}
    for traits in observed:
        for name, values in traits.items():
            merged[name].update(values)
    return {name: tuple(sorted(values)) for name, values in merged.items() if values}


def _register_trait(function: TraitFunction) -> TraitFunction:
    name = str(getattr(function, "__name__", "")).replace("_", "-")
    description = " ".join((inspect.getdoc(function) or "").split())
    TRAITS[name] = Trait(name=name, description=description, function=function)
    return function


# --- calls of one reply -----------------------------------------------------------------------------------------------


@_register_trait
def ungated_siblings(history: History) -> Iterator[str]:
    """Calls that need no approval, next to one that does: they run `at once`, or `wait` until that one was answered."""
    for call in history.calls:
        if call.is_gated or not call.executions or call.turn is None or call.turn.end is None:
            continue
        if any(sibling.requests for sibling in sibling_calls(history, call)):
            yield "at once" if call.executions[0].n < call.turn.end.n else "wait"


@_register_trait
def requests_surface(history: History) -> Iterator[str]:
    """The requests of one reply surface `together`, or `one by one`, each after the answer to the one before."""
    for call in history.calls:
        others = [sibling for sibling in sibling_calls(history, call) if sibling.requests]
        if call.requests and others:
            yield "together" if all(call.requests[0].n == other.requests[0].n for other in others) else "one by one"


@_register_trait
def approved_calls_run(history: History) -> Iterator[str]:
    """Several approved calls of one turn run `at the same time`, or `one after the other`.

    The latter can be seen only if a tool waited.
    """
    signals = [event.n for event in history.events_of(SignalSent)]
    for turn in history.turns:
        runs = [
            execution
            for execution in turn.executions
            if execution.start is not None and execution.call is not None and execution.call.requests
        ]
        for first, second in pairwise(runs):
            ended = first.ended or END_POSITION
            if second.n < ended:
                yield "at the same time"
            elif any(first.n < signal < ended for signal in signals):
                yield "one after the other"


@_register_trait
def order_of_results(history: History) -> Iterator[str]:
    """The results of one reply are told in the `order of the calls`, in the `order of the runs`, or in `another`."""
    for exchange in history.exchanges:
        for calls in _group_by_reply(exchange):
            ran = sorted(calls, key=lambda call: call.executions[-1].ended or 0 if call.executions else 0)
            delivery = sorted(calls, key=lambda call: call.deliveries[0].item or 0)
            # Calls that ran in their own order show no choice.
            if not all(call.executions for call in calls) or ran == calls:
                continue
            yield "order of the calls" if delivery == calls else "order of the runs" if delivery == ran else "another"


@_register_trait
def results_in_messages(history: History) -> Iterator[str]:
    """The results of one reply reach the model as `one message`, or as `a message each`."""
    for exchange in history.exchanges:
        for calls in _group_by_reply(exchange):
            messages = {exchange.items[call.deliveries[0].item or 0].get("message") for call in calls}
            yield "one message" if len(messages) == 1 else "a message each"


@_register_trait
def form_of_results(history: History) -> Iterator[str]:
    """A text that a tool returned is told `as text`, with or without words around it, `in an object` or `in blocks`."""
    for call in history.calls:
        execution = call.first_return
        if execution is None or not isinstance(execution.result, str) or call.kind == "hosted_mcp":
            continue
        # A text that is JSON already shows no choice.
        if _classify_text(execution.result) == "as text":
            yield from (_classify_text(told.text) for told in call.deliveries if told.n > execution.n and told.text)


@_register_trait
def form_of_rejections(history: History) -> Iterator[str]:
    """The model is told of a rejection `as text`, `in an object` or `in blocks`."""
    for call in history.calls:
        decision = call.decision
        if decision is not None and decision.rejects and not call.executions and call.kind != "hosted_mcp":
            taken = decision.handed_in_at or END_POSITION
            yield from (_classify_text(told.text) for told in call.deliveries if told.n > taken and told.text)


def _classify_text(text: str | None) -> str:
    try:
        value = json.loads(text or "")
    except ValueError:
        return "as text"
    return "in an object" if isinstance(value, dict) else "in blocks" if isinstance(value, list) else "as text"


def _group_by_reply(exchange: Exchange) -> Iterator[list[RecordedCall]]:
    """Yield the calls of each reply whose results are told for the first time in one input."""
    replies: dict[int, list[RecordedCall]] = {}
    for _, call in exchange.placed_calls:
        if call.deliveries and call.deliveries[0].n == exchange.n and call.deliveries[0].item is not None:
            replies.setdefault(call.n, []).append(call)
    return (calls for calls in replies.values() if len(calls) > 1)


# --- policies and requests --------------------------------------------------------------------------------------------


@_register_trait
def policies_asked(history: History) -> Iterator[str]:
    """Policies judge the calls of a reply `before any other call` of it runs, or `after one began`."""
    for call in history.calls:
        began = [
            execution.n
            for sibling in sibling_calls(history, call)
            for execution in sibling.executions
            if execution.turn is call.turn
        ]
        if call.gates and began:
            yield "before any other call" if call.gates[0].n < min(began) else "after one began"


@_register_trait
def policy_questions(history: History) -> Iterator[str]:
    """A policy is asked about a call `once`, or `several times`, before the call runs or its request surfaces."""
    for call in history.calls:
        later = [execution.n for execution in call.executions] + [request.n for request in call.requests]
        asked = [gate for gate in call.gates if gate.n < min(later, default=END_POSITION)]
        if asked:
            yield "once" if len(asked) == 1 else "several times"


@_register_trait
def policy_arguments(history: History) -> Iterator[str]:
    """A policy judges the arguments `as written` by the model, or `as converted` to what the tool takes."""
    for call in history.calls:
        ran = call.executions[0].arguments if call.executions else None
        # Only a conversion that the tool got shows which of them the policy got.
        if ran is None or call.decision is not None or are_same_values(ran, call.arguments):
            continue
        for gate in call.gates:
            if are_same_values(gate.arguments, ran):
                yield "as converted"
            elif are_same_values(gate.arguments, call.arguments):
                yield "as written"


@_register_trait
def order_of_requests(history: History) -> Iterator[str]:
    """The requests of one reply are listed in the `order of the calls`, or in `another`."""
    for turn in history.turns:
        listed = list(dict.fromkeys(id(call) for call in turn.requested_calls))
        made = [call for call in history.calls if id(call) in listed]
        if len(made) > 1 and len({(call.n, call.conversation) for call in made}) == 1:
            yield "order of the calls" if [id(call) for call in made] == listed else "another"


@_register_trait
def call_id_in_requests(history: History) -> Iterator[str]:
    """A request comes `with` the id of its call, or `without` it."""
    for call in history.calls:
        if call.id:
            yield from ("with" if request.entry.get("call_id") == call.id else "without" for request in call.requests)


@_register_trait
def request_ids(history: History) -> Iterator[str]:
    """An open request keeps `the same id`, or has `another id` when it is listed again."""
    for call in history.calls:
        for (before, earlier), (n, later) in pairwise(_list_requests(history, call)):
            # After a decision about it, another request may be another question.
            if not any(before < (decision.handed_in_at or END_POSITION) < n for decision in call.decisions):
                yield "the same id" if earlier == later else "another id"


@_register_trait
def earlier_request_ids(history: History) -> Iterator[str]:
    """A decision names an id that an open request had before it got another one: it `counts`, or is `refused`."""
    for call in history.calls:
        for decision in call.decisions:
            listed = [known for n, known in _list_requests(history, call) if n < decision.n]
            if decision.turn is not None and decision.event.id in listed[:-1] and decision.event.id != listed[-1]:
                yield "refused" if decision.refused else "counts"


def _list_requests(history: History, call: RecordedCall) -> list[tuple[int, object]]:
    """Return where the outcome of a turn lists a request of a call, with the id that it has there."""
    ends = {turn.end.n for turn in history.turns if turn.end is not None}
    listings = ((n, entry.get("id")) for request in call.requests for n, entry in request.listings if n in ends)
    return sorted(listings, key=lambda listing: listing[0])


# --- what the caller does ---------------------------------------------------------------------------------------------


@_register_trait
def pending_at_a_new_message(history: History) -> Iterator[str]:
    """The caller sends a message while a request is open.

    The message is `refused`, the request is `closed` and the model told, it is `kept` open, or the call is `left
    open` in the history.
    """
    for turn in history.turns:
        pending = pending_before(history, turn) if turn.start.text is not None else None
        answered = {decision.call.label for decision in turn.decisions if decision.call is not None}
        for call in pending.calls if pending is not None else ():
            if call.label not in answered:
                yield _classify_pending(history, turn, call)


def _classify_pending(history: History, turn: RecordedTurn, call: RecordedCall) -> str:
    if any(open_call.label == call.label for exchange in turn.exchanges for open_call in exchange.unanswered):
        return "left open"
    if turn.failed:
        return "refused"
    if any(listed.label == call.label for listed in turn.requested_calls):
        return "kept"
    here = next((copy for copy in history.find_calls(call.label, call.session) if copy.branch == turn.branch), call)
    return "closed" if here.deliveries else "left open"


@_register_trait
def partial_answers(history: History) -> Iterator[str]:
    """Only some of the open requests are answered.

    That is `refused`, what was approved runs `at once`, or it `waits` for the other answers.
    """
    for turn in history.turns:
        pending = pending_before(history, turn)
        if pending is None or turn.start.text is not None or any(is_invalid(decision) for decision in turn.decisions):
            continue
        calls = {call.label: call for call in pending.calls}
        labels = {decision.call.label: decision for decision in turn.decisions if decision.call is not None}
        # A provider executes hosted calls, so they do not show when the agent runs what was approved.
        approved = [label for label in labels if labels[label].approves and _is_executed_locally(calls.get(label))]
        if approved and calls.keys() > labels.keys():
            yield "refused" if turn.failed else "at once" if turn.executions else "waits"


def _is_executed_locally(call: RecordedCall | None) -> bool:
    return call is not None and call.kind != "hosted_mcp"


@_register_trait
def partly_settled_batch(history: History) -> Iterator[str]:
    """A submission holds answers to a settled and to an open request: it is `refused` as a whole, or `taken`."""
    for turn in history.turns:
        settled = [
            decision.call is not None and settled_position(decision.call, decision) is not None
            for decision in turn.decisions
        ]
        if any(settled) and not all(settled):
            yield "refused" if turn.failed else "taken"


@_register_trait
def contradiction(history: History) -> Iterator[str]:
    """One submission approves and rejects one call: it is `refused`, or the call `rejected`, `kept` open or `run`."""
    for decision in history.decisions:
        if decision.turn is None or decision.call is None or not is_contradicted(decision):
            continue
        yield _classify_outcome(decision.turn, decision.call)


@_register_trait
def equal_decisions(history: History) -> Iterator[str]:
    """One submission holds the same decision about one request twice: it is `refused`, or they `count once`."""
    for turn in history.turns:
        made = [(id(decision.call), decision.event.id, decision.verdict) for decision in turn.decisions]
        if len(set(made)) < len(made) and all(decision.request is not None for decision in turn.decisions):
            yield "refused" if turn.failed else "count once"


@_register_trait
def trimming_while_pending(history: History) -> Iterator[str]:
    """The history is trimmed while a request is open: the next input is `shorter`, or holds `everything` still."""
    for event in history.events_of(HistoryTrimmed):
        after = next((each for each in history.exchanges if each.n > event.n and each.session == event.session), None)
        if event.error is not None or after is None or after.turn is None or after.previous is None:
            continue
        pending = pending_before(history, after.turn)
        if pending is not None and pending.calls and len(after.previous.items) > event.keep:
            yield "everything" if after.repeats_previous else "shorter"


@_register_trait
def malformed_decision(history: History) -> Iterator[str]:
    """A malformed decision is `refused`, or the call `rejected`, `kept` open or `run`."""
    for decision in history.decisions:
        if is_malformed(decision) and decision.turn is not None and decision.call is not None:
            yield _classify_outcome(decision.turn, decision.call)


def _classify_outcome(turn: RecordedTurn, call: RecordedCall) -> str:
    if turn.failed:
        return "refused"
    if any(execution.call is not None and execution.call.label == call.label for execution in turn.executions):
        return "run"
    return "kept" if any(listed.label == call.label for listed in turn.requested_calls) else "rejected"


@_register_trait
def unknown_request(history: History) -> Iterator[str]:
    """A decision about an unknown request is `refused`, or `ignored`."""
    for decision in history.decisions:
        if decision.request is None and not is_malformed(decision) and decision.turn is not None:
            yield "refused" if decision.turn.failed or decision.staging_failed else "ignored"


@_register_trait
def late_decision(history: History) -> Iterator[str]:
    """A decision about a settled call is `refused`, `ignored`, or makes the agent `ask the model` again."""
    for call in history.calls:
        for decision in call.decisions:
            if decision.turn is not None and len(decision.turn.decisions) == 1 and _is_late(call, decision):
                turn = decision.turn
                yield "refused" if turn.failed else "ask the model" if turn.exchanges else "ignored"


def _is_late(call: RecordedCall, decision: RecordedDecision) -> bool:
    turn = decision.turn
    if turn is None or turn.start.text is not None or (turn.previous is not None and turn.previous.failed):
        return False
    return settled_position(call, decision) is not None


@_register_trait
def standing_decision_lasts(history: History) -> Iterator[str]:
    """A call of a later reply is covered by a standing decision.

    It is not asked about `in the turn`, or not even `after a new message`; or it is `asked again`.
    """
    for call in history.calls:
        decision = next(
            (
                standing
                for standing in call.standing_decisions
                if standing.handed_in_at is not None and standing.handed_in_at < call.n
            ),
            None,
        )
        if decision is None or decision.refused or call.turn is None:
            continue
        if call.requests:
            yield "asked again"
        elif call.executions or call.deliveries:
            new = call.turn.start.text is not None and call.turn.start.n > (decision.handed_in_at or 0)
            yield "after a new message" if new else "in the turn"


@_register_trait
def edited_arguments(history: History) -> Iterator[str]:
    """The model's own call is shown to it `as edited`, or `as it was`."""
    for exchange in history.exchanges:
        for index, call in exchange.placed_calls:
            decision = call.decision_at(exchange.n)
            if decision is not None and decision.verdict == "edit" and decision.event.arguments is not None:
                item = exchange.items[index]
                was = arguments_satisfy(item.get("arguments"), call.arguments, call.parameters)
                yield "as it was" if was else "as edited"


# --- what goes wrong --------------------------------------------------------------------------------------------------


@_register_trait
def raising_policy(history: History) -> Iterator[str]:
    """A policy that raises makes the agent `ask`, makes the turn `fail`, or is told to the `model`."""
    for call in history.calls:
        if any(gate.raised is not None for gate in call.gates):
            yield _classify_reaction(call)


@_register_trait
def unfitting_arguments(history: History) -> Iterator[str]:
    """A gated call whose arguments do not fit makes the agent `ask` or the turn `fail`, or is told to the `model`."""
    for call in history.calls:
        if (
            call.is_gated
            and call.declaration is not None
            and not arguments_fit_exactly(call.arguments, call.parameters)
        ):
            yield _classify_reaction(call)


def _classify_reaction(call: RecordedCall) -> str:
    if call.requests:
        return "ask"
    return "fail" if call.turn is not None and call.turn.failed else "model"


@_register_trait
def raising_tool(history: History) -> Iterator[str]:
    """A tool that raises makes the turn `fail`, or is told to the `model`."""
    for execution in history.executions:
        if execution.how == "raised" and execution.turn is not None and execution.call is not None:
            delivery = any(delivery.n > execution.n for delivery in execution.call.deliveries)
            yield "model" if delivery and not execution.turn.failed else "fail"
