"""
Everything that pytest-approvals raises at its users.

    ApprovalsError
    ├── UsageError              a word, option or argument that cannot be used; says what is valid
    │   ├── UnknownName         an unknown scenario, agent, option, mode or check; names the nearest valid one
    │   └── AgentUnavailable    an agent that cannot be started here, and what to do about it
    ├── ScenarioError           a mistake in a scenario: file, line, what, and the nearest valid word
    ├── AdapterError            an adapter that breaks its contract
    │   └── HostError           an agent process that died, hung or answered nonsense
    ├── JournalError            a damaged journal: file, line, what
    ├── ReportError             a damaged report: file, line, what
    ├── WaiverError             a mistake in a waiver file
    ├── TableError              a mistake in a table of known bugs: file, line, what
    ├── ContentError            a mistake in messages of Microsoft.Extensions.AI: where in the document, what
    ├── HistoryError            a stored conversation that cannot be read: file, line, where in the document, what
    ├── TranscriptDiffers       a transcript that is not the stored one (an AssertionError, too)
    ├── Leaked                  something that left for another machine in a test (an AssertionError, too)
    ├── AgentFailed             an agent whose last turn failed in a person's own test (an AssertionError, too)
    └── CheckFailed             a recorded run that broke a requirement (an AssertionError, too)

    RequirementWarning          a requirement that should hold and does not (a UserWarning)

Constructors take facts and build the sentence, so that equal mistakes read alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_approvals.checks._verdicts import Finding


class ApprovalsError(Exception):
    """The root of all errors of this package."""


class UsageError(ApprovalsError):
    """A word, option or argument cannot be used."""


class UnknownName(UsageError):
    """
    A name is not one of the valid ones.

    Arguments:
        what: What kind of thing is named: `scenario`, `agent`, `check`.
        name: The name as given.
        valid: The names that would do.
    """

    def __init__(self, what: str, name: str, valid: Iterable[str]) -> None:
        self.what = what
        self.name = name
        super().__init__(f"no {what} is called {name!r}{suggest_name(name, valid)}")


class AgentUnavailable(UsageError):
    """An agent cannot be started here; *remedy* says what to do."""

    def __init__(self, agent: str, why: str, remedy: str) -> None:
        self.agent = agent
        super().__init__(f"agent {agent!r} cannot be started: {why}; {remedy}")


class ScenarioError(ApprovalsError):
    """
    A scenario has a mistake.

    Arguments:
        where: The file or the name of the scenario.
        line: The line in the file, from 1; None for a scenario built in Python.
        what: The mistake, in one sentence, with the nearest valid word where there is one.
    """

    def __init__(self, where: str, line: int | None, what: str) -> None:
        self.where = where
        self.line = line
        self.what = what
        super().__init__(f"{where}:{line}: {what}" if line is not None else f"{where}: {what}")


class AdapterError(ApprovalsError):
    """An adapter breaks its contract."""

    def __init__(self, agent: str, what: str) -> None:
        self.agent = agent
        self.what = what
        super().__init__(f"the adapter of {agent!r} breaks its contract: {what}")


class HostError(AdapterError):
    """An agent process died, hung or answered nonsense; *stderr* holds the end of what it printed there."""

    def __init__(self, agent: str, what: str, stderr: str = "") -> None:
        self.stderr = stderr
        tail = f"; the end of its stderr:\n{stderr.rstrip()}" if stderr.strip() else ""
        super().__init__(agent, what + tail)


class JournalError(ApprovalsError):
    """A journal is damaged: *line* counts from 1."""

    def __init__(self, path: str, line: int | None, what: str) -> None:
        self.path = path
        self.line = line
        self.what = what
        super().__init__(f"{path}:{line}: {what}" if line is not None else f"{path}: {what}")


class ReportError(ApprovalsError):
    """A report is damaged: *line* counts from 1."""

    def __init__(self, path: str, line: int | None, what: str) -> None:
        self.path = path
        self.line = line
        super().__init__(f"{path}:{line}: {what}" if line is not None else f"{path}: {what}")


class WaiverError(ApprovalsError):
    """A waiver file has a mistake."""

    def __init__(self, path: str, line: int | None, what: str) -> None:
        super().__init__(f"{path}:{line}: {what}" if line is not None else f"{path}: {what}")


class TableError(ApprovalsError):
    """A table of known bugs has a mistake: *line* counts from 1."""

    def __init__(self, path: str, line: int | None, what: str) -> None:
        self.path = path
        self.line = line
        super().__init__(f"{path}:{line}: {what}" if line is not None else f"{path}: {what}")


class ContentError(ApprovalsError):
    """
    Messages of Microsoft.Extensions.AI, or a case made of them, have a mistake.

    Arguments:
        where: The place in the document, as `messages[1].contents[0].callId`; empty for the document itself.
        what: The mistake, and what to do about it.
    """

    def __init__(self, where: str, what: str) -> None:
        self.where = where
        self.what = what
        super().__init__(f"{where}: {what}" if where else what)


class HistoryError(ApprovalsError):
    """
    A stored conversation cannot be read.

    Arguments:
        what: The mistake, and what to do about it.
        at: The names and numbers that lead to the place in the document; empty for the document itself.
        file, line: Where the document stands; filled in by whoever knows.
    """

    def __init__(
        self, what: str, *, at: Sequence[str | int] = (), file: str | None = None, line: int | None = None
    ) -> None:
        self.what = what
        self.at = tuple(at)
        self.file = file
        self.line = line
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at).removeprefix(".")
        where = [part for part in (file, str(line) if line is not None else "") if part]
        super().__init__(": ".join(part for part in (":".join(where), place, what) if part))


class TranscriptMismatch(ApprovalsError, AssertionError):
    """
    A transcript is not the stored one.

    Arguments:
        path: The file of the stored one.
        differences: The lines that differ, with those around them; None where nothing is stored.
    """

    def __init__(self, path: str, differences: Sequence[str] | None) -> None:
        self.path = path
        self.differences = differences
        if differences is None:
            text = f"no transcript is stored in {path}; --snapshot-update stores it"
        else:
            lines = "\n".join(f"  {line}" for line in differences)
            text = f"the transcript is not the stored one in {path}; --snapshot-update takes it over\n{lines}"
        super().__init__(text)


class AgentFailed(ApprovalsError, AssertionError):
    """
    An agent's last turn failed in a person's own test, and nobody let it fail on purpose.

    Arguments:
        kind, message: What it failed with.
    """

    def __init__(self, agent: str, kind: str, message: str) -> None:
        self.agent = agent
        super().__init__(f"the last turn of {agent} failed with {kind}: {message}")


class NetworkAccessDenied(ApprovalsError, AssertionError):
    """
    Something left for another machine while a scripted model was active, and was refused.

    Arguments:
        places: What was refused, `HOST:PORT` or `HOST`, and how often.
        hosts: The hosts among them.
    """

    def __init__(self, places: Mapping[str, int], hosts: Sequence[str]) -> None:
        self.places = dict(places)
        named = ", ".join(f"{place} ({often} times)" if often > 1 else place for place, often in places.items())
        super().__init__(
            f"not all that the test asked was the scripted model: connections to {named} were refused; let the client "
            f"ask the scripted model, or allow what the test needs: --approvals-allow-host={','.join(hosts)}"
        )


class CheckFailed(ApprovalsError, AssertionError):
    """
    A recorded run broke a requirement.

    Arguments:
        findings: What failed, the weakest violated requirements first.
        text: The findings as they are printed in every report.
    """

    def __init__(self, findings: Sequence[Finding], text: str) -> None:
        self.findings = tuple(findings)
        super().__init__(text)


class RequirementWarning(UserWarning):
    """A requirement that should hold does not; with `--approvals-strict` it fails the run instead."""


def suggest_name(name: str, valid: Iterable[str]) -> str:
    """
    Gives the end of a sentence that names the nearest of the *valid* names, or all of them where none is near and they
    are few.
    """
    names = sorted(set(valid))
    close = get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; valid: {', '.join(names)}" if 0 < len(names) <= 20 else ""
