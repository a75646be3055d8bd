"""Kills: sessions that are ended by SIGKILL at random points, and what they leave.

Nothing that was judged may be lost, nothing that an earlier session wrote may be taken for the result of a killed one,
and the next session must work in the same folder. Three kinds of sessions are killed:

- `forked`: pytest with this plugin in a fork of this process, which has imported everything, so that a kill costs a
  fraction of a second; a few scenarios of the catalogue on the reference agent, without processes of agents.
- `alone`: `pytest-approvals run -n 0`, with agents in processes of their own.
- `workers`: `pytest-approvals run -n 2`, likewise.

Each session keeps journals and a report in a folder in which an older report has the same name. Half of the kills of
the last two kinds hit all processes of the session, the others its first process alone.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import io
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_approvals.errors import JournalError, ReportError
from pytest_approvals.journal.files import StoredJournal, read_journals
from pytest_approvals.reporting.files import read_report
from pytest_approvals.reporting.report import Report
from pytest_approvals.reporting.subject import ALL_VARIANTS, Subject
from pytest_approvals.scenario.catalogue import SCENARIO_SUFFIX, stock_folder

SCENARIOS = ("basics/approved", "parallel/partial-answer")
"""The scenarios that the sessions run."""

OLDER_SEED = 999
"""The seed in the header of the older report, by which it is known."""

LEFTOVER_DEADLINE = 15.0
"""Seconds within which everything that a killed session has started must have ended."""

RunId = tuple[str, str, str]
"""The scenario, the agent and the variant of a run."""

_PR_SET_CHILD_SUBREAPER = 36
_VERDICT = r"(?:PASSED|FAILED|XFAIL)"
_ANNOUNCED = (
    re.compile(rf"^(\S+){re.escape(SCENARIO_SUFFIX)}::(\S+?)\[(\S+)\] {_VERDICT}", re.MULTILINE),
    re.compile(rf"{_VERDICT} (\S+){re.escape(SCENARIO_SUFFIX)}::(\S+?)\[(\S+)\]", re.MULTILINE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VictimKind:
    """A kind of sessions.

    Attributes:
        name: Its name in the table.
        start: Starts a session that writes into a folder, with further words, and returns its process id.
        workers: How many runs it makes at once.
        has_processes: Whether it has more processes than one.
    """

    name: str
    start: Callable[[Path, Sequence[str]], int]
    workers: int = 1
    has_processes: bool = True


@dataclass(slots=True, kw_only=True)
class KillOutcome:
    """What a killed session left.

    Attributes:
        ended: It had ended before the kill came.
        had_begun: It had written or announced anything.
        announced: The runs whose verdict it had printed.
        journals: How many journals are `whole`, `cut`, `empty` or `unreadable`.
        reported: How many runs are in the report.
        unreported: How many runs have a whole journal and are not in the report: they were not judged yet.
        losses: What was lost, or believed that should not be, a sentence each.
        temporary: How many temporary files are left.
    """

    ended: bool = False
    had_begun: bool = False
    announced: int = 0
    journals: Counter[str] = field(default_factory=Counter)
    reported: int = 0
    unreported: int = 0
    temporary: int = 0
    losses: list[str] = field(default_factory=list)


# --- sessions ---------------------------------------------------------------------------------------------------------


def _scenario_words(prefix: str) -> list[str]:
    return [f"{prefix}{stock_folder() / name}{SCENARIO_SUFFIX}" for name in SCENARIOS]


def _start_forked(folder: Path, words: Sequence[str]) -> int:
    """Start pytest in a fork of this process."""
    pid = os.fork()
    if pid:
        return pid
    code = 3
    try:
        os.setsid()
        os.chdir(folder)
        os.environ["PYTEST_APPROVALS_CACHE"] = str(folder / "cache")
        log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        # Written through: a verdict is announced when it is in the file.
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", write_through=True)
        code = _run_pytest(words)
    finally:
        os._exit(code)


def _run_pytest(words: Sequence[str]) -> int:
    import pytest

    options = ["-p", "approvals", "-p", "syrupy", "-p", "no:cacheprovider", "-v", "--disable-warnings"]
    agents = ["--approvals-agents=reference", "--approvals-resume=same"]
    files = ["--approvals-report=report.jsonl", "--approvals-journals=journals"]
    spelled = [f"--approvals-{word.removeprefix('--')}" for word in words]
    return int(pytest.main([*options, *agents, *files, *_scenario_words("--approvals-chosen="), *spelled]))


def _start_command(folder: Path, words: Sequence[str], workers: int) -> int:
    """Start the command line, as a user does."""
    command = [sys.executable, "-m", "pytest_approvals.cli", "run", *_scenario_words("")]
    command += ["--agent", "reference", "--report", "report.jsonl", "--journals", "journals", "-v", "-n", str(workers)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTEST_APPROVALS_CACHE": str(folder / "cache")}
    environment.pop("PYTEST_DISABLE_PLUGIN_AUTOLOAD", None)
    with (folder / "log.txt").open("ab") as log:
        process = subprocess.Popen(
            [*command, *words], cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    # It is waited for by its number, like the forked ones.
    process.returncode = 0
    return process.pid


FORKED = VictimKind(name="forked", start=_start_forked, has_processes=False)
ALONE = VictimKind(name="alone", start=lambda folder, words: _start_command(folder, words, 0))
WORKERS = VictimKind(name="workers", start=lambda folder, words: _start_command(folder, words, 2), workers=2)


# --- one kill ---------------------------------------------------------------------------------------------------------


class KillTester:
    """Kills sessions of one kind.

    Args:
        kind: The kind.
        root: A folder for what they write.
        seed: Decides when they are killed.
    """

    def __init__(self, kind: VictimKind, root: Path, seed: int) -> None:
        self.kind = kind
        self.root = root
        self.random = random.Random(f"{kind.name} {seed}")
        self._older = self._make_older_report()
        self._start_up, self._rest = self._measure()

    def kill_one(self, number: int) -> tuple[KillOutcome, Path]:
        """Kill a session, and return what it left, and its folder."""
        folder = self._new_folder(str(number))
        report = folder / "report.jsonl"
        report.write_bytes(self._older)
        older = report.stat().st_ino
        pid = self.kind.start(folder, ())
        # One in ten is killed while it starts, when there is little to lose.
        if self.random.random() < 0.1:
            ended = _wait_for(pid, self._start_up * self.random.random())
        else:
            ended, _ = _wait_for_begin(pid, report, older)
            begin = time.monotonic()
            ended = ended or _wait_for(pid, self._rest * self.random.uniform(0.0, 1.05))
            # Under a changing load, sessions take longer or shorter than the first one; one in twenty is to end.
            self._rest = 0.5 * (self._rest + time.monotonic() - begin) if ended else self._rest * 1.03
        if not ended:
            kill = os.killpg if self.kind.has_processes and self.random.random() < 0.5 else os.kill
            kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        leftovers = _wait_for_leftovers()
        outcome = examine(folder, self.kind.workers)
        outcome.ended = ended
        outcome.losses += [f"left behind: {line}" for line in leftovers]
        return outcome, folder

    def _make_older_report(self) -> bytes:
        folder = self._new_folder("older")
        os.waitpid(self.kind.start(folder, ("--seed=999",)), 0)
        path = folder / "report.jsonl"
        assert read_report(path).header.seed == OLDER_SEED, (folder / "log.txt").read_text()
        return path.read_bytes()

    def _measure(self) -> tuple[float, float]:
        """Return how long a session takes until it has begun its report, and from there to its end."""
        folder = self._new_folder("measured")
        report = folder / "report.jsonl"
        pid = self.kind.start(folder, ())
        ended, start_up = _wait_for_begin(pid, report)
        begin = time.monotonic()
        # On a busy machine it may have ended before its report was seen.
        if not ended:
            os.waitpid(pid, 0)
        assert report.exists(), (folder / "log.txt").read_text()
        return start_up, time.monotonic() - begin

    def _new_folder(self, name: str) -> Path:
        folder = self.root / f"{self.kind.name}-{name}"
        folder.mkdir()
        (folder / "pytest.ini").write_text("[pytest]\n")
        return folder


def run_next(kind: VictimKind, folder: Path) -> list[str]:
    """Run a session in the folder of a killed one to its end, and return what is wrong with it."""
    pid = kind.start(folder, ())
    _, status = os.waitpid(pid, 0)
    problems = [f"the next run ended with {code}"] if (code := os.waitstatus_to_exitcode(status)) else []
    try:
        report = read_report(folder / "report.jsonl")
    except ReportError as error:
        return [*problems, f"the next run: {error}"]
    return problems if report.complete and report.header.seed == 0 else [*problems, "no report of the next run"]


def _wait_for(pid: int, seconds: float) -> bool:
    """Wait for the end of a process, and return whether it came in time."""
    handle = os.pidfd_open(pid)
    try:
        ended, _, _ = select.select([handle], [], [], seconds)
    finally:
        os.close(handle)
    if ended:
        os.waitpid(pid, 0)
    return bool(ended)


def _wait_for_begin(pid: int, report: Path, older: int | None = None) -> tuple[bool, float]:
    """Wait until a session has begun its report, or has ended.

    Args:
        pid: The session.
        report: The path of its report.
        older: The inode of the older report that is there.

    Returns:
        Whether the session has ended, and the seconds.
    """
    begin = time.monotonic()
    while not report.exists() or report.stat().st_ino == older:
        if _wait_for(pid, 0.005):
            return True, time.monotonic() - begin
    return False, time.monotonic() - begin


def _wait_for_leftovers() -> list[str]:
    """Wait until nothing is left of a killed session, whose orphans are children of this process by now.

    Returns:
        The command lines of what had to be ended.
    """
    deadline = time.monotonic() + LEFTOVER_DEADLINE
    while children := _list_children():
        if time.monotonic() > deadline:
            lines = [_describe_process(pid) for pid in children]
            _end_children()
            return lines
        _wait_for(children[0], max(0.0, deadline - time.monotonic()))
    return []


def _end_children() -> None:
    # An ended one hands its own children over to this process.
    while children := _list_children():
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@contextmanager
def _ended_children() -> Iterator[None]:
    """End what is left when the kills cannot go on: it would keep the standard output open for ever."""
    try:
        yield
    except BaseException:
        _end_children()
        raise


def _list_children() -> list[int]:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in children]


def _describe_process(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return str(pid)


# --- what is left -----------------------------------------------------------------------------------------------------


def examine(folder: Path, workers: int = 1) -> KillOutcome:
    """Return what a killed session left in its folder.

    Args:
        folder: The folder, with `log.txt`, `report.jsonl` and `journals`.
        workers: How many runs it made at once.
    """
    outcome = KillOutcome()
    announced = set(_announced_runs(folder / "log.txt"))
    whole = set(_recorded_runs(folder / "journals", outcome))
    outcome.announced = len(announced)
    outcome.had_begun = bool(announced or outcome.journals)
    outcome.temporary = len(list(folder.glob(".report-*.tmp")))
    reported = _reported_runs(folder / "report.jsonl", outcome)
    outcome.reported = len(reported)
    outcome.unreported = len(whole - reported)
    outcome.losses += [f"announced, and without a whole journal: {run}" for run in sorted(announced - whole)]
    outcome.losses += [f"announced, and not in the report: {run}" for run in sorted(announced - reported)]
    outcome.losses += [f"in the report, and without a whole journal: {run}" for run in sorted(reported - whole)]
    # A worker hands a verdict over before it begins the next run.
    if outcome.unreported > 2 * workers:
        outcome.losses.append(f"{outcome.unreported} recorded runs are not in the report")
    return outcome


def _announced_runs(log: Path) -> Iterator[RunId]:
    text = log.read_text(errors="replace") if log.exists() else ""
    for pattern in _ANNOUNCED:
        for path, agent, variant in pattern.findall(text):
            yield "/".join(path.split("/")[-2:]), agent, variant


def _recorded_runs(folder: Path, outcome: KillOutcome) -> Iterator[RunId]:
    """Yield the runs with whole journals, and count all journals."""
    for path in sorted(folder.glob("*")):
        if not path.stat().st_size:
            outcome.journals["empty"] += 1
            continue
        try:
            stored = list(read_journals(path))
        except JournalError as error:
            outcome.journals["unreadable"] += 1
            outcome.losses.append(str(error))
            continue
        for journal in stored:
            outcome.journals["whole" if journal.complete else "cut"] += 1
            if journal.complete:
                yield _run_of(journal)
        # A single line that is cut is no journal yet.
        if not stored:
            outcome.journals["cut"] += 1


def _run_of(journal: StoredJournal) -> RunId:
    subject = Subject.of(journal.header)
    return subject.scenario, subject.agent, subject.variant


def _reported_runs(path: Path, outcome: KillOutcome) -> set[RunId]:
    try:
        report: Report = read_report(path)
    except ReportError as error:
        outcome.losses.append(str(error))
        return set()
    if report.header.seed == OLDER_SEED:
        if outcome.had_begun:
            outcome.losses.append("the older report is still there")
        return set()
    outcome.had_begun = True
    return {(line.scenario, line.agent, line.variant) for line in report.verdicts if line.variant != ALL_VARIANTS}


def check_folders(folders: Sequence[Path]) -> list[str]:
    """Run `pytest-approvals check` on the journals of killed sessions, and return what is wrong with its answer.

    It must judge every journal that holds anything: exit code 0, or 2 if some are empty.
    """
    several = [folder / "journals" for folder in folders if any(folder.glob("journals/*.jsonl"))]
    if not several:
        return []
    files = [path for folder in several for path in folder.glob("*.jsonl")]
    empty = sum(not path.stat().st_size for path in files)
    command = [sys.executable, "-m", "pytest_approvals.cli", "check", *map(str, several)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = done.stdout.splitlines()[-1:] or [""]
    whole = len(files) - empty
    expected = f"{whole} journal{'' if whole == 1 else 's'} judged"
    problems = [] if said[0].startswith(expected) else [f"check says {said[0]!r}, expected {expected!r}"]
    problems += ["check ends with a traceback"] if "Traceback" in done.stderr else []
    # A cut journal may break a requirement: its run has no end.
    return problems + ([] if done.returncode == 2 or not empty else [f"check ends with {done.returncode}"])


# --- the command ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class KillSurvey:
    """What the killed sessions of one kind left, in sum."""

    kind: str
    kills: int = 0
    ended: int = 0
    before_begin: int = 0
    journals: Counter[str] = field(default_factory=Counter)
    announced: int = 0
    reported: int = 0
    most_unreported: int = 0
    temporary: int = 0
    next_runs: int = 0
    losses: list[str] = field(default_factory=list)

    def add(self, outcome: KillOutcome) -> None:
        """Add what one of them left."""
        self.kills += not outcome.ended
        self.ended += outcome.ended
        self.before_begin += not outcome.had_begun
        self.journals += outcome.journals
        self.announced += outcome.announced
        self.reported += outcome.reported
        self.most_unreported = max(self.most_unreported, outcome.unreported)
        self.temporary += outcome.temporary
        self.losses += outcome.losses


def run_kills(kind: VictimKind, kills: int, seed: int, next_every: int = 20, seconds: float = 1e9) -> KillSurvey:
    """Kill sessions of one kind, and return what they left.

    Args:
        kind: The kind.
        kills: How many sessions are killed.
        seed: Decides when.
        next_every: After how many kills a session runs to its end in the folder of the last one.
        seconds: The time after which no further session is started.
    """
    deadline = time.monotonic() + seconds
    survey = KillSurvey(kind.name)
    with TemporaryDirectory(prefix="approvals-kills-") as root, _ended_children():
        tester = KillTester(kind, Path(root), seed)
        unchecked: list[Path] = []
        number = 0
        while survey.kills < kills and time.monotonic() < deadline:
            number += 1
            outcome, folder = tester.kill_one(number)
            survey.add(outcome)
            unchecked.append(folder)
            if len(unchecked) == next_every or survey.kills == kills or time.monotonic() >= deadline:
                survey.losses += check_folders(unchecked)
                survey.losses += run_next(kind, folder)
                survey.losses += [f"left behind: {line}" for line in _wait_for_leftovers()]
                survey.next_runs += 1
                for each in unchecked:
                    shutil.rmtree(each)
                unchecked.clear()
    return survey


def format_surveys(surveys: Sequence[KillSurvey]) -> str:
    """Return the table of what was left, in Markdown."""
    rows: list[tuple[str, Callable[[KillSurvey], object]]] = [
        ("killed sessions", lambda each: each.kills),
        ("ended before the kill", lambda each: each.ended),
        ("killed before they had begun", lambda each: each.before_begin),
        ("whole journals", lambda each: each.journals["whole"]),
        ("cut journals", lambda each: each.journals["cut"]),
        ("empty journals", lambda each: each.journals["empty"]),
        ("unreadable journals", lambda each: each.journals["unreadable"]),
        ("announced verdicts", lambda each: each.announced),
        ("runs in reports", lambda each: each.reported),
        ("recorded and not yet in the report, at most", lambda each: each.most_unreported),
        ("temporary files left", lambda each: each.temporary),
        ("sessions run to their end afterwards", lambda each: each.next_runs),
        ("losses, older reports, processes left behind", lambda each: len(each.losses)),
    ]
    lines = [f"| | {' | '.join(each.kind for each in surveys)} |", "|---" * (len(surveys) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(f'{value(each):,}' for each in surveys)} |" for name, value in rows]
    return "\n".join(lines)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose parent ends, so that those that are left behind are found."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def prepare() -> None:
    """Import everything that a session needs, so that a fork need not, and become the parent of all orphans."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    adopt_orphans()
    import pytest_approvals.processes.process_pool
    import pytest_approvals.runner.run  # noqa: F401

    with TemporaryDirectory() as folder:
        here = Path.cwd()
        os.chdir(folder)
        Path("pytest.ini").write_text("[pytest]\n")
        out, sys.stdout = sys.stdout, io.StringIO()
        try:
            _run_pytest(["--seed=1"])
        finally:
            sys.stdout = out
            os.chdir(here)
    # Collecting garbage in a fork would copy all memory.
    gc.collect()
    gc.freeze()


def main(words: Sequence[str] | None = None) -> int:
    """Kill sessions and print what they left; return 1 if something was lost."""
    parser = argparse.ArgumentParser(prog="python -m pytest_approvals.devtools.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="how many sessions are killed (default: 1000)")
    parser.add_argument("--commands", type=int, default=None, help="how many of them are commands (default: a tenth)")
    parser.add_argument("--seed", type=int, default=0, help="decides when they are killed")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no session of a kind after this time")
    args = parser.parse_args(words)
    commands = args.kills // 10 if args.commands is None else args.commands
    counts = {FORKED: args.kills - commands, ALONE: commands - commands // 2, WORKERS: commands // 2}
    prepare()
    surveys = [run_kills(kind, count, args.seed, seconds=args.seconds) for kind, count in counts.items() if count]
    print(format_surveys(surveys))
    losses = [f"{survey.kind}: {loss}" for survey in surveys for loss in survey.losses]
    print("\n".join(["", *losses]) if losses else "\nnothing was lost")
    return int(bool(losses))


if __name__ == "__main__":
    raise SystemExit(main())
