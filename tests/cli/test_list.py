"""`pytest-approvals list`."""

from __future__ import annotations

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
