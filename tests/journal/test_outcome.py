"""The outcome of a run, without what differs between variants."""

from __future__ import annotations

import pytest

from pytest_approvals.journal.notation import parse_notation
from pytest_approvals.journal.outcome import extract_outcome

PLAIN = """
    mode none
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    approve c1
    go
    run c1 -> paid 5
    done
"""

SAME = {
    "saved and restored": PLAIN.replace("mode none", "").replace("pause c1", "pause c1\nsave\nrestore"),
    "streamed": PLAIN.replace("send", "streaming\nsend").replace("pause c1", "show request c1\npause c1"),
    "a policy that was asked": PLAIN.replace("pause c1", "gate c1 yes\npause c1"),
}

OTHER = {
    "another decision": PLAIN.replace("approve c1", "reject c1"),
    "another run": PLAIN.replace("run c1", "run c1 pay(amount=6)"),
    "another result": PLAIN.replace("paid 5", "paid 6"),
    "no run": PLAIN.replace("run c1 -> paid 5", "tell c1 paid 5"),
    "another output": PLAIN.replace("done", "model Done.\nfinish Fine."),
}


def outcome(lines):
    return [written for _, written in extract_outcome(parse_notation(lines))]


@pytest.mark.parametrize("lines", SAME.values(), ids=SAME)
def test_it_is_the_same(lines):
    """Where the state goes, what a stream shows and how often a policy is asked makes no difference."""
    assert outcome(PLAIN) == outcome(lines)


@pytest.mark.parametrize("lines", OTHER.values(), ids=OTHER)
def test_it_is_another(lines):
    """What was decided, run, told and said makes one."""
    assert outcome(PLAIN) != outcome(lines)


def test_words_of_errors():
    """Errors count by their type."""
    failing = "send Hello\nfail KeyError: {}"

    assert outcome(failing.format("one")) == outcome(failing.format("another"))
    assert outcome(failing.format("one")) != outcome("send Hello\nfail ValueError: one")


def test_ids_of_the_agent():
    """Ids that the agent made up are numbered as they come."""
    lines = "send Go\nmodel c1@- read(path=a)\nrename c1 {}\nrun c1 -> text\ndone"

    assert outcome(lines.format("abc")) == outcome(lines.format("xyz"))


TOLD = PLAIN.replace("run c1 -> paid 5", "start c1\n gives c1 5\n tell c1 paid 5, {}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at 2026-11-29T09:05:00.123Z", "at 2026-11-30 10:00:00+01:00"),
        ("in 0.0012 seconds", "in 13 seconds"),
        ("after 12ms", "after 0.5ms"),
        ('{"duration_seconds": 0.1, "ok": true}', '{"duration_seconds": 12, "ok": true}'),
    ],
)
def test_times_in_texts(one, other):
    """When a call ran, and how long, as its result says it, does not count."""
    assert outcome(TOLD.format(one)) == outcome(TOLD.format(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("at 2026-11-29T09:05:00Z", "at 12026-11-29T09:05"),
        ("in 12 steps", "in 13 steps"),
        ("at v1.5 s", "at v1.6 s"),
        ('{"durations": "1"}', '{"durations": "2"}'),
    ],
)
def test_other_numbers_in_texts(one, other):
    """A number that is no time does count."""
    assert outcome(TOLD.format(one)) != outcome(TOLD.format(other))


SIDE_BY_SIDE = """
    tool delegate(input: string) never runs helper
    tool pay(amount: integer) always of helper
    send Pay both
    model o1 delegate(input=one); o2 delegate(input=two)
    model @o1/helper o1/c1 pay(amount=1)
    model @o2/helper o2/c1 pay(amount=2)
    pause o1/c1, o2/c1
    approve o1/c1
    approve o2/c1
    go
    run o1/c1 -> paid 1
    run o2/c1 -> paid 2
    model @o1/helper One.
    model @o2/helper Two.
    done
"""


def test_agents_that_run_at_the_same_time_come_in_any_order():
    """Which of two agents goes on first makes no difference; what each of them does makes one."""
    swapped = SIDE_BY_SIDE.replace(
        "model @o1/helper One.\n    model @o2/helper Two.", "model @o2/helper Two.\n    model @o1/helper One."
    )

    assert swapped != SIDE_BY_SIDE
    assert outcome(SIDE_BY_SIDE) == outcome(swapped)
    assert outcome(SIDE_BY_SIDE) != outcome(SIDE_BY_SIDE.replace("@o2/helper Two.", "@o2/helper One."))


TWO_CALLS = """
    send Read both
    model c1 read(path=a); c2 read(path=b)
    start {}
    gives {} "text"
    start {}
    gives {} "text"
    tell c1 text
    tell c2 text
    done
"""


def test_calls_of_one_reply_run_in_any_order():
    """Which of two calls runs first makes no difference; that each of them runs makes one."""
    one_way = TWO_CALLS.format("c1", "c1", "c2", "c2")
    other_way = TWO_CALLS.format("c2", "c2", "c1", "c1")

    assert outcome(one_way) == outcome(other_way)
    assert outcome(one_way) != outcome(one_way.replace('start c2\n    gives c2 "text"\n', ""))


def test_a_decision_names_its_call():
    """By which of its ids the request was answered makes no difference: one that is listed again may have another."""
    events = parse_notation(PLAIN)
    renamed = parse_notation(PLAIN)
    for event in renamed:
        if event.kind == "caller.decide":
            event.id = "another id of the same request"

    assert [written for _, written in extract_outcome(events)] == [written for _, written in extract_outcome(renamed)]


def test_a_signal_comes_while_calls_start():
    """Whether the last of several calls starts before a signal or after it makes no difference."""
    lines = 'send Go\nmodel c1 read(path=a); c2 read(path=b)\n{}\ngives c1 "text"\ngives c2 "text"\ndone'
    early, late = "start c1\nstart c2\nsignal now", "start c1\nsignal now\nstart c2"

    assert outcome(lines.format(early)) == outcome(lines.format(late))
    assert outcome(lines.format(early)) != outcome(lines.format("start c1\nstart c2"))


def test_calls_of_an_agent_inside_end_in_any_order():
    """Which of the calls of a sub-agent ends first makes no difference; what its model is told next makes one."""
    lines = (
        "tool ask(input: string) never runs helper\nsend Go\nmodel o1 ask(input=Read)\n"
        "model @o1/helper o1/c1 read(path=a); o1/c2 read(path=b)\nstart o1/c1\nstart o1/c2\n{}\n"
        "tell o1/c1 a\ntell o1/c2 b\n"
        "model @o1/helper {}\ntell o1 Read.\ndone"
    )
    first, second = 'gives o1/c1 "a"', 'gives o1/c2 "b"'

    assert outcome(lines.format(f"{first}\n{second}", "Read.")) == outcome(lines.format(f"{second}\n{first}", "Read."))
    assert outcome(lines.format(f"{first}\n{second}", "Read.")) != outcome(lines.format(f"{first}\n{second}", "No."))


TWO_TURNS = """
    send Pay both
    model c1 pay(amount=1); c2 pay(amount=2)
    pause c1, c2
    approve c1
    go
    approve c2
    go
    run c1 -> paid 1
    run c2 -> paid 2
    model Done.
    2: finish Done.
    3: finish Done.
"""


def test_turns_that_go_on_at_the_same_time_end_in_any_order():
    """Which of two ends first makes no difference; how each of them ends makes one."""
    first, second = "2: finish Done.", "3: finish Done."
    swapped = TWO_TURNS.replace(f"{first}\n    {second}", f"{second}\n    {first}")

    assert swapped != TWO_TURNS
    assert outcome(TWO_TURNS) == outcome(swapped)
    assert outcome(TWO_TURNS) != outcome(TWO_TURNS.replace(second, "3: fail KeyError: c2"))


TWO_SESSIONS = """
    tool pay(amount: integer) always
    send Pay for Ann
    model c1 pay(amount=5)
    pause c1
    session bob
    send Pay for Bob
    model d1 pay(amount=6)
    pause d1
    session
    approve c1
    go
    start c1
    session bob
    approve d1
    go
    start d1
    {}
    {}
    session
    done
    session bob
    done
"""
ANN = 'session\n    gives c1 "paid 5"\n    tell c1 paid 5\n    model Ann paid.'
BOB = 'session bob\n    gives d1 "paid 6"\n    tell d1 paid 6\n    model Bob paid.'


def test_sessions_whose_turns_overlap_go_on_in_any_order():
    """Which of two sessions goes on first makes no difference; what each of them does makes one."""
    one_way = TWO_SESSIONS.format(ANN, BOB)

    assert outcome(one_way) == outcome(TWO_SESSIONS.format(BOB, ANN))
    assert outcome(one_way) != outcome(TWO_SESSIONS.format(ANN, BOB.replace("tell d1 paid 6", "tell d1 paid 5")))


def test_sessions_whose_turns_do_not_overlap_keep_their_order():
    """The caller decides who is next."""
    first, second = "send Hi\nmodel Hello.\ndone", "session bob\nsend Ho\nmodel Hello.\ndone"

    assert outcome(f"{first}\n{second}") != outcome(f"{second}\nsession\n{first}")
