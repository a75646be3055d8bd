"""What passed between a client and a provider, as a story: values that a scenario would take for something else."""

from __future__ import annotations

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.conversations.recording.recorded_conversation import Exchange, RecordedConversation


def test_what_asks_for_a_made_up_value_is_recorded_as_it_is() -> None:
    """Braces in a text, and an argument called fake, mean themselves."""
    story = RecordedConversation(model="m", opening="Greet {{name}}")
    call = Item(kind="call", id="c1", tool="greet", arguments={"who": {"fake": "name"}, "text": "Hello {{name}}"})
    story.add_exchange(Exchange(items=[Item(kind="user", text="Greet {{name}}")], answer=[call]))

    document = story.build_document((), "Recorded.")

    assert {"who": {"fake_": "name"}, "text": "Hello { {name}}"} == document["model"][0]["calls"][0]["arguments"]
