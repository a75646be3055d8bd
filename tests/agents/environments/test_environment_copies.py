"""Copies of our code for environments."""

import shutil
from pathlib import Path

import pytest

from pytest_approvals.agents.launch import copy_sources


def package(folder: Path, text: str = "x = 1\n") -> Path:
    """Make a package with a module and things that are not copied."""
    (folder / "side" / "inner").mkdir(parents=True, exist_ok=True)
    (folder / "side" / "inner" / "module.py").write_text(text)
    (folder / "side" / "notes.txt").write_text("not code")
    return folder / "side"


def test_a_package_is_copied_with_all_its_modules(tmp_path: Path) -> None:
    """What is no code stays behind."""
    copy = copy_sources(package(tmp_path), tmp_path / "copies")

    assert ["inner", "inner/module.py"] == sorted(str(one.relative_to(copy)) for one in copy.rglob("*"))


def test_equal_code_is_copied_once_and_changed_code_anew(tmp_path: Path) -> None:
    """The folder is named by the content."""
    first = copy_sources(package(tmp_path), tmp_path / "copies")
    again = copy_sources(package(tmp_path), tmp_path / "copies")
    changed = copy_sources(package(tmp_path, "x = 2\n"), tmp_path / "copies")

    assert first == again
    assert "x = 1\n" == (first / "inner" / "module.py").read_text()
    assert "x = 2\n" == (changed / "inner" / "module.py").read_text()


def test_a_single_module_is_copied_alone(tmp_path: Path) -> None:
    """Somebody's own adapter may be next to other files."""
    (tmp_path / "toy_adapter.py").write_text("x = 1\n")
    (tmp_path / "other.py").write_text("")

    copy = copy_sources(tmp_path / "toy_adapter.py", tmp_path / "copies")

    assert ["toy_adapter.py"] == [one.name for one in copy.parent.iterdir()]


@pytest.mark.parametrize("damage", ["changed", "missing", "empty", "writable", "file"])
def test_a_damaged_copy_is_replaced(tmp_path: Path, damage: str) -> None:
    """What is run was verified: a copy whose files differ from the code, or that others can change, is not used."""
    source = package(tmp_path)
    copy = copy_sources(source, tmp_path / "copies")
    module = copy / "inner" / "module.py"
    if damage == "changed":
        module.write_text("x = 3\n")
    elif damage == "missing":
        module.unlink()
    elif damage == "empty":
        shutil.rmtree(copy)
    elif damage == "writable":
        copy.parent.chmod(0o777)
    else:
        shutil.rmtree(copy.parent)
        copy.parent.write_text("")

    assert copy == copy_sources(source, tmp_path / "copies")
    assert "x = 1\n" == module.read_text()
    assert 0 == copy.parent.stat().st_mode & 0o022
    assert [copy.parent.name] == [one.name for one in (tmp_path / "copies").iterdir()]
