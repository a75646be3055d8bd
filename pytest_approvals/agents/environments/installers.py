"""Installers of environments: uv for Python, npm for JavaScript, and their error messages."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pytest_approvals.agents.cache_folder import CACHE_FOLDER_VARIABLE
from pytest_approvals.agents.environments.recipe import Recipe
from pytest_approvals.errors import AgentUnavailable
from pytest_approvals.processes.process_groups import run_group

INSTALL_TIMEOUT = 900.0
"""Seconds that an installer may take for one step."""


_DISK_FULL = re.compile(
    r"No space left on device|ENOSPC|Disk quota exceeded|EDQUOT|os error (?:28|122)\b", re.IGNORECASE
)

_DISK_REMEDY = (
    "make room (pytest-approvals environments --prune removes what is not used), or name another folder in "
    f"{CACHE_FOLDER_VARIABLE}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installer:
    """A program that installs packages.

    Attributes:
        name: Its name.
        remedy: What to do if it cannot provide something.
        anew: What to do if it cannot be started.
        reason: Extracts the reason of a failure from what it wrote to standard error.
    """

    name: str
    remedy: str
    anew: str
    reason: Callable[[str], str]

    def run(
        self,
        command: list[str],
        agent: str,
        what: str,
        *,
        folder: Path | None = None,
        variables: Mapping[str, str] | None = None,
        lock: int | None = None,
    ) -> None:
        """Run it to provide *what*; it ends with this process, and so does what it starts.

        Args:
            command: The program and its arguments.
            agent: The agent that needs it, for error messages.
            what: What it provides, for error messages.
            folder: The current folder; by default that of this process.
            variables: The environment variables; by default those of this process.
            lock: Descriptor of a lock that it inherits.

        Raises:
            AgentUnavailable: It fails; the message holds its reason.
        """
        inherited = () if lock is None else (lock,)
        try:
            done = run_group(command, folder=folder, variables=variables, timeout=INSTALL_TIMEOUT, pass_fds=inherited)
        except subprocess.TimeoutExpired:
            raise AgentUnavailable(
                agent, f"{self.name} took longer than {INSTALL_TIMEOUT:g} s for {what}", self.remedy
            ) from None
        except OSError as error:
            raise AgentUnavailable(agent, f"{self.name} cannot be started ({error})", self.anew) from None
        if done.returncode:
            is_full = _DISK_FULL.search(done.stderr) is not None
            why = f"{self.name} cannot provide {what}" + (", because a disk is full" if is_full else "")
            remedy = _DISK_REMEDY if is_full else self.remedy
            reason = self.reason(done.stderr) or "  it says nothing"
            raise AgentUnavailable(agent, why, f"{remedy}; {self.name} says:\n{reason}")


MIN_NODE_VERSION = 20
"""The oldest major version of Node that runs agents."""

_NPM_FLAGS = ("--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error")
_NPM_ERROR_LINE = re.compile(r"npm (?:error|ERR!) ?")


def build_npm_environment(recipe: Recipe, folder: Path, agent: str, lock: int | None = None) -> None:
    """Build an environment in *folder*, which must not exist; npm inherits *lock*.

    Raises:
        AgentUnavailable: node or npm is missing, or npm fails; the message holds its reason.
    """
    find_node(agent)
    npm = _find_program("npm", agent)
    folder.mkdir(parents=True)
    manifest = {"name": "environment", "private": True, "type": "module"}
    (folder / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
    checkout = (recipe.checkout,) if recipe.checkout else ()
    command = [npm, "install", *_NPM_FLAGS, *checkout, *recipe.requirements]
    NPM_INSTALLER.run(command, agent, str(recipe), folder=folder, lock=lock)


def is_npm_available() -> bool:
    """Return whether node and npm are on PATH."""
    return all(map(shutil.which, ("node", "npm")))


def list_npm_versions(package: str) -> tuple[str, ...]:
    """Return all versions of a package in the registry.

    Raises:
        AgentUnavailable: npm is missing, or fails.
    """
    command = [_find_program("npm", package), "view", package, "versions", "--json", "--loglevel=error"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=True)
        listed = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise AgentUnavailable(package, f"npm cannot be asked for its releases ({error})", "try again") from None
    return tuple(listed) if isinstance(listed, list) else (str(listed),)


def find_node(agent: str) -> str:
    """Return the path of node.

    Raises:
        AgentUnavailable: It is not on PATH, cannot be started, or is too old.
    """
    node = _find_program("node", agent)
    try:
        done = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False)
    except OSError as error:
        raise AgentUnavailable(agent, f"node cannot be started ({error})", "install Node anew") from None
    version = done.stdout.strip().removeprefix("v")
    if not version.partition(".")[0].isdigit() or int(version.partition(".")[0]) < MIN_NODE_VERSION:
        raise AgentUnavailable(
            agent, f"node is {version or 'of no version'}", f"install Node {MIN_NODE_VERSION} or newer"
        )
    return node


def _find_program(program: str, agent: str) -> str:
    path = shutil.which(program)
    if path is None:
        why = f"it is written in JavaScript, which needs node and npm, and {program} is not on PATH"
        raise AgentUnavailable(agent, why, f"install Node {MIN_NODE_VERSION} or newer, with npm")
    return path


def _npm_reason(stderr: str) -> str:
    """Return npm's reason of a failure, without the path of its log."""
    lines = [_NPM_ERROR_LINE.sub("", line).rstrip() for line in stderr.splitlines() if _NPM_ERROR_LINE.match(line)]
    reasons = [line for line in lines if line.strip() and "complete log of this run" not in line]
    return "\n".join(f"  {line}" for line in reasons)


NPM_INSTALLER = Installer(
    name="npm", remedy="name other requirements (--with)", anew="install Node anew", reason=_npm_reason
)


def build_python_environment(recipe: Recipe, folder: Path, agent: str, lock: int | None = None) -> None:
    """Build an environment in *folder*, which must not exist; uv inherits *lock*.

    Raises:
        AgentUnavailable: uv is missing, or fails; the message holds its reason.
    """
    uv = find_uv(agent)
    python = recipe.python or sys.executable
    variables = build_uv_variables()
    create = [uv, "venv", "--quiet", "--no-project", "--python", python, str(folder)]
    UV_INSTALLER.run(create, agent, f"Python {python}", variables=variables, lock=lock)
    command = [uv, "pip", "install", "--quiet", "--python", str(get_interpreter(folder)), *recipe.install_arguments]
    UV_INSTALLER.run(command, agent, str(recipe), variables=variables, lock=lock)


def build_uv_variables() -> dict[str, str]:
    """Return the environment variables of uv, in which every version of pyenv is activated.

    pyenv's shims are on PATH for all of its versions, and fail for those that are not activated, so that uv would find
    an interpreter that it cannot use.
    """
    variables = dict(os.environ)
    pyenv = shutil.which("pyenv")
    if pyenv is None or "PYENV_VERSION" in variables:
        return variables
    listed = subprocess.run([pyenv, "versions", "--bare"], capture_output=True, text=True, check=False).stdout.split()
    return {**variables, "PYENV_VERSION": ":".join(listed)} if listed else variables


def get_interpreter(folder: Path) -> Path:
    """Return the path of the interpreter of an environment."""
    return folder / "bin" / "python"


def find_uv(agent: str) -> str:
    """Return the path of uv: on PATH, or next to this interpreter.

    Raises:
        AgentUnavailable: It is in neither place.
    """
    sibling = Path(sys.executable).with_name("uv")
    path = shutil.which("uv") or (str(sibling) if os.access(sibling, os.X_OK) else None)
    if path is None:
        why = "it needs an environment built by uv, and uv is neither on PATH nor next to this Python"
        raise AgentUnavailable(agent, why, "to install it: pip install uv")
    return path


def _uv_reason(stderr: str) -> str:
    """Return uv's reason of a failure, without its progress messages."""
    lines = [line.rstrip() for line in stderr.splitlines() if line.strip()]
    first = next((at for at, line in enumerate(lines) if line.lstrip().startswith("error")), 0)
    return "\n".join(f"  {line}" for line in lines[first:])


UV_INSTALLER = Installer(
    name="uv",
    remedy="name other requirements or another Python (--with, --python)",
    anew="install uv anew",
    reason=_uv_reason,
)
