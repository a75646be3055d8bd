"""Family `telling`: what the model is told of a call is what became of that call."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from pytest_approvals.checks._check import OK, Evaluations, Failure
from pytest_approvals.checks._families.telling import NEGATION, looks_like_success
from pytest_approvals.checks._queries import (
    cannot_run,
    exchanges_of_agent,
    is_answered_by_guard,
    list_copies,
    may_know_other_branches,
    outlives_its_turn,
    sibling_calls,
    successful_cancellations,
    was_rewritten_between,
)
from pytest_approvals.checks._registry import check
from pytest_approvals.checks._sayings import find_foreign_saying, is_distinctive, list_sayings
from pytest_approvals.checks._told_texts import (
    contains_text,
    conveys_result,
    is_empty_text,
    list_told_texts,
)
from pytest_approvals.journal.arguments import parse_arguments
from pytest_approvals.journal.conversation import apply_rewrites
from pytest_approvals.journal.events import ModelFailure, StateRewritten
from pytest_approvals.journal.history import (
    DeliveredResult,
    Execution,
    History,
    RecordedCall,
)

_LEFT_OUT = re.compile(
    r"\b(?:clear|remov|omit|truncat|shorten|elid|abbreviat|trimm|prun|compact|offload|evict)\w*|\bcut\b|\bleft out\b",
    re.IGNORECASE,
)
"""Words that say that something which was there is left out."""

_LONGEST_NOTE = 200
"""How many characters may say so: more would be something else."""

_SHORTEST_PART = 40
"""How many characters of a result are told at least, if it is cut."""

_FAILURE = re.compile(
    rf"{NEGATION}|exception|rais|invalid|wrong|problem|could|went|retry|again|time|unexpected|sorry|issue|trouble|crash",
    re.IGNORECASE,
)
_BY_PERSON = re.compile(
    r"\b(?:user|human|person|operator|reviewer)\b[^.]*(?:reject|den(?:y|ied)|declin|refus|disapprov)"
    r"|(?:reject|den(?:y|ied)|declin|refus|disapprov)\w* by (?:the |a )?(?:user|human|person|operator|reviewer)\b",
    re.IGNORECASE,
)


@check(
    "result-matches-its-call",
    severity="mistold",
    needs=("model.request", "tool.end"),
    sources=("langchain-ai/langgraph#8579", "pydantic/pydantic-ai#7815"),
)
def result_matches_its_call(history: History) -> Evaluations:
    """What the model is told as the result of a call must be what that call's run returned.

    Results that are swapped between calls, made up, or taken from elsewhere mislead the model about what was done. What
    it is told must hold nothing that another call returned or raised, and no reason of another rejection. If a call
    raised, it must be told something: its error, or a fixed text that says that it failed, unless the turn failed for
    it and the call was rejected then. A result may be told as
    text, as JSON, in blocks, and with words around it; an agent that is run as a tool may repeat what it was told. A
    guardrail, callback or middleware of the user's own around a tool may tell something else. If the process is killed
    before it shows a result or tells it to a model, the result may be lost on its way to the store, and something else
    is told of the call. Of a long result, the beginning may be told, with a note that says that it was cut; and one
    that a model has read may be cleared from later inputs, if these say so. Of a call that nobody decided it should not
    be told that a person rejected it, as if silence, or another message, were an answer.

    Passes, a long result is cut, and the model is told so:
        send Go
        model c1 read(path=a)
        run c1 -> one two three four five six seven eight nine ten eleven twelve
        untell c1
        tell c1 one two three four five six seven eight nine… [18 characters omitted]
        done

    Fails, it is cut, and the model is not told so:
        send Go
        model c1 read(path=a)
        run c1 -> one two three four five six seven eight nine ten eleven twelve
        untell c1
        tell c1 one two three four five six seven eight nine…
        done

    Passes, its middle is cut:
        send Go
        model c1 read(path=a)
        run c1 -> one two three four five six seven eight nine ten eleven twelve
        untell c1
        tell c1 one two three four five six seven eight (4 characters omitted) ten eleven twelve
        done

    Fails, nearly all of it is cut:
        send Go
        model c1 read(path=a)
        run c1 -> one two three four five six seven eight nine ten eleven twelve
        untell c1
        tell c1 one two three [49 characters omitted]
        done

    Passes, an old result is cleared, and the model is told so:
        send Go
        model c1 read(path=a)
        run c1 -> text of a
        model c2 read(path=b)
        run c2 -> text of b
        untell c1
        tell c1 [Old tool result content cleared]
        done

    Passes, it is cleared after a model has read it at the second try:
        send Go
        model c1 read(path=a)
        run c1 -> text of a
        down 500
        fail ModelDown: 500
        go
        model c2 read(path=b)
        run c2 -> text of b
        untell c1
        tell c1 [Old tool result content cleared]
        done

    Fails, a result is cleared whose model has failed:
        send Go
        model c1 read(path=a)
        run c1 -> text of a
        down 500
        fail ModelDown: 500
        untell c1
        tell c1 [Old tool result content cleared]
        go
        done

    Fails, a result is cleared that no model has read:
        send Go
        model c1 read(path=a)
        run c1 -> text of a
        untell c1
        tell c1 [Old tool result content cleared]
        done

    Fails, an old result is gone, and nothing says so:
        send Go
        model c1 read(path=a)
        run c1 -> text of a
        model c2 read(path=b)
        run c2 -> text of b
        untell c1
        tell c1 [tool result]
        done

    Fails, it is called an error:
        send Go
        model c1 read(path=a)
        run c1 -> text of a
        model c2 read(path=b)
        run c2 -> text of b
        untell c1
        tell c1 Error: it was removed.
        done

    Fails, it is called a rejection:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        model c2 read(path=b)
        run c2 -> text of b
        untell c1
        tell c1 Removed, as the user denied it.
        done

    Fails, it is cleared with the result of another call:
        send Go
        model c1 read(path=a)
        run c1 -> text of a
        model c2 read(path=b)
        run c2 -> text of b
        untell c1
        tell c1 [cleared] text of b
        done

    Passes, in an XML element:
        send Go
        model c1 read(path=a)
        run c1 -> if a < b & c
        untell c1
        tell c1 <result>if a &lt; b &amp; c</result>
        done

    Fails, an error that is told as an empty element:
        send Go
        model c1 read(path=a)
        run c1 !! no such file
        tell c1 <error></error>
        done

    Passes:
        send Go
        model c1 read(path=a); c2 read(path=b)
        run c1 -> text of a
        run c2 -> text of b
        done

    Passes, the process was killed, and its successor does not know the result:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        crash shown
        restore a:
        go
        tell c1 It may have been done.
        done

    Fails, the process was killed, and its successor blames a person:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        crash shown
        restore a:
        go
        tell c1 The user rejected this call.
        done

    Fails, the result was shown before the process was killed:
        mode native.sqlite
        streaming
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        show result c1 paid 5
        crash shown
        restore a:
        go
        tell c1 It may have been done.
        done

    Fails, the result was told before the process was killed:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        crash
        restore a:
        go
        tell c1 It may have been done.
        done

    Fails, the process was killed after its turn was over:
        mode native.sqlite
        save a
        send Go
        model c1 pay(amount=5); c2 read(path=b)
        run c2 -> text of b
        crash outcome
        restore a: c1
        approve c1
        go
        run c1 -> paid 5
        tell c2 It may have been done.
        done

    Passes, in typed blocks, and with words around it:
        send Go
        model c1 read(path=a); c2 read(path=b)
        run c1 -> text of a
        run c2 -> text of b
        untell c1
        untell c2
        tell c1 [{"type": "text", "text": "text of a"}]
        tell c2 Result of read: text of b.
        done

    Passes, a fixed text for errors:
        send Go
        model c1 read(path=a)
        run c1 !! no such file
        tell c1 The tool did not succeed.
        done

    Fails:
        send Go
        model c1 read(path=a); c2 read(path=b)
        run c1 -> text of a
        run c2 -> text of b
        untell c1
        untell c2
        tell c1 text of b
        tell c2 text of a
        done

    Fails, a result of a call that never ran:
        send Go
        model c1 pay(amount=5); c2 read(path=b)
        run c2 -> text of b
        pause c1
        reject c1
        go
        tell c1 text of b
        done

    Fails, with the result of another call behind it:
        send Go
        model c1 read(path=a); c2 read(path=b)
        run c1 -> text of a
        run c2 -> text of b
        untell c1
        tell c1 text of a text of b
        done

    Fails, the reason of another rejection:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        reject c1 too much
        reject c2 wrong account
        go
        tell c1 Denied: wrong account
        tell c2 Denied: wrong account
        done

    Fails, an error that is told as an empty object:
        send Go
        model c1 read(path=a)
        run c1 !! no such file
        tell c1 {}
        done

    Fails, an error that is told as success:
        send Go
        model c1 read(path=a)
        run c1 !! no such file
        tell c1 Done.
        done

    Fails, an error that is told as a rejection:
        send Go
        model c1 read(path=a)
        run c1 !! no such file
        tell c1 The user rejected this call.
        done

    Passes, words that a call still runs:
        send Go
        model c1 read(path=a)
        start c1
        tell c1 It is running.
        model Wait.
        gives c1 text of a
        finish Wait.

    Fails, a result that is told while its call still runs:
        send Go
        model c1 read(path=a)
        start c1
        tell c1 text of a
        model Wait.
        gives c1 text of a
        finish Wait.

    Fails, a sub-agent with what it said before it was done:
        tool ask(input: string) never runs helper
        tool pay(amount: integer) never of helper
        send Pay 5
        model o1 ask(input="Pay 5")
        model @o1/helper I am paying it.; o1/c1 pay(amount=5)
        run o1/c1 -> paid 5
        model @o1/helper Paid.
        tell o1 I am paying it.
        done

    Fails, a sub-agent with what its tool returned:
        tool ask(input: string) never runs helper
        tool pay(amount: integer) never of helper
        send Pay 5
        model o1 ask(input="Pay 5")
        model @o1/helper o1/c1 pay(amount=5)
        run o1/c1 -> paid 5
        model @o1/helper It is settled.
        tell o1 paid 5
        done

    Fails, a sub-agent with the beginning of what it said:
        tool ask(input: string) never runs helper
        send Pay 5
        model o1 ask(input="Pay 5")
        model @o1/helper It is settled.
        tell o1 It is
        done

    Passes, a sub-agent in other words:
        tool ask(input: string) never runs helper
        send Pay 5
        model o1 ask(input="Pay 5")
        model @o1/helper It is settled.
        tell o1 The helper reports: it is settled.
        done

    Fails, an edited call as the model wrote it:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        edit c1 (amount=3)
        go
        run c1 pay(amount=3) -> paid 3
        untell c1
        tell c1 The call ran with {"amount": 5}: paid 3
        done

    Passes, an edited call as the model wrote it and as it ran:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        edit c1 (amount=3)
        go
        run c1 pay(amount=3) -> paid 3
        untell c1
        tell c1 {"amount": 5} was changed to {"amount": 3}: paid 3
        done

    Fails, an edited call with what the model's own would have returned:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        edit c1 (amount=3)
        go
        run c1 pay(amount=3) -> paid 3
        untell c1
        tell c1 paid 5: paid 3
        done

    Fails, an edited call with what another one was edited to:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        edit c1 (amount=3)
        edit c2 (amount=4)
        go
        run c1 pay(amount=3) -> paid 3
        run c2 pay(amount=4) -> paid 4
        untell c1, c2
        tell c1 changed to {"amount": 3}: paid 3
        tell c2 changed to {"amount": 3}: paid 4
        done

    Passes, a call that a new message closes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        tell c1 the user went on without an answer
        send Never mind
        done

    Warns, a call that a new message closes, as rejected by a person who has not answered:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        tell c1 The user rejected this call.
        send Never mind
        done

    Fails, a call that a new message closes, with an empty text:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        tell c1
        send Never mind
        done

    Fails, a call that a new message closes, as if it had run:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        tell c1 {"status": "paid"}
        send Never mind
        done

    Fails, a call whose agent has failed, as if that had done it:
        tool delegate(input: string) never runs helper
        send Pay 5
        model o1 delegate(input=Pay 5)
        down @o1/helper 500
        tell o1 done
        done

    Fails, a call that does not fit, with an empty object:
        send Pay 5
        model c1 pay(amount=a lot)
        tell c1 {}
        done
    """
    sayings = list_sayings(history)
    for call in history.calls:
        for delivery in call.deliveries:
            if _tells_rewritten_result(history, call, delivery):
                yield OK
            elif _is_cleared(history, call, delivery):
                yield find_foreign_saying(history, call, delivery, sayings)
            elif call.executions or any(sayings.values()) or _is_left_undone(history, call, delivery):
                yield (
                    judge_delivery(history, call, delivery)
                    or find_foreign_saying(history, call, delivery, sayings)
                    or _find_earlier_text(history, call, delivery)
                    or _find_claimed_run(history, call, delivery)
                    or _find_made_up_decision(history, call, delivery)
                )


def _is_cleared(history: History, call: RecordedCall, delivery: DeliveredResult) -> bool:
    """Return whether a model input says that the result of a call was left out, which a model has read before.

    Only of a call that has run: what became of the others is always to be told. The words must not sound like another
    outcome.
    """
    text = delivery.text or ""
    if not call.executions or len(text) > _LONGEST_NOTE or not _LEFT_OUT.search(text):
        return False
    if (
        looks_like_success(history, call, text)
        or _BY_PERSON.search(text)
        or re.search("error|fail", text, re.IGNORECASE)
    ):
        return False
    inputs = [
        each for each in history.exchanges if (each.session, each.conversation) == (call.session, call.conversation)
    ]
    return any(
        any(earlier.n <= each.n < later.n and each.answer is not None for each in inputs)
        for earlier, later in pairwise(call.deliveries)
        if later.n <= delivery.n
    )


def _find_claimed_run(history: History, call: RecordedCall, delivery: DeliveredResult) -> Failure | None:
    """Return a failure if a call that nobody decided and that did not run is told as if it had run.

    It was closed by a message or a cancellation, its tool is missing, or its arguments do not fit. What is told of a
    rejected call, and of an approved one that did not run, other checks judge.
    """
    if not _is_left_undone(history, call, delivery):
        return OK
    if not is_empty_text(delivery.text) and not looks_like_success(history, call, delivery.text or ""):
        return OK
    actual = f"the model is told {delivery.text!r}"
    return Failure(call=call, expected="that it did not run", actual=actual, witness=(call.n, delivery.n))


def _find_made_up_decision(history: History, call: RecordedCall, delivery: DeliveredResult) -> Failure | None:
    """Return a failure if the model is told that a person rejected a call which nobody decided."""
    if not _is_left_undone(history, call, delivery) or not _BY_PERSON.search(delivery.text or ""):
        return OK
    # Another call of the reply may be meant, and a cancellation is a person's, too.
    if any(decision.rejects for other in sibling_calls(history, call) for decision in other.decisions):
        return OK
    if any(call.n < event.n < delivery.n for event in successful_cancellations(history)):
        return OK
    actual = f"the model is told {delivery.text!r}, and nobody decided"
    return Failure(call=call, expected="what became of it", actual=actual, witness=(call.n, delivery.n), level="should")


def _is_left_undone(history: History, call: RecordedCall, delivery: DeliveredResult) -> bool:
    """Return whether a call of a function that waited, or cannot run, had neither run nor decision when it was told."""
    if call.executions or call.decision is not None or call.kind == "hosted_mcp" or delivery.item is None:
        return False
    if was_rewritten_between(history, call.n, delivery.n, call.session) or is_answered_by_guard(call):
        return False
    # A hand-off is carried out by what the model is told.
    if call.declaration is not None and call.declaration.hands_over_to is not None:
        return False
    if _is_frameworks_own(history, call) or _has_run_elsewhere(history, call, delivery.n):
        return False
    return any(request.n < delivery.n for request in call.requests) or cannot_run(history, call, None)


def _has_run_elsewhere(history: History, call: RecordedCall, n: int) -> bool:
    """Return whether a call has run before position *n* in another branch, of which its agent may know."""
    knows = may_know_other_branches(history)
    return knows and any(run.n < n for copy in list_copies(history, call) for run in copy.executions)


def _is_frameworks_own(history: History, call: RecordedCall) -> bool:
    """Return whether the model was offered a tool that the agent does not list, such as a hand-off of its framework."""
    offer = next(exchange for exchange in history.exchanges if exchange.reply is call.answer)
    return call.declaration is None and call.tool in (offer.tools or ())


def _find_earlier_text(history: History, call: RecordedCall, delivery: DeliveredResult) -> Failure | None:
    """Return a failure if the result of a call that runs an agent is not what that said at its end.

    It is wrong if it is what the agent said or was told before, or only a part of what it said. If the agent's model
    failed, nothing and a word for success are wrong.
    """
    if call.declaration is None or call.declaration.runs is None or delivery.item is None or is_answered_by_guard(call):
        return OK
    inner = [exchange for exchange in exchanges_of_agent(history, call) if exchange.n < delivery.n]
    if inner and isinstance(inner[-1].reply, ModelFailure) and inner[-1].branch == call.branch:
        if not is_empty_text(delivery.text) and not looks_like_success(history, call, delivery.text or ""):
            return OK
        actual = f"the model is told {delivery.text!r}"
        return Failure(call=call, expected="that it failed", actual=actual, witness=(inner[-1].n, delivery.n))
    answers = [exchange.answer for exchange in inner if exchange.answer is not None and exchange.branch == call.branch]
    # In two branches, nothing says from which of them the result is.
    if not answers or len(answers) < len(inner) or answers[-1].calls or not answers[-1].say:
        return OK
    last = answers[-1].say
    earlier = [each.say or "" for each in answers[:-1]]
    earlier += [item.get("text") or "" for item in inner[-1].items if item["kind"] == "result"]
    # An agent may be told in other words, with more around them, but not just what came before its end.
    told = {text.strip() for text in list_told_texts(delivery.text)}
    repeated = any(is_distinctive(text) and text.strip() in told for text in earlier)
    # Nor with a part of it in its place.
    is_cut = bool(told) and all(text in last and text != last.strip() for text in told)
    if contains_text(delivery.text, last) or not (repeated or is_cut):
        return OK
    actual = f"the model is told {delivery.text!r}"
    return Failure(call=call, expected=repr(last), actual=actual, witness=(answers[-1].n, delivery.n))


def _tells_rewritten_result(history: History, call: RecordedCall, delivery: DeliveredResult) -> bool:
    """Return whether a result is told as it was saved, and then changed in the save."""
    for execution in call.executions:
        changes = [
            (event.old, event.new)
            for event in history.events_of(StateRewritten)
            if event.session == call.session and (execution.ended or 0) < event.n < delivery.n
        ]
        told = apply_rewrites(execution.result, changes)
        if told is not None and told != execution.result and conveys_result(delivery.text, told):
            return True
    return False


def judge_delivery(history: History, call: RecordedCall, delivery: DeliveredResult) -> Failure | None:
    """Return a failure if the model is told something else than what the runs of a call came to."""
    if is_answered_by_guard(call):
        return OK
    ended = [run for run in call.executions if run.n < delivery.n and run.end is not None]
    returned = [run for run in ended if run.how == "returned"]
    if returned and all((run.ended or 0) > delivery.n for run in returned):
        return _find_early_result(call, delivery, returned[-1])
    if returned:
        return _compare_results(history, call, delivery, returned)
    if ended and ended[-1].how == "raised" and (ended[-1].ended or 0) < delivery.n and delivery.item is not None:
        # The turn told the caller of the error, and they have decided anew: that is what is to be told.
        if _was_rejected_since(call, ended[-1], delivery):
            return OK
        return _find_hidden_error(call, delivery, ended[-1])
    return OK


def _was_rejected_since(call: RecordedCall, execution: Execution, delivery: DeliveredResult) -> bool:
    """Return whether a person rejected a call, which was still open, after the turn in which it raised had failed."""
    if execution.turn is None or not execution.turn.failed:
        return False
    since = (each for each in call.decisions if execution.turn.ended < (each.handed_in_at or 0) < delivery.n)
    return any(each.rejects and not each.refused for each in since)


def _is_lost_in_crash(call: RecordedCall, execution: Execution) -> bool:
    """Return whether the process died before anything shows that it knew the result of an execution.

    What it has shown, told to a model, or kept until the end of its turn, it could have stored before; unless nothing
    could be stored.
    """
    turn, ended = execution.turn, execution.ended or 0
    if turn is None or turn.was_over:
        return False
    end = turn.cut_off_at if turn.crashed else turn.ended if turn.unstored_from in ("", call.label) else None
    if end is None:
        return False
    known = [delivery.n for delivery in call.deliveries]
    known += [event.n for event in turn.stream if event.what == "result" and event.id in (call.id, execution.call_id)]
    return not any(ended < n <= end for n in known)


def _compare_results(
    history: History, call: RecordedCall, delivery: DeliveredResult, returned: Sequence[Execution]
) -> Failure | None:
    last = returned[-1]
    text = delivery.text
    if not any(conveys_result(text, each.result) or _is_cut_with_note(text, each.result) for each in returned):
        # A server that carries out a call does not notice that nobody waits for it any more.
        if all(outlives_its_turn(call, run) for run in returned):
            return OK
        is_lost = all(outlives_its_turn(call, run) or _is_lost_in_crash(call, run) for run in returned)
        if is_lost and not is_empty_text(delivery.text) and not _BY_PERSON.search(delivery.text or ""):
            return OK
        expected = repr(last.result)
    elif any(_tells_unedited_result(call, delivery.text, execution) for execution in returned):
        expected = f"{last.result!r}, and nothing of the call as the model wrote it"
    elif any(_tells_edit_of_another(history, call, delivery.text, execution) for execution in returned):
        expected = f"{last.result!r}, and nothing of what another call ran with"
    else:
        return OK
    return Failure(
        call=call,
        expected=expected,
        actual=f"the model is told {delivery.text!r}",
        witness=(last.n, delivery.n),
    )


def _is_cut_with_note(text: str | None, result: Any) -> bool:
    """Return whether a text has the beginning of a long result, or beginning and end, and says that the rest is cut.

    >>> long = " ".join(map(str, range(1000)))
    >>> _is_cut_with_note(f"{long[:500]}… [3,390 characters omitted]", long), _is_cut_with_note(long[:500], long)
    (True, False)
    """
    if not isinstance(result, str):
        return False
    for told in list_told_texts(text):
        start = told.find(result[:_SHORTEST_PART])
        if start >= 0:
            rest = told[start:]
            kept = _count_common(rest, result)
            note = rest[kept:]
            note = note[: len(note) - _count_common(note[::-1], result[::-1])]
            if len(note) <= _LONGEST_NOTE and _LEFT_OUT.search(note):
                return True
    return False


def _count_common(one: str, other: str) -> int:
    """Return with how many equal characters two texts begin."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _tells_unedited_result(call: RecordedCall, text: str | None, execution: Execution) -> bool:
    """Return whether a text has a result as it would be without the edit: with the values that the model wrote."""
    result, written, ran = execution.result, call.arguments, execution.arguments
    if not (isinstance(result, str) and isinstance(written, Mapping) and isinstance(ran, Mapping)):
        return False
    is_edited = any(decision.verdict == "edit" for decision in call.decisions)
    if is_edited and _quotes(text, written) and not _quotes(text, ran):
        return True
    unedited = result
    for name, value in ran.items():
        if name in written and str(value):
            unedited = unedited.replace(str(value), str(written[name]))
    return is_distinctive(unedited) and unedited not in result and contains_text(text, unedited)


def _tells_edit_of_another(history: History, call: RecordedCall, text: str | None, execution: Execution) -> bool:
    """Return whether a text quotes the arguments that an edit gave to another call of the reply, and not its own."""
    if _quotes(text, execution.arguments) or not any(each.verdict == "edit" for each in call.decisions):
        return False
    others = (decision.event.arguments for other in sibling_calls(history, call) for decision in other.decisions)
    return any(_quotes(text, edited) for edited in others)


def _quotes(text: str | None, arguments: Any) -> bool:
    """Return whether a text holds all arguments of a call as one object."""
    written = parse_arguments(arguments)
    is_object = isinstance(written, Mapping) and bool(written)
    return is_object and "".join(json.dumps(written).split()) in "".join((text or "").split())


def _find_early_result(call: RecordedCall, delivery: DeliveredResult, execution: Execution) -> Failure | None:
    """Return a failure if the result is told while the call still runs; that it runs may be told."""
    if execution.result is None or not conveys_result(delivery.text, execution.result):
        return OK
    actual = f"the model is told {delivery.text!r} while it still runs"
    return Failure(call=call, expected="a result after the run", actual=actual, witness=(execution.n, delivery.n))


def _find_hidden_error(call: RecordedCall, delivery: DeliveredResult, execution: Execution) -> Failure | None:
    """Return a failure if nothing in a text says that the call raised; a fixed text for all errors may say it."""
    kind, message = (*(execution.error or ()), "", "")[:2]
    words = [word for word in re.findall(r"\w+", message) if len(word) > 4]
    # Also a word of the message, since frameworks write messages anew, or cut them.
    is_named = any(contains_text(delivery.text, part) for part in (kind, message, *words) if part)
    says_so = is_named or (_FAILURE.search(delivery.text or "") and not _BY_PERSON.search(delivery.text or ""))
    if says_so and not is_empty_text(delivery.text):
        return OK
    expected = f"that it raised {kind}: {message}"
    actual = f"the model is told {delivery.text!r}"
    return Failure(call=call, expected=expected, actual=actual, witness=(execution.n, delivery.n))
