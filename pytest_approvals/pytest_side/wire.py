"""The scripted model of a person's test behind the clients of providers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.harness.run import Run
from pytest_approvals.harness.sources import AgentFacts
from pytest_approvals.loopback.conversation import ANY, Conversation, Wishes
from pytest_approvals.loopback.server import LoopbackServer
from pytest_approvals.pytest_side.wishes import wishes_of
from pytest_approvals.scenario.build import scenario
from pytest_approvals.scenario.parts import Reply, Scenario

if TYPE_CHECKING:
    from pytest_approvals.pytest_side.bench import Bench

_NAME = "own-agent"
"""What journals, reports and addresses call the agent of a test that has a client of its own."""


def own_conversation(test: str, replies: Sequence[Reply]) -> Conversation:
    """
    Gives the conversation that plays a script.

    Arguments:
        test: What the journal says that it is about.
        replies: The script; the test may still be writing it.
    """
    return Conversation(_NAME, _growing(test, replies), Wishes(protocol=ANY))


def wish(conversation: Conversation, **wishes: Any) -> None:
    """
    Says how a script is played.

    Errors:
        UsageError: A request came already, or something is wished for that does not exist.
    """
    if conversation.play is not None:
        raise UsageError("the scripted model was asked already; say how it speaks before a client is used")
    known = {one.name for one in fields(Wishes)} - {"again", "journal"}
    for word in wishes:
        if word not in known:
            raise UnknownName("wish for a scripted model", word, known)
    conversation.wishes = replace(conversation.wishes, **wishes)


def _growing(test: str, replies: Sequence[Reply]) -> Callable[[], Scenario]:
    """Gives what makes the scenario of a script, anew only where the script has grown."""
    made: dict[int, Scenario] = {}

    def script() -> Scenario:
        if len(replies) not in made:
            made.clear()
            made[len(replies)] = scenario(id=test, title=test or "Own test", model=replies, attached=True)
        return made[len(replies)]

    return script


class OwnClient:
    """What is known of an agent that reaches the scripted model by a client of its own."""

    name = _NAME
    facts = AgentFacts()


def judge_conversation(item: pytest.Item, conversation: Conversation, bench: Bench, config: Mapping[str, Any]) -> None:
    """
    Judges what a scripted model was asked by a client, where it was asked at all.

    Errors:
        CheckFailed: It broke a requirement, and the test does not collect what checks say.
    """
    __tracebackhide__ = True
    play = conversation.play
    if play is None:
        return
    run = Run(scenario=play.scenario, variant=play.variant, agent=_NAME, journal=play.journal)
    judged = bench.judge(item, run, OwnClient(), own=True)
    if wishes_of(item, config, bench.settings)["checks"] == "raise":
        judged.raise_findings()
    for warning in judged.warnings():
        item.warn(warning)


class ModelServer:
    """
    The scripted model of a test at an address of this machine, for agents in other processes and languages, and for
    clients that no transport can be handed to.

    Attributes:
        origin: `http://127.0.0.1:PORT`.
    """

    def __init__(self, server: LoopbackServer, conversation: Conversation) -> None:
        self.origin = str(server.addresses[0])
        self._name = conversation.name

    @property
    def anthropic_url(self) -> str:
        """What clients of Anthropic take as `base_url`."""
        return f"{self.origin}/{self._name}"

    @property
    def openai_url(self) -> str:
        """What clients of OpenAI take as `base_url`, for both of its protocols."""
        return f"{self.anthropic_url}/v1"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables in which official clients look for an address and a key."""
        return {
            "OPENAI_BASE_URL": self.openai_url,
            "OPENAI_API_KEY": "none",
            "ANTHROPIC_BASE_URL": self.anthropic_url,
            "ANTHROPIC_API_KEY": "none",
        }
