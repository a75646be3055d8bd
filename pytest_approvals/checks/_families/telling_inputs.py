"""Family `telling`, inputs: model inputs are valid, complete and unchanged, also after a disconnect."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_approvals.agent_side.contract.types import MAIN
from pytest_approvals.checks._check import OK, Evaluations, Failure, Level
from pytest_approvals.checks._families.telling import (
    LINE_END,
    following_exchanges,
    list_notes,
    looks_like_success,
    names_call,
)
from pytest_approvals.checks._queries import last_trimmed_size, was_rewritten_between, was_trimmed_between
from pytest_approvals.checks._registry import check
from pytest_approvals.checks._told_texts import is_empty_text
from pytest_approvals.journal.arguments import arguments_satisfy
from pytest_approvals.journal.conversation import find_first_difference
from pytest_approvals.journal.events import ModelRefusal, StateRewritten
from pytest_approvals.journal.formatting import format_call
from pytest_approvals.journal.history import Exchange, History, RecordedCall, RecordedTurn
from pytest_approvals.protocols.input_rules import InputAnalysis, check_input


@check(
    "model-input-well-formed",
    severity="stuck",
    needs=("model.request",),
    implies=("usable-after-refusal", "usable-after-hang-up", "nothing-left-pending", "run-ends"),
    sources=("pydantic/pydantic-ai#6319", "microsoft/agent-framework#7267", "vercel/ai#15947"),
)
def model_input_well_formed(history: History) -> Evaluations:
    """What is sent to the model must be what its provider takes.

    A provider answers status 400 to a call without a result, a result without its call, a second result, and, over some
    protocols, to results that do not follow their calls; then the conversation cannot continue.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, where results may come later:
        rules responses
        send Go
        model c1 read(path=a)
        user Wait
        run c1 -> text
        done

    Fails:
        send Go
        model c1 read(path=a)
        user Wait
        run c1 -> text
        done

    Fails, a message while a request is pending:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        send Never mind
        refusal call-without-result
        fail ModelRefused: 400
    """
    rules = history.header.wire_rules if history.header is not None else "none"
    known: set[tuple[str, int, str, str]] = set()
    last: dict[int, InputAnalysis] = {}
    for exchange in history.exchanges:
        broken = _violations(exchange, rules, last)
        for rule, ids, text in broken:
            key = (exchange.session, exchange.branch, exchange.conversation, rule)
            # One failure per rule and conversation: later inputs repeat what the first one did wrong.
            if key not in known:
                known.add(key)
                call = _find_named_call(exchange, ids)
                expected = "an input that the provider takes"
                actual = f"{rule}: {text}"
                yield Failure(call=call, expected=expected, actual=actual, witness=(call.n if call else 0, exchange.n))
        yield OK


def _violations(
    exchange: Exchange, rules: str, last: dict[int, InputAnalysis]
) -> Sequence[tuple[str, Sequence[str], str]]:
    """Return what a provider refuses; an input that repeats the previous one is read from where it is new."""
    read = last.pop(id(exchange.previous), None) if exchange.repeats_previous else None
    read = InputAnalysis() if read is None else read
    last[id(exchange)] = read.read(exchange.items, len(read.items))
    broken = [(violation.rule, violation.ids, violation.text) for violation in check_input(read, rules)]
    if not broken and isinstance(exchange.reply, ModelRefusal):
        return [(refusal["rule"], refusal["ids"], refusal["text"]) for refusal in exchange.reply.broken]
    return broken


def _find_named_call(exchange: Exchange, ids: Sequence[str]) -> RecordedCall | None:
    return next((call for _, call in reversed(exchange.placed_calls) if call.id in ids), None)


@check(
    "no-function-approvals-in-model-input",
    severity="stuck",
    needs=("model.request",),
    sources=("dotnet/extensions#7468",),
)
def no_function_approvals_in_model_input(history: History) -> Evaluations:
    """Approval requests and responses about calls that the agent runs itself must not reach the model.

    They are between the agent and the person; providers know them for hosted calls only.

    Passes:
        tool search(query) always hosted web
        rules responses
        send Search
        model c1 search(query=cats)
        pause c1
        approve c1
        go
        respond c1 yes
        hosted c1 -> cats
        done

    Fails:
        rules none
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        respond c1 yes
        run c1 -> paid 5
        done
    """
    hosted = {call.id for call in history.calls if call.kind == "hosted_mcp"}
    for exchange in history.exchanges:
        items = (exchange.items[index] for index in exchange.approvals)
        approval = next((item for item in items if item.get("id") not in hosted), None)
        if approval is None:
            yield OK
        else:
            actual = f"{approval['kind']} {approval.get('id')} in the model's input"
            call = next((call for call in history.calls if call.id == approval.get("id")), None)
            yield Failure(call=call, expected="no approval items", actual=actual, witness=(exchange.n,))


@check(
    "caller-messages-kept",
    severity="mistold",
    needs=("model.request", "turn.start"),
    sources=("openai/openai-agents-python#2487", "langchain-ai/langgraph#5409"),
)
def caller_messages_kept(history: History) -> Evaluations:
    """Every message of the caller must be in every later model input, in the order in which they were sent.

    Each is there once: a model that reads a request twice may carry it out twice. A message of a turn that failed or
    was refused may be missing, and so may what the framework trimmed (some keep only so many messages from then on, or
    so many events, of which a request and its answer are two), and what the agent's own settings leave out, or the code
    of a user's agent says in other words. One that was changed in a save may say what it was changed to. Several
    messages may be in one item, as in a summary. One that comes after a crash may wait until what was cut off has been
    resumed, and be refused if that asks something. There should be no message in the caller's name that the caller did
    not send, unless the code of a user's agent adds it; why the caller rejected or approved a call is something that
    the caller said.

    Passes, two messages in one item:
        send Pay 5
        model Which account?
        finish Which account?
        drop user Pay 5
        drop say Which account?
        user So far: "Pay 5", then "Mine" after a question.
        send Mine
        drop user Mine
        done

    Passes, it waits until the turn that a crash cut off has been resumed:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        crash before c1
        restore a:
        send And now?
        drop user And now?
        run c1 -> paid 5
        model Paid.
        user And now?
        done

    Passes, it is refused since the turn that was cut off asks something:
        mode native.sqlite
        save a
        send Pay 5
        crash model
        restore a:
        send And now?
        drop user And now?
        model c1 pay(amount=5)
        fail UserError there are unprocessed tool calls

    Fails, it never comes after the crash:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        crash before c1
        restore a:
        send And now?
        drop user And now?
        run c1 -> paid 5
        done

    Fails, one that was sent twice is in the item once:
        send Pay 5
        model Done.
        finish Done.
        drop user Pay 5
        user So far: "Pay 5".
        send Pay 5
        drop user Pay 5
        done

    Fails, they are in another order:
        send Pay 5
        model Which account?
        finish Which account?
        drop user Pay 5
        drop say Which account?
        user So far: "Mine", after "Pay 5".
        send Mine
        drop user Mine
        done

    Passes, the reason of a rejection in the caller's name:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 over the limit
        go
        tell c1 Denied
        user About c1: over the limit
        done

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        send Sorry
        untell c1
        tell c1 rejected
        done

    Passes, the turn was refused:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        send Never mind
        fail UserError: requests are pending
        approve c1
        go
        run c1 -> paid 5
        done

    Fails:
        send Pay 5
        model Done.
        finish Done.
        send Pay 6
        model Which amount?
        finish Which amount?
        drop user Pay 5
        send So?
        done

    Passes, as the agent is set to begin anew with each message:
        remembers 0
        send Pay 5
        model Which account?
        finish Which account?
        drop user Pay 5
        drop say Which account?
        send Mine
        done

    Fails, of the messages that it is set to remember, one is missing:
        remembers 1
        send Hi
        model Hello.
        finish Hello.
        send Pay 5
        model Done.
        finish Done.
        drop user Hi
        drop user Pay 5
        send So?
        done

    Fails, a message that is there twice:
        send Pay 5
        user Pay 5
        model Done.
        finish Done.

    Passes, what was saved has been changed:
        send Pay 5
        model c1 pay(amount=6)
        pause c1
        save
        rewrite 5 7
        restore save-1: c1 pay(amount=6)
        drop user Pay 5
        user Pay 7
        reject c1
        go
        tell c1 rejected
        done

    Fails, it has been changed into something else:
        send Pay 5
        model c1 pay(amount=6)
        pause c1
        save
        rewrite 5 7
        restore save-1: c1 pay(amount=6)
        drop user Pay 5
        user Pay 8
        reject c1
        go
        tell c1 rejected
        done

    Passes, a message that was sent twice:
        send Pay 5
        model Done.
        finish Done.
        send Pay 5
        model Done.
        finish Done.

    Warns, words that the caller never said:
        send Pay 5
        user Please go on.
        model Done.
        finish Done.

    Passes, the code of a user's agent says them:
        attached
        send Pay 5
        user Please go on.
        model Done.
        finish Done.

    Passes, it sums up what was said before:
        attached
        remembers 0
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        drop user Pay 5
        user A summary.
        tell c1 rejected
        done

    Fails, it leaves out what it is about:
        attached
        remembers 0
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        drop user Pay 5
        tell c1 rejected
        done
    """
    for exchange in history.exchanges:
        if _is_of_inner_agent(exchange) or exchange.turn is None:
            continue
        missing = _find_missing_message(history, exchange)
        if missing is None or _says_in_own_words(history, exchange):
            yield _find_invented_or_repeated_message(history, exchange)
        else:
            actual = f"{missing.start.text!r} is not in the model's input"
            witness = (missing.start.n, exchange.n)
            yield Failure(expected="all messages", actual=actual, witness=witness, session=exchange.session)


def _is_of_inner_agent(exchange: Exchange) -> bool:
    """Return whether an agent asks that the caller does not talk to: in a call, or run by the user's own code."""
    return "/" in exchange.conversation or exchange.conversation == exchange.agent != MAIN


def _find_missing_message(history: History, exchange: Exchange) -> RecordedTurn | None:
    """Return the turn whose message is missing; an input that repeats the previous one is read from where it is new."""
    before, start, until = exchange.previous, 0, None
    # What the previous input lacks has its verdict already. But a failed turn may be forgotten with its message, and
    # the next one be begun with an equal message.
    # Of two turns at the same time, neither precedes the other.
    if (
        before is not None
        and exchange.repeats_previous
        and before.turn is not None
        and not before.turn.failed
        and before.turn in _preceding_turns(exchange.turn, None)
    ):
        start, until = len(before.items), before.turn
    texts = [str(item.get("text") or "") for item in exchange.items[start:] if item["kind"] == "user"]
    turns = _preceding_turns(exchange.turn, until)
    for turn in turns[_count_left_out(history, turns) :]:
        if not _is_message_required(history, turn, exchange):
            continue
        forms = _forms_of_message(history, turn, exchange.n)
        index = next((at for at, text in enumerate(texts) if any(form in text for form in forms)), None)
        if index is None:
            return turn
        # Each message may be used once, and only in order; several may be in one item.
        rests = [texts[index].partition(form)[2] for form in forms]
        texts[: index + 1] = [max(rests, key=len)]
    return None


def _says_in_own_words(history: History, exchange: Exchange) -> bool:
    """Return whether code of a user's agent that changes its history has put words of its own in the caller's name.

    These are a summary, a message with names removed, or what a summary is asked for with.
    """
    header = history.header
    if header is None or not header.attached or header.earlier_turns is None:
        return False
    turns = [turn for turn in history.turns if turn.session == exchange.session and turn.start.n < exchange.n]
    forms = {form for turn in turns for form in _forms_of_message(history, turn, exchange.n) if form}
    texts = [str(item.get("text") or "") for item in exchange.items if item["kind"] == "user"]
    return any(text not in forms for text in texts)


def _count_left_out(history: History, turns: Sequence[RecordedTurn]) -> int:
    """Return how many of the first of *turns* the agent's own settings leave out of its history."""
    kept = None if history.header is None else history.header.earlier_turns
    begun = [index for index, turn in enumerate(turns) if turn.start.text]
    return 0 if kept is None or len(begun) <= kept else begun[-kept - 1]


def _find_invented_or_repeated_message(history: History, exchange: Exchange) -> Failure | None:
    """Return a failure for a new message in the caller's name that was not sent, or not so often."""
    before = exchange.previous
    # What a provider refused has reached no model, and was not judged.
    is_known = before is not None and before.answer is not None and exchange.repeats_previous
    start = len(before.items) if before is not None and is_known else 0
    new = [item for item in exchange.items[start:] if item["kind"] == "user"]
    if not new:
        return OK
    session = exchange.session
    turns = [turn for turn in history.turns if turn.session == session and turn.start.n < exchange.n]
    sent = Counter(turn.start.text for turn in turns)
    repeated = _find_repeated_message(exchange, sent) if exchange.answer is not None else None
    if repeated is not None:
        actual = f"{repeated!r} is there more often"
        expected = "each message as often as it was sent"
        return Failure(expected=expected, actual=actual, witness=(exchange.n,), session=session)
    # What tools, hooks and summaries of a user's agent say in the caller's name is documented by their frameworks.
    if history.header is not None and history.header.attached:
        return OK
    forms = {form for turn in turns for form in _forms_of_message(history, turn, exchange.n)}
    decisions = [each for each in history.decisions if each.event.session == session and each.n < exchange.n]
    forms |= {each.event.reason or "" for each in decisions}
    for item in new:
        if not any(form and form in str(item.get("text") or "") for form in forms):
            actual = f"{item.get('text')!r} is there in the caller's name"
            witness = (exchange.n,)
            return Failure(
                expected="the caller's messages", actual=actual, witness=witness, session=session, level="should"
            )
    return OK


def _find_repeated_message(exchange: Exchange, sent: Counter[str | None]) -> str | None:
    """Return the text of a message that an input holds more often than it was sent: in items of its own, or in one."""
    items = Counter(str(item.get("text") or "") for item in exchange.items if item["kind"] == "user")
    for written, number in items.items():
        held = {text: times for text, times in sent.items() if text and text in written}
        # An item may hold a longer message, too, which was sent as well.
        if held and number > sum(held.values()):
            return written
        for text, times in held.items():
            rest = written.split(text)
            if len(rest) - 1 > times and written not in sent and not any(re.search(r"\w", part) for part in rest):
                return text
    return None


def _preceding_turns(turn: RecordedTurn | None, until: RecordedTurn | None) -> list[RecordedTurn]:
    """Return a turn and those before it in its branch, back to *until*, the earliest first."""
    turns: list[RecordedTurn] = []
    while turn is not None and turn is not until:
        turns.append(turn)
        turn = turn.previous
    return turns[::-1]


def _forms_of_message(history: History, turn: RecordedTurn, n: int) -> set[str]:
    """Return the message of a turn, and what changes of saves up to position *n* may have made of it."""
    forms = {turn.start.text or ""}
    for event in history.events_of(StateRewritten):
        if turn.start.n < event.n < n and event.session == turn.session:
            forms |= {form.replace(event.old, event.new) for form in forms}
    return forms


def _waits_for_resumed_turn(history: History, turn: RecordedTurn, exchange: Exchange) -> bool:
    """Return whether an input is of the turn before, which a crash cut off: the message comes later."""
    before = turn.previous
    if before is None or not before.crashed:
        return False
    if turn.failed:
        return True
    later = (each for each in history.exchanges if each.turn is turn and each.n > exchange.n)
    forms = _forms_of_message(history, turn, exchange.n)
    return any(
        each.conversation == exchange.conversation
        and any(item["kind"] == "user" and str(item.get("text") or "") in forms for item in each.items)
        for each in later
    )


def _is_message_required(history: History, turn: RecordedTurn, exchange: Exchange) -> bool:
    """Return whether the message of a turn must be in an input."""
    if not turn.start.text or turn.overlaps:
        return False
    if turn is not exchange.turn and turn.outcome not in ("paused", "finished"):
        return False
    if turn is exchange.turn and _waits_for_resumed_turn(history, turn, exchange):
        return False
    if was_trimmed_between(history, turn.start.n, exchange.n, turn.session):
        return False
    # What trims a history may be a window of so many messages that stays, and is full: of requests and answers, too,
    # where these are events of the session. A result at its beginning, whose call is outside, may be left out.
    window = last_trimmed_size(history, exchange.n, turn.session)
    answers = [each for each in history.decisions if each.event.session == turn.session]
    hidden = 2 * sum(turn.start.n < each.n < exchange.n for each in answers)
    return window is None or len(exchange.items) + hidden < window - 1


@check(
    "history-not-rewritten",
    severity="mistold",
    level="should",
    needs=("model.request",),
    sources=("langchain-ai/langchain#33787", "langchain-ai/langchain#32988"),
)
def history_not_rewritten(history: History) -> Evaluations:
    """A model input should repeat what the previous one held, and the calls in it as the model made them.

    Otherwise a model reads another past than its own, caches cannot be used, and audits find other calls than were
    made. This includes a call that a person edited: what ran in its place is for its result to say, unless the agent
    takes edits in words of its own, and so may write them into the call. Inputs after a
    failed turn, a rewind, a trimming or a change of the save are not compared, and neither are those from which
    the agent's own settings leave messages out. The instructions before the messages
    are the agent's own, and may say something else each time. What a body that asks returned while it waited, or the
    gate of a call that had not run yet, may give way to its result, and what the model said to it may go. So may a
    reminder of the agent's own at the end of an input, which stands there for one reply.

    Passes, a reminder behind the messages is not kept:
        send Go
        remind Answer in one sentence.
        model c1 read(path=a)
        drop other Answer in one sentence.
        run c1 -> text
        done

    Passes:
        send Go
        model c1 read(path=a)
        run c1 -> text
        model c2 read(path=b)
        run c2 -> text
        done

    Passes, the wait for an answer is left out:
        send Pay 5
        model c1 pay(amount=5)
        run c1 ??
        tell c1 waiting
        model I have asked.
        pause c1
        approve c1
        go
        untell c1
        drop say I have asked.
        reenter c1 -> paid 5
        done

    Passes, as of a gate that tells that it waits:
        send Pay 5
        model c1 pay(amount=5)
        tell c1 waiting
        model I have asked.
        pause c1
        reject c1
        go
        untell c1
        drop say I have asked.
        tell c1 rejected
        done

    Passes, as the agent is set to begin anew with each message:
        remembers 0
        send Read a
        model c1 read(path=a)
        run c1 -> text
        model Read.
        finish Read.
        drop user Read a
        forget c1
        drop say Read.
        send Again
        done

    Passes, an edit in words of the agent's own, which it writes into the call:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        own edit c1 (amount=3)
        go
        change c1 amount=3
        run c1 pay(amount=3) -> paid 3
        done

    Warns, other arguments than such an edit has:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        own edit c1 (amount=3)
        go
        change c1 amount=4
        run c1 pay(amount=3) -> paid 3
        done

    Warns, it is replaced before the answer comes:
        send Pay 5
        model c1 pay(amount=5)
        run c1 ??
        tell c1 waiting
        model c2 read(path=a)
        run c2 -> text
        untell c1
        tell c1 refused
        model I have asked.
        pause c1
        approve c1
        go
        untell c1
        reenter c1 -> paid 5
        done

    Warns, it comes back:
        send Pay 5
        model c1 pay(amount=5)
        run c1 ??
        tell c1 waiting
        model I have asked.
        pause c1
        approve c1
        go
        untell c1
        reenter c1 -> paid 5
        model c2 read(path=a)
        run c2 -> text
        untell c1
        tell c1 waiting
        done

    Warns, the result of a call that ran before the answer came is replaced:
        send Pay 5
        model c1 pay(amount=5)
        run c1 -> paid 5
        model I have paid.
        pause c1
        reject c1
        go
        untell c1
        tell c1 rejected
        done

    Warns, the result of a body that ran again is replaced:
        send Go
        model c1 read(path=a)
        run c1 -> text
        model c2 read(path=b)
        run c2 -> text
        untell c1
        run c1 -> other text
        done

    Warns, a result is replaced that stood for itself:
        send Go
        model c1 read(path=a)
        run c1 -> text
        model c2 pay(amount=5)
        run c2 ??
        tell c2 waiting
        model I have asked.
        pause c2
        approve c2
        go
        untell c1
        tell c1 other text
        untell c2
        reenter c2 -> paid 5
        done

    Warns:
        send Go
        model c1 read(path=a)
        run c1 -> text
        model c2 read(path=b)
        run c2 -> text
        untell c1
        tell c1 other text
        done

    Warns, a result goes when the id of its call is used again:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done
        send Pay 6
        model c1#2@c1 pay(amount=6)
        pause c1#2
        approve c1#2
        go
        untell c1
        run c1#2 -> paid 6
        done

    Warns, the model's own call:
        send Go
        model c1 read(path=a)
        run c1 -> text
        change c1 path=b
        done

    Passes, a hook of a user's agent corrects a call that nobody has to approve:
        attached
        send Go
        model c1 read(path=a)
        run c1 read(path=b) -> text
        change c1 path=b
        done

    Warns, a call that a person edited:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        edit c1 (amount=3)
        go
        change c1 amount=3
        run c1 pay(amount=3) -> paid 3
        done
    """
    for exchange in history.exchanges:
        before = exchange.previous
        if before is None or before.answer is None:
            continue
        # To whom a user's agent hands over, its framework may tell in other words what was before.
        if history.header is not None and history.header.attached and exchange.agent != before.agent:
            continue
        failure = _find_rewrite(history, before, exchange)
        if failure is None or _is_comparable(history, before, exchange):
            yield failure


def _find_rewrite(history: History, before: Exchange, exchange: Exchange) -> Failure | None:
    repeated = before.items[: -1 if _drops_reminder(history, before, exchange) else None]
    difference = _find_difference(repeated, exchange)
    waited = difference is not None and _repeats_without_wait(history, before, exchange)
    if difference is not None and not waited:
        actual = f"item {difference + 1} of the previous input is different or missing"
        expected = "the previous input, and what came since"
        witness = (before.n, exchange.n)
        return Failure(expected=expected, actual=actual, witness=witness, session=exchange.session)
    changed = _find_changed_call(repeated, exchange)
    # Hooks of an application may complete or correct what nobody has to approve.
    is_attached = history.header is not None and history.header.attached
    if changed is not None and not (is_attached and not (changed[0].is_gated or changed[0].requests)):
        call, item = changed
        actual = f"{format_call(str(item.get('tool')), item.get('arguments'))} in the model's input"
        expected = format_call(call.tool, call.arguments)
        return Failure(call=call, expected=expected, actual=actual, witness=(call.n, exchange.n))
    assert before.answer is not None
    say = before.answer.say
    # What the model said while a body waited for its answer is about the wait.
    if say and not waited and not _is_said(say, exchange.items[len(repeated) :]):
        witness = (before.answer.n, exchange.n)
        actual = f"{say!r} is not in the next input"
        return Failure(expected="what the model said", actual=actual, witness=witness, session=exchange.session)
    return OK


def _repeats_without_wait(history: History, before: Exchange, exchange: Exchange) -> bool:
    """Return whether an input repeats the previous one but for results of calls that got their answers meanwhile."""
    answered = {
        ("result", execution.call_id)
        for execution in history.executions
        if execution.is_resumed and before.n < execution.n < exchange.n
    }
    answered |= {
        ("result", call.id)
        for call in history.calls
        if call.n < before.n
        and any(before.n < (decision.handed_in_at or 0) < exchange.n for decision in call.decisions)
        and all(execution.n > before.n for execution in call.executions)
    }
    earlier, later = (
        [item for item in each.items if (item["kind"], item.get("id")) not in answered] for each in (before, exchange)
    )
    return find_first_difference(earlier, later) is None


def _drops_reminder(history: History, before: Exchange, exchange: Exchange) -> bool:
    """Return whether the previous input ended with a message of the agent's own that this one leaves out.

    What says something of a call, or repeats the caller, is no reminder.
    """
    start = len(before.items) - 1
    if start < 1:
        return False
    last = before.items[start]
    if find_first_difference([last], exchange.items[start:]) is None:
        return False
    if last["kind"] != "other" and (last["kind"] != "user" or before.conversation != MAIN):
        return False
    text = str(last.get("text") or "")
    said = {form for turn in history.turns for form in _forms_of_message(history, turn, exchange.n)}
    said |= {decision.event.reason or "" for decision in history.decisions}
    about_calls = any(names_call(history, text, call) for call in history.calls if call.n < before.n)
    return not about_calls and not any(each and each in text for each in said)


def _find_difference(repeated: Sequence[Mapping[str, Any]], exchange: Exchange) -> int | None:
    """Return where an input stops repeating items of the previous one; its instructions may say something else."""
    if exchange.repeats_previous:
        return None
    start = _count_instructions(repeated)
    if start != _count_instructions(exchange.items):
        start = 0
    difference = find_first_difference(repeated[start:], exchange.items[start:])
    return None if difference is None else start + difference


def _count_instructions(items: Sequence[Mapping[str, Any]]) -> int:
    """Return how many items stand before the messages."""
    return next((at for at, item in enumerate(items) if item["kind"] != "other"), len(items))


def _is_comparable(history: History, before: Exchange, exchange: Exchange) -> bool:
    between = (history, before.n, exchange.n, exchange.session)
    if was_trimmed_between(*between) or was_rewritten_between(*between):
        return False
    turns = [turn for turn in (before.turn, exchange.turn) if turn is not None]
    if _count_left_out(history, _preceding_turns(exchange.turn, None)):
        return False
    if any(turn.overlaps for turn in turns):
        return False
    ended = (turn for turn in history.turns if before.n < turn.ended < exchange.n)
    return not any(turn.failed and turn.session == exchange.session for turn in ended)


def _find_changed_call(
    repeated: Sequence[Mapping[str, Any]], exchange: Exchange
) -> tuple[RecordedCall, Mapping[str, Any]] | None:
    """Return a call that is not shown as the model made it, with its item."""
    for index, call in exchange.placed_calls:
        item = exchange.items[index]
        # What the previous input showed in the same way was judged there.
        if item not in repeated[index : index + 1] and not _is_shown_as_made(item, call):
            return call, item
    return None


def _is_shown_as_made(item: Mapping[str, Any], call: RecordedCall) -> bool:
    """Return whether an item shows a call; text may be wrapped in an object, since some providers want objects."""
    if item.get("tool") != call.tool:
        return False
    if any(decision.event.own and item.get("arguments") == decision.event.arguments for decision in call.decisions):
        return True
    wrapped = isinstance(call.arguments, str) and call.arguments in str(item.get("arguments"))
    return wrapped or arguments_satisfy(item.get("arguments"), call.arguments, call.parameters)


def _is_said(say: str, new: Sequence[Mapping[str, Any]]) -> bool:
    return any(say in str(item.get("text") or "") for item in new if item["kind"] in ("say", "call", "other"))


@check(
    "cancelled-calls-told",
    severity="lost-effect",
    needs=("model.request", "caller.hang_up", "tool.start"),
    sources=("langchain-ai/langgraph#6726", "microsoft/agent-framework#2889", "agno-agi/agno#8290"),
)
def cancelled_calls_told(history: History) -> Evaluations:
    """A call that was approved or begun when its turn was cut off must be told to the model, or asked about again.

    A turn that is cancelled because its caller disconnected, or whose process is killed, has had effects all the same.
    A model that knows neither of the call nor of its result says that nothing happened, or does it again; and a person
    who said yes believes that it was done. How it is told, for instance that the call may have been done, is up to the
    agent, but an empty text tells nothing, and a word for success more than anybody knows, as does one that only says
    that somebody rejected a call that had begun. A summary of old history may tell it in the place of the call, with
    its id. If a call that needed no approval is forgotten, that is a warning.

    Passes, old history is summed up, with the call:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        forget c1
        user So far: c1 pay(amount=5) was interrupted.
        send Is it paid?
        done

    Fails, it is summed up as done:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        forget c1
        user So far: c1 pay(amount=5) is done; c2 was not called.
        send Is it paid?
        done

    Fails, it is summed up without the call:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        forget c1
        user So far: something was interrupted.
        send Is it paid?
        done

    Passes, it is told that the call was cut short:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        tell c1 cancelled
        send Is it paid?
        done

    Passes, it is asked about again:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        go
        pause c1
        reject c1
        go
        tell c1 rejected
        done

    Passes, it had run, and its result is told:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        hangup
        send Is it paid?
        done

    Passes, it had run, and its result is an empty object:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> {}
        hangup
        send Is it paid?
        done

    Passes, the process was killed before it ran, and it runs in the next one:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        crash before c1
        restore a:
        go
        run c1 -> paid 5
        done

    Fails, the process was killed before it ran, and it is forgotten:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        crash before c1
        restore a:
        forget c1
        send Is it paid?
        done

    Fails, it is told as an empty text:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        tell c1 {}
        send Is it paid?
        done

    Fails, it is told as done:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        tell c1 ok
        send Is it paid?
        done

    Fails, it is told as rejected, and nobody has rejected it:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        tell c1 The user rejected this call; it was not run.
        send Is it paid?
        done

    Fails, the whole turn is forgotten:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        forget c1
        send Is it paid?
        done

    Warns, a call that needs no approval is forgotten:
        send Go
        model c1 read(path=a)
        start c1
        hangup c1
        forget c1
        send Again
        done

    Fails, what has run is forgotten:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        hangup
        forget c1
        send Is it paid?
        done
    """
    for turn in history.turns:
        for call in _interrupted_calls(history, turn):
            after = next(following_exchanges(history, call, turn.ended), None)
            if after is None or was_trimmed_between(history, call.n, after.n, call.session):
                continue
            told = [delivery.text for delivery in call.deliveries if delivery.n >= after.n]
            told += [] if told else _find_lines_about(history, call, after)
            returned = any(execution.how == "returned" for execution in call.executions)
            is_told_nothing = bool(told) and all(map(is_empty_text, told))
            wrong = next((text for text in told if looks_like_success(history, call, text or "")), None)
            if wrong is None and _was_stopped(call, turn) and not _is_rejected_later(history, call, turn):
                wrong = next((text for text in told if _says_rejected_alone(text or "")), None)
            is_mistold = not returned and (is_told_nothing or wrong is not None)
            if is_mistold and not _was_settled_again(call, turn, after):
                actual = "the model is told an empty text" if wrong is None else f"the model is told {wrong!r}"
                yield Failure(call=call, expected="the model is told of it", actual=actual, witness=(after.n,))
            elif told or _is_accounted_for(call, turn, after):
                yield OK
            else:
                actual = "neither call nor result in the model's input, and nobody is asked again"
                witness = (turn.cut_off_at or 0, after.n)
                level: Level | None = None if call.is_gated or call.requests else "should"
                yield Failure(
                    call=call, expected="the model is told of it", actual=actual, witness=witness, level=level
                )


_REJECTED = re.compile(
    r"\b(?:reject(?:ed|ion)|den(?:ied|ial)|declined|refused|disallowed|disapproved|not (?:allowed|approved))\b",
    re.IGNORECASE,
)
"""Words that say that somebody was against a call."""

_STOPPED = re.compile(
    r"interrupt|cancel|abort|stopped|cut (?:off|short)|(?:may|might|could) have|partial", re.IGNORECASE
)
"""Words that say that a call had begun."""


def _says_rejected_alone(text: str) -> bool:
    """Return whether a text says that a call was rejected, and not that it had begun."""
    return _REJECTED.search(text) is not None and _STOPPED.search(text) is None


def _was_stopped(call: RecordedCall, turn: RecordedTurn) -> bool:
    """Return whether a call was stopped in its middle when a turn was cut off."""
    return any(execution.turn is turn and execution.how in ("cancelled", "open") for execution in call.executions)


def _is_rejected_later(history: History, call: RecordedCall, turn: RecordedTurn) -> bool:
    """Return whether somebody rejects a call after a turn, or another one that has its id."""
    return any(
        each.rejects and each.n > turn.ended and each.call is not None and each.call.id == call.id
        for each in history.decisions
    )


def _interrupted_calls(history: History, turn: RecordedTurn) -> Iterator[RecordedCall]:
    """Yield the calls that were approved, or had begun, in a turn that was cut off."""
    if turn.cut_off_at is None:
        return
    approved = {id(decision.call) for decision in turn.decisions if decision.approves}
    for call in history.calls:
        begun = any(execution.turn is turn and execution.n < turn.cut_off_at for execution in call.executions)
        if call.kind != "hosted_mcp" and (begun or id(call) in approved):
            yield call


def _find_lines_about(history: History, call: RecordedCall, exchange: Exchange) -> list[str | None]:
    """Return the lines about a call in what an agent says in messages of its own, such as a summary of old history."""
    lines = (line for note in list_notes(history, call, exchange) for line in LINE_END.split(note))
    return [line for line in lines if names_call(history, line, call)]


def _is_accounted_for(call: RecordedCall, turn: RecordedTurn, after: Exchange) -> bool:
    if any(placed is call for _, placed in after.placed_calls):
        return True
    return _was_settled_again(call, turn, after)


def _was_settled_again(call: RecordedCall, turn: RecordedTurn, after: Exchange) -> bool:
    """Return whether the call was asked about or executed between the end of the turn and what the model is told."""
    return call.is_requested_between(turn.ended, after.n) or any(
        turn.ended < execution.n < after.n for execution in call.executions
    )
