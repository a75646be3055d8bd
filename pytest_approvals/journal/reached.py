"""What a run reached, and how often: the counts that a scenario can ask for under `reaches`."""

from __future__ import annotations

from collections import Counter

from .calls import Given
from .events import Cancelled, Event, Gate, ModelExhausted, ModelFailure, ModelRefusal, Restored, Saved, Staged, Trimmed
from .history import History

_VERDICTS = {"approve": "approved", "reject": "rejected", "edit": "edited", "always": "always", "never": "never"}

_WITHOUT_ERROR: dict[str, type[Event]] = {
    "staged": Staged,
    "cancelled": Cancelled,
    "saved": Saved,
    "restored": Restored,
    "trimmed": Trimmed,
}

_REPLIES: dict[type[Event], str] = {
    ModelFailure: "model_failed",
    ModelRefusal: "model_refused",
    ModelExhausted: "exhausted",
}

_ENDS = {"raised": "raised", "asked": "asked_again"}


def reached(history: History) -> dict[str, int]:
    """Counts what happened in a run, by the words of `reaches`; what did not happen is left out."""
    counts: Counter[str] = Counter()
    for turn in history.turns:
        counts[turn.outcome] += 1
        counts["refused"] += turn.refused
    counts.update(_decided(given) for given in history.decisions)
    counts.update(_REPLIES[type(each.reply)] for each in history.exchanges if type(each.reply) in _REPLIES)
    counts.update(_ENDS[run.how] for run in history.executions if run.how in _ENDS)
    counts["surfaced"] = len(history.requests)
    counts["ran"] = len(history.executions)
    counts["gated"] = len(history.of_kind.get(Gate, ()))
    counts["nested"] = len(
        {(each.session, each.conversation) for each in history.exchanges if "/" in each.conversation}
    )
    for word, kind in _WITHOUT_ERROR.items():
        counts[word] = sum(getattr(event, "error", None) is None for event in history.of_kind.get(kind, ()))
    return {word: count for word, count in counts.items() if count}


def _decided(given: Given) -> str:
    """The word for a decision; a malformed one is none, whatever it says."""
    if is_malformed(given):
        return "malformed"
    return "unknown" if given.asked is None else _VERDICTS[given.verdict]


def is_malformed(given: Given) -> bool:
    """Says whether something that is no decision, or no request, stands where one goes."""
    raw = given.event.raw
    return given.verdict == "raw" or (isinstance(raw, dict) and "address" in raw)
