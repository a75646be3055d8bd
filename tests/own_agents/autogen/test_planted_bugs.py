"""Bugs of applications with agents of AutoGen, planted in agents that are right without them: each is found.

The framework has no gates, so that nobody can forget one: the test asks in place of the application.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.tools import AgentTool
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import FunctionExecutionResultMessage, LLMMessage
from autogen_core.tools import FunctionTool

from pytest_approvals import Approvals, CheckFailed, approve, approve_all, calls, reject_all, say, send

done: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


async def refund(order: int) -> str:
    """Refunds an order."""
    done.append(order)
    return f"refunded {order}"


async def refund_twice(order: int) -> str:
    """Retries what has succeeded."""
    await refund(order)
    return await refund(order)


async def refund_another(order: int) -> str:
    """Changes what was approved."""
    return await refund(order + 1)


class Optimist(UnboundedChatCompletionContext):
    """Tells the model that all went well."""

    async def get_messages(self) -> list[LLMMessage]:
        messages = await super().get_messages()
        for message in messages:
            if isinstance(message, FunctionExecutionResultMessage):
                for result in message.content:
                    result.content = "ok"
        return messages


class Forgetful(UnboundedChatCompletionContext):
    """Forgets what the person wrote."""

    async def get_messages(self) -> list[LLMMessage]:
        return (await super().get_messages())[-2:]


def build(client: Any, body: Any = refund, **more: Any) -> AssistantAgent:
    tool = FunctionTool(body, name="refund", description="Refunds an order.")
    return AssistantAgent("desk", model_client=client, tools=[tool], max_tool_iterations=5, **more)


def build_manager(client: Any) -> AssistantAgent:
    """An agent whose tool is another agent."""
    return AssistantAgent("manager", model_client=client, tools=[AgentTool(build(client))], max_tool_iterations=5)


def build_optimist(client: Any) -> AssistantAgent:
    return build(client, model_context=Optimist())


def build_forgetful(client: Any) -> AssistantAgent:
    return build(client, model_context=Forgetful())


REFUND = [calls("refund", order=42), say("Done.")]
DELEGATED = {
    "main": [calls("desk", task="Refund 42"), say("Done.")],
    "desk": [calls("refund", order=42), say("Refunded.")],
}
GATED: dict[str, Any] = {"gated": {"refund"}}

FOUND = {
    "rejection-told-as-ok": (
        build_optimist,
        reject_all(),
        "rejection-told: .*expected  the model is told of the rejection\n +actual    it is told 'ok'",
        [],
    ),
    "state-is-dropped": (
        build_forgetful,
        approve_all(),
        "caller-messages-kept: .*expected  all messages\n +actual    'Refund' is not in the model's input",
        [42],
    ),
}


@pytest.mark.parametrize(("built", "model"), [(build, REFUND), (build_manager, DELEGATED)], ids=["agent", "manager"])
def test_the_agents_are_right_without_the_bugs(approvals: Approvals, built: Any, model: Any) -> None:
    """Approved and rejected, no check has anything to say."""
    approvals.run(built, "Refund", model=model, oracle=approve_all(), **GATED)
    approvals.run(built, "Refund", model=model, oracle=reject_all(), **GATED)

    assert [42] == done


@pytest.mark.parametrize(("built", "oracle", "message", "effects"), FOUND.values(), ids=FOUND)
def test_a_planted_bug_is_found(
    approvals: Approvals, built: Any, oracle: Any, message: str, effects: list[int]
) -> None:
    """The error names the check, and shows what should have been and what was."""
    with pytest.raises(CheckFailed, match=f"(?s)^{message}"):
        approvals.run(built, "Refund", model=REFUND, oracle=oracle, **GATED)

    assert effects == done


@pytest.mark.parametrize(("body", "effects"), [(refund_twice, [42, 42]), (refund_another, [43])])
def test_what_a_body_does_is_for_the_test(approvals: Approvals, body: Any, effects: list[int]) -> None:
    """A wrapper around a tool is the tool's body to the harness, which does not see into it."""
    approvals.run(partial(build, body=body), "Refund", model=REFUND, oracle=approve_all(), **GATED)

    assert effects == done


def test_an_answer_that_comes_twice_is_refused(approvals: Approvals) -> None:
    """The refusal is an outcome of the run."""
    run = approvals.run(build, model=REFUND, caller=[send("Refund"), approve("c1"), approve("c1")], **GATED)

    assert run.turns[-1].refused
    assert [42] == done


def test_what_no_gate_covers_is_a_note(notes: Callable[[str], list[str]]) -> None:
    """Without `gated=`, the end of the session lists the tools with effects, also those of agents inside."""
    found = notes(
        """
        from autogen_agentchat.agents import AssistantAgent
        from autogen_agentchat.tools import AgentTool
        from pytest_approvals import say

        async def refund(order: int) -> str:
            "Refunds."
            return "refunded"

        async def look_up(order: int) -> str:
            "Looks up."
            return "seen"

        async def delete_account(name: str) -> str:
            "Deletes."
            return "deleted"

        def build(client):
            desk = AssistantAgent("desk", model_client=client, tools=[refund, look_up])
            return AssistantAgent("boss", model_client=client, tools=[AgentTool(desk), delete_account])

        def test_it(approvals):
            approvals.run(build, "Hello", model=[say("Done.")])
        """
    )

    assert ["delete_account, refund"] == found


def test_drawn_stories_find_a_forgotten_message(approvals: Approvals) -> None:
    """Of the agent without the bug they find nothing."""
    approvals.explore(build, stories=10, **GATED)

    with pytest.raises(CheckFailed, match="^caller-messages-kept: "):
        approvals.explore(build_forgetful, stories=20, **GATED)
