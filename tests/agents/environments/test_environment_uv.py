"""uv: where it is found, and what is told when it fails."""

import os
import sys
from pathlib import Path

import pytest

from pytest_approvals.agents.environments import Recipe, installers
from pytest_approvals.errors import AgentUnavailable

RECIPE = Recipe(requirements=("frame==9.9",))


def script(folder: Path, text: str) -> None:
    """Put a program called uv into a folder."""
    folder.mkdir(exist_ok=True)
    (folder / "uv").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "uv").chmod(0o755)


def test_uv_is_found_on_path_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is what a user would start."""
    script(tmp_path / "path", "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))

    assert str(tmp_path / "path" / "uv") == installers.find_uv("frame")


def test_uv_is_found_next_to_this_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be installed in an environment that is not activated."""
    script(tmp_path, "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    assert str(tmp_path / "uv") == installers.find_uv("frame")


def test_without_uv_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent that needs it is named."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    with pytest.raises(AgentUnavailable) as caught:
        installers.find_uv("frame==9.9")

    assert (
        "agent 'frame==9.9' cannot be started: it needs an environment built by uv, and uv is neither "
        "on PATH nor next to this Python; to install it: pip install uv"
    ) == str(caught.value)


def test_uvs_reason_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it tells before the reason is left out."""
    script(tmp_path, "[ $1 = venv ] || { echo 'Using Python' >&2; echo 'error: There is no frame' >&2; exit 1; }")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    with pytest.raises(AgentUnavailable) as caught:
        installers.build_python_environment(RECIPE, tmp_path / "new", "frame==9.9")

    assert (
        "agent 'frame==9.9' cannot be started: uv cannot provide frame==9.9; name other requirements or another Python "
        "(--with, --python); uv says:\n  error: There is no frame"
    ) == str(caught.value)


@pytest.mark.parametrize(
    "said",
    [
        "  Caused by: failed to write to file: No space left on device (os error 28)",
        "  Caused by: Disk quota exceeded (os error 122)",
    ],
)
def test_a_full_disk_is_named_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """Other requirements would not help; what uv says shows which disk it is."""
    script(tmp_path, f"[ $1 = venv ] || {{ printf 'error: Failed to install\\n{said}\\n' >&2; exit 2; }}")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    with pytest.raises(AgentUnavailable) as caught:
        installers.build_python_environment(RECIPE, tmp_path / "new", "frame==9.9")

    assert (
        "agent 'frame==9.9' cannot be started: uv cannot provide frame==9.9, because a disk is full; make room "
        "(pytest-approvals environments --prune removes what is not used), or name another folder in "
        f"PYTEST_APPROVALS_CACHE; uv says:\n  error: Failed to install\n  {said}"
    ) == str(caught.value)


def test_a_uv_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a time limit."""
    script(tmp_path, "exec sleep 60")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(installers, "INSTALL_TIMEOUT", 0.05)

    with pytest.raises(AgentUnavailable, match="uv took longer than 0.05 s"):
        installers.build_python_environment(RECIPE, tmp_path / "new", "frame==9.9")


@pytest.mark.parametrize(
    ("chosen", "expected"), [(None, "3.10.2:3.13.0"), ("3.11.7", "3.11.7")], ids=["nothing-chosen", "one-chosen"]
)
def test_every_version_of_pyenv_is_switched_on_for_uv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str | None, expected: str
) -> None:
    """The shims of versions that are not switched on fail; what a user switched on stays."""
    pyenv = tmp_path / "pyenv"
    pyenv.write_text("#!/bin/sh\n[ \"$*\" = 'versions --bare' ] && echo 3.10.2 && echo 3.13.0\n")
    pyenv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("PYENV_VERSION", raising=False)
    if chosen is not None:
        monkeypatch.setenv("PYENV_VERSION", chosen)

    assert expected == installers.build_uv_variables()["PYENV_VERSION"]


def test_without_pyenv_uv_runs_in_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is added."""
    monkeypatch.setenv("PATH", str(tmp_path))

    assert dict(os.environ) == installers.build_uv_variables()
