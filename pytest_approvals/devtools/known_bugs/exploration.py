"""Exploration for known bugs: are they found without any scenario of the catalogue?

Drawn stories are played on the bad release of a row until one finds the bug, in the sense of `search.py`: a check of
the row fails there, and not on the good release, or not about the same call in the same turn. The flavours that a row
means take turns.

In a checkout, `python -m pytest_approvals.devtools.known_bugs.exploration` explores the rows of `docs/known-bugs.yaml`,
keeps what came of each, goes on with those that were missed in less time, and writes the table of `docs/known-bugs.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path

from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.campaigns.exploration import Case, Exploration, StoryPlayer
from pytest_approvals.checks import CHECKS
from pytest_approvals.devtools.known_bugs import KnownBug, load_known_bugs
from pytest_approvals.devtools.known_bugs.search import flavour_pairs
from pytest_approvals.errors import ApprovalsError, UnknownName, UsageError
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.generation.features import available_features
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.variants import allowed_variants

TABLE = Path("docs/known-bugs.yaml")
PAGE = Path("docs/known-bugs.md")

RESULTS_FILE = Path(__file__).with_name("explored.json")
"""What became of the rows that were explored."""

HEADING = "## Found by exploring"
"""The heading of the generated part of the page, which is its last one."""

MAX_UNPLAYED = 20
"""After so many stories of a flavour that the harness could not play to their end, and none that it could, no other
one is tried."""

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploredBug:
    """The result of the exploration for a known bug.

    Attributes:
        turns: How many turns the flavours of the row have had.
        stories: How many stories were played on the bad release.
        seconds: The CPU time that they took, with those on the good release.
        checks: The checks of the row that found it; none if it was missed.
        agent, variant: What was played when it was found.
        number: The number of the story within the seed.
        why: Why it could not be explored.
    """

    turns: int = 0
    stories: int = 0
    seconds: float = 0.0
    checks: tuple[str, ...] = ()
    agent: str = ""
    variant: str = ""
    number: int = -1
    why: str = ""


def explore_known_bug(
    row: KnownBug,
    *,
    seconds: float,
    seed: int = 0,
    profile: str = "adversarial",
    before: ExploredBug | None = None,
    read_time: Callable[[], float] | None = None,
) -> ExploredBug:
    """Play drawn stories on the bad release of a row until one finds its bug.

    Args:
        row: The row.
        seconds: How much CPU time they may take.
        seed: The seed of the stories.
        profile: The profile that they are drawn in.
        before: What became of it in less time; this goes on from there.
        read_time: Returns the CPU time used so far; by default by this process and those that it has started.
    """
    read_time = read_time or read_cpu_time
    done = before or ExploredBug()
    named, *others = [_Pair.create(row, bad, good, seed, profile) for bad, good in flavour_pairs(row)]
    if why := named.unavailable:
        return ExploredBug(why=why)
    # Making an environment is not part of it.
    began = read_time() - done.seconds
    for turn in count(done.turns):
        used = read_time() - began
        if used >= seconds:
            return replace(done, turns=turn, seconds=used)
        # The flavour that the row names takes every other turn.
        round_number, is_odd = divmod(turn, 2)
        pair, number = named, round_number if others else turn
        if is_odd and others:
            number, k = divmod(round_number, len(others))
            pair = others[k]
        # A release may lack a flavour.
        if pair.unavailable:
            continue
        found, is_played = pair.find_bug(number)
        if pair is named and pair.unavailable:
            return ExploredBug(why=pair.unavailable)
        done = replace(done, stories=done.stories + is_played)
        if found is not None:
            checks, variant = found
            agent, used = str(pair.bad.release.spec), read_time() - began
            return replace(
                done, turns=turn + 1, seconds=used, checks=checks, agent=agent, variant=variant, number=number
            )
    raise AssertionError("unreachable")


@dataclass(slots=True, kw_only=True)
class _Pair:
    """The bad and the good agent of a row in one flavour, and the stories that are drawn for the bad one."""

    row: KnownBug
    bad: AgentRuns
    good: AgentRuns | None
    stories: dict[str, Scenario]
    seed: int
    profile: str
    exploration: Exploration | None = None
    unplayed: int = 0
    why_unplayed: str = ""

    @classmethod
    def create(cls, row: KnownBug, bad: AgentRelease, good: AgentRelease | None, seed: int, profile: str) -> _Pair:
        stories: dict[str, Scenario] = {}
        limit = RunLimits(seconds=5.0)
        return cls(
            row=row,
            bad=AgentRuns(bad, stories, limit),
            good=None if good is None else AgentRuns(good, stories, limit),
            stories=stories,
            seed=seed,
            profile=profile,
        )

    @property
    def unavailable(self) -> str | None:
        """Why one of the agents cannot be started, or plays nothing; None if both can."""
        if self.unplayed >= MAX_UNPLAYED:
            return f"no story can be played: {self.why_unplayed}"
        return self.bad.unavailable or (self.good.unavailable if self.good is not None else None)

    def find_bug(self, number: int) -> tuple[tuple[tuple[str, ...], str] | None, bool]:
        """Play a story; return the checks of the row that find the bug, and the variant, or None.

        The second value says whether it was played: the agent may be unable to.
        """
        if self.exploration is None:
            player = StoryPlayer(self.bad.source, get_session_loop().run)
            self.exploration = Exploration(player=player, seed=self.seed, profile=self.profile)
        case = self.exploration.draw_case(number)
        if case is None:
            return None, False
        self.stories[case.story.id] = case.story
        try:
            found = self._find_in(case)
            self._count_unplayed(case)
            return found, True
        finally:
            del self.stories[case.story.id]
            for runs in (self.bad, self.good):
                if runs is not None:
                    runs.forget(case.story.id)

    def _count_unplayed(self, case: Case) -> None:
        """Count the stories that were not played to their end before the first one that was."""
        reasons = [self.bad.why_unplayed(case.story.id, variant) for variant in case.variants]
        if all(reasons) and self.unplayed >= 0:
            self.unplayed += 1
            self.why_unplayed = reasons[0] or ""
        elif not all(reasons):
            self.unplayed = -1

    def _find_in(self, case: Case) -> tuple[tuple[str, ...], str] | None:
        name = case.story.id
        for variant in case.variants:
            symptoms = {each for each in self.bad.symptoms(name, variant) if each.check in self.row.checks}
            if symptoms and self.good is not None:
                if not self._good_plays(case.story, (variant,)):
                    continue
                symptoms -= self.good.symptoms(name, variant)
            if symptoms:
                return self._order({symptom.check for symptom in symptoms}), variant.id
        compared = {slug for slug in self.row.checks if CHECKS[slug].group is not None}
        if not compared or len(case.variants) < 2:
            return None
        hits = compared & self.bad.failed_group_checks(name, case.variants)
        if hits and self.good is not None:
            if not self._good_plays(case.story, case.variants):
                return None
            hits -= self.good.failed_group_checks(name, case.variants)
        return (self._order(hits), "*") if hits else None

    def _good_plays(self, story: Scenario, variants: Sequence[Variant]) -> bool:
        """Return whether the good agent plays a story to its end; otherwise a failure of the bad one proves nothing."""
        assert self.good is not None
        allowed = allowed_variants(story, self.good.source.facts, {})
        return all(each in allowed and self.good.why_unplayed(story.id, each) is None for each in variants)

    def _order(self, checks: set[str] | frozenset[str]) -> tuple[str, ...]:
        return tuple(slug for slug in self.row.checks if slug in checks)


# --- CPU time ---------------------------------------------------------------------------------------------------------


def read_cpu_time() -> float:
    """Return the CPU seconds of this process and of those that it has started, as far as the system tells.

    Agents in environments are processes that live on, so their time is not yet that of ended children.
    """
    own = os.times()
    total = own.user + own.system + own.children_user + own.children_system
    # Without this folder, living children count when they end.
    return (
        total + sum(_read_times_of_descendants(_PROC, os.getpid())) if _PROC.is_dir() else max(total, time.monotonic())
    )


def _read_times_of_descendants(folder: Path, ancestor: int) -> Iterator[float]:
    ticks = os.sysconf("SC_CLK_TCK")
    parents: dict[int, int] = {}
    times: dict[int, float] = {}
    for path in folder.glob("[0-9]*/stat"):
        # A process may end while this is read.
        with suppress(OSError, ValueError, IndexError):
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            pid = int(path.parent.name)
            parents[pid] = int(fields[1])
            times[pid] = sum(map(int, fields[11:15])) / ticks
    for pid, spent in times.items():
        above = parents[pid]
        while above not in (0, ancestor):
            above = parents.get(above, 0)
        if above == ancestor:
            yield spent


# --- results ----------------------------------------------------------------------------------------------------------


def load_results(path: Path = RESULTS_FILE) -> dict[str, ExploredBug]:
    """Return what became of the rows that were explored, by their ids."""
    if not path.exists():
        return {}
    entries = json.loads(path.read_text(encoding="utf-8"))
    return {name: ExploredBug(**{**entry, "checks": tuple(entry["checks"])}) for name, entry in entries.items()}


def format_results(results: Mapping[str, ExploredBug]) -> str:
    """Return the text of `explored.json`."""
    entries = {name: {**asdict(result), "seconds": round(result.seconds, 1)} for name, result in results.items()}
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"


def format_part(rows: Sequence[KnownBug], results: Mapping[str, ExploredBug]) -> str:
    """Return the generated part of `docs/known-bugs.md`."""
    tried = [results[row.id] for row in rows if row.id in results and not results[row.id].why]
    found = [result for result in tried if result.checks]
    longest = max((result.seconds for result in tried if not result.checks), default=0.0)
    share = f", {100 * len(found) / len(tried):.0f} %" if tried else ""
    lines = [
        HEADING,
        "",
        "Without any scenario of the catalogue, [drawn stories](explore.md) were played on the bad release of a row,",
        "and those in which a check of the row fails also on the good one. The flavour that the row names takes every",
        "other turn, the other ones that it means share the rest. In a checkout, this is done by",
        "`python -m pytest_approvals.devtools.known_bugs.exploration`, for up to 3 minutes of CPU a row with the",
        "processes of the agents; it also regenerates this part.",
        "",
        f"Of {len(rows)} rows {len(tried)} were explored, and {len(found)} of these bugs found again{share}. A missed",
        f"one was given up after the time beside it, at most {longest:.0f} s.",
        "",
        "| bug | bad release | found by | stories | CPU |",
        "|---|---|---|---:|---:|",
    ]
    lines += [f"| `{row.id}` | `{row.bad.spec}` | {_format_result(results.get(row.id))} |" for row in rows]
    return "\n".join(lines) + "\n"


def _format_result(result: ExploredBug | None) -> str:
    if result is None:
        return "not explored | |"
    if result.why:
        return "cannot be started | |"
    told = f"[`{result.checks[0]}`](checks.md#{result.checks[0]})" if result.checks else "missed"
    return f"{told} | {result.stories:,} | {result.seconds:.0f} s"


def replace_part(page: str, part: str) -> str:
    """Return a page with its generated part, which is at the end, written anew."""
    return page.partition(HEADING)[0].rstrip("\n") + "\n\n" + part


# --- the command -----------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Explore rows, and write the page; return 1 if a bug was missed."""
    parser = argparse.ArgumentParser(prog="python -m pytest_approvals.devtools.known_bugs.exploration")
    parser.add_argument("--only", nargs="+", action="extend", metavar="ID", help="only the rows with these ids")
    parser.add_argument("--seconds", type=float, default=180.0, metavar="S", help="CPU time of a row (default: 180)")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the stories (default: 0)")
    parser.add_argument("--profile", default="adversarial", help="adversarial (default) or realistic")
    parser.add_argument("--fresh", action="store_true", help="explore rows anew that were explored before")
    parser.add_argument("--page", action="store_true", help="write the page only")
    args = parser.parse_args(arguments)
    try:
        return _execute(args)
    except ApprovalsError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2


def _execute(args: argparse.Namespace) -> int:
    if not 0 < args.seconds < 1e7:
        raise UsageError(f"--seconds: Invalid number {args.seconds:g}: must be more than 0, and less than 10,000,000")
    available_features(None, args.profile)
    rows = load_known_bugs(TABLE, CHECKS)
    known = {row.id: row for row in rows}
    for name in args.only or ():
        if name not in known:
            raise UnknownName("row", name, known)
    chosen = [] if args.page else [row for row in rows if args.only is None or row.id in args.only]
    has_missed = False
    for row in chosen:
        before = None if args.fresh else load_results().get(row.id)
        if before is not None and (before.checks or before.seconds >= args.seconds):
            continue
        resumed = None if before is None or before.why else before
        result = explore_known_bug(row, seconds=args.seconds, seed=args.seed, profile=args.profile, before=resumed)
        has_missed = has_missed or not result.checks
        told = ", ".join(result.checks) or result.why or "missed"
        print(f"{row.id}: {told}; {result.stories} stories, {result.seconds:.0f} s", flush=True)
        # Several of these commands may explore different rows at a time.
        RESULTS_FILE.write_text(format_results({**load_results(), row.id: result}), encoding="utf-8")
    results = {name: result for name, result in load_results().items() if name in known}
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replace_part(page, format_part(rows, results)), encoding="utf-8")
    return int(has_missed)


if __name__ == "__main__":
    raise SystemExit(main())
