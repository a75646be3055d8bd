"""Rewinds and simultaneous turns: which line of history something belongs to."""

from __future__ import annotations

from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation

REWOUND = """
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    save a
    approve c1
    go
    run c1 -> paid 5
    model c2 read(path=a)
    run c2 -> text
    done
    save
    restore a
    reject c1
    go
    tell c1 no
    done
"""


def read(lines):
    return read_history(parse_notation(lines))


def test_a_restore_of_the_latest_save_is_no_fork():
    """A history that only goes on has one line."""
    history = read("send Go\ndone\nsave\nrestore\nsend More\ndone\nsave\nrestore\nsend End\ndone")

    assert [(0, None)] == [(branch.number, branch.parent) for branch in history.branches]


def test_a_restore_of_an_older_save_is_one():
    """A restore of a save after which a turn ran begins a line that leaves the other at the save."""
    history = read(REWOUND)
    save = history.saves[0].event.n

    assert [(0, None, None), (1, 0, save)] == [
        (branch.number, branch.parent, branch.save) for branch in history.branches
    ]


def test_each_line_has_its_own_calls():
    """A call that was there at the save lives on in both lines; one that came later does not."""
    assert [("c1", 0), ("c2", 0), ("c1", 1)] == [(call.label, call.branch) for call in read(REWOUND).calls]


def test_each_line_has_its_own_decisions():
    """What happened after the save belongs to one line, what happened before to both."""
    first, second = read(REWOUND).find_calls("c1")

    assert ("approve", 1, "reject", 0) == (
        first.decision.verdict,
        len(first.executions),
        second.decision.verdict,
        len(second.executions),
    )
    assert first.requests[0].n == second.requests[0].n


def test_the_latest_line_answers():
    """A call is looked up in the latest line that has it."""
    history = read(REWOUND)

    assert (1, 0) == (history.find_call("c1").branch, history.find_call("c2").branch)


def test_turns_know_the_turn_before():
    """The first turn of a line comes after the turn that was saved."""
    first, second, third = read(REWOUND).turns

    assert (None, 1, 1) == (first.previous, second.previous.number, third.previous.number)


def test_a_decision_that_was_saved_before_it_took_effect():
    """A decision that was put into the state and saved takes effect in every line that takes the save up."""
    first, second = read("""
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        stage
        save a
        restore a
        go
        run c1 -> paid 5
        done
        save
        restore a
        go
        fail StateError: stale
    """).find_calls("c1")

    assert (False, True) == (first.decisions[0].refused, second.decisions[0].refused)


def test_two_copies_at_the_same_time():
    """Turns on two copies of one state are two lines; each has its own run of the call."""
    history = read("""
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        restore a
        approve c1
        go
        start c1
        restore a
        approve c1
        go
        run c1 -> paid 5
        returns c1 paid 5
        3: finish Done.
        2: finish Done.
    """)

    assert [(0, 1), (1, 1)] == [(call.branch, len(call.executions)) for call in history.find_calls("c1")]


def test_the_same_question_of_two_turns_is_asked_in_the_branch_of_each():
    """An input that the model has answered with calls is not sent again in the same turn."""
    history = read("""
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        model c2 read(path=a)
        run c2 -> text
        restore a
        approve c1
        go
        run c1 -> paid 5
        model c2 read(path=a)
        2: finish Done.
        run c2 -> text
        3: finish Done.
    """)

    assert [(0, 1), (1, 1)] == [(call.branch, len(call.executions)) for call in history.find_calls("c2")]


def test_two_copies_are_saved_in_their_order():
    """The saves after turns on two copies belong to them in the order in which they began."""
    history = read("""
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        restore a
        approve c1
        go
        start c1
        restore a
        reject c1
        go
        tell c1 no
        3: finish Done.
        gives c1 "paid 5"
        2: finish Done.
        save first
        save second
        restore first
        send More
        done
    """)

    assert [0, 0, 1] == [save.branch for save in history.saves]
    assert 0 == history.turns[-1].branch
    assert 2 == len(history.branches)


def test_requests_are_known_in_every_line():
    """A request of before the save is found again in the line that takes it up."""
    history = read(REWOUND)

    assert [["c1"], ["c1"]] == [[call.label for call in restore.requested_calls] for restore in history.restores] + [
        [call.label for call in history.turns[0].requested_calls]
    ]


def test_sessions_do_not_share():
    """Calls of two sessions with the same label are told apart."""
    history = read("""
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        session b
        send Pay 6
        model c1 pay(amount=6)
        pause c1
        end left: c1
    """)

    assert ({"amount": 5}, {"amount": 6}) == (history.find_call("c1").arguments, history.find_call("c1", "b").arguments)
    assert ("", "b") == history.sessions
