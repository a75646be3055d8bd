"""Family `telling`: the model is told each result once, as the tool returned it, and each rejection."""

from __future__ import annotations

import ast
import html
import json
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pytest_approvals.checks._check import OK, Evaluations, Failure
from pytest_approvals.checks._queries import (
    cannot_run,
    exchanges_of_agent,
    has_lost_its_tool,
    is_answered_by_guard,
    list_copies,
    list_moved_decisions,
    may_know_other_branches,
    sibling_calls,
    was_closed_before,
    was_rewritten_between,
    was_trimmed_between,
)
from pytest_approvals.checks._registry import check
from pytest_approvals.journal.arguments import are_same_values, parse_arguments
from pytest_approvals.journal.events import ModelFailure, StateRewritten
from pytest_approvals.journal.history import (
    DeliveredResult,
    Exchange,
    Execution,
    History,
    RecordedCall,
    RecordedDecision,
)


@check(
    "result-delivered-once",
    severity="lost-effect",
    needs=("model.request", "tool.end"),
    implies=("model-input-well-formed", "rejection-told"),
    sources=("microsoft/agent-framework#7267", "agno-agi/agno#10461", "pydantic/pydantic-ai#6319"),
)
def result_delivered_once(history: History) -> Evaluations:
    """Each call that the model is shown must have exactly one result there, and the result of what ran must be told.

    A model that is not told what it did does it again. If the turn failed before the call became part of the history,
    the call may be missing there with its result; so may what the framework trimmed. An agent that took a conversation
    over may be told in words what the calls of the previous agent returned. An agent that sums up old history before a
    new message may tell a result in that one message: with the id of the call, and word for word. What a provider
    reports of a call that it ran itself stays in the history like any other result.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, a sub-agent that is given up for a new message:
        tool delegate(input: string) never runs helper
        tool pay(amount: integer) always of helper
        send Pay 5
        model o1 delegate(input=Pay 5)
        model @o1/helper o1/c1 pay(amount=5)
        pause o1/c1
        tell o1 not executed
        send Never mind
        done
        send Goodbye
        done

    Passes, a provider runs a call and reports it:
        tool search(query) always hosted web
        rules responses
        send Search
        model c1 search(query=cats)
        pause c1
        approve c1
        go
        respond c1 yes
        hosted c1 -> found cats
        done
        send Thanks
        done

    Passes, old history is summed up before the result is told:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        send And tell me the balance
        start c1
        gives c1 "paid 5"
        forget c1
        user So far: c1 pay(amount=5) returned "paid 5"
        done

    Fails, the summary of old history has another result:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        send And tell me the balance
        start c1
        gives c1 "paid 5"
        forget c1
        user So far: c1 pay(amount=5) returned "paid 50"
        done

    Fails, what a provider reported is forgotten:
        tool search(query) always hosted web
        rules responses
        send Search
        model c1 search(query=cats)
        pause c1
        approve c1
        go
        respond c1 yes
        hosted c1 -> found cats
        done
        untell c1
        send Thanks
        done

    Fails, a call without its result:
        send Go
        model c1 read(path=a)
        run c1 -> text
        untell c1
        done

    Fails, two results:
        send Go
        model c1 read(path=a)
        run c1 -> text
        tell c1 text
        done

    Fails, a result that is lost with its call:
        send Go
        model c1 pay(amount=5); c2 read(path=a)
        run c2 -> text
        pause c1
        forget c2
        forget c1
        send Never mind
        done
    """
    dangling = _first_unanswered_inputs(history)
    for call in history.calls:
        if not call.deliveries and not call.executions and id(call) not in dangling:
            continue
        second = next((delivery for delivery in call.deliveries if delivery.second), None)
        lost = _find_lost_result(history, call)
        if second is not None:
            first = call.deliveries[0]
            yield Failure(call=call, expected="1 result", actual="2 results", witness=(first.n, second.n))
        elif id(call) in dangling:
            actual = "none in the model's input"
            yield Failure(call=call, expected="1 result", actual=actual, witness=(call.n, dangling[id(call)].n))
        elif lost is not None:
            execution, exchange = lost
            actual = "neither call nor result in the model's input"
            yield Failure(call=call, expected="1 result", actual=actual, witness=(execution, exchange.n))
        else:
            yield _find_lost_report(history, call)


def _first_unanswered_inputs(history: History) -> dict[int, Exchange]:
    """Return the first model input in which each call has no result, by the identity of the call."""
    inputs: dict[int, Exchange] = {}
    for exchange in history.exchanges:
        for call in exchange.unanswered:
            inputs.setdefault(id(call), exchange)
    return inputs


def _find_lost_result(history: History, call: RecordedCall) -> tuple[int, Exchange] | None:
    """Return the position of the execution and the next model input, if that does not contain the call at all."""
    execution = call.first_return
    if (
        execution is None
        or execution.ended is None
        or call.kind == "hosted_mcp"
        or any(delivery.n >= execution.ended for delivery in call.deliveries)
    ):
        return None
    after = next(following_exchanges(history, call, execution.ended), None)
    # A failed turn may have been undone together with its calls.
    if after is None or (execution.turn is not None and execution.turn.failed):
        return None
    if was_trimmed_between(history, call.n, after.n, call.session) or after.reply is None:
        return None
    if after.agent != call.agent and _is_told_in_words(call, execution, after):
        return None
    if _is_summed_up(history, call, execution, after):
        return None
    return execution.n, after


def _find_lost_report(history: History, call: RecordedCall) -> Failure | None:
    """Return a failure if the next input lacks what a provider reported of its own call, or has it without its text."""
    report = next((delivery for delivery in call.deliveries if delivery.item is None), None)
    if report is None or call.kind != "hosted_mcp":
        return OK
    after = next((each for each in following_exchanges(history, call, report.n) if each.answer is not None), None)
    turn = next((turn for turn in history.turns if turn.start.n < report.n <= turn.ended), None)
    # A failed turn may have been undone with what it was told, and an agent may be set to begin anew.
    if after is None or turn is None or turn.failed or (after.turn is not turn and _begins_anew(history)):
        return OK
    between = (history, report.n, after.n, call.session)
    if was_trimmed_between(*between) or was_rewritten_between(*between) or after.agent != call.agent:
        return OK
    items = [item for item in after.items if item["kind"] == "hosted_result" and item.get("id") == call.id]
    if any(conveys_result(item.get("text"), report.text) for item in items):
        return OK
    actual = f"{items[-1].get('text')!r} as its result" if items else "no result in the model's input"
    return Failure(call=call, expected=repr(report.text), actual=actual, witness=(report.n, after.n))


def _begins_anew(history: History) -> bool:
    """Return whether the agent's own settings leave earlier turns out of its history."""
    return history.header is not None and history.header.earlier_turns is not None


def _is_told_in_words(call: RecordedCall, execution: Execution, exchange: Exchange) -> bool:
    """Return whether the agent that took a conversation over is told of a call in words, or need not be.

    It need not be told that it was handed over.
    """
    if call.declaration is not None and call.declaration.hands_over_to is not None:
        return True
    text = execution.result
    return isinstance(text, str) and any(text in (item.get("text") or "") for item in exchange.items)


def _is_summed_up(history: History, call: RecordedCall, execution: Execution, exchange: Exchange) -> bool:
    """Return whether a model input has one new message about a call, with all of its result."""
    if execution.result is None:
        return False
    result = execution.result
    written = {result} if isinstance(result, str) else {json.dumps(result, ensure_ascii=each) for each in (True, False)}
    texts = list_notes(history, call, exchange)
    return len(texts) == 1 and any(each.strip() and contains_text(texts[0], each) for each in written)


def _is_rejection_summed_up(
    history: History, call: RecordedCall, decision: RecordedDecision, exchange: Exchange
) -> bool:
    """Return whether a model input has one new message that says that a call was rejected, with all of the reason.

    What it says of other calls does not count; the reason alone says it, too.
    """
    texts = list_notes(history, call, exchange)
    # The reason of a decision for good is told of the call that the person was asked about.
    reason = decision.event.reason if decision.is_about(call) else None
    if len(texts) != 1 or (reason and not contains_text(texts[0], reason)):
        return False
    parts = (part.replace(call.tool, "") for part in _list_clauses(history, call, texts[0]))
    return any(_REJECTION.search(part) or (reason and contains_text(part, reason)) for part in parts)


def _list_clauses(history: History, call: RecordedCall, text: str) -> Iterator[str]:
    """Yield what a text says of a call: what names it, and the sentences behind it on that line, up to another call."""
    for line in _LINE_END.split(text):
        others = [each for each in history.calls if each.label != call.label and names_call(line, each)]
        is_named = False
        for part in _SENTENCE_END.split(line):
            is_named = names_call(part, call) or (is_named and not any(names_call(part, each) for each in others))
            if is_named:
                yield part


def list_notes(history: History, call: RecordedCall, exchange: Exchange) -> list[str]:
    """Return the messages of a model input that name a call by its id and were not there when it was made.

    An agent that sums up old history, or says something of a call in a message of its own, tells its model so.
    """
    made = next((each for each in history.exchanges if each.answer is call.answer), None)
    known = {item.get("text") for item in made.items} if made is not None else set()
    # What the caller says is not told by the agent.
    known |= {turn.start.text for turn in history.turns}
    texts = (str(item["text"]) for item in exchange.items if item["kind"] in ("user", "other") and item.get("text"))
    return [text for text in texts if text not in known and names_call(text, call)]


def names_call(text: str, call: RecordedCall) -> bool:
    """Return whether a text has the id of a call: the model's, or the one that the agent shows to people."""
    ids = {call.id, *(request.entry.get("call_id") for request in call.requests)}
    return any(contains_text(text, str(each)) for each in ids if each)


def following_exchanges(history: History, call: RecordedCall, n: int) -> Iterator[Exchange]:
    """Yield the exchanges of a call's conversation, in its branch, after position *n*."""
    where = (call.conversation, call.session, call.branch)
    for exchange in history.exchanges:
        if exchange.n > n and (exchange.conversation, exchange.session, exchange.branch) == where:
            yield exchange


@check(
    "rejection-told",
    severity="mistold",
    needs=("model.request", "caller.decide"),
    implies=("reason-told", "model-input-well-formed"),
    sources=("microsoft/autogen#7956", "openai/openai-agents-python#4409"),
)
def rejection_told(history: History) -> Evaluations:
    """The model must be told that a call was rejected, when it is asked next.

    It waits for an answer to its call; without one it cannot go on, or believes that the call succeeded. A text without
    content, one that looks like the result of its tool, and one that says that it was done tell no rejection. The words
    are up to the agent, and so is whether they are text, JSON or blocks. A summary of old history, or a note, that
    takes the place of the call says of it, by its id, that it was rejected, with all of the reason.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 The call was denied.
        done

    Passes, told as JSON:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 {"status": "done", "approved": false}
        done

    Passes, a reason alone:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 I have done it myself
        go
        tell c1 I have done it myself
        done

    Passes, a hosted call:
        tool search(query) always hosted web
        rules responses
        send Search
        model c1 search(query=cats)
        pause c1
        reject c1
        go
        respond c1 no
        done

    Passes, its reply was lost with the process, and its tool is rejected for good when it comes again:
        mode native.sqlite
        save a
        send Pay 5
        model c1 pay(amount=5)
        crash shown
        restore a:
        forget c1
        go
        model c1#2 pay(amount=5)
        pause c1#2
        never c1#2
        go
        tell c1#2 rejected
        done

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        forget c1
        done

    Passes, old history is summed up before the rejection is told:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 over the limit
        send Ask my boss first
        forget c1
        user So far: c1 pay(amount=5) was rejected: over the limit
        done

    Passes, a note in place of a call without an id, by the id that the agent gave it:
        send Pay 5
        model c1@- pay(amount=5)
        pause c1@call-1 pay(amount=5)
        reject c1
        go
        forget c1
        user Your call call-1 was rejected.
        done

    Passes, a note that stood in an input to which no model replied:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        reject c1
        go
        forget c1
        user Your call c1 was rejected.
        crash
        restore a: c1
        reject c1
        go
        forget c1
        done

    Fails, what stood there before the call was made:
        send Pay 5
        user c1 was rejected.
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        forget c1
        done

    Fails, what the caller says of it:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        send c1 was rejected.
        forget c1
        done

    Fails, the summary of old history does not say what became of the call:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        send Ask my boss first
        forget c1
        user So far: c1 pay(amount=5) was called
        done

    Fails, an empty object:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 {}
        done

    Fails, a word for success:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 {"result": "ok"}
        done

    Fails, a word that says that its tool has done it:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 {"status": "paid"}
        done

    Passes, as nothing was paid:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 not paid
        done

    Fails, what its tool would have returned:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        reject c1
        approve c2
        go
        run c2 -> paid 6
        tell c1 paid 5
        done
    """
    for call, decision, exchange in _rejected_calls(history):
        if call.kind == "hosted_mcp":
            is_told = any(
                n <= exchange.n and not approved
                for n, approved in call.approval_responses
                if n > (decision.handed_in_at or 0)
            )
            actual = "it is told nothing about it"
        else:
            texts = [delivery.text or "" for delivery in call.deliveries if delivery.n <= exchange.n]
            if not texts and _is_rejection_summed_up(history, call, decision, exchange):
                yield OK
                continue
            # If the caller gave an empty reason, that may be all that the model is told.
            is_told = any(not is_empty_text(text) for text in texts) or (decision.event.reason == "" and bool(texts))
            actual = "it is told an empty text" if texts else "it is told nothing about it"
            success = next((text for text in texts if looks_like_success(history, call, text)), None)
            if success is not None:
                is_told, actual = False, f"it is told {success!r}"
        if is_told:
            yield OK
        else:
            expected = "the model is told of the rejection"
            yield Failure(call=call, expected=expected, actual=actual, witness=(decision.n, exchange.n))


def looks_like_success(history: History, call: RecordedCall, text: str) -> bool:
    """Return whether a text says of a call that has not returned that it was done.

    That is the case if it is like a result of its tool but for the numbers in it, or has a word for success, or the
    tool's own verb in the past, and no negation. The reason of the person may have any words.
    """
    decisions = (*call.decisions, *call.standing_decisions)
    reasons = [decision.event.reason for decision in decisions if decision.event.reason]
    if any(contains_text(text, reason) for reason in reasons):
        return False
    results = (run.result for run in history.executions if run.tool == call.tool)
    shapes = {_NUMBER.sub("0", result) for result in results if isinstance(result, str) and _is_distinctive(result)}
    if any(contains_text(_NUMBER.sub("0", text), shape) for shape in shapes):
        return True
    says_so = _SUCCESS.search(text) is not None or re.search(_past_forms(call.tool), text, re.IGNORECASE) is not None
    return says_so and _REJECTION.search(text) is None


def _past_forms(tool: str) -> str:
    """Return a pattern of what a tool is called to have done, by the verb of its name: `paid` for `pay_bill`."""
    verb = (re.match(r"[A-Z]?[a-z]+", tool) or [""])[0].lower()
    if verb in _IRREGULAR:
        return rf"\b{_IRREGULAR[verb]}\b"
    # Too short to be a verb that says something.
    if len(verb) < 3:
        return r"(?!)"
    stem = verb.removesuffix("e") if verb.endswith("e") else re.sub(r"(?<![aeiou])y$", "i", verb)
    return rf"\b{stem}{stem[-1]}?ed\b"


_IRREGULAR = {
    "buy": "bought", "build": "built", "give": "given", "make": "made", "pay": "paid", "sell": "sold", "send": "sent",
    "spend": "spent", "withdraw": "withdrawn", "write": "written",
}  # fmt: skip

_NUMBER = re.compile(r"[0-9]+(?:[.][0-9]+)?")


def _rejected_calls(history: History) -> Iterator[tuple[RecordedCall, RecordedDecision, Exchange]]:
    """Yield rejected calls with the rejection and the next request to their model."""
    for call in history.calls:
        decision = call.decision
        if decision is None or not decision.rejects or decision.handed_in_at is None or call.first_return is not None:
            continue
        # A call that is asked about is not rejected by what was decided about another one.
        if not decision.is_about(call) and any(request.n > decision.n for request in call.requests):
            continue
        # Whether it should have run, `rejected-never-runs` says.
        if not decision.is_about(call) and _has_ended(call):
            continue
        exchange = next(following_exchanges(history, call, max(decision.handed_in_at, call.n)), None)
        if exchange is None or was_trimmed_between(history, decision.handed_in_at, exchange.n, call.session):
            continue
        if not decision.is_about(call) and _is_reply_lost(call, exchange):
            continue
        if decision.turn is not None and not decision.turn.failed:
            yield call, decision, exchange


def _has_ended(call: RecordedCall) -> bool:
    """Return whether a call has run to an end, so that what the model is told is its outcome."""
    # Of a call that returned, `rejected-never-runs` and `settled-stays-settled` judge what was decided about it.
    return any(run.how in ("raised", "cancelled") for run in call.executions)


def _is_reply_lost(call: RecordedCall, exchange: Exchange) -> bool:
    """Return whether the reply with a call was lost with its process, so that a later model input does not hold it."""
    is_placed = any(placed is call for _, placed in exchange.placed_calls)
    return call.turn is not None and call.turn.crashed and not is_placed


@check(
    "reason-told",
    severity="mistold",
    needs=("model.request", "caller.decide"),
    sources=("microsoft/autogen#7387", "openai/openai-agents-python#4409", "openai/openai-agents-python#2658"),
)
def reason_told(history: History) -> Evaluations:
    r"""If the model is told the reason of one rejection, it must be told that of all; it should be told each.

    With the reason, it can do better; without it, it tries again. An agent that has no place for reasons tells none of
    them, which is a warning, unless it is a person's own agent that takes the framework's answers. One that tells some
    and loses others, such as those of its sub-agents or of hosted calls, lets a person believe that the model knows
    why. So does one that tells a line of a reason and not the others. Of a call that cannot run, the model may be told
    that instead. A reason may be told in a message of its own, which names the call by its id before it.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 over the limit
        go
        tell c1 Denied: over the limit
        done

    Passes, with letters that JSON escapes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 über dem Limit
        go
        tell c1 {"denied": "\u00fcber dem Limit"}
        done

    Passes, the call could not have run, and the model is told that:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=much)
        pause c1, c2
        reject c1 over the limit
        reject c2 no amount
        go
        tell c1 Denied: over the limit
        tell c2 amount must be an integer
        done

    Passes, in messages of their own:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        reject c1 over the limit
        reject c2 wrong account
        go
        tell c1 Denied
        tell c2 Denied
        user The user says about c1: over the limit
        user The user says about c2: wrong account
        done

    Passes, of equal calls whose requests show no ids, each is told the reason of the other:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=5)
        hides c1, c2
        reject c1 over the limit
        reject c2 wrong account
        go
        tell c1 Denied: wrong account
        tell c2 Denied: over the limit
        done

    Passes, in one message:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        reject c1 over the limit
        reject c2 wrong account
        go
        tell c1 Denied
        tell c2 Denied
        user c1: over the limit, c2: wrong account
        done

    Warns, a message that does not say which call it is about:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 over the limit
        go
        tell c1 Denied
        user The user says: over the limit
        done

    Fails, a message of which one reason is that of another call:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6); c3 pay(amount=7)
        pause c1, c2, c3
        reject c1 over the limit
        reject c2 wrong account
        reject c3 not now
        go
        tell c1 Denied
        tell c2 Denied
        tell c3 Denied
        user c1: wrong account, c2: over the limit, c3: not now
        done

    Warns, no reason is told:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 over the limit
        go
        tell c1 Denied
        done

    Fails, that of a sub-agent's call is lost, and that of another call is not:
        tool ask(input: string) never runs helper
        tool pay(amount: integer) always of helper
        tool send(amount: integer) always
        send Pay 5
        model o1 ask(input="Pay 5"); c1 send(amount=5)
        model @o1/helper o1/c1 pay(amount=5)
        pause o1/c1, c1
        reject o1/c1 over the limit
        reject c1 wrong account
        go
        tell o1/c1 Denied
        model @o1/helper Not paid.
        tell o1 Not paid.
        tell c1 Denied: wrong account
        done

    Fails, that of a hosted call is lost:
        tool search(query) always hosted web
        rules responses
        send Search
        model c1 search(query=cats); c2 search(query=dogs)
        pause c1, c2
        reject c1 too many
        reject c2 not now
        go
        respond c1 no too many
        respond c2 no
        done
    """
    lost: list[tuple[RecordedDecision, Failure]] = []
    is_told = False
    for call, decision, exchange in _rejected_calls(history):
        reason = decision.event.reason
        if not reason:
            continue
        if call.kind == "hosted_mcp":
            texts = _hosted_reasons(call, exchange)
        else:
            texts = [delivery.text or "" for delivery in call.deliveries if delivery.n <= exchange.n]
        all_told = [_collapse_whitespace(told) for told in _list_all_told(texts)]
        beside = call.kind != "hosted_mcp" and bool(texts) and _is_reason_beside(history, call, decision, exchange)
        if beside or any(_collapse_whitespace(reason) in told for told in all_told):
            is_told = True
            yield OK
        elif not decision.is_about(call) and (
            call.is_requested_between(decision.handed_in_at or 0, exchange.n)
            or was_closed_before(history, call, decision.n)
        ):
            # What is asked about all the same, or was given up before, is not covered by what was rejected for good.
            continue
        elif texts and not (call.kind != "hosted_mcp" and _may_be_told_otherwise(history, call, exchange)):
            witness = (decision.n, exchange.n)
            # Where there is a place for one line of a reason, there is one for the others.
            is_told = is_told or any(line in told for line in _list_lines(reason) for told in all_told)
            expected, actual = f"{reason!r} in what it is told", repr(texts[-1])
            lost.append((decision, Failure(call=call, expected=expected, actual=actual, witness=witness)))
    is_attached = history.header is not None and history.header.attached
    for decision, failure in lost:
        # Whether a framework has a place for reasons is not up to who uses it.
        if is_told or not is_attached or decision.event.own:
            failure.level = None if is_told else "should"
            yield failure


def _is_reason_beside(history: History, call: RecordedCall, decision: RecordedDecision, exchange: Exchange) -> bool:
    """Return whether a message beside the results has the reason of a rejection, and names its call by the id.

    Of several calls that it names, the reason stands behind its own.
    """
    reason = _collapse_whitespace(decision.event.reason or "")
    for note in list_notes(history, call, exchange):
        before, found, _ = _collapse_whitespace(note).partition(reason)
        named = {each.label: _find_last_name(before, each) for each in (call, *sibling_calls(history, call))}
        if found and max(named, key=lambda label: named[label]) == call.label and named[call.label] >= 0:
            return True
    return False


def _find_last_name(text: str, call: RecordedCall) -> int:
    """Return where a text names a call for the last time; -1 if it does not."""
    ids = {call.id, *(request.entry.get("call_id") for request in call.requests)}
    found = (re.finditer(rf"(?<![\w-]){re.escape(str(each))}(?![\w-])", text) for each in ids if each)
    return max((match.start() for matches in found for match in matches), default=-1)


def _may_be_told_otherwise(history: History, call: RecordedCall, exchange: Exchange) -> bool:
    """Return whether the model may be told why a call cannot run, in place of why it was rejected."""
    return cannot_run(history, call, None) or has_lost_its_tool(history, call, exchange.n)


def _hosted_reasons(call: RecordedCall, exchange: Exchange) -> list[str]:
    """Return the reasons with which a provider is told that a hosted call is rejected."""
    items = (exchange.items[index] for index in exchange.approvals)
    return [
        str(item.get("text") or "")
        for item in items
        if item["kind"] == "approval_response" and item.get("id") == call.id and item.get("approved") is not True
    ]


def _list_all_told(texts: Iterable[str]) -> Iterator[str]:
    return (told for text in texts for told in list_told_texts(text))


def _list_lines(text: str) -> list[str]:
    """Return the lines of a text that are long enough to be known again."""
    return [line for line in map(_collapse_whitespace, text.splitlines()) if len(line) >= _SHORTEST_LINE]


def _collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


_LEFT_OUT = re.compile(
    r"\b(?:clear|remov|omit|truncat|shorten|elid|abbreviat|trimm|prun|compact|offload|evict)\w*|\bcut\b|\bleft out\b",
    re.IGNORECASE,
)
"""Words that say that something which was there is left out."""

_LONGEST_NOTE = 200
"""How many characters may say so: more would be something else."""

_SHORTEST_PART = 40
"""How many characters of a result are told at least, if it is cut."""

_SHORTEST_LINE = 8
"""From how many characters on a line of a reason is not found in other words by chance."""

_PLACEHOLDER_PREFIX = "<not JSON: "
"""How a journal marks a value that JSON cannot hold."""


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
    raised, it must be told something: its error, or a fixed text that says that it failed. A result may be told as
    text, as JSON, in blocks, and with words around it; an agent that is run as a tool may repeat what it was told. A
    guardrail, callback or middleware of the user's own around a tool may tell something else. If the process is killed
    before it shows a result or tells it to a model, the result may be lost on its way to the store, and something else
    is told of the call. Of a long result, the beginning may be told, with a note that says that it was cut; and one
    that a model has read may be cleared from later inputs, if these say so.

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
                yield find_foreign_saying(call, delivery, sayings)
            elif call.executions or any(sayings.values()) or _is_left_undone(history, call, delivery):
                yield (
                    judge_delivery(history, call, delivery)
                    or find_foreign_saying(call, delivery, sayings)
                    or _find_earlier_text(history, call, delivery)
                    or _find_claimed_run(history, call, delivery)
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
        judge_delivery(history, call, earlier) is OK
        and any(earlier.n <= each.n < later.n and each.answer is not None for each in inputs)
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
    if call.declaration is None or call.declaration.runs is None or delivery.item is None:
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
    repeated = any(_is_distinctive(text) and text.strip() in told for text in earlier)
    # Nor with a part of it in its place.
    is_cut = bool(told) and all(text in last and text != last.strip() for text in told)
    if contains_text(delivery.text, last) or not (repeated or is_cut):
        return OK
    actual = f"the model is told {delivery.text!r}"
    return Failure(call=call, expected=repr(last), actual=actual, witness=(answers[-1].n, delivery.n))


def _tells_rewritten_result(history: History, call: RecordedCall, delivery: DeliveredResult) -> bool:
    """Return whether a result is told as it was saved, and then changed in the save."""
    for execution in call.executions:
        told = execution.result
        if isinstance(told, str):
            for event in history.events_of(StateRewritten):
                if event.session == call.session and (execution.ended or 0) < event.n < delivery.n:
                    told = told.replace(event.old, event.new)
            if told != execution.result and contains_text(delivery.text, told):
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
        return _find_hidden_error(call, delivery, ended[-1])
    return OK


def _outlives_its_turn(execution: Execution) -> bool:
    """Return whether the turn of an execution was cut off while it ran."""
    cut_off_at = execution.turn.cut_off_at if execution.turn is not None else None
    return cut_off_at is not None and execution.n < cut_off_at < (execution.ended or 0)


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
        if all(map(_outlives_its_turn, returned)):
            return OK
        is_lost = all(_outlives_its_turn(run) or _is_lost_in_crash(call, run) for run in returned)
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
    return _is_distinctive(unedited) and unedited not in result and contains_text(text, unedited)


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


_NEGATION = (
    r"reject|den(?:y|ied|ial)|\bno[tn]?\b|cannot|n't|refus|declin|cancel|disapprov|block|abort|skip|stop|forb[ai]d|disallow|"
    r"prohibit|veto|withh|against|false|error|fail|without|never|unapproved|unauthori|dismiss|halt|suppress|interrupt|"
    r"terminat|close|prevent|unable|unavailable"
)
_REJECTION = re.compile(_NEGATION, re.IGNORECASE)
_LINE_END = re.compile(r"[\n;]")
"""Where a text goes on to say something else."""

_SENTENCE_END = re.compile(r"(?<=\.)\s")

_FAILURE = re.compile(
    rf"{_NEGATION}|exception|rais|invalid|wrong|problem|could|went|retry|again|time|unexpected|sorry|issue|trouble|crash",
    re.IGNORECASE,
)
_BY_PERSON = re.compile(
    r"\b(?:user|human|person|operator|reviewer)\b[^.]*(?:reject|den(?:y|ied)|declin|refus|disapprov)"
    r"|(?:reject|den(?:y|ied)|declin|refus|disapprov)\w* by (?:the |a )?(?:user|human|person|operator|reviewer)\b",
    re.IGNORECASE,
)
_SUCCESS = re.compile(
    r"\b(?:ok|okay|success(?:ful(?:ly)?)?|succeeded|done|completed?|executed|approved|accepted|finished|true|yes)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Saying:
    """What a call has returned, what it raised, or why it was rejected: texts that only the model of that call is told.

    Attributes:
        call: The call.
        what: How a finding names it: `c1 returned`, `c1 was rejected with`.
        text: The text.
        n: Where it was said.
    """

    call: RecordedCall
    what: str
    text: str
    n: int

    @property
    def label(self) -> str:
        """The label of the call."""
        return self.call.label


def list_sayings(history: History) -> dict[str, list[Saying]]:
    """Return the distinctive texts of all calls, by session."""
    sayings: dict[str, list[Saying]] = {}
    for execution in history.executions:
        call = execution.call
        if call is None or execution.ended is None:
            continue
        says = "returned" if execution.how == "returned" else "raised"
        texts = [text for _, text in iterate_texts(execution.result)] if says == "returned" else execution.error or []
        for text in texts[-1:] if says == "raised" else texts:
            saying = Saying(call, f"{call.label} {says}", text, execution.ended)
            sayings.setdefault(call.session, []).append(saying)
    for call in history.calls:
        for decision in (*call.decisions, *call.standing_decisions):
            if decision.rejects and decision.event.reason:
                saying = Saying(call, f"{call.label} was rejected with", decision.event.reason, decision.n)
                sayings.setdefault(call.session, []).append(saying)
        # What was rejected for good is told of each call of the tool to which a change of the save moved the decision.
        for change, moved in list_moved_decisions(history, call, "never"):
            if moved.event.reason:
                saying = Saying(call, f"{call.label} was rejected with", moved.event.reason, change.n)
                sayings.setdefault(call.session, []).append(saying)
    return sayings


def find_foreign_saying(
    call: RecordedCall, delivery: DeliveredResult, sayings: Mapping[str, Sequence[Saying]]
) -> Failure | None:
    """Return a failure if a call is told what only another one returned or raised, or was rejected with.

    The result of a call that runs an agent may repeat what that agent was told.
    """
    session = sayings.get(call.session, ())
    # What a provider reports of its own calls is not the agent's.
    if delivery.item is None:
        return OK
    told = list_told_texts(delivery.text)
    ran = call.first_return is not None
    for saying in session:
        # Of two calls of one reply with one id, nothing says which of them a result is for.
        is_twin = saying.call.n == call.n and saying.call.id == call.id
        if saying.n > delivery.n or is_twin or _are_related(saying.label, call.label):
            continue
        if not _is_distinctive(saying.text) and (ran or not equals_result(delivery.text, saying.text)):
            continue
        if not _is_told(told, saying.text):
            continue
        # Equal texts of two calls, or one that holds the other, tell nothing.
        if not any(saying.text.strip() in text for text in _list_own_texts(call, session)):
            actual = f"the model is told {delivery.text!r}, and {saying.what} {saying.text!r}"
            return Failure(call=call, expected="its own outcome alone", actual=actual, witness=(saying.n, delivery.n))
    return OK


def _list_own_texts(call: RecordedCall, session: Sequence[Saying]) -> list[str]:
    """Return the texts in the arguments of a call, and what it returned or raised, or was rejected with."""
    arguments = iterate_texts([call.arguments, *(run.arguments for run in call.executions)])
    return [*(text for _, text in arguments), *(saying.text for saying in session if saying.label == call.label)]


def equals_result(text: str | None, result: str) -> bool:
    """Return whether *text* is exactly *result*, and *result* is long enough to rule out chance."""
    return len(result) > 3 and text is not None and text.strip() == result.strip()


def _are_related(label: str, other: str) -> bool:
    return f"{label}/".startswith(f"{other}/") or other.startswith(f"{label}/")


def _is_distinctive(text: str) -> bool:
    """Return whether a text is no word that many calls may say."""
    text = text.strip()
    return len(text) > 4 and (len(text) > 7 or any(letter.isdigit() or letter.isspace() for letter in text))


# --- told texts -------------------------------------------------------------------------------------------------------

_MAX_NESTING = 6
"""How many times a text may be JSON that holds a text."""


def list_told_texts(text: str | None) -> list[str]:
    r"""Return a text, and those that it holds if it is JSON: in blocks, in objects, and in texts that are JSON.

    A tool's result may also be told as Python shows it, in which letters are escaped in other ways, or in an element
    of XML.

    >>> list_told_texts('[{"type": "text", "text": "paid 5"}]')[1:]
    ['text', 'paid 5']
    >>> list_told_texts(r"{'note': 'one\ntwo'}")[1:]
    ['one\ntwo']
    >>> list_told_texts("<result>1 &lt; 2</result>")[1:]
    ['<result>1 < 2</result>']
    """
    if text is None:
        return []
    unescaped = html.unescape(text) if _ELEMENT.fullmatch(text) else text
    held = [unescaped, *(inner for _, inner in iterate_texts(_decode_text(text)))]
    return [text, *(inner for inner in held if inner != text)]


_ELEMENT = re.compile(r"\s*<([A-Za-z][\w.:-]*)(?: [^<>]*)?>(.*)</\1>\s*", re.DOTALL)
"""A text that is one XML element."""


def iterate_texts(value: Any, name: str = "", depth: int = _MAX_NESTING) -> Iterator[tuple[str, str]]:
    """Yield the texts in a value, each with the name of its field, also those in texts that are JSON."""
    if isinstance(value, str):
        yield name, value
        decoded = _decode_text(value) if depth else value
        if decoded != value:
            yield from iterate_texts(decoded, name, depth - 1)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from iterate_texts(inner, str(key), depth)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from iterate_texts(inner, name, depth)


def _decode_text(text: str) -> Any:
    """Return what a text is as JSON, or as Python shows a value; else the text."""
    if not text.strip().startswith(("{", "[", '"')):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _decode_python(text) if "'" in text else text


def _decode_python(text: str) -> Any:
    """Return the value of which a text is Python's `repr`, or the text."""
    try:
        # A text that is none may hold what Python warns of.
        with warnings.catch_warnings(action="ignore"):
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def is_empty_text(text: str | None) -> bool:
    """Return whether a text says nothing: no letter, or only the frame of one.

    >>> [is_empty_text(text) for text in ("{}", '[{"type": "text", "text": ""}]', "None", '{"result": null}', "no")]
    [True, True, True, True, False]
    >>> is_empty_text("<result></result>"), is_empty_text("<result>no</result>")
    (True, False)
    """
    element = _ELEMENT.fullmatch(text or "")
    if element is not None:
        return is_empty_text(element[2])
    if text is None or text.strip() in ("None", "null", "''"):
        return True
    leaves = (leaf for name, leaf in _iterate_fields(_decode_text(text)) if name not in ("type", "id"))
    return not any(str(leaf).strip() and leaf is not None for leaf in leaves)


def _iterate_fields(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _iterate_fields(inner, str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _iterate_fields(inner, name)
    else:
        yield name, value


def contains_text(text: str | None, part: str) -> bool:
    """Return whether a text, or one that it holds, contains another one as a whole: not within a word or a number.

    >>> contains_text("paid 50", "paid 5"), contains_text('{"a": "paid 5"}', "paid 5")
    (False, True)
    """
    return _is_told(list_told_texts(text), part)


def _is_told(texts: Sequence[str], part: str) -> bool:
    part = part.strip()
    begins, ends = _WORD.match(part), _WORD.match(part[-1:])
    for written in dict.fromkeys((part, json.dumps(part)[1:-1])):
        for told in texts:
            start = told.find(written)
            while start >= 0:
                is_begin = not begins or _BEFORE_WORD.match(told, start)
                if is_begin and (not ends or _AFTER_WORD.match(told, start + len(written))):
                    return True
                start = told.find(written, start + 1)
    return False


_WORD = re.compile(r"[A-Za-z0-9_]")
# The ends of escaped characters in what is no JSON count as no letters of a word.
_BEFORE_WORD = re.compile(r"(?<![A-Za-z0-9_])|(?<=\\[nrtbf])")
_AFTER_WORD = re.compile(r"(?![A-Za-z0-9_]|\.[0-9])")


def conveys_result(text: str | None, result: Any) -> bool:
    """Return whether *text* says *result*: as text, as JSON, or as Python writes it.

    A tool that returned None may be reported in any words.

    >>> conveys_result('{"paid":5}', {"paid": 5}), conveys_result("paid 6", "paid 5")
    (True, False)
    """
    if result is None:
        return True
    if text is None:
        return False
    if all(_contains_leaf(text, leaf) for leaf in _iterate_leaves(result)):
        return True
    return _is_json_equal(text, result) or _is_told_in_blocks(text, result)


def _is_told_in_blocks(text: str, result: Any) -> bool:
    """Return whether a list was told as a block for each element; a journal has the text of all blocks as one."""
    if not isinstance(result, list | tuple):
        return False
    written = (leaf if isinstance(leaf, str) else json.dumps(leaf) for leaf in _iterate_leaves(result))
    return "".join("".join(written).split()) == "".join(text.split())


def _is_json_equal(text: str, result: Any) -> bool:
    try:
        return are_same_values(json.loads(text), result)
    except (ValueError, RecursionError):
        return False


def _iterate_leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, Mapping):
        for key, value in result.items():
            yield key
            yield from _iterate_leaves(value)
    elif isinstance(result, list | tuple):
        for value in result:
            yield from _iterate_leaves(value)
    else:
        yield result


def _contains_leaf(text: str, leaf: Any) -> bool:
    if isinstance(leaf, str):
        return leaf.startswith(_PLACEHOLDER_PREFIX) or contains_text(text, leaf)
    if leaf is None or isinstance(leaf, bool):
        return contains_text(text.lower(), str(leaf).lower()) or contains_text(text, json.dumps(leaf))
    if contains_text(text, str(leaf)):
        return True
    # A whole number may be too large for a fraction.
    return abs(leaf) < sys.float_info.max and contains_text(text, f"{leaf:g}")
