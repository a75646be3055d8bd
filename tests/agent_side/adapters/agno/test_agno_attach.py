"""A user's own agents and teams: discovery, runs and clean-up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.base import Model
from agno.team import Team
from agno.tools import Toolkit, tool

from pytest_approvals.agent_side.contract import ANY_AGENT
from pytest_approvals.testing import AdapterSession, approve, call, reject, reply

Attach = Callable[..., AdapterSession]

REFUNDS = reply(None, call("refund", order=42))
DONE = reply("Done.")


class Theirs(Model):
    """A user's own model, which nobody may ask."""

    def __init__(self) -> None:
        super().__init__(id="theirs", name="Theirs", provider="theirs")

    def invoke(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    ainvoke = invoke_stream = ainvoke_stream = _parse_provider_response = _parse_provider_response_delta = invoke


@tool(requires_confirmation=True)
def refund(order: int, fc: Any = None) -> str:
    """Refunds an order."""
    return f"refunded {order} for {fc.call_id}"


async def look(name: str, limit: int = 3) -> str:
    """Looks something up."""
    return f"{name} {limit}"


class Disks(Toolkit):
    """A toolkit of their own."""

    def __init__(self) -> None:
        super().__init__(name="disks", tools=[self.wipe], requires_confirmation_tools=["wipe"])

    def wipe(self, disk: str) -> str:
        """Wipes a disk."""
        return f"wiped {disk}"


def make_agent(model: Any = None, **more: Any) -> Agent:
    return Agent(model=model or Theirs(), tools=[refund, look, Disks()], **more)


def test_what_the_framework_marks_is_found(attach: Attach) -> None:
    """Functions, plain callables and toolkits are listed with their parameters and their gates."""
    found = {spec.name: spec for spec in attach(make_agent()).agent.tools()}

    assert {"refund": "always", "look": "never", "wipe": "always"} == {
        name: spec.approval for name, spec in found.items()
    }
    assert ["order"] == list(found["refund"].parameters)
    assert (False, 3) == (found["look"].parameters["limit"].required, found["look"].parameters["limit"].default)


def test_tools_that_a_function_gives_are_known_when_it_runs(attach: Attach) -> None:
    """They are not listed before; their bodies run in the world as others do."""
    session = attach(Agent(model=Theirs(), tools=lambda: [look]), reply(None, call("look", name="a")), DONE)

    assert () == tuple(session.agent.tools())
    assert "Done." == session.finished("Look.")
    assert ["look"] == [name for name, _ in session.world.ran]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("subject", [make_agent, make_agent()], ids=["factory", "agent"])
def test_a_real_tool_runs_after_its_approval(attach: Attach, subject: Any, stream: bool) -> None:
    """The scripted model replaces theirs; their tool's own result reaches it."""
    session = attach(subject, REFUNDS, DONE)
    (request,) = session.paused("Refund 42.", stream=stream)

    assert "Done." == session.finished(None, approve(request), stream=stream)
    assert ([("refund", {"order": 42})], ["refunded 42 for c1"]) == (session.world.ran, session.world.told())


def test_a_method_of_a_toolkit_runs(attach: Attach) -> None:
    """The body that the world runs is the toolkit's own."""
    session = attach(make_agent(), reply(None, call("wipe", disk="a")), DONE)
    session.finished(None, approve(session.paused("Wipe a.")[0]))

    assert ["wiped a"] == session.world.told()


def test_a_rejected_call_does_not_reach_the_real_tool(attach: Attach) -> None:
    """The world sees no run at all."""
    session = attach(make_agent(), REFUNDS, DONE)
    session.finished(None, reject(session.paused("Refund 42.")[0], "over the limit"))

    assert ([], ["over the limit"]) == (session.world.ran, session.world.told())


def test_a_stub_stands_in_for_a_tool(attach: Attach) -> None:
    """Its body is not entered; it gets what the framework hands over, which is with the defaults."""
    session = attach(make_agent(), reply(None, call("look", name="a")), DONE, results={"look": "seen"})
    session.finished("Look.")

    assert (["seen"], [], [("look", {"name": "a", "limit": 3})]) == (
        session.world.told(),
        session.world.real,
        session.world.ran,
    )


def test_members_of_a_team_are_probed(attach: Attach) -> None:
    """A member's tools are found under its id, which the framework makes of its name if it has none."""
    team = Team(members=[make_agent(id="clerk"), make_agent(name="Old Clerk")], model=Theirs())
    found = attach(team, flavour="team").agent.tools()

    assert ["clerk", "old-clerk"] == [spec.agent for spec in found if spec.name == "refund"]


def test_a_leader_has_a_tool_that_runs_its_members(attach: Attach) -> None:
    """The framework makes it; a team that asks all members at once has another one."""
    team = Team(members=[make_agent(id="clerk")], model=Theirs())
    everyone = Team(members=[make_agent(id="clerk")], model=Theirs(), delegate_to_all_members=True)

    assert [("main", "delegate_task_to_member", ANY_AGENT)] == [
        (spec.agent, spec.name, spec.runs)
        for spec in attach(team, flavour="team").agent.tools()
        if spec.runs is not None
    ]
    assert not [spec for spec in attach(everyone, flavour="team").agent.tools() if spec.runs is not None]


def test_members_send_no_telemetry(attach: Attach) -> None:
    """Each agent has a switch of its own, which is as it was when the session is closed."""
    member = make_agent(id="clerk")
    team = Team(members=[member], model=Theirs())
    session = attach(team, flavour="team")
    attached = team.telemetry, member.telemetry
    session.wait(session.agent.close())

    assert ((False, False), (True, True)) == (attached, (team.telemetry, member.telemetry))


def test_a_run_goes_on_from_a_store(attach: Attach) -> None:
    """Another agent object restores the run from the file."""
    session = attach(make_agent, REFUNDS, DONE, serialize="native.sqlite")
    session.paused("Refund 42.")
    session.restart()
    session.finished(None, approve(session.pending()[0]))

    assert ["refund"] == session.world.real


def test_a_persons_own_database_is_used(attach: Attach) -> None:
    """The session is in it, under a name of its own."""
    db = InMemoryDb()
    attach(make_agent(db=db), REFUNDS).paused("Refund 42.")

    assert 1 == len(db._sessions)


def test_the_agent_is_left_as_it_was(attach: Attach) -> None:
    """Model, tools and database are their own again when the session is closed."""
    agent = make_agent()
    before = agent.model, agent.tools, agent.db, agent.telemetry
    session = attach(agent, DONE)
    session.finished("Hello.")
    session.wait(session.agent.close())

    assert before == (agent.model, agent.tools, agent.db, agent.telemetry)
