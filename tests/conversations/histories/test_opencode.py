"""Sessions of OpenCode: what their tool parts say.

The files in `stored` are what `opencode export` prints; `make_acp.py` lets it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.conversations.histories.conversation import CallEntry, ResultEntry, TextEntry
from pytest_approvals.conversations.histories.files import read_conversations
from pytest_approvals.conversations.histories.readers import FORMATS, FormatDetector, detect_format, get_reader
from pytest_approvals.conversations.lint import lint_conversation
from pytest_approvals.conversations.lint.linter import Linter
from pytest_approvals.errors import HistoryError

Json = dict[str, Any]

STORED = Path(__file__).parent / "stored"


def stored(name: str) -> Json:
    return dict(json.loads((STORED / f"opencode_{name}.json").read_text()))


def tool(call_id: str, status: str, **state: Any) -> Json:
    """Return a tool part."""
    return {"type": "tool", "callID": call_id, "tool": "bash", "state": {"status": status, "input": {}, **state}}


def said(role: str, *parts: Json | str) -> Json:
    """Return a message; a text is a part, too."""
    texts = [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"info": {"role": role}, "parts": texts}


def mistakes(document: Any, *gated: str) -> list[str]:
    found = lint_conversation(FormatDetector().read(document), gated)
    return [f"{each.rule}: {each.text}" for each in found if each.is_mistake]


def test_the_states_of_calls_are_their_outcomes() -> None:
    """One call ran, one was rejected, one was allowed by a rule."""
    results = FormatDetector().read(stored("done")).of(ResultEntry)

    assert {"c1": "returned", "c2": "denied", "c3": "returned"} == {each.call_id: each.outcome for each in results}


def test_calls_of_a_step_come_before_their_results() -> None:
    """A part has both."""
    entries = FormatDetector().read(stored("done")).entries
    kinds = [type(each).__name__ for each in entries if isinstance(each, CallEntry | ResultEntry)]

    assert ["CallEntry"] * 3 + ["ResultEntry"] * 3 == kinds


def test_calls_that_wait_are_told() -> None:
    """OpenCode does not store what it asks about."""
    found = lint_conversation(FormatDetector().read(stored("paused")))

    assert "bank_pay(amount=5) waits for its result" == found[0].text
    assert {"waits"} == {each.rule for each in found}


def test_calls_of_a_cancelled_prompt_were_interrupted() -> None:
    """Their state says so, and nothing is wrong with the message that follows."""
    read = FormatDetector().read(stored("cancelled"))

    outcomes = {each.call_id: each.outcome for each in read.of(ResultEntry)}
    assert {"c1": "interrupted", "c2": "interrupted", "c3": "returned"} == outcomes
    assert [] == mistakes(stored("cancelled"))


def test_a_call_of_a_process_that_ended_was_interrupted() -> None:
    """OpenCode keeps it running, and tells its model so when the next prompt comes."""
    document = stored("paused")
    document["messages"] += [said("user", "Hi"), said("assistant", "Hello.")]
    results = {each.call_id: each for each in FormatDetector().read(document).of(ResultEntry)}

    assert ("interrupted", "[Tool execution was interrupted]") == (results["c1"].outcome, results["c1"].value)
    assert "returned" == results["c3"].outcome
    assert [] == mistakes(document)
    assert "nothing-left-pending" == mistakes(document, "bank_pay")[0].partition(":")[0]


def test_a_reply_after_a_call_that_runs_has_lost_its_result() -> None:
    """There was no prompt between them."""
    document = {"info": {}, "messages": [said("user", "Go"), said("assistant", tool("t1", "running")),
                                         said("assistant", "Done.")]}  # fmt: skip

    assert ["result-delivered-once: bash() has no result, and the conversation goes on"] == mistakes(document)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("The user rejected permission to use this specific tool call.", "denied"),
        ("The user rejected permission to use this specific tool call with the following feedback: Ask Ann", "denied"),
        ("The user has specified a rule which prevents you from using this specific tool call. Here are", "denied"),
        ("Tool execution aborted", "interrupted"),
        ("The owner refused.", "unknown"),
        ("File not found", "failed"),
    ],
)
def test_an_error_tells_why(error: str, outcome: str) -> None:
    """A rejection is an error like any other."""
    [result] = FormatDetector().read([said("assistant", tool("t1", "error", error=error))]).of(ResultEntry)

    assert outcome == result.outcome


def test_what_opencode_adds_to_a_prompt_is_not_said_by_the_user() -> None:
    """Such as the text of a file that the prompt names."""
    added = {"type": "text", "text": "Called the Read tool", "synthetic": True}
    texts = FormatDetector().read([said("user", "Look at @x", added)]).of(TextEntry)

    assert ["user", "system"] == [each.role for each in texts]


def test_the_messages_alone_are_recognized() -> None:
    """As the server returns them; no other format is sure about them."""
    messages = stored("done")["messages"]

    assert get_reader("opencode") is detect_format(messages)
    assert ["opencode"] == [name for name in FORMATS if get_reader(name).matches(messages)]


def test_a_finding_has_its_line(tmp_path: Path) -> None:
    """Exports have many lines."""
    document = stored("done")
    again = document["messages"][1]["parts"][2]
    document["messages"][1]["parts"].insert(3, again)
    path = tmp_path / "session.json"
    path.write_text(json.dumps(document, indent=1))
    [found] = [each for each in Linter([str(path)]) if each.rule == "call-ids-unique"]
    lines = path.read_text().splitlines()
    second = [number for number, line in enumerate(lines, start=1) if '"callID": "c1"' in line][1]

    # The part begins three lines before the id of its call: with its brace, its type and its tool.
    assert second - 3 == found.line


@pytest.mark.parametrize(
    ("part", "at", "what"),
    [
        ({"type": "tool", "tool": "bash", "state": {}}, "callID", "missing: expected a string"),
        ({"type": "tool", "tool": "bash", "callID": "t1"}, "state", "missing: expected an object"),
        (tool("t1", "error", error=5), "error", "expected a string, got an integer"),
        ({"text": "Hi"}, "type", "missing: expected a string"),
    ],
)
def test_a_part_of_another_shape_is_told(tmp_path: Path, part: Json, at: str, what: str) -> None:
    """With its place and what was expected."""
    path = tmp_path / "session.json"
    path.write_text(json.dumps({"info": {"id": "ses_1"}, "messages": [said("assistant", part)]}))
    [error] = read_conversations([str(path)])

    assert isinstance(error, HistoryError)
    assert (("messages", 0, "parts", 0), at) == (error.at[:4], error.at[-1])
    assert what == error.what


def test_an_export_that_is_cut_is_told(tmp_path: Path) -> None:
    """With its last line."""
    path = tmp_path / "session.json"
    path.write_text((STORED / "opencode_done.json").read_text()[:2000])
    [error] = read_conversations([str(path)])

    assert isinstance(error, HistoryError)
    assert error.what.startswith("truncated: ")
