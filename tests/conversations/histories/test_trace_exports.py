"""Exports of Langfuse and LangSmith: the shapes in which their interfaces, and their buckets, give the same trace."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.conversations.histories.conversation import ConversationEntry
from pytest_approvals.conversations.histories.files import LocatedConversation, read_conversations
from pytest_approvals.conversations.lint import lint_conversation

STORED = Path(__file__).parent / "traces" / "stored"

Json = dict[str, Any]
Write = Callable[..., Path]


@pytest.fixture
def observations() -> list[Json]:
    """What Langfuse's API gives of a trace."""
    found: list[Json] = json.loads((STORED / "langfuse_api_done.json").read_text())["data"]
    return found


@pytest.fixture
def runs() -> list[Json]:
    """The runs of LangSmith."""
    return [json.loads(line) for line in (STORED / "langsmith_done.jsonl").read_text().splitlines()]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write documents, one on each line."""

    def write_lines(*documents: Any) -> Path:
        path = tmp_path / "export.jsonl"
        path.write_text("".join(f"{json.dumps(document)}\n" for document in documents), encoding="utf-8")
        return path

    return write_lines


def read(path: Path) -> LocatedConversation:
    [stored] = read_conversations([str(path)])
    assert isinstance(stored, LocatedConversation), stored
    return stored


def entries(path: Path) -> list[ConversationEntry]:
    return read(path).conversation.entries


def to_row(document: Json) -> Json:
    """Return what is stored in a bucket: names in snake case, and JSON as text."""
    named = {
        re.sub(r"(?<=[a-z])([A-Z])", lambda letter: f"_{letter[0].lower()}", name): document[name] for name in document
    }
    return {name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in named.items()}


def test_langfuse_gives_a_trace_with_its_observations(observations: list[Json], write: Write) -> None:
    """The session is that of the trace."""
    without = [{**each, "sessionId": None} for each in observations]
    whole = {"id": observations[0]["traceId"], "name": "LangGraph", "sessionId": "thread-7", "observations": without}

    assert entries(STORED / "langfuse_api_done.json") == entries(write(whole))


def test_langfuse_downloads_a_trace_beside_its_observations(observations: list[Json], write: Write) -> None:
    """As the button of its interface does."""
    without = [{**each, "sessionId": None} for each in observations]

    assert entries(STORED / "langfuse_api_done.json") == entries(
        write({"trace": {"id": "t", "sessionId": "thread-7"}, "observations": without})
    )


def test_langfuse_exports_rows(observations: list[Json], write: Write) -> None:
    """To a bucket, each on a line of its own, in any order."""
    assert entries(STORED / "langfuse_api_done.json") == entries(write(*map(to_row, reversed(observations))))


def test_langsmith_answers_a_query(runs: list[Json], write: Write) -> None:
    """The runs stand under one name."""
    assert entries(STORED / "langsmith_done.jsonl") == entries(write({"runs": runs, "cursors": {"next": None}}))


def test_langsmith_exports_rows(runs: list[Json], write: Write) -> None:
    """To a bucket: inputs and outputs are JSON as text."""
    assert entries(STORED / "langsmith_done.jsonl") == entries(write(*map(to_row, runs)))


def test_a_second_execution_in_langfuse_is_found(observations: list[Json], write: Write) -> None:
    """Two observations of a tool for one call."""
    [again] = [each for each in observations if each["type"] == "TOOL" and each["name"] == "pay"]
    twice = [*observations, {**again, "id": "again", "startTime": "2100-01-01T00:00:00Z"}]
    found = lint_conversation(read(write({"data": twice})).conversation)

    assert ["runs-at-most-once"] == [each.rule for each in found if each.is_mistake]


def test_a_call_that_ran_before_anybody_was_asked_is_found(observations: list[Json], write: Write) -> None:
    """The trace shows the order."""
    [early] = [each for each in observations if each["type"] == "TOOL" and each["name"] == "pay"]
    moved = [{**each, "startTime": "2020-01-01T00:00:00Z"} if each is early else each for each in observations]
    found = lint_conversation(read(write({"data": moved})).conversation)

    assert "time-order" in {each.rule for each in found}
