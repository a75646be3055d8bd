"""Family `harness`: a journal is well-formed, and its run reached what the scenario is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from pytest_approvals.agent_side.contract.types import MAIN
from pytest_approvals.checks._check import OK, Evaluations, Failure
from pytest_approvals.checks._families.ending import is_released_by_change, misses_signal
from pytest_approvals.checks._registry import check
from pytest_approvals.journal.coverage import count_reached
from pytest_approvals.journal.events import (
    NOT_SAVED,
    AgentLost,
    ModelExhausted,
    ModelFailure,
    StateRestored,
    StateRewritten,
    StepSkipped,
)
from pytest_approvals.journal.history import (
    Exchange,
    History,
    RecordedCall,
    RecordedDecision,
    RecordedRestore,
    RecordedTurn,
)
from pytest_approvals.journal.validation import find_violations


@check("journal-well-formed", severity="stuck")
def journal_well_formed(history: History) -> Evaluations:
    """A journal must be well-formed.

    One that is not was recorded wrongly, cut off or changed, and what the other checks say about it means nothing.

    Passes:
        send Hello
        done

    Fails:
        send Hello
        model Hello.
        end
    """
    violations = find_violations(history.events)
    yield OK
    for violation in violations:
        yield Failure(
            expected="a well-formed journal",
            actual=violation.text,
            witness=violation.witness,
            status="harness-error",
        )


@check("scenario-exercised", severity="stuck", guards=True)
def scenario_exercised(history: History) -> Evaluations:
    """A run must reach what its scenario is about, if no other check explains why it did not.

    A run that plays nothing proves nothing: nothing was asked, nothing was refused, and everything passes. The same
    holds for what a scenario expects to run and to be said. An agent may refuse to restore a save that was changed, as
    one that signs its state does, or that was made before an agent was renamed; what the scenario is about ends there.
    Nor can what a scenario decides together happen if the requests of a reply come one after the other, tool by tool or
    agent by agent, or not all of its agents work at the same time, a model that fails is asked again in the same turn,
    so that its next reply comes earlier, a failed turn is undone with its decisions, a decision that was staged cannot
    be replaced, and nobody can change what is saved compressed or encrypted. What ended before the model failed must be
    as expected all the same; saves in which one text was found can be read; and an agent that took no part before a
    save is no reason to refuse it.

    Passes, the model is asked again after a failure, and the turn does not fail:
        reaches failed=1
        expect runs c1
        send Go
        down 500
        model Hello.
        finish Hello.
        send Go
        exhausted
        fail ScriptExhausted: main

    Fails, the model is asked again as it has called something:
        reaches failed=1
        send Go
        model c1 read(path=a)
        run c1 -> text
        done

    Fails, the model fails, and is asked again in the next turn:
        reaches failed=2
        send Go
        down 500
        fail ModelDown: 500
        go
        done

    Passes, what was saved cannot be read:
        reaches rewritten=1
        expect runs c1
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        skip Rewrite: nothing that was saved says '5'
        restore a: c1
        reject c1
        go
        tell c1 rejected
        done

    Fails, a call ran that should not, before the model was asked again after a failure:
        reaches failed=1
        expect runs
        send Go
        model c1 read(path=a)
        run c1 -> text
        down 500
        model Hello.
        finish Hello.

    Fails, another text is found in what was saved:
        reaches rewritten=2
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        rewrite pay refund
        skip Rewrite: nothing that was saved says '5'
        restore a: c1 refund(amount=5)
        reject c1
        go
        tell c1 rejected
        done

    Fails, only the place of a message in the model's input reads like the text:
        reaches rewritten=1
        send Pay
        model Which?
        finish Which?
        send The first
        model c1 pay(amount=5)
        pause c1
        save a
        skip Rewrite: nothing that was saved says '2'
        restore a: c1
        reject c1
        go
        tell c1 rejected
        done

    Fails, a text is to be changed that is nowhere:
        reaches rewritten=1
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        skip Rewrite: nothing that was saved says '7'
        restore a: c1
        reject c1
        go
        tell c1 rejected
        done

    Passes:
        reaches paused=1, approved=1
        expect runs c1
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, a save that was changed is refused:
        reaches rewritten=1, approved=1
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        rewrite 5 6
        unrestored a SignatureError: the state was changed
        skip the session's state could not be restored

    Passes, the first of two requests is answered for good, so that the next one never comes:
        reaches rejected=1
        expect runs c1
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1
        skip no request about this call has surfaced
        always c1
        go
        run c1 -> paid 5
        run c2 -> paid 6
        done

    Passes, a turn that failed is undone, and its request is open again:
        reaches finished=1
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        down 500
        fail ModelDown: 500
        go
        pause c1
        end left: c1

    Passes, a staged decision cannot be replaced:
        reaches staged=2
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        stage
        reject c1
        stage AlreadySettled: c1 is decided
        go
        run c1 -> paid 5
        done

    Passes, the requests come tool by tool:
        reaches rejected=1
        expect runs c1
        tool pay(amount: integer) always
        tool send(to: string) always
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6); c3 send(to=Ann)
        pause c1, c2
        skip no request about this call has surfaced
        approve c1
        approve c2
        go
        run c1 -> paid 5
        run c2 -> paid 6
        pause c3
        approve c3
        go
        run c3 -> sent
        done

    Passes, a message waits until the open request is decided, so that what is asked for with it comes later:
        reaches approved=2
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        send Send a mail
        pause c1
        skip no request about this call has surfaced
        approve c1
        go
        run c1 -> paid 5
        tell c1 paid 5
        model c2 send(to=Ann)
        pause c2
        approve c2
        go
        run c2 -> sent
        tell c2 sent
        done

    Fails, the model has replied to the message:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        send Send a mail
        tell c1 superseded
        model Which one?
        finish Which one?
        skip no request about this call has surfaced
        end

    Passes, only two of three agents work at the same time:
        tool ask(input: string) never runs helper
        tool pay(amount: integer) always of helper
        reaches rejected=1
        send Pay
        model o1 ask(input="Pay 5"); o2 ask(input="Pay 6"); o3 ask(input="Pay 7")
        model @o1/helper o1/c1 pay(amount=5)
        model @o2/helper o2/c1 pay(amount=6)
        pause o1/c1, o2/c1
        skip no request about this call has surfaced
        approve o1/c1
        approve o2/c1
        go
        run o1/c1 -> paid 5
        run o2/c1 -> paid 6
        model @o3/helper o3/c1 pay(amount=7)
        pause o3/c1
        end left: o3/c1

    Fails, the third of three agents had called its tool as well:
        tool ask(input: string) never runs helper
        tool pay(amount: integer) always of helper
        reaches rejected=1
        send Pay
        model o1 ask(input="Pay 5"); o2 ask(input="Pay 6"); o3 ask(input="Pay 7")
        model @o1/helper o1/c1 pay(amount=5)
        model @o2/helper o2/c1 pay(amount=6)
        model @o3/helper o3/c1 pay(amount=7)
        pause o1/c1, o2/c1
        skip no request about this call has surfaced
        approve o1/c1
        approve o2/c1
        go
        run o1/c1 -> paid 5
        run o2/c1 -> paid 6
        pause o3/c1
        end left: o3/c1

    Fails, both requests were open:
        reaches rejected=1
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        approve c2
        go
        run c1 -> paid 5
        run c2 -> paid 6
        done

    Fails, the calls are of two replies:
        reaches rejected=1
        send Pay
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        model c2 pay(amount=6)
        pause c2
        approve c2
        go
        run c2 -> paid 6
        done

    Fails, nobody is asked about the others:
        reaches rejected=1
        send Pay
        model c1 pay(amount=5); c2 read(path=a)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        run c2 -> text
        done

    Passes, a save of an agent that has another name by now is refused:
        reaches approved=1
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        renamed main cashier
        unrestored a LookupError: no agent is called main
        skip the session's state could not be restored

    Fails, an agent has another name by now that took no part:
        reaches approved=1
        tool pay(amount: integer) always
        tool to_clerk() never to clerk
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        renamed clerk cashier
        unrestored a LookupError: no agent is called clerk
        skip the session's state could not be restored
        end left: c1

    Passes, it was given the conversation:
        reaches approved=1
        tool pay(amount: integer) always
        tool to_clerk() never to clerk
        send Pay 5
        model t1 to_clerk()
        tell t1 handed over
        agent clerk
        model c1 pay(amount=5)
        pause c1
        save a
        renamed clerk cashier
        unrestored a LookupError: no agent is called clerk
        skip the session's state could not be restored
        end left: c1

    Fails:
        reaches paused=1
        send Hello
        done

    Fails, a save that was not changed is refused:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        unrestored a SignatureError: the state was changed
        skip the session's state could not be restored

    Passes, of two equal calls whose requests show no ids, the other one runs:
        expect runs c1
        send Pay
        model c1 pay(amount=5); c2 pay(amount=5)
        hides c1, c2
        approve c1
        reject c2
        go
        run c2 -> paid 5
        tell c1 Denied
        done

    Fails, an expectation:
        expect output Paid.
        send Hello
        done

    Fails, a tool that waits for what the story gives too late:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        timeout
        end timeout, SignalMissing

    Passes, it waits for a call that is asked about only when this one is done:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1
        skip no request about this call has surfaced
        approve c1
        go
        timeout
        end timeout, SignalMissing

    Fails, an agent that was lost:
        send Hello
        fail HostError: died
        lost the process died
        end broken
    """
    yield OK
    yield from _check_agent_lost(history)
    yield from _check_reached(history)
    yield from _check_skipped_steps(history)
    yield from _check_expectations(history)


def _harness_failure(expected: str, actual: str, *witness: int) -> Failure:
    return Failure(expected=expected, actual=actual, witness=witness, status="harness-error")


def _check_agent_lost(history: History) -> Iterator[Failure]:
    for event in history.events_of(AgentLost):
        yield _harness_failure("an agent to judge", event.what, event.n)
    end = history.end
    if end is not None and end.how in ("broken", "interrupted"):
        yield _harness_failure("a whole run", f"the run was {end.how}: {': '.join(end.error or ())}", end.n)
    if end is not None and misses_signal(end):
        runs = [run for turn in history.turns if turn.outcome == "timeout" for run in turn.executions]
        # A changed save lets a call run that its story keeps for later; calls asked about one by one run so, too.
        if not any(map(is_released_by_change, runs)) and not _asks_one_by_one(history):
            yield _harness_failure("every signal is given while a tool waits for it", (end.error or [""])[-1], end.n)


def _check_reached(history: History) -> Iterator[Failure]:
    if history.header is None:
        return
    counts = count_reached(history)
    is_over = bool(_list_refused_changes(history)) or _is_played_otherwise(history)
    for word, wanted in history.header.reaches.items():
        if counts.get(word, 0) < wanted and not is_over:
            yield _harness_failure(f"{word} at least {wanted} times", f"{counts.get(word, 0)} times", 1)
    # A model that runs out of replies spoils the run, unless the scenario says that it does.
    if counts.get("exhausted") and not _asks_again(history) and "exhausted" not in history.header.reaches:
        asked = [exchange for exchange in history.exchanges if isinstance(exchange.reply, ModelExhausted)]
        whose = f"that of {asked[0].conversation}" + (f" in session {asked[0].session}" if asked[0].session else "")
        times = f", {len(asked)} times" if len(asked) > 1 else ""
        yield _harness_failure("the model's script suffices", f"{whose} has no reply left{times}", asked[0].n)


def _check_skipped_steps(history: History) -> Iterator[Failure]:
    """Report steps that could not be played although no turn failed visibly before them, and no save was refused."""
    refused = _list_refused_changes(history)
    for event in history.events_of(StepSkipped):
        failed = any(turn.failed and turn.end is not None and turn.end.n < event.n for turn in history.turns)
        is_over = any(restore.session == event.session and restore.n < event.n for restore in refused)
        is_early = event.step == "decide" and _asks_one_by_one(history)
        is_held_back = event.step == "decide" and any(
            _holds_message_back(turn) and turn.session == event.session and turn.ended < event.n
            for turn in history.turns
        )
        is_unreadable = NOT_SAVED in event.why and _saves_nothing_readable(history)
        if not (failed or is_over or is_early or is_held_back or is_unreadable):
            step = f"{event.step} {event.label}" if event.label else event.step
            yield _harness_failure(f"{step} is played", event.why, event.n)


def _is_played_otherwise(history: History) -> bool:
    """Return whether the agent is right and works in another way than the scenario counts on."""
    return (
        _asks_one_by_one(history)
        or _asks_again(history)
        or _saves_nothing_readable(history)
        or any(map(_holds_message_back, history.turns))
        or any(_is_taken_back(decision) or _replaces_nothing(decision) for decision in history.decisions)
    )


def _holds_message_back(turn: RecordedTurn) -> bool:
    """Return whether a turn left its message for later, since the requests before it were still open.

    What the model replies to the message, a story cannot count on then. That it comes to the model, another check says.
    """
    before = turn.previous
    if turn.start.text is None or turn.decisions or turn.failed or turn.exchanges or before is None:
        return False
    return bool(turn.requested_calls) and turn.requested_calls == before.requested_calls


def _is_taken_back(decision: RecordedDecision) -> bool:
    """Return whether the turn of a decision failed, and its call was asked about again after that."""
    turn, call = decision.turn, decision.call
    if turn is None or call is None or not turn.failed or turn.refused:
        return False
    return any(n > turn.ended for request in call.requests for n, _ in request.listings)


def _replaces_nothing(decision: RecordedDecision) -> bool:
    """Return whether a decision was not staged in place of an earlier one about its call."""
    earlier = decision.call.decisions if decision.call is not None and decision.staging_failed else ()
    return any(each.staged and not each.staging_failed and each.n < decision.n for each in earlier)


def _asks_again(history: History) -> bool:
    """Return whether the agent asked its model again in the turn in which that failed, so that the turn went on."""
    return any(True for _ in _list_second_tries(history))


def _list_second_tries(history: History) -> Iterator[tuple[Exchange, Exchange]]:
    """Yield the failures of models after which the agent asked again in the same turn, each with that."""
    for turn in history.turns:
        for failed in turn.exchanges:
            later = (each for each in turn.exchanges if each.conversation == failed.conversation and each.n > failed.n)
            again = next(later, None)
            if isinstance(failed.reply, ModelFailure) and again is not None:
                yield failed, again


def _asks_one_by_one(history: History) -> bool:
    """Return whether requests came one after the other, tool by tool, or agent by agent, and not all together.

    What a story decides together comes to nothing then. That each is asked about, another check says.
    """
    replies: dict[tuple[int, str, int], list[RecordedCall]] = {}
    for call in history.calls:
        if call.is_gated:
            replies.setdefault((call.n, call.session, call.branch), []).append(call)
    pairs = [pair for calls in replies.values() for pair in combinations(calls, 2)]
    of_one_tool = _see_together(pair for pair in pairs if pair[0].tool == pair[1].tool)
    of_two_tools = _see_together(pair for pair in pairs if pair[0].tool != pair[1].tool)
    if False in of_one_tool | of_two_tools:
        return len(of_one_tool) < 2 and True not in of_two_tools
    return _asks_agent_by_agent(history)


def _asks_agent_by_agent(history: History) -> bool:
    """Return whether requests about calls of several agents that work on one reply were never open together.

    Or not all of these agents worked at the same time: some made their calls when others had been asked about theirs.
    """
    made = {(call.label, call.session, call.branch): call.n for call in history.calls}
    replies: dict[tuple[int | None, str, int], list[RecordedCall]] = {}
    for call in history.calls:
        if call.is_gated:
            outer = made.get((call.label.partition("/")[0], call.session, call.branch))
            replies.setdefault((outer, call.session, call.branch), []).append(call)
    pairs = [pair for calls in replies.values() for pair in combinations(calls, 2) if _work_side_by_side(*pair)]
    seen = _see_together(pairs)
    if True not in seen:
        return False in seen
    apart = [pair for pair in pairs if not _are_open_together(*pair)]
    return bool(apart) and all(any(n < later.n for n in _list_listings(first)) for first, later in apart)


def _work_side_by_side(first: RecordedCall, second: RecordedCall) -> bool:
    """Return whether two calls are of several agents, and neither of them is made inside of the other."""
    if first.conversation == second.conversation:
        return False
    return not any(inner.label.startswith(f"{outer.label}/") for inner, outer in ((first, second), (second, first)))


def _see_together(pairs: Iterable[tuple[RecordedCall, RecordedCall]]) -> set[bool]:
    """Return whether requests about two calls were open together, of all pairs of which one was asked about."""
    return {_are_open_together(*pair) for pair in pairs if pair[0].requests or pair[1].requests}


def _are_open_together(first: RecordedCall, second: RecordedCall) -> bool:
    """Return whether requests about two calls were listed at the same time."""
    return not _list_listings(first).isdisjoint(_list_listings(second))


def _list_listings(call: RecordedCall) -> set[int]:
    """Return where requests about a call were listed."""
    return {n for request in call.requests for n, _ in request.listings}


def _saves_nothing_readable(history: History) -> bool:
    """Return whether a text of the conversation could not be found in what was saved, as if that is encrypted.

    A session in which another text was found has saves that can be read, and does not hold this one.
    """
    readable = {change.session for change in history.events_of(StateRewritten)}
    for event in history.events_of(StepSkipped):
        if event.why.startswith(NOT_SAVED) and event.session not in readable:
            text = event.why.removeprefix(NOT_SAVED).strip(" '")
            before = (each for each in history.exchanges if each.session == event.session and each.n < event.n)
            if any(text in said for exchange in before for said in _list_texts(exchange)):
                return True
    return False


def _list_texts(exchange: Exchange) -> Iterator[str]:
    """Yield what is said in an exchange, and not what an item is or where it stands."""
    answer = exchange.answer
    said = [*exchange.items, *(answer.calls if answer is not None else ()), {"text": answer.say if answer else None}]
    yield from (str(item[name]) for item in said for name in _SAID if item.get(name) is not None)


_SAID = ("text", "tool", "id", "arguments")
"""The fields of items and calls that hold what a model, a tool or a caller said."""


def _list_refused_changes(history: History) -> list[StateRestored]:
    """Return the failed restores of saves that had been changed, or that an agent with another name had made."""
    changes = history.events_of(StateRewritten)
    return [
        restore.event
        for restore in history.restores
        if restore.event.error is not None
        and (any(_is_change_of(change, restore) for change in changes) or _is_renamed_since(history, restore))
    ]


def _is_renamed_since(history: History, restore: RecordedRestore) -> bool:
    """Return whether an agent has another name than when the save was made that is restored."""
    saved, event = restore.save, restore.event
    return saved is not None and any(
        _has_taken_part(history, name, saved.event.n, event.session)
        for name in _list_renamed_agents(history, event.session, saved.event.n, event.n)
    )


def _list_renamed_agents(history: History, session: str, earlier: int, later: int) -> set[str]:
    """Return the agents of a session that have another name at a later position than at an earlier one."""
    starts = (history.agent_start_at(n, session) for n in (earlier, later))
    was, now = ((start.renamed if start is not None else None) or {} for start in starts)
    return {name for name in {*was, *now} if was.get(name) != now.get(name)}


def _has_taken_part(history: History, agent: str, n: int, session: str) -> bool:
    """Return whether a state that was saved at position *n* may name an agent: it was asked, or is to be asked."""
    if agent == MAIN or any(
        each.agent == agent and each.session == session and each.n < n for each in history.exchanges
    ):
        return True
    called = (call.declaration for call in history.calls if call.session == session and call.n < n)
    return any(tool is not None and agent in (tool.runs, tool.hands_over_to) for tool in called)


def _is_change_of(change: StateRewritten, restore: RecordedRestore) -> bool:
    """Return whether the save that is restored had been changed."""
    saved, event = restore.save, restore.event
    if saved is None or (change.session, change.name) != (event.session, event.name):
        return False
    return saved.event.n < change.n < event.n


def _check_expectations(history: History) -> Iterator[Failure]:
    expect = history.header.expect if history.header is not None else {}
    is_otherwise = _is_played_otherwise(history)
    if "runs" in expect:
        ran = {_label_of(execution.call) for execution in history.executions if execution.call is not None}
        wrong = ran ^ {*expect["runs"]}
        if is_otherwise:
            wrong &= _list_settled_before(history)
        if wrong:
            yield _harness_failure(f"runs of {_join_labels(expect['runs'])}", f"runs of {_join_labels(ran)}", 1)
    if is_otherwise:
        return
    if "output" in expect:
        outputs = [turn.end for turn in history.turns if turn.end is not None and turn.outcome == "finished"]
        last = outputs[-1].output if outputs else None
        if last != expect["output"]:
            yield _harness_failure(f"the output {expect['output']!r}", repr(last), outputs[-1].n if outputs else 1)


def _list_settled_before(history: History) -> set[str]:
    """Return the calls whose outcome was told before the agent went another way, by asking a model again."""
    again = min((failed.n for failed, _ in _list_second_tries(history)), default=0)
    return {call.label for call in history.calls if any(delivery.n <= again for delivery in call.deliveries)}


def _label_of(call: RecordedCall) -> str:
    """Return what a scenario calls a call: of equal ones the one whose request was answered for it."""
    return next((request.label for request in call.requests if request.label is not None), call.label)


def _join_labels(labels: Iterable[str]) -> str:
    return ", ".join(sorted(labels)) or "nothing"
