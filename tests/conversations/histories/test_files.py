"""Files, folders and standard input; bytes that are no text, and text that is no conversation."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import sqlite3
import sys
from pathlib import Path

import pytest

from pytest_approvals.conversations.histories.conversation import CallEntry
from pytest_approvals.conversations.histories.files import LocatedConversation, SkippedFile, read_conversations
from pytest_approvals.errors import HistoryError, UnknownName, UsageError

MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Return what is found in files of a folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *words, **options: list(read_conversations(words, **options))


def write(path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def test_a_file_is_a_conversation(found, tmp_path) -> None:
    """It is named after its file."""
    write(tmp_path / "a.json", json.dumps(MESSAGES))
    (stored,) = found("a.json")

    assert ("a.json", 1, "chat") == (stored.conversation.name, stored.line, stored.conversation.format)


def test_a_pipe_is_a_file(found) -> None:
    """As a shell names it for `lint <(command)`: what is read from it cannot be read again."""
    reading, writing = os.pipe()
    os.write(writing, json.dumps(MESSAGES).encode())
    os.close(writing)
    (stored,) = found(f"/dev/fd/{reading}")
    os.close(reading)

    assert "chat" == stored.conversation.format


def test_a_list_of_conversations(found, tmp_path) -> None:
    """Each is named by its place."""
    write(tmp_path / "a.json", json.dumps([MESSAGES, {"messages": MESSAGES}]))

    assert ["a.json[0]", "a.json[1]"] == [stored.conversation.name for stored in found("a.json")]


def test_lines_that_are_messages_make_one_conversation(found, tmp_path) -> None:
    """A history provider may write a message a line; each place has its line."""
    write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, MESSAGES)) + "\n")
    (stored,) = found("a.jsonl")

    assert (2, [2]) == (stored.conversation.length, [place.line for place in stored.find_places([(1,)])])


def test_a_folder_is_looked_through(found, tmp_path) -> None:
    """Files that are called otherwise are left alone; those that hold something else are told."""
    write(tmp_path / "all" / "b" / "b.jsonl", json.dumps(MESSAGES) + "\n")
    write(tmp_path / "all" / "a.json", json.dumps(MESSAGES))
    write(tmp_path / "all" / "c.txt", "no JSON")
    write(tmp_path / "all" / "package.json", '{"name": "x"}')
    one, other, skipped = found("all")

    assert ["all/a.json", "all/b/b.jsonl"] == [one.file, other.file]
    assert SkippedFile("all/package.json") == skipped


def test_one_bad_file_does_not_stop_the_others(found, tmp_path) -> None:
    """Errors are in the place of their documents."""
    write(tmp_path / "all" / "a.json", "{")
    write(tmp_path / "all" / "b.json", json.dumps(MESSAGES))

    assert [HistoryError, LocatedConversation] == [type(each) for each in found("all")]


MIXED = [
    {"role": "user", "content": "Pay"},
    {"role": "assistant", "content": [{"type": "text", "text": "x"}, "y"]},
    {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "p", "input": {}}]},
]
"""Each of them is a message of some format, and together they are of none."""


def test_lines_that_make_no_conversation_do_not_stop_the_others(found, tmp_path) -> None:
    """They are an error with a line, and the next file is read."""
    write(tmp_path / "all" / "a.jsonl", "\n" + "\n".join(map(json.dumps, MIXED)) + "\n")
    write(tmp_path / "all" / "b.json", json.dumps(MESSAGES))
    mistake, stored = found("all")

    assert str(mistake).startswith("all/a.jsonl:2: each line is a message, and together they are of no known format; ")
    assert "all/b.json" == stored.file


STATE = {"values": {"messages": [{"type": "human", "content": "x"}]}}
ACTION = {"id": "i", "value": {"action_requests": [{"name": 7}]}}
WRONG_TYPES = {
    "writes": ({**STATE, "pending_writes": 7}, "pending_writes: expected an array, got an integer"),
    "action": ({**STATE, "interrupts": [ACTION]}, "interrupts[0].value.action_requests[0].name: expected a string"),
    "interrupt": ({**STATE, "interrupts": [{"id": 7, "value": {}}]}, "interrupts[0].id: expected a string"),
    "resume": (
        {
            **STATE,
            "pending_writes": [
                ["t", "__interrupt__", [{"value": {"action_requests": [{"name": "pay"}]}}]],
                ["t", "__resume__", [{"decisions": [{"type": "reject", "message": 7}]}]],
            ],
        },
        "pending_writes[0][2][0].message: expected a string, got an integer",
    ),
    "reasons": (
        {
            "$schemaVersion": "1.0",
            "original_input": "x",
            "context": {"approvals": {"pay": {"rejected": ["c"], "rejection_messages": {"c": 7}}}},
        },
        "context.approvals.pay.rejection_messages.c: expected a string, got an integer",
    ),
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_a_wrong_type_outside_of_messages_is_reported_with_its_path(found, tmp_path, name) -> None:
    """And the next file is read."""
    document, what = WRONG_TYPES[name]
    write(tmp_path / "all" / "a.json", json.dumps(document))
    write(tmp_path / "all" / "b.json", json.dumps(MESSAGES))
    mistake, stored = found("all")

    assert what in str(mistake)
    assert "all/b.json" == stored.file


def test_a_folder_that_cannot_be_read_does_not_stop_the_others(found, tmp_path) -> None:
    """Here one whose path is longer than the system takes; the files of other folders are read."""
    write(tmp_path / "all" / "z.json", json.dumps(MESSAGES))
    folder = os.open(tmp_path / "all", os.O_RDONLY)
    for _ in range(20):
        os.mkdir("a" * 250, dir_fd=folder)
        inner = os.open("a" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    stored, mistake = found("all")

    assert "all/z.json" == stored.file
    assert mistake.what.startswith("cannot be read: ")


def test_standard_input_is_a_file(found, monkeypatch) -> None:
    """It is called `-`."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(MESSAGES).encode())))
    (stored,) = found("-")

    assert "-" == stored.file


BYTES = {
    "a byte order mark": (b"\xef\xbb\xbf" + json.dumps(MESSAGES).encode(), None),
    "UTF-16": (json.dumps(MESSAGES).encode("utf-16"), "it is UTF-16 or UTF-32"),
    "UTF-32": (json.dumps(MESSAGES).encode("utf-32-be"), "not JSON"),
    "Latin 1": ('[{"role": "user", "content": "é"}]'.encode("latin1"), "not UTF-8 at byte 30: "),
    "a pickle": (pickle.dumps(MESSAGES), "it is a pickle, which is never loaded"),
    "gzip": (gzip.compress(json.dumps(MESSAGES).encode()), "it is compressed with gzip"),
    "nothing": (b"", "empty file"),
    "space": (b" \n\n", "empty file"),
    "zeros": (b"\0" * 100, "not JSON"),
    "another document": (b'{"name": "x"}', "unknown format; name one with --format: meai, "),
    "a scalar": (b"17", "not JSON: a conversation begins with { or ["),
    "a message that is none": (b'[{"role": "user", "content": "Hi"}, 7]', "expected an object, got an integer"),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes(found, tmp_path, name) -> None:
    """What can be read is read; anything else is a sentence."""
    written, what = BYTES[name]
    write(tmp_path / "a.json", written)
    (stored,) = found("a.json")

    assert (stored.conversation.length == 2) if what is None else what in str(stored)


def test_a_database_is_named_for_what_it_is(found, tmp_path) -> None:
    """Savers keep checkpoints in one."""
    database = sqlite3.connect(tmp_path / "a.json")
    database.execute("create table a (b)")
    database.close()
    (mistake,) = found("a.json")

    assert "a SQLite database of no known store: expected one of OpenAI Agents," in mistake.what


def test_a_pickle_is_not_loaded(found, tmp_path) -> None:
    """Loading it would leave a file behind."""

    class Trap:
        def __reduce__(self):
            return open, (str(tmp_path / "trapped"), "w")

    write(tmp_path / "a.json", pickle.dumps(Trap(), protocol=0))
    (mistake,) = found("a.json")

    assert isinstance(mistake, HistoryError)
    assert not (tmp_path / "trapped").exists()


def test_a_wrong_shape_is_reported_with_its_place(found, tmp_path) -> None:
    """File, line, path, what."""
    call = {"$type": "functionCall", "name": "pay", "callId": 7}
    write(tmp_path / "a.json", json.dumps([{"role": "assistant", "contents": [call]}], indent=1))
    (mistake,) = found("a.json")

    assert "a.json:8: [0].contents[0].callId: expected a string, got an integer" == str(mistake)


def test_a_file_that_is_not_there(found) -> None:
    """That is a mistake of the caller."""
    with pytest.raises(UsageError, match=r"file not found: a\.json"):
        found("a.json")


def test_a_folder_without_conversations(found, tmp_path) -> None:
    """So is that."""
    (tmp_path / "all").mkdir()

    with pytest.raises(UsageError, match="no conversations in all"):
        found("all")


def test_an_unknown_format(found, tmp_path) -> None:
    """So is that."""
    write(tmp_path / "a.json", json.dumps(MESSAGES))

    with pytest.raises(UnknownName, match="did you mean 'chat'"):
        found("a.json", format_name="chats")


def test_a_named_format_is_not_recognised(found, tmp_path) -> None:
    """Texts that all formats write alike are then of the one that was named."""
    write(tmp_path / "a.json", json.dumps(MESSAGES))
    (stored,) = found("a.json", format_name="responses")

    assert "responses" == stored.conversation.format


def test_a_team_of_autogen_is_a_conversation_for_each_agent() -> None:
    """Its state holds what the model of each of them knows, and lines are those of the file."""
    path = Path(__file__).parent / "stored" / "autogen_team.json"
    [first, second] = read_conversations([str(path)])
    assert isinstance(first, LocatedConversation)
    assert isinstance(second, LocatedConversation)
    calls = [[entry.tool for entry in each.conversation.of(CallEntry)] for each in (first, second)]
    [call, *_] = second.conversation.of(CallEntry)
    [place] = second.find_places([second.conversation.path(call)])

    assert [["pay"], ["read"]] == calls
    assert place.line is not None
    assert '"id": "c3"' in "".join(path.read_text(encoding="utf-8").splitlines()[place.line - 1 : place.line + 1])
