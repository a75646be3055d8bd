from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest

from pytest_approvals.agent_side.contract.types import Decision, Outcome, Parameter
from pytest_approvals.checks import CHECKS
from pytest_approvals.journal.events import RunEnd
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.runner.run import RecordedRun
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import (
    Call,
    Scenario,
    ScriptedDecision,
    ScriptedReply,
    SignalStep,
    Step,
    TogetherStep,
    Tool,
    ToolBehaviour,
    TurnStep,
)
from pytest_approvals.simulation.reference import ReferenceAgent

Story = Callable[..., Scenario]
Played = Callable[..., RecordedRun]

LIMIT = RunLimits(seconds=0.2)
SEND = TurnStep(text="Go")
APPROVE = TurnStep(answers=(ScriptedDecision(label="c1", verdict="approve"),))


class HangsBeforeTheCall(ReferenceAgent):
    """An agent whose turns with decisions never get to a call."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if decisions:
            await asyncio.Event().wait()
        return await super().turn(text, decisions, stream=stream)


class RunsOneCallAtATime(ReferenceAgent):
    """An agent that lets each call of a reply wait for the one before it."""

    lock = asyncio.Lock()

    async def process_call(self, *args: object) -> None:
        async with self.lock:
            await super().process_call(*args)  # type: ignore[arg-type]


def holds(name: str, signal: str, kind: str = "function", approval: str = "always") -> Tool:
    return Tool(
        name=name,
        kind=kind,  # type: ignore[arg-type]
        server="web" if kind == "hosted_mcp" else None,
        parameters={"n": Parameter(type="integer")},
        approval=approval,  # type: ignore[arg-type]
        behaviours=(ToolBehaviour(waits_for=signal),),
    )


def replies(*tools: Tool) -> tuple[ScriptedReply, ScriptedReply]:
    calls = (Call(label=f"c{n}", id=f"c{n}", tool=tool.name, arguments={"n": n}) for n, tool in enumerate(tools, 1))
    return ScriptedReply(calls=tuple(calls)), ScriptedReply(say="Done.")


def end_of(run: RecordedRun) -> list[str] | None:
    [end] = [event for event in run.events if isinstance(event, RunEnd)]
    assert "timeout" == end.how
    return end.error


class TestMissing:
    @pytest.mark.parametrize(
        "caller",
        [
            pytest.param((SEND, APPROVE, SignalStep(name="s")), id="a later step gives it"),
            pytest.param((SEND, TogetherStep(steps=(APPROVE,)), SignalStep(name="s")), id="after the turns together"),
        ],
    )
    def test_a_signal_that_comes_too_late_is_missing(
        self, story: Story, played: Played, caller: tuple[Step, ...]
    ) -> None:
        """A tool that waits for what a later step gives ends the run as a mistake of its story."""
        tool = holds("hold", "s")

        error = end_of(played(story(*replies(tool), tools=(tool,), caller=caller), limit=LIMIT))

        assert ["SignalMissing", "nothing gives the signal 's' before the end of the turn that waits for it"] == error

    @pytest.mark.parametrize(
        ("waits", "other"),
        [
            pytest.param(holds("hold", "ended c2", approval="never"), holds("ask", "ended c1"), id="it waits"),
            pytest.param(
                holds("hold", "ended c2", "hosted_mcp", "never"),
                holds("look", "ended c1", "hosted_mcp", "never"),
                id="a provider runs its calls one after the other",
            ),
        ],
    )
    def test_a_call_that_must_not_run_yet_gives_no_signal(
        self, story: Story, played: Played, waits: Tool, other: Tool
    ) -> None:
        """A tool that waits for a call that is not free to run is held by its story."""
        error = end_of(played(story(*replies(waits, other), tools=(waits, other)), limit=LIMIT))

        assert error is not None
        assert "SignalMissing" == error[0]

    def test_a_provider_that_is_held_has_run_what_the_model_asked_for(self, story: Story, played: Played) -> None:
        """A call whose provider never ends its reply counts as the model's, though no reply says so."""
        tools = tuple(holds(name, "ended c2", "hosted_mcp", "never") for name in ("hold", "look"))

        history = read_history(played(story(*replies(*tools), tools=tools), limit=LIMIT).events)

        assert ["hold"] == [run.tool for run in history.executions]
        assert {"not-applicable"} == {verdict.status for verdict in CHECKS["only-model-calls-run"].judge(history)}


class TestAgentsOwnFault:
    def test_an_agent_that_hangs_before_its_call_waits_for_no_signal(self, story: Story, played: Played) -> None:
        """A turn that never comes to the call with the signal is the agent's own."""
        tool = holds("hold", "s")
        caller = (SEND, TogetherStep(steps=(APPROVE,)), SignalStep(name="s"))

        error = end_of(
            played(story(*replies(tool), tools=(tool,), caller=caller), agent=HangsBeforeTheCall, limit=LIMIT)
        )

        assert error is not None
        assert "TimeoutError" == error[0]

    def test_calls_that_do_not_run_at_once_wait_for_each_other(self, story: Story, played: Played) -> None:
        """An agent that does not run a free call beside another one keeps back the signal itself."""
        tools = (holds("hold", "ended c2", approval="never"), Tool(name="look", parameters={"n": Parameter()}))

        error = end_of(played(story(*replies(*tools), tools=tools), agent=RunsOneCallAtATime, limit=LIMIT))

        assert error is not None
        assert "TimeoutError" == error[0]
