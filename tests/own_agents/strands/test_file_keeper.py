"""A keeper of files in Strands, after https://strandsagents.com/docs/user-guide/concepts/interrupts/.

A hook interrupts before a deletion; it takes `y`, `n`, and `t` to trust the tool from then on.
"""

from __future__ import annotations

from typing import Any

import pytest
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent, HookProvider, HookRegistry

from pytest_approvals import Approvals, approve, approve_all, call, calls, decide, reject, reject_all, say, send

deleted: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_deleted() -> None:
    deleted.clear()


@tool
def delete_files(paths: list[str]) -> bool:
    """Deletes files."""
    deleted.extend(paths)
    return True


@tool
def inspect_files(paths: list[str]) -> dict[str, int]:
    """Inspects files."""
    return dict.fromkeys(paths, 1)


class ApprovalHook(HookProvider):
    def __init__(self, app_name: str) -> None:
        self.app_name = app_name

    def register_hooks(self, registry: HookRegistry, **options: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.approve)

    def approve(self, event: BeforeToolCallEvent) -> None:
        name = event.tool_use["name"]
        if name != "delete_files" or event.agent.state.get(f"{name}-approval") == "t":
            return
        approval = event.interrupt(f"{self.app_name}-approval", reason={"paths": event.tool_use["input"]["paths"]})
        if approval.lower() not in ("y", "t"):
            event.cancel_tool = "User denied permission to delete files"
        event.agent.state.set(f"{name}-approval", approval.lower())


def build(model: Any) -> Agent:
    return Agent(
        model=model,
        tools=[delete_files, inspect_files],
        hooks=[ApprovalHook("keeper")],
        system_prompt="You delete files older than 5 days.",
        callback_handler=None,
    )


CLEAN = [calls("inspect_files", paths=["a", "b"]), calls("delete_files", paths=["a"]), say("Deleted.")]


def test_an_approved_deletion_is_made_once(approvals: Approvals) -> None:
    run = approvals.run(build, "Clean up", model=CLEAN, oracle=approve_all(), gated={"delete_files"})

    assert ["a"] == deleted
    assert ["delete_files"] == [request.tool for request in run.requests]


def test_a_rejected_deletion_is_not_made(approvals: Approvals) -> None:
    approvals.run(build, "Clean up", model=CLEAN, oracle=reject_all(), gated={"delete_files"})

    assert [] == deleted


def test_each_of_two_calls_has_its_answer(approvals: Approvals) -> None:
    both = calls(call("delete_files", paths=["a"]), call("delete_files", paths=["b"]))
    approvals.run(build, model=[both, say("One.")], caller=[send("Clean up"), decide(approve("c1"), reject("c2"))])

    assert ["a"] == deleted


@pytest.mark.parametrize("stream", [False, True])
def test_inspections_are_not_asked_about(approvals: Approvals, stream: bool) -> None:
    run = approvals.run(
        build,
        "Look",
        model=[calls("inspect_files", paths=["a"]), say("One file.")],
        gated={"delete_files"},
        stream=stream,
    )

    assert [] == run.requests


def test_an_approval_survives_a_save(approvals: Approvals, serialize_mode: str) -> None:
    approvals.run(build, "Clean up", model=CLEAN, oracle=approve_all())

    assert ["a"] == deleted


def test_an_approval_survives_a_restart(approvals: Approvals) -> None:
    run = approvals.run(build, "Clean", model=CLEAN, oracle=approve_all(), serialize="json", resume="fresh")

    assert 1 == len(run.calls["delete_files"].executions)
