"""What excuses a run that does not reach what its scenario is about, by the history alone."""

from __future__ import annotations

import pytest

from pytest_approvals.checks._families.harness import _has_taken_part, _list_texts
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation

DELEGATED = """
tool ask(input: string) never runs helper
tool move() never to clerk
send Go
model o1 ask(input=Pay); h1 move()
model @o1/helper Paid.
run o1 -> Paid.
done
session b
send Hello
done
"""


def read(lines: str) -> History:
    """Returns the history of a journal in notation."""
    return read_history(parse_notation(lines))


def place_of(history: History, agent: str) -> int:
    """Returns where an agent was asked first."""
    return next(exchange.n for exchange in history.exchanges if exchange.agent == agent)


def test_the_agent_of_the_caller_has_always_taken_part() -> None:
    """A state names it before it was asked anything."""
    assert _has_taken_part(read("send Hello\ndone"), "main", 0, "")


@pytest.mark.parametrize("agent", ["helper", "clerk"])
def test_an_agent_takes_part_from_the_call_on_that_names_it(agent: str) -> None:
    """The call runs it, or hands the conversation over to it, and nobody asked it yet."""
    history = read(DELEGATED)
    called = next(call.n for call in history.calls)
    assert [False, False, True] == [_has_taken_part(history, agent, n, "") for n in (called - 1, called, called + 1)]


def test_an_agent_takes_part_from_when_it_is_asked() -> None:
    """No call need say so: its conversation is its own."""
    history = read("send Hello\nagent clerk\nmodel Hello.\nfinish Hello.")
    asked = place_of(history, "clerk")
    assert [False, True] == [_has_taken_part(history, "clerk", n, "") for n in (asked, asked + 1)]


def test_agents_of_another_session_have_not_taken_part() -> None:
    """A state holds one session."""
    history = read(DELEGATED)
    assert [True, False] == [_has_taken_part(history, "helper", 1000, session) for session in ("", "b")]


def test_an_agent_that_is_asked_in_another_session_has_not_taken_part() -> None:
    """Nor has one that was asked there without a call."""
    history = read("send Hello\nagent clerk\nmodel Hello.\nfinish Hello.\nsession b\nsend Hello\nagent main\ndone")
    assert [True, False] == [_has_taken_part(history, "clerk", 1000, session) for session in ("", "b")]


def test_an_agent_that_nobody_names_has_not_taken_part() -> None:
    """Other calls name nobody."""
    history = read("tool delegate(input: string) never runs other\n" + DELEGATED.strip())
    assert not _has_taken_part(history, "other", 1000, "")


def test_what_is_said_in_an_exchange_is_what_a_save_may_hold() -> None:
    """The input, the text of the reply and its calls; not the places of items."""
    history = read("send Pay 5\nmodel At once.; c1 pay(amount=5)\npause c1")
    assert ["Pay 5", "pay", "c1", "{'amount': 5}", "At once."] == list(_list_texts(history.exchanges[0]))


def test_an_exchange_without_a_reply_has_the_texts_of_its_input() -> None:
    """The model failed."""
    history = read("send Pay 5\ndown 500\nfail ModelDown: status 500")
    assert ["Pay 5"] == list(_list_texts(history.exchanges[0]))
