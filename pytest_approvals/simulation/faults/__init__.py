"""
Seeded faults: the reference agent with one defect each, to prove that the checks catch what they are for.

A family a file. `FAULTS` has those of this package; `load_fault` loads one from anywhere.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.simulation.faults import (
    asking,
    decisions,
    ending,
    execution,
    handoffs,
    hangups,
    hosted,
    identity,
    nested,
    standing,
    state,
    streaming,
    telling,
)
from pytest_approvals.simulation.faults.fault import Fault

__all__ = ["FAMILIES", "FAULTS", "Fault", "build_faulty_agent", "load_fault"]


def _faults_in(module: ModuleType) -> dict[str, type[Fault]]:
    return {
        name: found
        for name, found in vars(module).items()
        if isinstance(found, type) and issubclass(found, Fault) and found.__module__ == module.__name__
    }


FAMILIES: dict[str, dict[str, type[Fault]]] = {
    module.__name__.rpartition(".")[2]: _faults_in(module)
    for module in (
        execution,
        asking,
        telling,
        decisions,
        standing,
        state,
        streaming,
        nested,
        identity,
        hosted,
        handoffs,
        hangups,
        ending,
    )
}
"""The faults of this package, by family."""

FAULTS: dict[str, type[Fault]] = {name: fault for family in FAMILIES.values() for name, fault in family.items()}
"""The faults of this package, by name."""


def load_fault(name: str) -> type[Fault]:
    """
    Loads a fault: one of `FAULTS` by its name, any other as `MODULE:NAME`.

    Errors:
        UnknownName: There is no fault of that name, here or in that module.
        UsageError: The module cannot be imported, or what has the name is no fault.
    """
    where, _, what = name.rpartition(":")
    if not where:
        if what not in FAULTS:
            raise UnknownName("fault", what, FAULTS)
        return FAULTS[what]
    try:
        module = import_module(where)
    except ImportError as error:
        raise UsageError(f"the module of fault {name!r} cannot be imported: {error}") from error
    if not hasattr(module, what):
        raise UnknownName(f"fault in {where}", what, _faults_in(module))
    return _validate_fault(name, getattr(module, what))


def build_faulty_agent(fault: type[Fault]) -> type[Agent]:
    """
    Gives the agent class that has *fault*.

    Errors:
        UsageError: The fault lacks what every fault says of itself.
    """
    return _validate_fault(fault.__name__, fault)


def _validate_fault(name: str, found: object) -> type[Fault]:
    if not (isinstance(found, type) and issubclass(found, Fault)) or found is Fault:
        raise UsageError(f"{name!r} is no fault; derive a class from pytest_approvals.simulation.faults.Fault")
    lacking = [
        what
        for what, given in (
            ("a docstring that states the defect", found.__dict__.get("__doc__")),
            ("`source`, the reports that it is modelled on", found.source),
            ("`caught_by`, the slug of the check that catches it", found.caught_by),
        )
        if not given
    ]
    if lacking:
        raise UsageError(f"the fault {name!r} lacks {', '.join(lacking)}")
    return found
