"""Scenario files that are written from scenarios."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_approvals.agent_side.contract.types import Condition
from pytest_approvals.scenario.catalogue import find_scenarios, stock_folder
from pytest_approvals.scenario.generation import story_from_seed
from pytest_approvals.scenario.load import load_scenario, parse_scenario
from pytest_approvals.scenario.model import LeaveStep, Scenario, ToolBehaviour
from pytest_approvals.scenario.to_file import format_scenario

STORY = """\
title: Two refunds in turn
tools:
  pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 1}}]
  - calls: [{id: c2, tool: pay, arguments: {amount: 2}}]
  - say: Done.
caller:
  - send: Go ahead.
  - decide: {c1: approve}
  - decide: {c2: {reject: too much}}
"""

CATALOGUE = find_scenarios([stock_folder()])


def load_again(scenario: Scenario) -> Scenario:
    """Return what the file of a scenario says."""
    again = parse_scenario(format_scenario(scenario), name=scenario.id, path=str(scenario.path))
    assert scenario.about.split() == again.about.split()
    return replace(again, about=scenario.about, path=scenario.path, lines=scenario.lines, fakes=scenario.fakes)


def assert_written(scenario: Scenario) -> None:
    """Assert that the file of a scenario says all of it; the text of both tells 1 from true."""
    again = load_again(scenario)
    assert scenario == again
    assert [repr(tool.all_behaviours) for tool in scenario.tools] == [repr(tool.all_behaviours) for tool in again.tools]
    assert repr(scenario.caller) == repr(again.caller)


@pytest.mark.parametrize("name", [*CATALOGUE][::12])
def test_a_file_says_all_of_a_scenario(name: str) -> None:
    """A scenario of the catalogue that is written and loaded is the same."""
    assert_written(load_scenario(CATALOGUE[name], root=stock_folder()))


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_a_file_says_all_of_each_scenario(name: str) -> None:
    """Each scenario of the catalogue that is written and loaded is the same."""
    assert_written(load_scenario(CATALOGUE[name], root=stock_folder()))


@pytest.mark.parametrize("seed", range(60))
def test_a_file_says_all_of_a_drawn_story(seed: int) -> None:
    """A drawn story, with values that YAML could mistake, is written so that it loads as the same."""
    assert_written(story_from_seed(seed))


@pytest.mark.parametrize(
    "returns", [True, 1, 1.0, None, "yes", "~", "1e3", "a: b", " x", "\x1b[2J", "é", {"a": [None]}, 2**63, 1e20]
)
def test_values_keep_their_types(returns: object) -> None:
    """The result of a tool has the same value and the same type in the file."""
    story = parse_scenario(STORY, name="a/b", path="b.approval.yaml")
    tool = replace(story.tools[0], behaviours=(ToolBehaviour(returns=returns),))
    assert_written(replace(story, tools=(tool,)))


@pytest.mark.parametrize(
    "condition",
    [
        Condition(argument="amount", equals=None),
        Condition(argument="amount", one_of=(1, True, "on")),
        Condition(answers=(True, False)),
        Condition(raises="no policy"),
        Condition(argument="amount", greater_than=0),
    ],
    ids=["equals", "one_of", "answers", "raises", "greater_than"],
)
def test_conditions_are_written(condition: Condition) -> None:
    """Each comparison of a condition is in the file, also one with null or zero."""
    story = parse_scenario(STORY, name="a/b", path="b.approval.yaml")
    assert_written(replace(story, tools=(replace(story.tools[0], approval=condition),)))


def test_a_change_is_noticed() -> None:
    """A scenario that differs in one step is another file."""
    story = parse_scenario(STORY, name="a/b", path="b.approval.yaml")
    assert story != load_again(replace(story, caller=(*(story.caller or ())[:1], LeaveStep())))


def test_a_file_reads_as_if_a_person_had_written_it() -> None:
    """Small things are on one line, defaults are left out, and comments stand above."""
    story = parse_scenario(STORY, name="a/b", path="b.approval.yaml")
    assert f"# Found by a machine.\n{STORY}" == format_scenario(story, comment=["Found by a machine."])
