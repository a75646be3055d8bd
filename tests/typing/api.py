"""
The public API as a type checker sees it; this file is checked, and never run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_type

from pytest_approvals import (
    Approvals,
    CheckFailed,
    ModelServer,
    Oracle,
    Request,
    RunResult,
    Scenario,
    ScriptedModel,
    allowlist,
    approve,
    approve_all,
    call,
    calls,
    decide,
    first_of,
    on,
    policy,
    reject,
    reject_all,
    returns,
    say,
    send,
    tool,
    when,
)
from pytest_approvals.checks import Finding
from pytest_approvals.journal.history import Exchange, Execution, SurfacedRequest
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.scenario import model
from pytest_approvals.simulation import ReferenceAgent
from pytest_approvals.testing import AdapterTests, FakeWorld


def a_test_of_ones_own(approvals: Approvals, scripted_model: ScriptedModel, factory: object) -> None:
    """What a person's test calls."""
    answers: dict[str, object] = {"approve": {"allowed": True}, "reject": lambda decision: decision.reason}
    run = approvals.run(
        factory,
        "Refund order 42",
        answers=answers,
        model=[calls("refund", order=42), say("Refunded.")],
        gated={"refund"},
        tools={"send_mail": returns("ok"), "log": [returns(1), returns(2)]},
        run_options={"deps": object()},
        oracle=reject_all("over the limit"),
        serialize="json",
        stream=True,
    )
    assert_type(run, RunResult)
    assert_type(run.calls["refund"].executions, list[Execution])
    assert_type(run.requests, list[SurfacedRequest])
    assert_type(run.transcript, Transcript)
    approvals.run(factory, model=scripted_model.calls("refund", order=42).says("Refunded."))
    scripted_model.fails("timeout").fails(429, retry_after=2).speaks("messages", chunking="split").transport()


def a_test_of_an_own_client(scripted_model: ScriptedModel, model_server: ModelServer) -> None:
    """What a test of an agent with its own client calls."""
    assert_type(model_server.openai_url, str)
    assert_type(model_server.environment, dict[str, str])
    assert_type(scripted_model.requests, list[Exchange])


async def an_asynchronous_test(approvals: Approvals, factory: object) -> None:
    """The same, awaited."""
    run = await approvals.arun(factory, model=[say("Hello.")], caller=["Hello", approve("c1"), send("More")])
    assert_type(run, RunResult)


def oracles() -> None:
    """Oracles compose."""

    def decides(request: Request) -> bool | None:
        return request.tool == "read"

    several: Oracle = first_of(on("delete_*", reject_all("keep files")), policy(decides), approve_all())
    assert_type(allowlist("read_*", otherwise=several), Oracle)


def a_scenario() -> None:
    """Scenarios can be built."""
    story = Scenario(
        title="A refund is rejected",
        tools=[tool("refund", returns("ok"), parameters={"order": "integer"}, approval=when("order", greater_than=3))],
        model=[calls(call("refund", order=42), call("refund", order=43), say="Both."), say("Done.")],
        caller=["Refund them", [approve("c1"), reject("c2", "no")], decide(approve("c1"))],
    )
    assert_type(story, model.Scenario)


def findings(error: CheckFailed) -> tuple[Finding, ...]:
    """A failure holds its findings."""
    return error.findings


class ToyTests(AdapterTests):
    """An adapter's tests."""

    adapter = ReferenceAgent


def a_world(results: Mapping[str, object]) -> FakeWorld:
    """A world for tests of an adapter."""
    return FakeWorld([], [], results)
