"""`pytest-approvals check`."""

from __future__ import annotations

import pytest

from pytest_approvals.checks import CHECKS
from pytest_approvals.journal.files import Journal
from pytest_approvals.journal.notation import parse_notation

GOOD = """
send Pay 5
model c1 pay(amount=5)
pause c1
approve c1
go
run c1 -> paid 5
done
"""

BAD = """
send Pay 5
model c1 pay(amount=5)
pause c1
approve c1
go
run c1 -> paid 5
run c1 -> paid 5
done
"""


def write(command_line, name: str, lines: str) -> None:
    """Writes a journal."""
    written = Journal(command_line.folder / name)
    for event in parse_notation(lines):
        written.record(event)
    written.close()


def test_a_good_journal_is_judged_in_silence(command_line) -> None:
    """Nothing is found, and the exit code is 0."""
    write(command_line, "good.jsonl", GOOD)

    assert (0, "1 journal judged\n") == (
        command_line("check", "good.jsonl").code,
        command_line("check", "good.jsonl").out,
    )


def test_a_bad_journal_gives_its_findings(command_line) -> None:
    """The same text as when it was recorded, with the command that shows it again."""
    write(command_line, "bad.jsonl", BAD)
    said = command_line("check", "bad.jsonl")

    assert 1 == said.code
    assert said.out.startswith("runs-at-most-once: ")
    assert "  rerun  pytest-approvals check bad.jsonl" in said.out.splitlines()


def test_a_severity_decides_the_exit_code(command_line) -> None:
    """The findings are printed all the same; an unknown severity is refused."""
    write(command_line, "bad.jsonl", BAD)
    grave, light = (
        command_line("check", "--fail-on", severity, "bad.jsonl") for severity in ("unapproved-effect", "lost-effect")
    )

    assert (0, 1) == (grave.code, light.code)
    assert "  severity  double-effect" in grave.out.splitlines()
    assert "pytest-approvals: --fail-on: Unknown severity 'lost-efect'; did you mean 'lost-effect'?\n" == (
        command_line("check", "--fail-on", "lost-efect", "bad.jsonl").err
    )


def test_a_folder_of_journals_is_judged(command_line) -> None:
    """All `*.jsonl` files in it, in the order of their names."""
    (command_line.folder / "kept").mkdir()
    write(command_line, "kept/b.jsonl", GOOD)
    write(command_line, "kept/a.jsonl", GOOD)

    assert "2 journals judged\n" == command_line("check", "kept").out


@pytest.mark.parametrize(
    ("text", "error"), [("", "empty journal file"), ("{}\n", "invalid first event: expected a header, not None")]
)
def test_a_folder_is_judged_behind_a_damaged_journal(command_line, text: str, error: str) -> None:
    """What a killed run left empty, or something else damaged, hides no other journal; the exit code is 2."""
    (command_line.folder / "kept").mkdir()
    write(command_line, "kept/a.jsonl", GOOD)
    command_line.write("kept/b.jsonl", text)
    write(command_line, "kept/c.jsonl", BAD)
    said = command_line("check", "kept")

    assert said.err.startswith("pytest-approvals: kept/b.jsonl")
    assert said.err.endswith(f": {error}\n")
    assert "  rerun  pytest-approvals check kept/c.jsonl" in said.out.splitlines()
    assert (2, "2 journals judged; 1 file could not be read to the end") == (said.code, said.out.splitlines()[-1])


def test_every_verdict_can_be_shown(command_line) -> None:
    """Also of the checks that hold, and of those that say nothing."""
    write(command_line, "good.jsonl", GOOD)
    said = command_line("check", "--all", "good.jsonl")

    shown = {line.split()[1] for line in said.out.splitlines() if line.startswith("  ")}
    assert {slug for slug, check in CHECKS.items() if check.function is not None} == shown


def test_a_journal_that_was_cut_off_says_so(command_line) -> None:
    """What was written is judged nevertheless."""
    write(command_line, "whole.jsonl", GOOD)
    whole = (command_line.folder / "whole.jsonl").read_text().splitlines(keepends=True)
    command_line.write("cut.jsonl", "".join(whole[:-1]))

    assert command_line("check", "cut.jsonl").out.startswith(
        "cut.jsonl: its writer was cut off; what was written is judged\n"
    )


@pytest.mark.parametrize("slug", list(CHECKS))
def test_every_check_can_be_explained(command_line, slug: str) -> None:
    """Its requirement, the reason, and examples."""
    said = command_line("check", "--explain", slug)

    assert 0 == said.code
    assert said.out.startswith(f"{slug} (")
    assert CHECKS[slug].requirement in said.out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ([], "name the journals to judge, or a check to explain: --explain SLUG"),
        (["none.jsonl"], "none.jsonl: cannot be read: No such file or directory"),
        (["empty"], "there are no journals in empty: no *.jsonl"),
        (
            ["--explain", "runs-at-most-twice"],
            "Unknown check 'runs-at-most-twice'; did you mean 'runs-at-most-once'?",
        ),
        (["broken.jsonl"], "broken.jsonl:1: invalid line: expected JSON"),
    ],
)
def test_what_cannot_be_judged_is_named(command_line, words: list[str], error: str) -> None:
    """A damaged journal with its line."""
    (command_line.folder / "empty").mkdir()
    command_line.write("broken.jsonl", "{\n")
    said = command_line("check", *words)

    assert (2, f"pytest-approvals: {error}\n") == (said.code, said.err)
