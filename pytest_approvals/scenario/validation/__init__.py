"""What cannot be meant in a scenario, whether it was loaded or built.

Each function gives the mistakes of one part. A scenario that comes through means something: every word in it is known,
every label is that of a call, every signal is given, and what looks like a slip is marked as being on purpose.

What a scenario goes through however it was written: labels and validation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pytest_approvals.agent_side.contract import Parameter
from pytest_approvals.scenario.labels import assign_labels
from pytest_approvals.scenario.model import Scenario, Tool
from pytest_approvals.scenario.validation.caller import validate_caller
from pytest_approvals.scenario.validation.frame import validate_frame
from pytest_approvals.scenario.validation.index import ScenarioIndex
from pytest_approvals.scenario.validation.model import validate_model
from pytest_approvals.scenario.validation.tools import validate_tools
from pytest_approvals.yaml_files import Diagnostic, DiagnosticGroup


def validate_scenario(scenario: Scenario, *, attached: bool = False) -> Iterator[Diagnostic]:
    """
    Gives every mistake in a scenario that has its labels.

    Arguments:
        attached: A person's own agent plays it: which tools there are, and what their arguments are, is not known here.
    """
    view = ScenarioIndex.of(scenario, attached=attached)
    yield from validate_frame(view)
    yield from validate_tools(view)
    yield from validate_model(view)
    yield from validate_caller(view)


def finalize(scenario: Scenario, *, attached: bool = False) -> Scenario:
    """
    Gives the scenario as it can be played.

    Arguments:
        attached: It is played by a person's own agent, which has tools that the scenario does not know.

    Errors:
        Mistake, Mistakes: It has mistakes.
    """
    scenario = replace(scenario, tools=tuple(map(_add_input_parameter, scenario.tools)))
    scenario = assign_labels(scenario)
    if found := tuple(validate_scenario(scenario, attached=attached)):
        raise DiagnosticGroup(found)
    return scenario


def _add_input_parameter(tool: Tool) -> Tool:
    """A tool that runs an agent has the one parameter `input`; nobody needs to write it."""
    return tool if tool.runs is None or tool.parameters else replace(tool, parameters={"input": Parameter()})
