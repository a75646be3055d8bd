"""Turns in which the process of the agent is killed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agents.sources import subprocess_factory
from pytest_approvals.journal.events import (
    AgentKilled,
    AgentStart,
    RunEnd,
    StateRestored,
    StateRewritten,
    StepSkipped,
    ToolEnd,
    TurnEnd,
)
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.validation import find_violations
from pytest_approvals.processes.agent_process import AgentProcess
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import (
    Call,
    RestartStep,
    RewriteStep,
    Scenario,
    ScriptedDecision,
    ScriptedReply,
    TogetherStep,
    TurnStep,
    Variant,
)
from pytest_approvals.simulation.reference import ReferenceAgent
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.state import CallState

Story = Callable[..., Scenario]

STORE = Variant(serialize="native.sqlite", source="rebuilt")
TEXT = Variant(serialize="json", source="rebuilt")
SEND = TurnStep(text="Go ahead.")
AFTER = TurnStep(text="And now?")
APPROVE = (ScriptedDecision(label="c1"),)
REPLIES = (
    ScriptedReply(calls=(Call(label="c1", id="c1", tool="pay", arguments={"amount": 5}),)),
    ScriptedReply(say="Done."),
    ScriptedReply(say="You are welcome."),
)


class Recovering(ReferenceAgent):
    """Says how it was restored."""

    async def recover(self, parts: Sequence[str]) -> None:
        raise RuntimeError(f"recovers {parts[-1]}")


@pytest.fixture(scope="module")
def play() -> Callable[..., RecordedRun]:
    """Plays stories on the reference agent in processes of its own."""
    source = InProcessSource(
        name="reference",
        adapter=ReferenceAgent,
        facts=describe_adapter(ReferenceAgent),
        elsewhere=subprocess_factory(ReferenceAgent),
    )

    def play(scenario: Scenario, variant: Variant = STORE) -> RecordedRun:
        return asyncio.run(run_scenario(scenario, variant, source, limit=RunLimits(seconds=30)))

    return play


def outcomes(run: RecordedRun) -> list[str]:
    """How executions, processes and turns ended, in order."""
    found = [event for event in run.events if isinstance(event, (ToolEnd, AgentKilled, TurnEnd))]
    return [getattr(event, "how", None) or getattr(event, "outcome", None) or event.kind for event in found]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("before c1", ["paused", "agent.killed", "failed", "finished"]),
        ("started c1", ["paused", "agent.killed", "cancelled", "failed", "finished"]),
        ("ended c1", ["paused", "agent.killed", "cancelled", "failed", "finished"]),
        ("model", ["paused", "returned", "agent.killed", "failed", "finished"]),
        ("outcome", ["paused", "returned", "agent.killed", "failed", "finished"]),
        ("write", ["paused", "agent.killed", "failed", "finished"]),
        ("write c1", ["paused", "returned", "agent.killed", "failed", "finished"]),
    ],
)
def test_a_process_dies_at_the_place_and_another_one_goes_on(place, expected, story: Story, play) -> None:
    """The reference agent repeats no effect and loses no approval, wherever its process dies."""
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, crashes=place), AFTER)))

    assert expected == outcomes(run)
    assert [] == [*find_violations(run.events)]


def test_a_process_dies_while_its_stream_is_shown(story: Story, play) -> None:
    """What came after that is not recorded, and the next process answers."""
    caller = (TurnStep(text="Go ahead.", crashes="shown"), AFTER)
    run = play(story(ScriptedReply(say="One two."), ScriptedReply(say="Three."), caller=caller), _streamed(STORE))

    assert ["agent.killed", "failed", "finished"] == outcomes(run)


def _streamed(variant: Variant) -> Variant:
    return Variant(serialize=variant.serialize, source=variant.source, stream=True)


def test_a_result_that_was_shown_is_not_taken_back(story: Story, play) -> None:
    """The reference agent stores a result before its stream shows it."""
    caller = (SEND, TurnStep(answers=APPROVE, crashes="shown"), AFTER)
    run = play(story(*REPLIES, caller=caller), _streamed(STORE))

    assert ["paused", "returned", "agent.killed", "failed", "finished"] == outcomes(run)
    assert ["paid 5"] == [told.text for call in read_history(run.events).calls for told in call.deliveries]


@pytest.mark.parametrize("place", ["started c2", "ended c2"])
def test_a_request_that_the_process_had_no_time_to_show_can_be_answered(place: str, story: Story, play) -> None:
    """A call that waits beside one that runs has its request from the next process, and is the only one that runs."""
    calls = (
        Call(label="c1", id="c1", tool="pay", arguments={"amount": 5}),
        Call(label="c2", id="c2", tool="look", arguments={"what": "it"}),
    )
    caller = (TurnStep(text="Go ahead.", crashes=place), TurnStep(), TurnStep(answers=APPROVE), AFTER)
    run = play(story(ScriptedReply(calls=calls), *REPLIES[1:], caller=caller))

    ended = [event.outcome for event in run.events if isinstance(event, TurnEnd)]
    assert ["failed", "paused", "finished", "finished"] == ended
    assert {"c1": 1, "c2": 1} == {call.label: len(call.executions) for call in read_history(run.events).calls}


def test_a_save_is_changed_while_no_agent_lives(story: Story, play) -> None:
    """What was saved lies there without one."""
    caller = (SEND, TurnStep(answers=APPROVE, crashes="model"), RewriteStep(old="pay", new="steal"), AFTER)
    run = play(story(*REPLIES, caller=caller), TEXT)

    assert [] == [*find_violations(run.events)]
    assert 1 == len([event for event in run.events if isinstance(event, StateRewritten)])


@pytest.mark.parametrize(("resume", "expected"), [("same", [1, 1, 2]), ("fresh", [1, 2, 3])])
def test_the_process_that_died_is_not_the_one_that_goes_on(resume: str, expected, story: Story, play) -> None:
    """Agents that are restored before the crash stay in its process, unless the variant resumes in a fresh one."""
    variant = Variant(serialize=STORE.serialize, source=STORE.source, resume=resume)
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, crashes="model"), AFTER)), variant)

    assert expected == [event.process for event in run.events if isinstance(event, AgentStart)]


def test_a_process_dies_after_turns_at_the_same_time(story: Story, play) -> None:
    """A copy of a session is restored in a process of its own."""
    both = TogetherStep(steps=(TurnStep(answers=APPROVE), TurnStep(answers=APPROVE)))
    steps = (SEND, both, TurnStep(text="And now?", crashes="model"), AFTER)
    run = play(story(*REPLIES, *REPLIES[1:], caller=steps), TEXT)

    assert ["completed"] == [event.how for event in run.events if isinstance(event, RunEnd)]


def test_a_durable_store_goes_on_from_what_it_holds(story: Story, play) -> None:
    """The restore after the crash is no rewind, so the approval counts."""
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, crashes="before c1"), AFTER)))

    assert [None, True] == [event.present for event in run.events if isinstance(event, StateRestored)][:2]
    assert 1 == len(read_history(run.events).branches)


def test_a_durable_store_stays_where_it_is_after_a_second_restart(story: Story, play) -> None:
    """No save says what it holds since its process died, and none of them is gone back to."""
    killed = TurnStep(answers=APPROVE, crashes="outcome")
    run = play(story(*REPLIES, caller=(SEND, killed, RestartStep(), RestartStep(), AFTER)))

    assert [None, True, True] == [event.present for event in run.events if isinstance(event, StateRestored)][:3]
    assert 1 == len(read_history(run.events).branches)


@pytest.mark.parametrize(("variant", "expected"), [(STORE, ["RuntimeError", "recovers session-1"]), (TEXT, None)])
def test_only_a_store_is_recovered(variant: Variant, expected: object, story: Story) -> None:
    """A state that the application kept is loaded, as after any turn."""
    source = InProcessSource(
        name="recovering",
        adapter=Recovering,
        facts=describe_adapter(Recovering),
        elsewhere=subprocess_factory(Recovering),
    )
    scenario = story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, crashes="before c1"), AFTER))
    run = asyncio.run(run_scenario(scenario, variant, source, limit=RunLimits(seconds=30)))

    assert expected == [event.error for event in run.events if isinstance(event, StateRestored)][1]


def test_a_state_of_the_application_goes_back_to_its_last_save(story: Story, play) -> None:
    """With json, what the dead process did is unknown to the next one."""
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, crashes="before c1"), AFTER)), TEXT)

    restored = [event for event in run.events if isinstance(event, StateRestored)]
    assert [["c1"], ["c1"]] == [[request["label"] for request in event.pending] for event in restored[:2]]


def test_a_place_that_is_not_reached_is_reported(story: Story, play) -> None:
    """The turn ends as it would have, and the run says what was left out."""
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, crashes="shown"))))

    assert ["the turn did not come to 'shown'"] == [event.why for event in run.events if isinstance(event, StepSkipped)]


class Silent(ReferenceAgent):
    """Writes nothing in a turn."""

    def store_state(self) -> None:
        """Keep the state in memory."""


class Exiting(Silent):
    """Ends its process when its call has returned."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        os._exit(3)


def _play_on(adapter: type[ReferenceAgent], scenario: Scenario) -> RecordedRun:
    source = InProcessSource(
        name="other",
        adapter=adapter,
        facts=describe_adapter(adapter),
        elsewhere=subprocess_factory(adapter),
    )
    return asyncio.run(run_scenario(scenario, STORE, source, limit=RunLimits(seconds=30)))


def test_a_write_that_does_not_come_is_reported(story: Story) -> None:
    """The turn ends as it would have, and whatever the process writes afterwards is written."""
    run = _play_on(Silent, story(*REPLIES, caller=(TurnStep(text="Go ahead.", crashes="write"), SEND)))

    assert ["the turn did not come to 'write'"] == [
        event.why for event in run.events if isinstance(event, StepSkipped) and event.step == "crash"
    ]


def test_a_process_that_ends_otherwise_has_not_died_in_a_write(story: Story) -> None:
    """The run is broken by that, and says so."""
    calls = (Call(label="c2", id="c2", tool="look", arguments={"what": "it"}),)
    caller = (TurnStep(text="Go ahead.", crashes="write c2"),)
    run = _play_on(Exiting, story(ScriptedReply(calls=calls), *REPLIES[1:], caller=caller))

    ends = [event for event in run.events if isinstance(event, RunEnd)]
    assert [["broken", "exit code 3"]] == [[end.how, "exit code 3"] for end in ends if "exit code 3" in str(end.error)]


def test_a_cut_write_leaves_the_store_as_it_was(story: Story, play) -> None:
    """The next process lists the request, whose decision was not stored."""
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, crashes="write"), AFTER)))

    restored = [event for event in run.events if isinstance(event, StateRestored)]
    assert [["c1"], ["c1"]] == [[request["label"] for request in event.pending] for event in restored[:2]]


def test_a_system_that_cannot_cut_a_write_says_so(monkeypatch: pytest.MonkeyPatch, story: Story, play) -> None:
    """The turn is played without a crash."""
    monkeypatch.setattr(AgentProcess, "can_cut_writes", False)
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, crashes="write"), AFTER)))

    assert ["only Linux can cut off the writes of another process"] == [
        event.why for event in run.events if isinstance(event, StepSkipped)
    ]


def test_a_reply_that_was_not_stored_is_given_again(story: Story, play) -> None:
    """The same input has the same reply, as if the model had been asked for the first time."""
    caller = (SEND, TurnStep(answers=APPROVE, crashes="outcome"), TurnStep(answers=APPROVE), AFTER)
    run = play(story(*REPLIES, caller=caller), TEXT)

    assert ["Done.", "You are welcome."] == [
        event.output for event in run.events if isinstance(event, TurnEnd) and event.output
    ]


def test_the_folder_of_scenarios_has_one_for_each_place() -> None:
    """Each place at which a process can be killed occurs in the catalogue."""
    from pytest_approvals.scenario.catalogue import stock_folder

    texts = "".join(path.read_text() for path in Path(stock_folder(), "crashes").glob("*.yaml"))

    places = ("before c1", "started c1", "ended c1", "write\n", "write c1", "model", "shown", "outcome")
    assert [] == [place for place in places if f"crashes: {place}" not in texts]
