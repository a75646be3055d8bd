"""What the provider of a scripted model executes by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.runner.hosted_mcp import execute_approved
from pytest_approvals.runner.script import ScriptedCall, ScriptState


def find_executed(calls: list[ScriptedCall], items: list[Item]) -> list[str]:
    """Return the labels of the calls that the provider executes for an input."""

    async def execute(call: ScriptedCall, arguments: Mapping[str, Any]) -> str:
        return "ok"

    executed = asyncio.run(execute_approved(items, ScriptState(calls=calls), execute))
    return [label for label, _ in executed]


def find_call(label: str) -> ScriptedCall:
    return ScriptedCall(
        label=label, reply=0, agent="main", id="m1", tool="find", arguments={}, kind="hosted_mcp", server="wiki"
    )


REQUEST = Item(kind="approval_request", id="m1", tool="find", arguments={})
APPROVAL = Item(kind="approval_response", id="m1", approved=True)
RESULT = Item(kind="hosted_result", id="m1", tool="find", arguments={}, text="ok")


@pytest.mark.parametrize(
    ("items", "labels"),
    [
        ([REQUEST], []),
        ([REQUEST, APPROVAL], ["c1"]),
        ([REQUEST, APPROVAL, RESULT], []),
        ([REQUEST, APPROVAL, Item(kind="hosted_result", id="m2", text="ok")], ["c1"]),
    ],
    ids=["asked", "approved", "reported", "another one reported"],
)
def test_an_approved_call_runs_until_its_result_is_in_the_input(items: list[Item], labels: list[str]) -> None:
    """A provider that is sent what it has reported does not call the server again, whoever has forgotten it."""
    assert labels == find_executed([find_call("c1")], items)


def test_of_two_calls_with_one_id_the_one_without_a_result_runs() -> None:
    """Results belong to the calls in their order."""
    items = [REQUEST, APPROVAL, RESULT, REQUEST, APPROVAL]

    assert ["c2"] == find_executed([find_call("c1"), find_call("c2")], items)
