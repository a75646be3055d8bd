"""Fuzzer of the readers: valid files and messages, changed in a few places, read as a command reads them.

An input passes if its reader accepts it or refuses it with one of its documented errors. Any other exception, the end
of the process, and more than `TIME_LIMIT` seconds of CPU time are crashes.

Every input is made from the seed, the reader and its number alone, so that each can be made again without the others.
"""

from __future__ import annotations

import mmap
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import FrameType

from pytest_approvals.devtools.fuzz.mutations import Specimen, mutate
from pytest_approvals.devtools.fuzz.readers import Reader, ReadInput, read

TIME_LIMIT = 2.0
"""Seconds of CPU time that one input may take."""

MAX_SAVED = 3
"""How many inputs of one kind of crash are saved."""

CURRENT_INPUT = "current-"
"""What the name of the file in the output folder begins with that holds the current input of a process."""

_CURRENT_SIZE = 1 << 20

_MEMORY = next((path for path in ("/dev/shm",) if os.access(path, os.W_OK)), None)
"""Where inputs are written for readers of files: in memory, because a disk takes longer than most readers."""


class InputTimeout(BaseException):
    """An input took more than `TIME_LIMIT` seconds; not an `Exception`, so that no reader swallows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """An input that a reader neither accepted nor refused.

    Attributes:
        number: The number of the input.
        what: The exception: its type, where it was raised, and the beginning of its message.
        data: The input.
        details: The traceback.
    """

    reader: str
    number: int
    what: str
    data: bytes = field(repr=False)
    details: str = field(repr=False)


@dataclass(slots=True, kw_only=True)
class Tally:
    """The outcomes of the inputs of one reader, and the CPU time that making and reading them took."""

    reader: str
    accepted: int = 0
    refused: int = 0
    crashed: int = 0
    seconds: float = 0.0
    crashes: list[Crash] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return self.accepted + self.refused + self.crashed


def split_inputs(readers: Iterable[Reader], inputs: int) -> dict[str, int]:
    """Return how many of *inputs* each reader gets, by its share, and at least one."""
    shares = {reader.name: reader.share for reader in readers}
    whole = sum(shares.values())
    counts = {name: max(1, inputs * share // whole) for name, share in shares.items()}
    # What rounding has left over goes to the first reader.
    counts[next(iter(counts))] += max(0, inputs - sum(counts.values()))
    return counts


def fuzz_reader(
    reader: Reader, inputs: int, seed: int, *, keep: Callable[[bytes], object] = lambda data: None
) -> Tally:
    """Let a reader read mutated specimens.

    Args:
        reader: The reader.
        inputs: How many.
        seed: What all inputs derive from.
        keep: Called with each input before it is read.
    """
    tally = Tally(reader=reader.name)
    start = time.process_time()
    specimens = [Specimen.parse(raw) for raw in reader.specimens()]
    saved: dict[str, int] = {}
    with TemporaryDirectory(dir=_MEMORY) as folder, _time_limit() as set_timer:
        read_input = reader.open(Path(folder))
        for number in range(inputs):
            data = mutate(Random(f"{seed}/{reader.name}/{number}"), specimens)
            keep(data)
            set_timer(TIME_LIMIT)
            try:
                if read(read_input, data):
                    tally.accepted += 1
                else:
                    tally.refused += 1
            except (Exception, InputTimeout) as error:
                set_timer(0)
                tally.crashed += 1
                what = _describe(error)
                saved[what] = saved.get(what, 0) + 1
                if saved[what] <= MAX_SAVED:
                    details = "".join(traceback.format_exception(error, limit=-30))
                    tally.crashes.append(
                        Crash(reader=reader.name, number=number, what=what, data=data, details=details)
                    )
    tally.seconds = time.process_time() - start
    return tally


def fuzz_readers(readers: Mapping[str, Reader], inputs: int, seed: int, folder: Path) -> Iterator[Tally]:
    """Yield the tally of each reader as soon as it is done; crashes are saved in *folder*."""
    with _current_input(folder) as keep:
        for name, count in split_inputs(readers.values(), inputs).items():
            tally = fuzz_reader(readers[name], count, seed, keep=keep)
            for crash in tally.crashes:
                save_crash(crash, folder)
            yield tally


def rerun(reader: Reader, data: bytes) -> bool:
    """Return whether a reader accepts one input; a crash is raised."""
    with TemporaryDirectory() as folder:
        read_input: ReadInput = reader.open(Path(folder))
        return read(read_input, data)


def crash_file(crash: Crash, folder: Path) -> Path:
    """Return the file that the input of a crash is saved in."""
    return folder / f"{crash.reader}-{crash.number}.input"


def save_crash(crash: Crash, folder: Path) -> None:
    """Write the input of a crash into *folder*, and its traceback next to it."""
    path = crash_file(crash, folder)
    path.write_bytes(crash.data)
    path.with_suffix(".txt").write_text(f"{crash.what}\n\n{crash.details}", encoding="utf-8", errors="backslashreplace")


def _describe(error: BaseException) -> str:
    """Return the type of an error, and the function in which it was raised: the same for crashes of one cause."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "pytest_approvals" in frame.filename and "/fuzz/" not in frame.filename]
    frame = (own or frames)[-1]
    place = frame.filename.rpartition("pytest_approvals/")[2]
    # Where in an endless loop or recursion an input was stopped is chance.
    line = "" if isinstance(error, (InputTimeout, RecursionError)) else f":{frame.lineno}"
    return f"{type(error).__name__} in {place}{line}"


@contextmanager
def _time_limit() -> Iterator[Callable[[float], object]]:
    """Let `InputTimeout` be raised when the CPU time is over to which the yielded function sets the timer."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise InputTimeout(f"more than {TIME_LIMIT:g} seconds of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    try:
        yield lambda seconds: signal.setitimer(signal.ITIMER_PROF, seconds)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextmanager
def _current_input(folder: Path) -> Iterator[Callable[[bytes], object]]:
    """Keep the current input in a file, which stays only if the process ends before this does."""
    # Of one process: it would end if another one truncated the file.
    path = folder / f"{CURRENT_INPUT}{os.getpid()}.input"
    with path.open("w+b") as file:
        file.truncate(_CURRENT_SIZE)
        # Mapped memory reaches the file even if the process is killed, and costs no system call.
        with mmap.mmap(file.fileno(), _CURRENT_SIZE) as memory:

            def keep(data: bytes) -> None:
                kept = data[: _CURRENT_SIZE - 8]
                memory[: len(kept) + 8] = len(kept).to_bytes(8, "big") + kept

            yield keep
    os.unlink(path)
