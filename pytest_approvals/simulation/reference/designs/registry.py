"""The legitimate designs by name, which each of their modules adds to."""

from __future__ import annotations

from typing import TypeVar

from pytest_approvals.errors import UnknownName
from pytest_approvals.simulation.reference.agent import ReferenceAgent

DESIGNS: dict[str, type[ReferenceAgent]] = {}
"""All designs by name; the first line of each docstring states how it differs."""

_Design = TypeVar("_Design", bound=type[ReferenceAgent])


def design(cls: _Design) -> _Design:
    """Add a class to the designs, by its name."""
    DESIGNS[cls.__name__] = cls
    return cls


def load_design(name: str) -> type[ReferenceAgent]:
    """Return the design of that name.

    Raises:
        UnknownName: There is none.
    """
    if name not in DESIGNS:
        raise UnknownName("design", name, DESIGNS)
    return DESIGNS[name]
