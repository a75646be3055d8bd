"""Check: one requirement, with its documentation, its examples and the function that judges journals."""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal, get_args

from pytest_approvals.agent_side.process.load_clock import LoadClock
from pytest_approvals.agent_side.rpc.remote_errors import read_message
from pytest_approvals.checks._verdicts import Severity, Status, Verdict
from pytest_approvals.journal.events import Event
from pytest_approvals.journal.formatting import format_call
from pytest_approvals.journal.history import (
    Exchange,
    Execution,
    History,
    RecordedCall,
    RecordedDecision,
    RecordedTurn,
)

Level = Literal["must", "should"]

MOST_EVALUATIONS = 1_000_000
"""How often a check may yield: more than there are things to judge in any journal."""


@dataclass(slots=True, kw_only=True)
class Failure:
    """One thing for which a requirement does not hold.

    Attributes:
        expected: What the requirement asks for, in a few words.
        actual: What the journal shows instead.
        witness: Positions of the events that show it; 0 means none.
        call: The call concerned; None if it is no call in particular.
        session: The session concerned, if no call is.
        level: `should` if only the weaker half of a `must` is violated; None takes the level of the check.
        status: `unknown` or `harness-error` if the journal cannot decide or is no evidence; None for a failure.
    """

    expected: str
    actual: str
    witness: Sequence[int]
    call: RecordedCall | None = None
    session: str = ""
    level: Level | None = None
    status: Status | None = None


Evaluations = Iterator[Failure | None]
CheckFunction = Callable[[History], Evaluations]
GroupFunction = Callable[[Sequence[History]], Evaluations]

OK: None = None
"""What a check yields for each thing for which the requirement holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A journal in short lines from a check's docstring, and what the check says about it."""

    status: Literal["pass", "fail", "warning"]
    caption: str
    lines: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One requirement.

    Attributes:
        slug: Its name; it never changes.
        family: The group of checks that it belongs to: `execution`, `asking`, ...
        requirement: One sentence with must or should.
        why: The reason, a paragraph or two.
        level: `must` fails a run, `should` is a warning.
        severity: What a failure can cost.
        needs: The kinds of events without which it cannot be decided.
        implies: The checks whose failures follow from a failure of this one, for the same call.
        sources: Public issues and documents that it is based on.
        examples: Journals on which it passes and fails.
        function: Judges one journal; None for a check that compares several.
        group: Compares the journals of one scenario in its variants; None for a check of one journal.
        guards: It judges the run, not the agent, and is silent if another check does not hold.
        constant_verdicts: The verdicts without details, by status, made once.
    """

    slug: str
    family: str
    requirement: str
    why: str
    level: Level
    severity: Severity
    needs: tuple[str, ...]
    implies: tuple[str, ...]
    sources: tuple[str, ...]
    examples: tuple[Example, ...]
    function: CheckFunction | None = None
    group: GroupFunction | None = None
    guards: bool = False
    constant_verdicts: dict[str, Verdict]

    @property
    def is_foreign(self) -> bool:
        """Whether a third party wrote it: it may change what it is given."""
        return not getattr(self.function or self.group, "__module__", "").startswith("pytest_approvals.")

    def judge(self, history: History) -> list[Verdict]:
        """Return one verdict on a journal, or one for each call for which the requirement does not hold."""
        assert self.function is not None
        header = history.header
        if header is not None and header.observes is not None and not set(self.needs) <= set(header.observes):
            return [self.constant_verdicts["not-observable"]]
        return self._collect_verdicts(self.function, history)

    def judge_group(self, histories: Sequence[History]) -> list[Verdict]:
        """Return the verdicts on the journals of one scenario in its variants."""
        assert self.group is not None
        return self._collect_verdicts(self.group, histories)

    def _collect_verdicts(self, function: Callable[[Any], Evaluations], subject: object) -> list[Verdict]:
        status = "not-applicable"
        failures: list[Failure] = []
        evaluations: Any = None
        try:
            with _WATCHDOG:
                evaluations = function(subject)
                for count, evaluation in enumerate(evaluations):
                    status = "pass"
                    if evaluation is not None:
                        _validate_failure(evaluation)
                        failures.append(evaluation)
                    if count >= MOST_EVALUATIONS:
                        raise ValueError(f"it yielded more than {MOST_EVALUATIONS:,} times")
            return self._verdicts_by_call(failures) if failures else [self.constant_verdicts[status]]
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            # A crash of one check must not hide the verdicts of the others. Also not Exceptions only, because a check
            # may call `pytest.fail`.
            return [self._report_crash(error, evaluations, subject)]

    def _verdicts_by_call(self, failures: Iterable[Failure]) -> list[Verdict]:
        """Return at most one verdict per call: the first failure, or the first warning if nothing fails."""
        verdicts: dict[tuple[str, str | None], Verdict] = {}
        for failure in failures:
            verdict = self._build_verdict(failure)
            key = verdict.session, verdict.label
            if key not in verdicts or (verdict.fails and not verdicts[key].fails):
                verdicts[key] = verdict
        return list(verdicts.values())

    def _build_verdict(self, failure: Failure) -> Verdict:
        is_weak = (failure.level or self.level) == "should"
        call = failure.call
        return Verdict(
            check=self.slug,
            status=failure.status or ("warning" if is_weak else "fail"),
            label=call.label if call is not None else None,
            session=call.session if call is not None else failure.session,
            call=describe_call(call) if call is not None else "",
            expected=failure.expected,
            actual=failure.actual,
            witness=tuple(sorted({n for n in failure.witness if n})),
        )

    def _report_crash(self, error: BaseException, evaluations: object, subject: object) -> Verdict:
        if isinstance(error, _CheckTooSlow):
            actual = f"the check did not end within {_WATCHDOG.seconds:g} seconds"
        else:
            actual = f"the check raised {type(error).__name__}: {read_message(error)}"
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][1:]
        # What a check yields is judged while it is suspended, and so not in the traceback.
        suspended = getattr(evaluations, "gi_frame", None)
        n = _find_position([suspended, *frames] if suspended is not None else frames)
        # Positions in one of several journals would be ambiguous.
        if not isinstance(subject, History) or n is None or not 0 < n <= len(subject.events):
            return Verdict(check=self.slug, status="harness-error", expected="a verdict", actual=actual)
        actual = f"{actual}, at event {n} ({subject.events[n - 1].kind})"
        return Verdict(check=self.slug, status="harness-error", expected="a verdict", actual=actual, witness=(n,))


def _validate_failure(failure: object) -> None:
    """Check what a check has yielded.

    Raises:
        TypeError: It is no `Failure`, or one with an attribute of another type.
    """
    if not isinstance(failure, Failure):
        raise TypeError(f"it yielded {failure!r:.80}: expected None or a Failure")
    for name in ("expected", "actual", "session"):
        if not isinstance(getattr(failure, name), str):
            raise TypeError(f"it yielded a Failure whose {name!r} is {getattr(failure, name)!r:.80}: expected a text")
    if failure.call is not None and not isinstance(failure.call, RecordedCall):
        raise TypeError(f"it yielded a Failure whose 'call' is {failure.call!r:.80}: expected a call of the history")
    if failure.level not in (None, *get_args(Level)):
        raise TypeError(f"it yielded a Failure whose 'level' is {failure.level!r:.80}: expected must or should")
    if failure.status not in (None, "unknown", "harness-error"):
        raise TypeError(
            f"it yielded a Failure whose 'status' is {failure.status!r:.80}: expected unknown or harness-error"
        )
    if not all(type(n) is int for n in failure.witness):
        raise TypeError(f"it yielded a Failure whose 'witness' is {failure.witness!r:.80}: expected positions")


def _find_position(frames: Sequence[FrameType]) -> int | None:
    """Return the position of what the innermost of these frames looked at last; None if that is unknown."""
    for frame in reversed(frames):
        for value in reversed(list(frame.f_locals.values())):
            if isinstance(value, RecordedTurn):
                return value.start.n
            if isinstance(value, RecordedCall | RecordedDecision | Execution | Exchange | Event):
                return value.n
    return None


class _CheckTooSlow(BaseException):
    """Raised in a check that does not end. It is no Exception, because a check may catch those in a loop."""


class _Watchdog:
    """Limit of the time of checks: entered for each one, from any thread.

    A check is a plain function, which only its own thread can end. A thread that looks from time to time raises an
    exception there; it ends when nothing is judged.

    Attributes:
        seconds: How long a check may take, on a `LoadClock`.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.reset()

    def reset(self) -> None:
        """Forget what is judged."""
        self._lock = threading.Lock()
        self._active: dict[int, object] = {}
        self._raised: set[int] = set()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._active[threading.get_ident()] = object()
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="approvals-checks", daemon=True)
                self._thread.start()

    def __exit__(self, *error: object) -> None:
        ident = threading.get_ident()
        with self._lock:
            del self._active[ident]
            if ident in self._raised:
                self._raised.remove(ident)
                _take_back(ident)

    def _watch(self) -> None:
        clocks: dict[int, tuple[object, LoadClock]] = {}
        idle = 0
        while idle < 2:
            time.sleep(min(1.0, self.seconds / 4))
            with self._lock:
                idle = 0 if self._active else idle + 1
                clocks = {ident: self._keep_clock(clocks.get(ident), token) for ident, token in self._active.items()}
                for ident, (_, clock) in clocks.items():
                    if clock.read() >= self.seconds and ident not in self._raised:
                        self._raised.add(ident)
                        _raise_in_thread(ident, _CheckTooSlow)
                if idle >= 2:
                    self._thread = None

    @staticmethod
    def _keep_clock(known: tuple[object, LoadClock] | None, token: object) -> tuple[object, LoadClock]:
        return known if known is not None and known[0] is token else (token, LoadClock())


def _raise_in_thread(ident: int, error: type[BaseException]) -> None:
    """Raise an exception in a thread as soon as it executes Python code."""
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(error))


def _take_back(ident: int) -> None:
    """End what was raised in the calling thread and has perhaps not arrived yet.

    CPython can replace such an exception by none. It then still counts it as open, for the whole process: up to 3.11,
    a function that is traced or profiled never gets beyond its first instruction. So another one is raised and caught.
    """
    with suppress(_CheckTooSlow):
        _raise_in_thread(ident, _CheckTooSlow)
        while True:
            pass


_WATCHDOG = _Watchdog(60.0)
if hasattr(os, "register_at_fork"):
    # The lock may be held by the thread that the fork does not have.
    os.register_at_fork(after_in_child=_WATCHDOG.reset)


def describe_call(call: RecordedCall) -> str:
    """Return a call as findings show it: `c1 pay(amount=5)`."""
    return f"{call.label} {format_call(call.tool, call.arguments)}"
