"""What a run reached."""

from __future__ import annotations

from pytest_approvals.journal.coverage import count_reached
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation
from pytest_approvals.scenario.vocabulary import REACHES

EVERYTHING = """
    tool pay(amount: integer) when amount > 1
    tool ask(input) never runs helper
    tool read(path) never of helper
    send Pay
    model c1 pay(amount=5); c2 pay(amount=6); c3 pay(amount=7); c4 pay(amount=8); c5 pay(amount=9)
    gate c1 yes
    pause c1, c2, c3, c4, c5
    save
    rewrite 5 6
    restore
    approve ?x
    go
    fail KeyError: x
    raw c1 "yes"
    go
    fail TypeError: yes
    approve c1
    reject c2
    edit c3 (amount=1)
    always c4
    stage
    never c5
    go
    run c1 ??
    run c3 !! no
    model o1 ask(input=first)
    model @o1/helper Done.
    tell o1 Done.
    down 500
    fail ModelDown: 500
    cancel
    trim 3
    send Well
    refusal call-without-result
    fail ModelRefused: 400
    send Well
    exhausted
    fail ScriptExhausted: main
    send Bye
    done
    send Read
    model c6 read(path=a)
    start c6
    elicit c6 Why?
    asked c6 Why? -> decline
    hangup c6
    send Crash
    model c7 pay(amount=10)
    pause c7
    save s9
    approve c7
    go
    stop before c7
    wake 10
    full
    crash before c7
    restore s9
    send And now?
    once
    fail OSError: the file is too large
    lose
    restore s9
    send And now?
    done
    stale
    restore s9
"""


def test_everything():
    """Every word that a scenario may use is counted."""
    assert {
        "paused": 2,
        "finished": 2,
        "failed": 8,
        "refused": 3,
        "surfaced": 6,
        "approved": 3,
        "rejected": 1,
        "edited": 1,
        "always": 1,
        "never": 1,
        "malformed": 1,
        "unknown": 1,
        "staged": 1,
        "cancelled": 1,
        "hung_up": 1,
        "crashed": 1,
        "stopped": 1,
        "disk_full": 1,
        "write_failed": 1,
        "lost": 1,
        "stale": 1,
        "ran": 4,
        "called": 8,
        "raised": 1,
        "asked_again": 1,
        "elicited": 1,
        "gated": 1,
        "saved": 2,
        "restored": 4,
        "trimmed": 1,
        "rewritten": 1,
        "model_failed": 1,
        "model_refused": 1,
        "exhausted": 1,
        "nested": 1,
    } == count_reached(read_history(parse_notation(EVERYTHING)))


def test_no_word_is_forgotten():
    """What is counted are the words of the scenario language."""
    assert set(REACHES) == set(count_reached(read_history(parse_notation(EVERYTHING))))


def test_nothing():
    """What did not happen is left out."""
    assert {} == count_reached(read_history([]))
