"""Stored conversations that are judged in a test of an application."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.errors import HistoryError, UnknownName, UsageError
from pytest_approvals.testing import judge_conversation

CALL: dict[str, Any] = {
    "role": "assistant",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "wipe", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "wiped"}
SOUND = [CALL, RESULT]
UNANSWERED = [CALL, {"role": "user", "content": "And now?"}]
TOLD_TWICE = [CALL, RESULT, RESULT]


def write(path: Path, conversation: object) -> Path:
    path.write_text(json.dumps(conversation))
    return path


@pytest.mark.parametrize("conversation", [SOUND, [CALL]], ids=["ended", "paused"])
def test_a_sound_conversation_has_no_findings(conversation: list[Any]) -> None:
    """Nor has one that waits for a decision or a result."""
    assert [] == judge_conversation(conversation)


@pytest.mark.parametrize("form", ["values", "text", "bytes", "file", "folder"])
def test_each_form_of_a_conversation_is_judged(form: str, tmp_path: Path) -> None:
    """Plain values, JSON, and what is stored."""
    text = json.dumps(TOLD_TWICE)
    forms = {
        "values": TOLD_TWICE,
        "text": text,
        "bytes": text.encode(),
        "file": write(tmp_path / "a.json", TOLD_TWICE),
        "folder": tmp_path,
    }
    found = judge_conversation(forms[form])

    assert [("result-delivered-once", 2)] == [(finding.rule, finding.message) for finding in found]


def test_all_conversations_of_a_folder_are_judged(tmp_path: Path) -> None:
    """In the order of their names; other JSON files are left out."""
    write(tmp_path / "b.json", TOLD_TWICE)
    write(tmp_path / "a.json", UNANSWERED)
    write(tmp_path / "package.json", {"name": "app"})

    assert ["result-delivered-once"] == [finding.rule for finding in judge_conversation(tmp_path / "b.json")]
    assert 2 == len(judge_conversation(tmp_path))


def test_gated_tools_can_be_named() -> None:
    """A pattern, too."""
    assert ["approval-before-execution"] == [finding.rule for finding in judge_conversation(SOUND, gated=["w*"])]


def test_what_cannot_be_judged_is_an_error(tmp_path: Path) -> None:
    """It is never taken for sound."""
    with pytest.raises(HistoryError, match=r"^the conversation:1: truncated"):
        judge_conversation('[{"role": "user"')
    with pytest.raises(HistoryError, match=r"^the conversation:1: unknown format"):
        judge_conversation([{"a": 1}])
    with pytest.raises(HistoryError, match="^the conversation: empty file"):
        judge_conversation("")
    with pytest.raises(UnknownName, match=r"^Unknown format 'chta'; did you mean 'chat'\?"):
        judge_conversation(SOUND, format_name="chta")
    with pytest.raises(UsageError, match="file not found"):
        judge_conversation(tmp_path / "nothing.json")
    with pytest.raises(UsageError, match=r"not plain JSON: .*; dump it with the framework's serializer first"):
        judge_conversation([object()])
