"""The commands `pins` and `compare`: the releases that this package is developed with, and what another one changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_approvals.agents.pins import PINS_FILE, get_pinned_release, move_pin, parse_pins
from pytest_approvals.errors import UsageError
from pytest_approvals.scenario.catalogue import stock_folder

if TYPE_CHECKING:
    from .conftest import CommandLine


class TestPins:
    def test_the_pinned_release_is_listed(self, command_line: CommandLine) -> None:
        """And the newest one, where that is another."""
        said = command_line("pins", "openai-agents")

        assert (0, True) == (said.code, said.out.startswith(f"openai-agents {get_pinned_release('openai-agents')}"))

    @pytest.mark.parametrize(
        ("words", "what"),
        [
            (("openai-agent",), "Unknown distribution 'openai-agent'; did you mean 'openai-agents'?"),
            (("--strict",), "Unknown option --strict; options of `pytest-approvals run` need --update"),
        ],
    )
    def test_what_cannot_be_used_is_refused(self, command_line: CommandLine, words: tuple[str, ...], what: str) -> None:
        """The error says what to write."""
        said = command_line("pins", *words)

        assert (2, f"pytest-approvals: {what}\n") == (said.code, said.err)


class TestMoving:
    @pytest.mark.parametrize("distribution", ["pydantic-ai-slim", "@openai/agents", "ai"])
    def test_one_pin_changes(self, tmp_path: Path, distribution: str) -> None:
        """All else, comments included, stays as it is written."""
        file = tmp_path / "pins.yaml"
        text = PINS_FILE.read_text()
        file.write_text(text)
        move_pin(file, distribution, "99.1")

        changed = [
            line for line in zip(text.splitlines(), file.read_text().splitlines(), strict=True) if len(set(line)) > 1
        ]
        assert "99.1" == parse_pins(file)[distribution].release
        assert [f"  pin: {get_pinned_of(text, distribution)}"] == [before for before, _ in changed]

    def test_an_unknown_distribution_is_refused(self, tmp_path: Path) -> None:
        """The file stays as it is."""
        file = tmp_path / "pins.yaml"
        file.write_text("a:\n  pin: 1.0\n")

        with pytest.raises(UsageError, match=r"pins.yaml has no pin of b"):
            move_pin(file, "b", "2.0")
        assert "a:\n  pin: 1.0\n" == file.read_text()


def get_pinned_of(text: str, distribution: str) -> str:
    after = text.partition(f'"{distribution}":\n' if distribution.startswith("@") else f"\n{distribution}:\n")[2]
    return after.partition("pin: ")[2].split()[0]


class TestCompare:
    def test_what_a_release_changes_is_shown(self, command_line: CommandLine) -> None:
        """Failures that are new or fixed, and transcripts; a new failure is exit code 1."""
        # As a project's own scenario, for which the known failures of the catalogue do not count.
        story = stock_folder() / "state" / "rejection-survives-and-the-session-goes-on.approval.yaml"
        command_line.write("rejected.approval.yaml", story.read_text())
        words = ("--scenario", "rejected.approval.yaml", "-n", "0")
        worse = command_line("compare", "--agent", "meai==10.4", "--against", "10.7", *words)
        better = command_line("compare", "--agent", "meai==10.7", "--against", "10.4", *words)

        assert (1, True) == (worse.code, "## New failures: " in worse.out), worse.out
        assert (0, True, False) == (better.code, "## Fixed: " in better.out, "## New failures: " in better.out)

    def test_a_release_that_cannot_be_played_is_named(self, command_line: CommandLine) -> None:
        """Before the other one is played."""
        said = command_line("compare", "--agent", "reference", "--against", "1", "--scenario", "basics/approved")

        assert (2, True) == (said.code, "agent 'reference==1' cannot be started" in said.err)
        assert "reference  " not in said.out
