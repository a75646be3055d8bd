"""A mail assistant of LangChain, after https://docs.langchain.com/oss/python/langchain/human-in-the-loop.

`HumanInTheLoopMiddleware` asks about mails that leave the company, which its `when` decides, and about each deletion,
which may be approved or rejected only. Reading is not asked about.
"""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import tool

from pytest_approvals import Approvals, approve, approve_all, call, calls, decide, edit, reject, reject_all, say, send

sent: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    sent.clear()


@tool
def read_mail(number: int) -> str:
    """Reads a mail."""
    return f"mail {number}"


@tool
def send_mail(recipient: str, subject: str) -> str:
    """Sends a mail."""
    sent.append(recipient)
    return f"sent to {recipient}"


@tool
async def delete_mail(number: int) -> str:
    """Deletes a mail."""
    return f"deleted {number}"


def leaves_the_company(request: Any) -> bool:
    return not request.tool_call["args"]["recipient"].endswith("@ours.example")


def build(model: Any) -> Any:
    gate = HumanInTheLoopMiddleware(
        interrupt_on={
            "send_mail": {"allowed_decisions": ["approve", "edit", "reject"], "when": leaves_the_company},
            "delete_mail": {"allowed_decisions": ["approve", "reject"], "description": "This cannot be undone."},
            "read_mail": False,
        },
        description_prefix="A mail waits for approval",
    )
    return create_agent(model, [read_mail, send_mail, delete_mail], middleware=[gate], system_prompt="Be brief.")


GATES = {
    "send_mail": lambda arguments: not arguments["recipient"].endswith("@ours.example"),
    "delete_mail": "always",
}
MAIL = [calls("read_mail", number=1), calls("send_mail", recipient="ann@else.example", subject="Hi"), say("Sent.")]


def test_an_approved_mail_is_sent_once(approvals: Approvals) -> None:
    run = approvals.run(build, "Answer Ann", model=MAIL, oracle=approve_all(), gated=GATES)

    assert ["ann@else.example"] == sent
    assert ["send_mail"] == [request.tool for request in run.requests]


def test_a_rejected_mail_is_not_sent(approvals: Approvals) -> None:
    approvals.run(build, "Answer Ann", model=MAIL, oracle=reject_all("wrong tone"), gated=GATES)

    assert [] == sent


def test_another_recipient_gets_the_mail(approvals: Approvals) -> None:
    approvals.run(
        build,
        model=[calls("send_mail", recipient="ann@else.example", subject="Hi"), say("Sent.")],
        caller=[send("Answer Ann"), edit("c1", {"recipient": "bob@else.example", "subject": "Hi"})],
        gated=GATES,
    )

    assert ["bob@else.example"] == sent


@pytest.mark.parametrize("stream", [False, True])
def test_mails_within_the_company_are_not_asked_about(approvals: Approvals, stream: bool) -> None:
    run = approvals.run(
        build,
        "Tell Cid",
        model=[calls("send_mail", recipient="cid@ours.example", subject="Hi"), say("Sent.")],
        gated=GATES,
        stream=stream,
    )

    assert [] == run.requests
    assert ["cid@ours.example"] == sent


def test_each_of_two_calls_has_its_answer(approvals: Approvals) -> None:
    both = calls(call("send_mail", recipient="ann@else.example", subject="Hi"), call("delete_mail", number=1))
    run = approvals.run(
        build,
        model=[both, say("Sent, not deleted.")],
        caller=[send("Answer and delete"), decide(approve("c1"), reject("c2", "keep it"))],
        gated=GATES,
    )

    assert ["ann@else.example"] == sent
    assert [] == run.calls["delete_mail"].executions


@pytest.mark.parametrize("serialize", ["copy", "native.sqlite"])
def test_an_approval_survives_a_save(approvals: Approvals, serialize: Any) -> None:
    approvals.run(build, "Answer Ann", model=MAIL, oracle=approve_all(), gated=GATES, serialize=serialize)

    assert ["ann@else.example"] == sent


def test_an_approval_survives_a_restart(approvals: Approvals) -> None:
    run = approvals.run(
        build, "Answer", model=MAIL, oracle=approve_all(), gated=GATES, serialize="native.sqlite", resume="fresh"
    )

    assert ["sent to ann@else.example"] == [one.result for one in run.calls["send_mail"].executions]
