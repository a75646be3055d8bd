"""`pytest-approvals native`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .conftest import CommandLine


def test_a_script_is_printed_or_written(command_line: CommandLine) -> None:
    """Both are the same; a file is named with the command that runs it."""
    printed = command_line("native", "basics/approved", "--agent", "pydantic_ai")
    written = command_line("native", "basics/approved", "--agent", "pydantic_ai", "-o", "approved.py")

    assert printed.out == (command_line.folder / "approved.py").read_text(encoding="utf-8")
    assert (0, "approved.py plays basics/approved: uv run approved.py\n") == (written.code, written.out)


def test_one_scenario_has_to_be_named(command_line: CommandLine) -> None:
    """A family is several."""
    said = command_line("native", "basics", "--agent", "pydantic_ai")

    assert (2, "pytest-approvals: basics is 13 scenarios; name one of them\n") == (said.code, said.err)


def test_a_file_that_cannot_be_written_is_named(command_line: CommandLine) -> None:
    """A folder is none."""
    said = command_line("native", "basics/approved", "--agent", "pydantic_ai", "-o", ".")

    assert (2, "pytest-approvals: .: cannot write file: Is a directory\n") == (said.code, said.err)


def test_a_script_is_not_named_like_what_it_imports(command_line: CommandLine) -> None:
    """It would import itself in place of the framework."""
    said = command_line("native", "basics/approved", "--agent", "agno", "-o", "agno.py")

    assert (2, "pytest-approvals: agno.py: the script imports 'agno'; choose another name\n") == (said.code, said.err)


def test_a_script_in_javascript_is_named_like_a_module(command_line: CommandLine) -> None:
    """Node would take it for a script of another kind; nothing is written."""
    said = command_line("native", "basics/approved", "--agent", "ai_sdk", "-o", "approved.js")
    expected = "approved.js: the script is a module of JavaScript; choose a name that ends with .mjs"

    assert (2, f"pytest-approvals: {expected}\n") == (said.code, said.err)
    assert not (command_line.folder / "approved.js").exists()
