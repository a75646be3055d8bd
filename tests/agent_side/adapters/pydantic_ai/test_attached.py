"""A user's own agent under test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, CallDeferred, DeferredToolRequests, FunctionToolset, RunContext

from pytest_approvals import approve, call, calls, decide, reject, returns, say, tool
from pytest_approvals.agent_side.adapters.pydantic_ai import FLAVOURS
from pytest_approvals.agent_side.contract import Attachment, Blueprint
from pytest_approvals.scenario.model import Variant
from pytest_approvals.testing import FakeWorld

Play = Callable[..., Any]

DONE = say("Done.")


@dataclass
class Bank:
    """What a person's tools work on."""

    paid: list[int] = field(default_factory=list)


def support(model: Any, output: Any = (str, DeferredToolRequests)) -> Agent[Bank, Any]:
    """A person's agent, with gates of all kinds."""
    agent = Agent(model, deps_type=Bank, output_type=list(output), toolsets=[_filed()])

    @agent.tool(requires_approval=True)
    def refund(ctx: RunContext[Bank], order: int, note: str = "") -> str:
        ctx.deps.paid.append(order)
        return f"refunded {order}"

    @agent.tool
    def lookup(ctx: RunContext[Bank], order: int) -> str:
        if order > 100 and not ctx.tool_call_approved:
            raise ApprovalRequired
        return f"order {order}"

    @agent.tool_plain
    async def send_mail(to: str) -> str:
        raise ConnectionError("this would have been a real mail")

    return agent


def _filed() -> Any:
    files: FunctionToolset[Bank] = FunctionToolset()

    @files.tool_plain
    def delete(path: str) -> str:
        return f"deleted {path}"

    return files.approval_required().prefixed("file")


@pytest.fixture
def bank() -> Bank:
    return Bank()


@pytest.fixture
def attach(play: Play, bank: Bank) -> Play:
    """Plays on the support agent; its mails are stubbed."""

    def attached(*replies: Any, subject: Any = support, **parts: Any) -> Any:
        attachment = Attachment(subject=subject, stubs=frozenset({"send_mail"}), run_options={"deps": bank})
        mail = tool("send_mail", returns("sent to {to}"), parameters={"to": "string"})
        return play(*replies, attach=attachment, attached=True, tools=[mail], **parts)

    return attached


@pytest.mark.parametrize("subject", [support, support("test")], ids=["factory", "agent"])
def test_real_tools_run_with_the_person_s_options(attach: Play, bank: Bank, variant: Variant, subject: Any) -> None:
    """After the approval, recorded as real, with what was given for the run call."""
    played = attach(calls("refund", order=42), DONE, subject=subject, variant=variant)

    assert (["paused", "finished"], [42]) == (played.outcomes, bank.paid)
    assert [("refund", {"order": 42, "note": ""})] == played.ran
    assert [True] == [one["real"] for one in played.events("tool.start")]


def test_a_rejected_real_tool_does_not_run(attach: Play, bank: Bank) -> None:
    """Nothing happened."""
    attach(calls("refund", order=42), DONE, caller=["Refund.", decide(reject("c1"))])

    assert [] == bank.paid


def test_a_stub_stands_for_a_real_tool(attach: Play) -> None:
    """Its body is not entered."""
    played = attach(calls("send_mail", to="me"), DONE)

    assert {"c1": "sent to me"} == played.told


def test_a_body_that_asks_is_recorded_as_asking(attach: Play, variant: Variant) -> None:
    """It was entered, and ended by asking; after the approval it is entered again."""
    played = attach(calls("lookup", order=200), DONE, variant=variant)

    assert [["c1"], []] == played.requests
    assert ["asked", "returned"] == [one["how"] for one in played.events("tool.end")]


def test_a_renamed_tool_goes_by_the_name_that_the_model_has(attach: Play) -> None:
    """Its gate is outside of the wrapped tool."""
    played = attach(calls("file_delete", path="a.txt"), DONE)

    assert ([["c1"], []], [("file_delete", {"path": "a.txt"})]) == (played.requests, played.ran)


def test_the_agent_tells_what_it_has(bank: Bank) -> None:
    """Tools with their parameters; those that the framework marks wait always, a policy in a body cannot be read."""
    blueprint = Blueprint(attachment=Attachment(subject=support, run_options={"deps": bank}))
    found = {spec.name: spec for spec in FLAVOURS[""](FakeWorld([], []), blueprint).tools()}

    assert {"refund": "always", "lookup": "never", "send_mail": "never", "file_delete": "always"} == {
        name: spec.approval for name, spec in found.items()
    }
    assert ("integer", True) == (found["refund"].parameters["order"].type, found["refund"].parameters["order"].required)
    assert ("", False) == (found["refund"].parameters["note"].default, found["refund"].parameters["note"].required)


def test_a_gate_that_was_forgotten_stays_open(play: Play, bank: Bank) -> None:
    """What the person says is gated and the framework does not mark runs without being asked about."""
    attachment = Attachment(subject=support, gated=frozenset({"lookup"}), run_options={"deps": bank})
    played = play(calls("lookup", order=1), DONE, attach=attachment, attached=True, tools=[])

    assert (["finished"], [("lookup", {"order": 1})]) == (played.outcomes, played.ran)


def test_an_agent_without_the_pause_in_its_output_fails_as_it_would(attach: Play) -> None:
    """The framework's own error comes out, after the ungated sibling ran."""
    both = calls(call("refund", order=42), call("lookup", order=1))
    played = attach(both, DONE, subject=lambda model: support(model, [str]))

    assert (["UserError"], [("lookup", {"order": 1})]) == (played.outcomes, played.ran)
    assert "`DeferredToolRequests` is not among output types" in played.events("turn.end")[0]["error"][1]


def test_output_of_a_person_s_type_is_told_as_json(attach: Play) -> None:
    """The final result comes through the framework's output tool."""

    class Verdict(BaseModel):
        refund: bool

    answer = calls(call("final_result", unknown_tool=True, refund=True))
    played = attach(answer, subject=lambda model: support(model, [Verdict, DeferredToolRequests]))

    assert {"refund": True} == played.events("turn.end")[0]["output"]


def test_a_call_that_runs_elsewhere_pauses(attach: Play) -> None:
    """What the application has to execute is a request, too."""

    def deferring(model: Any) -> Any:
        agent = support(model)

        @agent.tool_plain
        def ship() -> str:
            raise CallDeferred

        return agent

    played = attach(calls("ship"), DONE, subject=deferring)

    assert "paused" == played.events("turn.end")[0]["outcome"]


def test_a_late_answer_is_refused(attach: Play, bank: Bank) -> None:
    """The real tool ran once."""
    played = attach(
        calls("refund", order=42),
        DONE,
        subject=support("test"),
        caller=["Refund.", decide(approve("c1")), decide(approve("c1"))],
    )

    assert (["paused", "finished", "UserError"], [42]) == (played.outcomes, bank.paid)
