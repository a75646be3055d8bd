"""How checks are written and registered, and what they make of what they find."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import repeat

import pytest

from pytest_approvals.checks import CHECKS, Failure, check, explain, find_check, implied_checks, judge, judge_group
from pytest_approvals.checks._check import _WATCHDOG, describe_call
from pytest_approvals.checks._registry import create_check, register_check
from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation

STORY = """
    send Pay 5
    model c1 pay(amount=5); c2 pay(amount=6)
    pause c1, c2
    end left: c1, c2
"""


@pytest.fixture
def registry():
    """What a test registers is taken back."""
    before = dict(CHECKS)
    yield CHECKS
    CHECKS.clear()
    CHECKS.update(before)


def unregistered(function, level="must", needs=()):
    return create_check("toy-check", function, level, needs, (), (), function=function)


class TestCheck:
    def test_its_docstring_is_its_documentation(self, registry):
        """Requirement, reason and examples come from the docstring."""

        @check("two-calls", needs=["model.answer"], sources=["example/example#1"])
        def two_calls(history):
            """
            A reply must hold two calls,
            no more.

            Because we say so.

            Passes:
                send Hello
                done

            Warns, in a way:
                send Bye
                done
            """

        assert "A reply must hold two calls, no more." == two_calls.requirement
        assert "Because we say so." == two_calls.why
        assert ("test_check", "must", ("model.answer",)) == (
            two_calls.family + "_check",
            two_calls.level,
            two_calls.needs,
        )
        assert [("pass", "", "send Hello\ndone"), ("warning", "in a way", "send Bye\ndone")] == [
            (example.status, example.caption, example.lines) for example in two_calls.examples
        ]
        assert registry["two-calls"] is two_calls

    def test_everything_that_is_wrong_is_said_at_once(self, registry):
        """A check that is not complete is refused when it is written."""
        with pytest.raises(UsageError) as caught:

            @check("Two Calls", level="should", needs=["model.anwser"])
            def two_calls(history):
                """A reply must hold two calls."""

        assert (
            "Invalid check 'Two Calls': the slug must be kebab-case; "
            "the requirement (first paragraph of the docstring) must contain 'should'; "
            "the docstring must say why; "
            "unknown events in `needs`: model.anwser; "
            "the docstring has no journal on which it passes (Passes:); "
            "the docstring has no journal on which it fails (Fails: or Warns:)"
        ) == str(caught.value)

    def test_a_severity_is_one_of_those_that_there_are(self, registry):
        """The nearest one is suggested."""
        with pytest.raises(UsageError, match="unknown severity 'cosmetics'; did you mean 'cosmetic'?"):
            register_check(replace(CHECKS["run-ends"], slug="first-check", severity="cosmetics"))

    def test_slugs_are_unique(self, registry):
        """Two checks cannot have one slug."""
        with pytest.raises(UsageError, match="another check has this slug"):

            @check("run-ends")
            def run_ends(history):
                """It must."""

    def test_a_check_that_comes_later_is_implied(self, registry):
        """Also by checks whose implications were asked for before."""
        register_check(replace(CHECKS["run-ends"], slug="first-check", implies=("second-check",)))
        assert {"second-check"} == implied_checks("first-check")
        register_check(replace(CHECKS["run-ends"], slug="second-check", implies=("third-check",)))

        assert {"second-check", "third-check"} == implied_checks("first-check")


class TestJudge:
    def test_nothing_looked_at(self):
        """A check that yields nothing does not apply."""
        verdicts = unregistered(lambda history: iter(())).judge(read_history(parse_notation(STORY)))

        assert ["not-applicable"] == [verdict.status for verdict in verdicts]

    def test_everything_holds(self):
        """One verdict says that everything holds."""
        verdicts = unregistered(lambda history: iter([None, None])).judge(read_history(parse_notation(STORY)))

        assert ["pass"] == [verdict.status for verdict in verdicts]

    def test_one_verdict_a_call(self):
        """Of several failures of one call the first is told."""

        def every_call(history):
            for call in history.calls:
                yield Failure(call=call, expected="none", actual="one", witness=(call.n, 0))
                yield Failure(call=call, expected="none", actual="another", witness=(call.n,))

        verdicts = unregistered(every_call).judge(read_history(parse_notation(STORY)))

        assert [("c1", "one", (5,)), ("c2", "one", (5,))] == [
            (verdict.label, verdict.actual, verdict.witness) for verdict in verdicts
        ]

    def test_the_graver_failure_counts(self):
        """A failure replaces a warning about the same call."""

        def both(history):
            yield Failure(expected="", actual="weak", witness=(), level="should")
            yield Failure(expected="", actual="strong", witness=())

        verdicts = unregistered(both).judge(read_history(parse_notation(STORY)))
        assert ["strong"] == [verdict.actual for verdict in verdicts]

    def test_a_should_is_a_warning(self):
        """What should hold and does not is a warning."""
        failure = Failure(expected="", actual="", witness=())
        verdicts = unregistered(lambda history: iter([failure]), level="should").judge(
            read_history(parse_notation(STORY))
        )

        assert ["warning"] == [verdict.status for verdict in verdicts]

    def test_a_crash_is_no_pass(self):
        """A check that raises says harness-error."""

        def crashes(history):
            yield None
            raise KeyError("c7")

        (verdict,) = unregistered(crashes).judge(read_history(parse_notation(STORY)))

        assert ("harness-error", "the check raised KeyError: 'c7'") == (verdict.status, verdict.actual)

    def test_a_crash_names_the_event(self):
        """A crash is shown at the event that the check looked at."""

        def crashes(history):
            for call in history.calls:
                yield None
                if call.label == "c2":
                    raise KeyError("c7")

        (verdict,) = unregistered(crashes).judge(read_history(parse_notation(STORY)))

        assert ("the check raised KeyError: 'c7', at event 5 (model.answer)", (5,)) == (verdict.actual, verdict.witness)

    def test_an_error_without_a_readable_message_is_a_crash(self):
        """Also if what a check raises raises in turn when it is asked for its message."""

        class Unreadable(Exception):
            def __str__(self):
                raise RuntimeError("no")

        def toy(history):
            """It must hold.

            Why not.
            """
            raise Unreadable

        [verdict] = unregistered(toy).judge(read_history(parse_notation(STORY)))

        assert "the check raised Unreadable: (its text is unavailable: RuntimeError)" == verdict.actual

    def test_a_check_cannot_change_what_others_see(self):
        """Those that come after a third party's check judge the journal as it was recorded, alone and in a group."""

        def thief(history):
            """It must hold.

            Why not.
            """
            history.calls.clear()
            history.turns.clear()
            history.events.clear()
            yield None

        def group_thief(histories):
            """It must hold.

            Why not.
            """
            for history in histories:
                yield from thief(history)

        history = read_history(parse_notation(STORY))
        group = create_check("toy-group", group_thief, "must", (), (), (), group=group_thief)
        every = CHECKS["every-gated-call-asked"]

        assert ["pass", "pass"] == [verdict.status for verdict in judge(history, [unregistered(thief), every])]
        assert ["pass"] == [verdict.status for verdict in judge_group([history], [group])]
        assert "pass" == every.judge(history)[0].status

    def test_what_is_raised_for_tests_is_a_crash(self):
        """A check that calls `pytest.fail` fails no test by it."""

        def fails_the_test(history):
            yield pytest.fail("no")

        (verdict,) = unregistered(fails_the_test).judge(read_history(parse_notation(STORY)))

        assert ("harness-error", "the check raised Failed: no") == (verdict.status, verdict.actual)

    def test_an_interrupt_is_no_crash(self):
        """The user's interrupt goes on."""

        def is_interrupted(history):
            yield from ()
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            unregistered(is_interrupted).judge(read_history(parse_notation(STORY)))

    @pytest.mark.parametrize(
        ("yielded", "actual"),
        [
            ("no failure", "it yielded 'no failure': expected None or a Failure"),
            (7, "it yielded 7: expected None or a Failure"),
            (
                Failure(expected=7, actual="b", witness=()),
                "it yielded a Failure whose 'expected' is 7: expected a text",
            ),
            (
                Failure(expected="a", actual=None, witness=()),
                "it yielded a Failure whose 'actual' is None: expected a text",
            ),
            (
                Failure(expected="a", actual="b", witness=(), session=1),
                "it yielded a Failure whose 'session' is 1: expected a text",
            ),
            (
                Failure(expected="a", actual="b", witness=(), call="c1"),
                "it yielded a Failure whose 'call' is 'c1': expected a call of the history",
            ),
            (
                Failure(expected="a", actual="b", witness=(), level="may"),
                "it yielded a Failure whose 'level' is 'may': expected must or should",
            ),
            (
                Failure(expected="a", actual="b", witness=(), status="pass"),
                "it yielded a Failure whose 'status' is 'pass': expected unknown or harness-error",
            ),
            (
                Failure(expected="a", actual="b", witness=("c1",)),
                "it yielded a Failure whose 'witness' is ('c1',): expected positions",
            ),
            (
                Failure(expected="a", actual="b", witness="12"),
                "it yielded a Failure whose 'witness' is '12': expected positions",
            ),
        ],
        ids=["text", "number", "expected", "actual", "session", "call", "level", "status", "witness", "witness-text"],
    )
    def test_what_is_no_failure_is_a_harness_error(self, yielded, actual):
        """A check that yields something else than failures, or a broken one, says harness-error, and at which event."""

        def yields_anything(history):
            for turn in history.turns:
                yield yielded if turn.number == 1 else None

        (verdict,) = unregistered(yields_anything).judge(read_history(parse_notation(STORY)))

        assert ("harness-error", f"the check raised TypeError: {actual}, at event 3 (turn.start)") == (
            verdict.status,
            verdict.actual,
        )

    @pytest.mark.parametrize("returned", [None, 7], ids=["nothing", "number"])
    def test_what_is_no_generator_is_a_harness_error(self, returned):
        """A check that returns something else says harness-error."""
        (verdict,) = unregistered(lambda history: returned).judge(read_history(parse_notation(STORY)))

        assert "harness-error" == verdict.status

    def test_a_check_that_does_not_end_is_stopped(self, monkeypatch):
        """A check that loops says harness-error, also if it catches what is raised in it, and the others go on."""
        monkeypatch.setattr(_WATCHDOG, "seconds", 0.1)

        def loops(history):
            for _ in history.calls:
                while True:
                    try:
                        yield from ()
                    except Exception:
                        continue

        looping = replace(unregistered(loops), slug="looping-check")
        verdicts = judge(parse_notation(STORY), [looping, CHECKS["journal-well-formed"], CHECKS["asked-once"]])

        assert [
            ("looping-check", "harness-error", "the check did not end within 0.1 seconds, at event 5 (model.answer)"),
            ("journal-well-formed", "pass", ""),
            ("asked-once", "not-applicable", ""),
        ] == [(verdict.check, verdict.status, verdict.actual) for verdict in verdicts]

    def test_functions_can_be_profiled_after_a_check_was_stopped(self):
        """Stopping a check leaves no exception behind that the interpreter waits for, as it would up to Python 3.11."""
        script = """
import sys
from dataclasses import replace
from pytest_approvals.checks import CHECKS, judge
from pytest_approvals.checks._check import _WATCHDOG
from pytest_approvals.journal.notation import parse_notation

def loops(history):
    while True:
        yield from ()

_WATCHDOG.seconds = 0.1
(verdict,) = judge(parse_notation("send Go\\ndone"), [replace(CHECKS["asked-once"], function=loops)])
sys.setprofile(lambda frame, event, argument: None)
print(verdict.status)
"""
        # The process would not end, not even by a signal that Python handles.
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)

        assert ("harness-error\n", "") == (ended.stdout, ended.stderr)

    def test_a_check_that_yields_for_ever_is_stopped(self, monkeypatch):
        """A check that yields more often than there can be anything to judge says harness-error."""
        monkeypatch.setattr("pytest_approvals.checks._check.MOST_EVALUATIONS", 1000)

        (verdict,) = unregistered(lambda history: repeat(None)).judge(read_history(parse_notation(STORY)))

        assert "the check raised ValueError: it yielded more than 1,000 times" == verdict.actual

    def test_what_could_not_be_seen(self):
        """A check is not-observable if the journal's recorder could not see what it needs."""
        events = parse_notation(STORY)
        events[0].observes = ["model.request", "model.answer"]

        statuses = {verdict.check: verdict.status for verdict in judge(events)}

        assert ("not-observable", "pass") == (statuses["run-ends"], statuses["model-input-well-formed"])


def test_what_a_journal_that_was_cut_off_cannot_decide():
    """Whether an approved call would have run, and the run ended, is unknown."""
    events = parse_notation("send Go\nmodel c1 pay(amount=5)\npause c1\napprove c1\ngo\nrun c1 -> ok\ndone")
    cut = [event for event in events if event.n <= next(each.n for each in events if each.kind == "tool.start") - 1]

    verdicts = judge(cut)

    assert {"approved-runs", "run-ends"} == {verdict.check for verdict in verdicts if verdict.status == "unknown"}
    assert [] == [verdict.check for verdict in verdicts if verdict.status == "fail"]


def test_the_table_of_the_design():
    """Every slug is there, in the order of the families."""
    assert [
        *("approval-before-execution", "rejected-never-runs", "approved-runs", "runs-at-most-once"),
        *("ungated-runs-once", "arguments-as-approved", "only-model-calls-run"),
        *("every-gated-call-asked", "policy-fails-closed", "only-gated-asked", "asked-once"),
        *("request-shows-the-call", "request-ids-unique"),
        *("elicitation-shown", "elicitation-answered-as-given"),
        *("result-delivered-once", "rejection-told", "reason-told", "result-matches-its-call"),
        *("model-input-well-formed", "no-function-approvals-in-model-input", "caller-messages-kept"),
        *("history-not-rewritten", "cancelled-calls-told", "own-tools-offered", "reasoning-kept"),
        *("pending-survives", "decision-survives", "round-trip-stable", "stream-shows-everything"),
        "same-outcome-in-every-mode",
        *("invalid-decision-refused", "contradiction-not-executed", "settled-stays-settled"),
        "unanswered-stays-pending",
        *("run-ends", "nothing-left-pending", "usable-after-refusal"),
        *("answer-given", "usable-after-hang-up", "sessions-isolated", "limits-kept"),
        *("journal-well-formed", "scenario-exercised"),
    ] == list(CHECKS)


def test_shoulds():
    """What should hold, and what must."""
    assert {"only-gated-asked", "history-not-rewritten", "round-trip-stable"} == {
        slug for slug, known in CHECKS.items() if known.level == "should"
    }


def test_described():
    """A call is shown as people read it."""
    calls = read_history(parse_notation("send Go\nmodel c1 pay(amount=5, to=Ann); c2 pay({broken)\nfail X: y")).calls

    assert ['c1 pay(amount=5, to="Ann")', 'c2 pay("{broken")'] == [describe_call(call) for call in calls]


def test_explain():
    """All that is known of a check, as text."""
    assert """\
nothing-left-pending (must, ending)

When everything was answered, nothing must be pending.

What is still open then can never be closed: the session shows a question that was answered. A request to which a
message came in place of an answer may stay open.

severity: stuck
needs: run.end, turn.end
sources: pydantic/pydantic-ai#6486, openai/openai-agents-python#5141

passes:
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    approve c1
    go
    run c1 -> paid 5
    done

passes, a message came in place of an answer:
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    send Never mind
    done
    end completed: c1

passes, the caller left:
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    end left: c1

fails:
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    approve c1
    go
    run c1 -> paid 5
    done
    end completed: c1
""" == explain("nothing-left-pending")


def test_an_unknown_check():
    """An unknown slug is refused, with the nearest one named."""
    with pytest.raises(UnknownName, match="Unknown check 'run-end'; did you mean 'run-ends'"):
        find_check("run-end")
