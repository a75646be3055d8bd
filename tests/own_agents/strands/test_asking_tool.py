"""A tool of Strands that interrupts in its own body, after "Tools" of the guide to interrupts.

https://strandsagents.com/docs/user-guide/concepts/interrupts/

It asks above a number of objects only, and reads an answer of its own: the keys to keep, or a word.
"""

from __future__ import annotations

from typing import Any

import pytest
from strands import Agent, ToolContext, tool

from pytest_approvals import Approvals, approve, approve_all, calls, edit, reject, reject_all, say, send

deleted: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_deleted() -> None:
    deleted.clear()


@tool(context=True)
def delete_objects(keys: list[str], tool_context: ToolContext) -> str:
    """Deletes objects."""
    if len(keys) > 1:
        answer = tool_context.interrupt("delete-objects", reason=f"{len(keys)} objects")
        if not answer["proceed"]:
            return f"nothing deleted: {answer.get('because')}"
        keys = answer.get("keys", keys)
    deleted.extend(keys)
    return f"deleted {len(keys)}"


def build(model: Any) -> Agent:
    return Agent(model=model, tools=[delete_objects], callback_handler=None)


ANSWERS: dict[Any, Any] = {
    "approve": {"proceed": True},
    "reject": lambda decision: {"proceed": False, "because": decision.reason},
    "edit": lambda decision: {"proceed": True, "keys": decision.arguments["keys"]},
}
TWO = [calls("delete_objects", keys=["a", "b"]), say("Done.")]


def test_an_approved_deletion_is_made_once(approvals: Approvals) -> None:
    approvals.run(build, "Delete both", model=TWO, oracle=approve_all(), answers=ANSWERS)

    assert ["a", "b"] == deleted


def test_a_rejected_deletion_is_not_made(approvals: Approvals) -> None:
    run = approvals.run(build, "Delete both", model=TWO, oracle=reject_all("keep them"), answers=ANSWERS)

    assert [] == deleted
    assert "nothing deleted: keep them" in str(run.transcript)


def test_other_objects_are_deleted(approvals: Approvals) -> None:
    approvals.run(build, model=TWO, caller=[send("Delete"), edit("c1", {"keys": ["b"]})], answers=ANSWERS)

    assert ["b"] == deleted


@pytest.mark.parametrize("stream", [False, True])
def test_a_single_object_is_not_asked_about(approvals: Approvals, stream: bool) -> None:
    run = approvals.run(
        build, "Delete a", model=[calls("delete_objects", keys=["a"]), say("Done.")], answers=ANSWERS, stream=stream
    )

    assert [] == run.requests
    assert ["a"] == deleted


def test_an_approval_survives_a_save(approvals: Approvals, serialize_mode: str) -> None:
    approvals.run(build, "Delete both", model=TWO, oracle=approve_all(), answers=ANSWERS)

    assert ["a", "b"] == deleted


def test_each_deletion_has_its_answer(approvals: Approvals) -> None:
    model = [calls("delete_objects", keys=["a", "b"]), calls("delete_objects", keys=["c", "d"]), say("Some.")]
    approvals.run(build, model=model, caller=[send("Delete all"), reject("c1", "no"), approve("c2")], answers=ANSWERS)

    assert ["c", "d"] == deleted
