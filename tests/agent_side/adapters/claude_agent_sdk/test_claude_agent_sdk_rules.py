"""Rules of a settings file decide what the CLI runs, what it asks about, and what a standing approval changes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals import always, approve, call, calls, decide, reject, returns, say, send, tool, when
from pytest_approvals.agent_side.adapters.claude_agent_sdk import RulesSession
from pytest_approvals.agent_side.adapters.claude_agent_sdk.agents import SETTINGS, Project, build_permissions
from pytest_approvals.agent_side.adapters.claude_agent_sdk.requests import stop_asking
from pytest_approvals.agent_side.contract import Blueprint, Condition, Decision, ToolSpec
from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.runner.model_endpoint import ModelEndpoint
from pytest_approvals.testing import AdapterSession, FakeWorld, reply
from pytest_approvals.testing import call as model_call
from pytest_approvals.testing import tool as spec

Play = Callable[..., Any]

AMOUNT = {"amount": "integer"}
DONE = say("Done.")
LARGE = Condition(argument="amount", greater_than=100)


def on_server(name: str, approval: Any) -> ToolSpec:
    return ToolSpec(name=name, approval=approval, kind="mcp", server="bank")


@pytest.mark.parametrize(
    ("tools", "permissions"),
    [
        ([ToolSpec(name="pay", approval="always")], {"allow": [], "ask": []}),
        ([ToolSpec(name="look", approval="never")], {"allow": ["mcp__bank__look"], "ask": []}),
        ([ToolSpec(name="pay", approval=LARGE)], {"allow": [], "ask": []}),
        (
            [on_server("pay", "always"), on_server("look", "never")],
            {"allow": ["mcp__bank"], "ask": ["mcp__bank__pay"]},
        ),
        (
            [on_server("pay", "always"), on_server("look", "never"), on_server("lend", LARGE)],
            {"allow": ["mcp__bank__look"], "ask": ["mcp__bank__pay"]},
        ),
    ],
    ids=["gated function", "free function", "function with a condition", "server", "server with a condition"],
)
def test_rules_of_tools(tools: list[ToolSpec], permissions: dict[str, list[str]]) -> None:
    """What no rule allows is asked about; a server is allowed as a whole if none of its tools has a condition."""
    assert permissions == build_permissions({f"mcp__bank__{one.name}": one for one in tools})


@pytest.mark.parametrize(
    ("is_asked_by_rule", "is_allowed", "changes"),
    [
        (True, True, [("removeRules", "ask")]),
        (True, False, [("removeRules", "ask"), ("addRules", "allow")]),
        (False, False, [("addRules", "allow")]),
    ],
)
def test_a_tool_is_not_asked_about_any_more(
    is_asked_by_rule: bool, is_allowed: bool, changes: list[tuple[str, str]]
) -> None:
    """Its `ask` rule goes, as it comes before each rule that allows; a rule that allows is added if there is none."""
    updates = stop_asking("mcp__bank__pay", is_asked_by_rule=is_asked_by_rule, is_allowed=is_allowed)

    assert changes == [(one.type, one.behavior) for one in updates]
    assert {"localSettings"} == {one.destination for one in updates}


def test_a_rule_lets_a_call_run(play: Play) -> None:
    """Nobody is asked: this flavour passes on all that the CLI asks about a tool without a condition."""
    look = tool("look", returns("saw {what}"), parameters={"what": "string"})
    played = play(calls("look", what="a"), DONE, tools=[look], caller=[send("Look.")], flavour="rules")

    assert [[]] == played.requests
    assert [("look", {"what": "a"})] == played.ran


def test_an_ask_rule_comes_before_the_rule_of_the_server(play: Play) -> None:
    """The server is allowed as a whole, and one of its tools is asked about."""
    look = tool("look", returns("saw"), kind="mcp", server="bank")
    pay = tool("pay", returns("paid {amount}"), parameters=AMOUNT, approval="always", kind="mcp", server="bank")
    story = [calls("look"), calls(call("pay", amount=5)), DONE]
    played = play(*story, tools=[look, pay], caller=[send("Pay."), approve("c2")], flavour="rules")

    assert [["c2"], []] == played.requests
    assert [("look", {}), ("pay", {"amount": 5})] == played.ran


def test_a_condition_is_evaluated_when_the_cli_asks(play: Play) -> None:
    """A tool with a condition has no rule, and the callback settles what the condition does not gate."""
    pay = tool("pay", returns("paid {amount}"), parameters=AMOUNT, approval=when("amount", greater_than=100))
    story = [calls("pay", amount=50), calls("pay", amount=500), DONE]
    played = play(*story, tools=[pay], caller=[send("Pay."), reject("c2", "too much")], flavour="rules")

    assert [["c2"], []] == played.requests
    assert [("pay", {"amount": 50})] == played.ran


def test_a_standing_approval_lifts_an_ask_rule(play: Play) -> None:
    """The next call of the tool is not asked about."""
    pay = tool("pay", returns("paid {amount}"), parameters=AMOUNT, approval="always", kind="mcp", server="bank")
    story = [calls("pay", amount=5), calls("pay", amount=6), DONE]
    played = play(*story, tools=[pay], caller=[send("Pay."), decide(always("c1"))], flavour="rules")

    assert [["c1"], []] == played.requests
    assert [("pay", {"amount": 5}), ("pay", {"amount": 6})] == played.ran


PAY, LOOK = spec("pay", "always", amount="integer"), spec("look", "never")
CALL = reply(None, model_call("pay", amount=600))


@pytest.fixture
def work_in() -> Iterator[Callable[..., tuple[AdapterSession, FakeWorld]]]:
    """Begin a session of the tools `pay` and `look` in a folder, whose model calls `pay`, then says "Done."."""
    begun: list[AdapterSession] = []
    with closing(ModelEndpoint("messages")) as served:

        def begin(folder: Project) -> tuple[AdapterSession, FakeWorld]:
            class InFolder(RulesSession):
                def __init__(self, world: World, blueprint: Blueprint) -> None:
                    super().__init__(world, blueprint, project=folder)

            world = FakeWorld([CALL, reply("Done.")], (PAY, LOOK))
            begun.append(AdapterSession(InFolder, Blueprint(tools=(PAY, LOOK)), world, served))
            return begun[-1], world

        yield begin
        for one in begun:
            one.end()


@pytest.fixture
def folder() -> Iterator[Project]:
    with closing(Project({f"mcp__tools__{one.name}": one for one in (PAY, LOOK)})) as made:
        yield made


def test_a_standing_approval_is_kept_in_the_settings_of_the_folder(
    work_in: Callable[..., Any], folder: Project
) -> None:
    """The CLI suggests the rule, and has added it to the others when it ends."""
    session, _ = work_in(folder)
    (request,) = session.paused("Pay.")
    session.finished(None, Decision(request=request, verdict="always"))
    session.wait(session.agent.close())
    settings = json.loads(Path(folder.path, SETTINGS).read_text())

    assert ["mcp__tools__look", "mcp__tools__pay"] == settings["permissions"]["allow"]


def test_a_standing_approval_holds_for_the_next_session_of_the_folder(
    work_in: Callable[..., Any], folder: Project
) -> None:
    """The next session reads the file, and its call is not asked about."""
    first, _ = work_in(folder)
    (request,) = first.paused("Pay.")
    first.finished(None, Decision(request=request, verdict="always"))
    first.wait(first.agent.close())
    second, _ = work_in(folder)

    assert "Done." == second.finished("Pay.")


def test_a_rule_about_arguments_is_ignored_in_a_settings_file(work_in: Callable[..., Any], folder: Project) -> None:
    """This is why a tool with a condition has no rule: the call that an `ask` rule is about runs without a question."""
    folder.permissions = {"allow": ["mcp__tools__pay"], "ask": ["mcp__tools__pay(amount:600)"]}
    session, world = work_in(folder)

    assert "Done." == session.finished("Pay.")
    assert [("pay", {"amount": 600})] == world.ran


def test_a_rule_that_denies_takes_the_tool_from_the_model(work_in: Callable[..., Any], folder: Project) -> None:
    """A call of it is of an unknown tool, and nobody is asked."""
    folder.permissions = {"deny": ["mcp__tools__pay"]}
    session, world = work_in(folder)

    assert "Done." == session.finished("Pay.")
    assert [] == world.ran


def test_the_folder_ends_with_the_session_that_made_it() -> None:
    """Nothing is left of its settings."""
    agent = RulesSession(FakeWorld([], ()), Blueprint())
    folder = Path(agent._project.path)

    assert folder.is_dir()
    asyncio.run(agent.close())
    assert not folder.exists()
