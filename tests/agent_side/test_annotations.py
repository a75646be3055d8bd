"""What the application decides by the annotations of a server's tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from mcp.types import ToolAnnotations

from pytest_approvals.agent_side.contract import needs_approval_by_annotations
from pytest_approvals.agent_side.kit.clients import read_annotations


@pytest.mark.parametrize(
    ("annotations", "waits"),
    [
        (None, True),
        ({}, True),
        ({"readOnlyHint": True}, False),
        ({"readOnlyHint": True, "destructiveHint": True}, False),
        ({"readOnlyHint": False}, True),
        ({"destructiveHint": True}, True),
        ({"destructiveHint": False}, False),
        ({"readOnlyHint": None, "destructiveHint": None}, True),
        ({"idempotentHint": True}, True),
        ({"readOnlyHint": "true"}, True),
    ],
)
def test_a_tool_is_taken_to_destroy_unless_its_server_denies_it(
    annotations: Mapping[str, Any] | None, waits: bool
) -> None:
    """The defaults are those of MCP; what is no boolean says nothing."""
    assert waits is needs_approval_by_annotations(annotations)


@pytest.mark.parametrize("said", [None, {}, {"readOnlyHint": True}])
def test_annotations_of_a_client_are_left_as_they_are(said: Mapping[str, Any] | None) -> None:
    """Those that are a mapping, or absent."""
    assert said == read_annotations(said)


def test_annotations_of_the_sdk_have_the_words_of_mcp() -> None:
    """Whatever the attributes are called; what is not set is not there."""
    said = ToolAnnotations.model_validate({"readOnlyHint": False, "destructiveHint": True})

    assert {"readOnlyHint": False, "destructiveHint": True} == read_annotations(said)
