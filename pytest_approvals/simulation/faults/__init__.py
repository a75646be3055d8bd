"""Seeded faults: the reference agent with one defect each, to prove that the checks catch it.

Each family is a module. `FAULTS` has the faults of this package; `load_fault` loads one from anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.errors import UnknownName, UsageError, suggest_name
from pytest_approvals.simulation.faults import (
    asking,
    crashes,
    decisions,
    elicitations,
    ending,
    execution,
    hangups,
    hosted,
    identity,
    nested,
    standing,
    state,
    stores,
    streaming,
    telling,
)
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference.agent import ReferenceAgent

__all__ = ["FAMILIES", "FAULTS", "Fault", "build_faulty_agent", "load_fault"]


def _faults_in(module: ModuleType) -> dict[str, type[Fault]]:
    return {
        name: value
        for name, value in vars(module).items()
        # Modules of faults also hold imported classes, such as `Fault` itself.
        if isinstance(value, type)
        and issubclass(value, Fault)
        and value.__module__ == module.__name__
        # A base of several faults is none itself.
        and not name.startswith("_")
    }


FAMILIES: dict[str, dict[str, type[Fault]]] = {
    module.__name__.rpartition(".")[2]: _faults_in(module)
    for module in (
        execution,
        asking,
        elicitations,
        telling,
        decisions,
        standing,
        state,
        streaming,
        nested,
        identity,
        hosted,
        hangups,
        crashes,
        stores,
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
        UsageError: The module cannot be imported, the name is not that of a fault, or the fault is incomplete or
            overrides what the reference agent does not have.
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
        raise UnknownName("fault", class_name, _faults_in(module), module_name)
    return _validate_fault(name, getattr(module, class_name))


def build_faulty_agent(fault: type[Fault]) -> type[Agent]:
    """Return the agent class that has *fault*.

    Raises:
        UsageError: The fault lacks its docstring, `source` or `caught_by`, or overrides what the reference agent
            does not have.
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
    for attribute in _find_new_names(value):
        raise UsageError(
            f"Invalid fault {name!r}: {attribute!r} overrides nothing of the reference agent, and the name of a helper "
            f"must begin with an underscore{suggest_name(attribute, _public_names(ReferenceAgent))}"
        )
    return value


def _find_new_names(fault: type[Fault]) -> Iterator[str]:
    """Yield the public names of a fault that override nothing."""
    for position, owner in enumerate(fault.__mro__):
        if owner is Fault:
            return
        inherited = {name for base in fault.__mro__[position + 1 :] for name in _own_names(base)}
        yield from (name for name in vars(owner) if not name.startswith("_") and name not in inherited)


def _public_names(agent: type[Agent]) -> set[str]:
    return {name for base in agent.__mro__ for name in _own_names(base) if not name.startswith("_")}


def _own_names(owner: type) -> set[str]:
    # Names that are only annotated have no value, but can be overridden.
    return {*vars(owner), *vars(owner).get("__annotations__", {})}
