"""Report: its lines, and the whole report in memory.

A report is a header, a line for each verdict, further lines about the runs, and a footer with counts. All forms of the
report are made from these lines, and reporters of extensions get them. Written as JSON lines they are format 1 of the
report file, which is still read; `compact.py` has the format that is written.

Pydantic reads lines from files (`files.py`). Importing it here would delay each first verdict.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, Protocol, Self

from pytest_approvals.checks import Severity
from pytest_approvals.reporting.subject import ALL_VARIANTS

FORMAT = 1
"""The version of the format that has these lines."""

ReportedStatus = Literal[
    "pass", "fail", "warning", "unknown", "not-applicable", "not-observable", "harness-error", "waived"
]


@dataclass(frozen=True, kw_only=True)
class ReportPart:
    """Base of all lines of a report and their parts."""

    # For pydantic, where lines are read.
    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    def to_dict(self, *, with_defaults: bool = False) -> dict[str, Any]:
        """Return the fields as plain values: those that are not the default, or all that are not None."""
        body: dict[str, Any] = {}
        kind: Any = type(self)
        for name, default in _list_defaults(kind):
            value = getattr(self, name)
            if (value is not None) if with_defaults else (value is not default and value != default):
                body[name] = _to_plain(value, with_defaults)
        return body

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Self:
        """Return the part whose `to_dict` was *body*; only for what this package has written itself."""
        return cls(**body)


@cache
def _list_defaults(kind: type[ReportPart]) -> tuple[tuple[str, Any], ...]:
    """Return the fields, and what they are unless they are written."""
    return tuple((each.name, each.default) for each in fields(kind))


def _to_plain(value: Any, with_defaults: bool) -> Any:
    if isinstance(value, ReportPart):
        return value.to_dict(with_defaults=with_defaults)
    if isinstance(value, (tuple, list)):
        return [_to_plain(each, with_defaults) for each in value]
    if isinstance(value, dict):
        return {name: _to_plain(each, with_defaults) for name, each in value.items()}
    return value


class _Pattern:
    """Pattern of a text, for pydantic."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Return the schema of the text."""
        from pydantic_core import core_schema

        return core_schema.str_schema(pattern=self.pattern)


class KnownFacts(Protocol):
    """What is known of an agent that runs."""

    @property
    def framework(self) -> str | None:
        """The framework that it is built with."""

    @property
    def version(self) -> str | None:
        """The version of the framework."""

    @property
    def where(self) -> str | None:
        """The module that it comes from."""

    @property
    def issues(self) -> str:
        """The address of the tracker where issues about it go."""


@dataclass(frozen=True, kw_only=True)
class ReportedAgent(ReportPart):
    """An agent that took part: what it was in truth, and where issues about it go."""

    agent: str
    framework: str | None = None
    version: str | None = None
    where: str | None = None
    issues: str = ""

    @classmethod
    def of(cls, name: str, facts: KnownFacts) -> ReportedAgent:
        """Return an agent as reports name it, by what is known of it."""
        return cls(agent=name, framework=facts.framework, version=facts.version, where=facts.where, issues=facts.issues)


@dataclass(frozen=True, kw_only=True)
class ReportedCheck(ReportPart):
    """A check that was applied: its requirement, whether it must hold or should, and what a failure can cost."""

    requirement: str
    level: Literal["must", "should"] = "must"
    severity: Severity | None = None
    """None in reports of releases that had no severities."""


@dataclass(frozen=True, kw_only=True)
class ReportHeader(ReportPart):
    """What ran: always the first line."""

    event: Literal["header"] = "header"
    format: int = FORMAT
    package: str
    python: str
    seed: int = 0
    catalogue: str = ""
    """Digest of the scenario files that the runs were chosen from; empty if that is not known."""
    shard: str = ""
    """Which part of the runs was made, `I/N`; empty for all."""
    agents: tuple[ReportedAgent, ...] = ()
    checks: dict[str, ReportedCheck] = field(default_factory=dict)
    scenarios: dict[str, str] = field(default_factory=dict)
    """Ids and titles."""


@dataclass(frozen=True, kw_only=True)
class WitnessLine(ReportPart):
    """An event that shows a verdict: its position in the journal, and what it says."""

    n: int
    text: str


@dataclass(frozen=True, kw_only=True)
class VerdictLine(ReportPart):
    """What one check says about one run; about one call of it, where it does not hold.

    Attributes:
        variant: The id of the variant; `*` where the check judges all variants together.
        mode: The variant in words, where the verdict is shown.
        implied_by: The failure that this one follows from, and is shown with.
        waiver: Why it is waived, with the issue.
        rerun: The command that shows it again.
        tool: The tool of the call in the user's own code, and where it stands.
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
    tool: str | None = None
    witness: tuple[WitnessLine, ...] = ()
    implied_by: str | None = None
    waiver: str | None = None
    mode: str | None = None
    rerun: str | None = None

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Self:
        """See `ReportPart.from_dict`."""
        witness = tuple(WitnessLine(**each) for each in body.get("witness", ()))
        return cls(**{**body, "witness": witness})


@dataclass(frozen=True, kw_only=True)
class TranscriptLine(ReportPart):
    """The transcript of a run: of the base variant, and of each run with a finding."""

    event: Literal["transcript"] = "transcript"
    scenario: str
    agent: str
    variant: str
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class NotApplicableLine(ReportPart):
    """A scenario that an agent cannot play, and the capabilities that it lacks."""

    event: Literal["not-applicable"] = "not-applicable"
    scenario: str
    agent: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StaleLine(ReportPart):
    """A waiver whose failure did not come."""

    event: Literal["stale"] = "stale"
    agent: str
    waiver: str


@dataclass(frozen=True, kw_only=True)
class AbsentLine(ReportPart):
    """An agent that was asked for and not judged, because it could not be started."""

    event: Literal["absent"] = "absent"
    agent: str
    why: str


@dataclass(frozen=True, kw_only=True)
class TraitsLine(ReportPart):
    """The design choices that an agent showed in its runs of scenarios, neither right nor wrong: values by trait."""

    event: Literal["traits"] = "traits"
    agent: str
    traits: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ExploredLine(ReportPart):
    """What was explored on an agent: the stories of a seed, or a part of them.

    Attributes:
        part: Which of the stories, `I/N`; empty for all.
        stories: How many were played.
        skipped: How many the agent cannot play.
        unexercised: How many took another way than they were drawn for.
        known: How many failed from a known cause.
        found: The smallest story of each cause that was found, as the text of a scenario file, by its id.
    """

    event: Literal["explored"] = "explored"
    agent: str
    seed: int = 0
    profile: str = ""
    part: str = ""
    stories: int = 0
    skipped: int = 0
    unexercised: int = 0
    known: int = 0
    found: dict[Annotated[str, _Pattern("^explored/[a-z0-9-]+$")], str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ReportFooter(ReportPart):
    """The end: how many runs there were, and how many verdicts of each status."""

    event: Literal["footer"] = "footer"
    runs: int = 0
    counts: dict[str, int] = field(default_factory=dict)


ReportLine = (
    ReportHeader
    | VerdictLine
    | TranscriptLine
    | NotApplicableLine
    | StaleLine
    | AbsentLine
    | TraitsLine
    | ExploredLine
    | ReportFooter
)

LINE_TYPES: dict[str, type[ReportPart]] = {
    "header": ReportHeader,
    "verdict": VerdictLine,
    "transcript": TranscriptLine,
    "not-applicable": NotApplicableLine,
    "stale": StaleLine,
    "absent": AbsentLine,
    "traits": TraitsLine,
    "explored": ExploredLine,
    "footer": ReportFooter,
}
"""The kinds of lines by their events."""


# Listed here, because what Python calls printable differs between its releases, and a report must not.
_ACTS = re.compile(
    r"[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    r"\U000e0000-\U000e007f]|(?<=##)\[|(?<=##vso)\[|(?<=##teamcity)\["
)


def dump_json(value: Any) -> str:
    r"""Return a value as one line of JSON, with escapes for what terminals or CI systems act on or UTF-8 lacks.

    Those are control characters, marks of the writing direction, characters without a width, commands in a line, and
    halves of surrogate pairs.

    >>> print(dump_json({"a": "b\x9b\u202e\ud800é ##[error]"}))
    {"a":"b\u009b\u202e\ud800é ##\u005berror]"}
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _ACTS.sub(lambda found: _escape_in_json(found[0]), text)


def _escape_in_json(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def dump_line(line: ReportLine) -> str:
    """Return a line as JSON, without its line feed."""
    if isinstance(line, (ReportHeader, ReportFooter)):
        body = line.to_dict(with_defaults=True)
    else:
        # The event is a default, too, but readers tell lines apart by it.
        body = {"event": line.event, **line.to_dict()}
    return dump_json(body)


@dataclass(kw_only=True)
class Report:
    """A whole report.

    Attributes:
        remembered: The scenario, the agent and the variant of each run that was made in an earlier session.
        complete: Whether it has its footer.
    """

    header: ReportHeader
    verdicts: list[VerdictLine] = field(default_factory=list)
    transcripts: list[TranscriptLine] = field(default_factory=list)
    not_applicable: list[NotApplicableLine] = field(default_factory=list)
    stale: list[StaleLine] = field(default_factory=list)
    absent: list[AbsentLine] = field(default_factory=list)
    traits: list[TraitsLine] = field(default_factory=list)
    explored: list[ExploredLine] = field(default_factory=list)
    remembered: set[tuple[str, str, str]] = field(default_factory=set)
    complete: bool = True

    def add(self, line: ReportLine) -> None:
        """Add a line that is neither header nor footer."""
        match line:
            case VerdictLine():
                self.verdicts.append(line)
            case TranscriptLine():
                self.transcripts.append(line)
            case NotApplicableLine():
                self.not_applicable.append(line)
            case StaleLine():
                self.stale.append(line)
            case AbsentLine():
                self.absent.append(line)
            case TraitsLine():
                self.traits.append(line)
            case ExploredLine():
                self.explored.append(line)

    def body(self) -> Iterator[ReportLine]:
        """Yield all lines between header and footer, in a fixed order."""
        yield from sorted(self.not_applicable, key=lambda line: (line.scenario, line.agent))
        yield from sorted(self.verdicts, key=lambda line: (*_verdict_sort_key(line), line.status))
        yield from sorted(self.transcripts, key=lambda line: (line.scenario, line.agent, line.variant))
        yield from sorted(self.stale, key=lambda line: (line.agent, line.waiver))
        yield from sorted(self.absent, key=lambda line: line.agent)
        yield from sorted(self.traits, key=lambda line: line.agent)
        yield from sorted(self.explored, key=_line_identity)

    def footer(self) -> ReportFooter:
        """Return the footer, with the counts of all lines."""
        counts = ReportCounter()
        for line in self.body():
            counts.add(line)
        return counts.footer()


class ReportCounter:
    """Counter of runs, and of verdicts by status."""

    def __init__(self) -> None:
        self._runs: set[tuple[str, str, str]] = set()
        self._statuses: Counter[str] = Counter()

    def add(self, line: ReportLine) -> None:
        """Count a line."""
        if isinstance(line, VerdictLine):
            self._statuses[line.status] += 1
            if line.variant != ALL_VARIANTS:
                self._runs.add((line.scenario, line.agent, line.variant))
        elif isinstance(line, StaleLine):
            self._statuses["stale"] += 1
        elif isinstance(line, AbsentLine):
            self._statuses["absent"] += 1

    def footer(self) -> ReportFooter:
        """Return the counts."""
        return ReportFooter(runs=len(self._runs), counts=dict(sorted(self._statuses.items())))


def _verdict_sort_key(line: VerdictLine) -> tuple[str, ...]:
    return line.scenario, line.agent, line.variant, line.check, line.label or ""


def merge_reports(reports: Iterable[Report]) -> Report:
    """Return several reports as one; of two lines about the same verdict the later one is kept.

    The header is that of the first report, with the agents, checks and scenarios of all. The result is complete if all
    of them are.
    """
    several = list(reports)
    header = several[0].header
    agents = {each.agent: each for report in several for each in report.header.agents}
    checks = {slug: each for report in several for slug, each in report.header.checks.items()}
    titles = {name: title for report in several for name, title in report.header.scenarios.items()}
    whole = Report(
        header=replace(header, agents=tuple(agents.values()), checks=checks, scenarios=dict(sorted(titles.items()))),
        complete=all(report.complete for report in several),
    )
    for line in {_line_identity(line): line for report in several for line in report.body()}.values():
        whole.add(line)
    # Of traits the later line does not replace the earlier one: their values add up.
    whole.traits = _merge_traits_lines(line for report in several for line in report.traits)
    for report in several:
        whole.remembered -= {(line.scenario, line.agent, line.variant) for line in report.verdicts}
        whole.remembered |= report.remembered
    return whole


def _merge_traits_lines(lines: Iterable[TraitsLine]) -> list[TraitsLine]:
    """Return one line for each agent, with the values of all its lines."""
    merged: dict[str, dict[str, set[str]]] = {}
    for line in lines:
        for name, values in line.traits.items():
            merged.setdefault(line.agent, {}).setdefault(name, set()).update(values)
    return [
        TraitsLine(agent=agent, traits={name: tuple(sorted(values)) for name, values in traits.items()})
        for agent, traits in merged.items()
    ]


def _line_identity(line: ReportLine) -> tuple[Any, ...]:
    if isinstance(line, VerdictLine):
        return (line.event, *_verdict_sort_key(line))
    if isinstance(line, TranscriptLine):
        return line.event, line.scenario, line.agent, line.variant
    # These models hold a dict, so they cannot be hashed as a whole.
    if isinstance(line, TraitsLine):
        return line.event, line.agent
    if isinstance(line, ExploredLine):
        return line.event, line.agent, line.seed, line.profile, line.part
    return (line,)
