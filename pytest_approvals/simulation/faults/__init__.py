"""Seeded faults: the reference agent with one defect each, to prove that the checks catch it.

Each family is a module. `FAULTS` has the faults of this package; `load_fault` loads one from anywhere.
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
        name: value
        for name, value in vars(module).items()
        # Modules of faults also hold imported classes, such as `Fault` itself.
        if isinstance(value, type) and issubclass(value, Fault) and value.__module__ == module.__name__
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
"""Faults of this package, by family."""

FAULTS: dict[str, type[Fault]] = {name: fault for family in FAMILIES.values() for name, fault in family.items()}
"""Faults of this package, by name."""


def load_fault(name: str) -> type[Fault]:
    """Load a fault: one of `FAULTS` by its name, any other as `MODULE:NAME`.

    Raises:
        UnknownName: There is no fault of that name, here or in that module.
        UsageError: The module cannot be imported, or the name is not that of a fault.
    """
    module_name, _, class_name = name.rpartition(":")
    if not module_name:
        if class_name not in FAULTS:
            raise UnknownName("fault", class_name, FAULTS)
        return FAULTS[class_name]
    try:
        module = import_module(module_name)
    except ImportError as error:
        raise UsageError(f"Cannot import the module of fault {name!r}: {error}") from error
    if not hasattr(module, class_name):
        raise UnknownName(f"fault in {module_name}", class_name, _faults_in(module))
    return _validate_fault(name, getattr(module, class_name))


def build_faulty_agent(fault: type[Fault]) -> type[Agent]:
    """Return the agent class that has *fault*.

    Raises:
        UsageError: The fault lacks its docstring, `source` or `caught_by`.
    """
    return _validate_fault(fault.__name__, fault)


def _validate_fault(name: str, value: object) -> type[Fault]:
    if not (isinstance(value, type) and issubclass(value, Fault)) or value is Fault:
        raise UsageError(f"Invalid fault {name!r}: expected a subclass of pytest_approvals.simulation.faults.Fault")
    lacking = [
        description
        for description, attribute in (
            ("a docstring that states the defect", value.__dict__.get("__doc__")),
            ("`source`, the reports that it is modelled on", value.source),
            ("`caught_by`, the slug of the check that catches it", value.caught_by),
        )
        if not attribute
    ]
    if lacking:
        raise UsageError(f"Incomplete fault {name!r}: missing {', '.join(lacking)}")
    return value
