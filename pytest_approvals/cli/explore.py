"""Command `explore`: stories that nobody wrote, played on agents."""

from __future__ import annotations

import argparse
import hashlib
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count, cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_approvals.cli.parser import CommandParser
from pytest_approvals.errors import ApprovalsError, ScenarioError, UnknownName, UsageError
from pytest_approvals.errors.printable import quote

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

    from pytest_approvals.campaigns.exploration import Case, Cause, Exploration
    from pytest_approvals.campaigns.leaks import LeakWatch
    from pytest_approvals.checks import Severity
    from pytest_approvals.plugin.agents import AgentUnderTest
    from pytest_approvals.reporting.report import ExploredLine, Report, ReportHeader
    from pytest_approvals.reporting.subject import Subject
    from pytest_approvals.scenario.model import Scenario

DEFAULT_STORIES = 1000
MOST_PROCESSES = 64
_PROGRESS_SECONDS = 5.0
_PART_SIZE = 25
"""How many stories a process is given at a time."""
LEAST_TRIALS = 80
"""How many smaller stories are tried for a failure when the time is over; most reductions end with fewer."""
FOUND_FOLDER = "explored"
"""The folder in which reports name the stories that were found."""
_SHARD = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})")


def add_explore_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--agent", action="append", required=True, metavar="SPEC", help="the agents to explore")
    parser.add_argument("--stories", metavar="N", help=f"how many stories to play (default: {DEFAULT_STORIES})")
    parser.add_argument("--seconds", metavar="S", help="how long to play stories, instead of how many")
    parser.add_argument("--seed", default="0", metavar="SEED", help="an integer; the same seed draws the same stories")
    parser.add_argument(
        "--profile",
        default="realistic",
        metavar="NAME",
        help="realistic (default): what providers are known to send and callers to do; adversarial: everything",
    )
    parser.add_argument(
        "--from", dest="origin", metavar="SCENARIO", help="play variations of this scenario: an id or a file"
    )
    parser.add_argument(
        "--check", action="append", default=[], metavar="SLUG", help="look for failures of these checks only"
    )
    parser.add_argument("--fault", metavar="NAME", help="a fault of the reference agent: its name, or MODULE:NAME")
    parser.add_argument(
        "--crashes", action="store_true", help="kill the process of the agent, or let its store fail, in every story"
    )
    parser.add_argument("--strict", action="store_true", help="a `should` that does not hold is a failure, too")
    parser.add_argument(
        "--fail-on",
        metavar="SEVERITY",
        help="what does not hold is a failure if it is of this severity or a graver one, and only then",
    )
    parser.add_argument(
        "-n", dest="processes", metavar="N", help="play the stories in N processes at a time (default: in this one)"
    )
    parser.add_argument(
        "--restart-every", metavar="N", help="play at most N stories in one process, for an agent that leaks memory"
    )
    parser.add_argument("--shard", metavar="I/N", help="play the I-th of N disjoint parts of the stories")
    parser.add_argument("--time-limit", default="5", metavar="SECONDS", help="time limit of one run (default: 5)")
    parser.add_argument(
        "--no-database",
        action="store_true",
        help="neither play the failing stories of earlier times, nor keep new ones",
    )
    parser.add_argument("-o", "--output", metavar="FOLDER", help="write the smallest failing stories to this folder")
    parser.add_argument(
        "--report",
        metavar="FILE",
        type=Path,
        help="write a report, which `report merge` joins with those of other parts",
    )
    parser.epilog = "The exit code is 1 if a story fails, and 2 if the exploration was interrupted."


def execute_explore(args: argparse.Namespace) -> int:
    """Explore each agent; return 1 if a story fails."""
    from pytest_approvals.checks import CHECKS
    from pytest_approvals.reporting.files import ReportStream
    from pytest_approvals.reporting.judged_run import load_extension_checks
    from pytest_approvals.scenario.generation.features import available_features

    load_extension_checks()
    plan = _Plan(args)
    available_features(None, args.profile)
    for slug in args.check:
        if slug not in CHECKS:
            raise UnknownName("check", slug, CHECKS)
    agents = _resolve_agents(plan)
    folder = _create_folder(args.output) if args.output else None
    stream = ReportStream(args.report, _describe_report(agents, plan)) if args.report else None
    explored: list[_Explored] = []
    for agent in agents:
        explored.append(_explore_agent(agent, plan))
        _print_causes(explored[-1], folder / _to_kebab(agent.name) if folder and len(agents) > 1 else folder)
        print(_format_summary(explored[-1], plan))
        if explored[-1].leak:
            remedy = "--restart-every N plays at most N stories in one process"
            print(f"{agent.name}: leaks {explored[-1].leak}; {remedy}")
    if stream is not None:
        stream.finish(_build_report(explored, plan))
    return max(each.exit_code for each in explored)


def _resolve_agents(plan: _Plan) -> Sequence[AgentUnderTest]:
    from pytest_approvals.checks import CHECKS
    from pytest_approvals.plugin.agents import resolve_agents
    from pytest_approvals.plugin.settings import parse_settings

    args = plan.args
    settings = parse_settings(
        {"agents": args.agent, "fault": args.fault, "fail-on": args.fail_on},
        Path.cwd(),
        spell=lambda option: option.command,
    )
    plan.fail_on = settings.fail_on
    agents, absent = resolve_agents(settings, CHECKS)
    for error in absent.values():
        raise error
    return agents


class _Plan:
    """What is played: the values of the arguments.

    Raises:
        UsageError: One of them is invalid.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        if args.stories is not None and args.seconds is not None:
            raise UsageError("--stories and --seconds exclude each other")
        self.args = args
        self.seed = _parse_integer("--seed", args.seed)
        self.stories = DEFAULT_STORIES if args.stories is None else _parse_integer("--stories", args.stories, least=1)
        self.seconds = None if args.seconds is None else _parse_seconds("--seconds", args.seconds)
        self.time_limit = _parse_seconds("--time-limit", args.time_limit)
        self.origin = _load_origin(args.origin) if args.origin else None
        self.restart_every = _parse_count("--restart-every", args.restart_every)
        self.processes = _parse_count("-n", args.processes, most=MOST_PROCESSES) or int(self.restart_every > 0)
        self.shard, self.shards = _parse_shard(args.shard) if args.shard else (1, 1)
        self.fail_on: Severity | None = None

    @property
    def part(self) -> str:
        """Which part of the stories is played, `I/N`; empty for all."""
        return f"{self.shard}/{self.shards}" if self.shards > 1 else ""

    def numbers(self) -> Iterator[int]:
        """Yield the numbers of the stories until the number of stories, or the time, is used up."""
        end = None if self.seconds is None else time.monotonic() + self.seconds
        for number in count(self.shard - 1, self.shards):
            if (end is None and number >= self.stories) or (end is not None and time.monotonic() >= end):
                return
            yield number


def _load_origin(name: str) -> Scenario:
    from pytest_approvals.scenario.catalogue import select_scenarios
    from pytest_approvals.scenario.load import load_scenario

    files = select_scenarios([name], Path.cwd())
    if len(files) != 1:
        raise UsageError(f"--from: {quote(name)} names {len(files)} scenarios; name one")
    [(scenario, path)] = files.items()
    return load_scenario(path, root=path.parents[scenario.count("/")])


def _parse_integer(option: str, text: str, least: int | None = None) -> int:
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise UsageError(f"{option}: Invalid number {quote(text)}: expected an integer")
    number = int(text)
    if least is not None and number < least:
        raise UsageError(f"{option}: Invalid number {number}: must be at least {least}")
    return number


def _parse_count(option: str, text: str | None, most: int = 10**9) -> int:
    number = 0 if text is None else _parse_integer(option, text, least=1)
    if number > most:
        raise UsageError(f"{option}: Invalid number {number}: must be at most {most}")
    return number


def _parse_seconds(option: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        raise UsageError(f"{option}: Invalid number {quote(text)}: expected seconds") from None
    if not 0 < seconds < 1e7:
        raise UsageError(
            f"{option}: Invalid number {quote(text)}: expected more than 0 seconds, and less than 10,000,000"
        )
    return seconds


def _parse_shard(text: str) -> tuple[int, int]:
    match = _SHARD.fullmatch(text)
    if match is None or int(match[1]) > int(match[2]):
        raise UsageError(f"--shard: Invalid part {quote(text)}: expected I/N with I from 1 to N, such as 2/8")
    return int(match[1]), int(match[2])


def _create_folder(name: str) -> Path:
    folder = Path(name)
    probe = folder / ".explore"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(f"--output: Cannot write to the folder {quote(name)}: {error.strerror}") from None
    return folder


def _to_kebab(text: str) -> str:
    return "-".join(re.findall(r"[a-z0-9]+", text.lower())) or "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Explored:
    """What became of one agent.

    Attributes:
        more: Further words of the command that repeats a finding.
        leak: What the agent leaves behind from story to story; empty if nothing.
    """

    agent: AgentUnderTest
    exploration: Exploration
    is_interrupted: bool
    more: Sequence[str]
    leak: str = ""

    @property
    def exit_code(self) -> int:
        """2 if it was interrupted, 1 if a story fails."""
        if self.is_interrupted:
            return 2
        return int(bool(self.exploration.causes or self.exploration.unrepeated))


def _explore_agent(agent: AgentUnderTest, plan: _Plan) -> _Explored:
    args = plan.args
    exploration = _create_exploration(agent, plan)
    database = StoryDatabase.of_agent(agent.name if not args.fault else f"{agent.name} {args.fault}")
    progress = _Progress(agent.name, exploration)
    leaks = _create_leak_watch()
    leak = ""
    is_interrupted = False
    schedule = None if plan.seconds is None else Schedule(exploration, plan.seconds)
    try:
        for case in () if args.no_database else database.load_cases(exploration):
            if not exploration.play(case):
                database.forget(case)
            progress.show()
        numbers = plan.numbers()
        if plan.processes:
            for part in _explore_in_processes(agent, plan, exploration, numbers):
                leak = part.leak or leak
                progress.show()
                _reduce_when_due(schedule)
        else:
            for _ in exploration.explore(numbers):
                leaks.observe()
                leak = leaks.notice
                progress.show()
                _reduce_when_due(schedule)
        if schedule is not None:
            schedule.finish()
    except KeyboardInterrupt:
        is_interrupted = True
        exploration.keep_waiting()
    if not args.no_database:
        database.save_all(exploration.causes)
        for notice in database.notices:
            print(f"pytest-approvals: {notice}", file=sys.stderr)
    more = ("--fault", args.fault) if args.fault else ()
    return _Explored(agent=agent, exploration=exploration, is_interrupted=is_interrupted, more=more, leak=leak)


class Schedule:
    """Divides the time of `--seconds`: the first half is for stories, and the rest for what failed in them, too.

    Reducing a failure takes as many runs as fifty stories, and most failures are met in the first minute. So they wait,
    and the gravest is reduced first. Each is given an equal part of the time that is left.

    Args:
        exploration: The exploration.
        seconds: The time.
        read_time: Returns the time.
    """

    def __init__(
        self, exploration: Exploration, seconds: float, read_time: Callable[[], float] = time.monotonic
    ) -> None:
        self._exploration = exploration
        self._seconds = seconds
        self._read_time = read_time
        self._began = read_time()
        self._reducing = 0.0
        exploration.postpones = True

    def reduce_when_due(self) -> None:
        """Reduce what waits if half of the time is over."""
        while self._exploration.waiting and self._seconds / 2 <= self._elapsed < self._seconds:
            self._reduce()

    def finish(self) -> None:
        """Reduce what still waits when the time is over."""
        while self._exploration.waiting:
            self._reduce()

    @property
    def _elapsed(self) -> float:
        return self._read_time() - self._began

    def _reduce(self) -> None:
        began, one = self._elapsed, self._exploration
        seconds_a_story = (began - self._reducing) / max(1, one.played)
        share = max(0.0, self._seconds - began) / len(one.waiting)
        # A reduction that is cut short leaves a story that is hard to read.
        one.reduce(max(LEAST_TRIALS, min(one.max_trials, int(share / max(seconds_a_story, 1e-4)))))
        self._reducing += self._elapsed - began


def _reduce_when_due(schedule: Schedule | None) -> None:
    if schedule is not None:
        schedule.reduce_when_due()


def _create_leak_watch() -> LeakWatch:
    from pytest_approvals.campaigns.leaks import LeakWatch, measure_footprint
    from pytest_approvals.runner.event_loops import get_session_loop

    return LeakWatch(lambda: measure_footprint(get_session_loop().loop))


def _create_exploration(agent: AgentUnderTest, plan: _Plan) -> Exploration:
    from pytest_approvals.agents.causes import get_cause_folder
    from pytest_approvals.campaigns.exploration import Exploration, StoryPlayer
    from pytest_approvals.runner.event_loops import get_session_loop
    from pytest_approvals.runner.run_context import RunLimits
    from pytest_approvals.scenario.generation.features import FEATURES, is_playable

    args = plan.args
    if args.crashes and not is_playable(FEATURES["crashes"], agent.source.facts.capabilities):
        raise UsageError(f"--crashes: {agent.name} does not say how it goes on after its process died; leave it out")
    # One event loop for all runs, as starting one costs as much as a short run.
    player = StoryPlayer(
        agent.source,
        get_session_loop().run,
        limit=RunLimits(seconds=plan.time_limit),
        strict=args.strict,
        fail_on=plan.fail_on,
        checks=args.check,
    )
    return Exploration(
        player=player,
        seed=plan.seed,
        profile=args.profile,
        origin=plan.origin,
        waivers=agent.waivers,
        causes_folder=get_cause_folder(agent.waiver_file),
        crashes=args.crashes,
        flavour=agent.local.flavour,
    )


class _Progress:
    """A line on standard error every few seconds."""

    def __init__(self, agent: str, exploration: Exploration) -> None:
        self._agent = agent
        self._exploration = exploration
        self._began = self._shown = time.monotonic()

    def show(self) -> None:
        """Show the line if it is time to."""
        now = time.monotonic()
        if now - self._shown < _PROGRESS_SECONDS:
            return
        self._shown = now
        one = self._exploration
        speed = one.played / (now - self._began)
        print(format_progress(self._agent, one, speed), file=sys.stderr, flush=True)


def format_progress(agent: str, exploration: Exploration, speed: float) -> str:
    """Return the line that tells how far an exploration is.

    Args:
        agent: The name of the agent.
        exploration: The exploration.
        speed: Stories a second.
    """
    from pytest_approvals.scenario.generation.features import possible_pairs

    words = [_count_stories(exploration.played), f"{speed:.0f} a second"]
    words.append(f"{len(exploration.pairs):,} of {len(possible_pairs()):,} pairs of features")
    words.append(_count_failures(len(exploration.causes) + len(exploration.waiting)))
    return f"{agent}: {', '.join(words)}"


def _format_summary(explored: _Explored, plan: _Plan) -> str:
    exploration = explored.exploration
    words = [_count_stories(exploration.played), f"seed {plan.seed}", exploration.profile]
    words += [f"part {plan.shard} of {plan.shards}"] if plan.shards > 1 else []
    words += [f"{exploration.unexercised:,} went another way"] if exploration.unexercised else []
    words += [f"{exploration.unrepeated:,} that failed once only"] if exploration.unrepeated else []
    words += [f"{exploration.skipped:,} that it cannot play"] if exploration.skipped else []
    words.append(_count_failures(len(exploration.causes)))
    known = exploration.waived.total()
    words += [f"{known:,} of known causes"] if known else []
    words += ["interrupted"] if explored.is_interrupted else []
    return f"{explored.agent.name}: {' · '.join(words)}"


def _count_failures(count: int) -> str:
    return f"{count or 'no'} distinct failure{'' if count == 1 else 's'}"


def _count_stories(count: int) -> str:
    return "1 story" if count == 1 else f"{count:,} stories"


# --- processes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Part:
    """What became of some stories in another process.

    Attributes:
        passed: How many pass.
        skipped: How many the agent cannot play.
        others: The numbers of the others, and whether more than the way that they take is wrong with them.
        pairs: The pairs of features that stood together in those that pass.
        leak: What the agent leaves behind from story to story; empty if nothing.
    """

    passed: int
    skipped: int
    others: Mapping[int, bool]
    pairs: frozenset[tuple[str, str]]
    leak: str


def _explore_in_processes(
    agent: AgentUnderTest, plan: _Plan, exploration: Exploration, numbers: Iterator[int]
) -> Iterator[_Part]:
    """Have stories played in other processes, and play those that fail again here, in the order of their numbers.

    So the failures are grouped and shrunk as if all stories were played here.

    Raises:
        ApprovalsError: A process ended.
    """
    import multiprocessing
    from concurrent.futures.process import BrokenProcessPool

    size = min(_PART_SIZE, plan.restart_every or _PART_SIZE)
    processes = [_StoryProcess(agent, plan) for _ in range(plan.processes)]
    waiting: deque[Future[_Part]] = deque()
    try:
        for process in cycle(processes):
            part = list(islice(numbers, size))
            if part:
                waiting.append(process.play(part))
            if not waiting:
                return
            if part and len(waiting) < 2 * plan.processes:
                continue
            played = waiting.popleft().result()
            exploration.played += played.passed
            exploration.skipped += played.skipped
            exploration.pairs |= played.pairs
            for number, has_failed in played.others.items():
                case = exploration.draw_case(number)
                assert case is not None
                exploration.play(case, has_failed=has_failed)
            yield played
    except BrokenProcessPool:
        raise ApprovalsError(
            f"a process that played stories on {agent.name} ended by itself, or was killed; play fewer at a time (-n), "
            "or fewer in one process (--restart-every)"
        ) from None
    finally:
        for child in multiprocessing.active_children():
            child.terminate()
        for process in processes:
            process.end()


class _StoryProcess:
    """A process that plays stories, and after some of them another one in its place."""

    def __init__(self, agent: AgentUnderTest, plan: _Plan) -> None:
        self._agent = agent
        self._plan = plan
        self._pool: ProcessPoolExecutor | None = None
        self._given = 0

    def play(self, numbers: Sequence[int]) -> Future[_Part]:
        """Have the stories of these numbers played."""
        limit = self._plan.restart_every
        if limit and self._given + len(numbers) > limit:
            self.end()
        if self._pool is None:
            self._pool = self._create_pool()
        self._given += len(numbers)
        return self._pool.submit(_play_part, numbers)

    def end(self) -> None:
        """End the process when it has played what it was given."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
        self._pool, self._given = None, 0

    def _create_pool(self) -> ProcessPoolExecutor:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        return ProcessPoolExecutor(
            1,
            # A fork would share the event loop and the processes of agents.
            mp_context=get_context("spawn"),
            initializer=_prepare_process,
            initargs=(self._plan.args, self._agent.name),
        )


_explorations: list[tuple[Exploration, LeakWatch]] = []
"""In a process that plays parts: the exploration of its agent, and what watches it."""


def _prepare_process(args: argparse.Namespace, agent: str) -> None:
    from pytest_approvals.reporting.judged_run import load_extension_checks

    # The first process ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load_extension_checks()
    plan = _Plan(args)
    _explorations[:] = [
        (_create_exploration(each, plan), _create_leak_watch()) for each in _resolve_agents(plan) if each.name == agent
    ]


def _play_part(numbers: Sequence[int]) -> _Part:
    from pytest_approvals.scenario.generation.features import list_pairs

    exploration, leaks = _explorations[0]
    cases = [exploration.draw_case(number) for number in numbers]
    verdicts = {}
    for case in cases:
        if case is not None:
            verdicts[case.number] = exploration.examine(case)
            leaks.observe()
    others = {number: verdict == "fails" for number, verdict in verdicts.items() if verdict != "passes"}
    passed = [case.story for case in cases if case is not None and case.number not in others]
    pairs = frozenset(pair for story in passed for pair in list_pairs(story))
    return _Part(len(verdicts) - len(others), cases.count(None), others, pairs, leaks.notice)


# --- what was found ---------------------------------------------------------------------------------------------------


def _print_causes(explored: _Explored, folder: Path | None) -> None:
    from pytest_approvals.scenario.to_file import format_scenario

    names: dict[str, int] = {}
    for cause in explored.exploration.ordered_causes:
        check = cause.failure.check
        names[check] = names.get(check, 0) + 1
        name = check if names[check] == 1 else f"{check}-{names[check]}"
        path = (folder or Path()) / f"{name}.approval.yaml"
        finding = _describe_finding(explored, cause, path)
        story = replace(cause.failure.case.story, title=cause.title)
        print(finding)
        if folder is None:
            print(f"\n{_indent(format_scenario(story, comment=[path.name]))}", end="")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(format_scenario(story, comment=[finding]), encoding="utf-8")
        print()


def _describe_finding(explored: _Explored, cause: Cause, path: Path) -> str:
    """Return the printed finding, with the command that repeats it."""
    from pytest_approvals.reporting.findings import PrintedFinding

    failure = cause.failure
    subject = _describe_subject(explored, cause, path.name.partition(".")[0], path)
    printed = PrintedFinding.of(failure.finding, subject, failure.history)
    found = f"found in {_count_stories(cause.count)}" + (f", first in number {cause.first}" if cause.first >= 0 else "")
    return replace(printed, notes=(*printed.notes, found)).render()


def _describe_subject(explored: _Explored, cause: Cause, scenario: str, path: Path) -> Subject:
    """Return what the finding of a cause is about, with the command that plays the file of its story."""
    from pytest_approvals.reporting.subject import (
        ALL_VARIANTS,
        Subject,
        agent_location,
        format_mode,
        format_rerun_command,
    )

    agent = explored.agent
    variants = cause.failure.case.variants
    variant = variants[0] if len(variants) == 1 else None
    return Subject(
        scenario=scenario,
        agent=agent.name,
        version=agent.source.facts.version,
        where=agent_location(agent.name),
        variant=variant.id if variant is not None else ALL_VARIANTS,
        mode=format_mode(variant) if variant is not None else "all variants",
        rerun=format_rerun_command(str(path), agent.name, variant, explored.more),
    )


def _indent(text: str) -> str:
    return "".join(f"    {line}" for line in text.splitlines(keepends=True))


# --- the report -------------------------------------------------------------------------------------------------------


def _describe_report(agents: Sequence[AgentUnderTest], plan: _Plan) -> ReportHeader:
    import platform
    from importlib.metadata import version

    from pytest_approvals.checks import CHECKS
    from pytest_approvals.reporting.report import ReportedAgent, ReportedCheck, ReportHeader

    return ReportHeader(
        package=version("pytest-approvals"),
        python=platform.python_version(),
        seed=plan.seed,
        shard=plan.part,
        agents=tuple(ReportedAgent.of(agent.name, agent.source.facts) for agent in agents),
        checks={
            slug: ReportedCheck(requirement=check.requirement, level=check.level, severity=check.severity)
            for slug, check in CHECKS.items()
        },
    )


def _build_report(explored: Sequence[_Explored], plan: _Plan) -> Report:
    """Return the report: of each cause the run of its smallest story, and for each agent what was explored.

    The id of a story is made from its check and its shape, so that parts of an exploration that meet the same cause
    have it in common. Their smallest stories may differ, so the header has no titles.
    """
    from pytest_approvals.reporting.report import Report

    report = Report(header=_describe_report([each.agent for each in explored], plan))
    for each in explored:
        found = {}
        for cause in each.exploration.ordered_causes:
            name = f"{FOUND_FOLDER}/{cause.failure.check}-{cause.digest}"
            found[name] = _format_found(cause)
            _report_cause(report, each, cause, name)
        report.add(_count_explored(each, plan, found))
    report.complete = not any(each.is_interrupted for each in explored)
    return report


def _report_cause(report: Report, explored: _Explored, cause: Cause, name: str) -> None:
    from pytest_approvals.journal.transcript import Transcript
    from pytest_approvals.reporting.findings import to_verdict_line
    from pytest_approvals.reporting.report import TranscriptLine

    finding, history = cause.failure.finding, cause.failure.history
    subject = _describe_subject(explored, cause, name, Path(f"{name}.approval.yaml"))
    for verdict in (finding.verdict, *finding.implied):
        report.add(to_verdict_line(verdict, subject, history))
    if history is not None:
        told = Transcript.of_history(history).lines
        report.add(TranscriptLine(scenario=name, agent=subject.agent, variant=subject.variant, lines=told))


def _format_found(cause: Cause) -> str:
    from pytest_approvals.scenario.to_file import format_scenario

    return format_scenario(replace(cause.failure.case.story, title=cause.title))


def _count_explored(explored: _Explored, plan: _Plan, found: dict[str, str]) -> ExploredLine:
    from pytest_approvals.reporting.report import ExploredLine

    exploration = explored.exploration
    return ExploredLine(
        agent=explored.agent.name,
        seed=plan.seed,
        profile=exploration.profile,
        part=plan.part,
        stories=exploration.played,
        skipped=exploration.skipped,
        unexercised=exploration.unexercised,
        known=exploration.waived.total(),
        found=found,
    )


# --- stories of earlier explorations ----------------------------------------------------------------------------------


class StoryDatabase:
    """Failing stories of an agent, kept in the cache of the user and played first next time.

    A story is a scenario file; its first line is a comment with the variants in which it fails. A file that is damaged,
    or that another release has written and this one cannot read, is left as it is.

    Attributes:
        notices: What could not be read or kept, and what to do about it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notices: list[str] = []

    @classmethod
    def of_agent(cls, agent: str) -> StoryDatabase:
        """Return the database of an agent."""
        from pytest_approvals.agents.cache_folder import get_cache_folder

        return cls(get_cache_folder() / "explore" / _to_kebab(agent))

    def load_cases(self, exploration: Exploration) -> Iterator[Case]:
        """Yield the stories that the agent can still play, in a stable order."""
        from pytest_approvals.campaigns.exploration import Case
        from pytest_approvals.scenario.load import parse_scenario
        from pytest_approvals.scenario.variants import allowed_variants

        facts = exploration.player.source.facts
        for path in self._files():
            try:
                text = path.read_text(encoding="utf-8")
                story = parse_scenario(text, name=f"explored/{path.name.partition('.')[0]}", path=str(path))
            except (OSError, UnicodeDecodeError, ScenarioError) as error:
                what = error.what if isinstance(error, ScenarioError) else str(error)
                remedy = "remove it, or explore with the release that wrote it"
                self.notices.append(f"{path}: is not played, as it cannot be read: {what}; {remedy}")
                continue
            wanted = text.partition("\n")[0].removeprefix("#").split()
            allowed = {variant.id: variant for variant in allowed_variants(story, facts, {})}
            variants = tuple(allowed[name] for name in wanted if name in allowed) or tuple([*allowed.values()][:1])
            if variants:
                yield Case(story=story, variants=variants)

    def _files(self) -> Iterable[Path]:
        return sorted(self.folder.glob("*.approval.yaml")) if self.folder.is_dir() else ()

    def save_all(self, causes: Iterable[Cause]) -> None:
        """Keep the smallest story of each cause, as far as the folder can be written."""
        for cause in causes:
            try:
                self.save(cause)
            except OSError as error:
                why = error.strerror or error
                self.notices.append(f"{self.folder}: failing stories are not kept there: {why}; -o FOLDER writes them")
                return

    def save(self, cause: Cause) -> None:
        """Keep the smallest story of a cause."""
        from pytest_approvals.agents.cache_folder import create_private_folder
        from pytest_approvals.scenario.to_file import format_scenario

        case = cause.failure.case
        text = format_scenario(
            replace(case.story, title=cause.title), comment=[" ".join(variant.id for variant in case.variants)]
        )
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        create_private_folder(self.folder)
        (self.folder / f"{cause.failure.check}-{digest}.approval.yaml").write_text(text, encoding="utf-8")

    def forget(self, case: Case) -> None:
        """Remove a story that does not fail any more."""
        with suppress(OSError):
            Path(str(case.story.path)).unlink()
