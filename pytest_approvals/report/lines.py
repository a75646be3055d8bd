"""
The report as JSON lines: a header, a line a verdict, what else belongs to the runs, and a footer with counts.

A file without its footer was cut off. Everything else that is shown is made from these lines. Lines that say nothing
about a field leave it out. The JSON Schema of a line is `docs/report.schema.json`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

FORMAT = 1
"""The version of the report format, in every header."""

ReportedStatus = Literal[
    "pass", "fail", "warning", "unknown", "not-applicable", "not-observable", "harness-error", "waived"
]


class Part(BaseModel):
    """What lines are made of."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ReportedAgent(Part):
    """An agent that took part: what it was in truth, and where issues about it go."""

    agent: str
    framework: str | None = None
    version: str | None = None
    where: str | None = None
    issues: str = ""


class ReportedCheck(Part):
    """A check that was applied: its requirement, and whether it must hold or should."""

    requirement: str
    level: Literal["must", "should"] = "must"


class ReportHeader(Part):
    """What ran: always the first line."""

    event: Literal["header"] = "header"
    format: int = FORMAT
    package: str
    python: str
    seed: int = 0
    agents: tuple[ReportedAgent, ...] = ()
    checks: dict[str, ReportedCheck] = Field(default_factory=dict)
    scenarios: dict[str, str] = Field(default_factory=dict)
    """Ids and titles."""


class WitnessLine(Part):
    """An event that shows a verdict: its position in the journal, and what it says."""

    n: int
    text: str


class VerdictLine(Part):
    """
    What one check says about one run; about one call of it, where it does not hold.

    Attributes:
        variant: The id of the variant; `*` where the check judges all variants together.
        mode: The variant in words, where the verdict is shown.
        implied_by: The failure that this one follows from, and is shown with.
        waiver: Why it is waived, with the issue.
        rerun: The command that shows it again.
    """

    event: Literal["verdict"] = "verdict"
    scenario: str
    agent: str
    version: str | None = None
    variant: str
    check: str
    status: ReportedStatus
    label: str | None = None
    call: str | None = None
    expected: str | None = None
    actual: str | None = None
    witness: tuple[WitnessLine, ...] = ()
    implied_by: str | None = None
    waiver: str | None = None
    mode: str | None = None
    rerun: str | None = None


class TranscriptLine(Part):
    """The transcript of a run: of the base variant, and of each run with a finding."""

    event: Literal["transcript"] = "transcript"
    scenario: str
    agent: str
    variant: str
    lines: tuple[str, ...]


class NotApplicableLine(Part):
    """A scenario that an agent cannot play, and the capabilities that it lacks."""

    event: Literal["not-applicable"] = "not-applicable"
    scenario: str
    agent: str
    missing: tuple[str, ...] = ()


class StaleLine(Part):
    """A waiver whose failure did not come."""

    event: Literal["stale"] = "stale"
    agent: str
    waiver: str


class AbsentLine(Part):
    """An agent that was asked for and not judged, because it could not be started."""

    event: Literal["absent"] = "absent"
    agent: str
    why: str


class ReportFooter(Part):
    """The end: how many runs there were, and how many verdicts of each status."""

    event: Literal["footer"] = "footer"
    runs: int = 0
    counts: dict[str, int] = Field(default_factory=dict)


Line = ReportHeader | VerdictLine | TranscriptLine | NotApplicableLine | StaleLine | AbsentLine | ReportFooter

ANY_LINE: TypeAdapter[Any] = TypeAdapter(Annotated[Line, Field(discriminator="event")])
"""Reads a line of any kind."""

KINDS: dict[str, type[Part]] = {
    "header": ReportHeader,
    "verdict": VerdictLine,
    "transcript": TranscriptLine,
    "not-applicable": NotApplicableLine,
    "stale": StaleLine,
    "absent": AbsentLine,
    "footer": ReportFooter,
}
"""The kinds of lines by their events."""


def dumped(line: Line) -> str:
    """Gives a line as it stands in the file, without its line feed."""
    if isinstance(line, (ReportHeader, ReportFooter)):
        return line.model_dump_json(exclude_none=True)
    body = line.model_dump_json(exclude_defaults=True)
    return f'{{"event":"{line.event}",{body[1:]}'


def report_schema() -> dict[str, Any]:
    """Gives the JSON Schema of one line of a report."""
    schema = ANY_LINE.json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a report of pytest-approvals",
        **schema,
    }
