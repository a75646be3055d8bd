from __future__ import annotations

import json
import os
import random
import signal
import tracemalloc
from pathlib import Path

import pytest

from pytest_approvals.journal import files
from pytest_approvals.journal.events import (
    DecisionMade,
    Event,
    Header,
    ModelRequest,
    PolicyAsked,
    RunEnd,
    ToolEnd,
    ToolStart,
    TurnStart,
)
from pytest_approvals.journal.files import Journal, journal_file_name, read_journal


class Strange:
    """Something that JSON cannot hold, and whose repr fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def endless() -> list[object]:
    held: list[object] = []
    held.append(held)
    return held


class TestRecord:
    def test_events_are_numbered_from_one(self) -> None:
        """The k-th event that is recorded has the number k."""
        journal = Journal()

        numbers = [journal.record(TurnStart(turn=turn)).n for turn in (1, 2, 3)]

        assert [1, 2, 3] == numbers
        assert [1, 2, 3] == [event.n for event in journal.events]

    @pytest.mark.parametrize("arguments", [None, "", {}])
    def test_arguments_of_nothing_are_read_again(self, tmp_path: Path, arguments: object) -> None:
        """A model may send null or an empty text for arguments, and a policy be asked about a call without an id."""
        journal = Journal(tmp_path / "a.jsonl")
        journal.record(Header(scenario="a/b", agent="reference", variant={}))
        asked = journal.record(PolicyAsked(tool="pay", arguments=arguments, call_id=None, answer=True))
        journal.close()

        assert [asked] == read_journal(tmp_path / "a.jsonl").events[1:]

    def test_empty_texts_are_read_again(self, tmp_path: Path) -> None:
        """A tool that returns an empty text has returned something, and an empty reason is a reason."""
        journal = Journal(tmp_path / "a.jsonl")
        journal.record(Header(scenario="a/b", agent="reference", variant={}))
        recorded = [
            journal.record(DecisionMade(verdict="reject", q="q1", id="r1", reason="")),
            journal.record(ToolEnd(x=1, result="")),
        ]
        journal.close()

        assert recorded == read_journal(tmp_path / "a.jsonl").events[1:]

    def test_the_event_itself_is_kept(self) -> None:
        """An event of plain values is kept and given back as it is."""
        event = TurnStart(turn=1)
        journal = Journal()

        assert event is journal.record(event)
        assert event is journal.events[0]

    @pytest.mark.parametrize(
        ("value", "recorded"),
        [
            pytest.param(b"raw", "<not JSON: b'raw'>", id="bytes"),
            pytest.param({1, 3, 2}, [1, 2, 3], id="set"),
            pytest.param({("a", 1): 2}, {"<not JSON: ('a', 1)>": 2}, id="key"),
            pytest.param(float("nan"), "<not JSON: nan>", id="nan"),
            pytest.param([float("-inf")], ["<not JSON: -inf>"], id="infinity"),
            pytest.param(object(), "<not JSON: <object object>>", id="object"),
            pytest.param(Strange(), "<not JSON: a Strange without a repr>", id="no repr"),
            pytest.param("\ud800 é", "\ud800 é", id="half a character"),
        ],
    )
    def test_what_json_cannot_hold_becomes_a_marker(self, tmp_path: Path, value: object, recorded: object) -> None:
        """Any value can be recorded, and reads the same in memory and from the file."""
        journal = Journal(tmp_path / "run.jsonl")
        journal.record(Header(scenario="a/b", agent="reference"))

        event = journal.record(ToolEnd(x=1, result=[value]))
        journal.close()

        assert [recorded] == [*event.result]
        assert journal.events == read_journal(tmp_path / "run.jsonl").events

    def test_a_value_that_holds_itself_ends_in_a_marker(self) -> None:
        """An endless value is cut at a depth, and says so."""
        recorded = Journal().record(ToolEnd(x=1, result=endless())).result

        assert str(recorded).endswith("['<not JSON: nested deeper than 60>'" + "]" * 59)


class TestFile:
    def test_nothing_is_written_before_a_flush(self, tmp_path: Path) -> None:
        """Recording touches no file: that is what keeps it cheap."""
        path = tmp_path / "run.jsonl"
        journal = Journal(path)

        journal.record(Header(scenario="a/b", agent="reference"))

        assert b"" == path.read_bytes()
        journal.close()

    def test_a_flush_hands_over_what_was_recorded(self, tmp_path: Path) -> None:
        """After a flush the file ends with the last event, a line of its own."""
        path = tmp_path / "run.jsonl"
        journal = Journal(path)
        journal.record(Header(scenario="a/b", agent="reference"))
        journal.record(RunEnd())

        journal.flush()

        assert '{"event":"run.end","n":2,"how":"completed","pending":[]}\n' == path.read_text().splitlines(True)[1]
        journal.close()

    def test_closing_writes_the_footer_once(self, tmp_path: Path) -> None:
        """The footer counts the events; closing again changes nothing."""
        path = tmp_path / "run.jsonl"
        journal = Journal(path)
        journal.record(Header(scenario="a/b", agent="reference"))

        journal.close()
        journal.close()

        assert ['{"event":"footer","count":1}'] == path.read_text().splitlines()[1:]

    def test_the_events_outlive_the_file(self, tmp_path: Path, two_calls: list[Event]) -> None:
        """What was recorded equals what is read back, and stays in memory after closing."""
        path = tmp_path / "run.jsonl"
        journal = Journal(path)
        for event in two_calls:
            journal.record(event)

        journal.close()

        assert two_calls == journal.events
        assert two_calls == read_journal(path).events


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the writer is a forked child")
class TestKilledWriter:
    def test_a_journal_reads_back_to_its_last_flush(self, tmp_path: Path) -> None:
        """200 writers are killed at seeded points of their work, and each journal holds all that was flushed."""
        chance = random.Random(7)
        for run in range(200):
            path, flushed = tmp_path / f"{run}.jsonl", tmp_path / f"{run}.count"
            pid = os.fork()
            if pid == 0:
                write_for_ever(path, flushed, seed=run)
            wait_until(flushed, chance.randint(1, 60))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

            stored = read_journal(path)

            assert not stored.complete
            assert len(stored.events) >= flushed.stat().st_size
            assert [*range(1, len(stored.events) + 1)] == [event.n for event in stored.events]


def write_for_ever(path: Path, flushed: Path, *, seed: int) -> None:
    """Records and flushes until it is killed; *flushed* grows by one byte for each event that was flushed."""
    try:
        chance = random.Random(seed)
        journal = Journal(path)
        journal.record(Header(scenario="a/b", agent="reference"))
        with flushed.open("ab", buffering=0) as counter:
            done = 0
            while True:
                for _ in range(chance.randint(1, 40)):
                    journal.record(ToolStart(x=1, tool="pay", arguments={"note": "x" * chance.randint(1, 3000)}))
                journal.flush()
                counter.write(b"." * (len(journal.events) - done))
                done = len(journal.events)
    finally:
        os._exit(1)


def wait_until(file: Path, size: int) -> None:
    """Waits for another process' progress, which it alone decides."""
    while not file.exists() or file.stat().st_size < size:
        os.sched_yield()


class TestMemory:
    def test_it_stays_flat_over_many_runs(self, tmp_path: Path) -> None:
        """A journal that nobody holds any more leaves nothing behind."""
        path = tmp_path / "run.jsonl"
        for _ in range(20):
            write_one(path)
        tracemalloc.start()
        try:
            write_one(path)
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(300):
                write_one(path)
            after = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

        assert after - before < 20_000


def write_one(path: Path) -> None:
    """A run of a few events, one of them large."""
    journal = Journal(path)
    journal.record(Header(scenario="a/b", agent="reference"))
    for number in range(1, 30):
        journal.record(ToolEnd(x=number, result="x" * 2_000))
    journal.close()


@pytest.mark.parametrize("flushed", [False, True])
def test_journal_that_forgets_keeps_its_header(tmp_path: Path, flushed: bool) -> None:
    """What is recorded after that follows the header, in the file, too."""
    journal = Journal(tmp_path / "run.jsonl")
    for event in (Header(scenario="a/b", agent="x"), TurnStart(turn=1), TurnStart(turn=2)):
        journal.record(event)
    if flushed:
        journal.flush()
    journal.forget()
    journal.record(TurnStart(turn=7))
    journal.close()

    assert ["header", "turn.start"] == [event.kind for event in journal.events]
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert [("header", 1), ("turn.start", 2), ("footer", None)] == [(line["event"], line.get("n")) for line in lines]


class TestFileName:
    def test_the_ordinary_name_can_be_read(self) -> None:
        """A scenario in a family, the agent and the variant."""
        name = journal_file_name("parallel/partial-answer", "openai_agents==0.24.0", "json-fresh-held")

        assert "parallel-partial-answer__openai_agents==0.24.0__json-fresh-held.jsonl" == name

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (("a/b-c", "x", "v"), ("a-b/c", "x", "v")),
            (("a/b/c", "x", "v"), ("a/b-c", "x", "v")),
            (("a/b", "x@c/d", "v"), ("a/b", "x@c-d", "v")),
            (("a/b", "x__y", "v"), ("a/b", "x", "y__v")),
            (("t.py::t[a b]", "x", "v"), ("t.py::t[a/b]", "x", "v")),
            (("a/" + "b" * 300, "x", "v"), ("a/" + "b" * 301, "x", "v")),
        ],
    )
    def test_no_two_runs_share_a_name(self, one: tuple[str, ...], other: tuple[str, ...]) -> None:
        """Whatever the name leaves out is in a hash behind it."""
        assert journal_file_name(*one) != journal_file_name(*other)

    @pytest.mark.parametrize("letter", ["b", "é", "漢"])
    def test_a_long_name_fits_into_a_file_system(self, tmp_path: Path, letter: str) -> None:
        """A file name has 255 bytes at most, however many letters those are."""
        name = journal_file_name(f"a/{letter * 600}", "x", "v")

        (tmp_path / name).touch()
        assert len(name.encode()) < 255


class TestFullDisk:
    def test_a_journal_that_cannot_be_written_says_so(self) -> None:
        """The run goes on, and what happened stays in memory."""
        journal = Journal("/dev/full")
        journal.record(TurnStart(turn=1))
        journal.flush()
        journal.record(TurnStart(turn=2))
        journal.close()

        assert 2 == len(journal.events)
        assert (
            "/dev/full: cannot be written: No space left on device; free some space, or keep the journals elsewhere"
            == str(journal.failure)
        )

    def test_a_folder_that_does_not_take_it_is_named(self, tmp_path: Path) -> None:
        """The file, why not, and what to do."""
        (tmp_path / "folder").touch()
        journal = Journal(tmp_path / "folder" / "a.jsonl")

        assert str(journal.failure).endswith("folder/a.jsonl: cannot be written: Not a directory; name another folder")


@pytest.mark.parametrize(
    "value",
    [{}, [], [[]], 'é\u2028"\\\n', 1e22, -0.0, 10**30, {"a": [1, None, True], "b": {"c": "😀"}}, {1: {None: 2}}],
    ids=repr,
)
def test_lines_are_what_the_json_module_writes(value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder that all events share writes what `json` writes; so does the one for Pythons without its C code."""
    expected = json.dumps(value, separators=(",", ":"))
    shared = files._create_encoder()
    monkeypatch.setattr("json.encoder.c_make_encoder", None)

    assert [expected] * 3 == [shared(value), shared(value), files._create_encoder()(value)]


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), {"a": object()}, {(1, 2): 3}], ids=["nan", "infinity", "object", "key"]
)
def test_what_json_cannot_hold_is_an_error_each_time(value: object) -> None:
    """A value that JSON has no form for raises, and the next one is written as ever."""
    shared = files._create_encoder()
    for _ in range(2):
        with pytest.raises((TypeError, ValueError)):
            shared(value)

        assert '{"a":1}' == shared({"a": 1})


def asked(number: int, **fields: object) -> ModelRequest:
    return ModelRequest(m=number, conversation="main", agent="main", items=[{"kind": "user", **fields}])


def test_event_that_is_built_later() -> None:
    """It is built once, when the events are read, and has its number; JSON holds it like any other."""
    journal = Journal()
    built: list[int] = []

    def build(number: int, value: object) -> Event:
        built.append(number)
        return asked(number, text=value)

    journal.record(asked(1))
    journal.record_later(lambda: build(2, float("nan")))
    journal.record(asked(3))
    journal.record_later(lambda: build(4, "go"))
    assert not built
    events = [event for event in journal.events if isinstance(event, ModelRequest)]
    assert [1, 2, 3, 4] == [event.n for event in events] == [event.m for event in events]
    assert ("go", True) == (events[3].items[0]["text"], events[1].items[0]["text"] == str(events[1].items[0]["text"]))
    assert [4, 2] == built
    assert 4 == len(journal.events)


def test_event_that_is_forgotten_is_not_built() -> None:
    """What follows it is numbered as if it had not been."""
    journal = Journal()
    journal.record(asked(1))
    journal.record_later(lambda: pytest.fail("built"))
    journal.forget()
    journal.record_later(lambda: asked(2))
    assert [(1, 1), (2, 2)] == [(event.n, event.m) for event in journal.events]


def test_event_that_is_built_later_is_in_the_file(tmp_path: Path) -> None:
    """A file holds it at once, in its place."""
    path = tmp_path / "j.jsonl"
    journal = Journal(path)
    journal.record_later(lambda: asked(1))
    journal.record(asked(2))
    journal.close()
    assert [1, 2, None] == [json.loads(line).get("m") for line in path.read_text().splitlines()]
