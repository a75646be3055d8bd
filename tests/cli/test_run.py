"""`pytest-approvals run` and `smoke`."""

from __future__ import annotations

import gc
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_approvals.cli.run import rare_garbage_collections
from pytest_approvals.reporting.files import read_report, write_report
from pytest_approvals.reporting.report import Report, ReportHeader

if TYPE_CHECKING:
    from .conftest import CommandLine

SCENARIO = """\
title: A gated call is approved
tools:
  delete_file: {approval: always, parameters: {path: string}, returns: "deleted {path}"}
model:
  - calls: [{id: c1, tool: delete_file, arguments: {path: a.txt}}]
  - say: Done.
caller:
  - send: Delete a.txt
  - decide: {c1: approve}
"""


class Folder:
    """A folder in which `pytest-approvals` runs as a program."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("pytest.ini", "[pytest]\nasyncio_default_fixture_loop_scope = function\n")

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "pytest_approvals.cli", *words]
        return subprocess.Popen(command, cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=100)
        return subprocess.CompletedProcess(words, process.returncode, out, err)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """An empty folder."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    return Folder(tmp_path)


def summary(out: str) -> str:
    """Gives what stands under the heading `approvals`."""
    return out[re.search(r"^=+ approvals =+$", out, re.MULTILINE).end() :].lstrip("\n")


def test_a_project_runs_its_own_scenarios(folder: Folder) -> None:
    """Without words, all of them; the matrix comes last, and the report is written."""
    folder.write("scenarios/mine/one.approval.yaml", SCENARIO)
    words = ("run", "--agent", "reference", "--serialize", "none", "--report", "report.jsonl")
    done = folder.run(*words)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert "scenario  reference\nmine · 1  1 ✓\n" in done.stdout
    assert read_report(folder.path / "report.jsonl").complete


def test_another_transcript_than_the_stored_one_is_a_finding(folder: Folder) -> None:
    """The lines that differ are shown once, and how they are taken over."""
    folder.write("scenarios/mine/one.approval.yaml", SCENARIO)
    words = ("run", "--agent", "reference", "--resume", "same")
    stored = folder.run(*words, "--snapshot-update")
    folder.write("scenarios/mine/one.approval.yaml", SCENARIO.replace("say: Done.", "say: Deleted."))
    other = folder.run(*words)

    assert (0, 1) == (stored.returncode, other.returncode), stored.stdout + stored.stderr
    assert 1 == other.stdout.count("transcript-as-stored: a run must be what its stored transcript says\n")
    assert '      +  model   says "Deleted."' in other.stdout


def test_a_finding_is_shown_once_for_all_its_variants(folder: Folder) -> None:
    """The smallest variant stands for the others, with the command that shows it again; that command does."""
    folder.write("scenarios/mine/one.approval.yaml", SCENARIO)
    words = ("--agent", "reference", "--fault", "RejectedCallRuns", "--resume", "same")
    folder.write("scenarios/mine/one.approval.yaml", SCENARIO.replace("c1: approve", "c1: {reject: keep it}"))
    found = summary(folder.run("run", *words).stdout)
    rerun = re.search(r"^  rerun  pytest-approvals (.+)$", found, re.MULTILINE)[1]
    again = folder.run(*rerun.split())

    assert 1 == found.count("rejected-never-runs: ")
    assert re.search(r"mine/one · reference · none, held · also in \d+ variants", found)
    assert 1 == again.returncode
    assert "1 run ·" in again.stdout


def test_it_works_with_workers(folder: Folder) -> None:
    """`-n` is that of pytest-xdist; the summary is the same."""
    folder.write("scenarios/mine/one.approval.yaml", SCENARIO)
    folder.run("run", "--agent", "reference", "--resume", "same", "--snapshot-update")
    alone = folder.run("run", "--agent", "reference", "--resume", "same")
    spread = folder.run("run", "--agent", "reference", "--resume", "same", "-n", "2")

    assert (0, 0) == (alone.returncode, spread.returncode), spread.stdout + spread.stderr
    assert summary(alone.stdout).partition("---")[0] == summary(spread.stdout).partition("---")[0]


@contextmanager
def serving_gateways(folder: Path) -> Iterator[str]:
    """Serve a gateway of execnet on the loopback, as on another machine, and yield its address."""
    folder.mkdir()
    command = [sys.executable, "-u", "-m", "execnet.script.socketserver", "127.0.0.1:0"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    try:
        yield "127.0.0.1:" + re.search(r"\('127\.0\.0\.1', (\d+)\)", server.stdout.readline())[1]
    finally:
        server.kill()
        server.communicate()


def test_it_works_with_workers_on_other_machines(folder: Folder, tmp_path: Path) -> None:
    """Two workers over sockets, each in a folder of its own; the report is that of a session alone."""
    words = ("run", "basics/approved", "--agent", "reference", "--strength", "1")
    alone = folder.run(*words, "--report", "alone.jsonl")
    with serving_gateways(tmp_path / "one") as first, serving_gateways(tmp_path / "two") as second:
        places = ("--tx", f"socket={first}", "--tx", f"socket={second}")
        spread = folder.run(*words, "--report", "spread.jsonl", "--dist=load", *places, "-v")

    assert (0, 0) == (alone.returncode, spread.returncode), spread.stdout + spread.stderr
    assert {"gw0", "gw1"} == set(re.findall(r"(?m)^\[(gw\d)\] .* PASSED ", spread.stdout))
    assert (tmp_path / "alone.jsonl").read_bytes() == (tmp_path / "spread.jsonl").read_bytes()


def test_the_packaged_catalogue_is_used_in_an_empty_folder(folder: Folder) -> None:
    """A family of it can be named anywhere."""
    done = folder.run(
        "run", "basics/no-call-at-all", "--agent", "reference", "--serialize", "none", "--no-header", "-q"
    )

    assert "basics · 1" in done.stdout


def test_options_of_pytest_are_passed_on(folder: Folder) -> None:
    """Those that it knows nothing of go through."""
    folder.write("scenarios/mine/one.approval.yaml", SCENARIO)
    done = folder.run("run", "--agent", "reference", "-k", "none-held", "--collect-only", "-q")

    assert "scenarios/mine/one.approval.yaml::reference[none-held]" in done.stdout


def test_an_option_that_nobody_knows_gets_the_nearest(folder: Folder) -> None:
    """pytest refuses it, and the nearest of ours is named."""
    done = folder.run("run", "--serialise=json", "--agent", "reference")

    assert 2 == done.returncode
    assert "pytest-approvals: Unknown option '--serialise'; did you mean '--serialize'?" in done.stderr


def test_a_mistake_in_a_scenario_is_shown(folder: Folder) -> None:
    """Nothing runs; file, line and the nearest word are named."""
    folder.write("scenarios/mine/one.approval.yaml", SCENARIO.replace("title:", "titel:"))
    done = folder.run("run", "--agent", "reference")

    assert 2 == done.returncode
    assert "scenarios/mine/one.approval.yaml:1: a scenario has no key 'titel'; did you mean 'title'?" in done.stdout


def test_what_stands_beside_a_scenario_is_not_looked_at(folder: Folder) -> None:
    """A file that is named is all that is collected: a conftest in a folder beside it, which fails, is not imported."""
    folder.write("one.approval.yaml", SCENARIO)
    folder.write("elsewhere/conftest.py", "raise RuntimeError('this must not be imported')")
    folder.write("elsewhere/test_it.py", "def test_it(): pass")
    done = folder.run("run", "one.approval.yaml", "--agent", "reference", "--serialize", "none")

    assert 0 == done.returncode, done.stdout


def test_an_agent_that_cannot_play_anything_is_no_success(folder: Folder) -> None:
    """Nothing ran, and that is said."""
    folder.write("scenarios/mine/one.approval.yaml", SCENARIO)
    done = folder.run("run", "--agent", "reference", "--serialize", "native.none")

    assert 2 == done.returncode
    assert "pytest-approvals: nothing ran: no agent can play any of these scenarios in this way" in done.stderr


def test_what_an_agent_cannot_do_is_said_with_the_reason(folder: Folder) -> None:
    """An option asks for it, and so nothing is played."""
    folder.write("scenarios/mine/one.approval.yaml", SCENARIO)
    done = folder.run("run", "--agent", "openai_agents", "--serialize", "copy")

    assert 2 == done.returncode
    assert "note: openai_agents cannot do serialize=copy: copy.deepcopy of a RunState loses " in done.stdout


def test_smoke_plays_the_plainest_scenarios(folder: Folder) -> None:
    """One variant and oracle each, in memory, not streaming."""
    done = folder.run("smoke", "--agent", "reference")

    assert re.search(r"^basics · \d+", done.stdout, re.MULTILINE)
    assert "stream" not in summary(done.stdout).replace("--stream off", "")


SLOW = """
import time
from pytest_approvals.simulation import ReferenceAgent

class Slow(ReferenceAgent):
    async def turn(self, text, decisions, *, stream):
        open("started", "a").close()
        time.sleep(0.2)
        return await super().turn(text, decisions, stream=stream)

FLAVOURS = {"": Slow}
"""


def test_an_interrupt_ends_it_cleanly(folder: Folder) -> None:
    """What was recorded until then is summarised and reported, and the exit code says that it did not end."""
    folder.write("scenarios/mine/one.approval.yaml", SCENARIO)
    folder.write("slow_adapter.py", SLOW)
    process = folder.start(
        "run", "--agent", "slow", "--resume", "same", "--report", "report.jsonl", "--journals", "kept"
    )
    while len(list((folder.path / "kept").glob("*.jsonl"))) < 3 and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)

    assert 2 == process.returncode
    assert "= approvals =" in out
    assert "Traceback" not in out
    assert not read_report(folder.path / "report.jsonl").complete


@pytest.mark.parametrize("words", [(), ("-n", "1")], ids=["alone", "worker"])
def test_a_kill_leaves_what_was_judged(folder: Folder, words: tuple[str, ...]) -> None:
    """The report has each verdict as soon as it is known, has no footer, and is not that of an earlier session."""
    folder.write("scenarios/mine/one.approval.yaml", SCENARIO)
    folder.write("slow_adapter.py", SLOW)
    report = folder.path / "report.jsonl"
    write_report(report, Report(header=ReportHeader(package="0", python="3", seed=7, scenarios={"old/one": "Old"})))
    process = folder.start("run", "--agent", "slow", "--resume", "same", "--report", "report.jsonl", *words)
    while report.read_bytes().count(b'"event":"run"') < 3 and process.poll() is None:
        time.sleep(0.05)
    process.kill()
    process.communicate(timeout=60)
    stored = read_report(report)

    assert (0, False, {"mine/one": "A gated call is approved"}) == (
        stored.header.seed,
        stored.complete,
        stored.header.scenarios,
    )
    assert 3 <= stored.footer().runs


CRASHING = """
import os, signal
from pytest_approvals.simulation import ReferenceAgent

class Crashing(ReferenceAgent):
    async def turn(self, text, decisions, *, stream):
        if text == "Crash":
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().turn(text, decisions, stream=stream)

FLAVOURS = {"": Crashing}
"""


def test_a_crash_of_a_worker_loses_no_verdict(folder: Folder) -> None:
    """What the worker judged before is in the report, which says that it is not whole."""
    for name in "abc":
        folder.write(f"scenarios/mine/{name}.approval.yaml", SCENARIO)
    folder.write("scenarios/mine/d.approval.yaml", SCENARIO.replace("Delete a.txt", "Crash"))
    folder.write("crashing_adapter.py", CRASHING)
    words = ("--serialize", "none", "--stream", "off", "--resume", "same", "--answer", "held")
    done = folder.run("run", "--agent", "crashing", *words, "-n", "1", "-v", "--report", "report.jsonl")
    stored = read_report(folder.path / "report.jsonl")
    announced = set(re.findall(r"PASSED (\S+)\.approval\.yaml::(\S+)", done.stdout))

    assert 1 == done.returncode
    assert {"mine/a", "mine/b", "mine/c"} == {line.scenario for line in stored.verdicts}
    assert {(f"scenarios/{line.scenario}", f"{line.agent}[{line.variant}]") for line in stored.verdicts} >= announced
    assert not stored.complete
    assert "the report was cut off" in done.stdout


def test_a_report_for_a_full_disk_fails_the_session(folder: Folder) -> None:
    """The verdicts are printed; a sentence says what could not be written, and what to do."""
    folder.write("scenarios/mine/one.approval.yaml", SCENARIO)
    done = folder.run("run", "--agent", "reference", "--serialize", "none", "--report", "/dev/full")

    assert 1 == done.returncode
    assert "/dev/full: cannot be written: No space left on device; free some space, or write the" in done.stdout
    assert "mine · 1  1 ✓" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_report_that_cannot_be_written_is_refused(folder: Folder) -> None:
    """Before anything ran."""
    folder.write("scenarios/mine/one.approval.yaml", SCENARIO)
    folder.write("file", "")
    done = folder.run("run", "--agent", "reference", "--report", "file/report.jsonl")

    assert 2 == done.returncode
    assert "file/report.jsonl: cannot be written: " in done.stdout + done.stderr
    assert "1 ✓" not in done.stdout


@pytest.mark.parametrize("conftest", [False, True], ids=["no-conftest", "conftest"])
def test_plugins_without_use_are_not_imported(folder: Folder, conftest: bool) -> None:
    """Plugins that only bring fixtures stay out, unless a conftest may use one of these in its own."""
    folder.write("scenarios/own/approved.approval.yaml", SCENARIO)
    if conftest:
        use = "import pytest\n\n@pytest.fixture(autouse=True)\ndef used(faker): ...\n"
        folder.write("scenarios/conftest.py", use)
    result = folder.run("run", "--agent", "reference", "--strength=1", "--trace-config")

    assert (0, conftest) == (result.returncode, "faker.contrib.pytest.plugin" in result.stdout), result.stderr


def test_garbage_is_collected_as_before_once_pytest_has_ended() -> None:
    """Also what a session left out of collections."""
    before = gc.get_threshold()
    with rare_garbage_collections():
        gc.freeze()
        inside = gc.get_threshold()[0], gc.get_freeze_count() > 0

    assert (before[0] * 10, True) == inside
    assert (before, 0) == (gc.get_threshold(), gc.get_freeze_count())


STOPPER = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    # Before the session, and after pytest-xdist has decided.
    print("workers:", len(getattr(config.option, "tx", [])))
    return 0
"""


@pytest.mark.parametrize(
    ("words", "workers"),
    [
        (["basics", "--agent", "reference"], 0),
        (["--agent", "reference"], 3),
        (["basics", *(word for _ in range(30) for word in ("--agent", "reference"))], 3),
        (["--agent", "reference", "--shard", "1/50"], 0),
        (["--agent", "reference", "-n", "0"], 0),
        (["--agent", "reference", "-n", "2"], 2),
        (["--agent", "reference", "--tx", "popen", "--dist", "load"], 1),
        (["--agent", "reference", "-p", "no:xdist"], 0),
        (["--agent", "reference", "--collect-only"], 0),
        (["--agent", "reference", "-s"], 0),
    ],
    ids=["few", "many", "agents", "part", "none", "two", "tx", "no-xdist", "collect", "no-capture"],
)
def test_a_long_run_has_a_worker_for_each_processor(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch, words: list[str], workers: int
) -> None:
    """Unless an option says otherwise."""
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "3")
    command_line.write("stopper.py", STOPPER)
    sys.path.insert(0, str(command_line.folder))
    said = command_line("run", *words, "-p", "stopper")
    sys.modules.pop("stopper", None)

    assert f"workers: {workers}\n" == said.out


def test_a_run_in_a_worker_has_no_workers(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session around it has the processors already."""
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "3")
    command_line.write("stopper.py", STOPPER)
    sys.path.insert(0, str(command_line.folder))
    said = command_line("run", "--agent", "reference", "-p", "stopper")
    sys.modules.pop("stopper", None)

    assert "workers: 0\n" == said.out


@pytest.mark.parametrize("words", [(), ("-n", "1")], ids=["in this process", "in a worker"])
def test_what_failed_last_time_comes_first(folder: Folder, words: tuple[str, ...]) -> None:
    """The other scenarios keep their order."""
    failing = SCENARIO.replace("c1: approve", "c1: {reject: keep it}")
    for name, text in {"a": SCENARIO, "b": SCENARIO, "c": failing}.items():
        folder.write(f"scenarios/{name}.approval.yaml", text)
    command = ("run", "--agent", "reference", "--fault", "RejectedCallRuns", "--serialize", "none", "-v", *words)
    outs = [folder.run(*command).stdout for _ in range(2)]
    orders = ["".join(dict.fromkeys(re.findall(r"scenarios/(\w)[.]approval", out))) for out in outs]

    assert ["abc", "cab"] == orders
