"""Explorations of the reference agent and its faults."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.agent_side.contract import Decision, Outcome
from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agents.waivers import Waiver
from pytest_approvals.campaigns import exploration as exploration_module
from pytest_approvals.campaigns.exploration import (
    Case,
    Exploration,
    Failure,
    StoryPlayer,
    find_similar_variant,
)
from pytest_approvals.journal.history import History
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.event_loops import run_coroutine
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario, Variant, loses_state
from pytest_approvals.scenario.to_file import format_scenario
from pytest_approvals.scenario.variants import allowed_variants
from pytest_approvals.simulation.faults import FAULTS
from pytest_approvals.simulation.reference import ReferenceAgent


def explore(fault: str, checks: tuple[str, ...] = (), seed: int = 0, waivers: tuple[Waiver, ...] = ()) -> Exploration:
    """Return an exploration of the reference agent with a fault; of a sound one without its name."""
    adapter = FAULTS[fault] if fault else ReferenceAgent
    source = InProcessSource(name="reference", adapter=adapter, facts=describe_adapter(adapter))
    player = StoryPlayer(source, run_coroutine, limit=RunLimits(seconds=2.0), checks=checks)
    return Exploration(player=player, seed=seed, waivers=waivers)


def play(exploration: Exploration, count: int) -> list[Case]:
    return list(exploration.explore(range(count)))


@pytest.mark.parametrize(
    "fault", ["RejectedCallRuns", "OneApprovalReleasesAll", "PendingIsLostInTheDump", "EditRunsWhatTheModelWrote"]
)
def test_a_fault_is_found_by_stories_that_nobody_wrote(fault: str) -> None:
    """The check that catches it fails, and the smallest story has at most twelve lines."""
    check = FAULTS[fault].caught_by
    exploration = explore(fault, (check,))
    for number in range(400):
        play_one = list(exploration.explore([number]))
        if exploration.causes:
            break
        assert len(play_one) < 2

    small = exploration.causes[0].failure
    assert check == small.check
    assert 12 >= len(format_scenario(small.case.story).splitlines())


def test_the_file_of_a_smallest_story_fails_in_the_same_way() -> None:
    """What is written is what failed."""
    exploration = explore("RejectedCallRuns", ("rejected-never-runs",))
    play(exploration, 12)
    case = exploration.causes[0].failure.case
    story = parse_scenario(format_scenario(case.story), name="found/story", path="found/story.approval.yaml")
    failures = exploration.player.find_failures(Case(story=story, variants=case.variants))

    assert ["rejected-never-runs"] == [failure.check for failure in failures]


def test_failures_of_one_cause_are_one() -> None:
    """It goes on after a failure, counts the others, and shrinks one of them."""
    exploration = explore("RejectedCallRuns", ("rejected-never-runs",))
    play(exploration, 40)

    assert 40 == exploration.played + exploration.skipped
    assert 1 == len(exploration.causes)
    assert 10 < exploration.causes[0].count


def test_the_variant_shrinks_to_the_plainest_one() -> None:
    """A fault that shows everywhere is shown in the base variant."""
    exploration = explore("RejectedCallRuns", ("rejected-never-runs",))
    play(exploration, 12)

    [variant] = exploration.causes[0].failure.case.variants
    assert ("none", "same", False, "held") == (variant.serialize, variant.resume, variant.stream, variant.source)


HANGING = """\
title: Untitled
tools:
  pay: {approval: always, raises: the service is down}
  look: {}
model:
  - calls: [{id: c1, tool: look}]
  - calls: [{id: c2, tool: pay}]
  - say: Done.
caller:
  - send: Go ahead.
  - decide: {c2: approve}
"""


NESTED = """\
title: Untitled
tools:
  ask_helper: {runs: helper}
  helper/pay: {approval: always, parameters: {amount: integer}}
agents:
  helper: {model: [{calls: [{id: c1, tool: pay, arguments: {amount: 5}}]}, {say: Paid.}]}
model:
  - calls: [{id: o1, tool: ask_helper, arguments: {input: Pay 5}}]
  - say: Done.
caller:
  - send: Go ahead.
  - decide: {o1/c1: reject}
"""


def test_the_script_of_an_inner_agent_is_not_cut_short() -> None:
    """An agent whose model has no further reply fails by itself, which is another failure."""
    adapter = FAULTS["RejectedCallRuns"]
    source = InProcessSource(name="reference", adapter=adapter, facts=describe_adapter(adapter))
    player = StoryPlayer(source, run_coroutine, checks=["rejected-never-runs"])
    story = parse_scenario(NESTED, name="found/story", path="found/story.approval.yaml")
    base = allowed_variants(story, source.facts, {})[0]
    [failure] = player.find_failures(Case(story=story, variants=(base,)))
    small = player.shrink(failure).case.story

    assert 2 == len(small.agents["helper"].replies)
    assert 1 == len(small.agents["main"].replies)


class SlowHanging(FAULTS["FailingToolHangs"]):  # type: ignore[misc]
    """Hangs after a tool that fails, and takes longer than a hasty trial without one."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        await asyncio.sleep(0.2)
        outcome: Outcome = await super().turn(text, decisions, stream=stream)
        return outcome


class UnsteadyPlayer(StoryPlayer):
    """Plays each story on an agent with a fault first, and then on a sound one."""

    def __init__(self, faulty: InProcessSource, sound: InProcessSource) -> None:
        super().__init__(faulty, run_coroutine, checks=["rejected-never-runs"])
        self._sources = {False: faulty, True: sound}
        self._played: set[str] = set()

    def find_failures(self, case: Case, limit: RunLimits | None = None) -> list[Failure]:
        self.source = self._sources[case.story.id in self._played]
        self._played.add(case.story.id)
        return super().find_failures(case, limit)


def test_what_does_not_fail_again_is_counted_only() -> None:
    """There is nothing to reduce, and nothing to report."""
    adapters = (FAULTS["RejectedCallRuns"], ReferenceAgent)
    sources = [InProcessSource(name="reference", adapter=each, facts=describe_adapter(each)) for each in adapters]
    exploration = Exploration(player=UnsteadyPlayer(*sources))
    play(exploration, 20)

    assert [] == exploration.causes
    assert 3 < exploration.unrepeated


class RecordingPlayer(StoryPlayer):
    """Notes how long each run may take; None for the limit of the player."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seconds: list[float | None] = []

    def play(self, story: Scenario, variant: Variant, limit: RunLimits | None = None) -> History:
        self.seconds.append(limit.seconds if limit is not None else None)
        return super().play(story, variant, limit)


def shrink_hanging(adapter: type[Agent]) -> tuple[Failure, Failure, list[float | None]]:
    """Return the failure of a story that hangs, the smallest one, and the limits of the runs."""
    source = InProcessSource(name="reference", adapter=adapter, facts=describe_adapter(adapter))
    player = RecordingPlayer(source, run_coroutine, limit=RunLimits(seconds=1.0), checks=["run-ends"])
    story = parse_scenario(HANGING, name="found/story", path="found/story.approval.yaml")
    base = allowed_variants(story, source.facts, {})[0]
    [failure] = player.find_failures(Case(story=story, variants=(base,)))
    return failure, player.shrink(failure), player.seconds


def test_a_story_that_hangs_is_reduced_in_shorter_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each trial hangs for a short time only, and the smallest story in the whole time."""
    monkeypatch.setattr(exploration_module, "HANGING_SECONDS", 0.1)
    _, small, seconds = shrink_hanging(FAULTS["FailingToolHangs"])

    assert ["pay"] == [tool.name for tool in small.case.story.tools]
    assert (None, {0.1}, None) == (seconds[0], {*seconds[1:-1]}, seconds[-1])


def test_what_takes_longer_than_a_hasty_trial_does_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the smallest story ends in the whole time, the failure is left as it was."""
    monkeypatch.setattr(exploration_module, "HANGING_SECONDS", 0.1)
    whole, small, _ = shrink_hanging(SlowHanging)

    assert whole is small


def test_a_known_failure_is_counted_only() -> None:
    """A waiver of the agent covers it, whatever story it was found in."""
    waiver = Waiver(scenario="basics/*", check="rejected-never-runs", reason="Known.", issue="https://example.org/1")
    exploration = explore("RejectedCallRuns", ("rejected-never-runs",), waivers=(waiver,))
    play(exploration, 20)

    assert [] == exploration.causes
    assert 3 < exploration.waived["rejected-never-runs"]


def test_a_waiver_of_something_else_covers_nothing() -> None:
    """The check fails for another reason than the waiver names."""
    waiver = Waiver(
        scenario="*",
        check="rejected-never-runs",
        actual="something else",
        reason="Known.",
        issue="https://example.org/1",
    )
    exploration = explore("RejectedCallRuns", ("rejected-never-runs",), waivers=(waiver,))
    play(exploration, 12)

    assert 1 == len(exploration.causes)


NESTED_REJECTION = """\
title: A call of a sub-agent is rejected
tools:
  ask_helper: {runs: helper}
  helper/pay: {approval: always}
agents:
  helper: {model: [{calls: [{id: c1, tool: pay}]}, {say: No.}]}
model: [{calls: [{id: o1, tool: ask_helper, arguments: {input: Pay}}]}, {say: Done.}]
caller: [{send: Pay}, {decide: {o1/c1: reject}}]
"""


@pytest.mark.parametrize(("story", "causes"), [("", 0), ("title: [", 0), (NESTED_REJECTION, 1)])
def test_a_waiver_covers_only_what_has_the_shape_of_its_cause(tmp_path: Path, story: str, causes: int) -> None:
    """A story without a sub-agent does not fail for a cause that needs one; a record without a story limits nothing."""
    (tmp_path / "known.yaml").write_text(json.dumps({"title": "Known", "story": story}))
    waiver = Waiver(
        scenario="nested/*", check="rejected-never-runs", reason="Known.", issue="findings/known.md", cause="known"
    )
    exploration = explore("RejectedCallRuns", ("rejected-never-runs",), waivers=(waiver,))
    exploration.causes_folder = tmp_path
    play(exploration, 12)

    assert causes == len(exploration.causes)


@pytest.mark.parametrize(("number", "kills"), [(24, True), (25, False), (49, False), (74, True)])
def test_one_story_of_fifty_kills_the_process(number: int, kills: bool) -> None:
    """In one variant, since two stores may rightly differ after that."""
    case = explore("").draw_case(number)

    assert case is not None
    assert kills is loses_state(case.story)
    assert not kills or 1 == len(case.variants)


def test_every_story_can_kill_the_process() -> None:
    """Or let its store fail, if that is asked for; mostly with a durable store."""
    exploration = explore("")
    exploration.crashes = True
    cases = [case for number in range(30) if (case := exploration.draw_case(number)) is not None]
    stores = Counter(variant.serialize for case in cases for variant in case.variants)

    assert 30 == sum(loses_state(case.story) for case in cases)
    assert {"json", "native.sqlite"} == set(stores)
    assert stores["native.sqlite"] > stores["json"]


def test_an_agent_that_does_not_say_how_it_goes_on_is_not_killed() -> None:
    """Another story has the number."""
    adapter = ReferenceAgent
    facts = describe_adapter(adapter)
    mortal = replace(facts, capabilities=facts.capabilities - {"crash"})
    source = InProcessSource(name="reference", adapter=adapter, facts=mortal)
    case = Exploration(player=StoryPlayer(source, run_coroutine)).draw_case(24)

    assert case is not None
    assert not loses_state(case.story)


def test_a_seed_is_all_that_a_story_follows_from() -> None:
    """The same number of the same seed is the same case, whatever was played before."""
    one, other = explore(""), explore("")
    later = [one.draw_case(number) for number in range(30)][20:]

    assert later == [other.draw_case(number) for number in range(20, 30)]
    assert later != [explore("", seed=1).draw_case(number) for number in range(20, 30)]


def test_base_and_other_variants_are_played() -> None:
    """Some stories are played in the base variant, some in another one, and some in both to compare them."""
    exploration = explore("")
    cases = [case for number in range(40) if (case := exploration.draw_case(number)) is not None]

    assert {1, 2} == {len(case.variants) for case in cases}
    assert {True, False} == {case.variants[0].stream for case in cases}


def test_a_variant_that_a_smaller_story_does_not_have_is_replaced_by_the_nearest() -> None:
    """Only if it differs in one dimension: another variant would be another failure."""
    allowed = [Variant(), Variant(serialize="json", source="restored")]

    assert allowed[1] == find_similar_variant(Variant(serialize="json", source="restored", stream=True), allowed)
    assert None is find_similar_variant(Variant(serialize="copy", source="rebuilt", stream=True), allowed)


def test_a_story_that_lacks_what_the_smallest_one_needs_fails_for_another_cause() -> None:
    """Two causes may look alike; that the second one is reduced does not depend on how often the first is met."""
    first = explore("RejectedCallRuns", ("rejected-never-runs",))
    play(first, 12)
    [cause] = first.causes
    symptoms, small = first.list_symptoms(cause), cause.failure.case.story

    known = explore("RejectedCallRuns", ("rejected-never-runs",))
    known.remember("earlier", "rejected-never-runs", symptoms, small)
    play(known, 12)
    other = explore("RejectedCallRuns", ("rejected-never-runs",))
    other.remember("earlier", "rejected-never-runs", symptoms, parse_scenario(NESTED, name="a/b", path="b.yaml"))
    play(other, 12)

    assert ([], cause.count) == (known.causes, known.repeated["earlier"])
    assert 1 == len(other.causes)
    assert cause.count == other.causes[0].count + other.repeated["earlier"]


def test_failures_that_wait_with_the_same_symptom_are_told_apart_when_the_first_is_reduced() -> None:
    """What lacks a feature of its smallest story waits in its place."""
    exploration = explore("RejectedCallRuns", ("rejected-never-runs",))
    exploration.postpones = True
    play(exploration, 16)
    [waiting] = exploration.waiting
    exploration.player.shrink = lambda failure, most: failure  # type: ignore[method-assign]
    exploration.reduce()

    assert [waiting] == exploration.causes
    assert 1 == len(exploration.waiting)
    assert waiting.first < exploration.waiting[0].first
