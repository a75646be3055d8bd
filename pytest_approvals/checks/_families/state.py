"""Family `state`: pending requests and decisions survive save and restore, and streams show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_approvals.checks._check import OK, Evaluations, Failure
from pytest_approvals.checks._families.telling_results import judge_delivery
from pytest_approvals.checks._queries import (
    PendingCalls,
    awaited_calls,
    cannot_run,
    has_reached_limit,
    is_on_branch,
    is_tool_missing,
    pending_after,
    settled_position,
    was_rewritten_between,
    was_shown_in_other_future,
)
from pytest_approvals.checks._registry import check
from pytest_approvals.checks._sayings import Saying, find_foreign_saying, list_sayings
from pytest_approvals.journal.events import AgentStart, ModelFailure, StateRestored, StreamShown
from pytest_approvals.journal.history import (
    END_POSITION,
    DeliveredResult,
    History,
    RecordedCall,
    RecordedDecision,
    RecordedRestore,
    RecordedSave,
    RecordedTurn,
    SurfacedRequest,
)


@check(
    "pending-survives",
    severity="lost-request",
    needs=("turn.end", "store.save", "store.restore"),
    implies=(
        "approved-runs",
        "asked-once",
        "unanswered-stays-pending",
        "result-delivered-once",
        "model-input-well-formed",
        "nothing-left-pending",
        "usable-after-refusal",
    ),
    sources=("pydantic/pydantic-ai#4830", "openai/openai-agents-python#2487"),
)
def pending_survives(history: History) -> Evaluations:
    """What is pending when the state is saved must be pending when it is restored, and nothing else.

    A request that is lost can never be answered; one that was settled must not come back. A state that cannot be saved
    or restored while requests are pending loses them, too, unless the tools or the names of the agents are different by
    then, or the save was changed. A request about a call whose tool is missing by then may be closed, unless the call
    has begun. A store that has lost a turn, or shows what it held before, holds what was pending then: what was decided
    since is unknown to it, and is asked again.

    Passes:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        save
        restore
        reject c1
        reject c2
        go
        tell c1 no
        tell c2 no
        done

    Passes, its tool is missing after the restart:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        without pay
        restore a:
        send Is it paid?
        untell c1
        tell c1 the tool is not available any more
        done

    Fails:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        save
        restore save-1: c2
        end left

    Passes, the store has lost the answer:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        done
        lose
        restore a: c1
        approve c1
        go
        run c1 -> paid 5
        done

    Fails, the store has lost the answer, and the request is gone:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        done
        lose
        restore a:
        end left

    Fails, the agent has another name, and the request is gone:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        renamed main cashier
        restore save-1:
        end left

    Fails, a settled one comes back:
        send Pay
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done
        save
        restore save-1: c1
        end left
    """
    for save in history.saves:
        if save.event.error is not None:
            yield from _check_failed_save(history, save)
    for restore in history.restores:
        save_taken = restore.save
        if save_taken is not None:
            yield from _check_restore(history, save_taken, restore)


def _check_failed_save(history: History, save: RecordedSave) -> Evaluations:
    pending = pending_after(history, save.turn, save.event.n)
    if pending is not None and pending.calls:
        actual = f"saving fails: {_format_error_pair(save.event.error)}"
        expected = f"the state is saved with {len(pending.calls)} pending"
        yield Failure(call=pending.calls[0], expected=expected, actual=actual, witness=(pending.n, save.event.n))


def _check_restore(history: History, save: RecordedSave, restore: RecordedRestore) -> Evaluations:
    pending = pending_after(history, save.turn, restore.n)
    if pending is None:
        return
    witness = (pending.n, save.event.n, restore.event.n)
    expected = "it is pending after the restore"
    if restore.event.error is not None:
        if pending.calls and not _was_changed(history, save, restore):
            actual = f"restoring fails: {_format_error_pair(restore.event.error)}"
            yield Failure(call=pending.calls[0], expected=expected, actual=actual, witness=witness)
        return
    listed = {call.label for call in restore.requested_calls}
    for call in pending.calls:
        if call.label in listed or _is_staged(history, call, save):
            continue
        # Nothing can run it any more; that the model is told so, other checks say.
        if is_tool_missing(history, call, call.tool, restore.event.n) and not call.executions:
            continue
        if (
            restore.event.mode.startswith("native.")
            and not restore.forgets
            and _was_decided(history, call, restore.event.n)
        ):
            continue
        actual = "it is not listed after the restore"
        yield Failure(call=call, expected=expected, actual=actual, witness=witness)
    yield from _check_returned_requests(pending, save, restore)


def _is_staged(history: History, call: RecordedCall, save: RecordedSave) -> bool:
    """Return whether a staged decision answers the request, so that it need not be listed."""
    # What is known of the call in the branch of the save, which may have begun after its turn.
    copies = [other for other in history.find_calls(call.label, call.session) if other.branch == save.branch]
    decisions = (decision for known in (call, *copies) for decision in known.decisions)
    return any(decision.staged and not decision.staging_failed for decision in decisions)


def _was_decided(history: History, call: RecordedCall, n: int) -> bool:
    """Return whether the call was decided in any branch: a durable store knows of it in all of them."""
    return any(other.decision_at(n) is not None for other in history.find_calls(call.label, call.session))


def _check_returned_requests(pending: PendingCalls, save: RecordedSave, restore: RecordedRestore) -> Evaluations:
    before = {call.label for call in pending.calls}
    for call in restore.requested_calls:
        if call.label not in before and _was_settled(call, restore.n):
            expected, actual = "nothing that is settled is pending", "it is pending after the restore"
            witness = (pending.n, save.event.n, restore.event.n)
            yield Failure(call=call, expected=expected, actual=actual, witness=witness)
    yield OK


def _was_settled(call: RecordedCall, n: int) -> bool:
    """Return whether it ran or the model was told of it before position *n*."""
    returned = any(execution.how == "returned" and (execution.ended or 0) < n for execution in call.executions)
    return returned or any(delivery.n < n for delivery in call.deliveries)


def _was_changed(history: History, save: RecordedSave, restore: RecordedRestore) -> bool:
    """Return whether the tools, the names of the agents, or the save, are different from when it was saved."""
    session = save.event.session
    # If the saves are appended to one another, the changed one is a part of all later ones.
    is_appended = history.header is not None and history.header.variant.get("history") == "append"
    if was_rewritten_between(history, 0 if is_appended else save.event.n, restore.event.n, session):
        return True
    before, after = history.agent_start_at(save.event.n, session), history.agent_start_at(restore.event.n, session)
    return before is not None and after is not None and _built_from(before) != _built_from(after)


def _built_from(build: AgentStart) -> tuple[set[str], object, object]:
    return set(build.tools), build.parameters, build.renamed


def _format_error_pair(error: Sequence[str] | None) -> str:
    return ": ".join(error or ())


@check(
    "decision-survives",
    severity="lost-effect",
    needs=("caller.stage", "store.restore", "turn.end", "tool.start"),
    implies=("approved-runs", "asked-once", "rejection-told", "reason-told", "unanswered-stays-pending", "run-ends"),
    sources=("openai/openai-agents-python#2487", "openai/openai-agents-python#4413"),
)
def decision_survives(history: History) -> Evaluations:
    """A decision that was put into the state must have its effect after the state was saved and restored.

    The person answered, and left; nobody asks them whether the answer arrived.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        stage
        save
        restore
        go
        run c1 -> paid 5
        done

    Passes, another decision replaces it:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        stage
        save
        restore
        reject c1
        go
        tell c1 rejected
        done

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        stage
        save
        restore
        go
        pause c1
        end left

    Fails, a rejection:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        stage
        save
        restore
        go
        pause c1
        end left
    """
    for call, decision, restored in _staged_decisions(history):
        turn = decision.turn
        if turn is None or turn.end is None or turn.outcome in ("failed", "timeout"):
            continue
        # What is settled by then is for `settled-stays-settled` to judge.
        if settled_position(call, decision) is not None:
            continue
        if _is_replaced(call, decision):
            yield OK
            continue
        listed = call.is_listed_at(turn.end.n)
        # What is decided after a turn with a rejection counts from then on.
        until = _next_decision_after(call, turn) if decision.rejects else END_POSITION
        ran = any(turn.start.n < execution.n < until for execution in call.executions)
        # What its tool asks is another question, and so is whether a call that has failed is tried once more.
        asks = any(execution.n > turn.start.n and execution.how in ("asked", "raised") for execution in call.executions)
        if listed and not (decision.approves and asks):
            actual = "it is asked about again"
        elif decision.approves and not ran and not cannot_run(history, call, decision):
            if _waits_for_siblings(history, call, turn.end.n):
                continue
            actual = "it does not run"
        elif decision.rejects and ran:
            actual = "it runs"
        else:
            yield OK
            continue
        witness = (decision.n, restored.n, turn.end.n)
        yield Failure(call=call, expected=f"the decision to {decision.verdict} counts", actual=actual, witness=witness)


def _next_decision_after(call: RecordedCall, turn: RecordedTurn) -> int:
    """Return where the next decision about a call was handed in after a turn had begun."""
    taken = (decision.handed_in_at or 0 for decision in call.decisions)
    return min((n for n in taken if n > turn.start.n), default=END_POSITION)


def _waits_for_siblings(history: History, call: RecordedCall, n: int) -> bool:
    """Return whether another call is asked about at position *n* that this one may have to wait for."""
    return any(awaited.is_listed_at(n) for awaited in awaited_calls(history, call))


def _staged_decisions(history: History) -> Iterator[tuple[RecordedCall, RecordedDecision, StateRestored]]:
    """Yield the last staged decision about each call that went through a save, with the restore."""
    restores = [restore.event for restore in history.restores if restore.event.error is None]
    for call in history.calls if restores else ():
        for decision in call.decisions[::-1]:
            if (
                not decision.staged
                or decision.staging_failed
                or not (decision.approves or decision.rejects)
                or decision.turn is None
            ):
                continue
            taken, start = decision.handed_in_at or 0, decision.turn.start.n
            restored = next((event for event in restores if taken < event.n < start), None)
            if restored is not None:
                yield call, decision, restored
            break


def _is_replaced(call: RecordedCall, decision: RecordedDecision) -> bool:
    """Return whether the turn in which a staged decision takes effect came with another one about the same call."""
    others = (other for other in call.decisions if other.turn is decision.turn and not other.staging_failed)
    return any((other.handed_in_at or 0) > (decision.handed_in_at or 0) for other in others)


@check(
    "round-trip-stable",
    severity="cosmetic",
    level="should",
    needs=("store.save", "store.restore"),
    sources=("pydantic/pydantic-ai#4830",),
)
def round_trip_stable(history: History) -> Evaluations:
    """A state that is restored and saved again at once should be the state that was saved.

    What differs was not restored, or grows with every restart. That is up to a framework, and not said of a person's
    own agent.

    Passes:
        send Hello
        done
        save
        digest abc
        restore
        again abc

    Warns:
        send Hello
        done
        save
        digest abc
        restore
        again abd
    """
    if history.header is not None and history.header.attached:
        return
    for restore in history.restores:
        save, again = restore.save, restore.event.again
        if save is None or save.event.digest is None or again is None:
            continue
        if save.event.digest == again:
            yield OK
        # Other tools or names, or a changed save, make another state.
        elif not _was_changed(history, save, restore):
            expected, session = f"the digest {save.event.digest}", save.event.session
            witness = (save.event.n, restore.event.n)
            yield Failure(expected=expected, actual=again, witness=witness, session=session)


@check(
    "stream-shows-everything",
    severity="mistold",
    needs=("caller.shown", "turn.end"),
    implies=("approved-runs", "every-gated-call-asked", "nothing-left-pending"),
    sources=("langchain-ai/langgraph#5409", "microsoft/agent-framework#5535"),
)
def stream_shows_everything(history: History) -> Evaluations:
    """The consumer of a whole streamed turn must have seen what it said and what is pending.

    A request that is in the state but neither in the stream nor in its result is one that a streaming client never
    shows. Of the kinds of things that a stream shows at all, it should leave nothing out and show nothing twice: text,
    calls, results, requests, those of agents inside. A result belongs into the turn in which its call ran, or in which
    the model is told of it, and must be the one that the model is told; a request belongs into the turn that lists it
    first, or answers it, and is not shown once it is closed. An agent may show its own ids, and none of a kind; ids
    that are not in the journal are not compared, and neither are those that calls of two agents have. An agent may ask
    its model again in the same turn after a stream broke; what was shown of that stream stays, and is not compared.

    Passes, a stream breaks, and the model is asked again:
        streaming
        send Hello
        down broken
        show text Hel
        model Hello.
        show text Hello.
        finish Hello.

    Fails, it shows other text when the model is asked again:
        streaming
        send Hello
        down broken
        show text Hel
        model Hello.
        show text Hel
        show text Hello.
        finish Hello.

    Fails, it shows only the rest then:
        streaming
        send Hello
        down broken
        show text Hel
        model Hello.
        show text lo.
        finish Hello.

    Passes, an agent inside numbers its calls like the one outside:
        tool delegate(input) never runs helper
        tool pay(amount: integer) never of helper
        streaming
        send Go
        model o1 delegate(input=Pay); c1 read(path=a)
        show call call-2
        show call call-1
        run c1@call-1 read(path=a) -> text of a
        show result call-1 text of a
        model @o1/helper o1/c1 pay(amount=5)
        show call call-1
        run o1/c1@call-1 pay(amount=5) -> paid 5
        show result call-1 paid 5
        model @o1/helper Paid.
        show result o1 Paid.
        tell o1 Paid.
        done

    Passes, the call that runs it has no id but in the stream:
        tool delegate(input) never runs helper
        tool pay(amount: integer) always of helper
        streaming
        send Go
        model o1 delegate(input=Pay)
        show call call-1
        model @o1/helper o1/c1 pay(amount=5)
        show call call-1
        pause o1/c1@call-1 pay(amount=5)
        end left

    Warns, it is not in the stream:
        tool delegate(input) never runs helper
        tool pay(amount: integer) always of helper
        streaming
        send Go
        model o1 delegate(input=Pay)
        model @o1/helper o1/c1 pay(amount=5)
        show call call-1
        pause o1/c1@call-1 pay(amount=5)
        end left

    Warns, a call is shown twice, and another one is not:
        streaming
        send Go
        model c1 read(path=a); c2 read(path=b)
        show call c1
        show call c1
        run c1 -> text of a
        run c2 -> text of b
        done

    Warns, two calls of one agent have one number:
        streaming
        send Go
        model c1 read(path=a); c2 read(path=b)
        run c1@call-1 read(path=a) -> text of a
        show result call-1 text of a
        run c2@call-1 read(path=b) -> text of b
        show result call-1 text of b
        done

    Passes:
        streaming
        send Pay 5
        model c1 pay(amount=5)
        show call c1
        show request c1
        pause c1
        approve c1
        go
        run c1 -> paid 5
        show result c1 paid 5
        model Done.
        show text Do
        show text ne.
        finish Done.

    Warns, a request that is closed:
        streaming
        send Pay 5
        model c1 pay(amount=5)
        show request c1
        pause c1
        approve c1
        go
        run c1 -> paid 5
        show request c1
        done
        send Thank you
        show request c1
        done

    Passes, a result that waits for a sibling:
        streaming
        send Go
        model c1 pay(amount=5); c2 read(path=a)
        run c2 -> text of a
        pause c1
        approve c1
        go
        run c1 -> paid 5
        show result c1 {"output": "paid 5"}
        show result c2 {"output": "text of a"}
        done

    Passes, its body asked again, and it is rejected while its sibling waits:
        streaming
        send Go
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        go
        run c1 ??
        pause c1, c2
        reject c1
        go
        show result c1 rejected
        pause c2
        reject c2
        go
        show result c2 rejected
        tell c1 rejected
        tell c2 rejected
        done

    Passes, an agent that gives ids of its own:
        streaming
        send Pay 5
        model c1 pay(amount=5)
        show call fc_1
        show request fc_1
        pause c1@fc_1 pay(amount=5)
        end left

    Passes, ids of its own that only the stream shows for calls that run no tool:
        tool delegate(input) never runs helper
        tool pay(amount: integer) always of helper
        streaming
        send Go
        model o1 delegate(input=Pay)
        show call fc_1
        model @o1/helper o1/c1 pay(amount=5)
        pause o1/c1
        end left

    Warns, one id of its own for two such calls:
        tool delegate(input) never runs helper
        tool pay(amount: integer) always of helper
        streaming
        send Go
        model o1 delegate(input=Pay); o2 delegate(input=Pay too)
        show call fc_1
        model @o1/helper o1/c1 pay(amount=5)
        pause o1/c1
        end left

    Fails, a request that is hidden:
        streaming
        send Pay 5
        model c1 pay(amount=5)
        finish
        save
        restore save-1: c1
        end left

    Fails, other text:
        streaming
        send Hello
        model Hello.
        show text Hel
        finish Hello.

    Fails, the result of another call:
        streaming
        send Go
        model c1 read(path=a); c2 read(path=b)
        run c1 -> text of a
        run c2 -> text of b
        show result c1 text of b
        show result c2 text of b
        done

    Warns, a result that is shown twice:
        streaming
        send Go
        model c1 read(path=a)
        run c1 -> text of a
        show result c1 text of a
        show result c1 text of a
        done

    Warns, a result that the stream leaves out:
        streaming
        send Go
        model c1 read(path=a); c2 read(path=b)
        run c1 -> text of a
        run c2 -> text of b
        show result c1 text of a
        done

    Warns, a result of an earlier turn:
        streaming
        send Go
        model c1 read(path=a)
        run c1 -> text of a
        show result c1 text of a
        done
        send Again
        show result c1 text of a
        done

    Warns, a request that is shown twice:
        streaming
        send Pay 5
        model c1 pay(amount=5)
        show request c1
        show request c1
        pause c1
        end left

    Warns, a request that the stream leaves out:
        streaming
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        show request c1
        pause c1, c2
        end left

    Warns, a call that the stream leaves out:
        streaming
        send Go
        model c1 read(path=a); c2 read(path=b)
        show call c1
        run c1 -> text
        run c2 -> text of b
        done
    """
    streamed = [(turn, [event.id for event in turn.stream if event.what == "call"]) for turn in history.turns]
    some_text = any(event.what == "text" for turn in history.turns for event in turn.stream)
    some_calls = any(ids for _, ids in streamed)
    results = {event.id for turn in history.turns for event in turn.stream if event.what == "result"}
    sayings = list_sayings(history) if results else {}
    kinds = _kinds_of_shown_requests(history, history.turns)
    ends = {turn.end.n for turn in history.turns if turn.end is not None}
    # Requests that no turn listed at its end: the stream's consumer may never have seen them.
    late = [request for request in history.requests if request.n not in ends]
    for turn, ids in streamed:
        if not turn.start.stream or turn.outcome not in ("paused", "finished") or turn.overlaps:
            continue
        yield OK
        if late:
            yield from _find_hidden_requests(history, turn, late)
        if some_text:
            yield _compare_text(history, turn)
        if some_calls:
            yield _find_unstreamed_call(history, turn, ids)
        if results:
            yield from _judge_streamed_results(history, turn, results, sayings)
        if kinds:
            yield from _judge_streamed_requests(turn, kinds)
            yield from _find_stale_requests(history, turn)


def _judge_streamed_results(
    history: History, turn: RecordedTurn, known: set[str | None], sayings: Mapping[str, Sequence[Saying]]
) -> Evaluations:
    """Yield results that a stream leaves out, shows twice, shows in another turn, or shows wrongly.

    Calls of other agents, hosted calls and ids that are used twice are not counted, as in `_find_unstreamed_call`.

    Args:
        history: The history.
        turn: The streamed turn.
        known: The ids of all results that streams of the run show.
        sayings: What the calls of the run returned.
    """
    own = [call for call in history.calls if is_on_branch(turn, call) and call.id is not None]
    used = Counter(call.id for call in own)
    shared = _list_shared_ids(history, own)
    # An agent whose results have other ids than its calls shows none that could be compared.
    if not any(known & _ids_of(call) for call in own):
        return
    named = {seen for call in history.calls for seen in _ids_of(call)}
    streams = (event for other in history.turns for event in other.stream)
    strangers = sum(event.what == "result" and event.id not in named for event in streams)
    for call in own:
        if "/" in call.conversation or call.kind == "hosted_mcp" or used[call.id] > 1 or shared & _ids_of(call):
            continue
        shown = _results_shown(turn, call)
        ended = [run.turn for run in call.executions if run.how in ("returned", "raised")]
        came = any(each is turn for each in ended)
        told = [exchange.n for exchange in turn.exchanges]
        is_told = bool(call.deliveries and call.deliveries[0].n in told)
        # A hand-over, and a call that runs an agent, may end in another turn than it began.
        tool = call.declaration
        is_agent = tool is not None and (tool.runs is not None or tool.hands_over_to is not None)
        if shown:
            # Of a call whose body did not come to its end, what is shown is how it was closed, in a later turn.
            was_closed = not ended and all(run.turn is not turn for run in call.executions)
            belongs = came or is_told or is_agent or was_closed
            yield _judge_shown_result(history, call, shown, sayings, belongs=belongs)
        elif came and is_told and is_agent and strangers:
            # What hands over or runs an agent is entered by no id, so its own one may be known from nowhere else.
            strangers -= 1
        elif came and is_told and not (is_agent and any(_results_shown(other, call) for other in history.turns)):
            witness = (call.executions[-1].ended or 0, call.deliveries[0].n)
            yield Failure(
                call=call,
                expected="its result in the stream",
                actual="it is not in the stream",
                witness=witness,
                level="should",
            )


def _results_shown(turn: RecordedTurn, call: RecordedCall) -> list[StreamShown]:
    """Return where the stream of a turn shows a result of a call."""
    return [event for event in turn.stream if event.what == "result" and event.id in _ids_of(call)]


def _judge_shown_result(
    history: History,
    call: RecordedCall,
    shown: Sequence[StreamShown],
    sayings: Mapping[str, Sequence[Saying]],
    *,
    belongs: bool,
) -> Failure | None:
    for event in shown:
        as_told = DeliveredResult(n=event.n, text=event.text, item=0)
        wrong = None
        if event.text is not None:
            wrong = judge_delivery(history, call, as_told) or find_foreign_saying(history, call, as_told, sayings)
        if wrong is not None:
            actual = f"the stream shows {event.text!r}"
            return Failure(call=call, expected=wrong.expected, actual=actual, witness=wrong.witness)
    last = shown[-1].n
    if len(shown) > 1:
        actual = f"{len(shown)} times in the stream"
        return Failure(call=call, expected="its result once", actual=actual, witness=(last,), level="should")
    if not belongs:
        actual = "it is in the stream of a turn in which it did not come"
        return Failure(call=call, expected="its result in its own turn", actual=actual, witness=(last,), level="should")
    return OK


_RequestKind = tuple[str | None, bool]
"""Of functions or of hosted calls, and whether an agent inside asks."""


def _kind_of(request: SurfacedRequest) -> _RequestKind:
    return request.entry.get("kind"), request.call is not None and "/" in request.call.conversation


def _kinds_of_shown_requests(history: History, turns: Iterable[RecordedTurn]) -> set[_RequestKind]:
    """Return of which kinds streams show requests, by the ids that answers name."""
    kinds = {request.entry.get("id"): _kind_of(request) for request in history.requests}
    shown = (event.id for turn in turns for event in turn.stream if event.what == "request")
    return {kinds[seen] for seen in shown if seen in kinds}


def _judge_streamed_requests(turn: RecordedTurn, kinds: set[_RequestKind]) -> Evaluations:
    """Yield requests that a turn lists first and its stream does not show once.

    The stream of the turn that answers a request may show it again.
    """
    assert turn.end is not None
    end = turn.end.n
    shown = Counter(event.id for event in turn.stream if event.what == "request")
    listed = Counter(entry.get("id") for entry in turn.end.requests)
    for call in turn.requested_calls:
        for request in call.requests:
            number = shown[request.entry.get("id")]
            # Two requests with one id are two in the stream, too.
            is_right = number == listed[request.entry.get("id")]
            if request.n == end and not is_right and _kind_of(request) in kinds:
                actual = "it is not in the stream" if not number else f"{number} times in the stream"
                yield Failure(
                    call=call, expected="its request once in the stream", actual=actual, witness=(end,), level="should"
                )


def _find_stale_requests(history: History, turn: RecordedTurn) -> Evaluations:
    """Yield requests that a stream shows though they were closed before its turn, and nobody answers them in it."""
    assert turn.end is not None
    current = {entry.get("id") for entry in turn.end.requests}
    current |= {decision.event.id for decision in turn.decisions}
    known = {(request.session, request.entry.get("id")): request for request in history.requests}
    for event in turn.stream:
        request = known.get((turn.session, event.id)) if event.what == "request" and event.id not in current else None
        if request is not None and request.n < turn.start.n:
            yield Failure(
                call=request.call,
                expected="no request that is closed",
                actual="the stream shows it again",
                witness=(request.listings[-1][0], event.n),
                level="should",
            )


def _is_of_other_future(history: History, turn: RecordedTurn, request: SurfacedRequest) -> bool:
    """Return whether a request was shown in another future of a save, and does not wait where *turn* ended."""
    assert turn.end is not None
    call, end = request.call, turn.end.n
    if call is None or (call.branch == turn.branch and not any(told.n < end for told in call.deliveries)):
        return False
    return was_shown_in_other_future(history, request, request.n, request.entry)


def _find_hidden_requests(history: History, turn: RecordedTurn, late: list[SurfacedRequest]) -> Evaluations:
    """Yield requests that surface only after the stream ended, before anything else happens."""
    assert turn.end is not None
    end = turn.end.n
    following = (later.start.n for later in history.turns if later.session == turn.session and later.start.n > end)
    until = next(following, END_POSITION)
    # What a save from before the end lists, or one of a turn at the same time, is of another history.
    others = {
        each.event.n
        for each in history.restores
        if each.save is not None and (each.save.event.n < end or each.save.branch != turn.branch)
    }
    for request in late:
        if request.n in others or _is_of_other_future(history, turn, request):
            continue
        if end < request.n < until and request.session == turn.session and not _is_known(request, turn):
            actual = "it is pending after the turn, and was not in the stream or its result"
            expected = "the request in the stream or its result"
            yield Failure(call=request.call, expected=expected, actual=actual, witness=(end, request.n))


def _is_known(request: SurfacedRequest, turn: RecordedTurn) -> bool:
    """Return whether it was asked about before under another number, or shown in the stream."""
    call = request.call
    if call is not None and any(other.n < request.n for other in call.requests):
        return True
    return any(event.what == "request" and event.id == request.entry.get("id") for event in turn.stream)


def _compare_text(history: History, turn: RecordedTurn) -> Failure | None:
    """Compare the streamed text with what the caller's own agent said, or with what all agents said."""
    said = [(each.conversation, each.answer.say or "") for each in turn.exchanges if each.answer is not None]
    seen = "".join(event.text or "" for event in turn.stream if event.what == "text" and not _is_broken(turn, event.n))
    main = [text for conversation, text in said if "/" not in conversation]
    # A stream may also show some of what nested agents say.
    is_framed = len(seen) <= sum(len(text) for _, text in said) or has_reached_limit(history, turn)
    if _contains_in_order(main, seen) and is_framed:
        return OK
    witness = [event.n for event in turn.stream if event.what == "text"][:1] or [turn.start.n]
    assert turn.end is not None
    return Failure(expected=repr("".join(main)), actual=f"the stream shows {seen!r}", witness=(*witness, turn.end.n))


def _is_broken(turn: RecordedTurn, n: int) -> bool:
    """Return whether what a stream shows at a position is of a reply that broke off."""
    asked = next((each for each in reversed(turn.exchanges) if each.n < n), None)
    return asked is not None and isinstance(asked.reply, ModelFailure) and asked.reply.shown is not None


def _contains_in_order(pieces: list[str], text: str) -> bool:
    at = 0
    for piece in pieces:
        start = text.find(piece, at)
        if start < 0:
            return False
        at = start + len(piece)
    return True


def _find_unstreamed_call(history: History, turn: RecordedTurn, shown: list[str | None]) -> Failure | None:
    """Return a failure for a call that a stream leaves out or shows twice, if any stream of the run shows calls.

    Calls of other agents, hosted calls and ids that are used twice are not counted: streams differ in what they show.
    """
    made = [call for call in history.calls if call.turn is turn and call.branch == turn.branch and call.id is not None]
    ids = [call.id for call in made]
    shared = _list_shared_ids(history, made)
    known = {seen for call in history.calls for seen in _ids_of(call)}
    # An id of the agent's own that nothing else shows stands for a call that is not in the stream otherwise.
    # So does one that is shown more often than there are calls with it.
    owners = Counter(seen for call in made for seen in _ids_of(call))
    counts = Counter(shown)
    strangers = sum(max(0, counts[seen] - owners[seen]) for seen in counts if seen in owners or seen not in known)
    for call in made:
        if "/" in call.conversation or call.kind == "hosted_mcp" or ids.count(call.id) > 1 or shared & _ids_of(call):
            continue
        count = sum(map(shown.count, _ids_of(call)))
        if not count and strangers:
            strangers -= 1
        elif count != 1:
            actual = "it is not in the stream" if not count else f"{count} times in the stream"
            return Failure(call=call, expected="once in the stream", actual=actual, witness=(call.n,), level="should")
    return OK


def _list_shared_ids(history: History, calls: Sequence[RecordedCall]) -> set[str | None]:
    """Return the ids that calls of several conversations have, as of agents that number their calls.

    They include those by which models are shown the calls.
    """
    shown: dict[int, set[str | None]] = {}
    for exchange in history.exchanges:
        for index, placed in exchange.placed_calls:
            shown.setdefault(id(placed), set()).add(exchange.items[index].get("id"))
    conversations: dict[str | None, set[str]] = {}
    for call in calls:
        for each in _ids_of(call) | shown.get(id(call), set()):
            conversations.setdefault(each, set()).add(call.conversation)
    return {each for each, known in conversations.items() if len(known) > 1}


def _ids_of(call: RecordedCall) -> set[str | None]:
    """Return the ids of a call: the model's, and those that the agent shows to people and tools."""
    return {
        call.id,
        *(request.entry.get("call_id") for request in call.requests),
        *(execution.call_id for execution in call.executions),
    }
