"""The commands `matrix` and `bisect`, on releases of a framework."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_approvals.scenario.catalogue import stock_folder

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
        (("--agent", "reference", "--versions", ">=1"), "--agent: 'reference' has no framework, so no releases"),
        (
            ("--agent", "openai_agents", "--versions", "0.8"),
            "Invalid version range '0.8': expected '>=0.8', '>=1.0,<2' or '==1.*', say",
        ),
        (
            ("--agent", "openai_agents"),
            "Missing range of the releases of openai-agents: expected --versions '>=1.0', say",
        ),
        (
            ("--agent", "meai", "--versions", "<10"),
            "no release of meai fits '<10'; there are 10.2, 10.4, 10.6, 10.7, 10.9, robust",
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
            "Unknown check 'asked-onc'; did you mean 'asked-once'?",
        ),
        (("--check", "asked-once", "--good", "one", "--bad", "2"), "--good: 'one' is no version"),
        (("--check", "asked-once", "--good", "2", "--bad", "2.0"), "--good and --bad are both 2"),
    ],
)
def test_a_bisection_without_two_ends_is_refused(command_line: CommandLine, words: tuple[str, ...], what: str) -> None:
    """The error says what to write."""
    said = command_line("bisect", "--agent", "openai_agents", *words)

    assert (2, f"pytest-approvals: {what}\n") == (said.code, said.err)


def test_a_release_that_an_agent_does_not_play_is_no_end(command_line: CommandLine) -> None:
    """The error says which there are."""
    said = command_line("bisect", "--agent", "meai", "--check", "asked-once", "--good", "10.2", "--bad", "10.5")

    what = "--bad: '10.5' is no version; there are 10.2, 10.4, 10.6, 10.7, 10.9, robust"
    assert (2, f"pytest-approvals: {what}\n") == (said.code, said.err)


STORY = ("--scenario", "state/rejection-survives-and-the-session-goes-on")


def test_an_agent_that_plays_its_releases_needs_no_environment(command_line: CommandLine) -> None:
    """All its releases are in the matrix where none is named, those that have no version last."""
    said = command_line("matrix", "--agent", "meai", *STORY, "--serialize", "none", "--stream", "off")

    assert ["meai", "10.2", "10.4", "10.6", "-", "robust"] == said.out.partition("\n\n")[2].splitlines()[0].split()
    assert "(environment)" not in said.out


@pytest.mark.timeout(300)
def test_what_fails_a_run_fails_the_matrix(command_line: CommandLine) -> None:
    """A release counts as failed for the severities that `--fail-on` names, as its run does."""
    # A copy, because waivers are for the catalogue.
    story = command_line.folder / "copied.approval.yaml"
    story.write_bytes((stock_folder() / f"{STORY[1]}.approval.yaml").read_bytes())
    words = (
        "matrix",
        "--agent",
        "meai",
        "--versions",
        "==10.4",
        "--scenario",
        str(story),
        "--serialize",
        "none",
        "--stream",
        "off",
        "--fail-on",
    )

    assert [0, 1] == [command_line(*words, severity).code for severity in ("unapproved-effect", "stuck")]


def test_the_release_that_changed_a_verdict_is_found_among_those_that_are_played(command_line: CommandLine) -> None:
    """What has no version is newer than all that have one."""
    ends = ("--good", "robust", "--bad", "10.7")
    said = command_line("bisect", "--agent", "meai", "--check", "usable-after-refusal", *ends, *STORY)

    assert "the failure went with meai==robust, and is still in 10.9" == said.out.splitlines()[-2]


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


def test_a_bisection_remembers_runs(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one says so, and finds the same."""
    monkeypatch.setenv("PYTEST_APPROVALS_RUNS", str(command_line.folder / "runs"))
    ends = ("--good", "robust", "--bad", "10.7")
    command = ("bisect", "--agent", "meai", "--check", "usable-after-refusal", *ends, *STORY)
    first, second, fresh = command_line(*command), command_line(*command), command_line(*command, "--fresh-runs")
    told = [line for line in second.out.splitlines() if "remembered" in line]

    assert 1 == len(told)
    assert told[0].endswith("; --fresh-runs plays every run")
    assert [first.out, first.out] == [second.out.replace(f"{told[0]}\n", ""), fresh.out]
