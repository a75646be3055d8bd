"""Family `telling`: the model is told each result once, and each rejection with its reason."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from pytest_approvals.checks._check import OK, Evaluations, Failure, Level
from pytest_approvals.checks._queries import (
    cannot_run,
    exchanges_of_agent,
    has_lost_its_tool,
    sibling_calls,
    was_closed_before,
    was_rewritten_between,
    was_trimmed_between,
)
from pytest_approvals.checks._registry import check
from pytest_approvals.checks._sayings import is_distinctive
from pytest_approvals.checks._told_texts import (
    contains_text,
    conveys_result,
    is_empty_text,
    list_told_texts,
)
from pytest_approvals.journal.events import ModelExhausted, ModelRefusal
from pytest_approvals.journal.formatting import format_streamed_id
from pytest_approvals.journal.history import (
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
    the call may be missing there with its result; so may what the framework trimmed. A call that an earlier turn asked
    about is part of it: if the turn that runs it fails, its model is still told, unless the call is asked about again;
    and a sub-agent should be. An agent that took a conversation over may be told in words what the calls of the
    previous agent returned, or nothing of them if the application's own filter takes them out. An agent that sums up
    old history before a new message may tell a result in that one message: with the id of the call, and word for word.
    What a provider reports of a call that it ran itself stays in the history like any other result.

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

    Passes, the agent that takes over is told in words of what a sub-agent said:
        tool ask(input: string) never runs helper
        tool to_clerk() never to clerk
        send Refund my order
        model o1 ask(input=Which?); t1 to_clerk()
        model @o1/helper It is order 42.
        forget o1
        forget t1
        user For context: ask returned "It is order 42."
        agent clerk
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

    Passes, old history is summed up, with what a provider has reported:
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
        forget c1
        untell c1
        user So far: the provider ran search(query=cats) [c1]: found cats
        send Thanks
        done

    Fails, the summary of old history has something else than what a provider has reported:
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
        forget c1
        untell c1
        user So far: the provider ran search(query=cats) [c1]: found dogs
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

    Fails, the turn in which an approved call ran fails, and the call is forgotten:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        down 500
        fail ModelDown: status 500
        forget c1
        send Is it paid?
        done

    Warns, a sub-agent begins anew after its approved call, as its model failed:
        tool delegate(input: string) never runs helper
        tool pay(amount: integer) always of helper
        send Pay 5
        model o1 delegate(input=Pay 5)
        model @o1/helper o1/c1 pay(amount=5)
        pause o1/c1
        approve o1/c1
        go
        run o1/c1 -> paid 5
        down @o1/helper 500
        fail ModelDown: status 500
        forget o1/c1
        go
        model @o1/helper Paid.
        tell o1 Paid.
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
            # A sub-agent may be begun anew as a whole, as the body of a tool is.
            level: Level | None = "should" if "/" in call.label and _has_failed(call) else None
            witness = (execution, exchange.n)
            yield Failure(call=call, expected="1 result", actual=actual, witness=witness, level=level)
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
    if execution is None or execution.ended is None or call.kind == "hosted_mcp":
        return None
    exchanges = following_exchanges(history, call, execution.ended)
    if _has_failed(call):
        # It may have been undone together with its calls, but not with one that was asked about before.
        after = next((each for each in exchanges if each.answer is not None), None)
        if not _was_asked_before(call, execution) or (
            after and any(placed is call for _, placed in after.placed_calls)
        ):
            return None
    elif any(delivery.n >= execution.ended for delivery in call.deliveries):
        return None
    else:
        after = next(exchanges, None)
    if after is None:
        return None
    if was_trimmed_between(history, call.n, after.n, call.session) or after.reply is None:
        return None
    if after.agent != call.agent and (_begins_anew(history) or _is_told_in_words(history, call, execution, after)):
        return None
    if _is_summed_up(history, call, execution, after):
        return None
    return execution.n, after


def _has_failed(call: RecordedCall) -> bool:
    """Return whether the turn in which a call returned failed."""
    execution = call.first_return
    return execution is not None and execution.turn is not None and execution.turn.failed


def _was_asked_before(call: RecordedCall, execution: Execution) -> bool:
    """Return whether a turn before that of its execution asked about a call, and none does after it.

    What cut a turn off may have undone more than that turn; other checks say what has to be told then.
    """
    turn = execution.turn
    if turn is None or turn.cut_off_at is not None or turn.unstored_from is not None:
        return False
    # What a provider refuses, `model-input-well-formed` says, and that a script is too short, `scenario-exercised`.
    if any(isinstance(exchange.reply, ModelRefusal | ModelExhausted) for exchange in turn.exchanges):
        return False
    listed = [n for request in call.requests for n, _ in request.listings]
    return any(n < turn.start.n for n in listed) and not any(n > execution.n for n in listed)


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
    if not items and any(contains_text(note, report.text or "") for note in list_notes(history, call, after)):
        return OK
    actual = f"{items[-1].get('text')!r} as its result" if items else "no result in the model's input"
    return Failure(call=call, expected=repr(report.text), actual=actual, witness=(report.n, after.n))


def _begins_anew(history: History) -> bool:
    """Return whether the agent's own settings leave earlier turns out of its history."""
    return history.header is not None and history.header.earlier_turns is not None


def _is_told_in_words(history: History, call: RecordedCall, execution: Execution, exchange: Exchange) -> bool:
    """Return whether the agent that took a conversation over is told of a call in words, or need not be.

    It need not be told that it was handed over.
    """
    if call.declaration is not None and call.declaration.hands_over_to is not None:
        return True
    text = _find_result(history, call, execution, exchange)
    return isinstance(text, str) and any(text in (item.get("text") or "") for item in exchange.items)


def _find_result(history: History, call: RecordedCall, execution: Execution, exchange: Exchange) -> Any:
    """Return what a call has returned, or what the agent that it ran said last before a model was asked."""
    if execution.start is not None:
        return execution.result
    replies = [each.answer for each in exchanges_of_agent(history, call) if each.n < exchange.n]
    return replies[-1].say if replies and replies[-1] is not None else None


def _is_summed_up(history: History, call: RecordedCall, execution: Execution, exchange: Exchange) -> bool:
    """Return whether a model input has one new message about a call, with all of its result or of its agent's reply."""
    result = _find_result(history, call, execution, exchange)
    if result is None and execution.start is None:
        return False
    texts = list_notes(history, call, exchange)
    if len(texts) != 1:
        return False
    if isinstance(result, str) and not result.strip():
        # There is nothing to find of it; what is said of the call must not be that it did not run.
        return not any(_REJECTION.search(part) for part in _list_clauses(history, call, texts[0]))
    written = {result} if isinstance(result, str) else {json.dumps(result, ensure_ascii=each) for each in (True, False)}
    return any(contains_text(texts[0], each) for each in written)


def _is_rejection_summed_up(
    history: History, call: RecordedCall, decision: RecordedDecision, exchange: Exchange
) -> bool:
    """Return whether a model input has one new message that says that a call was rejected, with all of the reason.

    What it says of other calls does not count; the reason alone says it, too.
    """
    # The reason of a decision for good is told of the call that the person was asked about.
    reason = decision.event.reason if decision.is_about(call) else None
    if exchange.agent != call.agent and _is_rejection_told_in_words(history, call, reason, exchange):
        return True
    texts = list_notes(history, call, exchange)
    if len(texts) != 1 or (reason and not contains_text(texts[0], reason)):
        return False
    parts = (part.replace(call.tool, "") for part in _list_clauses(history, call, texts[0]))
    return any(_REJECTION.search(part) or (reason and contains_text(part, reason)) for part in parts)


def _is_rejection_told_in_words(history: History, call: RecordedCall, reason: str | None, exchange: Exchange) -> bool:
    """Return whether the agent that took a conversation over is told in words that calls of a tool were rejected.

    It is told so as often as they were.
    """
    made = next((each for each in history.exchanges if each.answer is call.answer), None)
    known = [item.get("text") for item in made.items] if made is not None else []
    said = {turn.start.text for turn in history.turns} | {*known, call.answer.say}
    new = [str(item.get("text")) for item in exchange.items if item["kind"] in ("user", "other", "say")]
    texts = [text for text in new if text not in said and re.search(rf"\b{re.escape(call.tool)}\b", text)]
    rejections = [text for text in texts if _REJECTION.search(text.replace(call.tool, ""))]
    rejected = [each for each in history.calls if _is_rejected_like(each, call) and each.n <= exchange.n]
    is_reason_told = not reason or any(contains_text(text, reason) for text in rejections)
    return len(rejections) >= len(rejected) and is_reason_told


def _is_rejected_like(other: RecordedCall, call: RecordedCall) -> bool:
    """Return whether a call of the same tool, conversation and agent was rejected, and its result is told nowhere."""
    where = [(each.session, each.branch, each.conversation, each.agent, each.tool) for each in (other, call)]
    rejects = other.decision is not None and other.decision.rejects
    return where[0] == where[1] and rejects and not other.deliveries


def _list_clauses(history: History, call: RecordedCall, text: str) -> Iterator[str]:
    """Yield what a text says of a call: what names it, and the sentences behind it on that line, up to another call.

    A line that ends in a colon goes on in the next one.
    """
    for line in LINE_END.split(text):
        is_named = False
        for part in _SENTENCE_END.split(line):
            names_other = any(names_call(history, part, each) for each in history.calls)
            is_named = names_call(history, part, call) or (is_named and not names_other)
            if is_named:
                yield part


def list_notes(history: History, call: RecordedCall, exchange: Exchange) -> list[str]:
    """Return the messages of a model input that name a call by its id and were not there when it was made.

    An agent that sums up old history, or says something of a call in a message of its own, tells its model so.
    """
    made = next((each for each in history.exchanges if each.answer is call.answer), None)
    known = Counter(str(item.get("text")) for item in made.items) if made is not None else Counter[str]()
    # What the caller says is not told by the agent.
    said = {turn.start.text for turn in history.turns}
    texts = Counter(
        str(item["text"]) for item in exchange.items if item["kind"] in ("user", "other") and item.get("text")
    )
    # An agent may say the same of a later call with the same id.
    new = (texts - known).elements()
    notes = [text for text in new if text not in said and names_call(history, text, call)]
    if len(notes) > 1 and not _list_ids(history, call):
        # One that has the id of another call is about that one.
        others = [other for other in history.calls if other.tool == call.tool and _list_ids(history, other)]
        notes = [text for text in notes if not any(names_call(history, text, other) for other in others)]
    return notes


def names_call(history: History, text: str, call: RecordedCall) -> bool:
    """Return whether a text has the id of a call: the model's, or the one that the agent shows to people."""
    return _find_last_name(history, text, call) >= 0


def _find_last_name(history: History, text: str, call: RecordedCall) -> int:
    """Return where a text names a call for the last time; -1 if it does not."""
    names = [re.escape(each) for each in _list_ids(history, call)]
    if history.header is not None and history.header.variant.get("chunking") == "changing_ids":
        # The agent may keep any of the ids that the stream has given the call.
        names.append(rf"{re.escape(format_streamed_id(call.label, 0)[:-1])}\d+")
    # What the agent calls a call without an id, nobody has seen, if no request and no result shows it.
    names = names or [re.escape(call.tool)]
    found = (re.finditer(rf"(?<![\w-]){each}(?![\w-])", text) for each in names)
    return max((match.start() for matches in found for match in matches), default=-1)


def _list_ids(history: History, call: RecordedCall) -> set[str]:
    """Return the ids by which a text may name a call.

    If the model gave one id to several calls of a reply, the agent tells them apart by the ids that it shows.
    """
    ids = {call.id} | _list_shown_ids(call)
    ids -= {each for other in sibling_calls(history, call) for each in _list_shown_ids(other)} - _list_shown_ids(call)
    return {each for each in ids if each}


def _list_shown_ids(call: RecordedCall) -> set[str | None]:
    return {request.entry.get("call_id") for request in call.requests}


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
    content, one that looks like the result of its tool, and one that says that it was done tell no rejection. One that
    only says that the call failed should not be all: a model tries again what has failed. Nor should an empty reason be
    all: a tool may have returned that. The words are up to the agent, and so is whether they are text, JSON or blocks.
    A summary of old history, or a note, that takes the place of the call says of it, by its id, that it was rejected,
    with all of the reason. The agent that a conversation was handed over to may be told so by the name of the tool.

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

    Warns, an empty reason alone:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 ""
        go
        tell c1
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

    Passes, an agent that takes the conversation over is told in words:
        tool pay(amount: integer) always
        tool to_clerk() never to clerk
        send Pay 5
        model c1 pay(amount=5); t1 to_clerk()
        tell t1 handed over
        pause c1
        reject c1 over the limit
        go
        forget c1
        user For context: main called pay, and got: rejected: over the limit
        agent clerk
        done

    Fails, in such words nothing is said of a rejection:
        tool pay(amount: integer) always
        tool to_clerk() never to clerk
        send Pay 5
        model c1 pay(amount=5); t1 to_clerk()
        tell t1 handed over
        pause c1
        reject c1
        go
        forget c1
        user For context: main called pay.
        agent clerk
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

    Warns, a word for failure alone:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 Error: the call failed.
        done

    Passes, that and whose decision it was:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 Error: the user declined.
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
        level: Level | None = None
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
            is_told = any(not is_empty_text(text) for text in texts)
            actual = "it is told an empty text" if texts else "it is told nothing about it"
            # It is the caller's own reason then, and says no more than a result that is empty.
            level = "should" if texts and not is_told and decision.event.reason == "" else None
            success = next((text for text in texts if looks_like_success(history, call, text)), None)
            if success is not None:
                is_told, actual, level = False, f"it is told {success!r}", None
            elif is_told and all(_says_failure_alone(decision, text) for text in texts):
                is_told, actual, level = False, f"it is told {texts[-1]!r}", "should"
        if is_told:
            yield OK
        else:
            expected, witness = "the model is told of the rejection", (decision.n, exchange.n)
            yield Failure(call=call, expected=expected, actual=actual, witness=witness, level=level)


def _says_failure_alone(decision: RecordedDecision, text: str) -> bool:
    """Return whether a text says that a call failed, and nothing of a decision, so that the model may try again."""
    # Whether a reason is told, `reason-told` says.
    if decision.event.reason or not _FAILED.search(text):
        return False
    rest = _FAILED.sub("", text)
    return _REJECTION.search(rest) is None and _DECISION.search(rest) is None


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
    shapes = {_NUMBER.sub("0", result) for result in results if isinstance(result, str) and is_distinctive(result)}
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
    that instead. A reason may be told in a message of its own, which names the call by its id before it. One that comes
    when its call has been given up need not be told.

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

    Passes, the call was given up before, and nothing is made of its rejection:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        send Hello?
        tell c1 superseded
        model Hello.
        finish Hello.
        reject c1 over the limit
        go
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
        elif was_closed_before(history, call, decision.n) and not (decision.is_about(call) and call.executions):
            # It came too late for a call that was given up, of which the model knows already.
            yield OK
        elif not decision.is_about(call) and call.is_requested_between(decision.handed_in_at or 0, exchange.n):
            # What is asked about all the same is not covered by what was rejected for good.
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
        named = {each.label: _find_last_name(history, before, each) for each in (call, *sibling_calls(history, call))}
        if found and max(named, key=lambda label: named[label]) == call.label and named[call.label] >= 0:
            return True
    return False


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


_SHORTEST_LINE = 8
"""From how many characters on a line of a reason is not found in other words by chance."""


NEGATION = (
    r"reject|den(?:y|ied|ial)|\bno[tn]?\b|cannot|n't|refus|declin|cancel|disapprov|block|abort|skip|stop|forb[ai]d|disallow|"
    r"prohibit|veto|withh|against|false|error|fail|without|never|unapproved|unauthori|dismiss|halt|suppress|interrupt|"
    r"terminat|close|prevent|unable|unavailable"
)
"""Words that say of a call that it was not done, or that it failed."""

_REJECTION = re.compile(NEGATION, re.IGNORECASE)
_FAILED = re.compile(r"\b(?:error|exception|fail)\w*|\w+(?:Error|Exception)\b", re.IGNORECASE)
_DECISION = re.compile(
    r"approv|permi|author|consent|confirm|decid|decision|user|human|person|operator|review|polic|gate|guard",
    re.IGNORECASE,
)
"""Words that say that a person, or a rule, had a say in what became of a call."""

LINE_END = re.compile(r"(?<!:)\n|;")
"""Where a text goes on to say something else."""

_SENTENCE_END = re.compile(r"(?<=\.)\s")

_SUCCESS = re.compile(
    r"\b(?:ok|okay|success(?:ful(?:ly)?)?|succeeded|done|completed?|executed|approved|accepted|finished|true|yes)\b",
    re.IGNORECASE,
)
