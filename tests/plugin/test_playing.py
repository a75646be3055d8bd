"""How long a run is waited for."""

from __future__ import annotations

from pytest_approvals.agents.waivers import CheckOutcome, Waiver
from pytest_approvals.plugin.items import HANG_TIME_LIMIT, run_time_limit

HANG = CheckOutcome(scenario="state/cancelled", variant="none-held", check="run-ends", failed=True, version="1.0")


def waiver(check: str, scenario: str = "state/*") -> Waiver:
    """A waiver of one check."""
    return Waiver(scenario=scenario, check=check, reason="It hangs.", issue="https://example.org/issues/1")


def test_a_run_that_is_known_to_hang_has_less_time() -> None:
    """Its time limit would pass in full, and show nothing more."""
    assert HANG_TIME_LIMIT == run_time_limit(30.0, HANG, [waiver("run-ends")])


def test_a_run_that_fails_otherwise_has_all_its_time() -> None:
    """A waiver of another check, or of another scenario, says nothing about its end."""
    assert 30.0 == run_time_limit(30.0, HANG, [waiver("approved-runs"), waiver("run-ends", "nested/*")])


def test_a_shorter_time_limit_holds_for_all_runs() -> None:
    """Nobody waits longer than was wished for."""
    assert 2.0 == run_time_limit(2.0, HANG, [waiver("run-ends")])
