"""Gates that the user names: patterns of tools, and conditions on an argument."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.conversations.histories.readers import FormatDetector
from pytest_approvals.conversations.lint import lint_conversation
from pytest_approvals.conversations.lint.gates import Gate
from pytest_approvals.conversations.reproduce.reproducer import find_symptoms
from pytest_approvals.errors import UsageError
from pytest_approvals.testing import judge_conversation

STORED = Path(__file__).parents[1] / "histories" / "stored"


@pytest.mark.parametrize(
    ("gate", "arguments", "is_gated"),
    [
        ("refund", {"amount": 5}, True),
        ("re*", {"amount": 5}, True),
        ("pay", {"amount": 5}, False),
        ("refund:amount>100", {"amount": 100}, False),
        ("refund:amount>100", {"amount": 101}, True),
        ("refund:amount>100", '{"amount": 101}', True),
        ("refund:amount >= 100", {"amount": 100}, True),
        ("refund:amount<0", {"amount": 5}, False),
        ("refund:amount<=5", {"amount": 5}, True),
        ("refund:to==bob", {"to": "bob"}, True),
        ("refund:to!=bob", {"to": "bob"}, False),
        ('refund:to=="bob"', {"to": "bob"}, True),
        ("re*:dry_run==false", {"dry_run": True}, False),
    ],
)
def test_a_gate(gate: str, arguments: Any, is_gated: bool) -> None:
    """A condition is about one argument; without one every call of the tool is gated."""
    assert is_gated == Gate.parse(gate).applies("refund", arguments)


@pytest.mark.parametrize("arguments", [{}, {"amount": "much"}, {"amount": None}, "not JSON", None])
def test_what_cannot_be_compared_is_gated(arguments: Any) -> None:
    """A missing argument, or one of another type, is no reason to look away."""
    assert Gate.parse("refund:amount>100").applies("refund", arguments)


@pytest.mark.parametrize("gate", ["refund:", "refund:amount", "refund:>5", ":amount>5", "refund:amount>"])
def test_a_condition_that_is_none(gate: str) -> None:
    """The form is told."""
    with pytest.raises(UsageError, match="expected TOOL or TOOL:PARAMETER>VALUE, such as refund:amount>100"):
        Gate.parse(gate)


def test_a_conversation_is_judged_by_a_condition() -> None:
    """Of two calls without an approval the one that the policy gates is found."""
    calls = [
        {
            "id": f"c{amount}",
            "type": "function",
            "function": {"name": "refund", "arguments": json.dumps({"amount": amount})},
        }
        for amount in (5, 500)
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "done"} for call in calls]
    found = judge_conversation([{"role": "assistant", "tool_calls": calls}, *results], gated=["refund:amount>100"])

    assert ["approval-before-execution"] == [each.rule for each in found]
    assert found[0].text.startswith("refund(amount=500) is gated")


def test_a_call_of_an_earlier_run_says_so_and_is_no_symptom() -> None:
    """A `RunState` that goes on from a list of items has the decisions of its own run only."""
    state = json.loads((STORED / "openai_agents_python_done.json").read_text())
    state["original_input"] = [
        {"role": "user", "content": "Pay 7"},
        {"type": "function_call", "call_id": "c0", "name": "pay", "arguments": '{"amount": 7}'},
        {"type": "function_call_output", "call_id": "c0", "output": "paid 7"},
        {"role": "user", "content": "Pay 5 and 6"},
    ]
    conversation = FormatDetector().read(state)
    [finding] = [each for each in lint_conversation(conversation, ["pay"]) if each.is_mistake]

    assert "approval-before-execution" == finding.rule
    assert finding.text.startswith("pay(amount=7) is gated, and has a result without an approval; it is of an earlier")
    assert () == find_symptoms(conversation, ["pay"])


@pytest.mark.parametrize(
    ("told", "rules"),
    [
        ("Tool execution was not approved.", []),
        ("The tool call was denied.", []),
        ("refunded", ["approval-before-execution"]),
        ("It was not approved at first, and is refunded.", ["approval-before-execution"]),
    ],
)
@pytest.mark.parametrize("protocol", ["chat", "responses"])
def test_what_a_framework_tells_of_a_rejection_is_no_run(protocol: str, told: str, rules: list[str]) -> None:
    """The items of a session show no decisions, and the framework has words of its own for a rejection."""
    function = {"name": "refund", "arguments": '{"order": 7}'}
    conversation: list[dict[str, Any]] = [
        {"type": "function_call", "call_id": "c1", **function},
        {"type": "function_call_output", "call_id": "c1", "output": told},
    ]
    if protocol == "chat":
        conversation = [
            {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": "c1", "content": told},
        ]

    assert rules == [finding.rule for finding in judge_conversation(conversation, gated=["refund"])]
