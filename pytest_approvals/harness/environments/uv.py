"""What uv is asked for: an interpreter in a folder of its own, and what is installed beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from pytest_approvals.errors import AgentUnavailable

from .installer import Installer
from .recipe import Recipe


def build(recipe: Recipe, folder: Path, agent: str) -> None:
    """
    Makes an environment in *folder*, which must not be there.

    Errors:
        AgentUnavailable: There is no uv, or uv cannot make it; its reason is told.
    """
    uv = find_uv(agent)
    python = recipe.python or sys.executable
    variables = surroundings()
    made = [uv, "venv", "--quiet", "--no-project", "--python", python, str(folder)]
    UV.run(made, agent, f"Python {python}", variables=variables)
    command = [uv, "pip", "install", "--quiet", "--python", str(python_of(folder)), *recipe.words]
    UV.run(command, agent, str(recipe), variables=variables)


def surroundings() -> dict[str, str]:
    """
    Gives the environment variables that uv runs with: every version that pyenv has is switched on.

    pyenv's shims stand on PATH for all of its versions, and fail for those that are not switched on, so that uv finds
    an interpreter and cannot use it.
    """
    variables = dict(os.environ)
    pyenv = shutil.which("pyenv")
    if pyenv is None or "PYENV_VERSION" in variables:
        return variables
    listed = subprocess.run([pyenv, "versions", "--bare"], capture_output=True, text=True, check=False).stdout.split()
    return {**variables, "PYENV_VERSION": ":".join(listed)} if listed else variables


def python_of(folder: Path) -> Path:
    """Gives the interpreter of an environment."""
    return folder / "bin" / "python"


def find_uv(agent: str) -> str:
    """
    Gives the path of uv: on PATH, or beside this interpreter.

    Errors:
        AgentUnavailable: It is in neither place.
    """
    beside = Path(sys.executable).with_name("uv")
    found = shutil.which("uv") or (str(beside) if os.access(beside, os.X_OK) else None)
    if found is None:
        why = "it needs an environment of its own, which uv makes, and uv is neither on PATH nor beside this Python"
        raise AgentUnavailable(agent, why, "to install it: pip install uv")
    return found


def _reason(stderr: str) -> str:
    """Gives what uv says about a failure, without what it tells before."""
    lines = [line.rstrip() for line in stderr.splitlines() if line.strip()]
    first = next((at for at, line in enumerate(lines) if line.lstrip().startswith("error")), 0)
    return "\n".join(f"  {line}" for line in lines[first:])


UV = Installer(
    name="uv",
    remedy="name other requirements or another Python (--with, --python)",
    anew="install uv anew",
    reason=_reason,
)
