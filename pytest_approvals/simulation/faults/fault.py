"""Base class of seeded faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pytest_approvals.simulation.reference import ReferenceAgent


class Fault(ReferenceAgent):
    """The reference agent with a single defect, which a check must catch.

    A subclass overrides one of the reference agent's small methods. Its own helpers begin with an underscore, so that a
    misspelt override is found when the fault is loaded. The first line of its docstring states the defect as a fact.

    Attributes:
        source: Public reports that the defect is modelled on, `OWNER/REPO#NUMBER`.
        caught_by: Slug of the check that must catch it in the built-in catalogue; others may, too.
        dies: It shows only if its process is killed.
    """

    dies: ClassVar[bool] = False
    source: ClassVar[tuple[str, ...]] = ()
    caught_by: ClassVar[str] = ""


def map_values(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a JSON value with *change* applied to everything in it that is neither an object nor a list."""
    if isinstance(value, Mapping):
        return {name: map_values(part, change) for name, part in value.items()}
    if isinstance(value, list):
        return [map_values(part, change) for part in value]
    return change(value)


def round_integer(value: Any) -> Any:
    """Return an integer as what is left of it in a double."""
    return int(float(value)) if type(value) is int else value
