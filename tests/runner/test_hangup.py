"""Turns that are cancelled while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from pytest_approvals.agent_side.contract.types import Decision, Outcome
from pytest_approvals.journal.events import CallerHungUp, ModelFailure, ModelRequest, ToolEnd, TurnEnd
from pytest_approvals.journal.validation import find_violations
from pytest_approvals.runner.run import RecordedRun
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import Scenario, ScriptedDecision, ScriptedReply, TurnStep
from pytest_approvals.simulation.reference import ReferenceAgent

Story = Callable[..., Scenario]
Played = Callable[..., RecordedRun]

SEND = TurnStep(text="Go ahead.")
APPROVE = (ScriptedDecision(label="c1"),)
AFTER = TurnStep(text="And now?")


def kinds(run: RecordedRun, *those: type) -> list[str]:
    """The events of these kinds, in order, with what they say of their end."""
    found = [event for event in run.events if isinstance(event, those)]
    ends = [getattr(event, "how", None) or getattr(event, "outcome", "") for event in found]
    return [f"{event.kind} {end}".rstrip() for event, end in zip(found, ends, strict=True)]


def hung_up_in_the_tool(story: Story) -> Scenario:
    """The caller hangs up while c1 runs, and writes again."""
    return story(caller=(SEND, TurnStep(answers=APPROVE, hangs_up="started c1"), AFTER))


class TestInATool:
    def test_the_call_is_cancelled_and_the_turn_fails(self, story: Story, played: Played) -> None:
        """The call ends as cancelled, before the turn does."""
        run = played(hung_up_in_the_tool(story))

        assert [
            "turn.end paused",
            "caller.hang_up",
            "tool.end cancelled",
            "turn.end failed",
            "turn.end finished",
        ] == kinds(run, CallerHungUp, ToolEnd, TurnEnd)

    def test_the_journal_is_well_formed(self, story: Story, played: Played) -> None:
        """What a cancelled turn leaves behind is a journal like any other."""
        assert [] == [*find_violations(played(hung_up_in_the_tool(story)).events)]

    def test_nobody_sees_how_the_turn_ended(self, story: Story, played: Played) -> None:
        """An agent that ends its turn as if nobody had cancelled it tells that to nobody."""

        class Deaf(ReferenceAgent):
            async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
                try:
                    return await super().turn(text, decisions, stream=stream)
                except asyncio.CancelledError:
                    return await super().turn(None, (), stream=stream)

        run = played(hung_up_in_the_tool(story), agent=Deaf)
        ends = [event for event in run.events if isinstance(event, TurnEnd)]

        assert [None, ["CallerGone", "the caller hung up"]] == [event.error for event in ends][:2]

    def test_a_tool_that_is_not_cancelled_continues(self, story: Story, played: Played) -> None:
        """A tool in a task of its own, which no cancellation reaches, comes to its end."""

        class Shielding(ReferenceAgent):
            async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
                return await asyncio.shield(super().turn(text, decisions, stream=stream))

        run = played(hung_up_in_the_tool(story), agent=Shielding)

        assert "tool.end returned" in kinds(run, ToolEnd)

    def test_a_turn_that_waits_for_its_tool_ends(self, story: Story, played: Played) -> None:
        """If the turn does not end before the tool does, the tool continues after a while."""

        class Stubborn(ReferenceAgent):
            async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
                work = asyncio.ensure_future(super().turn(text, decisions, stream=stream))
                try:
                    return await asyncio.shield(work)
                except asyncio.CancelledError:
                    await work
                    raise

        run = played(hung_up_in_the_tool(story), agent=Stubborn)

        assert ["tool.end returned", "turn.end failed"] == kinds(run, ToolEnd, TurnEnd)[1:3]


class TestAtTheModel:
    def test_what_the_model_would_have_said_is_said_later(self, story: Story, played: Played) -> None:
        """A question that nobody waits for uses up no reply."""
        run = played(story(caller=(SEND, TurnStep(answers=APPROVE, hangs_up="model"), AFTER)))
        ends = [event.output for event in run.events if isinstance(event, TurnEnd)]

        assert [None, None, "Done."] == ends
        assert ["model.failure hung_up"] == kinds(run, ModelFailure)

    def test_the_first_question_can_be_cancelled(self, story: Story, played: Played) -> None:
        """The place is the first question in the turn."""
        run = played(story(ScriptedReply(say="Done."), caller=(TurnStep(text="Hello", hangs_up="model"), AFTER)))

        assert ["model.request", "caller.hang_up", "turn.end failed", "model.request", "turn.end finished"] == kinds(
            run, ModelRequest, CallerHungUp, TurnEnd
        )


def test_a_place_that_is_not_reached(story: Story, played: Played) -> None:
    """A turn that does not come there ends as it would have."""
    run = played(story(caller=(TurnStep(text="Go ahead.", hangs_up="started c1"), TurnStep(answers=APPROVE))))

    assert ["turn.end paused", "turn.end finished"] == kinds(run, CallerHungUp, TurnEnd)


def test_an_agent_that_fails_by_itself(story: Story, played: Played) -> None:
    """What a cancelled turn raises is its error."""

    class Failing(ReferenceAgent):
        async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
            try:
                return await super().turn(text, decisions, stream=stream)
            except asyncio.CancelledError:
                raise RuntimeError("torn") from None

    run = played(hung_up_in_the_tool(story), agent=Failing)
    failed = next(event for event in run.events if isinstance(event, TurnEnd) and event.outcome == "failed")

    assert ["RuntimeError", "torn"] == failed.error


def test_the_time_of_a_run_is_limited_all_the_same(story: Story, played: Played) -> None:
    """A turn that never comes to the place, and never ends, is ended by the run's own limit."""

    class Sleeping(ReferenceAgent):
        async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
            await asyncio.Event().wait()
            raise AssertionError

    caller = (TurnStep(text="Go ahead.", hangs_up="model"),)
    run = played(story(caller=caller), agent=Sleeping, limit=RunLimits(seconds=0.2))

    assert ["turn.end timeout"] == kinds(run, TurnEnd)
