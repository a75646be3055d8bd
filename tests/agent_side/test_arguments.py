"""Arguments as a model may write them."""

from __future__ import annotations

from pytest_approvals.agent_side.kit.tool_schema import parse_arguments


def test_arguments_that_are_nested_too_deep_stay_text() -> None:
    """Python's parser gives up on them; they are no object."""
    text = '{"amount": ' + "[" * 100_000

    assert text == parse_arguments(text)
