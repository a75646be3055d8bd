"""`pytest-approvals report`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from pytest_approvals.reporting.files import read_report, write_report
from pytest_approvals.reporting.report import (
    NotApplicableLine,
    Report,
    ReportedAgent,
    ReportedCheck,
    ReportHeader,
    TraitsLine,
    TranscriptLine,
    VerdictLine,
)

CHECKS = {
    "asked-once": ReportedCheck(requirement="A call must be asked about once."),
    "runs-at-most-once": ReportedCheck(requirement="An approved call must not run more than once."),
}


def verdict(scenario: str, check: str, status: str, agent: str = "frame", **more: str) -> VerdictLine:
    """A verdict, in the plainest variant unless *more* says otherwise."""
    place = {"variant": "none-held"} | more
    return VerdictLine.from_dict({"scenario": scenario, "agent": agent, "check": check, "status": status, **place})


def make(*verdicts: VerdictLine, complete: bool = True, traits: dict[str, str] | None = None, **header: str) -> Report:
    """A report of the agents that the verdicts name."""
    agents = tuple(ReportedAgent(agent=name) for name in dict.fromkeys(line.agent for line in verdicts))
    titles = {line.scenario: f"Title of {line.scenario}" for line in verdicts}
    about = ReportHeader(package="0", python="3", agents=agents, checks=CHECKS, scenarios=titles)
    shown = {name: (value,) for name, value in (traits or {}).items()}
    return Report(
        header=replace(about, **header),
        verdicts=list(verdicts),
        traits=[TraitsLine(agent=agent.agent, traits=shown) for agent in agents if shown],
        complete=complete,
    )


SARIF = json.loads((Path(__file__).parents[1] / "data" / "sarif-schema-2.1.0.json").read_text())
ONE = verdict("a/one", "asked-once", "pass")
TWO = verdict("a/two", "asked-once", "pass")
BROKEN = verdict("a/two", "runs-at-most-once", "fail", actual="2 runs", expected="1 run")


@pytest.fixture
def write(command_line):
    """Writes a report into the folder, and gives its name."""

    def write_named(name: str, report: Report) -> str:
        write_report(command_line.folder / name, report)
        return name

    return write_named


class TestShow:
    def test_findings_and_matrix_are_printed(self, command_line, write) -> None:
        """As at the end of the session; the exit code is that of the session."""
        said = command_line("report", "show", write("r.jsonl", make(ONE, TWO, BROKEN)))

        assert 1 == said.code
        assert "runs-at-most-once: an approved call must not run more than once\n" in said.out
        assert "a · 2     1 ✓  1 ✗" in said.out

    def test_a_report_without_failures_is_fine(self, command_line, write) -> None:
        """Exit code 0."""
        assert 0 == command_line("report", "show", write("r.jsonl", make(ONE))).code

    def test_a_report_that_was_cut_off_says_so(self, command_line, write) -> None:
        """And is no success."""
        said = command_line("report", "show", write("r.jsonl", make(ONE, complete=False)))

        assert (1, True) == (said.code, "1 run · 1 pass · the report was cut off\n" in said.out)


class TestMerge:
    def test_shards_become_one_report(self, command_line, write) -> None:
        """Each is named with what it holds; the whole has all of them."""
        names = [write("1.jsonl", make(ONE, shard="1/2")), write("2.jsonl", make(TWO, shard="2/2"))]
        said = command_line("report", "merge", *names, "-o", "all.jsonl")
        whole = read_report(command_line.folder / "all.jsonl")

        assert (
            "1.jsonl: shard 1/2 · 1 run · on frame\n2.jsonl: shard 2/2 · 1 run · on frame\nall.jsonl: 2 runs · 2 pass\n"
        ) == said.out
        assert (0, [ONE, TWO], True, "") == (said.code, whole.verdicts, whole.complete, whole.header.shard)

    def test_a_missing_shard_is_named(self, command_line, write) -> None:
        """The whole is not complete then, nor is the exit code 0."""
        said = command_line("report", "merge", write("2.jsonl", make(TWO, shard="2/3")), "-o", "all.jsonl")

        assert "lacking: shards 1/3, 3/3 are missing\n" in said.out
        assert (1, False) == (said.code, read_report(command_line.folder / "all.jsonl").complete)

    def test_a_shard_that_was_cut_off_is_named(self, command_line, write) -> None:
        """It lacks what it did not come to."""
        names = [write("1.jsonl", make(ONE, complete=False)), write("2.jsonl", make(TWO))]
        said = command_line("report", "merge", *names, "-o", "all.jsonl")

        assert (1, True) == (said.code, "lacking: 1.jsonl was cut off\n" in said.out)

    def test_runs_of_several_reports_are_named(self, command_line, write) -> None:
        """Of two verdicts on one run the later one counts."""
        names = [
            write("1.jsonl", make(ONE, BROKEN)),
            write("2.jsonl", make(replace(BROKEN, status="pass"))),
        ]
        said = command_line("report", "merge", *names, "-o", "all.jsonl")

        assert (
            "1.jsonl and 2.jsonl hold 1 run in common, such as a/two on frame (none-held); the last one counts\n"
            in said.out
        )
        assert 0 == said.code

    @pytest.mark.parametrize(
        ("other", "difference"),
        [
            (make(TWO, package="1"), "pytest-approvals 0 and 1"),
            (make(TWO, catalogue="b"), "the scenario files have the digests a and b"),
            (make(ONE, catalogue="a", scenarios={"a/one": "Other"}), "the scenario a/one is not the same"),
        ],
    )
    def test_other_catalogues_are_refused(self, command_line, write, other: Report, difference: str) -> None:
        """Both are named, and what differs; `--force` merges them, and says so, too."""
        words = [
            "report",
            "merge",
            write("1.jsonl", make(ONE, catalogue="a")),
            write("2.jsonl", other),
            "-o",
            "all.jsonl",
        ]
        refused, forced = command_line(*words), command_line(*words, "--force")

        assert (2, "") == (refused.code, refused.out)
        assert (
            f"pytest-approvals: 1.jsonl and 2.jsonl are of different catalogues: {difference}; "
            "--force merges them all the same\n"
        ) == refused.err
        assert f"1.jsonl and 2.jsonl are of different catalogues: {difference}\n" in forced.out
        assert 0 == forced.code


class TestDiff:
    def test_equal_reports(self, command_line, write) -> None:
        """Nothing has changed, and the exit code is 0, also if there are failures."""
        name = write("r.jsonl", make(ONE, BROKEN))
        said = command_line("report", "diff", name, name)

        assert (0, "No failure, no trait and no transcript has changed.\n") == (said.code, said.out)

    def test_a_new_failure(self, command_line, write) -> None:
        """Its check, agent and runs, in Markdown; the exit code is 1."""
        words = (write("before.jsonl", make(ONE, TWO)), write("after.jsonl", make(ONE, TWO, BROKEN)))
        said = command_line("report", "diff", *words)

        assert (
            "## New failures: 1\n\n- `runs-at-most-once` on frame, 1 run\n  - a/two (none-held), fail: 2 runs\n"
        ) == said.out
        assert 1 == said.code

    def test_what_is_fixed_and_what_was_not_run(self, command_line, write) -> None:
        """A failure is fixed if its run was made again; both end with exit code 0."""
        before = make(BROKEN, verdict("a/gone", "asked-once", "fail"))
        said = command_line("report", "diff", write("b.jsonl", before), write("a.jsonl", make(ONE, TWO)))

        assert "## Fixed: 1\n\n- `runs-at-most-once` on frame, 1 run\n" in said.out
        assert "## Failures that were not run again: 1\n\n- `asked-once` on frame, 1 run\n" in said.out
        assert "Runs: 1 only in the second report, 1 only in the first.\n" in said.out
        assert 0 == said.code

    def test_two_releases_are_one_agent(self, command_line, write) -> None:
        """A release and the checkout of a pull request can be compared."""
        before = make(verdict("a/one", "asked-once", "pass", agent="frame==1.0"), traits={"order": "script"})
        after = make(verdict("a/one", "asked-once", "fail", agent="frame@."), traits={"order": "any"})
        said = command_line("report", "diff", write("b.jsonl", before), write("a.jsonl", after))

        assert "- `asked-once` on frame@., 1 run\n" in said.out
        assert "## Changed traits\n\n- frame: order: script → any\n" in said.out

    def test_a_changed_transcript(self, command_line, write) -> None:
        """The lines that differ are quoted, of the first variant; it is no failure."""
        runs = (ONE, replace(ONE, variant="other"))
        before, after = make(*runs), make(*runs)
        for report, told in ((before, "no"), (after, "yes")):
            report.transcripts += [
                TranscriptLine(
                    scenario="a/one", agent="frame", variant=run.variant, lines=("turn 1", f"  model   is told {told}")
                )
                for run in runs
            ]
        said = command_line("report", "diff", write("b.jsonl", before), write("a.jsonl", after))

        assert said.out == (
            "## Changed transcripts: 1\n\n### a/one on frame\n\n"
            "     turn 1\n    -  model   is told no\n    +  model   is told yes\n"
        )
        assert 0 == said.code

    def test_a_second_report_that_was_cut_off(self, command_line, write) -> None:
        """It may hide a failure, so it is no success."""
        said = command_line("report", "diff", write("b.jsonl", make(ONE)), write("a.jsonl", make(ONE, complete=False)))

        assert (1, True) == (said.code, said.out.startswith("The second report was cut off: what it lacks is not "))


class TestConverted:
    def test_a_page_and_markdown(self, command_line, write) -> None:
        """What `--report` writes by the ending of its file."""
        name = write("r.jsonl", make(ONE, BROKEN))
        write("r.html", make(ONE, BROKEN))
        write("r.md", make(ONE, BROKEN))
        command_line("report", "html", name, "-o", "o.html")
        command_line("report", "md", name, "-o", "o.md")

        for form in ("html", "md"):
            assert (command_line.folder / f"r.{form}").read_text() == (command_line.folder / f"o.{form}").read_text()

    def test_sarif(self, command_line, write) -> None:
        """The log fits the published schema; what is waived is suppressed, with the reason."""
        waived = verdict("a/one", "asked-once", "waived", waiver="known (#7)", actual="x", expected="y")
        said = command_line("report", "sarif", write("r.jsonl", make(TWO, BROKEN, waived)))
        log = json.loads(said.out)
        results = log["runs"][0]["results"]

        assert [] == [error.message for error in jsonschema.Draft4Validator(SARIF).iter_errors(log)]
        assert ["runs-at-most-once", "asked-once"] == [result["ruleId"] for result in results]
        assert [None, [{"kind": "external", "justification": "known (#7)"}]] == [
            result.get("suppressions") for result in results
        ]

    def test_a_report_may_be_sarif_at_once(self, tmp_path: Path) -> None:
        """The ending of the file says so."""
        write_report(tmp_path / "r.sarif", make(BROKEN))

        assert "2.1.0" == json.loads((tmp_path / "r.sarif").read_text())["version"]

    def test_code_quality_of_gitlab(self, command_line, write) -> None:
        """Each finding is in the file of its scenario."""
        [found] = json.loads(command_line("report", "gitlab", write("r.jsonl", make(TWO, BROKEN))).out)

        assert ("runs-at-most-once", "major") == (found["check_name"], found["severity"])
        assert {"path": "scenarios/a/two.approval.yaml", "lines": {"begin": 1}} == found["location"]

    def test_junit(self, command_line, write) -> None:
        """A suite for each agent, a case for each run, an element for each failure, and all text escaped."""
        strange = verdict("a/two", "runs-at-most-once", "fail", actual="<b>\x1b]52;c\x07 \ud800", expected="1 run")
        report = make(ONE, strange, verdict("a/two", "asked-once", "warning"))
        report.not_applicable.append(NotApplicableLine(scenario="a/three", agent="frame", missing=("resume",)))
        said = command_line("report", "junit", write("r.jsonl", report), "-o", "o.xml")
        (suite,) = ET.parse(command_line.folder / "o.xml").getroot()

        assert 0 == said.code
        assert {"name": "frame", "tests": "3", "failures": "1", "errors": "0", "skipped": "1"} == suite.attrib
        assert ["a/one", "a/two", "a/three"] == [case.get("classname") for case in suite]
        assert ["failure", "system-out"] == [element.tag for element in suite[1]]
        assert "<b>\\x1b]52;c\\x07" in str(suite[1][0].text)

    def test_junit_of_a_report_that_was_cut_off_fails(self, command_line, write) -> None:
        """A service that reads it must not take it for a success."""
        said = command_line("report", "junit", write("r.jsonl", make(ONE, complete=False)))
        suites = ET.fromstring(said.out)

        assert "the report was cut off: the session did not come to its end" == suites[1][0][0].get("message")

    def test_format_1_is_converted(self, command_line, report_of_format_1: Path) -> None:
        """A report of an earlier version can be shown, merged and converted."""
        said = command_line("report", "merge", report_of_format_1.name, "-o", "new.jsonl")
        lines = (command_line.folder / "new.jsonl").read_text().splitlines()

        assert (0, 2) == (said.code, json.loads(lines[0])["format"])


@pytest.fixture
def report_of_format_1(command_line) -> Path:
    """A report as earlier versions wrote it."""
    return command_line.write(
        "old.jsonl",
        '{"event":"header","format":1,"package":"0.1.0","python":"3.11.7","seed":0,"agents":[{"agent":"frame"}]}\n'
        '{"event":"verdict","scenario":"a/b","agent":"frame","variant":"none-held","check":"asked-once","status":"pass"}\n'
        '{"event":"footer","runs":1,"counts":{"pass":1}}\n',
    )


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["shw", "r.jsonl"], "Unknown action 'shw'; did you mean 'show'?"),
        (["show", "none.jsonl"], "none.jsonl: it cannot be read: No such file or directory"),
        (["merge", "r.jsonl"], "report merge needs a file to write: -o FILE"),
        (["merge", "r.jsonl", "r.jsonl", "-o", "x"], "a report is named twice"),
        (["diff", "r.jsonl"], "report diff compares two reports, not 1"),
        (["html", "r.jsonl", "r.jsonl"], "report html takes one report; make one of several by `report merge`"),
        (["show", "r.jsonl", "--force"], "--force is for `report merge`"),
        (["show", "r.jsonl", "-o", "x"], "-o is for the other actions"),
        (["html", "r.jsonl", "-o", "r.jsonl/x"], "r.jsonl/x: cannot be written: File exists; name another file"),
        (["show", "bad.jsonl"], "bad.jsonl:1: this line is no JSON"),
    ],
)
def test_what_cannot_be_done_is_said(command_line, write, words: list[str], error: str) -> None:
    """A sentence on stderr, nothing on stdout, exit code 2."""
    write("r.jsonl", make(ONE))
    command_line.write("bad.jsonl", "{\n")
    said = command_line("report", *words)

    assert (2, "", f"pytest-approvals: {error}\n") == (said.code, said.out, said.err)
