"""What a seeded fault is."""

from __future__ import annotations

from typing import ClassVar

from pytest_approvals.simulation.reference import ReferenceAgent


class Fault(ReferenceAgent):
    """
    The reference agent with a single defect, which a check must catch.

    A subclass overrides one of the reference agent's small methods. The first line of its docstring states the defect
    as a fact.

    Attributes:
        source: The public reports that it is modelled on, `OWNER/REPO#NUMBER`.
        caught_by: The slug of the check that must catch it in the stock catalogue; others may, too.
    """

    source: ClassVar[tuple[str, ...]] = ()
    caught_by: ClassVar[str] = ""
