"""YAML text as plain values."""

from __future__ import annotations

import pytest

from pytest_approvals.yaml_files import Diagnostic
from pytest_approvals.yaml_files.document import AmbiguousScalar, parse_yaml

SPACES = "lines are indented with spaces, not with tabs"
QUOTES = "text that holds { } [ ] , # or ': ' needs quotes"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("1.5", 1.5),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("text", "text"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("string?", "string?"),
    ],
)
def test_what_json_knows_is_what_it_says(written: str, value: object) -> None:
    """Numbers, bools and null are recognised as JSON writes them; quotes make text of anything."""
    found = parse_yaml(f"key: {written}").value["key"]

    assert (type(value), value) == (type(found), found)
    assert not isinstance(found, AmbiguousScalar)


@pytest.mark.parametrize(
    "written",
    [
        *("no", "No", "on", "OFF", "yes", "True", "FALSE", "Null"),
        *("1e3", "1.5e3", ".5", "+1", "007", "1_000", "0x1F", "0o17", "0b11", ".inf", "-.INF", ".nan"),
        *("2024-01-31", "2024-01-31T10:00:00Z", "12:30", "1:30:00"),
    ],
)
def test_what_versions_of_yaml_read_differently_stays_text(written: str) -> None:
    """A word that is a bool, a number or a date to some version of YAML is text, and known to be ambiguous."""
    found = parse_yaml(f"key: {written}").value["key"]

    assert written == found
    assert isinstance(found, AmbiguousScalar)


def test_keys_are_text() -> None:
    """A key is its literal text."""
    assert {"on": 1, "5": 2, "null": 3} == parse_yaml("on: 1\n5: 2\nnull: 3").value


def test_every_key_and_element_has_its_line() -> None:
    """Lines are known by dotted path, from 1."""
    document = parse_yaml("# a comment\na:\n  - b: 1\n    c: [x,\n        y]\n")

    assert {"": 2, "a": 2, "a.0": 3, "a.0.b": 3, "a.0.c": 4, "a.0.c.0": 4, "a.0.c.1": 5} == document.lines


def test_aliases_are_followed() -> None:
    """An alias has the value of its anchor."""
    assert {"a": {"x": 1}, "b": {"x": 1}} == parse_yaml("a: &it {x: 1}\nb: *it").value


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("", 1, "the file is empty"),
        ("# nothing\n", 1, "the file is empty"),
        ("a: 1\nb: 2\na: 3\n", 3, "duplicate key 'a', first in line 1"),
        ("a: !!int 3", 1, "unsupported tag 'tag:yaml.org,2002:int'; write plain values"),
        ("a: !secret x", 1, "unsupported tag '!secret'; write plain values"),
        ("a: &x [*x]", 1, "an alias refers to a value that contains it"),
        ("a: 1\n{b}: 2", 2, "invalid key: expected text, not a list or a mapping; text with braces needs quotes"),
        (
            "a: 1\nb: {say: deleted {path}}",
            2,
            f"invalid YAML: while parsing a flow mapping: did not find expected ',' or '}}'; {QUOTES}",
        ),
        (
            "a: b: c",
            1,
            f"invalid YAML: mapping values are not allowed in this context; {QUOTES}",
        ),
        (
            "a: 1\n---\nb: 2",
            2,
            "invalid YAML: expected a single document in the stream: but found another document",
        ),
        ("a: 'b", 1, "invalid YAML: while scanning a quoted scalar: found unexpected end of stream"),
        (
            "a:\n\tb: 1",
            2,
            f"invalid YAML: while scanning for the next token: found character that cannot start any token; {SPACES}",
        ),
        ("a: 1\nb: \x01", 2, "invalid YAML: control characters are not allowed"),
    ],
)
def test_what_is_no_plain_yaml_is_refused(text: str, line: int, what: str) -> None:
    """A file that is no single plain YAML document is refused, with the line and the reason."""
    with pytest.raises(Diagnostic) as refused:
        parse_yaml(text)

    assert (line, what) == (refused.value.line, refused.value.message)


def test_a_file_that_explodes_is_refused() -> None:
    """Aliases that multiply a small file beyond all use are refused."""
    levels = "\n".join(f"k{at}: &k{at} [{', '.join([f'*k{at - 1}'] * 10)}]" for at in range(1, 7))

    with pytest.raises(Diagnostic) as refused:
        parse_yaml(f"k0: &k0 [x]\n{levels}")

    assert "the file holds more than 100,000 values when its aliases are followed" == refused.value.message


def refusal(text: str) -> tuple[int | None, str]:
    """Return the line and the message with which a text is refused."""
    with pytest.raises(Diagnostic) as refused:
        parse_yaml(text)
    return refused.value.line, refused.value.message


class TestLimits:
    @pytest.mark.parametrize(
        "nested",
        ["[" * 99 + "]" * 99, "{a: " * 98 + "1" + "}" * 98, "- " * 98 + "x"],
        ids=["lists", "mappings", "compact lists"],
    )
    def test_values_may_be_nested_a_hundred_levels_deep(self, nested: str) -> None:
        """Up to the limit, a nested value is a value like any other."""
        assert parse_yaml(f"key:\n  {nested}").value["key"]

    @pytest.mark.parametrize(
        "nested",
        ["[" * 60_000, "{a: " * 60_000, "- " * 60_000, "? " * 60_000, "[" * 900 + "]" * 900],
        ids=["lists", "mappings", "compact lists", "compact keys", "whole lists"],
    )
    def test_deeper_nesting_is_refused_before_it_overflows_the_stack(self, nested: str) -> None:
        """The composer stops at the limit, whatever follows, and the line is named."""
        assert (2, "values are nested deeper than 100 levels") == refusal(f"key:\n  {nested}")

    def test_nesting_by_aliases_counts(self) -> None:
        """Aliases that nest what stands on one level are refused as well."""
        aliases = "\n".join(f"k{at}: &k{at} [*k{at - 1}]" for at in range(1, 200))

        assert "values are nested deeper than 100 levels" == refusal(f"k0: &k0 x\n{aliases}")[1]

    @pytest.mark.parametrize("number", ["9" * 5_000, "-" + "9" * 5_000, "0." + "1" * 5_000])
    def test_a_number_of_thousands_of_digits_is_refused(self, number: str) -> None:
        """Python converts only so many digits; the error has a line."""
        message = f"a number of {len(number)} characters is too long: expected at most 640"

        assert (2, message) == refusal(f"a: 1\nb: {number}")

    def test_a_number_that_would_be_infinite_is_refused(self) -> None:
        """A fraction beyond the range of fractions is not read as infinity, which JSON cannot hold."""
        assert (1, "the number is too large for a fraction") == refusal(f"a: {'9' * 400}.0")

    def test_half_of_a_surrogate_pair_is_refused(self) -> None:
        """Text that is not Unicode, which JSON can hold and YAML cannot, is refused with its line."""
        assert (2, "invalid text: half of a surrogate pair is not a character") == refusal("a: 1\nb: \ud800")

    def test_long_keys_above_many_values_are_refused(self) -> None:
        """The paths of all values take memory in proportion to the text."""
        text = f"? {'k' * 100_000}\n: [{', '.join(['x'] * 300)}]"

        assert (2, "the keys are too long for so many values") == refusal(text)
