"""npm: where it and node are found, what they are told, and what is told when they fail."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from pytest_approvals.agents.environments import EnvironmentCache, Recipe, create_recipe, installers
from pytest_approvals.agents.package_registries import NPM
from pytest_approvals.agents.pins import get_pin
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import AgentUnavailable, UsageError

RECIPE = Recipe(requirements=("frame@9.9.0",), registry=NPM.name)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a node and an npm of ours, which is all of PATH that matters."""
    folder = tmp_path / "programs"
    folder.mkdir()
    script(folder / "node", "echo v20.1.0")
    script(folder / "npm", "exit 0")
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return folder


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def failure(tmp_path: Path) -> str:
    with pytest.raises(AgentUnavailable) as caught:
        installers.build_npm_environment(RECIPE, tmp_path / "new", "frame==9.9.0")
    return str(caught.value)


@pytest.mark.parametrize("program", ["node", "npm"])
def test_without_one_of_them_the_error_says_what_to_install(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """The agent that needs it is named."""
    (programs / program).unlink()
    monkeypatch.setenv("PATH", str(programs))

    assert (
        "agent 'frame==9.9.0' cannot be started: it is written in JavaScript, which needs node and npm, and "
        f"{program} is not on PATH; install Node 20 or newer, with npm"
    ) == failure(tmp_path)


def test_a_node_that_is_too_old_is_reported(tmp_path: Path, programs: Path) -> None:
    """Its version is named."""
    script(programs / "node", "echo v16.3.0")

    assert "agent 'frame==9.9.0' cannot be started: node is 16.3.0; install Node 20 or newer" == failure(tmp_path)


def test_npms_reason_is_reported(tmp_path: Path, programs: Path) -> None:
    """Its warnings are left out, and so is where it logs them."""
    said = "npm warn odd\\nnpm error code E404\\nnpm error 404 no frame\\nnpm error A complete log of this run is in: x"
    script(programs / "npm", f"printf '{said}' >&2; exit 1")

    assert (
        "agent 'frame==9.9.0' cannot be started: npm cannot provide frame@9.9.0; name other requirements (--with); npm "
        "says:\n  code E404\n  404 no frame"
    ) == failure(tmp_path)


def test_a_full_disk_is_named_with_what_to_do(tmp_path: Path, programs: Path) -> None:
    """Other requirements would not help."""
    script(programs / "npm", "printf 'npm error code ENOSPC\\nnpm error syscall write\\n' >&2; exit 1")

    assert (
        "agent 'frame==9.9.0' cannot be started: npm cannot provide frame@9.9.0, because a disk is full; make room "
        "(pytest-approvals environments --prune removes what is not used), or name another folder in "
        "PYTEST_APPROVALS_CACHE; npm says:\n  code ENOSPC\n  syscall write"
    ) == failure(tmp_path)


def test_npm_ends_with_all_that_it_has_started(tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its helpers would hold its output open, and go on."""
    monkeypatch.setattr(installers, "INSTALL_TIMEOUT", 2.0)
    script(programs / "npm", "sleep 1000 & echo $! > helper; wait")

    assert "npm took longer than 2 s" in failure(tmp_path)
    helper = (tmp_path / "new" / "helper").read_text().strip()
    listed = ["ps", "-o", "stat=", "-p", helper]
    while subprocess.run(listed, capture_output=True, text=True, check=False).stdout.strip() not in ("", "Z"):
        time.sleep(0.01)


def test_npm_installs_into_a_folder_of_its_own(tmp_path: Path, programs: Path) -> None:
    """No scripts of packages run, and nothing is asked of the registry but packages."""
    script(programs / "npm", 'echo "$@" > told; ls > there')
    installers.build_npm_environment(RECIPE, tmp_path / "new", "frame==9.9.0")

    told = (tmp_path / "new" / "told").read_text()
    assert "install --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel=error frame@9.9.0\n" == told
    assert "package.json" in (tmp_path / "new" / "there").read_text()


def test_an_environment_is_made_once(tmp_path: Path, programs: Path) -> None:
    """It is kept by its content, and told about once."""
    script(programs / "npm", "echo made >> ../../made")
    lines: list[str] = []
    for _ in range(2):
        EnvironmentCache(tmp_path / "cache").get(RECIPE, "frame==9.9.0", lines.append)

    assert ["making an environment for frame==9.9.0: frame@9.9.0"] == lines
    assert "made\n" == (tmp_path / "cache" / "made").read_text()


def test_a_release_of_npm_is_written_as_npm_has_it() -> None:
    """The pins name further requirements; a user's requirement replaces one of them."""
    recipe = create_recipe("ai", "6.0.326", requirements=["@ai-sdk/openai@3.0.0", "left-pad"], registry=NPM.name)

    assert "ai@6.0.326" == recipe.requirements[0]
    assert ("@ai-sdk/openai@3.0.0", "left-pad") == recipe.requirements[-2:]
    assert 1 == sum(one.startswith("@ai-sdk/openai@") for one in recipe.requirements)


def test_a_requirement_of_python_is_none_of_npm() -> None:
    """The error says how to write one."""
    with pytest.raises(UsageError) as caught:
        create_recipe("ai", "6.0.326", requirements=["openai==2.26.0"], registry=NPM.name)

    assert "Invalid requirement 'openai==2.26.0' of npm: use NAME, NAME@VERSION or NAME@RANGE" == str(caught.value)


def test_a_checkout_is_a_folder_with_a_package(tmp_path: Path) -> None:
    """The error names it."""
    with pytest.raises(UsageError) as caught:
        create_recipe("ai", checkout=str(tmp_path), registry=NPM.name)

    assert f"Invalid checkout '{tmp_path}': expected a folder with package.json" == str(caught.value)


def test_the_same_name_in_two_registries_is_two_things() -> None:
    """A pin of npm's says nothing about a distribution of Python."""
    assert get_pin("ai", NPM.name).release is not None
    assert get_pin("ai").release is None
    assert Recipe(requirements=("a",)).key != Recipe(requirements=("a",), registry=NPM.name).key


def test_a_javascript_agent_never_runs_in_this_process() -> None:
    """Whoever asks for it here is told so."""
    from pytest_approvals.agents.adapters import resolve_local_agent

    with pytest.raises(AgentUnavailable) as caught:
        resolve_local_agent(AgentSpec.parse("ai_sdk"))

    assert (
        "agent 'ai_sdk' cannot be started: ai is written in JavaScript and does not run in this process; "
        "pytest-approvals run starts it"
    ) == str(caught.value)
