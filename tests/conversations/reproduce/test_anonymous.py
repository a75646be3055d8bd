"""Made-up values in place of a conversation's own."""

from __future__ import annotations

from typing import Any

from pytest_approvals.conversations.reproduce.anonymize import anonymize
from pytest_approvals.conversations.reproduce.draft import ScenarioDraft
from pytest_approvals.conversations.reproduce.from_conversation import GENERATED_TEXTS
from pytest_approvals.conversations.reproduce.scenario_document import build_document
from pytest_approvals.scenario.to_file import format_yaml


def test_nothing_of_the_conversation_is_left(stored: ScenarioDraft) -> None:
    """No value of an argument, no text, no reason, no result; but the names of tools and parameters."""
    text = format_yaml(build_document(anonymize(stored, GENERATED_TEXTS)))
    for secret in ("4711", "bob@example.org", "Rome", "not this month", "flights", "refunded", "May I"):
        assert secret not in text
    assert "refund: {approval: always, parameters: {order: integer, to: string}}" in text
    assert "send: And now?" in text


def test_it_is_the_same_every_time(stored: ScenarioDraft) -> None:
    """Nothing depends on the time or on chance."""
    assert anonymize(stored) == anonymize(stored)


def test_the_same_value_is_the_same_one_everywhere(written: Any) -> None:
    """And different values are different ones, so that calls which differ still do."""
    calls = [written.call("look", f"{n}", {"at": f"{n % 3}.txt", "n": n % 3}) for n in range(9)]
    draft = anonymize(written.draft(written.message("user", "go"), written.message("assistant", *calls)))
    made = [tuple(call.arguments.values()) for call in draft.calls() if not isinstance(call.arguments, str)]
    assert made[:3] * 3 == made
    assert 3 == len({at for at, _ in made}) == len({n for _, n in made})


def test_values_look_like_what_they_stand_for(written: Any) -> None:
    """A mail address for a mail address, a file for a file of its kind, a number for a number."""
    given = {
        "to": "bob@example.org",
        "file": "a.pdf",
        "page": "https://example.org/x",
        "n": 12,
        "yes": True,
        "x": [1.5],
    }
    draft = anonymize(
        written.draft(written.message("user", "go"), written.message("assistant", written.call("send", "1", given)))
    )
    [made] = [call.arguments for call in draft.calls()]
    assert isinstance(made, dict)
    assert "@" in made["to"]
    assert made["file"].endswith(".pdf")
    assert made["page"].startswith("http")
    assert (int, True, float) == (type(made["n"]), made["yes"], type(made["x"][0]))
