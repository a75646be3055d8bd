"""Coverage of a run: the counts that a scenario can ask for under `reaches`."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_approvals.journal.events import (
    AgentStopped,
    DecisionsStaged,
    DiskFull,
    Event,
    HistoryTrimmed,
    ModelAnswer,
    ModelExhausted,
    ModelFailure,
    ModelRefusal,
    PendingCancelled,
    PolicyAsked,
    StateRewritten,
    StoreRolledBack,
)
from pytest_approvals.journal.history import History, RecordedDecision

_VERDICTS = {"approve": "approved", "reject": "rejected", "edit": "edited", "always": "always", "never": "never"}

_SUCCESSFUL_EVENTS: dict[str, type[Event]] = {
    "staged": DecisionsStaged,
    "cancelled": PendingCancelled,
    "trimmed": HistoryTrimmed,
    "rewritten": StateRewritten,
}

_REPLIES: dict[type, str] = {ModelFailure: "model_failed", ModelRefusal: "model_refused", ModelExhausted: "exhausted"}

_EXECUTION_ENDS = {"raised": "raised", "asked": "asked_again"}


def count_reached(history: History) -> dict[str, int]:
    """Return how often each word of `reaches` happened in a run; what did not happen is left out."""
    counts: dict[str, int] = {
        "called": sum(
            len(exchange.reply.calls) for exchange in history.exchanges if isinstance(exchange.reply, ModelAnswer)
        ),
        "surfaced": len(history.requests),
        "ran": len(history.executions),
        "saved": sum(save.event.error is None for save in history.saves),
        "restored": sum(restore.event.error is None for restore in history.restores),
        "disk_full": sum(not event.once for event in history.events_of(DiskFull)),
        "write_failed": sum(bool(event.once) for event in history.events_of(DiskFull)),
        "lost": sum(event.how == "lost" for event in history.events_of(StoreRolledBack)),
        "stale": sum(event.how == "stale" for event in history.events_of(StoreRolledBack)),
        "stopped": len(history.events_by_class.get(AgentStopped, ())),
        "elicited": sum(len(elicitation.shown) for elicitation in history.elicitations),
        "gated": len(history.events_by_class.get(PolicyAsked, ())),
        "nested": len(
            {
                (exchange.session, exchange.conversation)
                for exchange in history.exchanges
                if "/" in exchange.conversation
            }
        ),
    }
    for word in _observed_words(history):
        counts[word] = counts.get(word, 0) + 1
    for word, kind in _SUCCESSFUL_EVENTS.items():
        counts[word] = sum(getattr(event, "error", None) is None for event in history.events_by_class.get(kind, ()))
    return {word: count for word, count in counts.items() if count}


def _observed_words(history: History) -> Iterator[str]:
    for turn in history.turns:
        yield turn.outcome
        if turn.cut_off_at is not None:
            yield "crashed" if turn.crashed else "hung_up"
        if turn.refused:
            yield "refused"
    for decision in history.decisions:
        yield "malformed" if is_malformed(decision) else _VERDICTS.get(decision.verdict, decision.verdict)
        if decision.request is None and not is_malformed(decision):
            yield "unknown"
    for exchange in history.exchanges:
        if type(exchange.reply) in _REPLIES and getattr(exchange.reply, "how", None) != "hung_up":
            yield _REPLIES[type(exchange.reply)]
    for execution in history.executions:
        if execution.how in _EXECUTION_ENDS:
            yield _EXECUTION_ENDS[execution.how]


def is_malformed(decision: RecordedDecision) -> bool:
    """Return whether the caller handed in something that is not a decision, or not a request."""
    raw = decision.event.raw
    return decision.verdict == "raw" or (isinstance(raw, dict) and "address" in raw)
