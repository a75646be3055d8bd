"""Runs that are workflows of DBOS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals import approve, call, calls, cancel, decide, reject, say, send
from pytest_approvals.agent_side.adapters.pydantic_ai.dbos import DBOSSession
from pytest_approvals.agent_side.contract import Attachment, Blueprint, Decision, Unsupported
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agents.sources import subprocess_factory
from pytest_approvals.journal.events import ModelRequest, StateRestored, ToolStart
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Variant
from pytest_approvals.testing import FakeWorld, reply, tool
from pytest_approvals.testing import call as fake_call

pytest.importorskip("dbos")

Play = Callable[..., Any]

VARIANTS = [
    Variant(),
    Variant(stream=True),
    Variant(serialize="native.sqlite", source="rebuilt"),
    Variant(serialize="native.sqlite", source="restored", stream=True),
]


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.id)
def test_an_approved_call_runs_once_and_is_told(play: Play, variant: Variant) -> None:
    """The next workflow begins with the messages of the last one."""
    played = play(variant=variant, flavour="dbos")

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


def test_a_failed_turn_keeps_what_ran(play: Play) -> None:
    """A run that fails is the result of its workflow, too."""
    played = play(
        text="""
tools:
  pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - fails: 503
  - say: Done.
caller:
  - send: Pay.
  - decide: {c1: approve}
  - send: Again.
""",
        flavour="dbos",
        variant=VARIANTS[2],
    )

    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


def test_what_was_given_up_stays_so(play: Play) -> None:
    """A workflow keeps it, so that another process knows."""
    played = play(
        calls("pay", amount=5),
        say("Done."),
        caller=["Pay.", cancel(), send("And now?")],
        flavour="dbos",
        variant=VARIANTS[2],
    )

    assert [] == played.ran
    assert ["paused", "finished"] == played.outcomes


def test_calls_of_a_reply_are_answered_together(play: Play) -> None:
    """The steps of two calls are told apart."""
    both = calls(call("pay", amount=5), call("pay", amount=6))
    played = play(both, say("Done."), caller=["Go.", decide(approve("c1"), reject("c2", "no"))], flavour="dbos")

    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5", "c2": "no"} == played.told


@pytest.fixture
def stored(tmp_path: Path) -> Blueprint:
    """What a session is made of whose database is a file."""
    pay = tool("pay", "always", amount="integer")
    return Blueprint(tools=(pay,), serialize="native.sqlite", directory=str(tmp_path))


def test_a_turn_that_another_copy_has_taken_is_refused(stored: Blueprint) -> None:
    """The id of its workflow is in use; nothing runs a second time."""

    async def story() -> tuple[str, list[Any]]:
        asked = FakeWorld([reply(None, fake_call("pay", amount=5)), reply("Done.")], stored.tools)
        late = FakeWorld([reply("Done.")], stored.tools)
        first, second = DBOSSession(asked, stored), DBOSSession(late, stored)
        await first.turn("Pay.", (), stream=False)
        await second.load([await first.dump()])
        (request,) = await second.pending()
        answer = [Decision(verdict="approve", request=request)]
        await first.turn(None, answer, stream=False)
        try:
            await second.turn(None, answer, stream=False)
        except Exception as error:
            return type(error).__name__, late.ran
        finally:
            await first.close()
            await second.close()
        return "no error", late.ran

    assert ("TurnTaken", []) == asyncio.run(story())


def take_turns(stored: Blueprint, steps: Callable[[DBOSSession], Any]) -> Any:
    """Return what *steps* give, taken after a session has asked about a payment."""

    async def story() -> Any:
        session = DBOSSession(
            FakeWorld([reply(None, fake_call("pay", amount=5)), reply("Done.")], stored.tools), stored
        )
        await session.turn("Pay.", (), stream=False)
        try:
            return await steps(session)
        finally:
            await session.close()

    return asyncio.run(story())


def test_a_save_is_the_name_of_the_session(stored: Blueprint) -> None:
    """serialize.copy, serialize.json, history.append, stage, trim: all else stays in the database, as it is."""

    async def dump(session: DBOSSession) -> bool:
        return await session.dump() == session.name

    assert take_turns(stored, dump)


def test_a_turn_is_not_begun_again(stored: Blueprint) -> None:
    """rewind: its id names the run that was."""

    async def rewind(session: DBOSSession) -> str:
        session._turns = 0
        try:
            await session.turn("Pay.", (), stream=False)
        except Exception as error:
            return type(error).__name__
        return "no error"

    assert "TurnTaken" == take_turns(stored, rewind)


def test_a_workflow_whose_caller_has_gone_stays_pending(stored: Blueprint) -> None:
    """hang_up: it neither runs nor ends."""

    async def leave(session: DBOSSession) -> str:
        from dbos import DBOS, SetWorkflowID

        begun = asyncio.Event()

        @DBOS.workflow()
        async def wait() -> None:
            begun.set()
            await asyncio.Event().wait()

        async def call_workflow() -> None:
            with SetWorkflowID("left"):
                await wait()

        caller = asyncio.create_task(call_workflow())
        await begun.wait()
        caller.cancel()
        await asyncio.gather(caller, return_exceptions=True)
        status = await DBOS.get_workflow_status_async("left")
        return str(status and status.status)

    assert "PENDING" == take_turns(stored, leave)


def test_an_agent_of_the_user_is_refused(stored: Blueprint) -> None:
    """Its model could not be replaced."""
    attached = Blueprint(tools=(), attachment=Attachment(subject=object()))

    with pytest.raises(Unsupported, match="`DBOSDurability` refuses a model"):
        DBOSSession(FakeWorld([], ()), attached)


def play_crash(place: str, way: str, *, steps: bool = True) -> RecordedRun:
    """Let the process die at *place* of the turn with the approval, and go on."""
    source = InProcessSource(
        name="pydantic_ai.dbos",
        adapter=DBOSSession,
        facts=describe_adapter(DBOSSession),
        elsewhere=subprocess_factory(DBOSSession),
    )
    story = parse_scenario(
        f"""
title: A crash
options: {{steps: {str(steps).lower()}}}
tools:
  pay: {{approval: always, parameters: {{amount: integer}}, returns: "paid {{amount}}"}}
model:
  - calls: [{{id: c1, tool: pay, arguments: {{amount: 5}}}}]
  - say: Paid.
  - say: It was paid.
caller:
  - send: Pay.
  - decide: {{c1: approve}}
    crashes: {place}
  - {way}
""",
        name="crash",
        path="crash.approval.yaml",
    )
    return asyncio.run(run_scenario(story, VARIANTS[2], source, limit=RunLimits(seconds=30)))


def test_nobody_is_asked_again_after_a_crash() -> None:
    """The workflow is resumed, which knows the answer."""
    run = play_crash("before c1", "go_on: true")

    assert [] == [event.pending for event in run.events if isinstance(event, StateRestored)][-1]
    assert 1 == sum(isinstance(event, ToolStart) for event in run.events)


@pytest.mark.parametrize(("steps", "runs"), [(True, 1), (False, 2)])
def test_a_resumed_workflow_repeats_what_is_no_step(steps: bool, runs: int) -> None:
    """The result of a step was recorded before the model was told of it."""
    run = play_crash("model", "go_on: true", steps=steps)

    assert runs == sum(isinstance(event, ToolStart) for event in run.events)


def test_a_message_after_a_crash_waits_for_what_was_cut_off() -> None:
    """The approved call runs first, and the model reads the message after its own answer."""
    run = play_crash("before c1", "send: And now?")

    (last,) = [event for event in run.events if isinstance(event, ModelRequest)][-1:]
    assert ["user", "call", "result", "say", "user"] == [item["kind"] for item in last.items]
