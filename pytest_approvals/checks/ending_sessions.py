"""How sessions end up: of use when their caller hung up, and apart from each other."""

from __future__ import annotations

from pytest_approvals.journal.arguments import same_arguments
from pytest_approvals.journal.calls import CallSeen
from pytest_approvals.journal.history import History
from pytest_approvals.journal.wording import said_call

from .check import OK, Evaluations, Failure, check
from .circumstances import same_line


@check(
    "usable-after-hang-up",
    needs=("turn.end", "caller.hang_up"),
    sources=("langgenius/dify#41616", "pydantic/pydantic-ai#7977"),
)
def usable_after_hang_up(history: History) -> Evaluations:
    """
    A session must go on after its caller hung up: of the turns that follow, not all may fail.

    A browser tab that was closed must not cost the conversation. A message may be refused while the call that was cut
    short is asked about again; then the answer is taken.

    Passes:
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

    Passes, it waits for an answer about the call that was cut short:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        send Is it paid?
        fail UserError: c1 is not answered
        approve c1
        go
        run c1 -> paid 5
        done

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        send Is it paid?
        fail UserError: a run is going on
        send Hello?
        fail UserError: a run is going on
    """
    for turn in history.turns:
        if turn.hung_up is None:
            continue
        after = [later for later in history.turns if later.number > turn.number and same_line(turn, later)]
        if after and all(later.failed and later.hung_up is None for later in after):
            error = after[-1].end.error if after[-1].end is not None else None
            actual = f"every turn fails: {': '.join(error or ())}"
            witness = (turn.hung_up, *(later.ended for later in after))
            yield Failure(expected="some turn succeeds", actual=actual, witness=witness, session=turn.session)
        elif after:
            yield OK


@check(
    "sessions-isolated",
    needs=("turn.end", "model.request"),
    implies=(
        "only-model-calls-run",
        "request-shows-the-call",
        "approval-before-execution",
        "every-gated-call-asked",
        "model-input-well-formed",
        "approved-runs",
    ),
    sources=("openai/openai-agents-python#5123",),
)
def sessions_isolated(history: History) -> Evaluations:
    """
    Nothing of one session must appear in another one, or be decided there.

    Two people share an agent, not their conversations.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        session b
        send Pay 6
        model c1 pay(amount=6)
        pause c1
        approve c1
        go
        run c1 -> paid 6
        done
        end left: c1

    Fails, a request:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        session b
        send Pay 6
        shows c1 pay(amount=5)
        end left: c1

    Fails, a standing approval:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        always c1
        go
        run c1 -> paid 5
        done
        session b
        send Pay 6
        model c1 pay(amount=6)
        run c1 -> paid 6
        done
    """
    if len(history.sessions) < 2:
        return
    yield OK
    yield from _foreign_requests(history)
    yield from _foreign_runs(history)
    yield from _foreign_messages(history)


def _foreign_requests(history: History) -> Evaluations:
    for asked in history.requests:
        if asked.call is None:
            tool, arguments = str(asked.entry.get("tool")), asked.entry.get("arguments")
            other = _call_elsewhere(history, asked.session, tool, arguments)
            if other is not None:
                actual = f"a request about {said_call(tool, arguments)} of session {other.session or 'main'}"
                expected = "requests of its own calls"
                witness = (other.n, asked.n)
                yield Failure(expected=expected, actual=actual, witness=witness, session=asked.session)


def _foreign_runs(history: History) -> Evaluations:
    for run in history.executions:
        call = run.call
        if call is None:
            other = _call_elsewhere(history, run.session, run.tool, run.arguments)
            if other is not None:
                actual = f"{said_call(run.tool, run.arguments)} of session {other.session or 'main'} runs"
                witness = (other.n, run.n)
                yield Failure(expected="runs of its own calls", actual=actual, witness=witness, session=run.session)
        elif call.gated_at(run.n) and call.decision_at(run.n) is None:
            given = next((given for given in history.decisions if _may_have_leaked(given.call, call)), None)
            if given is not None and given.approves and given.n < run.n:
                actual = "it runs after an approval that another session gave"
                yield Failure(call=call, expected="a decision of its own", actual=actual, witness=(given.n, run.n))


def _may_have_leaked(decided: CallSeen | None, call: CallSeen) -> bool:
    return decided is not None and decided.session != call.session and decided.tool == call.tool


def _call_elsewhere(history: History, session: str, tool: str, arguments: object) -> CallSeen | None:
    others = (call for call in history.calls if call.session != session and call.tool == tool)
    return next((call for call in others if same_arguments(arguments, call.arguments, call.parameters)), None)


def _foreign_messages(history: History) -> Evaluations:
    said: dict[str, set[str]] = {}
    for turn in history.turns:
        if turn.start.text:
            said.setdefault(turn.session, set()).add(turn.start.text)
    for exchange in history.exchanges:
        own = said.get(exchange.session, set())
        others = {text for session, texts in said.items() if session != exchange.session for text in texts} - own
        texts = [str(item.get("text") or "") for item in exchange.items if item["kind"] == "user"]
        leaked = next((text for text in texts if text in others), None)
        if leaked is not None and "/" not in exchange.conversation:
            actual = f"{leaked!r} of another session in the model's input"
            expected = "messages of its own"
            yield Failure(expected=expected, actual=actual, witness=(exchange.n,), session=exchange.session)
