"""A type checker accepts the tests that users write, and finds their mistakes."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
API = Path(__file__).with_name("api.py")

# What `make lint` read of the frameworks need not be read again: mypy keeps it for those who want the same errors.
LINTED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["enable_error_code"]
CACHE = [*(f"--enable-error-code={code}" for code in LINTED), "--cache-dir", str(ROOT / ".mypy_cache")]

CHECKERS: dict[str, Callable[[Path], list[str]]] = {
    "mypy": lambda file: [sys.executable, "-m", "mypy", "--strict", "--config-file=", *CACHE, str(file)],
    "pyright": lambda file: [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(file)],
}

MISTAKEN = """\
from pytest_approvals import Approvals, nonsense, say, when


def test_it(approvals: Approvals, agent: object) -> None:
    approvals.run(agent, model=[say("Done.")], serialise="json")
    approvals.run(agent, model=[say("Done.")], serialize="jsn")
    approvals.run(agent, model=say("Done."))
    approvals.run(agent, model=[say("Done.")], orcale="approve_all")
    approvals.run(agent, model=[say("Done.")], resume="frsh")
    approvals.run(agent, model=[say("Done.")], stream="yes")
    approvals.run(agent, model=[say("Done.")]).outputs
    approvals.run(agent, model=[say("Done.")], gated={"pay": 3})
    approvals.run(agent, model=[say("Done.")], gated={"pay": when("amount", above=3)})
"""


def readme_test() -> str:
    match = re.search(
        r"^<!-- file: test_refund.py -->\n```python\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL
    )
    assert match is not None
    return match[1]


def check(checker: str, file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(CHECKERS[checker](file), cwd=file.parent, capture_output=True, text=True, check=False)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", CHECKERS)
def test_the_test_of_the_readme_is_typed(checker: str, tmp_path: Path) -> None:
    """As strictly as the checker can."""
    file = tmp_path / "test_refund.py"
    file.write_text(f"# pyright: strict\n{readme_test()}")

    done = check(checker, file)

    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.timeout(300)
def test_the_public_api_is_typed_for_pyright_too() -> None:
    """mypy reads `api.py` with the package."""
    done = check("pyright", API)

    assert 0 == done.returncode, done.stdout + done.stderr


@pytest.mark.timeout(300)
@pytest.mark.parametrize("checker", CHECKERS)
def test_mistakes_are_found(checker: str, tmp_path: Path) -> None:
    """A name that is not public, a misspelt argument, a value of the wrong kind, an attribute that is not there."""
    file = tmp_path / "test_it.py"
    file.write_text(MISTAKEN)

    done = check(checker, file)
    lines = {int(line) for line in re.findall(r"test_it\.py:(\d+):(?:\d+ -)? error", done.stdout)}

    assert {1, 5, 6, 7, 8, 9, 10, 11, 12, 13} == lines, done.stdout + done.stderr
