"""What npm is asked for: the packages of an environment, in a folder of its own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from pytest_approvals.errors import AgentUnavailable

from .installer import PATIENCE, Installer
from .recipe import Recipe

OLDEST_NODE = 20
"""The oldest major version of Node that runs agents."""

_QUIET = ("--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error")
_SAID = re.compile(r"npm (?:error|ERR!) ?")


def build(recipe: Recipe, folder: Path, agent: str) -> None:
    """
    Makes an environment in *folder*, which must not be there.

    Errors:
        AgentUnavailable: There is no node or no npm, or npm cannot make it; its reason is told.
    """
    find_node(agent)
    npm = _found("npm", agent)
    folder.mkdir(parents=True)
    manifest = {"name": "environment", "private": True, "type": "module"}
    (folder / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
    checkout = (recipe.checkout,) if recipe.checkout else ()
    NPM.run([npm, "install", *_QUIET, *checkout, *recipe.requirements], agent, str(recipe), folder=folder)


def is_here() -> bool:
    """Says whether node and npm are on PATH."""
    return all(map(shutil.which, ("node", "npm")))


def versions(package: str) -> tuple[str, ...]:
    """
    Gives all versions of a package that its registry has.

    Errors:
        AgentUnavailable: There is no npm, or it cannot be asked.
    """
    command = [_found("npm", package), "view", package, "versions", "--json", "--loglevel=error"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
        listed = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise AgentUnavailable(package, f"npm cannot be asked for its releases ({error})", "try again") from None
    return tuple(listed) if isinstance(listed, list) else (str(listed),)


def find_node(agent: str) -> str:
    """
    Gives the path of node.

    Errors:
        AgentUnavailable: It is not on PATH, cannot be started, or is too old.
    """
    node = _found("node", agent)
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=PATIENCE, check=False).stdout
    except OSError as error:
        raise AgentUnavailable(agent, f"node cannot be started ({error})", "install Node anew") from None
    version = said.strip().removeprefix("v")
    if not version.partition(".")[0].isdigit() or int(version.partition(".")[0]) < OLDEST_NODE:
        raise AgentUnavailable(agent, f"node is {version or 'of no version'}", f"install Node {OLDEST_NODE} or newer")
    return node


def _found(program: str, agent: str) -> str:
    found = shutil.which(program)
    if found is None:
        why = f"it is written in JavaScript, which needs node and npm, and {program} is not on PATH"
        raise AgentUnavailable(agent, why, f"install Node {OLDEST_NODE} or newer, with npm")
    return found


def _reason(stderr: str) -> str:
    """Gives what npm says about a failure, without where it logs it."""
    lines = [_SAID.sub("", line).rstrip() for line in stderr.splitlines() if _SAID.match(line)]
    told = [line for line in lines if line.strip() and "complete log of this run" not in line]
    return "\n".join(f"  {line}" for line in told)


NPM = Installer(name="npm", remedy="name other requirements (--with)", anew="install Node anew", reason=_reason)
