"""
Hooks and fixtures of all tests.

A skipped test says nothing, so a run of the tests lists what was skipped and why, and fails if one of the reasons is
not in `allowed_skips.txt`.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ALLOWED_SKIPS = Path(__file__).with_name("allowed_skips.txt")
"""The reasons for which a test may be skipped: one pattern a line, as of `fnmatch`; `#` starts a comment."""


def pytest_configure() -> None:
    """
    Let a Ctrl-C arrive, here and in the processes that tests start.

    A run of the tests that was started in the background inherits that the signal is ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _no_remembered_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Play all runs: one that an earlier test left behind would prove nothing about the code of today."""
    monkeypatch.setenv("PYTEST_APPROVALS_RUNS", "off")


@pytest.fixture(autouse=True)
def _not_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide from a pytest inside of a test that the one outside of it is a worker of pytest-xdist."""
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def shared_processor() -> Iterator[None]:
    """Put this process on one processor together with four others that never wait."""
    # Every pytest in this checkout loads this file, also one that `pytest-approvals run` starts.
    from pytest_approvals.devtools.load_equality import running_stressors

    if not Path("/proc/self/schedstat").exists():
        pytest.skip("the kernel does not count waits")
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        with running_stressors(4):
            yield
    finally:
        os.sched_setaffinity(0, allowed)


def skip_reasons(config: pytest.Config) -> Counter[str]:
    """
    Count the skipped tests of this session by their reason.

    With pytest-xdist, only the process that gathers the reports knows all of them; the workers know none.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    reports = () if reporter is None or hasattr(config, "workerinput") else reporter.stats.get("skipped", ())
    return Counter(str(report.longrepr[2]).removeprefix("Skipped: ") for report in reports)


def is_allowed(reason: str) -> bool:
    """Return whether a test may be skipped for *reason*."""
    lines = ALLOWED_SKIPS.read_text(encoding="utf-8").splitlines()
    return any(fnmatchcase(reason, line) for line in lines if line and not line.startswith("#"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session if a test was skipped for a reason that is not allowed."""
    if session.exitstatus == pytest.ExitCode.OK and not all(map(is_allowed, skip_reasons(session.config))):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the reasons of skipped tests, which their number would hide."""
    if not (reasons := skip_reasons(config)):
        return
    terminalreporter.section("skipped")
    for reason, tests in sorted(reasons.items()):
        note = "" if is_allowed(reason) else f"  NOT ALLOWED: run what it needs, or list it in {ALLOWED_SKIPS.name}"
        terminalreporter.write_line(f"{tests:5}  {reason}{note}", red=bool(note))
