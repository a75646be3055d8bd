"""Conditions on arguments that no comparison was made for."""

from __future__ import annotations

import pytest

from pytest_approvals.agent_side.contract.types import Condition, needs_approval


@pytest.mark.parametrize(
    "condition",
    [Condition(argument="amount", greater_than=5.0), Condition(argument="amount", less_than=5.0)],
    ids=["greater", "less"],
)
@pytest.mark.parametrize("amount", [10**400, "much", [5], None])
def test_what_cannot_be_compared_needs_approval(condition: Condition, amount: object) -> None:
    """A whole number beyond all fractions, a word or a list does not open the gate."""
    assert needs_approval(condition, {"amount": amount})
