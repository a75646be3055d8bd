"""Descriptions of events in sentences: `caller  approves c1`.

Each begins with the side on which it happened. An event has one sentence; only a model that is told several things, or
makes several calls, has one for each. What differs between two runs of a correct agent in two variants is left out: ids
of the framework, numbers, times, messages of errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from pytest_approvals.journal.conversation import PositionalSettlement
from pytest_approvals.journal.events import (
    AgentKilled,
    AgentLost,
    AgentStart,
    AgentStopped,
    AgentWoken,
    CallerHungUp,
    CallerStuck,
    CloseTimeout,
    DecisionMade,
    DecisionsStaged,
    DiskFull,
    ElicitationAnswered,
    ElicitationAsked,
    ElicitationShown,
    Event,
    Header,
    HistoryTrimmed,
    ModelAnswer,
    ModelExhausted,
    ModelFailure,
    ModelRefusal,
    ModelRequest,
    PendingCancelled,
    PolicyAsked,
    RunEnd,
    SignalSent,
    StateRestored,
    StateRewritten,
    StateSaved,
    StepSkipped,
    StoreRolledBack,
    StreamShown,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
)
from pytest_approvals.journal.formatting import format_call, format_decision, format_error, format_labels, format_value
from pytest_approvals.journal.history import Exchange, History, RecordedCall


def describe_input_delta(exchange: Exchange) -> Iterator[str]:
    """Yield what a model input holds that the model was not told before and does not know of itself.

    Results that follow each other are listed in the order of their calls: which tool was faster is chance.
    """
    start = 0
    if exchange.previous is not None:
        start = len(exchange.previous.items) if exchange.first_difference is None else exchange.first_difference
    if exchange.first_difference is not None:
        yield "is asked with another history than before"
    results = _match_results(exchange)
    for is_result, indexes in groupby(
        range(start, len(exchange.items)), lambda at: exchange.items[at]["kind"] == "result"
    ):
        if is_result:
            yield from _describe_results(exchange, list(indexes), results)
        else:
            yield from _describe_items(exchange, indexes)


def _describe_results(exchange: Exchange, indexes: Sequence[int], calls: Mapping[int, RecordedCall]) -> Iterator[str]:
    order = {id(call): number for number, (_, call) in enumerate(exchange.placed_calls)}
    for index in sorted(indexes, key=lambda at: order[id(calls[at])] if at in calls else len(order)):
        label = calls[index].label if index in calls else "of an unknown call"
        yield f"is told {label}: {format_value(exchange.items[index].get('text'))}"


def _match_results(exchange: Exchange) -> dict[int, RecordedCall]:
    """Return the call of each result in an input, by the index of its item."""
    results = PositionalSettlement[RecordedCall]()
    placed_calls = dict(exchange.placed_calls)
    matched: dict[int, RecordedCall] = {}
    for index, item in enumerate(exchange.items):
        call_id = item.get("id")
        if index in placed_calls:
            results.begin(call_id, placed_calls[index])
        elif item["kind"] == "result":
            results.settle(call_id)
            if call_id in results.last_settled:
                matched[index] = results.last_settled[call_id]
    return matched


def _describe_items(exchange: Exchange, indexes: Iterable[int]) -> Iterator[str]:
    placed = {index for index, _ in exchange.placed_calls}
    for index in indexes:
        item = exchange.items[index]
        kind, text = item["kind"], format_value(item.get("text"))
        if kind == "user":
            yield f"is asked {text}"
        elif kind == "approval_response":
            verb = "approves" if item.get("approved") is True else "rejects"
            yield f"is told that the caller {verb} {format_value(item.get('id'))}"
        elif kind in ("call", "approval_request") and index not in placed:
            call = format_call(item.get("tool") or "", item.get("arguments"))
            yield f"is told that it made a call: {call}"
        elif kind == "other" or (kind == "say" and exchange.first_difference is not None):
            yield f"is told {text}" if kind == "other" else f"is told that it said {text}"


_AGENT_STARTS = {
    "built": "is built",
    "session": "opens another session",
    "copied": "is built anew",
    "restored": "is built anew",
    "fresh": "starts in a fresh process",
    "cold": "starts in a fresh process, cold",
}
_MODEL_FAILURES = {
    "disconnect": "breaks off",
    "timeout": "does not answer in time",
    "truncated": "sends an answer that ends in its middle",
    "garbled": "sends what cannot be read",
    "hung_up": "is not waited for",
}
_RUN_ENDS = {
    "completed": "ends",
    "left": "ends, as the caller leaves",
    "timeout": "ends, out of time",
    "interrupted": "ends, interrupted",
    "broken": "ends, broken",
}


def _describe_place(place: str) -> str:
    """Return at what point of a turn something happens to the process."""
    word, _, label = place.partition(" ")
    when = {
        "before": f"before {label} runs",
        "started": f"while {label} runs",
        "ended": f"when {label} has run",
        "model": "while the model is asked",
        "shown": "while the stream is shown",
        "write": f"while it stores something after {label}" if label else "while it stores something",
        "outcome": "before the caller learns how the turn ended",
    }
    return when.get(word, f"at {place}")


class EventDescriber:
    """Describes the events of one journal."""

    def __init__(self, history: History) -> None:
        self._labels = {request.q: request.call.label for request in history.requests if request.call is not None}
        self._exchanges = {exchange.n: exchange for exchange in history.exchanges}
        self._runs = {
            (execution.session, execution.x): execution
            for execution in history.executions
            if execution.start is not None
        }
        self._gated = {gate.n: call for call in history.calls for gate in call.gates}
        self._turns = {turn.end.n: turn for turn in history.turns if turn.end is not None}
        self._rewinds = find_rewinds(history)

    def of(self, event: Event) -> list[str]:
        """Return the sentences of an event, each with its side: `tool    c1 pay(amount=5) starts`."""
        return [f"{side:<7} {text}" for side, text in _DESCRIBERS[type(event)](self, event)]

    # --- the frame ---

    def _describe_header(self, event: Header) -> Iterator[tuple[str, str]]:
        yield "run", f"{event.scenario} on {event.agent}"

    def _describe_agent_starts(self, event: AgentStart) -> Iterator[tuple[str, str]]:
        yield "agent", _AGENT_STARTS.get(event.how, event.how)

    def _describe_agent_lost(self, event: AgentLost) -> Iterator[tuple[str, str]]:
        yield "agent", f"is lost: {event.what}"

    def _describe_close_timeout(self, event: CloseTimeout) -> Iterator[tuple[str, str]]:
        yield "agent", event.what

    def _describe_run_ends(self, event: RunEnd) -> Iterator[tuple[str, str]]:
        pending = f" with {format_labels(self._requests(event.pending))} pending" if event.pending else ""
        yield "run", _RUN_ENDS.get(event.how, event.how) + pending

    # --- the caller ---

    def _describe_turn_starts(self, event: TurnStart) -> Iterator[tuple[str, str]]:
        if event.text is not None:
            yield "caller", f"sends {format_value(event.text)}"
        elif not event.decisions:
            yield "caller", "goes on without an answer"
        else:
            yield "caller", "hands in what is decided"

    def _describe_turn_ends(self, event: TurnEnd) -> Iterator[tuple[str, str]]:
        saying = f", saying {format_value(event.text)}" if event.text else ""
        if event.outcome == "paused":
            yield "agent", f"pauses for {format_labels(self._requests(event.requests))}{saying}"
        elif event.outcome == "finished":
            yield "agent", f"finishes with {format_value(event.output)}" if event.output is not None else "finishes"
        elif event.outcome == "failed":
            turn = self._turns.get(event.n)
            verb = "refuses" if turn is not None and turn.refused else "fails"
            yield "agent", f"{verb} with {format_error(event.error)}"
        else:
            yield "agent", "takes too long"

    def _requests(self, entries: Iterable[Mapping[str, Any]]) -> list[str]:
        return sorted(self._about(entry["q"], entry) for entry in entries)

    def _about(self, q: str | None, entry: Mapping[str, Any]) -> str:
        label = self._labels.get(q or "") or entry.get("label")
        return label or f"an unknown call {format_call(entry['tool'], entry.get('arguments'))}"

    def _describe_decides(self, event: DecisionMade) -> Iterator[tuple[str, str]]:
        yield "caller", format_decision(event, self._addressed(event))

    def _addressed(self, event: DecisionMade) -> str:
        if event.q is not None:
            return self._labels.get(event.q) or event.label or "an unknown call"
        if event.label is not None:
            return f"{event.label}, which was not asked about"
        return f"an unknown request {format_value(event.id)}" if event.id is not None else "no request"

    def _describe_staged(self, event: DecisionsStaged) -> Iterator[tuple[str, str]]:
        yield "caller", _describe_attempt("puts the decision into the state", event.error)

    def _describe_cancelled(self, event: PendingCancelled) -> Iterator[tuple[str, str]]:
        yield "caller", _describe_attempt("gives up what is pending", event.error)

    def _describe_hung_up(self, event: CallerHungUp) -> Iterator[tuple[str, str]]:
        label = event.place.removeprefix("started ")
        yield "caller", "hangs up while the model is asked" if label == "model" else f"hangs up while {label} runs"

    def _describe_killed(self, event: AgentKilled) -> Iterator[tuple[str, str]]:
        yield "agent", f"is killed {_describe_place(event.place)}"

    def _describe_full(self, event: DiskFull) -> Iterator[tuple[str, str]]:
        label = event.place.partition(" ")[2]
        yield (
            "agent",
            (f"can store nothing after {label}: " if label else "can store nothing: ")
            + ("a write fails" if event.once else "the disk is full"),
        )

    def _describe_rolled_back(self, event: StoreRolledBack) -> Iterator[tuple[str, str]]:
        if event.how == "lost":
            yield "store", f"has lost what turn {event.turn} has stored"
        else:
            yield "store", f"shows what was stored before turn {event.turn}"

    def _describe_stopped(self, event: AgentStopped) -> Iterator[tuple[str, str]]:
        yield "agent", f"is stopped {_describe_place(event.place)}"

    def _describe_woken(self, _: AgentWoken) -> Iterator[tuple[str, str]]:
        yield "agent", "goes on where it was stopped"

    def _describe_shown(self, event: StreamShown) -> Iterator[tuple[str, str]]:
        parts = {"text": f"text {format_value(event.text)}", "call": f"a call of {event.tool}", "end": "the end"}
        yield "caller", f"is shown {parts.get(event.what, f'a {event.what}')}"

    def _describe_skipped(self, event: StepSkipped) -> Iterator[tuple[str, str]]:
        about = f" about {event.label}" if event.label else ""
        yield "caller", f"skips {event.step}{about}: {event.why}"

    def _describe_stuck(self, event: CallerStuck) -> Iterator[tuple[str, str]]:
        labels = sorted(self._labels.get(q, q) for q in event.requests)
        yield "caller", f"gives up on {format_labels(labels)}: nothing moves after {event.rounds} answers"

    def _describe_signalled(self, event: SignalSent) -> Iterator[tuple[str, str]]:
        yield "caller", f"gives the signal {event.name}"

    # --- the model ---

    def _describe_model_asked(self, event: ModelRequest) -> Iterator[tuple[str, str]]:
        exchange = self._exchanges.get(event.n)
        delivery = list(describe_input_delta(exchange)) if exchange is not None else []
        for text in delivery or ["is asked"]:
            yield "model", _prefix_conversation(event.conversation, text)

    def _describe_model_answers(self, event: ModelAnswer) -> Iterator[tuple[str, str]]:
        thoughts = event.thoughts or []
        said_so = [f"says {format_value(event.say)}"] if event.say is not None else []
        hosted = [f"reports {result.get('label')}: {_describe_hosted_result(result)}" for result in event.hosted]
        calls = []
        for call in event.calls:
            calls += [_describe_thought(one) for one in thoughts if one.get("before") == call.get("label") is not None]
            calls.append(f"calls {call.get('label')} {format_call(call['tool'], call.get('arguments'))}")
        first = [_describe_thought(one) for one in thoughts if one.get("before") is None]
        answered = [f"answers {format_value(event.answer)}"] if event.answer is not None else []
        for text in [*hosted, *first, *said_so, *calls, *answered] or ["says nothing"]:
            yield "model", _prefix_conversation(event.conversation, text)

    def _describe_model_fails(self, event: ModelFailure) -> Iterator[tuple[str, str]]:
        word = event.how or "disconnect"
        how = f"fails with status {event.status}" if event.status else _MODEL_FAILURES.get(word, f"fails: {word}")
        # Text, because a whole number may be too large for a fraction.
        wait = "" if event.retry_after is None else str(event.retry_after).removesuffix(".0")
        how += f", to be asked again after {wait} s" if wait else ""
        yield "model", _prefix_conversation(event.conversation, how)

    def _describe_model_refuses(self, event: ModelRefusal) -> Iterator[tuple[str, str]]:
        rules = dict.fromkeys(broken["rule"] for broken in event.broken)
        yield "model", _prefix_conversation(event.conversation, f"refuses its input: {', '.join(rules)}")

    def _describe_model_exhausted(self, event: ModelExhausted) -> Iterator[tuple[str, str]]:
        limit = f"is asked more than {event.limit} times"
        yield (
            "model",
            _prefix_conversation(event.conversation, "has no further reply" if event.limit is None else limit),
        )

    # --- the tools ---

    def _describe_gate(self, event: PolicyAsked) -> Iterator[tuple[str, str]]:
        about = _prefix_label(self._gated.get(event.n), format_call(event.tool, event.arguments))
        if event.raised is not None or event.answer is None:
            yield "tool", f"{about}: the policy fails"
        else:
            yield "tool", f"{about}: the policy {'wants approval' if event.answer else 'lets it run'}"

    def _describe_tool_starts(self, event: ToolStart) -> Iterator[tuple[str, str]]:
        execution = self._runs.get((event.session, event.x))
        about = _prefix_label(execution.call if execution else None, format_call(event.tool, event.arguments))
        yield "tool", f"{about} starts{' at the provider' if event.by == 'provider' else ''}"

    def _describe_tool_ends(self, event: ToolEnd) -> Iterator[tuple[str, str]]:
        execution = self._runs.get((event.session, event.x))
        about = "an unknown call"
        if execution is not None:
            about = (
                execution.call.label if execution.call is not None else format_call(execution.tool, execution.arguments)
            )
        ends = {
            "returned": f"returns {format_value(event.result)}",
            "raised": f"raises {format_error(event.error)}",
            "asked": "asks again",
            "cancelled": "is cancelled",
        }
        yield "tool", f"{about} {ends.get(event.how, event.how)}"

    def _name_execution(self, session: str, x: int | None) -> str:
        execution = self._runs.get((session, x or 0))
        if execution is None:
            return "an unknown call"
        return execution.call.label if execution.call is not None else format_call(execution.tool, execution.arguments)

    def _describe_elicitation(self, event: ElicitationAsked) -> Iterator[tuple[str, str]]:
        asked = format_value(event.message) + ("" if event.url is None else f" at {event.url}")
        yield "tool", f"{self._name_execution(event.session, event.x)} asks the caller {asked}"

    def _describe_shown_elicitation(self, event: ElicitationShown) -> Iterator[tuple[str, str]]:
        asked = format_value(event.message) + ("" if event.url is None else f" at {event.url}")
        by = f"by {self._name_execution(event.session, event.x)}" if event.x is not None else "by nobody"
        yield "caller", f"is asked {asked} {by}, and {_describe_elicited(event)}"

    def _describe_answered_elicitation(self, event: ElicitationAnswered) -> Iterator[tuple[str, str]]:
        name = self._name_execution(event.session, event.x)
        if event.action == "refuse":
            yield "tool", f"{name} gets no answer: {event.error}"
        else:
            yield "tool", f"{name} gets the answer: the caller {_describe_elicited(event)}"

    # --- the store ---

    def _describe_saved(self, event: StateSaved) -> Iterator[tuple[str, str]]:
        yield "store", _describe_attempt(f"saved as {event.mode}", event.error)

    def _describe_restored(self, event: StateRestored) -> Iterator[tuple[str, str]]:
        # What fails is in the transcript of every mode, where it is the same.
        text = "restored" if event.error else f"restored from {event.mode}"
        if event.n in self._rewinds:
            text = f"rewound to {event.name!r}"
        yield "store", _describe_attempt(text, event.error)

    def _describe_rewritten(self, event: StateRewritten) -> Iterator[tuple[str, str]]:
        where = {"shown": ", where it is shown", "hidden": ", where it is not shown"}.get(event.where, "")
        if event.places:
            yield "store", f"what was saved says {format_value(event.new)} in place of {format_value(event.old)}{where}"
        else:
            yield "store", f"nothing that was saved says {format_value(event.old)}{where}"

    def _describe_trimmed(self, event: HistoryTrimmed) -> Iterator[tuple[str, str]]:
        plural = "" if event.keep == 1 else "s"
        yield "store", _describe_attempt(f"trimmed to the last {event.keep} message{plural}", event.error)


def find_rewinds(history: History) -> set[int]:
    """Return the positions of the restores that went back: a turn had ended after the save that they restored.

    A durable store goes on from what it holds after a crash, which is no way back. Of a store that has lost what
    followed, that is said.
    """
    killed: set[str] = set()
    rolled_back: set[str] = set()
    saves: dict[tuple[str, str], int] = {}
    ended: dict[str, int] = {}
    rewinds: set[int] = set()
    for event in history.events:
        if isinstance(event, StateSaved) and event.error is None:
            saves[event.session, event.name] = event.n
            killed.discard(event.session)
        elif isinstance(event, TurnEnd):
            ended[event.session] = event.n
        elif isinstance(event, (AgentKilled, DiskFull)):
            killed.add(event.session)
        elif isinstance(event, StoreRolledBack):
            rolled_back.add(event.session)
        elif isinstance(event, StateRestored):
            save = saves.get((event.session, event.name))
            goes_on = (event.session in killed and event.present) or event.session in rolled_back
            rolled_back.discard(event.session)
            if save is not None and ended.get(event.session, 0) > save and not goes_on:
                rewinds.add(event.n)
    return rewinds


def _describe_elicited(event: ElicitationShown | ElicitationAnswered) -> str:
    verb = {"accept": "accepts", "decline": "declines", "cancel": "cancels"}.get(event.action, event.action)
    return verb if event.content is None else f"{verb} with {format_value(event.content)}"


def _describe_hosted_result(hosted: Mapping[str, Any]) -> str:
    return (
        format_value(hosted["output"])
        if hosted.get("output") is not None
        else f"error {format_value(hosted.get('error'))}"
    )


def _describe_thought(thought: Mapping[str, Any]) -> str:
    return "thinks, encrypted" if thought.get("text") is None else f"thinks {format_value(thought['text'])}"


def _prefix_conversation(conversation: str, text: str) -> str:
    return text if conversation == "main" else f"{conversation} {text}"


def _prefix_label(call: RecordedCall | None, about: str) -> str:
    return f"{call.label} {about}" if call is not None else about


def _describe_attempt(text: str, error: Sequence[str] | None) -> str:
    return text if error is None else f"{text}, which fails with {format_error(error)}"


_DESCRIBERS: dict[type[Event], Callable[[Any, Any], Iterator[tuple[str, str]]]] = {
    Header: EventDescriber._describe_header,
    AgentStart: EventDescriber._describe_agent_starts,
    AgentLost: EventDescriber._describe_agent_lost,
    CloseTimeout: EventDescriber._describe_close_timeout,
    RunEnd: EventDescriber._describe_run_ends,
    TurnStart: EventDescriber._describe_turn_starts,
    TurnEnd: EventDescriber._describe_turn_ends,
    DecisionMade: EventDescriber._describe_decides,
    DecisionsStaged: EventDescriber._describe_staged,
    PendingCancelled: EventDescriber._describe_cancelled,
    CallerHungUp: EventDescriber._describe_hung_up,
    AgentKilled: EventDescriber._describe_killed,
    AgentStopped: EventDescriber._describe_stopped,
    DiskFull: EventDescriber._describe_full,
    StoreRolledBack: EventDescriber._describe_rolled_back,
    AgentWoken: EventDescriber._describe_woken,
    StreamShown: EventDescriber._describe_shown,
    StepSkipped: EventDescriber._describe_skipped,
    CallerStuck: EventDescriber._describe_stuck,
    SignalSent: EventDescriber._describe_signalled,
    ModelRequest: EventDescriber._describe_model_asked,
    ModelAnswer: EventDescriber._describe_model_answers,
    ModelFailure: EventDescriber._describe_model_fails,
    ModelRefusal: EventDescriber._describe_model_refuses,
    ModelExhausted: EventDescriber._describe_model_exhausted,
    PolicyAsked: EventDescriber._describe_gate,
    ToolStart: EventDescriber._describe_tool_starts,
    ToolEnd: EventDescriber._describe_tool_ends,
    ElicitationAsked: EventDescriber._describe_elicitation,
    ElicitationShown: EventDescriber._describe_shown_elicitation,
    ElicitationAnswered: EventDescriber._describe_answered_elicitation,
    StateSaved: EventDescriber._describe_saved,
    StateRestored: EventDescriber._describe_restored,
    StateRewritten: EventDescriber._describe_rewritten,
    HistoryTrimmed: EventDescriber._describe_trimmed,
}
