from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.errors import JournalError
from pytest_approvals.journal.event_schema import find_field_error, required_fields
from pytest_approvals.journal.events import EVENTS, Event
from pytest_approvals.journal.files import Journal, read_journal, read_journals

HEADER = '{"event":"header","n":1,"format":1,"scenario":"a/b","agent":"reference"}'
SECOND = '{"event":"header","n":1,"format":1,"scenario":"a/c","agent":"reference"}'
END = '{"event":"run.end","n":2,"how":"completed"}'
FOOTER = '{"event":"footer","count":2}'


@pytest.fixture
def journal_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes lines into `run.jsonl` of the current folder."""
    monkeypatch.chdir(tmp_path)

    def write(*lines: str, end: str = "\n") -> str:
        Path("run.jsonl").write_text("\n".join(lines) + end)
        return "run.jsonl"

    return write


class TestWholeJournal:
    def test_a_footer_makes_it_complete(self, journal_file: Any) -> None:
        """A journal with its footer is complete, and knows its path and line."""
        stored = read_journal(journal_file(HEADER, END, FOOTER))

        assert (True, None, 1, 2) == (stored.complete, stored.cut_line, stored.line, len(stored.events))

    def test_its_header_says_what_ran(self, journal_file: Any) -> None:
        """The header is the first event."""
        assert "a/b" == read_journal(journal_file(HEADER, END, FOOTER)).header.scenario

    def test_a_last_line_without_its_end_is_as_good(self, journal_file: Any) -> None:
        """An editor may have eaten the last line feed."""
        assert read_journal(journal_file(HEADER, END, FOOTER, end="")).complete

    def test_empty_lines_are_nothing(self, journal_file: Any) -> None:
        """Lines without anything on them are passed over."""
        assert 2 == len(read_journal(journal_file(HEADER, "", END, FOOTER, "")).events)

    def test_events_of_every_kind_come_back(self, tmp_path: Path, two_calls: list[Event]) -> None:
        """What is read equals what was recorded, and the file is written the same again."""
        first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
        for path, events in ((first, two_calls), (second, None)):
            journal = Journal(path)
            for event in events or read_journal(first).events:
                journal.record(event)
            journal.close()

        assert first.read_bytes() == second.read_bytes()


class TestCutOff:
    def test_no_footer_means_cut_off(self, journal_file: Any) -> None:
        """Without a footer the writer did not come to its end; what it wrote is there."""
        stored = read_journal(journal_file(HEADER, END))

        assert (False, None, 2) == (stored.complete, stored.cut_line, len(stored.events))

    def test_a_cut_last_line_is_named(self, journal_file: Any) -> None:
        """A last line that breaks off is no damage; it is not among the events."""
        stored = read_journal(journal_file(HEADER, END[:20], end=""))

        assert (False, 2, 1) == (stored.complete, stored.cut_line, len(stored.events))

    def test_a_cut_character_is_no_damage(self, tmp_path: Path) -> None:
        """The writer may be killed in the middle of a character."""
        path = tmp_path / "run.jsonl"
        path.write_bytes(HEADER.encode() + b'\n{"event":"run.end","how":"\xc3')

        assert 2 == read_journal(path).cut_line


class TestSeveralJournals:
    def test_they_come_one_by_one(self, journal_file: Any) -> None:
        """Each header begins a journal; one that was cut off is followed by the next."""
        path = journal_file(HEADER, END, FOOTER, HEADER, SECOND, END, FOOTER)

        found = [(stored.header.scenario, stored.line, stored.complete) for stored in read_journals(path)]

        assert [("a/b", 1, True), ("a/b", 4, False), ("a/c", 5, True)] == found

    def test_a_long_file_is_read_in_pieces(self, journal_file: Any) -> None:
        """Line numbers stay right over many pieces."""
        path = journal_file(*[HEADER, END, FOOTER] * 5000, HEADER, END, '{"event":"footer","count":7}')

        with pytest.raises(JournalError, match=r"run.jsonl:15003: the footer counts 7 events, but there are 2"):
            list(read_journals(path))


DAMAGED = {
    "empty": ([""], "run.jsonl: empty journal file"),
    "cut header": ([HEADER[:30]], "run.jsonl:1: invalid line: expected JSON"),
    "no header": ([END, FOOTER], "run.jsonl:1: invalid first event: expected a header, not 'run.end'"),
    "no JSON": ([HEADER, '{"event":', FOOTER], "run.jsonl:2: invalid line: expected JSON"),
    "two on a line": ([HEADER, END + "," + END, FOOTER], "run.jsonl:2: invalid line: expected JSON"),
    "no object": ([HEADER, "[1]", FOOTER], "run.jsonl:2: invalid line: expected a JSON object"),
    "nested too deep": ([HEADER, "[" * 100_000], "run.jsonl:2: invalid line: expected JSON"),
    "no event": ([HEADER, '{"n":2}'], "run.jsonl:2: unknown event None"),
    "unknown event": (
        [HEADER, '{"event":"tool.stat","n":2}'],
        "run.jsonl:2: unknown event 'tool.stat'; did you mean 'tool.start'?",
    ),
    "unknown field": (
        [HEADER, '{"event":"run.end","n":2,"hwo":"completed"}'],
        "run.jsonl:2: run.end: unknown field 'hwo'; did you mean 'how'?",
    ),
    "missing field": ([HEADER, '{"event":"tool.end","n":2}'], "run.jsonl:2: tool.end: missing field 'x'"),
    "wrong type": (
        [HEADER, '{"event":"tool.end","n":2,"x":"one"}'],
        "run.jsonl:2: tool.end: field 'x' must be a number, not text",
    ),
    "wrong element": (
        [HEADER, '{"event":"turn.start","turn":1,"decisions":["3"]}'],
        "run.jsonl:2: turn.start: field 'decisions': each element must be a number, not text",
    ),
    "wrong error": (
        [HEADER, '{"event":"tool.end","x":1,"error":[1]}'],
        "run.jsonl:2: tool.end: field 'error': each element must be text, not a number",
    ),
    "request is no object": (
        [HEADER, '{"event":"run.end","pending":["q1"]}'],
        "run.jsonl:2: run.end: field 'pending': each element must be an object, not text",
    ),
    "unknown key": (
        [HEADER, '{"event":"run.end","pending":[{"q":"q1","id":"c1","tool":"pay","lable":"c1"}]}'],
        "run.jsonl:2: run.end: field 'pending': unknown key 'lable'; did you mean 'label'?",
    ),
    "missing key": (
        [HEADER, '{"event":"run.end","pending":[{"q":"q1","id":"c1"}]}'],
        "run.jsonl:2: run.end: field 'pending': missing key 'tool'",
    ),
    "name twice": (
        [HEADER, '{"event":"tool.end","n":2,"x":1,"x":2}'],
        "run.jsonl:2: invalid line: duplicate name 'x' in an object",
    ),
    "name twice inside": (
        [HEADER, '{"event":"tool.end","n":2,"x":1,"result":{"a":[{"b":1,"b":1}]}}'],
        "run.jsonl:2: invalid line: duplicate name 'b' in an object",
    ),
    "not a number": ([HEADER, '{"event":"tool.end","n":2,"x":NaN}'], "run.jsonl:2: invalid line: expected JSON"),
    "deep value": (
        [HEADER, '{"event":"tool.end","n":2,"x":1,"result":' + "[" * 100 + "]" * 100 + "}"],
        "run.jsonl:2: invalid line: nested deeper than 100 levels",
    ),
    "unhashable id": (
        [HEADER, '{"event":"run.end","pending":[{"q":"q1","id":["c1"],"tool":"pay"}]}'],
        "run.jsonl:2: run.end: field 'pending': key 'id' must be text or null, not a list",
    ),
    "item of a wrong type": (
        [HEADER, '{"event":"model.request","m":1,"conversation":"a","agent":"a","items":[{"kind":"call","tool":{}}]}'],
        "run.jsonl:2: model.request: field 'items': key 'tool' must be text or null, not an object",
    ),
    "call of a wrong type": (
        [HEADER, '{"event":"model.answer","m":1,"conversation":"a","calls":[{"tool":"pay","label":1}]}'],
        "run.jsonl:2: model.answer: field 'calls': key 'label' must be text or null, not a number",
    ),
    "broken rule of a wrong type": (
        [HEADER, '{"event":"model.refusal","m":1,"conversation":"a","broken":[{"rule":"r","ids":[1]}]}'],
        "run.jsonl:2: model.refusal: field 'broken': key 'ids': each element must be text or null, not a number",
    ),
    "tool that is no object": (
        [HEADER[:-1] + ',"tools":{"pay":"always"}}'],
        "run.jsonl:1: header: field 'tools': 'pay' must be an object, not text",
    ),
    "condition of a wrong type": (
        [HEADER[:-1] + ',"tools":{"pay":{"approval":{"argument":5}}}}'],
        "run.jsonl:1: header: field 'tools': 'pay': key 'approval': key 'argument' must be text or null, not a number",
    ),
    "approval that is no word": (
        [HEADER[:-1] + ',"tools":{"pay":{"approval":"often"}}}'],
        "run.jsonl:1: header: field 'tools': 'pay': key 'approval' must be 'always' or 'never', not 'often'",
    ),
    "unknown key of a condition": (
        [HEADER[:-1] + ',"tools":{"pay":{"approval":{"argumen":"a"}}}}'],
        "run.jsonl:1: header: field 'tools': 'pay': key 'approval': unknown key 'argumen'; did you mean 'argument'?",
    ),
    "parameter of a wrong type": (
        [HEADER[:-1] + ',"tools":{"p":{"parameters":{"x":{"type":5}}}}}'],
        "run.jsonl:1: header: field 'tools': 'p': key 'parameters': 'x': key 'type' must be text, not a number",
    ),
    "variant of a wrong type": (
        [HEADER[:-1] + ',"variant":{"serialize":["json"]}}'],
        "run.jsonl:1: header: field 'variant': key 'serialize' must be text, not a list",
    ),
    "unknown resume": (
        [HEADER[:-1] + ',"variant":{"resume":"warm"}}'],
        "run.jsonl:1: header: field 'variant': key 'resume' must be 'same' or 'fresh' or 'cold', not 'warm'",
    ),
    "expected runs of a wrong type": (
        [HEADER[:-1] + ',"expect":{"runs":[1]}}'],
        "run.jsonl:1: header: field 'expect': key 'runs': each element must be text, not a number",
    ),
    "count of a wrong type": (
        [HEADER[:-1] + ',"reaches":{"paused":"1"}}'],
        "run.jsonl:1: header: field 'reaches': 'paused' must be a number, not text",
    ),
    "shown request of a wrong type": (
        [HEADER, '{"event":"caller.decide","verdict":"approve","shows":{"tool":1}}'],
        "run.jsonl:2: caller.decide: field 'shows': key 'tool' must be text or null, not a number",
    ),
    "other format": (
        ['{"event":"header","format":9,"scenario":"a/b","agent":"x"}'],
        "run.jsonl:1: unknown journal format 9: expected 1",
    ),
    "second header": (
        [HEADER, END, FOOTER, SECOND],
        "run.jsonl:4: unexpected second header: the file holds 2 journals, expected one",
    ),
    "footer alone": ([FOOTER], "run.jsonl:1: unexpected footer: no journal precedes it"),
    "footer again": ([HEADER, END, FOOTER, FOOTER], "run.jsonl:4: unexpected footer: no journal precedes it"),
    "wrong count": ([HEADER, FOOTER], "run.jsonl:2: the footer counts 2 events, but there are 1"),
}


class TestDamage:
    @pytest.mark.parametrize(("lines", "message"), DAMAGED.values(), ids=DAMAGED)
    def test_the_line_and_the_mistake_are_named(self, journal_file: Any, lines: list[str], message: str) -> None:
        """A line that does not fit is an error that says where and what, and names the nearest valid word."""
        with pytest.raises(JournalError) as raised:
            read_journal(journal_file(*lines))

        assert message == str(raised.value)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        """A missing file is an error of the journal, too."""
        with pytest.raises(JournalError) as raised:
            read_journal(tmp_path / "run.jsonl")

        assert f"{tmp_path / 'run.jsonl'}: cannot be read: No such file or directory" == str(raised.value)


class TestShapes:
    @pytest.mark.parametrize("kind", EVENTS)
    def test_every_event_that_is_written_can_be_read(self, kind: str) -> None:
        """An event with nothing but its needed fields has the shape that the reader wants."""
        examples = {"str": "x", "int": 1, "list": [], "dict": {}, "Any": None, "bool": True}
        hints = EVENTS[kind].__annotations__
        given = {name: examples[hints[name].split("[")[0].split(" ")[0]] for name in required_fields(EVENTS[kind])}

        written = json.loads(json.dumps(EVENTS[kind](**given).to_dict()))
        written.pop("event")

        assert find_field_error(EVENTS[kind], written) is None
