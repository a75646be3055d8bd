"""Whether a text says what a tool returned, for values at the limits of Python."""

from __future__ import annotations

import pytest

from pytest_approvals.checks._told_texts import conveys_result


@pytest.mark.parametrize(("text", "said"), [(f"paid {10**400}", True), ("paid a lot", False)])
def test_a_number_beyond_all_fractions_is_looked_for_as_it_is(text: str, said: bool) -> None:
    """A tool may return a whole number that no fraction can hold."""
    assert said is conveys_result(text, 10**400)


def test_a_text_that_cannot_be_parsed_is_compared_as_text() -> None:
    """Python's parser gives up on a text that is nested too deep."""
    assert not conveys_result("[" * 100_000, {"paid": 5})


@pytest.mark.parametrize(
    ("text", "result", "said"),
    [
        ("true", True, True),
        ("1", True, False),
        ("true", 1, False),
        ("[0]", [False], False),
        ('{"paid": 1}', {"paid": True}, False),
        ('{"paid": [5, true]}', {"paid": [5, True]}, True),
        ("5.0", 5, True),
        (str(2**53), 2**53 + 1, False),
    ],
)
def test_a_truth_is_no_number(text: str, result: object, said: bool) -> None:
    """What is told must have the kind of what was returned, also inside of lists and objects."""
    assert said is conveys_result(text, result)


@pytest.mark.parametrize(
    ("text", "result", "said"),
    [
        (None, "paid 5", False),
        (None, None, True),
        ("paid5", ["paid", 5], True),
        ("paid 6", ["paid", 5], False),
        ("paid5", "paid 5", False),
        ("a5", {"a": 5}, False),
        ("5", {"paid": 5}, False),
        ("paid: 5", {"paid": 5}, True),
        ("of [none]", [None], True),
        ("of (null)", [None], True),
        ("of (True)", [True], True),
        ("of [5]", [5.0], True),
        ("of [5]", [6.0], False),
        ("some object", ["<not JSON: object>"], True),
        ("some object", ["<not JSON: object>", "paid 5"], False),
    ],
)
def test_a_result_is_told_leaf_by_leaf(text: str | None, result: object, said: bool) -> None:
    """Each value and each name must be there, in the spelling of Python or of JSON; blocks need no spaces."""
    assert said is conveys_result(text, result)
