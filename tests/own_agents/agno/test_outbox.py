"""A sender of mails in Agno, after `cookbook/02_agents/10_human_in_the_loop/side_effect_tool_approval.py`.

https://github.com/agno-agi/agno/tree/main/cookbook/02_agents/10_human_in_the_loop

The agent has a database of its own, a hook around its tools and a state of its session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.run import RunContext
from agno.tools import tool

from pytest_approvals import Approvals, approve, approve_all, calls, edit, reject, reject_all, say, send

outbox: list[str] = []
hooked: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    outbox.clear()
    hooked.clear()


@tool(requires_confirmation=True)
def send_email(recipient: str, subject: str, run_context: RunContext) -> str:
    """Queues a mail."""
    outbox.append(f"{recipient}: {subject}")
    state = run_context.session_state or {}
    state["sent"] = state.get("sent", 0) + 1
    return f"{state['sent']} queued"


@tool
async def find_recipient(name: str) -> str:
    """Finds the address of a customer."""
    return f"{name}@example.com"


async def audit(function_name: str, function_call: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    hooked.append(function_name)
    result = function_call(**arguments)
    return await result if hasattr(result, "__await__") else result


def build(model: Any) -> Agent:
    return Agent(
        model=model,
        tools=[find_recipient, send_email],
        tool_hooks=[audit],
        session_state={"sent": 0},
        db=InMemoryDb(),
        add_history_to_context=True,
    )


WELCOME = [calls("find_recipient", name="ann"), calls("send_email", recipient="ann", subject="Hi"), say("Sent.")]


def test_an_approved_mail_is_queued_once(approvals: Approvals) -> None:
    run = approvals.run(build, "Welcome Ann", model=WELCOME, oracle=approve_all())

    assert ["ann: Hi"] == outbox
    assert ["1 queued"] == [execution.result for execution in run.calls["send_email"].executions]


def test_a_rejected_mail_is_not_queued(approvals: Approvals) -> None:
    approvals.run(build, "Welcome Ann", model=WELCOME, oracle=reject_all("not today"))

    assert [] == outbox


def test_another_subject_is_sent(approvals: Approvals) -> None:
    model = [calls("send_email", recipient="ann", subject="Hi"), say("Sent.")]
    approvals.run(build, model=model, caller=[send("Welcome"), edit("c1", {"recipient": "ann", "subject": "Hello"})])

    assert ["ann: Hello"] == outbox


@pytest.mark.parametrize("stream", [False, True])
def test_the_hook_is_called_for_what_runs(approvals: Approvals, stream: bool) -> None:
    approvals.run(build, "Welcome Ann", model=WELCOME, oracle=approve_all(), stream=stream)

    assert ["find_recipient", "send_email"] == hooked


def test_the_state_of_the_session_counts_on(approvals: Approvals) -> None:
    model = [
        calls("send_email", recipient="ann", subject="A"),
        say("One."),
        calls("send_email", recipient="bob", subject="B"),
        say("Two."),
    ]
    caller = [send("Ann"), approve("c1"), send("Bob"), approve("c2")]
    run = approvals.run(build, model=model, caller=caller)

    assert ["1 queued", "2 queued"] == [execution.result for execution in run.calls["send_email"].executions]


@pytest.mark.parametrize("serialize", ["copy", "native.sqlite"])
def test_an_approval_survives_a_save(approvals: Approvals, serialize: Any) -> None:
    approvals.run(build, "Welcome Ann", model=WELCOME, oracle=approve_all(), serialize=serialize)

    assert ["ann: Hi"] == outbox


def test_a_rejected_mail_can_be_sent_later(approvals: Approvals) -> None:
    again = [calls("send_email", recipient="ann", subject="Hi"), say("Not sent.")]
    model = [*again, calls("send_email", recipient="ann", subject="Later"), say("Sent.")]
    caller = [send("Welcome"), reject("c1", "later"), send("Now"), approve("c2")]
    approvals.run(build, model=model, caller=caller)

    assert ["ann: Later"] == outbox
