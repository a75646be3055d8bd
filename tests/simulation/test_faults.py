"""The registry of faults, loading one from outside, and the page about them."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

from pytest_approvals.checks import CHECKS
from pytest_approvals.devtools.pages.faults import describe_defect, format_faults_page
from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.simulation.faults import FAMILIES, FAULTS, Fault, build_faulty_agent, load_fault
from pytest_approvals.simulation.reference import ReferenceAgent

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"


@pytest.fixture
def outside(monkeypatch):
    """A third-party module, with a fault and other things in it."""

    class RunsTwice(Fault):
        """Every call runs twice."""

        source = ("somebody/something#1",)
        caught_by = "runs-at-most-once"

    class Misspelt(RunsTwice):
        """Every call runs unasked."""

        def aprove_call(self, call):
            self._approved = call

    class Unfinished(Fault):
        source = ()

    module = types.ModuleType("outside_faults")
    RunsTwice.__module__ = "outside_faults"
    module.RunsTwice, module.Misspelt, module.Unfinished, module.NotOne = RunsTwice, Misspelt, Unfinished, int
    monkeypatch.setitem(sys.modules, "outside_faults", module)
    return module


def test_there_are_at_least_sixty_faults():
    """Names are unique over all families."""
    assert len(FAULTS) == sum(map(len, FAMILIES.values())) >= 60


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_says_what_it_is(name):
    """One sentence states the defect, the sources are public reports, and the check exists."""
    fault = FAULTS[name]

    assert re.fullmatch(r"[A-Z`].*[^.]\.", describe_defect(fault))
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", source) for source in fault.source)
    assert fault.caught_by in CHECKS


def test_every_check_of_the_agent_is_named_by_a_fault():
    """A check that no fault needs might as well not be there; those that guard the run are shown by other means."""
    named = {fault.caught_by for fault in FAULTS.values()}

    assert {slug for slug, check in CHECKS.items() if check.family != "harness"} == named


def test_a_fault_is_loaded_by_its_name_or_from_a_module(outside):
    """The name alone is enough for those of this package."""
    assert FAULTS["RejectedCallRuns"] is load_fault("RejectedCallRuns")
    assert outside.RunsTwice is load_fault("outside_faults:RunsTwice")
    assert FAULTS["RejectedCallRuns"] is load_fault("pytest_approvals.simulation.faults.execution:RejectedCallRuns")


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("RejectedCallRun", UnknownName, "Unknown fault 'RejectedCallRun'; did you mean 'RejectedCallRuns'?"),
        (
            "no_such_module_here:Name",
            UsageError,
            "Cannot import the module of fault 'no_such_module_here:Name': No module named 'no_such_module_here'",
        ),
        (
            "outside_faults:RunTwice",
            UnknownName,
            "Unknown fault 'RunTwice' in outside_faults; did you mean 'RunsTwice'?",
        ),
        (
            "outside_faults:NotOne",
            UsageError,
            "Invalid fault 'outside_faults:NotOne': expected a subclass of pytest_approvals.simulation.faults.Fault",
        ),
        (
            "outside_faults:Misspelt",
            UsageError,
            (
                "Invalid fault 'outside_faults:Misspelt': 'aprove_call' overrides nothing of the reference agent, and "
                "the name of a helper must begin with an underscore; did you mean 'approve_call'?"
            ),
        ),
        (
            "outside_faults:Unfinished",
            UsageError,
            (
                "Incomplete fault 'outside_faults:Unfinished': missing a docstring that states the defect, `source`, "
                "the reports that it is modelled on, `caught_by`, the slug of the check that catches it"
            ),
        ),
    ],
)
def test_a_wrong_name_gets_a_clear_error(outside, name, error, message):
    """What is wrong, and what to do."""
    with pytest.raises(error) as raised:
        load_fault(name)

    assert message == str(raised.value)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_overrides_what_the_reference_agent_has(name):
    """A method that was renamed there would leave a fault without its defect."""
    assert issubclass(build_faulty_agent(FAULTS[name]), FAULTS[name])


def test_a_fault_of_a_faults_subclass_is_found(outside):
    """The name that overrides nothing may be inherited."""
    inherited = type("Inherited", (outside.Misspelt,), {"__doc__": "Every call runs unasked."})

    with pytest.raises(UsageError, match="'aprove_call'"):
        build_faulty_agent(inherited)


def test_a_faulty_agent_is_the_reference_agent_with_the_fault(outside):
    """It can be built like any other agent."""
    assert issubclass(build_faulty_agent(outside.RunsTwice), ReferenceAgent)


def test_the_page_about_faults_is_current():
    """It is written by the command that it names."""
    assert format_faults_page() == PAGE.read_text(encoding="utf-8")
