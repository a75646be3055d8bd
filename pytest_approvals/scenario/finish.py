"""What a scenario goes through however it was written: labels and validation."""

from __future__ import annotations

from dataclasses import replace

from pytest_approvals.agent_side.contract import Parameter
from pytest_approvals.scenario.labels import labelled
from pytest_approvals.scenario.mistakes import Mistakes
from pytest_approvals.scenario.parts import Scenario, Tool
from pytest_approvals.scenario.validate import mistakes_in


def finished(scenario: Scenario, *, attached: bool = False) -> Scenario:
    """
    Gives the scenario as it can be played.

    Arguments:
        attached: It is played by a person's own agent, which has tools that the scenario does not know.

    Errors:
        Mistake, Mistakes: It has mistakes.
    """
    scenario = replace(scenario, tools=tuple(map(_with_input, scenario.tools)))
    scenario = labelled(scenario)
    if found := tuple(mistakes_in(scenario, attached=attached)):
        raise Mistakes(found)
    return scenario


def _with_input(tool: Tool) -> Tool:
    """A tool that runs an agent has the one parameter `input`; nobody needs to write it."""
    return tool if tool.runs is None or tool.parameters else replace(tool, parameters={"input": Parameter()})
