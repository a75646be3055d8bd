"""No input makes a reader fail with an error that is not ours; the command that looks for such inputs finds them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from pytest_approvals.devtools import fuzz
from pytest_approvals.devtools.fuzz import CURRENT_INPUT, fuzz_reader, split_inputs
from pytest_approvals.devtools.fuzz.__main__ import main
from pytest_approvals.devtools.fuzz.mutations import Specimen, mutate
from pytest_approvals.devtools.fuzz.readers import READERS, Reader, ReadInput
from pytest_approvals.errors import UsageError

CUT = split_inputs(READERS.values(), 1_500)
NIGHTLY = split_inputs(READERS.values(), 100_000)


@pytest.mark.parametrize("name", READERS)
def test_a_reader_accepts_its_specimens(name: str, tmp_path: Path) -> None:
    """What is mutated is valid, so that mutants are refused for their mutation."""
    read_input = READERS[name].open(tmp_path)

    assert [True] == list({read_input(raw) for raw in READERS[name].specimens()})


@pytest.mark.parametrize("name", READERS)
def test_a_reader_accepts_or_refuses_whatever_it_is_given(name: str) -> None:
    """A cut of the inputs of the next test."""
    assert [] == fuzz_reader(READERS[name], CUT[name], seed=1).crashes


@pytest.mark.fuzz
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("name", READERS)
def test_a_reader_accepts_or_refuses_whatever_it_is_given_at_length(name: str) -> None:
    """100,000 inputs of all readers; run alone with -m fuzz."""
    assert [] == fuzz_reader(READERS[name], NIGHTLY[name], seed=2).crashes


def test_inputs_are_split_by_shares() -> None:
    """All of them are given out, and no reader goes without."""
    assert {100_000} == {sum(NIGHTLY.values())}
    assert min(split_inputs(READERS.values(), 30).values()) >= 1


def test_an_input_is_made_from_seed_reader_and_number_alone() -> None:
    """It can be made again without those before it; other numbers make others."""
    specimens = [Specimen.parse(raw) for raw in READERS["request.chat"].specimens()]
    inputs = [mutate(Random(f"1/request.chat/{number}"), specimens) for number in range(50)]

    assert inputs[49] == mutate(Random("1/request.chat/49"), specimens)
    assert len(set(inputs)) > 45


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[ReadInput], None]:
    """Add a reader called `planted`, which reads small JSON documents; the current folder is empty."""
    monkeypatch.chdir(tmp_path)

    def add(read_input: ReadInput) -> None:
        reader = Reader(
            name="planted",
            open=lambda folder: read_input,
            specimens=lambda: [b'{"name": "a", "size": 1}'],
            share=1,
            about="planted",
        )
        monkeypatch.setitem(READERS, "planted", reader)  # type: ignore[misc]

    return add


def test_an_error_that_is_not_ours_is_a_crash(
    plant: Callable[[ReadInput], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """The command ends with 1, keeps the input and its traceback, and prints how to read it again."""

    def read_input(data: bytes) -> bool:
        if b'"size"' not in data:
            raise KeyError("size")
        return True

    plant(read_input)
    assert 1 == main(["--inputs", "200", "--reader", "planted"])

    saved = sorted(Path("fuzz-crashes").glob("planted-*.input"))
    printed = capsys.readouterr().out
    assert 1 <= len(saved) <= 3
    assert b'"size"' not in saved[0].read_bytes()
    assert "KeyError: 'size'" in saved[0].with_suffix(".txt").read_text()
    assert f"python -m pytest_approvals.devtools.fuzz --reader planted --rerun {saved[0]}" in printed
    with pytest.raises(KeyError):
        main(["--reader", "planted", "--rerun", str(saved[0])])


def test_our_errors_are_refusals(plant: Callable[[ReadInput], None], capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with 0 and counts them."""

    def read_input(data: bytes) -> bool:
        raise UsageError("Invalid document")

    plant(read_input)
    assert 0 == main(["--inputs", "20", "--reader", "planted"])

    assert ["20", "0", "20", "0"] == capsys.readouterr().out.splitlines()[1].split()[1:5]


def test_an_input_that_takes_too_long_is_a_crash(
    plant: Callable[[ReadInput], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A reader is stopped when its CPU time is over, even if it swallows all exceptions."""
    monkeypatch.setattr(fuzz, "TIME_LIMIT", 0.05)

    def read_input(data: bytes) -> bool:
        while True:
            try:
                int(data[:0] or b"1")
            except Exception:
                continue

    plant(read_input)
    assert 1 == main(["--inputs", "1", "--reader", "planted"])

    assert "planted input 0: InputTimeout in" in capsys.readouterr().out


def test_an_input_that_ends_the_process_is_kept(tmp_path: Path) -> None:
    """It is left in a file that the command can read again."""
    program = f"""
import os, sys
from pytest_approvals.devtools.fuzz import __main__, readers
read_input = lambda data: os.kill(os.getpid(), {int(signal.SIGKILL)})
readers.READERS["planted"] = readers.Reader(
    name="planted", open=lambda folder: read_input, specimens=lambda: [b'{{"a": 1}}'], share=1, about=""
)
__main__.main(["--inputs", "1", "--reader", "planted", "-o", "crashes"])
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env={**os.environ}, timeout=60)

    (kept,) = (tmp_path / "crashes").glob(f"{CURRENT_INPUT}*")
    assert -signal.SIGKILL == done.returncode
    expected = mutate(Random("1/planted/0"), [Specimen.parse(b'{"a": 1}')])
    assert expected == kept.read_bytes()[8 : 8 + len(expected)]
    assert len(expected) == int.from_bytes(kept.read_bytes()[:8], "big")


@pytest.mark.parametrize(
    ("raw", "answer"), [(READERS["request.chat"].specimens()[0], "accepted"), (b"{", "refused")], ids=["valid", "cut"]
)
def test_a_saved_input_is_read_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], raw: bytes, answer: str
) -> None:
    """The command says what the reader makes of it."""
    path = tmp_path / "saved.input"
    path.write_bytes(raw)

    assert 0 == main(["--reader", "request.chat", "--rerun", str(path)])
    assert f"{answer}\n" == capsys.readouterr().out
