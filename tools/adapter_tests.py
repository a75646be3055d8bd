"""Runner of the tests of adapters: pytest in an environment with the framework, our source on its path.

Each framework that is not among our own locked versions has a lock file in requirements/adapters. It holds the release
that agent_side/adapters/pins.yaml pins, and what our package and its tests need, in the versions of
requirements/constraints.txt unless the framework needs others. The environments are in the cache that
`pytest-approvals environments` lists.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from pytest_approvals.agents.adapters import list_adapter_names, load_flavours
from pytest_approvals.agents.environments import EnvironmentCache, Recipe
from pytest_approvals.agents.package_registries import PYPI
from pytest_approvals.agents.pins import get_pin
from pytest_approvals.errors import AgentUnavailable

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "requirements" / "constraints.txt"
LOCKS = ROOT / "requirements" / "adapters"
TESTS = (ROOT / "tests" / "agent_side" / "adapters", ROOT / "tests" / "own_agents")
OLDEST_PYTHON = "3.11"
NOT_FOR_ADAPTERS = {"anthropic", "boto3"}
"""Requirements of our own tests, of which an adapter's tests need the release that the framework needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedRecipe(Recipe):
    """The environment that a lock file describes.

    Attributes:
        file: The lock file.
    """

    file: Path

    @classmethod
    def read(cls, file: Path) -> LockedRecipe:
        """Read a lock file."""
        lines = (line.strip() for line in file.read_text(encoding="utf-8").splitlines())
        return cls(requirements=tuple(line for line in lines if line and not line.startswith("#")), file=file)

    def __str__(self) -> str:
        return str(self.file.relative_to(ROOT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run of an adapter's tests ended with."""

    adapter: str
    exit_code: int
    seconds: float
    output: str

    def __str__(self) -> str:
        found = re.findall(r"^=* ?(\d+ \w+(?:, \d+ \w+)*) in [\d.]+s", self.output, re.MULTILINE)
        return f"{self.adapter:16} {self.seconds:6.1f} s  {found[-1] if found else f'exit code {self.exit_code}'}"


def locked_adapters() -> list[str]:
    """Return the names of the adapters that have an environment of their own."""
    return sorted(path.stem for path in LOCKS.glob("*.txt"))


def frameworks_apart() -> dict[str, list[str]]:
    """Return the distributions of each Python adapter that the locked versions do not have."""
    locked = set(re.findall(r"^([\w.-]+)==", CONSTRAINTS.read_text(encoding="utf-8"), re.MULTILINE))
    found: dict[str, list[str]] = {}
    for name in list_adapter_names():
        frameworks = {each.framework: None for each in load_flavours(name).values() if each.registry == PYPI.name}
        if distributions := [one for one in frameworks if one is not None and one not in locked]:
            found[name] = distributions
    return found


def lock() -> None:
    """Write the lock files anew."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    tests = [one for one in project["dependency-groups"]["tests"] if one not in NOT_FOR_ADAPTERS]
    ours = [*project["project"]["dependencies"], *tests]
    LOCKS.mkdir(exist_ok=True)
    for name, distributions in frameworks_apart().items():
        pins = [get_pin(distribution) for distribution in distributions]
        theirs = [text for pin in pins for text in pin.requirements(str(pin.release))]
        _compile([*theirs, *ours], LOCKS / f"{name}.txt")


def _compile(requirements: Iterable[str], file: Path) -> None:
    # uv keeps the versions of an existing output file if they fit; here, those that are locked for our own tests.
    shutil.copyfile(CONSTRAINTS, file)
    options = ("--universal", "--python-version", OLDEST_PYTHON, "--custom-compile-command", "make lock")
    subprocess.run(
        [_uv(), "pip", "compile", "--quiet", *options, "--no-annotate", "--output-file", file, "-"],
        input="\n".join(requirements),
        text=True,
        check=True,
    )


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else "uv"


def run_tests(adapter: str, words: Sequence[str], *, captured: bool, coverage: bool = False) -> Outcome:
    """Run the tests of an adapter in the environment of its framework, which is made if it is not there.

    Args:
        adapter: Its name.
        words: Options for pytest.
        captured: Whether the output is kept for the outcome, instead of shown as it comes.
        coverage: Whether what the tests reach is written to `.coverage.ADAPTER`.
    """
    begun = time.monotonic()
    try:
        environment = EnvironmentCache().get(LockedRecipe.read(LOCKS / f"{adapter}.txt"), f"the tests of {adapter}")
    except AgentUnavailable as error:
        return Outcome(adapter=adapter, exit_code=1, seconds=time.monotonic() - begun, output=f"{error}\n")
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    variables["PYTHONPATH"] = str(ROOT)
    if coverage:
        variables["COVERAGE_FILE"] = str(ROOT / f".coverage.{adapter}")
        words = ("--cov", "--cov-report=", *words)
    folders = [folder / adapter for folder in TESTS if (folder / adapter).is_dir()]
    done = subprocess.run(
        [environment.python, "-m", "pytest", "-p", "pytest_approvals.plugin", *words, *folders],
        cwd=ROOT,
        env=variables,
        stdout=subprocess.PIPE if captured else None,
        stderr=subprocess.STDOUT if captured else None,
        text=True,
        check=False,
    )
    return Outcome(
        adapter=adapter, exit_code=done.returncode, seconds=time.monotonic() - begun, output=done.stdout or ""
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for, and return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).strip().partition("\n")[0])
    parser.add_argument("adapters", nargs="*", metavar="ADAPTER", help=f"default: {', '.join(locked_adapters())}")
    parser.add_argument("--lock", action="store_true", help="write the lock files anew, and run nothing")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="adapters at a time (default: one per processor)"
    )
    parser.add_argument("--coverage", action="store_true", help="write .coverage.ADAPTER files")
    parser.add_argument(
        "--pytest", default="", metavar="OPTIONS", help="options for pytest, as in --pytest='-x -k turns'"
    )
    options = parser.parse_args(arguments)
    if options.lock:
        lock()
        return 0
    names = options.adapters or locked_adapters()
    if unknown := set(names) - set(locked_adapters()):
        parser.error(f"no lock file in {LOCKS.relative_to(ROOT)} for {', '.join(sorted(unknown))}")
    captured = len(names) > 1
    words = shlex.split(options.pytest)
    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = [pool.submit(run_tests, name, words, captured=captured, coverage=options.coverage) for name in names]
        for run in as_completed(runs):
            outcomes.append(run.result())
            sys.stdout.write(f"\n{run.result().adapter}\n{run.result().output}")
            sys.stdout.flush()
    if captured:
        sys.stdout.write("\n" + "".join(f"{outcome}\n" for outcome in outcomes))
    return int(any(outcome.exit_code for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
