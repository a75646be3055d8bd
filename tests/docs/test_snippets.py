from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block: *note* is the comment above it, `file: NAME` or `run` or `run: exit N`."""

    note: str
    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(note=found["note"] or "", language=found["language"], text=found["text"], line=line)


def pages_that_run() -> list[Path]:
    return [page for page in PAGES if any(block.note.startswith("run") for block in blocks(page))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_snippet_is_executed(page: Path) -> None:
    """Python stands in a file that a command of its page runs, and every command is run."""
    idle = [
        f"{page.name}:{block.line}"
        for block in blocks(page)
        if (block.language in ("python", "console") and not block.note)
        or (block.language == "python" and not block.note.startswith("file: "))
        or (block.language == "console" and not block.note.startswith("run"))
    ]

    assert [] == idle


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", pages_that_run(), ids=lambda page: page.name)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    """In an empty folder, the files of a page are written and its commands run, top to bottom, as they stand."""
    for block in blocks(page):
        kind, _, what = block.note.partition(": ")
        if kind == "file":
            path = tmp_path / what
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif kind == "run":
            wanted = int(what.removeprefix("exit ")) if what else 0
            for command, printed in commands(block.text):
                run(command, printed, wanted, tmp_path, f"{page.name}:{block.line}")


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Gives each command of a console block with what it prints."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield command, printed


def run(command: str, printed: str, wanted: int, folder: Path, where: str) -> None:
    scripts = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": os.pathsep.join([scripts, os.environ["PATH"]]), "COLUMNS": "120"}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    seen = f"{where}: $ {command}\n{done.stdout}{done.stderr}"

    assert wanted == done.returncode, seen
    assert re.fullmatch(pattern(printed), done.stdout.strip() + "\n", re.DOTALL), seen


def pattern(printed: str) -> str:
    """Gives the regular expression of what is printed; `...` stands for anything."""
    return r".*".join(re.escape(part) for part in (printed.strip() + "\n").split("...")).replace(r"\n.*", r"\n?.*")


class TestTheRunner:
    def test_a_wrong_promise_is_noticed(self, tmp_path: Path) -> None:
        """A command that prints something else than the page says fails."""
        with pytest.raises(AssertionError):
            run("echo no", "yes\n", 0, tmp_path, "page")

    def test_a_wrong_exit_code_is_noticed(self, tmp_path: Path) -> None:
        """A command that fails where the page does not say so fails."""
        with pytest.raises(AssertionError):
            run("exit 3", "...", 0, tmp_path, "page")
