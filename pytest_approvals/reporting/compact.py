"""Compact form of a report: format 2, the lines of a report file.

Agents, checks, scenarios, sets of checks that hold, and transcripts are numbered in the order of their first use, each
in a line of its own; a line for each run refers to them by number. A run is numbered, too, so that a line that was
dropped, doubled or moved is noticed even in a file without a footer. The footer has the digest of all lines before it.

    {"event":"header","format":2,"package":"0.1.0","python":"3.11.7","seed":0}
    {"event":"agent","n":0,"agent":"reference","where":"simulation"}
    {"event":"check","n":0,"check":"asked-once","requirement":"A call must be asked about once."}
    {"event":"scenario","n":0,"scenario":"basics/pay","title":"One gated call"}
    {"event":"holds","n":0,"checks":[0]}
    {"event":"run","n":0,"scenario":0,"agent":0,"variant":"none-held","holds":0}
    {"event":"footer","runs":1,"counts":{"pass":1},"lines":6,"sha256":"..."}
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from pytest_approvals.checks import Severity
from pytest_approvals.reporting.report import (
    AbsentLine,
    ExploredLine,
    NotApplicableLine,
    Report,
    ReportedAgent,
    ReportedCheck,
    ReportedStatus,
    ReportHeader,
    StaleLine,
    TraitsLine,
    TranscriptLine,
    VerdictLine,
    WitnessLine,
    dump_json,
)

FORMAT = 2
"""The version of the format."""

Number = Annotated[int, Field(ge=0)]


class CompactPart(BaseModel):
    """Base of the lines that only this format has, and of their parts."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class CompactHeader(CompactPart):
    """What made the report: always the first line."""

    event: Literal["header"] = "header"
    format: Literal[2] = 2
    package: str
    python: str
    seed: int = 0
    catalogue: str = ""
    shard: str = ""


class AgentEntry(CompactPart):
    """An agent; one that is not `listed` is only named by a line, and nothing is known of it."""

    agent: str
    framework: str | None = None
    version: str | None = None
    where: str | None = None
    issues: str = ""
    event: Literal["agent"] = "agent"
    n: Number
    listed: bool = True


class CheckEntry(CompactPart):
    """A check; one that is not `listed` is only named by a line."""

    event: Literal["check"] = "check"
    n: Number
    check: str
    requirement: str = ""
    level: Literal["must", "should"] = "must"
    severity: Severity | None = None
    listed: bool = True


class ScenarioEntry(CompactPart):
    """A scenario; one that is not `listed` has no title."""

    event: Literal["scenario"] = "scenario"
    n: Number
    scenario: str
    title: str = ""
    listed: bool = True


class HoldsEntry(CompactPart):
    """A set of checks that hold in a run; a check is named twice if a test made the run twice."""

    event: Literal["holds"] = "holds"
    n: Number
    checks: tuple[Number, ...]


class TranscriptEntry(CompactPart):
    """A transcript, which any number of runs have."""

    event: Literal["transcript"] = "transcript"
    n: Number
    lines: tuple[str, ...]


class CompactVerdict(CompactPart):
    """A verdict of a run that says more than that the check holds.

    Attributes:
        mode: The variant in words, unless the run says it for all of its verdicts; `rerun` and `version` likewise.
    """

    check: Number
    status: ReportedStatus
    label: str | None = None
    call: str | None = None
    expected: str | None = None
    actual: str | None = None
    tool: str | None = None
    witness: tuple[WitnessLine, ...] = ()
    implied_by: str | None = None
    waiver: str | None = None
    version: str | None = None
    mode: str | None = None
    rerun: str | None = None


class RunEntry(CompactPart):
    """A run: what was judged, and its verdicts.

    Attributes:
        variant: The id of the variant; `*` for what was judged of all variants together.
        version: The version of the framework, if it is not that of the agent's entry.
        holds: The checks that hold, as the number of a set.
        transcript: The number of its transcript, if the report has it.
        remembered: Whether it was made in an earlier session, and not played again.
        verdicts: The other verdicts.
    """

    event: Literal["run"] = "run"
    n: Number
    scenario: Number
    agent: Number
    variant: str
    version: str | None = None
    holds: Number | None = None
    transcript: Number | None = None
    mode: str | None = None
    rerun: str | None = None
    remembered: bool = False
    verdicts: tuple[CompactVerdict, ...] = ()


class NotApplicableEntry(CompactPart):
    """A scenario that an agent cannot play, and the capabilities that it lacks."""

    event: Literal["not-applicable"] = "not-applicable"
    scenario: Number
    agent: Number
    missing: tuple[str, ...] = ()


class CompactFooter(CompactPart):
    """The end: counts of runs and verdicts, the number of lines before it, and their digest."""

    event: Literal["footer"] = "footer"
    runs: Number = 0
    counts: dict[str, int] = Field(default_factory=dict)
    lines: Number
    sha256: str


CompactLine = (
    CompactHeader
    | AgentEntry
    | CheckEntry
    | ScenarioEntry
    | HoldsEntry
    | TranscriptEntry
    | RunEntry
    | NotApplicableEntry
    | StaleLine
    | AbsentLine
    | TraitsLine
    | ExploredLine
    | CompactFooter
)

COMPACT_ADAPTER: TypeAdapter[Any] = TypeAdapter(Annotated[CompactLine, Field(discriminator="event")])
"""Adapter that reads a line of any kind."""

COMPACT_TYPES: dict[str, type[Any]] = {
    "header": CompactHeader,
    "agent": AgentEntry,
    "check": CheckEntry,
    "scenario": ScenarioEntry,
    "holds": HoldsEntry,
    "transcript": TranscriptEntry,
    "run": RunEntry,
    "not-applicable": NotApplicableEntry,
    "stale": StaleLine,
    "absent": AbsentLine,
    "traits": TraitsLine,
    "explored": ExploredLine,
    "footer": CompactFooter,
}
"""The kinds of lines by their events."""


def compact_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of a report file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a report of pytest-approvals",
        **COMPACT_ADAPTER.json_schema(),
    }


def encode_json(value: Any) -> bytes:
    """Return a value as one line of JSON, with its line feed."""
    return dump_json(value).encode() + b"\n"


# --- writing ----------------------------------------------------------------------------------------------------------

RunKey = tuple[str, str, str]
"""The scenario, the agent and the variant of a run."""

_LISTED_FIELDS = ("label", "call", "expected", "actual", "tool", "implied_by", "waiver")
_SHARED_FIELDS = ("version", "mode", "rerun")


class ReportEncoder:
    """Turns the parts of a report into lines, in the order in which they come.

    Each method returns the lines of its part, which begin with the entries that it is the first to refer to.

    Args:
        header: The header; its agents, checks and scenarios are entries of their own.
    """

    def __init__(self, header: ReportHeader) -> None:
        self._header = header
        self._agents: dict[str, int] = {}
        self._checks: dict[str, int] = {}
        self._scenarios: dict[str, int] = {}
        self._holds: dict[tuple[int, ...], int] = {}
        self._transcripts: dict[bytes, int] = {}
        self._versions: dict[str, str | None] = {}
        self._runs = 0
        self._lines = 0
        self._digest = hashlib.sha256()

    def begin(self) -> bytes:
        """Return the header, and the entries of all that it lists."""
        header = self._header
        first = {"event": "header", "format": FORMAT, "package": header.package, "python": header.python}
        more = {name: value for name in ("catalogue", "shard") if (value := getattr(header, name))}
        lines = [self._finish([{**first, "seed": header.seed, **more}])]
        lines += [self.add_agent(agent) for agent in header.agents]
        lines += [self._name_check(slug) for slug in header.checks]
        lines += [self.add_scenario(name, title) for name, title in header.scenarios.items()]
        return b"".join(lines)

    def add_agent(self, agent: ReportedAgent) -> bytes:
        """Return the entry of an agent, if it is new."""
        self._versions.setdefault(agent.agent, agent.version)
        return self._entry("agent", self._agents, agent.agent, agent.to_dict())

    def add_scenario(self, name: str, title: str) -> bytes:
        """Return the entry of a scenario, if it is new."""
        return self._entry("scenario", self._scenarios, name, {"scenario": name, "title": title})

    def add_run(
        self,
        key: RunKey,
        verdicts: Iterable[VerdictLine],
        transcript: Sequence[str] | None,
        *,
        remembered: bool = False,
    ) -> bytes:
        """Return the line of a run."""
        scenario, agent, variant = key
        before: list[bytes] = [self._name_agent(agent), self._name_scenario(scenario)]
        run: dict[str, Any] = {"scenario": self._scenarios[scenario], "agent": self._agents[agent], "variant": variant}
        listed = list[VerdictLine]()
        holding = list[int]()
        version = self._versions.get(agent)
        lines = list(verdicts)
        if lines and all(line.version == lines[0].version for line in lines) and lines[0].version is not None:
            run |= {"version": lines[0].version} if lines[0].version != version else {}
            version = lines[0].version
        for line in lines:
            before.append(self._name_check(line.check))
            if _is_plain(line, version):
                holding.append(self._checks[line.check])
            else:
                listed.append(line)
        if holding:
            holds = tuple(sorted(holding))
            before.append(self._entry("holds", self._holds, holds, {"checks": holds}))
            run["holds"] = self._holds[holds]
        if transcript is not None:
            told = list(transcript)
            digest = hashlib.sha256(encode_json(told)).digest()
            before.append(self._entry("transcript", self._transcripts, digest, {"lines": told}))
            run["transcript"] = self._transcripts[digest]
        shared = {"version": version, **{name: _common_value(listed, name) for name in ("mode", "rerun")}}
        run |= {name: shared[name] for name in ("mode", "rerun") if shared[name] is not None}
        if remembered:
            run["remembered"] = True
        if listed:
            run["verdicts"] = [self._dump_verdict(line, shared) for line in listed]
        before.append(self._finish([{"event": "run", "n": self._runs, **run}]))
        self._runs += 1
        return b"".join(before)

    def add_line(self, line: NotApplicableLine | StaleLine | AbsentLine | TraitsLine | ExploredLine) -> bytes:
        """Return a line that is about no run."""
        body = line.to_dict()
        if not isinstance(line, NotApplicableLine):
            return self._finish([{"event": line.event, **body}])
        before = [self._name_agent(line.agent), self._name_scenario(line.scenario)]
        body |= {"scenario": self._scenarios[line.scenario], "agent": self._agents[line.agent]}
        return b"".join([*before, self._finish([{"event": line.event, **body}])])

    def end(self, runs: int, counts: dict[str, int]) -> bytes:
        """Return the footer."""
        footer = {"event": "footer", "runs": runs, "counts": counts, "lines": self._lines}
        return encode_json({**footer, "sha256": self._digest.hexdigest()})

    def _name_agent(self, name: str) -> bytes:
        return self._entry("agent", self._agents, name, {"agent": name, "listed": False})

    def _name_scenario(self, name: str) -> bytes:
        return self._entry("scenario", self._scenarios, name, {"scenario": name, "listed": False})

    def _name_check(self, slug: str) -> bytes:
        if slug in self._checks:
            return b""
        known = self._header.checks.get(slug)
        body = {"listed": False} if known is None else known.to_dict()
        return self._entry("check", self._checks, slug, {"check": slug, **body})

    def _entry(self, kind: str, table: dict[Any, int], key: Any, body: dict[str, Any]) -> bytes:
        if key in table:
            return b""
        table[key] = len(table)
        return self._finish([{"event": kind, "n": table[key], **body}])

    def _dump_verdict(self, line: VerdictLine, shared: dict[str, str | None]) -> dict[str, Any]:
        dumped: dict[str, Any] = {"check": self._checks[line.check], "status": line.status}
        dumped |= {name: value for name in _LISTED_FIELDS if (value := getattr(line, name)) is not None}
        if line.witness:
            dumped["witness"] = [{"n": event.n, "text": event.text} for event in line.witness]
        own = {name: getattr(line, name) for name in _SHARED_FIELDS}
        # None, too, has to be said where the run says something else.
        return dumped | {name: value for name, value in own.items() if value != shared[name]}

    def _finish(self, values: Iterable[dict[str, Any]]) -> bytes:
        data = b"".join(map(encode_json, values))
        self._digest.update(data)
        self._lines += data.count(b"\n")
        return data


def _is_plain(line: VerdictLine, version: str | None) -> bool:
    """Return whether a verdict says nothing but that its check holds."""
    return (
        line.status == "pass"
        and line.version == version
        and not line.witness
        and line.mode is None
        and line.rerun is None
        and all(getattr(line, name) is None for name in _LISTED_FIELDS)
    )


def _common_value(lines: Sequence[VerdictLine], name: str) -> str | None:
    values = {getattr(line, name) for line in lines}
    return values.pop() if len(values) == 1 else None


def encode_report(report: Report) -> bytes:
    """Return a whole report, in a fixed order; one that is not complete has no footer."""
    encoder = ReportEncoder(report.header)
    parts = [encoder.begin()]
    body = list(report.body())
    parts += [encoder.add_line(line) for line in body if isinstance(line, NotApplicableLine)]
    verdicts: dict[RunKey, list[VerdictLine]] = {}
    transcripts: dict[RunKey, list[tuple[str, ...]]] = {}
    for line in body:
        if isinstance(line, VerdictLine):
            verdicts.setdefault((line.scenario, line.agent, line.variant), []).append(line)
        elif isinstance(line, TranscriptLine):
            transcripts.setdefault((line.scenario, line.agent, line.variant), []).append(line.lines)
    for key in sorted(verdicts.keys() | transcripts.keys()):
        # A test that makes the same run twice has one list of verdicts, and two transcripts.
        for lines, told in zip_longest([verdicts.get(key, [])], transcripts.get(key, [None]), fillvalue=None):
            parts.append(encoder.add_run(key, lines or [], told, remembered=key in report.remembered))
    parts += [
        encoder.add_line(line) for line in body if isinstance(line, (StaleLine, AbsentLine, TraitsLine, ExploredLine))
    ]
    if report.complete:
        footer = report.footer()
        parts.append(encoder.end(footer.runs, footer.counts))
    return b"".join(parts)


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Mistake(Exception):
    """A line that does not fit to those before it."""

    what: str


class ReportDecoder:
    """Puts a report together from its lines.

    Attributes:
        report: What was read so far; complete once the footer was there.
    """

    def __init__(self, header: CompactHeader) -> None:
        self._about = header
        self._agents: list[AgentEntry] = []
        self._checks: list[CheckEntry] = []
        self._scenarios: list[ScenarioEntry] = []
        self._holds: list[HoldsEntry] = []
        self._transcripts: list[TranscriptEntry] = []
        self._runs = 0
        self.report = Report(header=self._header(), complete=False)

    def add(self, line: CompactLine) -> None:
        """Add a line that is neither header nor footer.

        Raises:
            Mistake: It does not fit to those before it.
        """
        match line:
            case AgentEntry():
                self._add_entry(self._agents, line)
            case CheckEntry():
                self._add_entry(self._checks, line)
            case ScenarioEntry():
                self._add_entry(self._scenarios, line)
            case HoldsEntry():
                self._add_entry(self._holds, line)
            case TranscriptEntry():
                self._add_entry(self._transcripts, line)
            case RunEntry():
                self._check_number("run", line.n, self._runs)
                self._runs += 1
                for part in self._expand_run(line):
                    self.report.add(part)
                if line.remembered:
                    self.report.remembered.add(self._locate_run(line))
            case NotApplicableEntry():
                scenario = _get(self._scenarios, line.scenario, "scenario").scenario
                agent = _get(self._agents, line.agent, "agent").agent
                self.report.add(NotApplicableLine(scenario=scenario, agent=agent, missing=line.missing))
            case StaleLine() | AbsentLine() | TraitsLine() | ExploredLine():
                self.report.add(line)

    def finish(self) -> Report:
        """Return the report."""
        self.report.header = self._header()
        return self.report

    def _add_entry(self, table: list[Any], entry: Any) -> None:
        self._check_number(entry.event, entry.n, len(table))
        table.append(entry)

    def _check_number(self, what: str, number: int, expected: int) -> None:
        if number != expected:
            raise Mistake(f"{what} {number} is out of order: expected {what} {expected}")

    def _locate_run(self, run: RunEntry) -> RunKey:
        scenario = _get(self._scenarios, run.scenario, "scenario").scenario
        return scenario, _get(self._agents, run.agent, "agent").agent, run.variant

    def _expand_run(self, run: RunEntry) -> Iterator[VerdictLine | TranscriptLine]:
        agent = _get(self._agents, run.agent, "agent")
        version = run.version if run.version is not None else agent.version
        place: dict[str, Any] = dict(zip(("scenario", "agent", "variant"), self._locate_run(run), strict=True))
        if run.holds is not None:
            for number in _get(self._holds, run.holds, "holds").checks:
                slug = _get(self._checks, number, "check").check
                yield VerdictLine(**place, version=version, check=slug, status="pass")
        shared = {"version": version, "mode": run.mode, "rerun": run.rerun}
        for verdict in run.verdicts:
            own = {name: getattr(verdict, name) for name in verdict.model_fields_set}
            slug = _get(self._checks, verdict.check, "check").check
            yield VerdictLine(**{**place, **shared, **own, "check": slug})
        if run.transcript is not None:
            yield TranscriptLine(**place, lines=_get(self._transcripts, run.transcript, "transcript").lines)

    def _header(self) -> ReportHeader:
        about = self._about
        known = [each.name for each in fields(ReportedAgent)]
        return ReportHeader(
            package=about.package,
            python=about.python,
            seed=about.seed,
            catalogue=about.catalogue,
            shard=about.shard,
            agents=tuple(
                ReportedAgent(**{name: getattr(each, name) for name in known}) for each in self._agents if each.listed
            ),
            checks={
                each.check: ReportedCheck(requirement=each.requirement, level=each.level, severity=each.severity)
                for each in self._checks
                if each.listed
            },
            scenarios={each.scenario: each.title for each in self._scenarios if each.listed},
        )


def _get(table: Sequence[Any], number: int, what: str) -> Any:
    if number >= len(table):
        raise Mistake(f"unknown {what} {number}: {len(table)} came before")
    return table[number]
