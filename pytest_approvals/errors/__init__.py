"""Errors and warnings that pytest-approvals raises at its users.

    ApprovalsError
    ├── UsageError              a word, option or argument that cannot be used; the message says what is valid
    │   ├── UnknownName         an unknown scenario, agent, option, mode or check; the message suggests the nearest one
    │   └── AgentUnavailable    an agent that cannot be started here; the message says what to do about it
    ├── FileError               a mistake in a file: path, line, what
    │   ├── ScenarioError       a scenario, from a file or built in Python
    │   ├── JournalError        a damaged journal
    │   ├── TranscriptError     a damaged file of transcripts
    │   ├── ReportError         a damaged report
    │   ├── WaiverError         a file of waivers
    │   ├── CauseError          the record of a cause
    │   └── TableError          a table of known bugs
    ├── AdapterError            an adapter that breaks its contract
    │   └── HostError           an agent process that died, hung or sent an invalid response
    ├── ContentError            invalid messages of Microsoft.Extensions.AI: where in the document, what
    ├── HistoryError            a stored conversation that cannot be read: file, line, where in the document, what
    ├── TranscriptMismatch      a transcript that differs from the stored one (also an AssertionError)
    ├── NetworkAccessDenied     connections to other machines that a test tried (also an AssertionError)
    ├── AgentFailed             a user's agent failed, or the code of its tools or factory (also an AssertionError)
    └── checks.CheckFailed      a recorded run that broke a requirement (also an AssertionError)

    RequirementWarning          a requirement that should hold and does not (a UserWarning)

Constructors take facts and build the sentence, so that equal mistakes read alike. What they take is often
untrusted; see `printable`: `str` of an error has neither control characters nor long lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from pytest_approvals.errors.printable import escape_value, format_message, quote


class ApprovalsError(Exception):
    """Base class of all errors of this package."""

    def __str__(self) -> str:
        return format_message(super().__str__())


class UsageError(ApprovalsError):
    """A word, option or argument that cannot be used."""


class UnknownName(UsageError):
    """A name that is not one of the valid ones.

    Args:
        what: The kind of thing that is named: `scenario`, `agent`, `check`.
        name: The unknown name.
        valid: The valid names.
        where: Where it is named, if that is not clear from what the user has just written: `approvals.run`.
    """

    def __init__(self, what: str, name: str, valid: Iterable[str], where: str = "") -> None:
        self.what = what
        self.name = name
        place = f" in {where}" if where else ""
        super().__init__(f"Unknown {what} {quote(name)}{place}{suggest_name(name, valid)}")


class AgentUnavailable(UsageError):
    """An agent that cannot be started here; *remedy* says what to do."""

    def __init__(self, agent: str, why: str, remedy: str) -> None:
        self.agent = agent
        super().__init__(f"agent {agent!r} cannot be started: {why}; {remedy}")


class FileError(ApprovalsError):
    """A mistake in a file.

    Args:
        path: The file; for a scenario that is built in Python, its name.
        line: The line, from 1; None if the mistake is not in a single line.
        what: The mistake in one sentence, with the nearest valid word if there is one.
    """

    def __init__(self, path: str, line: int | None, what: str) -> None:
        self.path = path
        self.line = line
        self.what = what
        place = escape_value(path)
        super().__init__(f"{place}:{line}: {what}" if line is not None else f"{place}: {what}")


class ScenarioError(FileError):
    """A mistake in a scenario, from a file or built in Python."""


class JournalError(FileError):
    """A damaged journal."""


class TranscriptError(FileError):
    """A damaged file of transcripts."""


class ReportError(FileError):
    """A damaged report."""


class WaiverError(FileError):
    """A mistake in a file of waivers."""


class CauseError(FileError):
    """A mistake in the record of a cause."""


class TableError(FileError):
    """A mistake in a table of known bugs."""


class AdapterError(ApprovalsError):
    """An adapter that breaks its contract."""

    def __init__(self, agent: str, what: str) -> None:
        self.agent = agent
        self.what = what
        super().__init__(f"the adapter of {agent!r} breaks its contract: {what}")


class HostError(AdapterError):
    """An agent process that died, hung or sent an invalid response; *stderr* holds the end of what it printed there."""

    def __init__(self, agent: str, what: str, stderr: str = "") -> None:
        self.stderr = stderr
        tail = f"; the end of its stderr:\n{stderr.rstrip()}" if stderr.strip() else ""
        super().__init__(agent, what + tail)


class ContentError(ApprovalsError):
    """A mistake in messages of Microsoft.Extensions.AI, or in a case made of them.

    Args:
        where: The place in the document, as `messages[1].contents[0].callId`; empty for the document itself.
        what: The mistake, and what to do about it.
    """

    def __init__(self, where: str, what: str) -> None:
        self.where = where
        self.what = what
        super().__init__(f"{where}: {what}" if where else what)


class HistoryError(ApprovalsError):
    """A stored conversation that cannot be read.

    Args:
        what: The mistake, and what to do about it.
        at: The names and numbers that lead to the place in the document; empty for the document itself.
        file: The file that holds the document; filled in by the reader of the file.
        line: The line of the document in the file.
    """

    def __init__(
        self, what: str, *, at: Sequence[str | int] = (), file: str | None = None, line: int | None = None
    ) -> None:
        self.what = what
        self.at = tuple(at)
        self.file = file
        self.line = line
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at).removeprefix(".")
        where = [part for part in (escape_value(file or ""), str(line) if line is not None else "") if part]
        super().__init__(": ".join(part for part in (":".join(where), place, what) if part))


class TranscriptMismatch(ApprovalsError, AssertionError):
    """A transcript that differs from the stored one.

    Args:
        name: The name of the transcript.
        path: The file of the stored transcripts.
        differences: The lines that differ, with their context; None if nothing is stored.
        remedy: What to do if the new one is right.
    """

    def __init__(
        self,
        name: str,
        path: str,
        differences: Sequence[str] | None,
        remedy: str = "update with --snapshot-update",
    ) -> None:
        self.place = f"{path}, {name}"
        self.differences = differences
        self.remedy = remedy
        if differences is None:
            text = f"No transcript of {name} is stored in {path} (store it with --snapshot-update)"
        else:
            lines = "\n".join(f"  {line}" for line in differences)
            text = f"Transcript of {name} differs from {path} ({remedy})\n{lines}"
        super().__init__(text)


class AgentFailed(ApprovalsError, AssertionError):
    """A user's agent failed in its last turn, with no failure in the script or a stub, or it could not be built.

    If the user's own code raised, the message names it, and `__cause__` is the exception with the lines of that code.

    Args:
        agent: The agent as reports name it.
        kind: The type of the failure.
        message: The message of the failure.
        code: What of the user's code raised, as "tool `refund`"; empty if it was none of theirs.
        where: The file and the line of that code.
    """

    def __init__(self, agent: str, kind: str, message: str, *, code: str = "", where: str = "") -> None:
        self.agent = agent
        self.where = where
        place = f" ({where})" if where else ""
        head = f"your {code} raised" if code else f"the last turn of {agent} failed with"
        super().__init__(f"{head} {kind}: {message}{place}")


class NetworkAccessDenied(ApprovalsError, AssertionError):
    """Connections to other machines that were tried and refused while a scripted model was active.

    Args:
        places: What was refused, `HOST:PORT` or `HOST`, and how often.
        hosts: The hosts among them.
    """

    def __init__(self, places: Mapping[str, int], hosts: Sequence[str]) -> None:
        self.places = dict(places)
        named = ", ".join(f"{place} ({count} times)" if count > 1 else place for place, count in places.items())
        super().__init__(
            f"Network access to {named} was blocked. Point the client at the scripted model, or allow what the test "
            f"needs with --approvals-allow-host={','.join(hosts)}"
        )


class RequirementWarning(UserWarning):
    """A requirement that should hold and does not; with `--approvals-strict` it fails the run instead."""

    def __str__(self) -> str:
        return format_message(super().__str__())


def suggest_name(name: str, valid: Iterable[str]) -> str:
    """Return the end of a message: the nearest of the *valid* names, or all of them if none is near and they are few.

    >>> suggest_name("jsno", ["json", "copy"]), suggest_name("x", ["json", "copy"])
    ("; did you mean 'json'?", '; valid: copy, json')
    """
    names = sorted(set(valid))
    close = get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {quote(close[0])}?"
    return f"; valid: {', '.join(names)}" if 0 < len(names) <= 20 else ""
