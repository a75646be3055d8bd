"""Made-up values."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_approvals.scenario.faker_values import fill_fake_values
from pytest_approvals.yaml_files import Diagnostic


def test_values_stand_where_they_are_asked_for() -> None:
    """A mapping is replaced by a value, a piece of text by its text; each is a new one."""
    filled, fakes = fill_fake_values({"a": [{"fake": "file_name"}], "b": "in {{fake file_name}} it is"}, "family/story")

    first, second = filled["a"][0], filled["b"].removeprefix("in ").removesuffix(" it is")
    assert first != second
    assert {first: "<file_name 1>", second: "<file_name 2>"} == fakes


def test_a_named_value_can_be_used_again() -> None:
    """A value with a name is the same everywhere, whichever comes first."""
    filled, fakes = fill_fake_values(
        ["{{fake doc}}!", {"fake": "file_name", "as": "doc"}, {"fake": "doc"}], "family/story"
    )

    assert filled[0] == f"{filled[1]}!"
    assert filled[1] == filled[2]
    assert {filled[1]: "<doc>"} == fakes


def test_numbers_stay_numbers() -> None:
    """A provider of whole numbers gives a number; `with` holds its arguments."""
    filled, fakes = fill_fake_values({"fake": "random_int", "with": {"min": 5000, "max": 6000}}, "family/story")

    assert 5000 <= filled <= 6000
    assert {str(filled): "<random_int 1>"} == fakes


def test_values_depend_on_the_scenario_and_nothing_else() -> None:
    """One scenario always has the same values, in every process; another one has others."""
    program = (
        "from pytest_approvals.scenario.faker_values import fill_fake_values; "
        "print(fill_fake_values({'fake': 'name'}, 'a')[0])"
    )
    elsewhere = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert elsewhere.strip() == fill_fake_values({"fake": "name"}, "a")[0]
    assert fill_fake_values({"fake": "name"}, "a") != fill_fake_values({"fake": "name"}, "b")


def test_a_named_value_does_not_depend_on_what_comes_before() -> None:
    """Other values in front do not change it, so that a file and its twin in Python agree."""
    doc = {"fake": "file_name", "as": "doc"}

    assert fill_fake_values([doc], "a")[0][0] == fill_fake_values([{"fake": "email"}, doc], "a")[0][1]


def test_no_value_is_found_in_another_one_or_in_the_story() -> None:
    """Values can be replaced in a transcript without touching anything else."""
    wishes = [{"fake": "random_element", "with": {"elements": ["abcd", "abcde", "wxyz", "told"]}} for _ in range(2)]
    filled, _ = fill_fake_values([*wishes, "untold"], "family/story")

    assert sorted([*filled[:2]]) in (["abcd", "wxyz"], ["abcde", "wxyz"])


def test_values_that_run_out_are_a_mistake() -> None:
    """A provider that has no further value of its own is named."""
    wish = {"fake": "random_element", "with": {"elements": ["abcd"]}}

    with pytest.raises(Diagnostic) as refused:
        fill_fake_values([wish, wish], "family/story")

    assert (1,) == refused.value.path
    assert "the provider 'random_element' returns no further value of 4 characters or more" == refused.value.message


def test_what_asks_for_nothing_stays_as_it_is() -> None:
    """Braces and mappings that are no wishes are left alone."""
    part = {"fake": {"nested": 1}, "text": "{path} {{x}}", "other": {"fake": "name", "more": 1}}

    assert (part, {}) == fill_fake_values(part, "family/story")


def test_faker_is_not_imported_without_need() -> None:
    """A scenario without made-up values costs nothing of Faker."""
    program = (
        "import sys; from pytest_approvals.scenario.build import scenario, say; "
        "scenario(title='x', model=[say('y')]); print('faker' in sys.modules, 'pydantic' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert "False False" == told.strip()
