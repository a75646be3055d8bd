"""Validation of scenarios, loaded or built.

Each function yields the diagnostics of one part. In a valid scenario every word is known, every label is that of a
call, every signal is given, and every apparent slip is marked as intended.
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


def finalize(scenario: Scenario, *, attached: bool = False) -> Scenario:
    """Return the scenario as it can be played: labelled and valid.

    Args:
        scenario: The scenario as it was loaded or built.
        attached: A user agent plays it, which has tools that the scenario does not know.

    Raises:
        Diagnostic, DiagnosticGroup: The scenario is invalid.
    """
    scenario = replace(scenario, tools=tuple(map(_add_input_parameter, scenario.tools)))
    scenario = assign_labels(scenario)
    if diagnostics := tuple(validate_scenario(scenario, attached=attached)):
        raise DiagnosticGroup(diagnostics)
    return scenario


def validate_scenario(scenario: Scenario, *, attached: bool = False) -> Iterator[Diagnostic]:
    """Yield every diagnostic of a labelled scenario.

    Args:
        scenario: The scenario.
        attached: A user agent plays it: its tools and their arguments are not known here.
    """
    index = ScenarioIndex.of(scenario, attached=attached)
    yield from validate_frame(index)
    yield from validate_tools(index)
    yield from validate_model(index)
    yield from validate_caller(index)


def _add_input_parameter(tool: Tool) -> Tool:
    """Add the parameter `input` to a tool that runs an agent; nobody has to write it."""
    return tool if tool.runs is None or tool.parameters else replace(tool, parameters={"input": Parameter()})
