"""What a process reads in the transcript of a CLI that was killed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import project_key_for_directory

from pytest_approvals.agent_side.adapters.claude_agent_sdk.state import find_last_session, find_open_call
from pytest_approvals.testing import tool

SESSION = "73897875-31e4-4d9f-a302-25dabc7f84e4"
SPECS = {
    "mcp__tools__pay": tool("pay", "always", amount="integer"),
    "mcp__tools__look": tool("look"),
}
ASKED = {"type": "user", "message": {"role": "user", "content": "Pay 5"}}
PAID = {"type": "tool_result", "tool_use_id": "c1", "content": "paid 5"}


def made(name: str, call_id: str = "c1", reply: str = "m1") -> dict[str, Any]:
    """A block of a reply of the model with a call."""
    call = {"type": "tool_use", "id": call_id, "name": name, "input": {"amount": 5}}
    return {"type": "assistant", "message": {"id": reply, "role": "assistant", "content": [call]}}


CALLED = made("mcp__tools__pay")
SETTLED = {"type": "user", "message": {"role": "user", "content": [PAID]}}
ANSWERED = {"type": "tool_result", "tool_use_id": "a1", "content": "Structured output provided successfully"}
TAKEN = {"type": "user", "message": {"role": "user", "content": [ANSWERED]}}


def write_transcript(home: Path, folder: str, entries: Sequence[dict[str, Any]]) -> None:
    """Write what a CLI would have written."""
    file = home / ".claude" / "projects" / project_key_for_directory(folder) / f"{SESSION}.jsonl"
    file.parent.mkdir(parents=True)
    parents = [None, *(f"00000000-0000-4000-8000-{number:012}" for number in range(len(entries)))]
    lines = [
        {**entry, "uuid": parents[number + 1], "parentUuid": parents[number], "sessionId": SESSION, "cwd": folder}
        for number, entry in enumerate(entries)
    ]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


@pytest.mark.parametrize(
    ("entries", "passed", "open_calls"),
    [
        ([ASKED, CALLED], [], ["c1"]),
        ([ASKED, CALLED, SETTLED], [], []),
        ([ASKED, CALLED], ["c1"], []),
        ([ASKED, CALLED, made("StructuredOutput", "a1"), TAKEN], [], ["c1"]),
        ([ASKED, CALLED, made("StructuredOutput", "a1", "m2"), TAKEN], [], []),
        ([ASKED, made("mcp__tools__look")], [], []),
        ([ASKED], [], []),
    ],
    ids=[
        "waits",
        "has-a-result",
        "was-passed",
        "waits-beside-an-answer",
        "has-a-later-reply",
        "is-ungated",
        "nothing-was-called",
    ],
)
def test_a_gated_call_without_a_result_waits(
    tmp_path: Path, entries: list[dict[str, Any]], passed: list[str], open_calls: list[str]
) -> None:
    """One that a message went past does not."""
    write_transcript(tmp_path, str(tmp_path), entries)
    found = find_open_call(str(tmp_path), str(tmp_path), SESSION, SPECS, passed=passed)

    assert open_calls == [request.call_id for request in (found,) if request is not None]


def test_the_last_session_of_a_folder_is_found_without_its_id(tmp_path: Path) -> None:
    """A process that died in its first turn has told nobody the id."""
    write_transcript(tmp_path, str(tmp_path), [ASKED, CALLED])

    assert SESSION == find_last_session(str(tmp_path), str(tmp_path))


def test_a_folder_without_sessions_has_no_last_one(tmp_path: Path) -> None:
    """Nothing is written before the first message."""
    assert "" == find_last_session(str(tmp_path), str(tmp_path))
