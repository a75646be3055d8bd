"""What the installed package costs a pytest run that does not use it."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import statistics
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")

# Each run is a fork of a process that has imported pytest: the start of Python and of pytest, 200 ms that vary by more
# than the plugin takes, is in no number.
MEASURE = """
import gc, json, os, sys
import pytest

def measure(*path):
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.path[:0] = path
        code = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider"])
        is_loaded = "pytest_approvals.plugin" in sys.modules
        os._exit(0 if code == pytest.ExitCode.NO_TESTS_COLLECTED and is_loaded == bool(path) else 1)
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, "pytest failed, or the plugin was loaded in the wrong runs"
    return usage.ru_utime + usage.ru_stime

gc.freeze()
kinds = [(), *((path,) for path in sys.argv[1:])]
for kind in kinds:
    measure(*kind)
print(json.dumps([[measure(*kind) for kind in kinds] for _ in range(100)]))
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The Python of an environment that has pytest, and nothing of this project."""
    for command in (("venv", "--quiet", "--python", sys.executable), ("pip", "install", "--quiet", "--python")):
        words = () if command[0] == "venv" else (f"pytest=={pytest.__version__}",)
        subprocess.run([UV, *command, tmp_path / "venv", *words], check=True)
    return tmp_path / "venv" / "bin" / "python"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder with the package as pip installs it: compiled, with the compiled files in the list of its files."""
    options = ("--no-build-isolation", "--python", sys.executable)
    subprocess.run([UV, "build", "--quiet", "--wheel", *options, "-o", tmp_path, ROOT], check=True)
    folder = tmp_path / "package"
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    compileall.compile_dir(folder, quiet=2)
    (record,) = folder.glob("*.dist-info/RECORD")
    with record.open("a") as file:
        file.writelines(f"{path.relative_to(folder)},,\n" for path in folder.rglob("*.pyc"))
    return folder


@pytest.fixture
def empty_package(package: Path) -> Path:
    """A folder with the metadata of the package, and an empty plugin."""
    folder = package.with_name("empty_package")
    (metadata,) = package.glob("*.dist-info")
    shutil.copytree(metadata, folder / metadata.name)
    for name in ("pytest_approvals", "pytest_approvals/plugin"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").touch()
    return folder


def test_the_idle_plugin_costs_little(
    tell: Callable[[str], None], python: Path, package: Path, empty_package: Path, tmp_path: Path
) -> None:
    """The plugin adds at most 5 ms of CPU time to a pytest run that does not use it.

    Besides, pytest reads the list of the files of each distribution with a plugin, whatever the plugin is.
    """
    hidden = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    empty = tmp_path / "empty"
    empty.mkdir()
    command = [python, "-c", MEASURE, empty_package, package]
    done = subprocess.run(command, cwd=empty, env=environment, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    rows = json.loads(done.stdout)
    # Other work on the machine only adds to a time: the fastest tenth of the runs of each kind has the least of it.
    bare, listed, loaded = (statistics.mean(sorted(times)[: len(rows) // 10]) for times in zip(*rows, strict=True))
    (record,) = package.glob("*.dist-info/RECORD")
    files = len(record.read_text().splitlines())

    tell(f"idle plugin: {(loaded - listed) * 1e3:+.1f} ms (target +5 ms), to {bare * 1e3:.0f} ms that are pytest's")
    tell(f"list of its {files} files: {(listed - bare) * 1e3:+.1f} ms")
    assert loaded - listed <= 0.005
