"""Turns whose store fails: a write fails once, all that a turn stored is lost, or the state before last is read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agents.sources import subprocess_factory
from pytest_approvals.journal.events import (
    DiskFull,
    Event,
    StateRestored,
    StepSkipped,
    StoreRolledBack,
    ToolEnd,
    TurnEnd,
)
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.validation import find_violations
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.runner.saved_states import SavedState
from pytest_approvals.runner.store_copies import StoreCopy
from pytest_approvals.scenario.model import (
    Call,
    LetOracleStep,
    Scenario,
    ScriptedDecision,
    ScriptedReply,
    Tool,
    ToolBehaviour,
    TurnStep,
    Variant,
)
from pytest_approvals.simulation.reference import ReferenceAgent
from pytest_approvals.simulation.reference.persistence import Store

Story = Callable[..., Scenario]

SEND = TurnStep(text="Go ahead.")
AFTER = TurnStep(text="And now?")
APPROVE = (ScriptedDecision(label="c1"),)
REPLIES = (
    ScriptedReply(calls=(Call(label="c1", id="c1", tool="pay", arguments={"amount": 5}),)),
    ScriptedReply(say="Done."),
    ScriptedReply(say="You are welcome."),
)
STORES = pytest.mark.parametrize("serialize", ["native.sqlite", "json"])


class Forgetful(ReferenceAgent):
    """Loses every other write of a turn, and goes on."""

    def store_state(self) -> None:
        """Write the state, unless that fails."""
        try:
            super().store_state()
        except Exception:
            self.is_running = True


class Elsewhere(ReferenceAgent):
    """Keeps nothing in the folder of its store, like one whose store is a server."""

    def store_state(self) -> None:
        """Leave the store as it is."""


def play(
    scenario: Scenario, serialize: str = "native.sqlite", adapter: type[ReferenceAgent] = ReferenceAgent
) -> RecordedRun:
    """Play a story on an agent whose state leaves its process."""
    source = InProcessSource(
        name="reference",
        adapter=adapter,
        facts=describe_adapter(adapter),
        elsewhere=subprocess_factory(adapter),
    )
    variant = Variant(serialize=serialize, source="rebuilt")
    return asyncio.run(run_scenario(scenario, variant, source, limit=RunLimits(seconds=30)))


def pending(events: list[Event]) -> list[list[str]]:
    """The calls that each restore after the first failure of the store lists."""
    failed = next(event.n for event in events if isinstance(event, StoreRolledBack))
    restores = [event for event in events if isinstance(event, StateRestored) and event.n > failed]
    return [[request["label"] for request in event.pending] for event in restores]


def outcomes(run: RecordedRun) -> list[str]:
    """How executions and turns ended, in order."""
    found = [event for event in run.events if isinstance(event, (ToolEnd, DiskFull, StoreRolledBack, TurnEnd))]
    return [getattr(event, "outcome", None) or getattr(event, "how", None) or event.kind for event in found]


# --- lost writes ------------------------------------------------------------------------------------------------------


@STORES
def test_a_lost_turn_has_happened_and_is_not_stored(serialize: str, story: Story) -> None:
    """Its caller has seen how it ended; the next step finds the request that it answered."""
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, loses="write"), AFTER)), serialize)

    assert ["paused", "returned", "finished", "lost", "finished"] == outcomes(run)
    assert ["c1"] == pending(run.events)[0]
    assert [] == [*find_violations(run.events)]


@STORES
def test_a_lost_turn_is_another_branch_of_the_history(serialize: str, story: Story) -> None:
    """The branch that follows forgets what it did, and shares no store with it."""
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, loses="write"), AFTER)), serialize)

    branches = read_history(run.events).branches
    assert [(False, False), (True, False)] == [(branch.forgets, branch.shares_store) for branch in branches]


@STORES
def test_the_first_turn_can_be_lost(serialize: str, story: Story) -> None:
    """The session begins anew, with the same replies of the model."""
    run = play(story(*REPLIES, caller=(TurnStep(text="Go ahead.", loses="write"), SEND)), serialize)

    assert ["paused", "lost", "paused", "returned", "finished"] == outcomes(run)
    assert [] == pending(run.events)[0]


def test_what_a_tool_has_done_is_not_lost(story: Story) -> None:
    """A tool that does something else the second time does so after the loss."""
    behaviours = (ToolBehaviour(returns="paid"), ToolBehaviour(returns="paid before"))
    tool = Tool(name="pay", approval="always", parameters={}, behaviours=behaviours)
    replies = (ScriptedReply(calls=(Call(label="c1", id="c1", tool="pay", arguments={}),)), *REPLIES[1:])
    caller = (SEND, TurnStep(answers=APPROVE, loses="write"), LetOracleStep())
    run = play(story(*replies, tools=(tool,), caller=caller))

    assert ["paid", "paid before"] == [event.result for event in run.events if isinstance(event, ToolEnd)]


def test_a_lost_turn_at_the_end_is_restored(story: Story) -> None:
    """The oracle answers what the store still waits for."""
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, loses="write"))))

    assert ["paused", "returned", "finished", "lost", "returned", "finished"] == outcomes(run)


def test_a_store_that_is_not_in_files_is_reported(story: Story) -> None:
    """Nothing is rolled back."""
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, loses="write"))), adapter=Elsewhere)

    assert ["the last turn has stored nothing in files of its process"] == [
        event.why for event in run.events if isinstance(event, StepSkipped) and event.step == "lost"
    ]


# --- stale reads ------------------------------------------------------------------------------------------------------


@STORES
def test_a_stale_read_shows_what_was_stored_before_the_last_turn(serialize: str, story: Story) -> None:
    """The turn, and those that follow, go on from there."""
    caller = (SEND, TurnStep(answers=APPROVE), TurnStep(text="Thank you", reads="stale"), AFTER)
    run = play(story(*REPLIES, caller=caller), serialize)

    assert ["paused", "returned", "finished", "stale", "finished", "finished"] == outcomes(run)
    assert ["c1"] == pending(run.events)[0]
    assert [] == [*find_violations(run.events)]


def test_a_stale_read_after_the_oracle_is_before_its_last_turn(story: Story) -> None:
    """Its turns count like those of the script."""
    run = play(story(*REPLIES, caller=(SEND, LetOracleStep(), TurnStep(text="Thank you", reads="stale"))))

    assert ["c1"] == pending(run.events)[0]


def test_a_stale_read_after_the_first_turn_finds_an_empty_session(story: Story) -> None:
    """Its request is unknown there."""
    run = play(story(*REPLIES, caller=(SEND, TurnStep(text="Hello?", reads="stale"))))

    assert [] == pending(run.events)[0]


# --- a write that fails once ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("write", ["paused", "store.full", "failed", "finished"]),
        ("write c1", ["paused", "returned", "store.full", "failed", "finished"]),
    ],
)
def test_a_turn_that_needs_its_first_write_fails(place: str, expected: list[str], story: Story) -> None:
    """The reference agent does not go on when it cannot store what it has done."""
    run = play(story(*REPLIES, caller=(SEND, TurnStep(answers=APPROVE, fails_once=place), AFTER)))

    assert expected == outcomes(run)
    assert [] == [*find_violations(run.events)]


@pytest.mark.parametrize(("key", "waits"), [("fails_once", False), ("disk_full", True)])
def test_a_write_after_the_next_call_works_again(key: str, waits: bool, story: Story) -> None:
    """An agent that ignores the failure stores what follows, unlike on a full disk."""
    turn = TurnStep(answers=APPROVE, **{key: "write"})  # type: ignore[arg-type]
    run = play(story(*REPLIES, caller=(SEND, turn, AFTER)), adapter=Forgetful)

    restored = [event for event in run.events if isinstance(event, StateRestored)]
    assert waits is bool(restored[1].pending)


# --- copies -----------------------------------------------------------------------------------------------------------


def test_a_copy_is_put_back_as_it_was(tmp_path: Path) -> None:
    """What was written since is gone, folders included."""
    (tmp_path / "sessions" / "empty").mkdir(parents=True)
    (tmp_path / "sessions" / "one.json").write_text("before")
    copy = StoreCopy.take(1, SavedState(), str(tmp_path))
    (tmp_path / "sessions" / "one.json").write_text("after")
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "two.json").write_text("after")
    copy.put_back(str(tmp_path))

    assert ["sessions", "sessions/empty", "sessions/one.json"] == sorted(
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")
    )
    assert "before" == (tmp_path / "sessions" / "one.json").read_text()


def test_a_copy_of_a_database_is_outdated_by_a_write(tmp_path: Path) -> None:
    """Not by a lock."""
    store = Store(str(tmp_path))
    copy = StoreCopy.take(1, SavedState(), str(tmp_path))
    with store.hold():
        (tmp_path / f"{store.name}.lock").write_text("held")
    assert not copy.is_outdated(str(tmp_path))

    store.write("{}")
    assert copy.is_outdated(str(tmp_path))
    store.close()


def test_without_a_folder_there_is_nothing_to_put_back() -> None:
    """The state is what the application keeps."""
    copy = StoreCopy.take(1, SavedState(), "")
    copy.put_back("")

    assert {} == copy.files
