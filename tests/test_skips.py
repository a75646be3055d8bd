"""A skipped test is listed with its reason, and fails the run if the reason is not an allowed one."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")
SKIPPING = """
    import pytest

    def test_that_passes():
        pass

    @pytest.mark.parametrize("number", [1, 2])
    def test_that_skips(number):
        pytest.skip("Python 4.0 is not on this machine")
"""
NEEDING = """
    import pytest

    pytest.importorskip("no_such_framework", reason="no framework")

    def test_that_is_never_seen():
        pass
"""

pytestmark = pytest.mark.parametrize(
    "processes", [(), ("-p", "xdist", "-n", "2")], ids=["one process", "several processes"]
)


def run(pytester: pytest.Pytester, processes: tuple[str, ...], *allowed: str) -> pytest.RunResult:
    """Run the tests of a folder with the hooks of this project's tests and a list of allowed reasons."""
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    pytester.path.joinpath("allowed_skips.txt").write_text("\n".join(("# why", *allowed)), encoding="utf-8")
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *processes)


def test_a_skip_for_an_unlisted_reason_fails_the_run(pytester: pytest.Pytester, processes: tuple[str, ...]) -> None:
    """No test failed, and the exit code is that of failed tests."""
    pytester.makepyfile(SKIPPING)
    done = run(pytester, processes, "Node is not on this machine")

    assert pytest.ExitCode.TESTS_FAILED == done.ret
    done.assert_outcomes(passed=1, skipped=2)
    done.stdout.fnmatch_lines(["    2  Python 4.0 is not on this machine  NOT ALLOWED: *"])


def test_a_skip_for_a_listed_reason_is_told(pytester: pytest.Pytester, processes: tuple[str, ...]) -> None:
    """It is listed, and fails nothing."""
    pytester.makepyfile(SKIPPING)
    done = run(pytester, processes, "Python * is not on this machine")

    assert pytest.ExitCode.OK == done.ret
    done.stdout.fnmatch_lines(["    2  Python 4.0 is not on this machine"])


def test_a_module_that_skips_itself_fails_the_run(pytester: pytest.Pytester, processes: tuple[str, ...]) -> None:
    """As one does whose framework is not installed; it counts as one skip, however many tests it has."""
    pytester.makepyfile(SKIPPING)
    pytester.makepyfile(test_needing=NEEDING)
    done = run(pytester, processes, "Python * is not on this machine")

    assert pytest.ExitCode.TESTS_FAILED == done.ret
    done.stdout.fnmatch_lines(["    1  no framework  NOT ALLOWED: *"])


def test_a_run_without_skips_lists_nothing(pytester: pytest.Pytester, processes: tuple[str, ...]) -> None:
    """There is nothing to say."""
    pytester.makepyfile("def test_that_passes(): pass")
    done = run(pytester, processes)

    assert pytest.ExitCode.OK == done.ret
    done.stdout.no_fnmatch_line("*= skipped =*")
