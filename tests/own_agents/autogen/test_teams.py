"""Teams of AutoGen: one message is answered by several agents, whose replies follow each other in the script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat, Swarm

from pytest_approvals import Approvals, CheckFailed, UsageError, call, calls, reject_all, say
from tests.own_agents.autogen.test_planted_bugs import Optimist

refunded: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_refunded() -> None:
    refunded.clear()


async def refund(order: int) -> str:
    """Refunds an order."""
    refunded.append(order)
    return f"refunded {order}"


async def look(order: int) -> str:
    """Looks an order up."""
    return f"order {order}"


def build_agent(name: str, model: Any, *tools: Any, **options: Any) -> AssistantAgent:
    return AssistantAgent(name, model_client=model, tools=list(tools), description=name, **options)


def build_round_robin(model: Any) -> RoundRobinGroupChat:
    clerk = build_agent("clerk", model, refund, look, reflect_on_tool_use=True)
    checker = build_agent("checker", model, look, reflect_on_tool_use=True)
    return RoundRobinGroupChat([clerk, checker], max_turns=4)


def build_optimists(model: Any) -> RoundRobinGroupChat:
    clerk = build_agent("clerk", model, refund, model_context=Optimist(), reflect_on_tool_use=True)
    return RoundRobinGroupChat([clerk, build_agent("checker", model, look)], max_turns=4)


def build_swarm(model: Any) -> Swarm:
    clerk = build_agent("clerk", model, refund, handoffs=["checker"])
    return Swarm([clerk, build_agent("checker", model, look)], termination_condition=MaxMessageTermination(3))


def build_selector(model: Any) -> SelectorGroupChat:
    agents = [build_agent("clerk", model, refund), build_agent("checker", model, look)]

    def select(messages: Any) -> str:
        return "clerk" if len(messages) < 2 else "checker"

    return SelectorGroupChat(agents, model_client=model, selector_func=select, max_turns=2)  # type: ignore[arg-type]


@pytest.mark.parametrize("build", [build_round_robin, build_swarm, build_selector], ids=lambda build: build.__name__)
def test_drawn_stories_of_a_team_find_nothing(approvals: Approvals, build: Callable[[Any], Any]) -> None:
    """Each agent has a last reply for each time that it speaks, and none calls anything when it reflects on results."""
    approvals.explore(build, stories=20, gated=["refund"])


def test_drawn_stories_of_a_team_find_a_bug(approvals: Approvals) -> None:
    """The story that is shown has a last reply for each time that the first agent speaks."""
    with pytest.raises(CheckFailed, match="^result-matches-its-call: ") as raised:
        approvals.explore(build_optimists, stories=20, gated=["refund"])

    assert 'say("Done."),\n        say("Done."),' in "\n".join(raised.value.__notes__)


def build_endless(model: Any) -> Swarm:
    clerk = build_agent("clerk", model, refund, handoffs=["checker"])
    checker = build_agent("checker", model, look, handoffs=["clerk"])
    return Swarm([clerk, checker], termination_condition=TextMentionTermination("TERMINATE"))


def test_the_word_that_ends_a_team_is_named(approvals: Approvals) -> None:
    """Without it the team asks its model for ever."""
    approvals.explore(build_endless, stories=10, gated=["refund"], ending="TERMINATE")

    with pytest.raises(UsageError, match="11 times, which answers 'Done.'; .* explore\\(..., ending=\"TERMINATE\"\\)"):
        approvals.explore(build_endless, stories=10, gated=["refund"])


def test_a_call_in_the_reply_of_another_agent_is_refused(approvals: Approvals) -> None:
    """The first reply is the first agent's, who has no such tool."""

    def build(model: Any) -> RoundRobinGroupChat:
        return RoundRobinGroupChat([build_agent("a", model, look), build_agent("b", model, refund)], max_turns=2)

    expected = (
        "the script of the model of autogen calls 'refund' \\(c1\\) where the first agent speaks, whose tools are "
        "look; agent 'b' has 'refund', and has its own replies in the order of the team"
    )
    model = [calls(call("refund", {"order": 7})), say("Done.")]
    with pytest.raises(UsageError, match=expected):
        approvals.run(build, model=model, gated=["refund"], oracle=reject_all(), unused=True)
