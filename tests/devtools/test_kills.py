"""What killed sessions leave, and that the command which kills them notices losses."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_approvals.devtools.kills import OLDER_SEED, KillSurvey, check_folders, examine, format_surveys
from pytest_approvals.journal.events import Header, RunEnd
from pytest_approvals.journal.files import Journal
from pytest_approvals.reporting.files import ReportStream, write_report
from pytest_approvals.reporting.report import Report, ReportHeader, VerdictLine

VARIANT = {"serialize": "none", "source": "held"}
HEADER = ReportHeader(package="0", python="3")
RUN = ("mine/one", "reference", "none-held")


class Left:
    """The folder of a session that was killed after one run, of which all was written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.report = path / "report.jsonl"
        self.journal = path / "journals" / "mine-one__reference__none-held.jsonl"
        self.journal.parent.mkdir()
        self.write_journal()
        self.write_report(RUN)
        (path / "log.txt").write_text("scenarios/mine/one.approval.yaml::reference[none-held] PASSED [ 5%]\n")

    def write_journal(self, *, close: bool = True) -> None:
        journal = Journal(self.journal)
        journal.record(Header(scenario="mine/one", agent="reference", variant=VARIANT))
        journal.record(RunEnd(how="completed"))
        journal.close()
        if not close:
            lines = self.journal.read_text().splitlines(keepends=True)
            self.journal.write_text("".join(lines[:-1]))

    def write_report(self, *runs: tuple[str, str, str]) -> None:
        stream = ReportStream(self.report, HEADER)
        for run in runs:
            scenario, agent, variant = run
            line = VerdictLine(scenario=scenario, agent=agent, variant=variant, check="asked-once", status="pass")
            stream.add(run, [line])
        stream.close()

    def losses(self) -> list[str]:
        return examine(self.path).losses


@pytest.fixture
def left(tmp_path: Path) -> Left:
    """What a session has left."""
    return Left(tmp_path)


class TestExamined:
    def test_what_is_whole_is_no_loss(self, left: Left) -> None:
        """One run was announced, recorded and reported."""
        outcome = examine(left.path)

        assert ([], 1, 1, 1) == (outcome.losses, outcome.announced, outcome.reported, outcome.journals["whole"])

    def test_what_was_not_judged_yet_is_no_loss(self, left: Left) -> None:
        """A recorded run that nobody announced, and journals that were begun."""
        left.write_report()
        (left.path / "log.txt").write_text("scenarios/mine/one.approval.yaml::reference[none-held] ")
        (left.journal.parent / "begun.jsonl").touch()
        outcome = examine(left.path)

        assert ([], 1, 1) == (outcome.losses, outcome.unreported, outcome.journals["empty"])

    def test_an_announced_run_without_its_journal_is_a_loss(self, left: Left) -> None:
        """Also if the journal was cut off."""
        left.write_journal(close=False)

        assert [
            f"announced, and without a whole journal: {RUN}",
            f"in the report, and without a whole journal: {RUN}",
        ] == left.losses()

    @pytest.mark.parametrize(
        "line",
        [
            "scenarios/mine/one.approval.yaml::reference[none-held] FAILED [ 5%]\n",
            "[gw1] [ 17%] PASSED scenarios/mine/one.approval.yaml::reference[none-held] \n",
        ],
    )
    def test_an_announced_run_that_is_not_reported_is_a_loss(self, left: Left, line: str) -> None:
        """However pytest announces it."""
        left.write_report()
        (left.path / "log.txt").write_text(line)

        assert [f"announced, and not in the report: {RUN}"] == left.losses()

    def test_an_older_report_is_a_loss(self, left: Left) -> None:
        """Once anything was recorded, it would be read as the result of the killed session."""
        write_report(left.report, Report(header=replace(HEADER, seed=OLDER_SEED)))

        assert "the older report is still there" in left.losses()

    def test_damage_is_a_loss(self, left: Left) -> None:
        """A journal or a report that cannot be read."""
        left.journal.write_text("{}\n")
        left.report.write_text("{}\n")

        assert [True, True] == [
            any(path in loss for loss in left.losses()) for path in (str(left.journal), str(left.report))
        ]


def test_a_check_that_stops_early_is_noticed(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    """All journals of all folders must be judged, and an empty one must be told by the exit code."""
    (left.journal.parent / "a-first.jsonl").touch()
    fine = check_folders([left.path])
    monkeypatch.setattr("pytest_approvals.devtools.kills.subprocess.run", lambda *_, **__: STOPPED)

    assert [] == fine
    assert ["check says '', expected '1 journal judged'"] == check_folders([left.path])


STOPPED = subprocess.CompletedProcess[str]([], 2, "", "pytest-approvals: empty journal file\n")


SESSION = """
import os, sys, threading, time
from pathlib import Path
from pytest_approvals.devtools import kills
from pytest_approvals.reporting.files import write_report
from pytest_approvals.reporting.report import Report, ReportHeader

how = sys.argv[1]
kills.LEFTOVER_DEADLINE = 0.3
kills.adopt_orphans()

def start(folder, words):
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    if how.startswith("leaves a process") and os.fork() == 0:
        os.setsid()
        threading.Event().wait()
    header = ReportHeader(package="0", python="3", seed=kills.OLDER_SEED if words else 0)
    if "no report" not in how:
        write_report(folder / "report.jsonl", Report(header=header, complete=how != "is cut off" or bool(words)))
    time.sleep(0.7 if is_killed else 0.0)
    os._exit(3 if how == "fails" else 0)

is_killed = how == "works" or how.startswith("leaves a process")
kind = kills.VictimKind(name="own", start=start, has_processes=False)
problems = kills.run_kills(kind, 1, 1).losses if is_killed else kills.run_next(kind, Path(sys.argv[2]))
print(*problems, sep="\\n")
"""


ONLY_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")


@ONLY_LINUX
def test_kills_that_cannot_go_on_leave_no_process(tmp_path: Path) -> None:
    """A process that is left would hold the standard output open, and whoever reads it would wait for ever."""
    command = [sys.executable, "-c", SESSION, "leaves a process and no report", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)

    assert (1, True) == (done.returncode, "report.jsonl: it cannot be read" in done.stderr), done.stderr


@ONLY_LINUX
@pytest.mark.parametrize(
    ("how", "losses"),
    [
        ("works", []),
        ("leaves a process", ["left behind: PYTHON SCRIPT leaves a process"]),
        ("fails", ["the next run ended with 3"]),
        ("is cut off", ["no report of the next run"]),
        ("leaves no report", ["the next run: report.jsonl: it cannot be read: No such file or directory"]),
    ],
    ids=["works", "leaves-a-process", "fails", "is-cut-off", "leaves-no-report"],
)
def test_what_a_session_leaves_running_and_a_next_one_that_fails_are_losses(
    tmp_path: Path, how: str, losses: list[str]
) -> None:
    """Whether the session was killed or ran to its end; what it leaves is ended."""
    script = tmp_path / "session.py"
    script.write_text(SESSION)
    command = [sys.executable, str(script), how, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout.replace(str(script), "SCRIPT").replace(sys.executable, "PYTHON").replace(f"{tmp_path}/", "")

    # Those before the killed one leave something, too.
    assert losses == [*{line.removesuffix(f" {tmp_path}"): None for line in said.splitlines() if line}], done.stderr


def test_the_table_has_a_column_for_each_kind() -> None:
    """Kinds of sessions in columns, what they left in rows."""
    table = format_surveys([KillSurvey("forked", kills=1_000), KillSurvey("workers", kills=7)]).splitlines()

    assert ["| | forked | workers |", "|---|---|---|", "| killed sessions | 1,000 | 7 |"] == table[:3]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--kills", "3", "--commands", "0"), id="few"),
        pytest.param(
            ("--kills", "60", "--commands", "10"), id="many", marks=[pytest.mark.slow, pytest.mark.timeout(900)]
        ),
    ],
)
def test_kills_lose_nothing(words: tuple[str, ...]) -> None:
    """Sessions that are killed at random points keep what they have judged, and the next one works."""
    command = [sys.executable, "-m", "pytest_approvals.devtools.kills", "--seed", "3", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (0, "nothing was lost") == (done.returncode, done.stdout.splitlines()[-1]), done.stdout + done.stderr
