"""An oracle of somebody's own."""

from __future__ import annotations

from pytest_approvals import Oracle, Request, policy


def weekdays(days: str) -> Oracle:
    """Approves on the named days; it is always Monday."""

    def on_weekdays(request: Request) -> bool:
        return "monday" in days.split(",")

    return policy(on_weekdays)
