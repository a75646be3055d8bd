"""File sessions of Strands: a folder with a file for each message is one conversation.

The folders in `stores/stored` are written by Strands, see the script next to them.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.conversations.histories.conversation import CallEntry, RequestEntry, ResultEntry, TextEntry
from pytest_approvals.conversations.histories.files import LocatedConversation, read_conversations
from pytest_approvals.conversations.histories.readers import FORMATS, detect_format, get_reader
from pytest_approvals.conversations.lint import lint_conversation
from pytest_approvals.errors import HistoryError

Json = dict[str, Any]

STORED = Path(__file__).parent / "stores" / "stored"
AGENT = Path("session_thread-7", "agents", "agent_clerk")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the paused session."""
    return Path(shutil.copytree(STORED / "strands_paused", tmp_path / "sessions"))


def read(folder: Path) -> LocatedConversation:
    [stored] = read_conversations([str(folder)])
    assert isinstance(stored, LocatedConversation), stored
    return stored


def mistakes(folder: Path) -> list[str]:
    found = lint_conversation(read(folder).conversation)
    return [f"{each.rule}: {each.text}" for each in found if each.is_mistake]


def change_state(folder: Path) -> tuple[Path, Json]:
    path = folder / AGENT / "agent.json"
    return path, json.loads(path.read_text())


def test_a_folder_tells_the_story() -> None:
    """Its messages are in their order."""
    conversation = read(STORED / "strands_done").conversation
    calls = {entry.id: (entry.tool, entry.arguments) for entry in conversation.of(CallEntry)}
    results = {entry.call_id: entry.value for entry in conversation.of(ResultEntry)}

    assert ["Pay 5 and 6", "Let me see.", "Done."] == [entry.text for entry in conversation.of(TextEntry)]
    assert {"c1": ("pay", {"amount": 5}), "c2": ("pay", {"amount": 6}), "c3": ("read", {"path": "x"})} == calls
    assert {"c1": "paid 5", "c2": "no 6", "c3": "text of x"} == results
    assert [] == lint_conversation(conversation)


def test_a_paused_session_shows_its_requests(folder: Path) -> None:
    """They are interrupts of the agent's state, and the result of the third call is there, too."""
    conversation = read(folder).conversation

    assert ["c1", "c2"] == [entry.call_id for entry in conversation.of(RequestEntry)]
    assert ["c3"] == [entry.call_id for entry in conversation.of(ResultEntry)]
    assert ["pay(amount=5) waits for a decision", "pay(amount=6) waits for a decision"] == [
        each.text for each in lint_conversation(conversation)
    ]


def test_messages_alone_are_recognized() -> None:
    """An application may store the list itself; no other format is sure about it."""
    files = sorted((STORED / "strands_done" / AGENT / "messages").iterdir())
    messages = [json.loads(path.read_text())["message"] for path in files]

    assert get_reader("strands") is detect_format(messages)
    assert ["strands"] == [name for name in FORMATS if get_reader(name).matches(messages)]


def test_an_interrupt_that_was_lost(folder: Path) -> None:
    """The call has no result, and nobody is asked about it."""
    path, state = change_state(folder)
    interrupts = state["_internal_state"]["interrupt_state"]["interrupts"]
    del interrupts[next(each for each in interrupts if ":c2:" in each)]
    path.write_text(json.dumps(state))

    assert ["pending-survives: call 'c2' of pay has no result, and nobody is asked about it"] == mistakes(folder)


def test_a_message_that_was_lost(folder: Path) -> None:
    """The interrupts are about calls that no message holds."""
    (folder / AGENT / "messages" / "message_1.json").unlink()

    assert "history-not-rewritten: call 'c1' waits for a decision, and is not among the messages" in mistakes(folder)


def test_a_finding_is_in_the_file_of_its_message(folder: Path) -> None:
    """What waits is in the state of the agent, and a call in its message."""
    stored = read(folder)
    places = stored.find_places([("messages", 1, "message", "content", 1), ("agent", "agent_id")])

    assert ["message_1.json", "agent.json"] == [Path(place.file).name for place in places]


def test_a_file_that_is_cut(folder: Path) -> None:
    """The file is named."""
    path = folder / AGENT / "messages" / "message_1.json"
    path.write_text(path.read_text()[:50])
    [error] = read_conversations([str(folder)])

    assert isinstance(error, HistoryError)
    assert str(path) == error.file
    assert error.what.startswith("not JSON: ")
