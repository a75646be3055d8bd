"""Exploration: stories that nobody wrote, played on one agent, and their failures grouped by cause.

    seed ──► story ──► one or two variants ──► verdicts ──► failure ──► shrunk, grouped by check and shape

The same seed draws the same stories, and shrinks a failure to the same story, on every machine.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pytest_approvals.agents.causes import CausePath, read_cause_story
from pytest_approvals.agents.waivers import CheckOutcome, Waiver, find_waiver
from pytest_approvals.campaigns.story_shrinking import describe_shape, describe_story, shrink_story
from pytest_approvals.checks import Finding, Severity, is_failing, judge, judge_group, rank_severity, root_findings
from pytest_approvals.errors import ScenarioError
from pytest_approvals.journal.events import ModelExhausted
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.runner.timeouts import AgentBlocks
from pytest_approvals.scenario.generation import choices_from_seed, story_from_seed
from pytest_approvals.scenario.generation.features import FEATURES, Feature, find_features, is_playable, list_pairs
from pytest_approvals.scenario.generation.grafts import vary
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario, Variant, owns_processes
from pytest_approvals.scenario.variants import allowed_variants

DEFAULT_LIMIT = RunLimits(seconds=5.0)
"""The limits of one run, in which a story may hang the agent."""

MAX_TRIALS = 1_200
"""How many smaller stories are tried for one failure."""

HANGING_SECONDS = 0.5
"""The time limit of a trial for a failure that used up the time of its run, as each of them would use up its own."""

MAX_HANGING_TRIALS = 150
"""How many smaller stories are tried for such a failure."""

MAX_BLOCKING_TRIALS = 25
"""The same for one that blocks the event loop, so that its run ends only by force, after twice its time and more."""

MAX_PROCESS_TRIALS = 400
"""How many smaller stories are tried for a failure for which processes are started."""

MAX_SHRUNK_PER_CHECK = 6
"""How many failures of one check are shrunk; further ones are counted with the first one."""

MAX_HELD_PER_SYMPTOM = 50
"""How many failures with one symptom are held back until the first of them is reduced."""

OTHER_PROCESS_EVERY = 50
"""Of so many stories, one may leave the process, and another one kills it: each takes as long as a dozen others."""

_UNEXERCISED = "scenario-exercised"

_DIMENSIONS = ("serialize", "resume", "history", "stream", "source", "oracle", "chunking", "protocol")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A story and how it is played.

    Attributes:
        number: Its number within the seed; -1 for one that was not drawn.
        variants: One variant, or several whose runs are compared, too.
    """

    story: Scenario
    variants: tuple[Variant, ...]
    number: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failure of one check in a case.

    Attributes:
        finding: The failure, with those that follow from it.
        case: The story, in the variant in which it fails or in those that differ.
        history: The journal that was judged; None if several were compared.
    """

    finding: Finding
    case: Case
    history: History | None

    @property
    def check(self) -> str:
        """The slug of the check."""
        return self.finding.verdict.check

    @property
    def symptom(self) -> str:
        """What failures of one cause have in common before they are shrunk: the check, and what was seen."""
        verdict = self.finding.verdict
        seen = re.sub(r"\"[^\"]*\"|'[^']*'|\([^)]*\)|[\w/#-]*\d[\w/#.-]*", "", f"{verdict.expected} | {verdict.actual}")
        compared = " compared" if self.history is None else ""
        return f"{verdict.check} {verdict.status}{compared} {' '.join(seen.split())}"


@dataclass(slots=True, kw_only=True)
class Cause:
    """Failures of one cause.

    Attributes:
        failure: The smallest one.
        title: What happens in it.
        count: How many stories fail for it.
        first: The number of the first of them.
    """

    failure: Failure
    title: str
    count: int = 1
    first: int = -1

    @property
    def digest(self) -> str:
        """A digest of the shape of its story, by which other explorations have it in common."""
        return hashlib.sha256(describe_shape(self.failure.case.story).encode()).hexdigest()[:8]


def leaves_process(number: int) -> bool:
    """Return whether a story with this number may leave the process."""
    return number % OTHER_PROCESS_EVERY == OTHER_PROCESS_EVERY - 1


def kills_process(number: int) -> bool:
    """Return whether a story with this number kills the process of its agent, if the agent says how it goes on."""
    return number % OTHER_PROCESS_EVERY == OTHER_PROCESS_EVERY // 2 - 1


def draw_story(
    seed: int,
    number: int,
    capabilities: frozenset[str],
    profile: str,
    origin: Scenario | None = None,
    *,
    features: Collection[str] = (),
) -> Scenario:
    """Return a story of a seed, with an id that says which one it is.

    Args:
        seed: The seed.
        number: The number of the story.
        capabilities: What the agent claims.
        profile: The profile that it is drawn in.
        origin: The scenario that it is a variation of; by default it is drawn from nothing.
        features: Those that it has in any case, if the agent can play them; in a variation they are as they come.
    """
    digest = int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest()[:8], "big")
    if origin is None:
        story = story_from_seed(digest, capabilities, profile=profile, features=features)
    else:
        story = vary(choices_from_seed(digest), origin, capabilities)
    return replace(story, id=f"explored/story-{number}")


class StoryPlayer:
    """Plays stories on one agent, and judges them.

    Args:
        source: Builds the agent.
        run: Runs a coroutine to its end.
        limit: The limits of one run.
        process_limit: Those of a run in which processes are killed, each of which takes its time to start.
        strict: Count a `should` that does not hold as a failure.
        fail_on: Count failures of this severity or a graver one, and no others; see `is_failing`.
        checks: The checks that count; all by default.
    """

    def __init__(
        self,
        source: AgentSource,
        run: Callable[[Coroutine[Any, Any, Any]], Any],
        *,
        limit: RunLimits = DEFAULT_LIMIT,
        process_limit: RunLimits | None = None,
        strict: bool = False,
        fail_on: Severity | None = None,
        checks: Collection[str] = (),
    ) -> None:
        self.source = source
        self._run = run
        self._limit = limit
        self._process_limit = process_limit
        self._strict = strict
        self._fail_on = fail_on
        self._checks = frozenset(checks)

    def find_failures(self, case: Case, limit: RunLimits | None = None) -> list[Failure]:
        """Play a case, and return its failures that do not follow from another one.

        Args:
            case: The case.
            limit: The limits of one run; by default those of the player.
        """
        failures: list[Failure] = []
        clean: list[History] = []
        for variant in case.variants:
            history = self.play(case.story, variant, limit)
            verdicts = judge(history)
            findings = root_findings(verdicts)
            played = replace(case, variants=(variant,))
            failures += [Failure(finding=each, case=played, history=history) for each in findings if self._counts(each)]
            # Group checks compare runs; one that failed a check differs from the others anyway.
            if not any(verdict.fails for verdict in verdicts):
                clean.append(history)
        if len(case.variants) > 1 and len(clean) == len(case.variants):
            findings = root_findings(judge_group(clean))
            failures += [Failure(finding=each, case=case, history=None) for each in findings if self._counts(each)]
        return failures

    def play(self, story: Scenario, variant: Variant, limit: RunLimits | None = None) -> History:
        """Play a story, and return what happened."""
        if self._process_limit is not None and owns_processes(story):
            limit = self._process_limit
        # Frameworks warn about themselves in every run.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run = self._run(run_scenario(story, variant, self.source, limit=limit or self._limit))
        return read_history(run.events)

    def _counts(self, finding: Finding) -> bool:
        verdict = finding.verdict
        fails = is_failing(verdict.status, finding.severity, strict=self._strict, fail_on=self._fail_on)
        return fails and (not self._checks or verdict.check in self._checks)

    def repeats(self, failure: Failure) -> bool:
        """Play the story of a failure again, and return whether it fails in the same way."""
        return any(each.symptom == failure.symptom for each in self.find_failures(failure.case))

    def shrink(self, failure: Failure, max_trials: int = MAX_TRIALS) -> Failure:
        """Return the smallest failure with the same symptom, in the plainest variant."""
        if owns_processes(failure.case.story):
            max_trials = min(max_trials, MAX_PROCESS_TRIALS)
        if not _hangs(failure):
            return self._shrink(failure, self._limit, max_trials)
        hasty = replace(self._limit, seconds=min(HANGING_SECONDS, self._limit.seconds))
        most = MAX_BLOCKING_TRIALS if _blocks(failure) else MAX_HANGING_TRIALS
        small = self._shrink(failure, hasty, min(max_trials, most))
        # What only took longer than a trial may does not hang.
        same = [each for each in self.find_failures(small.case) if each.symptom == failure.symptom]
        return same[0] if same else failure

    def _shrink(self, failure: Failure, limit: RunLimits, max_trials: int) -> Failure:
        found = failure

        def still_fails(story: Scenario, variants: Sequence[Variant]) -> bool:
            nonlocal found
            case = Case(story=story, variants=tuple(variants), number=failure.case.number)
            same = [each for each in self.find_failures(case, limit) if each.symptom == failure.symptom]
            # An inner agent whose script was cut too short fails by itself, which looks like many other failures.
            same = [each for each in same if _list_exhausted(each) <= _list_exhausted(failure)]
            if same:
                found = same[0]
            return bool(same)

        def story_fails(story: Scenario) -> bool:
            variants = self._adapt_variants(found.case.variants, story)
            return variants is not None and still_fails(story, variants)

        self._shrink_variants(found, still_fails)
        story = shrink_story(found.case.story, story_fails, max_trials=max_trials)
        self._shrink_variants(found, still_fails)
        assert story == found.case.story
        return found

    def _shrink_variants(self, failure: Failure, still_fails: Callable[[Scenario, Sequence[Variant]], bool]) -> None:
        """Try the plainest variants first."""
        story, variants = failure.case.story, failure.case.variants
        allowed = allowed_variants(story, self.source.facts, {})
        if len(variants) == 1:
            plainer = allowed[: allowed.index(variants[0])] if variants[0] in allowed else []
            # A matrix has hundreds of variants; these stand for the others.
            close = sorted(plainer, key=lambda each: count_differences(each, allowed[0]))[:12]
            any(still_fails(story, (variant,)) for variant in close)

    def _adapt_variants(self, variants: Sequence[Variant], story: Scenario) -> tuple[Variant, ...] | None:
        """Return the variants of a smaller story that are like those of the whole one; None if there are none."""
        allowed = allowed_variants(story, self.source.facts, {})
        adapted = [find_similar_variant(variant, allowed) for variant in variants]
        present = tuple(dict.fromkeys(variant for variant in adapted if variant is not None))
        return present if len(present) == len(variants) else None


def _hangs(failure: Failure) -> bool:
    """Return whether a failure used up the time of its run."""
    end = failure.history.end if failure.history is not None else None
    return end is not None and end.how == "timeout"


def _blocks(failure: Failure) -> bool:
    """Return whether a run was ended by force because nothing else could run beside the agent."""
    end = failure.history.end if failure.history is not None else None
    return end is not None and end.error is not None and end.error[0] == AgentBlocks.__name__


def _list_exhausted(failure: Failure) -> set[str]:
    """Return the inner agents whose model had no further reply."""
    exchanges = failure.history.exchanges if failure.history is not None else ()
    return {
        exchange.agent
        for exchange in exchanges
        if "/" in exchange.conversation and isinstance(exchange.reply, ModelExhausted)
    }


def count_differences(one: Variant, other: Variant) -> int:
    """Return in how many dimensions two variants differ."""
    return sum(getattr(one, name) != getattr(other, name) for name in _DIMENSIONS)


def find_similar_variant(variant: Variant, allowed: Sequence[Variant]) -> Variant | None:
    """Return the allowed variant that differs least from another one; None if that is in two dimensions."""
    nearest = min(allowed, key=lambda each: count_differences(each, variant), default=None)
    return nearest if nearest is not None and count_differences(nearest, variant) < 2 else None


@dataclass(slots=True, kw_only=True)
class _Known:
    """What failures with one symptom are counted with.

    Attributes:
        cause: The cause; None for one of an earlier exploration.
        key: By what the failures of an earlier one are counted.
        needs: The features of its smallest story, without which a story fails for another cause; None until it is
            reduced.
    """

    cause: Cause | None = None
    key: str = ""
    needs: frozenset[str] | None = None


@dataclass(slots=True, kw_only=True)
class Exploration:
    """The stories of a seed on one agent, and what failed so far.

    Attributes:
        player: Plays the stories.
        seed: The seed of all of them.
        profile: The profile that they are drawn in.
        origin: The scenario that they are variations of; None to draw them from nothing.
        waivers: The known failures of the agent, which are counted only.
        flavour: The flavour of the agent, which a waiver may name.
        causes_folder: The records of the causes that waivers refer to; None if there are none.
        crashes: Every story kills the process of its agent.
        features: What every story has, if the agent can play it.
        max_trials: How many smaller stories are tried for one failure.
        max_shrunk: How many failures of one check are shrunk; further ones are counted with the first one.
        played: How many stories were played.
        skipped: How many the agent cannot play.
        unexercised: How many took another way than they were drawn for, so that steps were left out. That is no failure
            of the agent: what a drawn story expects to be asked is a guess.
        unrepeated: How many failed where they were played first, and not when they were played again: in another
            process, or of all that is new.
        pairs: The pairs of features that stood together in a story, each in alphabetical order.
        waived: How often each known failure was met.
        causes: What was found, in that order.
        repeated: How often causes of an earlier exploration were met, by the key that they are remembered with.
        postpones: Whether failures wait for `reduce` or `reduce_all`, because the time is for stories now.
        waiting: Those that wait.
    """

    player: StoryPlayer
    seed: int = 0
    profile: str = "realistic"
    origin: Scenario | None = None
    waivers: Sequence[Waiver] = ()
    flavour: str = ""
    causes_folder: CausePath | None = None
    crashes: bool = False
    features: tuple[str, ...] = ()
    max_trials: int = MAX_TRIALS
    max_shrunk: int = MAX_SHRUNK_PER_CHECK
    played: int = 0
    skipped: int = 0
    unexercised: int = 0
    unrepeated: int = 0
    pairs: set[tuple[str, str]] = field(default_factory=set)
    waived: Counter[str] = field(default_factory=Counter)
    causes: list[Cause] = field(default_factory=list)
    repeated: Counter[str] = field(default_factory=Counter)
    postpones: bool = False
    waiting: list[Cause] = field(default_factory=list)
    _symptoms: dict[str, list[_Known]] = field(default_factory=dict)
    _held: dict[str, list[Failure]] = field(default_factory=dict)
    _shapes: dict[tuple[str, str], Cause] = field(default_factory=dict)
    _shrunk: Counter[str] = field(default_factory=Counter)
    _first: dict[str, _Known] = field(default_factory=dict)
    _needs: dict[str, frozenset[str]] = field(default_factory=dict)

    @property
    def ordered_causes(self) -> list[Cause]:
        """The causes, the gravest first; of equal severity, in the order in which they were found."""
        return sorted(self.causes, key=lambda cause: rank_severity(cause.failure.finding.severity))

    def remember(self, key: str, check: str, symptoms: Sequence[str], story: Scenario | None = None) -> None:
        """Only count failures of a cause that an earlier exploration has found.

        Args:
            key: What `repeated` counts them by.
            check: The check that fails.
            symptoms: The symptoms of the cause.
            story: Its smallest story, without whose features a story fails for another cause.
        """
        known = _Known(key=key, needs=frozenset() if story is None else find_features(story))
        self.repeated[key] += 0
        for symptom in symptoms:
            self._symptoms.setdefault(symptom, []).append(known)
        self._first.setdefault(check, known)
        self._shrunk[check] += 1

    def list_symptoms(self, cause: Cause) -> list[str]:
        """Return what the failures of a cause look like before they are shrunk."""
        return [symptom for symptom, causes in self._symptoms.items() if any(each.cause is cause for each in causes)]

    def draw_case(self, number: int) -> Case | None:
        """Return a case of the seed; None if the agent cannot play its story."""
        facts = self.player.source.facts
        kills = (self.crashes or kills_process(number)) and is_playable(FEATURES["crashes"], facts.capabilities)
        leaves = leaves_process(number) and not kills
        kept_out = {"crash"} if leaves else set() if kills else {"crash", "fresh"}
        features = (*self.features, "crashes") if kills else self.features
        capabilities = facts.capabilities - kept_out
        story = draw_story(self.seed, number, capabilities, self.profile, self.origin, features=features)
        resumed: Mapping[str, Sequence[Any]] = {} if leaves else {"resume": ("same",)}
        allowed = allowed_variants(story, facts, resumed)
        if not allowed:
            return None
        choose = _choose_stored_variant if owns_processes(story) else _choose_variants
        return Case(story=story, variants=choose(self.seed, number, allowed), number=number)

    def explore(self, numbers: Iterable[int]) -> Iterator[Case]:
        """Play the stories of *numbers*, and yield each case after it was played."""
        for number in numbers:
            case = self.draw_case(number)
            if case is None:
                self.skipped += 1
                continue
            self.play(case)
            yield case

    def examine(self, case: Case) -> Literal["passes", "unexercised", "fails"]:
        """Play a case, and return what becomes of it, without adding it to anything."""
        failures = self.player.find_failures(case)
        return "fails" if any(map(_is_failure, failures)) else "unexercised" if failures else "passes"

    def play(self, case: Case, *, has_failed: bool = False) -> bool:
        """Play a case, and add what fails to the causes.

        Args:
            case: The case.
            has_failed: A check failed in it in another process.

        Returns:
            Whether anything fails that is not known.
        """
        self.played += 1
        self.pairs.update(list_pairs(case.story))
        fails = False
        failures = self.player.find_failures(case)
        self.unrepeated += has_failed and not any(map(_is_failure, failures))
        for failure in failures:
            if not _is_failure(failure):
                self.unexercised += 1
            elif self.is_waived(failure):
                self.waived[failure.check] += 1
            else:
                fails = self._add(failure) or fails
        return fails

    def _add(self, failure: Failure) -> bool:
        """Add a failure to the causes; return whether it is one, and not something that happened once."""
        alike = self._symptoms.setdefault(failure.symptom, [])
        features = find_features(failure.case.story)
        same = next((known for known in alike if known.needs is not None and known.needs <= features), None)
        waiting = next((known for known in alike if known.needs is None), None)
        held = self._held.setdefault(failure.symptom, [])
        if same is not None:
            self._count(same)
        elif waiting is not None and len(held) < MAX_HELD_PER_SYMPTOM:
            held.append(failure)
        elif self._shrunk[failure.check] >= self.max_shrunk:
            self._count(waiting or self._first[failure.check])
        elif not self.player.repeats(failure):
            self.unrepeated += 1
            return False
        else:
            self._shrunk[failure.check] += 1
            cause = Cause(failure=failure, title=describe_story(failure.case.story), first=failure.case.number)
            alike.append(_Known(cause=cause))
            self._first.setdefault(failure.check, alike[-1])
            self.waiting.append(cause)
            if not self.postpones:
                self.reduce_all()
        return True

    def _count(self, known: _Known) -> None:
        if known.cause is None:
            self.repeated[known.key] += 1
        else:
            known.cause.count += 1

    def reduce(self, max_trials: int | None = None) -> None:
        """Reduce the gravest of the failures that wait, and add it to the causes.

        Those with the same symptom that were held back are counted with it, or, where they lack a feature of its
        smallest story, wait in its place.

        Args:
            max_trials: How many smaller stories are tried; by default those of the exploration.
        """
        cause = min(self.waiting, key=lambda each: rank_severity(each.failure.finding.severity))
        symptom = cause.failure.symptom
        small = self.player.shrink(cause.failure, self.max_trials if max_trials is None else max_trials)
        self.waiting.remove(cause)
        cause.failure, cause.title = small, describe_story(small.case.story)
        same = self._shapes.setdefault((small.check, describe_shape(small.case.story)), cause)
        if same is cause:
            self.causes.append(cause)
        else:
            same.count += cause.count
            same.first = min(same.first, cause.first)
        for known in self._symptoms[symptom]:
            if known.cause is cause:
                known.cause, known.needs = same, find_features(small.case.story)
        for failure in self._held.pop(symptom, []):
            self._add(failure)

    def reduce_all(self) -> None:
        """Reduce the failures that wait."""
        while self.waiting:
            self.reduce()

    def keep_waiting(self) -> None:
        """Add the failures that wait to the causes as they are."""
        self.causes += self.waiting
        self.waiting.clear()

    def is_waived(self, failure: Failure) -> bool:
        """Return whether a waiver of the agent knows the failure, whatever story it was found in.

        Waivers name scenarios of the catalogue; a drawn story has the cause of one if the check, the call and what was
        seen are those of the waiver, and it does what the story of the cause does.
        """
        verdict = failure.finding.verdict
        near = [waiver for waiver in self.waivers if waiver.check == verdict.check]
        features = find_features(failure.case.story) if near else frozenset()
        near = [waiver for waiver in near if self._list_needs(waiver) <= features]
        outcomes = (
            CheckOutcome(
                scenario=waiver.scenario,
                variant=failure.case.variants[0].id,
                check=verdict.check,
                failed=True,
                flavour=self.flavour,
                version=self.player.source.facts.version,
                call=verdict.call,
                actual=verdict.actual,
            )
            for waiver in near
        )
        return any(find_waiver(outcome, near) is not None for outcome in outcomes)

    def _list_needs(self, waiver: Waiver) -> frozenset[str]:
        """Return the features without which a story fails for another cause than that of a waiver."""
        if not waiver.cause or self.causes_folder is None:
            return frozenset()
        if waiver.cause not in self._needs:
            self._needs[waiver.cause] = _read_needs(self.causes_folder / f"{waiver.cause}.yaml")
        return self._needs[waiver.cause]


def _read_needs(record: CausePath) -> frozenset[str]:
    """Return what the story of a cause does that not every agent can do.

    A reason is given with many a rejection, and what values a story has is seldom why it fails.
    """
    story = read_cause_story(record)
    if not story:
        return frozenset()
    try:
        features = find_features(parse_scenario(story, name=f"findings/{record.stem}", path=str(record)))
    except ScenarioError:
        return frozenset()
    return frozenset(name for name in features if _is_special(FEATURES[name]) and name != "reject_reason")


def _is_special(feature: Feature) -> bool:
    return feature.group != "values" and bool(feature.needs or feature.saves)


def _is_failure(failure: Failure) -> bool:
    """Return whether more is wrong than the way that a story takes: an agent may not even start."""
    end = failure.history.end if failure.history is not None else None
    return failure.check != _UNEXERCISED or (end is not None and end.how == "broken")


def _choose_variants(seed: int, number: int, allowed: Sequence[Variant]) -> tuple[Variant, ...]:
    """Return the base variant, another one, or every fourth time both."""
    digest = hashlib.sha256(f"{seed}/{number}/variant".encode()).digest()
    base = allowed[0]
    others = allowed[1:]
    if not others or (number % 4 and digest[0] < 80):
        return (base,)
    other = others[int.from_bytes(digest[1:5], "big") % len(others)]
    return (other,) if number % 4 else (base, other)


def _choose_stored_variant(seed: int, number: int, allowed: Sequence[Variant]) -> tuple[Variant, ...]:
    """Return one variant of a story that kills a process, mostly with a durable store.

    What an application keeps between turns shows little of a crash, and two stores may rightly differ after one.
    """
    digest = hashlib.sha256(f"{seed}/{number}/variant".encode()).digest()
    durable = [variant for variant in allowed if variant.serialize.startswith("native.")]
    among = durable if durable and digest[0] < 200 else allowed
    return (among[int.from_bytes(digest[1:5], "big") % len(among)],)
