"""The wheel: what is in it, and that it works where nothing else is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path

import pytest

from pytest_approvals.cli import COMMANDS

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "requirements" / "constraints.txt"
SUPPORTED = ("3.11", "3.12", "3.13")
UV = Path(sys.executable).with_name("uv")


def run(*command: str | Path, cwd: Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Runs a command as a person would who has nothing of this project in the environment."""
    hidden = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER")
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env=variables, capture_output=True, text=True, timeout=timeout
    )


def python_of(version: str) -> Path | None:
    """Finds a Python of that version: on the path, or kept by pyenv."""
    found = run(UV, "python", "find", "--no-python-downloads", "--system", version, cwd=ROOT)
    if found.returncode == 0:
        return Path(found.stdout.strip())
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    places = sorted(kept.glob(f"{version}.*/bin/python{version}"))
    return places[-1] if places else None


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the wheel in it, and an empty folder to work in."""

    folder: Path
    work: Path

    def run(self, program: str, *words: str | Path, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Runs a program of the environment in the empty folder."""
        return run(self.folder / "bin" / program, *words, cwd=self.work, timeout=timeout)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this project, built anew."""
    folder = tmp_path_factory.mktemp("wheel")
    built = run(
        UV, "build", "--wheel", "--no-build-isolation", "--python", sys.executable, "-o", folder, ROOT, cwd=ROOT
    )
    assert 0 == built.returncode, built.stderr
    (path,) = folder.glob("*.whl")
    return path


def installed(
    python: Path, folder: Path, *requirements: str | Path, options: tuple[str | Path, ...] = ()
) -> Environment:
    """
    Makes an environment with these requirements.

    What is in uv's cache is taken from there; what is not is downloaded.
    """
    work = folder / "work"
    work.mkdir()
    made = run(UV, "venv", "--quiet", "--python", python, folder / "venv", cwd=work)
    assert 0 == made.returncode, made.stderr
    install = (UV, "pip", "install", "--quiet", "--python", folder / "venv", *options, *requirements)
    if run(*install, "--offline", cwd=work).returncode != 0:
        online = run(*install, cwd=work)
        assert 0 == online.returncode, online.stderr
    return Environment(folder / "venv", work)


@pytest.fixture(scope="session", params=SUPPORTED)
def environment(request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment of each supported Python that is on this machine."""
    python = python_of(request.param)
    if python is None:
        pytest.skip(f"Python {request.param} is not on this machine")
    folder = tmp_path_factory.mktemp(f"python-{request.param}")
    return installed(python, folder, wheel, options=("--constraint", CONSTRAINTS))


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_javascript_of_agents_is_in_it(wheel: Path) -> None:
    """What node runs is copied into environments from where the package is."""
    names = zipfile.ZipFile(wheel).namelist()

    adapters = ("ai_sdk", "claude_agent_sdk_js", "mastra", "openai_agents_js")
    for path in ("javascript/main.mjs", *(f"adapters/{name}/agents.mjs" for name in adapters)):
        assert f"pytest_approvals/agent_side/{path}" in names


def test_the_wheel_holds_the_whole_catalogue(wheel: Path) -> None:
    """Every file of the catalogue is in the archive that the package unpacks."""
    files = [path for path in (ROOT / "scenarios").rglob("*") if path.is_file()]
    expected = {path.relative_to(ROOT / "scenarios").as_posix() for path in files}
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(archive.open("pytest_approvals/catalogue.zip")) as found:
        assert expected
        assert expected == set(found.namelist())


def test_the_wheel_has_few_files(wheel: Path) -> None:
    """Each start of pytest reads the list of them, at about 5 µs a file, in every project that has the package."""
    assert len(names_in(wheel)) < 640


def test_the_wheel_holds_the_causes_of_each_adapter(wheel: Path) -> None:
    """They are in one archive beside its waivers, whose reasons they are."""
    adapters = ROOT / "pytest_approvals" / "agent_side" / "adapters"
    expected = {str(path.relative_to(adapters)) for path in adapters.glob("*/causes/*.yaml")}
    found = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith("/causes.zip"):
                adapter = Path(name).parent.name
                found |= {f"{adapter}/causes/{cause}" for cause in zipfile.ZipFile(archive.open(name)).namelist()}

    assert expected
    assert expected == found


def test_the_causes_of_an_installed_package_are_read(environment: Environment) -> None:
    """A waiver of the package has the title of its cause as its reason."""
    code = """
from pytest_approvals.agents.waivers import get_waiver_file
from pytest_approvals.agents.causes import get_cause_folder, list_cause_ids, read_cause_title
from pytest_approvals.reporting.upstream import load_every_cause
folder = get_cause_folder(get_waiver_file("pydantic_ai"))
titles = {name: read_cause_title(folder / f"{name}.yaml") for name in list_cause_ids(folder)}
assert titles and titles.items() == {name: load_every_cause()[name].title for name in titles}.items()
"""
    done = environment.run("python", "-c", code)

    assert 0 == done.returncode, done.stderr


def test_what_this_project_is_developed_with_is_not_in_it(wheel: Path) -> None:
    """Mutants, records of detected faults, the search for known bugs, and what makes pages stay in the repository."""
    assert (ROOT / "pytest_approvals" / "devtools").is_dir()
    assert [] == [name for name in names_in(wheel) if "devtools" in name]


def test_the_wheel_says_who_made_it_and_under_which_licence(wheel: Path) -> None:
    """In its metadata, with the text of the licence beside them."""
    with zipfile.ZipFile(wheel) as archive:
        (folder,) = {name.partition("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        metadata = message_from_bytes(archive.read(f"{folder}/METADATA"))
        licence = archive.read(f"{folder}/licenses/LICENSE").decode()

    assert ("MIT", "The pytest-approvals authors") == (metadata["License-Expression"], metadata["Author"])
    assert "The pytest-approvals authors" in licence
    assert {"Homepage", "Documentation", "Changelog", "Issues"} == {
        address.partition(",")[0] for address in metadata.get_all("Project-URL", [])
    }


def test_the_wheel_holds_nothing_else(wheel: Path) -> None:
    """It is the package and its metadata; neither tests nor tools."""
    assert {"pytest_approvals"} == {name.partition("/")[0] for name in names_in(wheel) if ".dist-info/" not in name}


def test_the_catalogue_runs_in_an_empty_folder(environment: Environment) -> None:
    """`pytest-approvals run basics` runs the packaged scenarios on the reference agent."""
    done = environment.run("pytest-approvals", "run", "basics", "--agent", "reference")

    assert 0 == done.returncode, done.stdout + done.stderr
    assert "basics/" in done.stdout


@pytest.fixture(scope="session")
def environment_with_a_framework(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheel and the framework that the README's test is about."""
    wanted = f"pytest-approvals[pydantic-ai] @ {wheel.as_uri()}"
    folder = tmp_path_factory.mktemp("framework")
    return installed(Path(sys.executable), folder, wanted, options=("--constraint", CONSTRAINTS))


def readmes_test() -> tuple[str, str]:
    """Return the first file of the README, and its name."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- file: (?P<name>\S+) -->\n```python\n(?P<code>.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found["name"], found["code"]


def test_the_test_of_the_readme_runs_where_nothing_else_is(environment_with_a_framework: Environment) -> None:
    """The wheel and the framework are all that it needs."""
    name, code = readmes_test()
    (environment_with_a_framework.work / name).write_text(code, encoding="utf-8")
    done = environment_with_a_framework.run("pytest", "-q", "-p", "no:cacheprovider", name)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert ["1 passed"] == [line.partition(" in ")[0] for line in done.stdout.splitlines()[1:]]


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_can_say_what_it_does(environment: Environment, command: str) -> None:
    """No command needs at its start what is not in the wheel."""
    done = environment.run("pytest-approvals", command, "--help")

    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("words", [("recall", "known-bugs.yaml"), ("pins", "--update")], ids=["recall", "pins"])
def test_a_command_of_the_repository_says_so(environment: Environment, words: tuple[str, ...]) -> None:
    """What it needs is not in the wheel, or what it changes belongs to an installed package."""
    done = environment.run("pytest-approvals", *words)

    assert 2 == done.returncode
    assert "needs a checkout of pytest-approvals" in done.stderr


def test_an_installed_plugin_does_not_disturb_others(environment: Environment) -> None:
    """In a project that does not use it, pytest says what it says without it."""
    (environment.work / "test_of_somebody.py").write_text("def test_something(): pass\n")
    done = environment.run("pytest", "-q", "-p", "no:cacheprovider")

    assert 0 == done.returncode, done.stdout + done.stderr
    assert ["1 passed"] == [line.partition(" in ")[0] for line in done.stdout.splitlines()[1:]]


def test_the_oldest_versions_that_are_allowed_work(wheel: Path, tmp_path: Path) -> None:
    """Of pytest, pydantic, syrupy and all others."""
    oldest = tmp_path / "oldest.txt"
    words = ("--resolution", "lowest-direct", "--python-version", SUPPORTED[0], "--extra", "pydantic-ai", "-o", oldest)
    compiled = run(UV, "pip", "compile", "--quiet", *words, ROOT / "pyproject.toml", cwd=tmp_path)
    assert 0 == compiled.returncode, compiled.stderr

    environment = installed(Path(sys.executable), tmp_path, wheel, options=("--requirement", oldest))
    name, code = readmes_test()
    (environment.work / name).write_text(code, encoding="utf-8")
    catalogue = environment.run("pytest-approvals", "run", "basics", "--agent", "reference")
    own = environment.run("pytest", "-q", "-p", "no:cacheprovider", name)

    assert 0 == catalogue.returncode, catalogue.stdout + catalogue.stderr
    assert 0 == own.returncode, own.stdout + own.stderr
