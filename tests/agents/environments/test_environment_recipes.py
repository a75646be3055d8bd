"""What an environment consists of, and the name that follows from it."""

from pathlib import Path

import pytest

from pytest_approvals.agents.environments import Recipe, create_recipe
from pytest_approvals.errors import UsageError


def test_a_release_is_installed_with_its_constraints() -> None:
    """The pins say what an old release needs."""
    assert ("openai-agents==0.9.0", "openai==2.26.0") == create_recipe("openai-agents", "0.9.0").requirements


def test_a_users_requirement_replaces_the_pinned_one() -> None:
    """Of two requirements for one distribution, however it is spelled, the person's counts."""
    recipe = create_recipe("openai-agents", "0.9.0", requirements=["OpenAI==2.20.0", "rich>=13,<15"])

    assert ("openai-agents==0.9.0", "OpenAI==2.20.0", "rich<15,>=13") == recipe.requirements


def test_what_is_no_requirement_is_refused() -> None:
    """The error says how to write one."""
    with pytest.raises(UsageError) as caught:
        create_recipe("openai-agents", "0.9.0", requirements=["open ai"])

    assert "Invalid requirement 'open ai': use NAME, NAME==VERSION or NAME>=VERSION,<VERSION" == str(caught.value)


def test_equal_recipes_have_equal_names() -> None:
    """The order of requirements does not matter."""
    assert Recipe(requirements=("a==1", "b==2")).key == Recipe(requirements=("b==2", "a==1")).key


@pytest.mark.parametrize(
    "other",
    [
        Recipe(requirements=("a==2",)),
        Recipe(requirements=("a==1", "b")),
        Recipe(requirements=("a==1",), python="3.12"),
    ],
    ids=str,
)
def test_different_recipes_have_different_names(other: Recipe) -> None:
    """Requirements and Python make the name."""
    assert Recipe(requirements=("a==1",)).key != other.key


def test_a_checkout_is_installed_as_it_stands(tmp_path: Path) -> None:
    """Its sources may change; when what it declares changes, another environment is made."""
    project = tmp_path / "pyproject.toml"
    project.write_text("[project]\n")
    before = create_recipe("frame", checkout=str(tmp_path))
    key = before.key

    (tmp_path / "frame.py").write_text("x = 1\n")
    same = create_recipe("frame", checkout=str(tmp_path)).key
    project.write_text("[project]\nname = 'frame'\n")

    assert ("--editable", str(tmp_path)) == before.install_arguments
    assert key == same
    assert key != create_recipe("frame", checkout=str(tmp_path)).key


def test_a_checkout_has_the_extras_of_the_pinned_release(tmp_path: Path) -> None:
    """What the adapter uses is there; a user's requirement takes the place of one that the pins have."""
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    recipe = create_recipe("pydantic-ai-slim", checkout=str(tmp_path))

    assert ("--editable", f"{tmp_path}[mcp,dbos,ag-ui]") == recipe.install_arguments


def test_a_folder_without_a_project_is_no_checkout(tmp_path: Path) -> None:
    """The error names it."""
    with pytest.raises(UsageError) as caught:
        create_recipe("frame", checkout=str(tmp_path))

    assert f"Invalid checkout '{tmp_path}': expected a folder with pyproject.toml" == str(caught.value)
