"""What all commands share: help, unknown words, exit codes."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from pytest_approvals.cli import COMMANDS


def test_without_words_it_says_what_there_is(command_line) -> None:
    """The overview names every command, and the exit code says that nothing was done."""
    said = command_line()

    assert 2 == said.code
    assert list(COMMANDS) == [line.split()[0] for line in said.out.splitlines() if line.startswith("  ")]


@pytest.mark.parametrize("word", ["-h", "--help", "help"])
def test_help_is_no_mistake(command_line, word: str) -> None:
    """The same overview, with exit code 0."""
    assert (0, command_line().out) == (command_line(word).code, command_line(word).out)


def test_it_tells_its_version(command_line) -> None:
    """As most programs do."""
    assert f"pytest-approvals {version('pytest-approvals')}\n" == command_line("--version").out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["lst"], "Unknown command 'lst'; did you mean 'list'?"),
        (["agents", "refrence"], "Unknown agent 'refrence'; did you mean 'reference'?"),
        (["agents", "reference.chatt"], "Unknown flavour of reference 'chatt'; did you mean 'chat'?"),
        (["agents", "=="], "Invalid agent spec '==': expected NAME[.FLAVOUR][==VERSION|@PATH]"),
        (["agents", "--hlp"], "Unknown option '--hlp'; did you mean '--help'?"),
        (["list", "basic"], "Unknown scenario 'basic'; did you mean 'basics'?"),
        (["new-adapter"], "pytest-approvals new-adapter: the following arguments are required: NAME"),
        (["schema", "x"], "pytest-approvals schema: unexpected argument 'x'"),
        (["run", "--serialize", "jsn"], "--serialize: Unknown serialize mode 'jsn'; did you mean 'json'?"),
        (
            ["run", "--agent", "opena_agents"],
            "--agent: Unknown agent 'opena_agents'; did you mean 'openai_agents'?",
        ),
        (["run", "--strength", "4"], "--strength: Unknown strength '4'; valid: 1, 2, 3, full"),
        (["run", "--answer", "hold"], "--answer: Unknown answer 'hold'; did you mean 'held'?"),
        (["run", "--seed", "x"], "--seed: Invalid number 'x'"),
        (["run", "--time-limit", "0"], "--time-limit: Invalid number 0: too small"),
        (["run", "--oracle", "approve"], "--oracle: Unknown oracle 'approve'; did you mean 'approve_all'?"),
        (["run", "paralel/*"], "Unknown scenario 'paralel/*'; did you mean 'parallel'?"),
    ],
)
def test_what_cannot_be_used_is_answered_with_the_nearest(command_line, words: list[str], error: str) -> None:
    """A sentence on stderr, nothing on stdout, exit code 2."""
    said = command_line(*words)

    assert (2, "", f"pytest-approvals: {error}\n") == (said.code, said.out, said.err)


def test_a_reader_that_goes_away_is_no_error() -> None:
    """`pytest-approvals list | head -1` ends in silence."""
    command = f"{sys.executable} -m pytest_approvals.cli list | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)

    assert "" == done.stderr


def test_help_of_a_command_needs_no_framework() -> None:
    """Asking for help imports neither pytest nor pydantic nor asyncio."""
    code = (
        "import sys, contextlib, io\n"
        "from pytest_approvals.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): main(['list', '--help'])\n"
        "print([name for name in ('pytest', 'pydantic', 'asyncio', 'yaml', 'faker') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]\n" == done.stdout


@pytest.mark.parametrize(("before", "imported"), [("", False), ("import hypothesis; ", True)])
def test_a_run_does_not_import_hypothesis(before: str, imported: bool, tmp_path: Path) -> None:
    """Its pytest plugin would, for its summary, and import all of it where nothing used it."""
    code = (
        f"import sys; {before}from pytest_approvals.cli import main\n"
        "code = main(['run', 'basics/no-call-at-all', '--agent', 'reference', '--strength', '1', '-n', '0'])\n"
        "print(code, 'hypothesis.core' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)

    assert f"0 {imported}" == done.stdout.splitlines()[-1]
