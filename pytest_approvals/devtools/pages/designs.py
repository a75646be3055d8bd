"""Page `docs/designs.md`: the legitimate designs of the reference agent, and what the checks say about each.

`python -m pytest_approvals.devtools.pages.designs`, in a checkout, runs the catalogue and drawn stories on every design
and writes the page. With `--design NAME` it runs that design only and prints what fails, without writing.
"""

from __future__ import annotations

import argparse
import inspect
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.campaigns.exploration import Exploration, StoryPlayer
from pytest_approvals.checks import Verdict, judge, judge_group, merge_traits, observe_traits
from pytest_approvals.devtools.fault_detection import in_process_variants, play_in_process
from pytest_approvals.errors import ApprovalsError, UsageError
from pytest_approvals.journal.history import History
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_catalogue
from pytest_approvals.scenario.model import RestartStep, Scenario, owns_processes
from pytest_approvals.simulation.reference import ReferenceAgent
from pytest_approvals.simulation.reference.designs import DESIGNS, load_design

PAGE = Path("docs/designs.md")
"""The page, from the root of a checkout."""

EXPECTED_WARNINGS: Mapping[str, Mapping[str, str]] = {
    "EditsRewriteTheCall": {
        "history-not-rewritten": "the model sees a call that it never wrote",
    },
    "OldResultsAreCleared": {
        "history-not-rewritten": "the model sees less of its past than before",
    },
    "OldHistoryIsSummedUp": {
        "history-not-rewritten": "the model sees its past in other words",
    },
    "OldReasoningIsDropped": {
        "history-not-rewritten": "the model sees less of its own reasoning than before",
        "reasoning-kept": "the model sees less of its own reasoning than it had, as its provider allows",
    },
    "EditsAreToldByTheUser": {
        "caller-messages-kept": "the model reads as the caller's what the agent says about an edit",
    },
    "SavesAreEncrypted": {
        "round-trip-stable": "whether a save holds all that was restored cannot be told by its text",
    },
}
"""For each design, the warnings that its maintainer would want to see, each with what it says about the design."""

NO_TRAITS: Mapping[str, str] = {
    "CallsRunOneAfterTheOther": "the capabilities that it lacks say so",
    "CallsBeyondTheLimitAreClosed": "what becomes of a call beyond a limit is no trait",
    "ToolsRunOnBehindAHangUp": "when a tool ends is no trait",
    "PoliciesAreAskedLast": "the capability that it lacks says so",
    "RejectionsEndTheTurn": "the capability that it lacks says so",
    "PartialAnswersAreRefused": "the capability that it lacks says so",
    "RejectionsAreShort": "words are no trait",
    "CallIdsAreTheAgentsOwn": "an id has no meaning",
    "CallIdsAreDigests": "an id has no meaning",
    "AgentsTellTheirWork": "words are no trait",
    "RequestIdsAreOpaque": "an id has no meaning",
    "TurnsWaitForEachOther": "when an input is processed is no trait",
    "LateDecisionsAreUnknownRequests": "how an error is called is no trait",
    "LateDecisionsHaveNothingToDecide": "how an error is called is no trait",
    "LateDecisionsAreLookupErrors": "how an error is called is no trait",
    "LateDecisionsAreUnknownAfterARestart": "how an error is called is no trait",
    "SavedKeysAreSorted": "a journal does not hold what is saved",
    "ResultsAreTidied": "words are no trait",
    "LongResultsAreCut": "words are no trait",
    "ResultsAreXml": "words are no trait",
    "ResultsAreYaml": "words are no trait",
    "TextsAreGerman": "words are no trait",
    "ResultsRepeatTheCall": "words are no trait",
    "RejectionsRepeatTheCall": "words are no trait",
    "CallIdsBeginWithTheRun": "an id has no meaning",
    "RejectionsQuoteThePolicy": "words are no trait",
    "LongResultsAreCutInTheMiddle": "words are no trait",
    "ResultsAreFencedOff": "words are no trait",
    "ErrorsHaveTheirTraceback": "words are no trait",
    "EditsAreToldByTheUser": "what a model input holds besides its results is no trait",
    "RequestsAreListedAgainOnDemand": "which of the open requests a turn lists is no trait",
    "CallIdsAreCounted": "an id has no meaning",
    "InnerCallIdsNameTheOuterCall": "an id has no meaning",
    "FailedMessagesAreForgotten": "what becomes of the message of a failed turn is no trait",
    "OutputsHaveAllTexts": "words are no trait",
    "SavesAreCompressed": "a journal does not hold what is saved",
    "RenamedAgentsAreNotRestored": "a refusal to go on under another name is no trait",
    "RenamedAgentsTakeNoTurn": "a refusal to go on under another name is no trait",
    "SavesAreVersioned": "a journal does not hold what is saved",
    "SavesAreEncrypted": "a journal does not hold what is saved",
    "MessagesAreJoined": "what a model input holds besides its results is no trait",
    "MessagesAreFramed": "what a model input holds besides its results is no trait",
    "DecisionsAreNoted": "what a model input holds besides its results is no trait",
    "ReasonsAreMessages": "what a model input holds besides its results is no trait",
    "ReasonsAreMessagesOfTheUser": "what a model input holds besides its results is no trait",
    "ResultsStandBehindTheirCalls": "what a model input holds besides its results is no trait",
    "OldReasoningIsDropped": "what a model input holds besides its results is no trait",
    "EachCallIsAMessage": "what a model input holds besides its results is no trait",
    "FailedModelsAreAskedAgain": "whether a model that fails is asked again is no trait",
    "RequestsAreStreamedAtOnce": "what a stream shows is no trait",
    "StreamedResultsHaveNoText": "what a stream shows is no trait",
    "TextsAreStreamedWhole": "what a stream shows is no trait",
    "CallsAreStreamedEarly": "what a stream shows is no trait",
    "CallsAndResultsAlternate": "what a model input holds besides its results is no trait",
    "StreamsAreShownAtTheEnd": "what a stream shows is no trait",
    "StreamsHideInnerAgents": "what a stream shows is no trait",
}
"""The designs that show the same traits as the reference agent, each with the reason."""

OPEN_ALARMS: Mapping[str, str] = {}
"""The designs on which a longer exploration fails, with what fails; the cause is not known yet."""

_INTRODUCTION = """\
# Legitimate designs

Agents with approvals differ, and most differences are neither right nor wrong. Each design below is the reference agent
built differently, in a way that a maintainer could defend. No `must` may fail on it in the catalogue, and each warning
must be one that says something about the design; a verdict that breaks this rule is a mistake of the check, the harness
or the scenario. [Seeded faults](faults.md) are the opposite: agents that must not pass.

Most designs are [traits](checks.md#traits): they are read off the journals, and compared between releases. The table
shows those that differ from the reference agent's.

A drawn story counts as failed if a check fails in it that holds for the reference agent in the same story.

`python -m pytest_approvals.devtools.pages.designs` runs all of them and regenerates this page in a checkout;
`--design NAME` prints what fails on one of them, `--jobs N` runs N at a time.
"""


@dataclass(slots=True, kw_only=True)
class DesignResult:
    """What the checks say about one design.

    Attributes:
        runs: How many runs of the catalogue were judged.
        stories: How many drawn stories were played.
        failures: Failures that a right agent must not have, a line each.
        warnings: How often each check warned.
        traits: What it shows in the catalogue.
    """

    runs: int = 0
    stories: int = 0
    failures: list[str] = field(default_factory=list)
    warnings: Counter[str] = field(default_factory=Counter)
    traits: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def add(self, verdicts: Sequence[Verdict], where: str) -> None:
        """Add the verdicts of one run, or of all runs of a scenario together."""
        for verdict in verdicts:
            if verdict.status == "warning":
                self.warnings[verdict.check] += 1
            elif verdict.status not in ("pass", "not-applicable"):
                self.failures.append(f"{where}: {verdict.check} {verdict.status}: {verdict.expected}; {verdict.actual}")


def describe_design(design: type[ReferenceAgent]) -> str:
    """Return how a design differs: the first line of its docstring."""
    return (inspect.getdoc(design) or "").partition("\n")[0]


def examine_design(
    design: type[ReferenceAgent], scenarios: Sequence[Scenario], *, stories: int, seed: int = 0, strength: str = "1"
) -> DesignResult:
    """Run scenarios and drawn stories on a design, in the variants that stay in this process."""
    result = DesignResult()
    for scenario in scenarios:
        histories: list[History] = []
        for variant in in_process_variants(scenario, design, strength):
            history = play_in_process(scenario, variant, design)
            result.add(judge(history), f"{scenario.id} {variant.id}")
            result.traits = merge_traits([result.traits, observe_traits(history)])
            histories.append(history)
        result.runs += len(histories)
        result.add(judge_group(histories), scenario.id)
    _play_stories(design, result, stories, seed)
    return result


def _play_stories(design: type[ReferenceAgent], result: DesignResult, stories: int, seed: int) -> None:
    player, reference = _create_player(design), _create_player(ReferenceAgent)
    exploration = Exploration(player=player, seed=seed, profile="adversarial")
    for number in range(stories):
        case = exploration.draw_case(number)
        if case is None or any(variant.resume != "same" for variant in case.variants) or _leaves_process(case.story):
            continue
        result.stories += 1
        # What a drawn story expects to be asked is a guess.
        failures = [failure for failure in player.find_failures(case) if failure.check != "scenario-exercised"]
        known = {failure.check for failure in reference.find_failures(case)} if failures else set()
        where = f"story {number} of seed {seed}, {case.variants[0].id}"
        for failure in failures:
            if failure.check not in known:
                result.add([failure.finding.verdict], where)


def _create_player(agent: type[ReferenceAgent]) -> StoryPlayer:
    source = InProcessSource(name=agent.__name__, adapter=agent, facts=describe_adapter(agent))
    return StoryPlayer(source, get_session_loop().run)


def _leaves_process(scenario: Scenario) -> bool:
    restarts = any(isinstance(step, RestartStep) and step.fresh for step in scenario.caller or ())
    return restarts or owns_processes(scenario)


def find_mistakes(name: str, result: DesignResult) -> list[str]:
    """Return what a right design must not show: failures, and warnings that nobody expects of it."""
    expected = EXPECTED_WARNINGS.get(name, {})
    unexpected = [f"{check} warns {count} times" for check, count in result.warnings.items() if check not in expected]
    return [*result.failures, *unexpected]


def find_own_traits(result: DesignResult, reference: DesignResult) -> dict[str, tuple[str, ...]]:
    """Return the traits of which a design shows other values than the reference agent."""
    shown = {name: tuple(values) for name, values in result.traits.items()}
    return {name: values for name, values in shown.items() if values != tuple(reference.traits.get(name, ()))}


def format_designs_page(results: Mapping[str, DesignResult], reference: DesignResult) -> str:
    """Return the text of `docs/designs.md`."""
    table = _format_table(results, reference)
    notes = [*_format_warnings(results), *_format_traitless(results), *_format_open_alarms(results)]
    return "\n".join([_INTRODUCTION, *table, "", *notes])


def _format_table(results: Mapping[str, DesignResult], reference: DesignResult) -> Iterator[str]:
    yield "| design | how it differs | cannot | traits | runs | drawn stories | failures | warnings |"
    yield "|---|---|---|---|---:|---:|---:|---:|"
    for name, result in results.items():
        design = DESIGNS[name]
        missing = ", ".join(f"`{word}`" for word in sorted(ReferenceAgent.capabilities - design.capabilities))
        counts = f"{result.runs:,} | {result.stories:,} | {len(result.failures)} | {result.warnings.total()}"
        own = find_own_traits(result, reference)
        traits = "; ".join(f"{trait}: {', '.join(values)}" for trait, values in own.items())
        yield f"| `{name}` | {describe_design(design)} | {missing} | {traits} | {counts} |"


def _format_warnings(results: Mapping[str, DesignResult]) -> Iterator[str]:
    lines = [
        f"- `{name}`, [`{check}`](checks.md#{check}): {reason}."
        for name in results
        for check, reason in EXPECTED_WARNINGS.get(name, {}).items()
    ]
    if lines:
        yield from ("## Warnings that say something", "", *lines, "")


def _format_traitless(results: Mapping[str, DesignResult]) -> Iterator[str]:
    lines = [f"- `{name}`: {reason}." for name, reason in NO_TRAITS.items() if name in results]
    if lines:
        yield from ("## Designs that show no trait of their own", "", *lines, "")


def _format_open_alarms(results: Mapping[str, DesignResult]) -> Iterator[str]:
    lines = [f"- `{name}`: {what}." for name, what in OPEN_ALARMS.items() if name in results]
    if lines:
        yield from ("## Failures in more drawn stories", "", *lines, "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or print what fails on one design; return 1 if anything does."""
    parser = argparse.ArgumentParser(prog="python -m pytest_approvals.devtools.pages.designs")
    parser.add_argument("--stories", type=int, default=1000, metavar="N", help="drawn for each design (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the stories (default: 0)")
    parser.add_argument("--strength", default="1", help="of the variants of the catalogue (default: 1)")
    parser.add_argument("--design", action="append", metavar="NAME", help="a design, without writing the page")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="designs at a time (default: 1)")
    args = parser.parse_args(arguments)
    results: dict[str, DesignResult] = {}
    has_mistakes = False
    try:
        if args.stories < 0:
            raise UsageError(f"--stories: Invalid number {args.stories}: must be at least 0")
        if args.jobs < 1:
            raise UsageError(f"--jobs: Invalid number {args.jobs}: must be at least 1")
        designs = {name: load_design(name) for name in args.design or DESIGNS}
        scenarios = load_catalogue([stock_folder()])
        for name, result in zip(designs, _examine_designs(designs, scenarios, args), strict=True):
            results[name] = result
            mistakes = find_mistakes(name, result)
            has_mistakes = has_mistakes or bool(mistakes)
            print(f"{name}: {len(mistakes)} mistakes in {result.runs} runs, {result.stories} stories", flush=True)
            for mistake in mistakes:
                print(f"    {mistake}")
    except ApprovalsError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    if not args.design:
        reference = examine_design(ReferenceAgent, scenarios, stories=0, strength=args.strength)
        PAGE.write_text(format_designs_page(results, reference), encoding="utf-8")
    return int(has_mistakes)


def _examine_designs(
    designs: Mapping[str, type[ReferenceAgent]], scenarios: Sequence[Scenario], args: argparse.Namespace
) -> Iterator[DesignResult]:
    """Yield the result of each design, in their order."""
    examine = partial(_examine_named_design, scenarios, args)
    if args.jobs == 1:
        yield from map(examine, designs)
        return
    # A spawned process shares no event loop and no lock with this one.
    with ProcessPoolExecutor(args.jobs, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(examine, designs)


def _examine_named_design(scenarios: Sequence[Scenario], args: argparse.Namespace, name: str) -> DesignResult:
    return examine_design(load_design(name), scenarios, stories=args.stories, seed=args.seed, strength=args.strength)


if __name__ == "__main__":
    raise SystemExit(main())
