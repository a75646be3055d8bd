"""Family `telling`, reasoning: what a model thought before its calls is sent back to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_approvals.checks._check import OK, Evaluations, Failure, Level
from pytest_approvals.checks._queries import was_rewritten_between, was_trimmed_between
from pytest_approvals.checks._registry import check
from pytest_approvals.journal.events import ModelRefusal
from pytest_approvals.journal.history import Exchange, History, RecordedCall
from pytest_approvals.protocols.reasoning import RULES_ABOUT_REASONING


@check(
    "reasoning-kept",
    severity="stuck",
    needs=("model.request",),
    implies=("model-input-well-formed", "history-not-rewritten"),
    sources=(
        "vercel/ai#7099",
        "VRSEN/agency-swarm#367",
        "anomalyco/opencode#3077",
        "anthropics/anthropic-sdk-python#1598",
        "anomalyco/opencode#24083",
    ),
)
def reasoning_kept(history: History) -> Evaluations:
    """The reasoning that led to a call must be sent back with it: unchanged, once, and right before it.

    Providers recognize their reasoning by its signature or by its id, and refuse calls without it, so that an agent
    which loses it while it waits for a person cannot continue; what was approved has run by then, and nobody learns of
    it. Over a protocol, the provider decides: what it refuses is a failure, and what it takes without the reasoning is
    a warning, because the model thinks anew. A scripted model class takes everything, so there the rules of its
    provider decide. Chat Completions with `reasoning_content` (DeepSeek, Moonshot) refuses calls of the current turn
    without it. Messages refuses them too, and any thinking that was changed. Responses refuses an item whose reasoning
    is missing. After a new message of the user, older reasoning may be left out in Chat Completions and Messages.

    Passes:
        rules messages
        think t1: It is small
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        restore
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, between two calls:
        rules messages
        send Pay twice
        think t1: The first
        think t2 before c2: The second
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        approve c2
        go
        run c1 -> paid 5
        run c2 -> paid 6
        done

    Fails, dropped on restore:
        rules messages
        think t1: It is small
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        restore
        approve c1
        go
        run c1 -> paid 5
        unthink t1
        done

    Fails, behind its call:
        rules responses
        think t1: It is small
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        defer t1
        run c1 -> paid 5
        done

    Fails, another text:
        rules messages
        think t1: It is small
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        rethink t1 It is smaller
        run c1 -> paid 5
        done

    Fails, without its signature:
        rules messages
        think t1: ...
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        unsign t1
        run c1 -> paid 5
        done

    Fails, dropped where `reasoning_content` is wanted:
        rules chat
        think t1: It is small
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 rejected
        unthink t1
        done

    Warns, dropped in an earlier turn:
        rules messages
        think t1: It is small
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done
        unthink t1
        send Thanks
        done

    Warns, another text that nobody verifies:
        rules chat
        think t1: It is small
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        rethink t1 It is smaller
        run c1 -> paid 5
        done
    """
    for exchange in history.exchanges:
        replies: dict[int, list[tuple[int, RecordedCall]]] = {}
        for index, call in exchange.placed_calls:
            if call.answer.thoughts:
                replies.setdefault(id(call.answer), []).append((index, call))
        if replies and not _was_changed(history, exchange):
            thoughts = {reply: placed[0][1].answer.thoughts or () for reply, placed in replies.items()}
            known = [thought for each in thoughts.values() for thought in each]
            for reply, found in replies.items():
                placed = _place_equal_calls_in_order(exchange, found)
                for thought in thoughts[reply]:
                    yield from _judge_thought(history, exchange, thought, placed, known)


def _was_changed(history: History, exchange: Exchange) -> bool:
    """Return whether something else than the agent has taken away from the input, or changed what was saved."""
    return was_trimmed_between(history, 0, exchange.n, exchange.session) or was_rewritten_between(
        history, 0, exchange.n, exchange.session
    )


def _place_equal_calls_in_order(
    exchange: Exchange, placed: Sequence[tuple[int, RecordedCall]]
) -> list[tuple[int, RecordedCall]]:
    """Return the calls of one reply by index, equal ones in the order in which the model made them.

    Under ids of the agent's own, nothing else says which of them is which.
    """
    order = [made["label"] for made in placed[0][1].answer.calls]
    ordered: list[tuple[int, RecordedCall]] = []
    for index, call in placed:
        equal = [
            (at, other)
            for at, other in placed
            if exchange.items[at].get("id") != other.id and (other.tool, other.arguments) == (call.tool, call.arguments)
        ]
        labels = sorted((other.label for _, other in equal), key=order.index)
        is_equal = any(other is call for _, other in equal)
        ordered.append((sorted(at for at, _ in equal)[labels.index(call.label)] if is_equal else index, call))
    return sorted(ordered, key=lambda each: each[0])


def _judge_thought(
    history: History,
    exchange: Exchange,
    thought: Mapping[str, Any],
    placed: Sequence[tuple[int, RecordedCall]],
    known: Sequence[Mapping[str, Any]],
) -> Evaluations:
    """Judge one piece of reasoning in one input.

    Args:
        history: The journal.
        exchange: The model request with the input.
        thought: The reasoning as the model sent it.
        placed: The calls of its reply, with their indexes.
        known: All reasoning that led to calls in this input.
    """
    before = thought.get("before")
    anchor = next(((index, call) for index, call in placed if before in (None, call.label)), None)
    if anchor is None:
        return
    index, call = anchor
    problem = _find_problem(history, exchange, thought, index, [at for at, _ in placed if at < index], known)
    if problem is None:
        yield OK
        return
    what, actual = problem
    yield Failure(
        call=call,
        expected="the reasoning that led to it, unchanged and right before it, in the model's input",
        actual=actual,
        witness=(call.n, exchange.n),
        level=_find_level(history, exchange, what, index),
    )


def _find_problem(
    history: History,
    exchange: Exchange,
    thought: Mapping[str, Any],
    index: int,
    earlier: Sequence[int],
    known: Sequence[Mapping[str, Any]],
) -> tuple[str, str] | None:
    """Return what is wrong with a piece of reasoning, in a word and in a sentence; None if it is kept.

    Args:
        history: The journal.
        exchange: The model request with the input.
        thought: The reasoning as the model sent it.
        index: Where the call is in the input.
        earlier: Where the calls are that its reply made before it.
        known: All reasoning that led to calls in this input.
    """
    found = [at for at, item in enumerate(exchange.items) if _is_thought(item, thought)]
    if not found:
        previous = exchange.items[index - 1] if index else None
        is_other = previous is not None and not any(_is_thought(previous, other) for other in known)
        if previous is not None and previous["kind"] == "reasoning" and is_other:
            return "changed", f"another one is before it: {previous.get('text')!r}"
        return "missing", "it is missing"
    # Without ids, reasoning in the same words is told apart by its place only.
    if len(found) > sum(_is_thought(exchange.items[found[0]], other) for other in known):
        return "moved", "it is there twice"
    at = max((each for each in found if each < index), default=found[-1])
    if at > index:
        return "moved", "it is behind the call"
    between = exchange.items[at:index]
    if any(at < other for other in earlier) or any(item["kind"] in ("user", "result") for item in between):
        return "moved", "something else is between it and the call"
    item = exchange.items[at]
    if (item.get("text") or "") != (thought.get("text") or ""):
        return "changed", f"it says {item.get('text')!r}"
    return _find_signature_problem(history, item, thought)


def _find_signature_problem(
    history: History, item: Mapping[str, Any], thought: Mapping[str, Any]
) -> tuple[str, str] | None:
    signature = item.get("signature")
    # Not every protocol, and not every request, has signatures; then the journal has none.
    if thought.get("signature") in (None, signature):
        return None
    if signature is not None:
        return "resigned", "its signature is another one"
    # Responses knows stored reasoning by its id.
    return None if _protocol_of(history) == "responses" else ("unsigned", "its signature is missing")


def _is_thought(item: Mapping[str, Any], thought: Mapping[str, Any]) -> bool:
    if item["kind"] != "reasoning":
        return False
    if item.get("id") is not None:
        return bool(item["id"] == thought["id"])
    return any(item.get(name) is not None and item.get(name) == thought.get(name) for name in ("signature", "text"))


def _protocol_of(history: History) -> str:
    return str(history.header.variant.get("protocol", "native")) if history.header is not None else "native"


def _find_level(history: History, exchange: Exchange, what: str, index: int) -> Level:
    """Return whether the provider refuses an input with this problem."""
    if _protocol_of(history) != "native":
        return "must" if any(_list_refusals(exchange)) else "should"
    is_current = all(item["kind"] != "user" for item in exchange.items[index:])
    rules = history.header.wire_rules if history.header is not None else "none"
    refused = {
        "chat": what == "missing" and is_current,
        "responses": what in ("missing", "moved", "resigned"),
        "messages": is_current or what in ("changed", "unsigned", "resigned"),
    }
    return "must" if refused.get(rules) else "should"


def _list_refusals(exchange: Exchange) -> Iterator[str]:
    """Yield the rules about reasoning by which the provider refused an input."""
    if isinstance(exchange.reply, ModelRefusal):
        yield from (broken["rule"] for broken in exchange.reply.broken if broken["rule"] in RULES_ABOUT_REASONING)
