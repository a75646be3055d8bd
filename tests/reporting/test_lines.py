from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from errno import EBUSY
from io import FileIO
from pathlib import Path

import jsonschema
import pytest

from pytest_approvals.checks import CHECKS
from pytest_approvals.errors import ReportError
from pytest_approvals.reporting.compact import COMPACT_TYPES, ReportEncoder, compact_schema, encode_report
from pytest_approvals.reporting.files import ReportStream, read_report, replace_file, write_report
from pytest_approvals.reporting.report import (
    ExploredLine,
    Report,
    ReportedAgent,
    ReportHeader,
    TraitsLine,
    TranscriptLine,
    VerdictLine,
    dump_line,
    merge_reports,
)

SCHEMA = Path(__file__).parents[2] / "docs" / "report.schema.json"
HEADER = '{"event":"header","package":"0.1.0","python":"3.11.7"}'
VERDICT = '{"event":"verdict","scenario":"a/b","agent":"x","variant":"none-held","check":"asked-once","status":"pass"}'


class TestLine:
    def test_a_verdict_that_holds_is_short(self) -> None:
        """Fields that say nothing are left out."""
        line = VerdictLine(scenario="a/b", agent="x", variant="none-held", check="asked-once", status="pass")

        assert VERDICT == dump_line(line)

    def test_a_line_of_each_kind_fits_the_schema(self, report: Report) -> None:
        """What is written is valid against the published schema."""
        report.add(TraitsLine(agent="reference", traits={"raising-tool": ("model",)}))
        report.add(ExploredLine(agent="reference", stories=3, found={"explored/asked-once-1": "title: Pay"}))
        validator = jsonschema.Draft202012Validator(compact_schema())
        lines = [json.loads(line) for line in encode_report(report).splitlines()]

        assert [] == [error.message for line in lines for error in validator.iter_errors(line)]
        assert set(COMPACT_TYPES) == {line["event"] for line in lines}

    def test_the_published_schema_is_the_one_of_the_lines(self) -> None:
        """`docs/report.schema.json` is what `compact_schema()` gives."""
        assert json.loads(SCHEMA.read_text()) == compact_schema()


class TestFile:
    def test_a_report_comes_back(self, report: Report, tmp_path: Path) -> None:
        """What is read equals what was written, in a fixed order."""
        path = tmp_path / "report.jsonl"
        write_report(path, report)

        stored = read_report(path)

        assert [*report.body()] == [*stored.body()]
        assert (report.header, report.footer(), True) == (stored.header, stored.footer(), stored.complete)

    def test_a_remembered_run_is_marked_in_every_form(self, report: Report, tmp_path: Path) -> None:
        """Of a merged report it is the last report with the run that counts."""
        run, *others = sorted({(line.scenario, line.agent, line.variant) for line in report.verdicts})
        remembered = replace(report, remembered={run, others[0]})
        later = Report(header=report.header, verdicts=[line for line in report.verdicts if run[0] == line.scenario])
        for form in ("jsonl", "md", "html"):
            write_report(tmp_path / f"report.{form}", remembered)

        assert {run, others[0]} == read_report(tmp_path / "report.jsonl").remembered
        assert {run, others[0]} == merge_reports([report, remembered]).remembered
        assert run not in merge_reports([remembered, later]).remembered
        assert "27 runs · 2 remembered · " in (tmp_path / "report.md").read_text()
        assert "27 runs · 2 remembered · " in (tmp_path / "report.html").read_text()

    def test_traits_come_back_and_stand_in_every_form(self, report: Report, tmp_path: Path) -> None:
        """Reports of both halves are merged; Markdown and HTML list the choices of the agent."""
        other = replace(report, traits=[TraitsLine(agent="reference", traits={"raising-tool": ("ask",)})])
        report.add(TraitsLine(agent="reference", traits={"raising-tool": ("model",)}))
        for form in ("jsonl", "md", "html"):
            write_report(tmp_path / f"report.{form}", merge_reports([report, other]))

        assert [TraitsLine(agent="reference", traits={"raising-tool": ("ask", "model")})] == read_report(
            tmp_path / "report.jsonl"
        ).traits
        assert "- raising-tool: ask, model\n" in (tmp_path / "report.md").read_text()
        assert "<li>raising-tool: ask, model</li>" in (tmp_path / "report.html").read_text()

    def test_the_same_report_is_the_same_bytes(self, report: Report, tmp_path: Path) -> None:
        """The order in which verdicts came makes no difference."""
        write_report(tmp_path / "one.jsonl", report)
        report.verdicts.reverse()
        write_report(tmp_path / "two.jsonl", report)

        assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()

    def test_the_footer_counts(self, report: Report, tmp_path: Path) -> None:
        """Runs, and verdicts by status; what concerns all variants together is no run."""
        write_report(tmp_path / "report.jsonl", report)

        footer = json.loads((tmp_path / "report.jsonl").read_text().splitlines()[-1])
        assert 27 == footer["runs"]
        assert {
            "absent": 1,
            "fail": 6,
            "not-applicable": 26,
            "pass": 23,
            "stale": 1,
            "waived": 1,
            "warning": 1,
        } == footer["counts"]

    def test_a_report_without_its_footer_was_cut_off(self, tmp_path: Path) -> None:
        """What was written before the end is there; a cut line is not."""
        path = tmp_path / "report.jsonl"
        path.write_text(f"{HEADER}\n{VERDICT}\n{VERDICT[:40]}")

        stored = read_report(path)

        assert (False, 1) == (stored.complete, len(stored.verdicts))

    def test_a_report_that_is_not_complete_has_no_footer(self, report: Report, tmp_path: Path) -> None:
        """An interrupted session leaves a report that says so."""
        report.complete = False
        write_report(tmp_path / "report.jsonl", report)

        assert not read_report(tmp_path / "report.jsonl").complete

    @pytest.mark.parametrize(
        ("name", "beginning"), [("report.md", "# Tool approvals"), ("report.html", "<!doctype html>")]
    )
    def test_the_ending_of_the_file_says_the_form(
        self, report: Report, tmp_path: Path, name: str, beginning: str
    ) -> None:
        """A report can be written as Markdown or as a page, too."""
        write_report(tmp_path / name, report)

        assert beginning == (tmp_path / name).read_text().splitlines()[0]

    def test_format_1_is_read(self, report: Report, tmp_path: Path) -> None:
        """A line for each verdict, as earlier versions wrote it."""
        write_format_1(tmp_path / "old.jsonl", report)

        stored = read_report(tmp_path / "old.jsonl")

        assert [*report.body()] == [*stored.body()]
        assert (report.header, True) == (stored.header, stored.complete)

    def test_what_no_table_lists_comes_back(self, failing: VerdictLine, tmp_path: Path) -> None:
        """Names without an entry, verdicts that differ from their run, and a run that a test made twice."""
        odd = replace(failing, version=None, mode=None, rerun="x", check="of-nobody", tool="pay, desk.py:7")
        holds = VerdictLine(scenario="n/n", agent="nobody", variant="v", check="asked-once", status="pass")
        several = [failing, odd, replace(failing, label=None), holds, holds]
        told = [TranscriptLine(scenario="n/n", agent="nobody", variant="v", lines=(text,)) for text in "ab"]
        header = ReportHeader(package="0.1.0", python="3.11.7")
        report = Report(header=header, verdicts=several, transcripts=told)
        write_report(tmp_path / "report.jsonl", report)

        stored = read_report(tmp_path / "report.jsonl")

        assert ([*report.body()], header) == ([*stored.body()], stored.header)

    def test_half_a_character_comes_back(self, failing: VerdictLine, tmp_path: Path) -> None:
        """What an agent said cannot keep a report from being written, in any form."""
        odd = replace(failing, actual="\ud800 é")
        report = Report(header=ReportHeader(package="0.1.0", python="3.11.7"), verdicts=[odd])
        for form in ("jsonl", "md", "html"):
            write_report(tmp_path / f"report.{form}", report)

        assert [odd] == read_report(tmp_path / "report.jsonl").verdicts
        assert "ud800" in (tmp_path / "report.md").read_text()


class TestSize:
    def test_a_run_like_another_is_one_short_line(self) -> None:
        """The same checks hold in most runs of a scenario, and many of them have the same transcript."""
        encoder = ReportEncoder(ReportHeader(package="0.1.0", python="3.11.7"))
        lengths = []
        for variant in ("none-held", "json-fresh-stream-restored"):
            key = ("parallel/partial-answer", "openai_agents", variant)
            place = {"scenario": key[0], "agent": key[1], "variant": variant}
            lines = [VerdictLine(**place, check=slug, status="pass") for slug in CHECKS]
            lengths.append(len(encoder.add_run(key, lines, ["A line of a transcript"] * 40)))

        assert 120 > lengths[1] < lengths[0] / 20


class TestStream:
    def test_what_was_judged_is_there_before_the_end(self, failing: VerdictLine, tmp_path: Path) -> None:
        """Each run can be read as soon as it was added; without the end it is not complete."""
        stream = ReportStream(tmp_path / "report.jsonl", ReportHeader(package="0.1.0", python="3.11.7"))
        about = ReportedAgent(agent=failing.agent, version=failing.version)
        stream.add_agent(about)
        stream.add((failing.scenario, failing.agent, failing.variant), [failing], transcript=["a"], title="Title")

        stored = read_report(tmp_path / "report.jsonl")

        assert ([failing], False) == (stored.verdicts, stored.complete)
        assert ((about,), {failing.scenario: "Title"}) == (stored.header.agents, stored.header.scenarios)
        stream.close()

    @pytest.mark.parametrize("name", ["report.jsonl", "report.html", "report.md"])
    def test_an_older_report_is_gone_from_the_beginning(self, report: Report, tmp_path: Path, name: str) -> None:
        """A session that is killed at once does not leave the report of another one under its name."""
        path = tmp_path / name
        write_report(path, report)
        stream = ReportStream(path, ReportHeader(package="0.1.0", python="3.11.7"))

        assert "partial-answer" not in path.read_text()
        assert not read_report(path if name.endswith("jsonl") else tmp_path / f"{name}.jsonl").complete
        stream.close()

    def test_another_form_says_that_it_is_not_the_whole(self, tmp_path: Path) -> None:
        """A page of a session that runs, or was killed, cannot be taken for one without findings."""
        ReportStream(tmp_path / "report.html", ReportHeader(package="0.1.0", python="3.11.7")).close()

        assert "the report was cut off" in (tmp_path / "report.html").read_text()

    @pytest.mark.parametrize("name", ["report.jsonl", "report.html"])
    def test_the_end_replaces_it(self, report: Report, tmp_path: Path, name: str) -> None:
        """Only the whole report is left, the same bytes as of one that is written at once."""
        stream = ReportStream(tmp_path / name, report.header)
        for line in reversed(report.verdicts):
            stream.add((line.scenario, line.agent, line.variant), [line])
        stream.finish(report)
        write_report(tmp_path / f"whole-{name}", report)

        assert {name, f"whole-{name}"} == {path.name for path in tmp_path.iterdir()}
        assert (tmp_path / f"whole-{name}").read_bytes() == (tmp_path / name).read_bytes()

    def test_a_full_disk_is_named(self, failing: VerdictLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The session goes on; what could not be written is not lost for its end."""
        stream = ReportStream(tmp_path / "report.jsonl", ReportHeader(package="0.1.0", python="3.11.7"))
        stream.close()
        monkeypatch.setattr(stream, "_file", FileIO("/dev/full", "w"))
        for _ in range(2):
            stream.add((failing.scenario, failing.agent, failing.variant), [failing])

        assert str(stream.failure).endswith(
            "report.jsonl: cannot be written: No space left on device; free some space, or write the report elsewhere"
        )

    def test_a_folder_that_takes_no_file_is_named(self, tmp_path: Path) -> None:
        """Before anything ran."""
        (tmp_path / "file").touch()

        with pytest.raises(ReportError) as raised:
            ReportStream(tmp_path / "file" / "r.jsonl", ReportHeader(package="0.1.0", python="3.11.7"))

        assert "cannot be written: " in str(raised.value)


class TestReplaced:
    def test_a_link_stays_a_link(self, tmp_path: Path) -> None:
        """What it leads to is replaced."""
        (tmp_path / "real").write_text("old")
        (tmp_path / "link").symlink_to("real")
        replace_file(tmp_path / "link", b"new")

        assert ("new", True) == ((tmp_path / "real").read_text(), (tmp_path / "link").is_symlink())

    def test_who_may_read_it_stays_the_same(self, tmp_path: Path) -> None:
        """A report that only its owner reads is not opened to all."""
        (tmp_path / "report").touch(mode=0o600)
        replace_file(tmp_path / "report", b"new")

        assert 0o600 == (tmp_path / "report").stat().st_mode & 0o777

    def test_a_device_is_written_and_not_replaced(self) -> None:
        """`--report /dev/null` leaves the device where it is."""
        replace_file(Path("/dev/null"), b"new")

        assert Path("/dev/null").is_char_device()

    def test_a_mounted_file_is_written_in_place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A file that is mounted into a container cannot be replaced; nothing is left beside it."""

        def refuse(*_: object) -> None:
            raise OSError(EBUSY, "Device or resource busy")

        (tmp_path / "report").write_text("old")
        monkeypatch.setattr(Path, "replace", refuse)
        replace_file(tmp_path / "report", b"new")

        assert [("report", "new")] == [(path.name, path.read_text()) for path in tmp_path.iterdir()]

    def test_a_reader_sees_the_old_or_the_new_one(self, tmp_path: Path) -> None:
        """Whoever has opened the old file reads it to its end."""
        (tmp_path / "report").write_text("old")
        with (tmp_path / "report").open() as reader:
            replace_file(tmp_path / "report", b"new")

            assert "old" == reader.read()
        assert ["report"] == [path.name for path in tmp_path.iterdir()]


def write_format_1(path: Path, report: Report) -> None:
    """Writes a report as earlier versions did."""
    lines = [report.header, *report.body(), report.footer()]
    path.write_text("".join(f"{dump_line(line)}\n" for line in lines))


def test_a_changed_line_is_noticed(report: Report, tmp_path: Path) -> None:
    """Any line that is dropped, doubled or swapped with the next one, and a name said twice in a line."""
    path = tmp_path / "report.jsonl"
    write_report(path, report)
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = {}
    for k in range(len(lines) - 1):
        damaged["dropped", k] = [*lines[:k], *lines[k + 1 :]]
        damaged["doubled", k] = [*lines[:k], lines[k], *lines[k:]]
        damaged["swapped", k] = [*lines[:k], lines[k + 1], lines[k], *lines[k + 2 :]]
        damaged["twice", k] = [*lines[:k], lines[k].replace(b'"event"', b'"event":"run","event"'), *lines[k + 1 :]]
    believed = []
    for what, several in damaged.items():
        path.write_bytes(b"".join(several))
        # A footer that is not the last line was swapped with one that cannot come behind it.
        with contextlib.suppress(ReportError):
            read_report(path)
            believed.append(what)

    assert [] == believed


def test_a_changed_line_of_format_1_is_noticed(report: Report, tmp_path: Path) -> None:
    """A verdict that is dropped or doubled, and a name said twice in a line."""
    write_format_1(tmp_path / "old.jsonl", report)
    lines = (tmp_path / "old.jsonl").read_text().splitlines(keepends=True)
    k = next(k for k, line in enumerate(lines) if '"verdict"' in line)
    damaged = {
        "counts": ["".join([*lines[:k], *lines[k + 1 :]]), "".join([*lines[:k], lines[k], *lines[k:]])],
        "is named twice": ["".join([*lines[:k], lines[k].replace('"agent"', '"agent":"x","agent"'), *lines[k + 1 :]])],
    }
    for what, texts in damaged.items():
        for text in texts:
            (tmp_path / "old.jsonl").write_text(text)
            with pytest.raises(ReportError) as raised:
                read_report(tmp_path / "old.jsonl")

            assert what in str(raised.value)


def test_lines_of_a_cut_report_are_in_order(report: Report, tmp_path: Path) -> None:
    """Without a footer a run that was dropped or doubled is noticed by its number."""
    report.complete = False
    path = tmp_path / "report.jsonl"
    write_report(path, report)
    lines = path.read_bytes().splitlines(keepends=True)
    k = next(k for k, line in enumerate(lines) if b'"run"' in line)
    path.write_bytes(b"".join([*lines[:k], *lines[k + 1 :]]))

    with pytest.raises(ReportError) as raised:
        read_report(path)

    assert str(raised.value).endswith("run 1 is out of order: expected run 0")


STATUSES = "'pass', 'fail', 'warning', 'unknown', 'not-applicable', 'not-observable', 'harness-error' or 'waived'"
DAMAGED = {
    "empty": ("", "report.jsonl: it holds no line"),
    "no header": (VERDICT, "report.jsonl:1: a header must come first, not 'verdict'"),
    "other format": (
        HEADER.replace('"package"', '"format":9,"package"'),
        "report.jsonl:1: the report has format 9; this version reads formats 1 and 2",
    ),
    "second header": (f"{HEADER}\n{HEADER}", "report.jsonl:2: a second header"),
    "no JSON": (f"{HEADER}\n{{", "report.jsonl:2: this line is no JSON"),
    "no object": (f"{HEADER}\n[1]", "report.jsonl:2: this line is no JSON object with an event"),
    "no event": (f'{HEADER}\n{{"a":1}}', "report.jsonl:2: this line is no JSON object with an event"),
    "unknown event": (
        f'{HEADER}\n{{"event":"verdit"}}',
        "report.jsonl:2: unknown line 'verdit'; did you mean 'verdict'?",
    ),
    "unknown field": (
        f'{HEADER}\n{VERDICT[:-1]},"scenaro":1}}',
        "report.jsonl:2: unknown field 'scenaro'; did you mean 'scenario'?",
    ),
    "missing field": (f'{HEADER}\n{{"event":"stale","agent":"x"}}', "report.jsonl:2: field 'waiver': field required"),
    "unknown status": (
        f"{HEADER}\n{VERDICT.replace('pass', 'passed')}",
        f"report.jsonl:2: field 'status': input should be {STATUSES}",
    ),
}


class TestDamage:
    @pytest.mark.parametrize(("text", "message"), DAMAGED.values(), ids=DAMAGED)
    def test_the_line_and_the_mistake_are_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
    ) -> None:
        """A line that does not fit is an error that says where and what."""
        monkeypatch.chdir(tmp_path)
        Path("report.jsonl").write_text(f"{text}\n" if text else "")

        with pytest.raises(ReportError) as raised:
            read_report(Path("report.jsonl"))

        assert message == str(raised.value)

    def test_a_file_that_is_not_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A missing file is an error of the report, too."""
        monkeypatch.chdir(tmp_path)

        with pytest.raises(ReportError) as raised:
            read_report(Path("report.jsonl"))

        assert "report.jsonl: it cannot be read: No such file or directory" == str(raised.value)


class TestMerged:
    def test_two_halves_are_the_whole(self, report: Report) -> None:
        """Reports of several processes or machines become one."""
        halves = [
            Report(
                header=replace(report.header, agents=report.header.agents[:2]),
                verdicts=report.verdicts[:20],
            ),
            Report(header=report.header, verdicts=report.verdicts[10:], stale=report.stale, absent=report.absent),
        ]
        halves[1].transcripts, halves[1].not_applicable = report.transcripts, report.not_applicable

        whole = merge_reports(halves)

        assert [*report.body()] == [*whole.body()]
        assert report.header == whole.header

    def test_the_later_of_two_lines_counts(self, failing: VerdictLine, report: Report) -> None:
        """A run that was taken again replaces the one before."""
        again = replace(failing, status="pass")
        reports = [Report(header=report.header, verdicts=[line]) for line in (failing, again)]

        assert [again] == merge_reports(reports).verdicts

    def test_it_is_complete_if_all_are(self, report: Report) -> None:
        """One report that was cut off makes the whole incomplete."""
        cut = Report(header=report.header, complete=False)

        assert not merge_reports([report, cut]).complete
        assert merge_reports([report, report]).complete
