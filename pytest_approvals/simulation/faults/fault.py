"""Base class of seeded faults."""

from __future__ import annotations

from typing import ClassVar

from pytest_approvals.simulation.reference import ReferenceAgent


class Fault(ReferenceAgent):
    """The reference agent with a single defect, which a check must catch.

    A subclass overrides one of the reference agent's small methods. Its own helpers begin with an underscore, so that a
    misspelt override is found when the fault is loaded. The first line of its docstring states the defect as a fact.

    Attributes:
        source: Public reports that the defect is modelled on, `OWNER/REPO#NUMBER`.
        caught_by: Slug of the check that must catch it in the built-in catalogue; others may, too.
    """

    source: ClassVar[tuple[str, ...]] = ()
    caught_by: ClassVar[str] = ""
