"""`pytest-approvals list`."""

from __future__ import annotations

import pytest

SCENARIO = "title: {title}\nmodel:\n  - say: Done.\n"


def test_it_lists_the_catalogue_in_an_empty_folder(command_line) -> None:
    """Where there are no scenarios, those of the package stand in."""
    said = command_line("list", "basics")

    assert 0 == said.code
    assert said.out.startswith("basics/")


def test_it_lists_the_scenarios_of_a_project(command_line) -> None:
    """Ids and titles; a family a paragraph."""
    command_line.write("scenarios/b/two.approval.yaml", SCENARIO.format(title='"The second"'))
    command_line.write("scenarios/a/one.approval.yaml", SCENARIO.format(title="The first"))

    assert (
        "a/one  The first\n\nb/two  The second\n\n2 scenarios. pytest-approvals show SCENARIO shows one of them.\n"
    ) == command_line("list").out


def test_the_folders_of_a_project_can_be_named(command_line) -> None:
    """The ini entry `approvals_scenarios` says where they are."""
    command_line.write("pyproject.toml", '[tool.pytest.ini_options]\napprovals_scenarios = ["stories"]\n')
    command_line.write("stories/mine/one.approval.yaml", SCENARIO.format(title="Mine"))

    assert command_line("list").out.startswith("mine/one  Mine\n")


def test_scenarios_are_chosen_by_pattern_file_and_folder(command_line) -> None:
    """Each word may be an id, a family, a pattern, a file or a folder."""
    for name in ("a/one", "a/two", "b/three"):
        command_line.write(f"scenarios/{name}.approval.yaml", SCENARIO.format(title=name))

    def listed(*words: str) -> list[str]:
        return [line.split()[0] for line in command_line("list", *words).out.splitlines() if "/" in line]

    assert ["a/one", "a/two"] == listed("a")
    assert ["a/two", "b/three"] == listed("*/t*")
    assert ["b/three"] == listed("scenarios/b/three.approval.yaml")
    assert ["three"] == listed("scenarios/b")


def test_a_file_that_is_no_text_does_not_hide_the_others(command_line) -> None:
    """Its title is shown as far as it can be read; running it names the mistake."""
    command_line.write("scenarios/a/one.approval.yaml", SCENARIO.format(title="The first"))
    command_line.write("scenarios/a/two.approval.yaml", "").write_bytes(b"title: Caf\xe9\n")
    (command_line.folder / "scenarios/a/three.approval.yaml").mkdir()

    said = command_line("list")
    assert (0, "") == (said.code, said.err)
    assert ["a/one    The first", "a/three  ", "a/two    Caf\ufffd"] == said.out.splitlines()[:3]


@pytest.mark.parametrize("value", ["5", "[5]", "{a = 1}", "true"])
def test_folders_of_a_wrong_type_are_named_with_their_file(command_line, value: str) -> None:
    """The error says what is expected."""
    path = command_line.write("pyproject.toml", f"[tool.pytest.ini_options]\napprovals_scenarios = {value}\n")

    said = command_line("list")
    expected = "Invalid approvals_scenarios: expected folders, as text or as a list of texts"
    assert (2, f"pytest-approvals: {path}: {expected}\n") == (said.code, said.err)


def test_a_project_file_that_is_nested_too_deep_names_no_folders(command_line) -> None:
    """It is no more readable than one with a mistake, which is for other tools to name."""
    command_line.write("pyproject.toml", f"approvals_scenarios = {'[' * 10_000}\n")

    assert 0 == command_line("list", "basics").code
