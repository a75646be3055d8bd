"""
The sentences in which the events of a journal are said to people: `caller  approves c1`.

Each begins with the side that it happened on. An event has one sentence; only a model that is told several things, or
makes several calls, has one for each. What differs between two runs of a correct agent in two variants is left out: ids
of the framework, numbers, times, messages of errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .calls import CallSeen
from .events import (
    AgentLost,
    AgentStart,
    Cancelled,
    Decide,
    Event,
    Gate,
    Header,
    HungUp,
    ModelAnswer,
    ModelExhausted,
    ModelFailure,
    ModelRefusal,
    ModelRequest,
    Restored,
    Rewritten,
    RunEnd,
    Saved,
    Shown,
    Signalled,
    Skipped,
    Staged,
    Stuck,
    ToolEnd,
    ToolStart,
    Trimmed,
    TurnEnd,
    TurnStart,
)
from .history import History
from .news import news
from .wording import said, said_call, said_decision, said_error, said_labels

_BUILT = {
    "built": "is built",
    "session": "opens another session",
    "copied": "is built anew",
    "restored": "is built anew",
    "fresh": "starts in a fresh process",
    "cold": "starts in a fresh process, cold",
}
_BROKEN = {
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


class Sentences:
    """Says the events of one journal."""

    def __init__(self, history: History) -> None:
        self._labels = {asked.q: asked.call.label for asked in history.requests if asked.call is not None}
        self._exchanges = {exchange.n: exchange for exchange in history.exchanges}
        self._runs = {(run.session, run.x): run for run in history.executions if run.start is not None}
        self._gated = {gate.n: call for call in history.calls for gate in call.gates}
        self._turns = {turn.end.n: turn for turn in history.turns if turn.end is not None}
        self._rewinds = rewinds(history)

    def of(self, event: Event) -> list[str]:
        """Gives the sentences of an event, each with its side: `tool    c1 pay(amount=5) starts`."""
        return [f"{side:<7} {text}" for side, text in _SAYS[type(event)](self, event)]

    # --- the frame ---

    def header(self, event: Header) -> Iterator[tuple[str, str]]:
        yield "run", f"{event.scenario} on {event.agent}"

    def agent_starts(self, event: AgentStart) -> Iterator[tuple[str, str]]:
        yield "agent", _BUILT.get(event.how, event.how)

    def agent_lost(self, event: AgentLost) -> Iterator[tuple[str, str]]:
        yield "agent", f"is lost: {event.what}"

    def run_ends(self, event: RunEnd) -> Iterator[tuple[str, str]]:
        pending = f" with {said_labels(self._requests(event.pending))} pending" if event.pending else ""
        yield "run", _RUN_ENDS.get(event.how, event.how) + pending

    # --- the caller ---

    def turn_starts(self, event: TurnStart) -> Iterator[tuple[str, str]]:
        if event.text is not None:
            yield "caller", f"sends {said(event.text)}"
        elif not event.decisions:
            yield "caller", "goes on without an answer"
        else:
            yield "caller", "hands in what is decided"

    def turn_ends(self, event: TurnEnd) -> Iterator[tuple[str, str]]:
        saying = f", saying {said(event.text)}" if event.text else ""
        if event.outcome == "paused":
            yield "agent", f"pauses for {said_labels(self._requests(event.requests))}{saying}"
        elif event.outcome == "finished":
            yield "agent", f"finishes with {said(event.output)}" if event.output is not None else "finishes"
        elif event.outcome == "failed":
            turn = self._turns.get(event.n)
            verb = "refuses" if turn is not None and turn.refused else "fails"
            yield "agent", f"{verb} with {said_error(event.error)}"
        else:
            yield "agent", "takes too long"

    def _requests(self, entries: Iterable[Mapping[str, Any]]) -> list[str]:
        return sorted(self._about(entry["q"], entry) for entry in entries)

    def _about(self, q: str | None, entry: Mapping[str, Any]) -> str:
        label = self._labels.get(q or "") or entry.get("label")
        return label or f"an unknown call {said_call(entry['tool'], entry.get('arguments'))}"

    def decides(self, event: Decide) -> Iterator[tuple[str, str]]:
        yield "caller", said_decision(event, self._addressed(event))

    def _addressed(self, event: Decide) -> str:
        if event.q is not None:
            return self._labels.get(event.q) or event.label or "an unknown call"
        if event.label is not None:
            return f"{event.label}, which was not asked about"
        return f"an unknown request {said(event.id)}" if event.id is not None else "no request"

    def staged(self, event: Staged) -> Iterator[tuple[str, str]]:
        yield "caller", _tried("puts the decision into the state", event.error)

    def cancelled(self, event: Cancelled) -> Iterator[tuple[str, str]]:
        yield "caller", _tried("gives up what is pending", event.error)

    def hung_up(self, event: HungUp) -> Iterator[tuple[str, str]]:
        label = event.place.removeprefix("started ")
        yield "caller", "hangs up while the model is asked" if label == "model" else f"hangs up while {label} runs"

    def shown(self, event: Shown) -> Iterator[tuple[str, str]]:
        what = {"text": f"text {said(event.text)}", "call": f"a call of {event.tool}", "end": "the end"}
        yield "caller", f"is shown {what.get(event.what, f'a {event.what}')}"

    def skipped(self, event: Skipped) -> Iterator[tuple[str, str]]:
        about = f" about {event.label}" if event.label else ""
        yield "caller", f"skips {event.step}{about}: {event.why}"

    def stuck(self, event: Stuck) -> Iterator[tuple[str, str]]:
        labels = sorted(self._labels.get(q, q) for q in event.requests)
        yield "caller", f"gives up on {said_labels(labels)}: nothing moves after {event.rounds} answers"

    def signalled(self, event: Signalled) -> Iterator[tuple[str, str]]:
        yield "caller", f"gives the signal {event.name}"

    # --- the model ---

    def model_asked(self, event: ModelRequest) -> Iterator[tuple[str, str]]:
        exchange = self._exchanges.get(event.n)
        told = list(news(exchange)) if exchange is not None else []
        for text in told or ["is asked"]:
            yield "model", _of(event.conversation, text)

    def model_answers(self, event: ModelAnswer) -> Iterator[tuple[str, str]]:
        said_so = [f"says {said(event.say)}"] if event.say is not None else []
        hosted = [f"reports {one.get('label')}: {_outcome(one)}" for one in event.hosted]
        calls = [f"calls {call.get('label')} {said_call(call['tool'], call.get('arguments'))}" for call in event.calls]
        answered = [f"answers {said(event.answer)}"] if event.answer is not None else []
        for text in [*hosted, *said_so, *calls, *answered] or ["says nothing"]:
            yield "model", _of(event.conversation, text)

    def model_fails(self, event: ModelFailure) -> Iterator[tuple[str, str]]:
        how = f"fails with status {event.status}" if event.status else _BROKEN[event.how or "disconnect"]
        how += f", to be asked again after {event.retry_after:g} s" if event.retry_after is not None else ""
        yield "model", _of(event.conversation, how)

    def model_refuses(self, event: ModelRefusal) -> Iterator[tuple[str, str]]:
        rules = dict.fromkeys(broken["rule"] for broken in event.broken)
        yield "model", _of(event.conversation, f"refuses its input: {', '.join(rules)}")

    def model_exhausted(self, event: ModelExhausted) -> Iterator[tuple[str, str]]:
        limit = f"is asked more than {event.limit} times"
        yield "model", _of(event.conversation, "has no further reply" if event.limit is None else limit)

    # --- the tools ---

    def gate(self, event: Gate) -> Iterator[tuple[str, str]]:
        about = _labelled(self._gated.get(event.n), said_call(event.tool, event.arguments))
        if event.raised is not None or event.answer is None:
            yield "tool", f"{about}: the policy fails"
        else:
            yield "tool", f"{about}: the policy {'wants approval' if event.answer else 'lets it run'}"

    def tool_starts(self, event: ToolStart) -> Iterator[tuple[str, str]]:
        run = self._runs.get((event.session, event.x))
        about = _labelled(run.call if run else None, said_call(event.tool, event.arguments))
        yield "tool", f"{about} starts{' at the provider' if event.by == 'provider' else ''}"

    def tool_ends(self, event: ToolEnd) -> Iterator[tuple[str, str]]:
        run = self._runs.get((event.session, event.x))
        about = "an unknown call"
        if run is not None:
            about = run.call.label if run.call is not None else said_call(run.tool, run.arguments)
        ends = {
            "returned": f"returns {said(event.result)}",
            "raised": f"raises {said_error(event.error)}",
            "asked": "asks again",
            "cancelled": "is cancelled",
        }
        yield "tool", f"{about} {ends.get(event.how, event.how)}"

    # --- the store ---

    def saved(self, event: Saved) -> Iterator[tuple[str, str]]:
        yield "store", _tried(f"saved as {event.mode}", event.error)

    def restored(self, event: Restored) -> Iterator[tuple[str, str]]:
        what = f"rewound to {event.name!r}" if event.n in self._rewinds else f"restored from {event.mode}"
        yield "store", _tried(what, event.error)

    def rewritten(self, event: Rewritten) -> Iterator[tuple[str, str]]:
        where = {"shown": ", where it is shown", "hidden": ", where it is not shown"}.get(event.where, "")
        if event.places:
            yield "store", f"what was saved says {said(event.new)} in place of {said(event.old)}{where}"
        else:
            yield "store", f"nothing that was saved says {said(event.old)}{where}"

    def trimmed(self, event: Trimmed) -> Iterator[tuple[str, str]]:
        plural = "" if event.keep == 1 else "s"
        yield "store", _tried(f"trimmed to the last {event.keep} message{plural}", event.error)


def rewinds(history: History) -> set[int]:
    """Gives the positions of the restores that took up a save after which a turn had ended: the story went back."""
    saves: dict[tuple[str, str], int] = {}
    ended: dict[str, int] = {}
    found: set[int] = set()
    for event in history.events:
        if isinstance(event, Saved) and event.error is None:
            saves[event.session, event.name] = event.n
        elif isinstance(event, TurnEnd):
            ended[event.session] = event.n
        elif isinstance(event, Restored):
            save = saves.get((event.session, event.name))
            if save is not None and ended.get(event.session, 0) > save:
                found.add(event.n)
    return found


def _outcome(hosted: Mapping[str, Any]) -> str:
    return said(hosted["output"]) if hosted.get("output") is not None else f"error {said(hosted.get('error'))}"


def _of(conversation: str, text: str) -> str:
    return text if conversation == "main" else f"{conversation} {text}"


def _labelled(call: CallSeen | None, about: str) -> str:
    return f"{call.label} {about}" if call is not None else about


def _tried(what: str, error: Sequence[str] | None) -> str:
    return what if error is None else f"{what}, which fails with {said_error(error)}"


_SAYS: dict[type[Event], Callable[[Any, Any], Iterator[tuple[str, str]]]] = {
    Header: Sentences.header,
    AgentStart: Sentences.agent_starts,
    AgentLost: Sentences.agent_lost,
    RunEnd: Sentences.run_ends,
    TurnStart: Sentences.turn_starts,
    TurnEnd: Sentences.turn_ends,
    Decide: Sentences.decides,
    Staged: Sentences.staged,
    Cancelled: Sentences.cancelled,
    HungUp: Sentences.hung_up,
    Shown: Sentences.shown,
    Skipped: Sentences.skipped,
    Stuck: Sentences.stuck,
    Signalled: Sentences.signalled,
    ModelRequest: Sentences.model_asked,
    ModelAnswer: Sentences.model_answers,
    ModelFailure: Sentences.model_fails,
    ModelRefusal: Sentences.model_refuses,
    ModelExhausted: Sentences.model_exhausted,
    Gate: Sentences.gate,
    ToolStart: Sentences.tool_starts,
    ToolEnd: Sentences.tool_ends,
    Saved: Sentences.saved,
    Restored: Sentences.restored,
    Rewritten: Sentences.rewritten,
    Trimmed: Sentences.trimmed,
}
