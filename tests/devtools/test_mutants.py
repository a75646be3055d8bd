from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.devtools.mutants import OPERATORS, Mutant, generate_mutants, is_equivalent, survey
from pytest_approvals.devtools.mutants.survey import (
    SURVIVOR_CLASSES,
    Survey,
    find_survivor_class,
    record_clean_journals,
    render_mutants_page,
    survey_mutants,
)
from pytest_approvals.journal.events import Event
from pytest_approvals.journal.notation import parse_notation
from pytest_approvals.journal.validation import find_violations
from pytest_approvals.scenario.catalogue import stock_folder

PAGE = Path(__file__).parents[2] / "docs" / "mutants.md"
SAMPLE = 31
"""One mutant in so many is judged in the test that runs every time."""

STORY = """
    tool pay(amount: integer) always
    tool read(path: string) never
    send Pay
    model c1 pay(amount=5); c2 read(path=a); c3 pay(amount=6)
    run c2 -> text
    pause c1, c3
    save
    restore
    approve c1
    reject c3 no
    go
    run c1 -> paid
    tell c3 rejected
    model Done.
    finish Done.
"""


@pytest.fixture
def story() -> list[Event]:
    return parse_notation(STORY)


def made(events: Sequence[Event], operator: str, what: str) -> list[Mutant]:
    return [mutant for mutant in generate_mutants(events) if (mutant.operator, mutant.what) == (operator, what)]


class TestOperators:
    def test_each_has_something_to_change(self, story: list[Event]) -> None:
        """Every operator makes mutants of a story in which something happens."""
        assert {*OPERATORS} == {mutant.operator for mutant in generate_mutants(story)}

    def test_the_journal_stays_as_it_is(self, story: list[Event]) -> None:
        """Making mutants changes nothing."""
        before = copy.deepcopy(story)

        assert [*generate_mutants(story)]
        assert before == story

    def test_no_mutant_is_the_journal(self, story: list[Event]) -> None:
        """A mutant differs from what it was made from, unless like changed places with like."""
        same = {mutant.what for mutant in generate_mutants(story) if mutant.events == story}

        assert set() == same

    def test_they_come_in_a_fixed_order(self, story: list[Event]) -> None:
        """The same journal has the same mutants, always."""
        once, again = ([(each.operator, each.what, each.n) for each in generate_mutants(story)] for _ in range(2))

        assert once == again

    def test_positions_are_numbered_anew(self, story: list[Event]) -> None:
        """What was dropped leaves no gap, and turns name the moved positions of their decisions."""
        (mutant,) = made(story, "drop", "store.save")
        starts: list[Any] = [event for event in mutant.events if event.kind == "turn.start"]

        assert [*range(1, len(story))] == [event.n for event in mutant.events]
        assert ["caller.decide", "caller.decide"] == [mutant.events[n - 1].kind for n in starts[1].decisions]

    def test_a_second_execution_has_a_number_of_its_own(self, story: list[Event]) -> None:
        """An execution that is there twice is no broken grammar, but a call that ran twice."""
        again = made(story, "duplicate", "tool.start + tool.end")

        assert [[], []] == [broken_texts(mutant) for mutant in again]

    def test_a_retargeted_decision_is_whole(self, story: list[Event]) -> None:
        """A decision about another request hands over that one's id and label."""
        first: Any = made(story, "retarget", "caller.decide q")[0].events[story_position(story, "caller.decide")]

        assert ("q2", "c3", "c3") == (first.q, first.id, first.label)


def broken_texts(mutant: Mutant) -> list[str]:
    return [broken.text for broken in find_violations(mutant.events)]


def story_position(events: Sequence[Event], kind: str) -> int:
    return next(index for index, event in enumerate(events) if event.kind == kind)


PARALLEL = """
    tool read(path: string) never
    send Read
    model c1 read(path=a); c2 read(path=b)
    start c1
    start c2
    returns c1 A
    returns c2 B
    model Done.
    finish Done.
"""
STREAM = """
    tool read(path: string) never
    streaming
    send Read
    model c1 read(path=a)
    show call c1
    run c1 -> A
    show result c1
    model Done.
    show text Do
    show text ne.
    finish Done.
"""


def changed(text: str, old: str, new: str) -> tuple[list[Event], list[Event]]:
    assert old in text
    return parse_notation(text), parse_notation(text.replace(old, new))


class TestEquivalence:
    @pytest.mark.parametrize(
        ("text", "old", "new"),
        [
            pytest.param(PARALLEL, "start c1\n    start c2", "start c2\n    start c1", id="executions side by side"),
            pytest.param(STREAM, "show text Do\n    show text ne.", "show text Done.", id="other pieces of text"),
            pytest.param(
                PARALLEL.replace("start c1", "show call c1\n    show text Well\n    show call c2\n    start c1"),
                "show call c1\n    show text Well\n    show call c2",
                "show text Well\n    show call c2\n    show call c1",
                id="another order in a stream",
            ),
            pytest.param(STREAM, "show result c1\n", "", id="a result that a stream does not show"),
            pytest.param(
                STREAM, "show call c1\n    run c1 -> A", "run c1 -> A\n    show call c1", id="shown beside an execution"
            ),
        ],
    )
    def test_what_nobody_can_observe_makes_no_difference(self, text: str, old: str, new: str) -> None:
        """Order of what happens at the same time, and how a stream is cut, tell no other story."""
        assert is_equivalent(*changed(text, old, new))

    @pytest.mark.parametrize(
        ("text", "old", "new"),
        [
            pytest.param(STREAM, "show text Do\n    show text ne.", "show text Do", id="text that is missing"),
            pytest.param(STREAM, "show call c1\n", "", id="a call that is missing"),
            pytest.param(STORY, "run c1 -> paid", "run c1 -> payed", id="another result"),
            pytest.param(STORY, "approve c1", "approve c3", id="another decision"),
            pytest.param(STORY, "run c1 -> paid\n", "run c1 -> paid\n    run c1 -> paid\n", id="a second run"),
        ],
    )
    def test_what_counts_makes_a_difference(self, text: str, old: str, new: str) -> None:
        """Another result, decision or run tells another story."""
        assert not is_equivalent(*changed(text, old, new))

    def test_a_journal_is_equivalent_to_itself(self, story: list[Event]) -> None:
        """Nothing changed is nothing changed."""
        assert is_equivalent(story, copy.deepcopy(story))


@pytest.fixture(scope="module")
def sample() -> Survey:
    return survey_mutants(record_clean_journals(stock_folder()), one_in=SAMPLE)


class TestSurvey:
    def test_few_mutants_are_equivalent(self, sample: Survey) -> None:
        """The one function that excuses mutants excuses no more than one in ten."""
        assert sample.share_of_equivalents <= 0.1

    def test_the_checks_notice_nearly_all_others(self, sample: Survey) -> None:
        """Of a sample the checks notice 94 in 100 at least; of all mutants it must be 95."""
        assert sample.share_noticed >= 0.94

    def test_no_operator_gets_through(self, sample: Survey) -> None:
        """Of the mutants of each operator at least 85 in 100 are noticed."""
        weak = {operator: share for operator in OPERATORS if (share := noticed(sample, operator)) < 0.85}

        assert {} == weak

    def test_every_survivor_is_explained(self, sample: Survey) -> None:
        """What no check notices belongs to a class that says why."""
        unknown = {
            (each.operator, each.what)
            for each in sample.survivors
            if find_survivor_class(each.operator, each.what) is None
        }

        assert set() == unknown

    def test_no_class_is_a_cover_for_all(self, sample: Survey) -> None:
        """No class of survivors holds more than 2 in 100 of the mutants that are not equivalent."""
        counted = sample.made.total() - sample.equivalent.total()

        assert {} == {name: count for name, count in sample.classes().items() if count / counted > 0.02}

    def test_every_class_is_in_the_page(self, sample: Survey) -> None:
        """`docs/mutants.md` explains every class that has survivors, and is made by the same function."""
        written, now = PAGE.read_text(encoding="utf-8"), render_mutants_page(sample)

        assert {name for name in sample.classes() if f"**{name}**" not in written} == set()
        assert headings(written) == headings(now)

    def test_blind_checks_are_seen(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without the grammar, or without the checks of what runs, far more mutants live."""
        every = survey.judge
        journals = [parse_notation(STORY), parse_notation(PARALLEL)]
        shares = [survey_mutants(journals).share_noticed]
        for blind in ("journal-well-formed", "arguments-as-approved"):
            monkeypatch.setattr(
                survey, "judge", lambda events, blind=blind: [v for v in every(events) if v.check != blind]
            )
            shares.append(survey_mutants(journals).share_noticed)

        assert shares[0] > shares[1] + 0.1
        assert shares[0] > shares[2]

    @pytest.mark.slow
    def test_of_all_mutants_the_checks_notice_95_in_100(self) -> None:
        """The number that the checks have to reach, on every mutant of every journal."""
        whole = survey_mutants(record_clean_journals(stock_folder()))

        assert whole.share_noticed >= 0.95
        assert whole.share_of_equivalents <= 0.1


def noticed(sample: Survey, operator: str) -> float:
    counted = sample.made[operator] - sample.equivalent[operator]
    return 1 - sum(each.operator == operator for each in sample.survivors) / counted


def headings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#")]


class TestClasses:
    def test_names_are_unique(self) -> None:
        """Each class has a name and a reason of its own."""
        assert (
            len(SURVIVOR_CLASSES)
            == len({each.name for each in SURVIVOR_CLASSES})
            == len({each.why for each in SURVIVOR_CLASSES})
        )

    def test_what_is_wrong_without_doubt_belongs_to_none(self) -> None:
        """A second run of an approved call, or other arguments, are never excused."""
        wrong = [
            ("change", "tool.start arguments"),
            ("forge", "an execution right after another"),
            ("forge", "an execution of nothing"),
        ]

        assert [None, None, None] == [find_survivor_class(*each) for each in wrong]
