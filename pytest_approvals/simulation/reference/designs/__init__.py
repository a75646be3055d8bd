"""Legitimate designs: the reference agent built differently, and still right.

Each is an agent that a maintainer could defend. No check may fail on one: `python -m
pytest_approvals.devtools.pages.designs` runs the catalogue and drawn stories on each and writes `docs/designs.md`.
"""

from __future__ import annotations

# isort: off
from pytest_approvals.simulation.reference.designs.registry import DESIGNS, load_design

# Each module adds its designs to `DESIGNS`, in the order of the page.
from pytest_approvals.simulation.reference.designs import running as _running  # noqa: F401
from pytest_approvals.simulation.reference.designs import telling as _telling  # noqa: F401
from pytest_approvals.simulation.reference.designs import asking as _asking  # noqa: F401
from pytest_approvals.simulation.reference.designs import deciding as _deciding  # noqa: F401
from pytest_approvals.simulation.reference.designs import keeping as _keeping  # noqa: F401
from pytest_approvals.simulation.reference.designs import history as _history  # noqa: F401
from pytest_approvals.simulation.reference.designs import streaming as _streaming  # noqa: F401
# isort: on

__all__ = ["DESIGNS", "load_design"]
