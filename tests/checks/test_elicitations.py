"""What is said of a question that an MCP server asks in the middle of a call, and of its answer."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_approvals.checks import CHECKS, SHOWN_STATUSES, judge
from pytest_approvals.journal.events import ElicitationAnswered, ElicitationAsked, ElicitationShown, Event
from pytest_approvals.journal.notation import parse_notation

ASKED = """
tool pay(amount: integer) never mcp bank
send Pay 5
model c1 pay(amount=5)
start c1
elicit c1 Which account?
asked c1 {shown}
elicited c1 {answered}
returns c1 not done
done
"""

DECLINED = "Which account? -> decline", "decline"

PLACES = ("asked", "shown", "answered")


def read_asked(texts: tuple[str, str], **changes: dict[str, Any]) -> list[Event]:
    """Returns the journal of one question and its answer, with changes by place: what is asked, shown and answered."""
    events = parse_notation(ASKED.format(shown=texts[0], answered=texts[1]))
    for kind, place in zip((ElicitationAsked, ElicitationShown, ElicitationAnswered), PLACES, strict=True):
        event = next(each for each in events if isinstance(each, kind))
        for name, value in changes.get(place, {}).items():
            setattr(event, name, value)
    return events


def list_differences(events: list[Event], check: str) -> list[tuple[str, str]]:
    """Returns what a check expects, and what there is instead."""
    verdicts = judge(events, [CHECKS[check]])
    return [(each.expected, each.actual) for each in verdicts if each.status in SHOWN_STATUSES]


def test_another_address_is_named() -> None:
    """A person who opens another page accepts something else."""
    changes = {"asked": {"url": "https://bank.invalid"}, "shown": {"url": "https://other.invalid"}}
    found = list_differences(read_asked(DECLINED, **changes), "elicitation-shown")
    assert [
        (
            '"Which account?" at https://bank.invalid',
            '"Which account?" at https://other.invalid is shown',
        )
    ] == found


def test_the_order_of_the_fields_of_a_form_does_not_matter() -> None:
    """A form is a JSON Schema, and the members of an object have no order."""
    form = {"type": "object", "properties": {"account": {"type": "string"}}}
    changes = {"asked": {"form": form}, "shown": {"form": dict(reversed(form.items()))}}
    assert [] == list_differences(read_asked(DECLINED, **changes), "elicitation-shown")


def test_the_order_of_the_fields_of_an_answer_does_not_matter() -> None:
    """An answer is an object, too."""
    fields = "accept account=savings, rush=true", "accept rush=true, account=savings"
    events = read_asked((f"Which account? -> {fields[0]}", fields[1]))
    assert [] == list_differences(events, "elicitation-answered-as-given")


@pytest.mark.parametrize(
    ("shown", "answered", "expected", "actual"),
    [
        ("accept account=savings", "decline", 'accept {"account": "savings"}', "decline"),
        ("decline", "accept account=savings", "decline", 'accept {"account": "savings"}'),
        ("cancel", "refuse not supported", "cancel", "refuse, not supported"),
    ],
)
def test_an_answer_is_named_with_its_fields(shown: str, answered: str, expected: str, actual: str) -> None:
    """An acceptance says what was filled in, and a refusal of the client why."""
    found = list_differences(read_asked((f"Which account? -> {shown}", answered)), "elicitation-answered-as-given")
    assert [(f"the server gets: {expected}", actual)] == found
