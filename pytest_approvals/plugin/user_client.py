"""The scripted model of a person's test behind the clients of providers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.model_server.conversation import ANY_PROTOCOL, ConversationOptions, ServedConversation
from pytest_approvals.plugin.run_options import resolve_options
from pytest_approvals.processes.agent_source import AgentFacts
from pytest_approvals.runner.run import RecordedRun
from pytest_approvals.scenario.build import scenario
from pytest_approvals.scenario.model import Scenario, ScriptedReply

if TYPE_CHECKING:
    from pytest_approvals.plugin.session import ApprovalsSession

CLIENT_AGENT = "own-agent"
"""What journals, reports and addresses call the agent of a test that has a client of its own."""


def create_client_conversation(test: str, replies: Sequence[ScriptedReply]) -> ServedConversation:
    """
    Gives the conversation that plays a script.

    Arguments:
        test: What the journal says that it is about.
        replies: The script; the test may still be writing it.
    """
    return ServedConversation(
        CLIENT_AGENT, _growing_scenario(test, replies), ConversationOptions(protocol=ANY_PROTOCOL)
    )


def configure_conversation(conversation: ServedConversation, **wishes: Any) -> None:
    """
    Says how a script is played.

    Errors:
        UsageError: A request came already, or something is wished for that does not exist.
    """
    if conversation.play is not None:
        raise UsageError("the scripted model was asked already; say how it speaks before a client is used")
    known = {one.name for one in fields(ConversationOptions)} - {"again", "journal"}
    for word in wishes:
        if word not in known:
            raise UnknownName("wish for a scripted model", word, known)
    conversation.wishes = replace(conversation.wishes, **wishes)


def _growing_scenario(test: str, replies: Sequence[ScriptedReply]) -> Callable[[], Scenario]:
    """Gives what makes the scenario of a script, anew only where the script has grown."""
    made: dict[int, Scenario] = {}

    def script() -> Scenario:
        if len(replies) not in made:
            made.clear()
            made[len(replies)] = scenario(id=test, title=test or "Own test", model=replies, attached=True)
        return made[len(replies)]

    return script


class ClientAgentIdentity:
    """What is known of an agent that reaches the scripted model by a client of its own."""

    name = CLIENT_AGENT
    facts = AgentFacts()


def judge_conversation(
    item: pytest.Item, conversation: ServedConversation, bench: ApprovalsSession, config: Mapping[str, Any]
) -> None:
    """
    Judges what a scripted model was asked by a client, where it was asked at all.

    Errors:
        CheckFailed: It broke a requirement, and the test does not collect what checks say.
    """
    __tracebackhide__ = True
    play = conversation.play
    if play is None:
        return
    run = RecordedRun(scenario=play.scenario, variant=play.variant, agent=CLIENT_AGENT, journal=play.journal)
    judged = bench.judge(item, run, ClientAgentIdentity(), own=True)
    if resolve_options(item, config, bench.settings)["checks"] == "raise":
        judged.raise_findings()
    for warning in judged.warnings():
        item.warn(warning)
