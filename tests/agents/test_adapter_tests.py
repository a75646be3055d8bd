"""`tools/adapter_tests.py` runs the tests of adapters with their frameworks installed."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool as a module."""
    spec = spec_from_file_location("adapter_tests", ROOT / "tools" / "adapter_tests.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "adapter_tests", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def in_this_environment(tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tests of adapters in an empty folder, which run with this Python; no environment is made."""
    here = SimpleNamespace(get=lambda recipe, agent: SimpleNamespace(python=Path(sys.executable)))
    monkeypatch.setattr(tool, "EnvironmentCache", lambda: here)
    monkeypatch.setattr(tool, "TESTS", (tmp_path / "TESTS",))
    monkeypatch.setattr(tool, "LOCKS", tmp_path / "LOCKS")
    for name in ("one", "two"):
        (tmp_path / "TESTS" / name).mkdir(parents=True)
        (tmp_path / "LOCKS").mkdir(exist_ok=True)
        (tmp_path / "LOCKS" / f"{name}.txt").write_text("# by make lock\nframe==1\n")
        (tmp_path / "TESTS" / name / f"test_{name}.py").write_text("def test_it(): pass\n")
    (tmp_path / "TESTS" / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    return tmp_path / "TESTS"


def run(tool: ModuleType, *words: str) -> int:
    code: int = tool.main(["--pytest=-p no:cacheprovider -p no:approvals", *words])
    return code


def test_every_adapter_has_its_line(
    tool: ModuleType, in_this_environment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The output of each, then what all of them came to."""
    code = run(tool)
    lines = capsys.readouterr().out.splitlines()

    assert 0 == code
    assert [("one", "1 passed"), ("two", "1 passed")] == sorted(
        (line.split()[0], line.partition(" s  ")[2]) for line in lines[-2:]
    )


@pytest.mark.parametrize("body", ["def test_it(): assert False", "", "import no_such_framework"])
def test_one_that_fails_fails_all(tool: ModuleType, in_this_environment: Path, body: str) -> None:
    """A test, a module that cannot be imported, and a folder without tests."""
    (in_this_environment / "two" / "test_two.py").write_text(body)

    assert 1 == run(tool)
    assert 0 == run(tool, "one")


def test_a_framework_that_cannot_be_installed_fails_all(
    tool: ModuleType, in_this_environment: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its tests would be missing, and nobody would know."""

    def refuse(recipe: object, agent: str) -> None:
        raise tool.AgentUnavailable(agent, "uv cannot provide frame==1", "name other requirements")

    monkeypatch.setattr(tool, "EnvironmentCache", lambda: SimpleNamespace(get=refuse))

    assert 1 == run(tool)
    assert "uv cannot provide frame==1" in capsys.readouterr().out


def test_a_lock_file_is_what_is_installed(tool: ModuleType, in_this_environment: Path) -> None:
    """But for its comments."""
    assert ("frame==1",) == tool.LockedRecipe.read(tool.LOCKS / "one.txt").requirements


def test_an_adapter_without_a_lock_file_is_refused() -> None:
    """It has no environment of its own."""
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "adapter_tests.py", "pydantic_ai"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert 2 == done.returncode
    assert "no lock file in requirements/adapters for pydantic_ai" in done.stderr
