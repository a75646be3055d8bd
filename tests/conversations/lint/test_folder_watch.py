"""Watch of a folder: each finding once, in files that grow, in databases and in sessions of several files."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pytest_approvals.conversations.lint.folder_watch import FolderWatch

STORES = Path(__file__).parents[1] / "histories" / "stores" / "stored"


def answered_twice(call_id: str) -> str:
    """Return a line with a conversation in which a call has two results."""
    call = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": call_id, "content": "nothing"}
    return json.dumps([{"role": "assistant", "tool_calls": [call]}, result, result]) + "\n"


@pytest.fixture
def watch(tmp_path: Path) -> FolderWatch:
    """Watch the folder of the test."""
    return FolderWatch(str(tmp_path))


def look(watch: FolderWatch) -> list[str]:
    """Look twice, since what has just changed may not be written to its end, and return the rules."""
    return [message.rule for message in (*watch.look(), *watch.look())]


def test_a_file_is_looked_at_when_it_rests(watch: FolderWatch, tmp_path: Path) -> None:
    """Not while it may be written."""
    (tmp_path / "log.jsonl").write_text(answered_twice("c1"))

    assert [[], ["result-delivered-once"], []] == [[each.rule for each in watch.look()] for _ in range(3)]


def test_a_file_that_grows_has_its_findings_once(watch: FolderWatch, tmp_path: Path) -> None:
    """What was found in its first lines is not written again."""
    path = tmp_path / "log.jsonl"
    path.write_text(answered_twice("c1"))
    first = look(watch)
    path.write_text(path.read_text() + answered_twice("c2"))

    assert (["result-delivered-once"], ["result-delivered-once"]) == (first, look(watch))
    assert 2 == watch.mistakes


def test_a_finding_that_comes_back_is_written_again(watch: FolderWatch, tmp_path: Path) -> None:
    """The file was right in between."""
    path = tmp_path / "a.json"
    found = []
    for text in (answered_twice("c1"), '[{"role": "user", "content": "Hi"}]', answered_twice("c1")):
        path.write_text(text)
        found.append(look(watch))

    assert [["result-delivered-once"], [], ["result-delivered-once"]] == found


def test_a_session_of_several_files_is_one_conversation(watch: FolderWatch, tmp_path: Path) -> None:
    """Its messages alone are of no format."""
    shutil.copytree(STORES / "strands_done", tmp_path / "strands")
    healthy = look(watch)
    [lost] = tmp_path.rglob("message_2.json")
    lost.unlink()

    assert ([], ["result-delivered-once"] * 3) == (healthy, look(watch))


def test_what_a_database_has_in_its_log_is_looked_at(watch: FolderWatch, tmp_path: Path) -> None:
    """The file of the database does not change until its writer moves the log."""
    with closing(sqlite3.connect(tmp_path / "s.db")) as writer:
        writer.executescript((STORES / "openai_agents_done.sql").read_text())
        writer.execute("pragma journal_mode = wal")
        writer.commit()
        healthy = look(watch)
        writer.execute("insert into agent_messages (session_id, message_data) select session_id, message_data"
                       " from agent_messages where message_data like '%function_call_output%' limit 1")  # fmt: skip
        writer.commit()

        assert ([], ["result-delivered-once"]) == (healthy, look(watch))


def test_other_files_are_left_alone(watch: FolderWatch, tmp_path: Path) -> None:
    """A folder may hold more than conversations."""
    (tmp_path / "package.json").write_text('{"name": "shop"}')

    assert [] == look(watch)
