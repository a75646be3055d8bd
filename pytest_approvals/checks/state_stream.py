"""What a stream shows of a turn."""

from __future__ import annotations

from pytest_approvals.journal.calls import END, Asked, CallSeen
from pytest_approvals.journal.history import History
from pytest_approvals.journal.turns import TurnSeen

from .check import OK, Evaluations, Failure, check


@check(
    "stream-shows-everything",
    needs=("caller.shown", "turn.end"),
    implies=("approved-runs", "every-gated-call-asked", "nothing-left-pending"),
    sources=("langchain-ai/langgraph#5409", "microsoft/agent-framework#5535"),
)
def stream_shows_everything(history: History) -> Evaluations:
    """
    Who consumes a streamed turn to its end must have seen what it said and what is pending.

    A request that is in the state but neither in the stream nor in its result is one that a streaming client never
    shows. Of what a stream shows at all, it should leave nothing out and show nothing twice.

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
        show result c1
        model Done.
        show text Do
        show text ne.
        finish Done.

    Passes, an agent that gives ids of its own:
        streaming
        send Pay 5
        model c1 pay(amount=5)
        show call fc_1
        show request fc_1
        pause c1@fc_1 pay(amount=5)
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

    Warns, a call that the stream leaves out:
        streaming
        send Go
        model c1 read(path=a); c2 read(path=b)
        show call c1
        run c1 -> text
        run c2 -> text of b
        done
    """
    streamed = [(turn, *_seen(turn)) for turn in history.turns if turn.shown or turn.start.stream]
    some_text = any(text is not None for _, text, _ in streamed)
    some_calls = any(ids for _, _, ids in streamed)
    ends = {turn.end.n for turn in history.turns if turn.end is not None}
    late = [asked for asked in history.requests if asked.n not in ends]
    for turn, text, ids in streamed:
        if not turn.start.stream or turn.outcome not in ("paused", "finished") or turn.overlaps:
            continue
        yield OK
        if late:
            yield from _hidden(history, turn, late)
        if some_text:
            yield _other_text(turn, text or "")
        if some_calls:
            yield _left_out(history, turn, ids)


def _seen(turn: TurnSeen) -> tuple[str | None, list[str | None]]:
    """Gives what a stream showed: its text, None where there was none at all, and the ids of calls."""
    text: str | None = None
    ids: list[str | None] = []
    for event in turn.shown:
        if event.what == "text":
            text = (text or "") + (event.text or "")
        elif event.what == "call":
            ids.append(event.id)
    return text, ids


def _hidden(history: History, turn: TurnSeen, late: list[Asked]) -> Evaluations:
    """Requests that surface only after the stream ended, before anything else happens."""
    assert turn.end is not None
    end = turn.end.n
    following = (each.start.n for each in history.turns if each.session == turn.session and each.start.n > end)
    until = next(following, END)
    for asked in late:
        if end < asked.n < until and asked.session == turn.session and not _is_known(asked, turn):
            actual = "it is pending after the turn, and was not in the stream or its result"
            expected = "the request in the stream or its result"
            yield Failure(call=asked.call, expected=expected, actual=actual, witness=(end, asked.n))


def _is_known(asked: Asked, turn: TurnSeen) -> bool:
    """Whether it was asked about before under another number, or shown in the stream."""
    call = asked.call
    if call is not None and any(other.n < asked.n for other in call.asked):
        return True
    return any(event.what == "request" and event.id == asked.entry.get("id") for event in turn.shown)


def _other_text(turn: TurnSeen, seen: str) -> Failure | None:
    """The pieces together are what the caller's own agent said, or what all agents said."""
    answers = [exchange for exchange in turn.exchanges if exchange.answer is not None]
    main = [exchange.answer.say or "" for exchange in answers if exchange.answer and "/" not in exchange.conversation]
    everything = [exchange.answer.say or "" for exchange in answers if exchange.answer]
    if seen in ("".join(main), "".join(everything)):
        return OK
    if _in_order(main, seen) and len(seen) <= sum(map(len, everything)):
        return OK
    witness = [event.n for event in turn.shown if event.what == "text"][:1] or [turn.start.n]
    assert turn.end is not None
    return Failure(expected=repr("".join(main)), actual=f"the stream shows {seen!r}", witness=(*witness, turn.end.n))


def _in_order(pieces: list[str], text: str) -> bool:
    at = 0
    for piece in pieces:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _left_out(history: History, turn: TurnSeen, shown: list[str | None]) -> Failure | None:
    """
    A call that a stream leaves out or shows twice, where some stream of the run shows calls at all.

    Calls of other agents, hosted calls and ids that are used twice are not counted: streams differ in what they show.
    """
    made = [call for call in history.calls if call.turn is turn and call.fork == turn.fork and call.id is not None]
    ids = [call.id for call in made]
    for call in made:
        if "/" in call.conversation or call.kind == "hosted_mcp" or ids.count(call.id) > 1:
            continue
        count = sum(map(shown.count, _ids(call)))
        if count != 1:
            actual = "it is not in the stream" if not count else f"{count} times in the stream"
            return Failure(call=call, expected="once in the stream", actual=actual, witness=(call.n,), level="should")
    return OK


def _ids(call: CallSeen) -> set[str | None]:
    """Gives the ids of a call: the model's, and those that the agent gives it before people and tools."""
    return {call.id, *(asked.entry.get("call_id") for asked in call.asked), *(run.call_id for run in call.runs)}
