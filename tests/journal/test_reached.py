"""What a run reached, in the words of `reaches`."""

from __future__ import annotations

from pytest_approvals.journal.history import History
from pytest_approvals.journal.notation import journal
from pytest_approvals.journal.reached import reached
from pytest_approvals.scenario.words import REACHES


def counts(text: str) -> dict[str, int]:
    return reached(History.of(journal(text)))


def test_what_happened_is_counted() -> None:
    """Calls, requests, decisions, executions, and turns by their ends."""
    assert {"called": 2, "surfaced": 2, "approved": 1, "rejected": 1, "ran": 1, "paused": 1, "finished": 1} == counts(
        """
        send Pay
        model c1 pay(amount=1); c2 pay(amount=2)
        pause c1, c2
        approve c1
        reject c2
        go
        run c1 -> paid 1
        tell c2 rejected
        done
        """
    )


def test_what_did_not_happen_is_left_out() -> None:
    """A conversation without any call has reached an end and nothing else."""
    assert {"finished": 1} == counts("send Hello\ndone")


def test_a_call_is_counted_whatever_became_of_it() -> None:
    """The model made two calls, also where the turn failed over them."""
    found = counts("send Pay\nmodel c1 pay(amount=1); c1#2 pay(amount=2)\nfail DuplicateId: c1")
    assert {"called": 2, "failed": 1} == found


def test_a_turn_that_reached_nobody_was_refused() -> None:
    """A decision about nothing is unknown, and the turn that brought it failed before it reached model or tool."""
    assert {"called": 1, "surfaced": 1, "paused": 1, "approved": 1, "unknown": 1, "failed": 1, "refused": 1} == counts(
        """
        send Pay
        model c1 pay(amount=1)
        pause c1
        approve ?nothing
        go
        fail UnknownRequest: nothing
        """
    )


def test_every_count_is_a_word_of_the_language() -> None:
    """Whatever can be counted can be asked for."""
    found = counts(
        """
        send Pay
        model c1 pay(amount=1)
        pause c1
        save a
        restore a
        raw c1 yes
        go
        fail Malformed: yes
        save b
        restore a
        stage approve c1
        go
        run c1 !! no money
        down 500
        fail ModelDown: 500
        """.replace("stage approve c1", "approve c1\nstage")
    )
    assert {"malformed", "raised", "model_failed", "restored", "saved", "staged"} <= set(found)
    assert set() == set(found) - set(REACHES)
