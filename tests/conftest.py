"""What all tests have in common."""

from __future__ import annotations

import signal

import pytest


def pytest_configure() -> None:
    """
    Lets a Ctrl-C arrive, here and in processes that tests start: a run of the tests that was started in the background
    inherits that it is ignored.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _not_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides from a pytest inside of a test that the one outside of it is a worker of pytest-xdist."""
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID"):
        monkeypatch.delenv(name, raising=False)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names the Pythons that were not tried, which a count of skipped tests would hide."""
    skipped = (report.longrepr for report in terminalreporter.stats.get("skipped", ()))
    reasons = {str(reason[2]) for reason in skipped if isinstance(reason, tuple)}
    for reason in sorted(reason for reason in reasons if "is not on this machine" in reason):
        terminalreporter.write_line(reason.removeprefix("Skipped: "))
