"""Several reports: merged into one, with what they lack, and compared with each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_approvals.checks import SHOWN_STATUSES
from pytest_approvals.errors import UsageError
from pytest_approvals.errors.printable import escape_value, shorten
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.reporting.findings import STATUS_ORDER, truncate
from pytest_approvals.reporting.markdown import format_code
from pytest_approvals.reporting.report import Report, VerdictLine, merge_reports
from pytest_approvals.reporting.subject import ALL_VARIANTS

_SHARD = re.compile(r"([1-9]\d*)/([1-9]\d*)")
_LISTED = 5
"""How many runs are listed of each failure."""

RunId = tuple[str, str, str]
"""The scenario, the agent and the variant of a run."""


# --- merging ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MergedReport:
    """Several reports as one.

    Attributes:
        report: The whole; it is complete if nothing lacks.
        notes: What each of them holds, and which are of different catalogues, a sentence each.
        lacks: What is missing, a sentence each.
        overlaps: What several of them hold, a sentence each.
    """

    report: Report
    notes: tuple[str, ...]
    lacks: tuple[str, ...]
    overlaps: tuple[str, ...]


def merge_named_reports(reports: Mapping[str, Report], *, force: bool = False) -> MergedReport:
    """Merge reports of several machines or sessions; of two verdicts on the same run the later one is kept.

    Args:
        reports: The reports by the names of their files.
        force: Merge reports of different catalogues, too.

    Raises:
        UsageError: The reports are of different catalogues.
    """
    differences = [*_find_differences(reports)]
    if differences and not force:
        raise UsageError(f"{differences[0]}; --force merges them all the same")
    whole = merge_reports(reports.values())
    lacks = [f"{escape_value(name)} was cut off" for name, report in reports.items() if not report.complete]
    lacks += _missing_shards(reports)
    whole.complete = not lacks
    whole.header = replace(whole.header, shard="")
    notes = [_describe_report(name, report) for name, report in reports.items()]
    return MergedReport(whole, (*notes, *differences), tuple(lacks), tuple(_find_overlaps(reports)))


def _find_differences(reports: Mapping[str, Report]) -> Iterator[str]:
    (first, reference), *others = reports.items()
    for name, report in others:
        difference = _catalogue_difference(reference, report)
        if difference:
            yield f"{first} and {name} are of different catalogues: {difference}"


def _catalogue_difference(one: Report, other: Report) -> str:
    if one.header.package != other.header.package:
        return f"pytest-approvals {one.header.package} and {other.header.package}"
    for what, table in (("scenario", "scenarios"), ("check", "checks")):
        ours, theirs = getattr(one.header, table), getattr(other.header, table)
        changed = sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])
        if changed:
            return f"the {what} {changed[0]} is not the same"
    if one.header.catalogue and other.header.catalogue and one.header.catalogue != other.header.catalogue:
        return f"the scenario files have the digests {one.header.catalogue} and {other.header.catalogue}"
    return ""


def _missing_shards(reports: Mapping[str, Report]) -> Iterator[str]:
    found: dict[int, set[int]] = {}
    for report in reports.values():
        if match := _SHARD.fullmatch(report.header.shard):
            found.setdefault(int(match[2]), set()).add(int(match[1]))
    for count, numbers in sorted(found.items()):
        # A damaged header must not make a list without an end.
        missing = [number for number in range(1, min(count, 10_000) + 1) if number not in numbers]
        if missing:
            named = ", ".join(f"{number}/{count}" for number in missing[:_LISTED])
            more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
            yield f"shard {named}{more} is missing" if len(missing) == 1 else f"shards {named}{more} are missing"


def _find_overlaps(reports: Mapping[str, Report]) -> Iterator[str]:
    holders: dict[RunId, list[str]] = {}
    for name, report in reports.items():
        for run in sorted(_runs_of(report)):
            holders.setdefault(run, []).append(name)
    pairs = Counter(tuple(names) for names in holders.values() if len(names) > 1)
    for names, count in pairs.items():
        first = next(run for run, several in holders.items() if tuple(several) == names)
        runs = f"{count:,} run{'' if count == 1 else 's'}"
        yield f"{_join(names)} hold {runs} in common, such as {_describe_run(first)}; the last one counts"


def _join(names: Sequence[str]) -> str:
    *several, last = map(escape_value, names)
    return f"{', '.join(several)} and {last}"


def _describe_report(name: str, report: Report) -> str:
    shard = [f"shard {report.header.shard}"] if report.header.shard else []
    agents = ", ".join(each.agent for each in report.header.agents)
    count = report.footer().runs
    parts = [*shard, f"{count:,} run{'' if count == 1 else 's'}", *([f"on {agents}"] if agents else [])]
    return escape_value(f"{name}: {' · '.join(parts)}{'' if report.complete else ' · cut off'}")


# --- comparing --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReportDifference:
    """What another report says of the same runs.

    Attributes:
        new: The failures that were none before, by check and agent, with the runs.
        fixed: The failures that are none any more.
        gone: The failures whose runs were not made again.
        traits: The changed traits, a sentence each.
        transcripts: What differs in the transcripts of runs that both reports have one of, by scenario and agent.
        notes: Whether one of the reports is not complete, and how the numbers of runs differ.
    """

    new: Mapping[tuple[str, str], Sequence[VerdictLine]]
    fixed: Mapping[tuple[str, str], Sequence[VerdictLine]]
    gone: Mapping[tuple[str, str], Sequence[VerdictLine]]
    traits: tuple[str, ...]
    transcripts: Mapping[tuple[str, str], Sequence[str]]
    notes: tuple[str, ...]

    def render(self) -> str:
        """Return the difference as Markdown that can also be read as it is; it ends without a line feed."""
        blocks = [*self.notes]
        titles = {"New failures": self.new, "Fixed": self.fixed, "Failures that were not run again": self.gone}
        for title, groups in titles.items():
            if groups:
                lines = [line for (check, agent), runs in groups.items() for line in _group_lines(check, agent, runs)]
                blocks.append("\n".join([f"## {title}: {len(groups)}", "", *lines]))
        if self.traits:
            blocks.append("\n".join(["## Changed traits", "", *(f"- {text}" for text in self.traits)]))
        if self.transcripts:
            blocks.append(f"## Changed transcripts: {len(self.transcripts)}")
            blocks += _format_transcripts(self.transcripts)
        if not (self.new or self.fixed or self.gone or self.traits or self.transcripts):
            blocks.append("No failure, no trait and no transcript has changed.")
        return "\n\n".join(blocks)


def compare_reports(before: Report, after: Report) -> ReportDifference:
    """Compare two reports.

    An agent in two releases, or in a checkout, is the same agent if each report has it once.
    """
    names = _match_agents(before, after)
    old, new = _verdicts_by_place(before, names), _verdicts_by_place(after, names)
    old_runs, new_runs = _renamed_runs(before, names), _renamed_runs(after, names)
    appeared, fixed, gone = list[VerdictLine](), list[VerdictLine](), list[VerdictLine]()
    for place, line in sorted(new.items()):
        if _is_failure(line) and not (place in old and _is_failure(old[place])):
            appeared.append(line)
    for place, line in sorted(old.items()):
        if _is_failure(line) and not (place in new and _is_failure(new[place])):
            (fixed if place[:3] in new_runs else gone).append(line)
    return ReportDifference(
        new=_group_lines_by_check(appeared),
        fixed=_group_lines_by_check(fixed),
        gone=_group_lines_by_check(gone),
        traits=tuple(_changed_traits(before, after, names)),
        transcripts=_changed_transcripts(before, after, names),
        notes=tuple(_describe_extent(before, after, len(new_runs - old_runs), len(old_runs - new_runs))),
    )


def _is_failure(line: VerdictLine) -> bool:
    return line.status in SHOWN_STATUSES and line.status != "waived" and line.implied_by is None


def _match_agents(before: Report, after: Report) -> dict[str, str]:
    """Return the name by which both reports know each agent."""
    names: dict[str, str] = {}
    bases = [Counter(map(_base_name, _agents_of(report))) for report in (before, after)]
    for agent in _agents_of(before) | _agents_of(after):
        base = _base_name(agent)
        names[agent] = base if all(count[base] == 1 for count in bases) else agent
    return names


def _base_name(agent: str) -> str:
    return agent.partition("==")[0].partition("@")[0]


def _agents_of(report: Report) -> set[str]:
    return {each.agent for each in report.header.agents} | {line.agent for line in report.verdicts}


Place = tuple[str, str, str, str]
"""The scenario, the agent as both reports know it, the variant and the check of a verdict."""


def _verdicts_by_place(report: Report, names: Mapping[str, str]) -> dict[Place, VerdictLine]:
    """Return the worst verdict of each check on each run."""
    worst: dict[Place, VerdictLine] = {}
    for line in report.verdicts:
        place = (line.scenario, names[line.agent], line.variant, line.check)
        if place not in worst or _severity(line) < _severity(worst[place]):
            worst[place] = line
    return worst


def _severity(line: VerdictLine) -> int:
    # A failure that follows from another one is shown with that one only.
    order = STATUS_ORDER.index(line.status) if line.status in STATUS_ORDER else len(STATUS_ORDER)
    return order + (len(STATUS_ORDER) + 1) * (line.implied_by is not None)


def _runs_of(report: Report) -> set[RunId]:
    return {(line.scenario, line.agent, line.variant) for line in report.verdicts if line.variant != ALL_VARIANTS}


def _renamed_runs(report: Report, names: Mapping[str, str]) -> set[RunId]:
    return {(line.scenario, names[line.agent], line.variant) for line in report.verdicts}


def _group_lines_by_check(lines: Iterable[VerdictLine]) -> dict[tuple[str, str], list[VerdictLine]]:
    groups: dict[tuple[str, str], list[VerdictLine]] = {}
    for line in lines:
        groups.setdefault((line.check, line.agent), []).append(line)
    return dict(sorted(groups.items()))


def _group_lines(check: str, agent: str, lines: Sequence[VerdictLine]) -> Iterator[str]:
    yield f"- {format_code(check)} on {_escape(agent)}, {len(lines):,} run{'' if len(lines) == 1 else 's'}"
    for line in lines[:_LISTED]:
        variant = "all variants together" if line.variant == ALL_VARIANTS else line.variant
        actual = f": {_escape(truncate(line.actual.partition(chr(10))[0], 100))}" if line.actual else ""
        yield f"  - {_escape(line.scenario)} ({_escape(variant)}), {line.status}{actual}"
    if len(lines) > _LISTED:
        yield f"  - and {len(lines) - _LISTED:,} more"


def _escape(text: str) -> str:
    """Escape what makes links, code and HTML in Markdown; names can still be read as they are."""
    return re.sub(r"([\\`<\[])", r"\\\1", escape_value(shorten(text)))


def _changed_traits(before: Report, after: Report, names: Mapping[str, str]) -> Iterator[str]:
    old, new = (
        {names.get(line.agent, _base_name(line.agent)): line.traits for line in report.traits}
        for report in (before, after)
    )
    for agent in sorted(old.keys() & new.keys()):
        for trait in sorted(old[agent].keys() | new[agent].keys()):
            values = [", ".join(traits[agent].get(trait, ())) or "not seen" for traits in (old, new)]
            if values[0] != values[1]:
                yield _escape(f"{agent}: {trait}: {values[0]} → {values[1]}")


def _changed_transcripts(
    before: Report, after: Report, names: Mapping[str, str]
) -> dict[tuple[str, str], Sequence[str]]:
    """Return what differs in the first variant of a scenario on an agent whose transcript is another one."""
    old, new = _transcripts_by_run(before, names), _transcripts_by_run(after, names)
    changed: dict[tuple[str, str], Sequence[str]] = {}
    for run in sorted(old.keys() & new.keys()):
        if run[:2] not in changed and old[run] != new[run]:
            changed[run[:2]] = old[run].differences(new[run])
    return changed


def _transcripts_by_run(report: Report, names: Mapping[str, str]) -> dict[RunId, Transcript]:
    return {
        (line.scenario, names.get(line.agent, _base_name(line.agent)), line.variant): Transcript(line.lines)
        for line in report.transcripts
    }


def _format_transcripts(transcripts: Mapping[tuple[str, str], Sequence[str]]) -> Iterator[str]:
    for (scenario, agent), lines in list(transcripts.items())[:_LISTED]:
        yield f"### {_escape(scenario)} on {_escape(agent)}"
        # Indented, because a fence could end in what is quoted.
        yield "\n".join(f"    {escape_value(line)}".rstrip() for line in lines)
    if len(transcripts) > _LISTED:
        others = ", ".join(_escape(f"{scenario} on {agent}") for scenario, agent in list(transcripts)[_LISTED:])
        yield f"Others: {others}"


def _describe_extent(before: Report, after: Report, added: int, dropped: int) -> Iterator[str]:
    for which, report in (("first", before), ("second", after)):
        if not report.complete:
            yield f"The {which} report was cut off: what it lacks is not compared."
    if added or dropped:
        yield f"Runs: {added:,} only in the second report, {dropped:,} only in the first."


def _describe_run(run: RunId) -> str:
    scenario, agent, variant = run
    return escape_value(f"{scenario} on {agent} ({variant})")
