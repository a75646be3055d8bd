from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from pytest_approvals.errors import ReportError
from pytest_approvals.reporting.files import ReportWriter, read_report, write_report
from pytest_approvals.reporting.report import (
    Report,
    ReportHeader,
    TraitsLine,
    VerdictLine,
    dump_line,
    merge_reports,
    report_schema,
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
        validator = jsonschema.Draft202012Validator(report_schema())
        lines = [report.header, *report.body(), report.footer()]

        assert [] == [error.message for line in lines for error in validator.iter_errors(json.loads(dump_line(line)))]
        assert {"header", "verdict", "transcript", "not-applicable", "stale", "absent", "traits", "footer"} == {
            line.event for line in lines
        }

    def test_the_published_schema_is_the_one_of_the_lines(self) -> None:
        """`docs/report.schema.json` is what `report_schema()` gives."""
        assert json.loads(SCHEMA.read_text()) == report_schema()


class TestFile:
    def test_a_report_comes_back(self, report: Report, tmp_path: Path) -> None:
        """What is read equals what was written, in a fixed order."""
        path = tmp_path / "report.jsonl"
        write_report(path, report)

        stored = read_report(path)

        assert [*report.body()] == [*stored.body()]
        assert (report.header, report.footer(), True) == (stored.header, stored.footer(), stored.complete)

    def test_traits_come_back_and_stand_in_every_form(self, report: Report, tmp_path: Path) -> None:
        """Reports of both halves are merged; Markdown and HTML list the choices of the agent."""
        other = report.model_copy(update={"traits": [TraitsLine(agent="reference", traits={"raising-tool": ("ask",)})]})
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

        assert {
            "event": "footer",
            "runs": 27,
            "counts": {"absent": 1, "fail": 6, "not-applicable": 26, "pass": 23, "stale": 1, "waived": 1, "warning": 1},
        } == json.loads((tmp_path / "report.jsonl").read_text().splitlines()[-1])

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

    def test_lines_are_written_as_they_come(self, tmp_path: Path) -> None:
        """A writer can be fed while a session runs."""
        path = tmp_path / "report.jsonl"
        writer = ReportWriter(path, ReportHeader(package="0.1.0", python="3.11.7"))
        writer.add(VerdictLine(scenario="a/b", agent="x", variant="none-held", check="asked-once", status="pass"))
        writer.close()

        assert VERDICT == path.read_text().splitlines()[1]


STATUSES = "'pass', 'fail', 'warning', 'unknown', 'not-applicable', 'not-observable', 'harness-error' or 'waived'"
DAMAGED = {
    "empty": ("", "report.jsonl: it holds no line"),
    "no header": (VERDICT, "report.jsonl:1: a header must come first, not 'verdict'"),
    "other format": (
        HEADER.replace('"package"', '"format":9,"package"'),
        "report.jsonl:1: the report has format 9; this version reads format 1",
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
                header=report.header.model_copy(update={"agents": report.header.agents[:2]}),
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
        again = failing.model_copy(update={"status": "pass"})
        reports = [Report(header=report.header, verdicts=[line]) for line in (failing, again)]

        assert [again] == merge_reports(reports).verdicts

    def test_it_is_complete_if_all_are(self, report: Report) -> None:
        """One report that was cut off makes the whole incomplete."""
        cut = Report(header=report.header, complete=False)

        assert not merge_reports([report, cut]).complete
        assert merge_reports([report, report]).complete
