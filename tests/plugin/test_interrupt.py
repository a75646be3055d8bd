"""Interrupts: the exit code is 2, whatever plugins say at the end of the session."""

from __future__ import annotations

import pytest

WARNS_AT_THE_END = """
import warnings
import pytest

ended = []

def pytest_sessionfinish(session):
    warnings.warn("Received 1 of 2 worker reports.")

class Other:
    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self):
        print("the other plugin has ended, too")

def pytest_configure(config):
    config.pluginmanager.register(Other())
"""


@pytest.mark.parametrize("filters", ["error", "default"])
def test_an_interrupt_exits_with_2_though_warnings_are_errors(project, filters: str) -> None:
    """A warning at the end of the session is printed; every plugin still ends the session."""
    project.ini(f"filterwarnings = {filters}")
    project.write("conftest.py", WARNS_AT_THE_END)
    project.write("test_it.py", "def test_it(): raise KeyboardInterrupt")

    result = project.pytester.runpytest_inprocess("-s", no_reraise_ctrlc=True)

    assert pytest.ExitCode.INTERRUPTED == result.ret
    result.stdout.fnmatch_lines(["*the other plugin has ended, too*", "*Received 1 of 2 worker reports.*"])


def test_without_an_interrupt_warnings_stay_errors(project) -> None:
    """The project wants to see them."""
    project.ini("filterwarnings = error")
    project.write("conftest.py", WARNS_AT_THE_END)
    project.write("test_it.py", "def test_it(): pass")

    with pytest.raises(UserWarning, match="Received 1 of 2 worker reports"):
        project.pytester.inline_run()
