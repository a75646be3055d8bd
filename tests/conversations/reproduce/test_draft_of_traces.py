"""Scenarios out of traces that each framework's own instrumentation wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_approvals.conversations.histories.conversation import RequestEntry
from pytest_approvals.conversations.histories.files import LocatedConversation, read_conversations
from pytest_approvals.conversations.reproduce.from_conversation import build_draft
from pytest_approvals.conversations.reproduce.reproducer import REFERENCE, build_scenario
from pytest_approvals.conversations.reproduce.scenario_document import build_document
from pytest_approvals.conversations.reproduce.trials import TrialAgent

STORED = Path(__file__).parents[1] / "histories" / "traces" / "stored"

TRACES = sorted(path.name for path in STORED.glob("*_done.*") if "without_content" not in path.name)


@pytest.fixture(scope="module")
def reference() -> TrialAgent:
    """Return the agent without bugs, started once."""
    return TrialAgent(REFERENCE)


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_becomes_a_story_that_the_reference_agent_plays(name: str, reference: TrialAgent) -> None:
    """Its calls, the decisions about them and what the model said; nothing fails, so what fails elsewhere is found."""
    [stored] = read_conversations([str(STORED / name)])
    assert isinstance(stored, LocatedConversation)
    conversation = stored.conversation
    draft = build_draft(conversation, [] if list(conversation.of(RequestEntry)) else ["pay"])
    document, scenario = build_document(draft), build_scenario(draft)
    pays = [call for reply in document["model"] for call in reply.get("calls", ()) if call["tool"] == "pay"]

    assert [{"amount": 5}, {"amount": 6}] == [call["arguments"] for call in pays]
    assert "always" == document["tools"]["pay"]["approval"]
    assert {"say": "Done."} in document["model"]
    assert reference.is_sound(scenario, reference.plainest_variants(scenario)[0])


@pytest.mark.parametrize("name", [each for each in TRACES if each != "autogen_done.json"])
def test_the_decisions_are_those_of_the_trace(name: str) -> None:
    """Where it does not show them, what ran was approved, and what has a result without having run was rejected."""
    [stored] = read_conversations([str(STORED / name)])
    assert isinstance(stored, LocatedConversation)
    document = build_document(build_draft(stored.conversation, ["pay"]))
    [decided] = [step["decide"] for step in document["caller"] if "decide" in step]
    verdicts = ["reject" if "reject" in str(verdict) else "approve" for verdict in decided.values()]

    assert ["approve", "reject"] == verdicts
