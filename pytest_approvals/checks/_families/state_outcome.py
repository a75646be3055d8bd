"""Family `state`, outcome: all variants of a scenario have the same outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any

from pytest_approvals.checks._check import OK, Evaluations, Failure
from pytest_approvals.checks._registry import group_check
from pytest_approvals.journal.events import EVENTS, ModelFailure, StateRewritten, StepSkipped
from pytest_approvals.journal.history import History, RecordedCall, RecordedTurn
from pytest_approvals.journal.outcome import OutcomeEntry, extract_outcome

_MISSING: tuple[int, dict[str, Any]] = (0, {"event": "nothing"})


@group_check(
    "same-outcome-in-every-mode",
    severity="mistold",
    needs=("turn.end",),
    sources=("langchain-ai/langgraph#5409", "openai/openai-agents-python#2487"),
)
def same_outcome_in_every_mode(histories: Sequence[History]) -> Evaluations:
    """A scenario must have the same outcome whether the state is kept, copied or serialized, and streamed or not.

    Otherwise tests in memory say nothing about runs with a database. Not compared are runs with different oracles, runs
    in which a state has two futures (on one live object, in a store, and in copies), runs that resume from what another
    release saved, which may have stopped at another place of the run, and runs in which not as many saves were changed,
    because not each of them held the text. A run whose process died while it stored something is compared with those on
    the same store, since stores are written to at other places. A run on a live object in which a failed turn showed no
    request to decide about is compared with its like only: a restored state lists what is open. The error of a turn
    whose stream broke off may be another one than that of a refused request, a refusal may have another name, and runs
    are compared until a call begins or returns, or the agent of another one goes on, after the caller hung up in a
    call, or until a failed model is asked again, where only a broken stream ends the turn. If a stream gives a call
    several ids, an agent may keep any of them, or all as one: such a run is compared without ids, also in texts. When a
    call ran and how long, as texts say it, does not count.

    Passes:
        mode none
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done
        ---
        streaming
        send Pay 5
        model c1 pay(amount=5)
        show request c1
        pause c1
        save
        restore
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, what was saved does not say that the request was settled, and the decision is refused all the same:
        mode none
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 rejected
        done
        approve c1
        go
        fail AlreadySettled: c1
        ---
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 rejected
        done
        save
        restore
        approve c1
        go
        fail UnknownRequest: c1

    Passes, after a failed turn only a restored state lists the request:
        mode none
        send Pay 5
        model c1 pay(amount=5)
        fail ToolError: the other call raised
        skip no request about this call has surfaced
        ---
        send Pay 5
        model c1 pay(amount=5)
        fail ToolError: the other call raised
        save s1
        restore s1: c1
        approve c1
        go
        run c1 -> paid 5
        done
        ---
        streaming
        send Pay 5
        model c1 pay(amount=5)
        fail ToolError: the other call raised
        save s1
        restore s1: c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, two stores are written to at other places, and their process dies there:
        mode native.files
        send Pay 5
        crash write
        ---
        mode native.files
        streaming
        send Pay 5
        crash write
        ---
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        crash write

    Passes, a call begins in one of them before the agent notices that the caller has hung up:
        mode none
        send Pay both
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        approve c2
        go
        start c1
        hangup c1 ends
        fail CallerGone
        end left
        ---
        send Pay both
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        save
        restore
        approve c1
        approve c2
        go
        start c1
        hangup c1 ends
        run c2 -> paid 6
        fail CallerGone
        end left

    Passes, a tool runs on behind the hang-up, and returns earlier or later:
        mode none
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1 runs
        send Is it paid?
        returns c1 paid 5
        done
        ---
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        restore
        approve c1
        go
        start c1
        hangup c1 runs
        returns c1 paid 5
        send Is it paid?
        done

    Passes, a failed model is asked again, unless its reply is streamed:
        send Hello
        down 0
        model Hello.
        finish Hello.
        ---
        streaming
        send Hello
        down broken
        fail ModelDown: the stream broke off

    Fails, its reply is not streamed either:
        send Hello
        down 0
        model Hello.
        finish Hello.
        ---
        mode copy
        send Hello
        down 0
        fail ModelDown: status 0

    Fails, nobody hung up:
        mode none
        send Pay both
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        approve c2
        go
        start c1
        start c2
        returns c1 paid 5
        returns c2 paid 6
        done
        ---
        send Pay both
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        save
        restore
        approve c1
        approve c2
        go
        start c1
        returns c1 paid 7
        start c2
        returns c2 paid 6
        done

    Passes, a call in which the caller hung up waits again, under an id that only a restored state shows:
        mode none
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        approve c1
        go
        fail AlreadySettled: c1
        ---
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        restore
        approve c1
        go
        start c1
        hangup c1
        save s2
        restore s2: c1
        approve c1
        go
        run c1 -> paid 5
        done
        ---
        mode copy
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        restore
        approve c1
        go
        start c1
        hangup c1
        save s2
        restore s2: c1
        approve c1
        go
        run c1 -> paid 5
        done

    Fails:
        mode none
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done
        ---
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        restore
        approve c1
        go
        tell c1 lost
        done
    """
    for group in _group_comparable(histories):
        # Compare with the plainest variant: it has the fewest causes for a difference.
        base, *others = sorted(group, key=_count_deviations)
        outcomes: dict[bool, list[OutcomeEntry]] = {}
        for other in others:
            with_ids = not (_gives_several_ids(base) or _gives_several_ids(other))
            if with_ids not in outcomes:
                outcomes[with_ids] = extract_outcome(base.events, with_ids=with_ids)
            yield _compare_outcomes(base, outcomes[with_ids], other, with_ids=with_ids)


def _group_comparable(histories: Sequence[History]) -> Iterator[list[History]]:
    groups: dict[tuple[Any, ...], list[History]] = {}
    for history in histories:
        if history.header is not None:
            variant = history.header.variant
            kept = _storage_kind(variant) if _has_concurrency(history) else None
            unseen = _storage_kind(variant) == "none" and _lacks_request_after_failure(history)
            rewritten = len(history.events_of(StateRewritten))
            store = variant.get("serialize") if any(turn.unstored_from is not None for turn in history.turns) else None
            meant = variant.get("source") if _answers_another_future(history) else None
            apart = (variant.get("oracle"), variant.get("protocol"), variant.get("saved_by"))
            key = (history.header.scenario, history.header.agent, *apart, kept, unseen, rewritten, store, meant)
            groups.setdefault(key, []).append(history)
    return iter(groups.values())


def _storage_kind(variant: Mapping[str, Any]) -> str:
    """Return where a state with two futures is kept: on one live object, in one store, or in independent copies."""
    mode = str(variant.get("serialize", "none"))
    return mode if mode == "none" or mode.startswith("native.") else "copies"


def _has_concurrency(history: History) -> bool:
    """Return whether turns ran at the same time, or one after the other on two copies of one state."""
    forked = any(branch.parent is not None for branch in history.branches)
    return forked or any(turn.overlaps for turn in history.turns)


def _answers_another_future(history: History) -> bool:
    """Return whether a caller with one copy of a state answers what only the other copy has asked.

    A request that is rebuilt from the state is one that this copy knows; any other one is of the other copy.
    """
    parents = {(branch.session, branch.number): branch.parent for branch in history.branches}
    asked: dict[tuple[str, str | None], int] = {}
    for turn in history.turns:
        past = [turn.branch]
        while (parent := parents.get((turn.session, past[-1]))) is not None:
            past.append(parent)
        if any(asked.get((turn.session, each.event.q), turn.branch) not in past for each in turn.decisions):
            return True
        for entry in turn.end.requests if turn.end is not None else ():
            asked.setdefault((turn.session, entry.get("q")), turn.branch)
    return False


def _lacks_request_after_failure(history: History) -> bool:
    """Return whether a failed turn showed no request, and a decision was left out behind it or a call still waits.

    A call in which the caller hung up may wait again, too: then a decision about the request before that is refused.
    """
    failed = [turn.end for turn in history.turns if turn.failed and not turn.refused and turn.end is not None]
    skipped = [event.n for event in history.events_of(StepSkipped) if event.step == "decide"]
    if failed and skipped and failed[0].n < skipped[-1]:
        return True
    silent = [end.n for end in failed if not end.requests]
    return any(_waits(call, n) or _is_refused_after(call, n) for n in silent for call in history.calls)


def _is_refused_after(call: RecordedCall, n: int) -> bool:
    """Return whether a call had been cut off by position *n*, and a later decision about it was refused."""
    if not any(each.how == "cancelled" and each.ended is not None and each.ended < n for each in call.executions):
        return False
    return any(decision.refused and decision.n > n for decision in call.decisions)


def _waits(call: RecordedCall, n: int) -> bool:
    """Return whether at position *n* nobody has decided about a call, or not since it asked again."""
    if call.n > n or any(delivery.n < n for delivery in call.deliveries):
        return False
    asked = [
        each.ended for each in call.executions if each.how == "asked" and each.ended is not None and each.ended < n
    ]
    decided = [each.handed_in_at for each in call.decisions if each.handed_in_at is not None and each.handed_in_at < n]
    if not decided:
        return call.is_gated or bool(asked)
    return max(asked, default=0) > max(decided)


def _gives_several_ids(history: History) -> bool:
    """Return whether the stream gave calls several ids, of which an agent may keep any, or all as one."""
    return _variant_of(history).get("chunking") in ("repeated_ids", "changing_ids")


def _variant_of(history: History) -> Mapping[str, Any]:
    return history.header.variant if history.header is not None else {}


def _count_deviations(history: History) -> int:
    variant = _variant_of(history)
    return sum(variant.get(name, base) != base for name, base in _BASE_VARIANT.items())


def _compare_outcomes(base: History, outcome: list[OutcomeEntry], other: History, *, with_ids: bool) -> Failure | None:
    others = extract_outcome(other.events, with_ids=with_ids)
    for (at, wanted), (n, seen) in zip_longest(outcome, others, fillvalue=_MISSING):
        ends = (base, at, wanted), (other, n, seen)
        if wanted == seen or (_differ_in_error(wanted, seen) and (_is_broken_stream(*ends) or _is_refusal(*ends))):
            continue
        if _is_work_behind_hang_up(base, at, wanted) or _is_work_behind_hang_up(other, n, seen):
            return OK
        if _is_tried_again(*ends):
            return OK
        # The first difference is enough: what follows may only be its consequence.
        expected, actual = _describe_difference(wanted, seen)
        return Failure(
            expected=f"{expected}, as in {_variant_name(base)}",
            actual=f"{actual} in {_variant_name(other)}",
            witness=(n or len(other.events),),
        )
    return OK


def _differ_in_error(wanted: Mapping[str, Any], seen: Mapping[str, Any]) -> bool:
    """Return whether two events differ in the error that each of them has, and in nothing else."""
    one, other = ({name: value for name, value in each.items() if name != "error"} for each in (wanted, seen))
    return one == other and "error" in wanted and "error" in seen


_End = tuple[History, int, Mapping[str, Any]]
"""The history and the position of an event, and what of it is compared."""


def _is_broken_stream(*ends: _End) -> bool:
    """Return whether one of two turns ends with a broken stream.

    A reply that is not streamed fails with the status of a response; what breaks off in a stream has none.
    """
    return any(_ends_with_broken_stream(history, n) for history, n, _ in ends)


def _is_refusal(*ends: _End) -> bool:
    """Return whether both are refusals, for which an agent has its own words: what was saved may not say why.

    Whether a late decision is one about a settled request, or about an unknown one, say.
    """
    return all(
        written["event"] in ("caller.stage", "caller.cancel")
        or any(turn.refused and turn.ended == n for turn in history.turns)
        for history, n, written in ends
    )


def _ends_with_broken_stream(history: History, n: int) -> bool:
    replies = [exchange.reply for turn in history.turns if turn.ended == n for exchange in turn.exchanges[-1:]]
    return any(isinstance(reply, ModelFailure) and reply.shown is not None for reply in replies)


def _is_tried_again(*ends: _End) -> bool:
    """Return whether one of two asks a failed model again in the same turn, and the other ends with a broken stream.

    What has been shown of a reply cannot be taken back, so an agent may ask twice only for one that is not streamed.
    """
    has_ended = any(written["event"] == "turn.end" and _ends_with_broken_stream(run, n) for run, n, written in ends)
    return has_ended and any(_is_second_try(history, n) for history, n, _ in ends)


def _is_second_try(history: History, n: int) -> bool:
    """Return whether position *n* is a request to a model that has failed in the same turn."""
    return any(
        isinstance(failed.reply, ModelFailure) and again.n == n
        for turn in history.turns
        for failed, again in pairwise(turn.exchanges)
        if failed.conversation == again.conversation
    )


def _is_work_behind_hang_up(history: History, n: int, written: Mapping[str, Any]) -> bool:
    """Return whether a call began, or another call's agent went on, when the caller had hung up.

    How far the agent comes until it notices is chance, and what follows depends on it. When a tool returns that runs on
    without a caller is chance, too.
    """
    if written["event"] == "tool.end":
        return any(_runs_on(turn, n) for turn in history.turns)
    # The start of a call names no conversation.
    outer, inside, _ = str(written.get("conversation", "")).partition("/")
    return (bool(inside) or written["event"] == "tool.start") and any(
        turn.cut_off_at is not None
        and turn.cut_off_at < n < turn.ended
        and outer not in _list_calls_cut_off(turn, turn.cut_off_at)
        for turn in history.turns
    )


def _runs_on(turn: RecordedTurn, n: int) -> bool:
    """Return whether position *n* is the end of a run that was not stopped when the caller hung up in it."""
    gone = turn.cut_off_at
    runs = (run for run in turn.executions if run.ended == n and run.how != "cancelled")
    return gone is not None and any(run.n < gone < n for run in runs)


def _list_calls_cut_off(turn: RecordedTurn, at: int) -> set[str]:
    """Return the calls of the outer agent in which a tool's body ran at position *at*."""
    entered = [each for each in turn.executions if each.start is not None and each.n < at]
    running = [each for each in entered if each.ended is None or each.ended > at]
    return {each.call.label.partition("/")[0] for each in running if each.call is not None}


def _describe_difference(wanted: Mapping[str, Any], seen: Mapping[str, Any]) -> tuple[str, str]:
    if wanted["event"] != seen["event"]:
        return _describe_entry(wanted), _describe_entry(seen)
    name, one, other = _find_difference("", wanted, seen)
    return f"{wanted['event']} with {name} {one!r}", f"{name} {other!r}"


def _find_difference(name: str, wanted: Any, seen: Any) -> tuple[str, Any, Any]:
    """Return the first place where two values differ, and what each has there; None if it has nothing."""
    pairs: Iterable[tuple[str, Any, Any]] = ()
    if isinstance(wanted, Mapping) and isinstance(seen, Mapping):
        pairs = ((f"{name} {key}".strip(), wanted.get(key), seen.get(key)) for key in (*wanted, *seen))
    elif isinstance(wanted, list) and isinstance(seen, list):
        pairs = ((f"{name} {at + 1}", *both) for at, both in enumerate(zip_longest(wanted, seen)))
    return next((_find_difference(*pair) for pair in pairs if pair[1] != pair[2]), (name, wanted, seen))


def _describe_entry(written: Mapping[str, Any]) -> str:
    if written["event"] not in EVENTS:
        return "nothing more"
    facts = ", ".join(f"{name} {value!r}" for name, value in written.items() if name != "event" and value)
    return f"{written['event']} ({facts})" if facts else str(written["event"])


_BASE_VARIANT: dict[str, Any] = {
    "serialize": "none",
    "resume": "same",
    "history": "whole",
    "stream": False,
    "source": "held",
    "chunking": "whole",
}


def _variant_name(history: History) -> str:
    """Return the variant of a run, by what differs from the plainest one."""
    variant = _variant_of(history)
    words = [str(variant.get("serialize", "none"))]
    for name, base in _BASE_VARIANT.items():
        value = variant.get(name, base)
        if name != "serialize" and value != base:
            words.append(name if value is True else str(value))
    return "-".join(words)
