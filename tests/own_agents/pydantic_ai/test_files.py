"""A keeper of files in Pydantic AI, after "Human-in-the-Loop Tool Approval" of its documentation (ai.pydantic.dev).

Deleting always needs approval; changing a file does if the file is protected, which the tool's body finds out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, RunContext

from pytest_approvals import Approvals, approve, approve_all, calls, edit, reject, reject_all, say, send, when

PROTECTED = ".env"


@dataclass
class Disk:
    files: dict[str, str] = field(default_factory=lambda: {PROTECTED: "KEY=1", "README.md": "Hello"})
    log: list[str] = field(default_factory=list)


def build(model: Any) -> Agent[Disk, Any]:
    agent: Agent[Disk, Any] = Agent(model, deps_type=Disk, output_type=[str, DeferredToolRequests])

    @agent.tool
    def update_file(ctx: RunContext[Disk], path: str, content: str) -> str:
        if path == PROTECTED and not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "protected"})
        ctx.deps.files[path] = content
        return f"File {path!r} updated"

    @agent.tool(requires_approval=True)
    def delete_file(ctx: RunContext[Disk], path: str) -> str:
        del ctx.deps.files[path]
        return f"File {path!r} deleted"

    return agent


def build_with_reviewer(model: Any) -> Agent[Disk, Any]:
    agent = build(model)
    reviewer: Agent[Disk, str] = Agent(model, name="reviewer", deps_type=Disk)

    @reviewer.tool
    def read_file(ctx: RunContext[Disk], path: str) -> str:
        return ctx.deps.files[path]

    @agent.tool
    async def review(ctx: RunContext[Disk], path: str) -> str:
        return (await reviewer.run(f"Review {path}", deps=ctx.deps)).output

    return agent


DELETION = [calls("delete_file", path="README.md"), say("Deleted.")]


def test_an_approved_deletion_is_made(approvals: Approvals) -> None:
    disk = Disk()
    run = approvals.run(build, "Delete the readme", model=DELETION, run_options={"deps": disk}, oracle=approve_all())

    assert [PROTECTED] == list(disk.files)
    assert "Deleted." == run.output


def test_a_rejected_deletion_is_not_made(approvals: Approvals) -> None:
    disk = Disk()
    approvals.run(build, "Delete the readme", model=DELETION, run_options={"deps": disk}, oracle=reject_all("keep it"))

    assert "README.md" in disk.files


def test_a_deletion_is_edited(approvals: Approvals) -> None:
    disk = Disk(files={"a": "", "b": ""})
    approvals.run(
        build,
        model=[calls("delete_file", path="a"), say("Deleted.")],
        run_options={"deps": disk},
        caller=[send("Delete a"), edit("c1", {"path": "b"})],
    )

    assert ["a"] == list(disk.files)


def test_an_approval_survives_a_save(approvals: Approvals) -> None:
    run = approvals.run(
        build,
        "Delete the readme",
        model=DELETION,
        run_options={"deps": Disk()},
        oracle=approve_all(),
        serialize="json",
    )

    assert ["File 'README.md' deleted"] == [one.result for one in run.calls["delete_file"].executions]


@pytest.mark.parametrize("stream", [False, True])
def test_only_the_protected_file_is_asked_about(approvals: Approvals, stream: bool) -> None:
    disk = Disk()
    model = [
        calls("update_file", path="README.md", content="Hi"),
        calls("update_file", path=PROTECTED, content="KEY=2"),
        say("Updated."),
    ]
    run = approvals.run(
        build,
        model=model,
        run_options={"deps": disk},
        caller=[send("Update both"), approve("c2")],
        stream=stream,
        gated={"update_file": when("path", equals=PROTECTED), "delete_file": "always"},
    )

    assert [{"path": PROTECTED, "content": "KEY=2"}] == [request.arguments for request in run.requests]
    assert {PROTECTED: "KEY=2", "README.md": "Hi"} == disk.files


def test_a_reviewer_reads_before_a_deletion_is_asked_about(approvals: Approvals) -> None:
    disk = Disk()
    run = approvals.run(
        build_with_reviewer,
        model={
            "main": [calls("review", path="README.md"), calls("delete_file", path="README.md"), say("Kept.")],
            "reviewer": [calls("read_file", path="README.md"), say("It is fine.")],
        },
        run_options={"deps": disk},
        caller=[send("Clean up"), reject("c2", "it is fine")],
    )

    assert ["Hello"] == [one.result for one in run.calls["read_file"].executions]
    assert "README.md" in disk.files
