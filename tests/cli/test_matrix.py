"""The commands `matrix` and `bisect`, on releases of a framework."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import CommandLine


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (
            ("--agent", "openai_agents==0.24.0", "--versions", ">=0.8"),
            (
                "--agent: 'openai_agents==0.24.0' is one release already; write openai_agents, and the releases in "
                "--versions"
            ),
        ),
        (("--agent", "reference", "--versions", ">=1"), "--agent: 'reference' has no framework, and so no releases"),
        (
            ("--agent", "openai_agents", "--versions", "0.8"),
            "'0.8' is no version specifier; write '>=0.8', '>=1.0,<2' or '==1.*'",
        ),
    ],
)
def test_a_matrix_of_what_has_no_releases_is_refused(
    command_line: CommandLine, words: tuple[str, ...], what: str
) -> None:
    """The error says what to write."""
    said = command_line("matrix", *words)

    assert (2, f"pytest-approvals: {what}\n") == (said.code, said.err)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (
            ("--check", "asked-onc", "--good", "1", "--bad", "2"),
            "no check is called 'asked-onc'; did you mean 'asked-once'?",
        ),
        (("--check", "asked-once", "--good", "one", "--bad", "2"), "--good: 'one' is no version"),
        (("--check", "asked-once", "--good", "2", "--bad", "2.0"), "--good and --bad are both 2"),
    ],
)
def test_a_bisection_without_two_ends_is_refused(command_line: CommandLine, words: tuple[str, ...], what: str) -> None:
    """The error says what to write."""
    said = command_line("bisect", "--agent", "openai_agents", *words)

    assert (2, f"pytest-approvals: {what}\n") == (said.code, said.err)


@pytest.mark.timeout(300)
def test_each_release_has_a_line_and_each_failing_check_a_row(command_line: CommandLine) -> None:
    """The release that mended a bug is seen in the table."""
    only = ("--serialize", "none", "--stream", "off", "--answer", "held")
    given = (
        "--agent",
        "openai_agents",
        "--versions",
        ">=0.19.4,<=0.20.0",
        "--scenario",
        "identity/id-reused-in-a-later-reply",
    )
    said = command_line("matrix", *given, *only)
    lines = said.out.splitlines()

    assert 1 == said.code
    assert [line.split()[0] for line in lines[:2]] == ["openai_agents==0.19.4", "openai_agents==0.20.0"]
    assert ["openai_agents", "0.19.4", "0.20.0"] == next(line for line in lines[2:] if line).split()
    assert any(line.startswith("approval-before-execution") and line.endswith("✓") for line in lines)
