"""Playing an item of a scenario file: run, judge, compare with the stored transcript."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

from pytest_approvals.agents.waivers import CheckOutcome, Waiver, find_waiver
from pytest_approvals.errors import TranscriptMismatch
from pytest_approvals.plugin.results import transcript_mismatch_line
from pytest_approvals.plugin.snapshot import assert_transcript
from pytest_approvals.reporting.judged_run import JudgedRun
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import RunLimits

if TYPE_CHECKING:
    from pytest_approvals.plugin.collection import ScenarioItem
    from pytest_approvals.plugin.session import ApprovalsSession

HANG_TIME_LIMIT = 5.0
"""Seconds for a run that is known to hang: to wait longer for it shows nothing more."""


def run_item(bench: ApprovalsSession, item: ScenarioItem) -> None:
    """
    Plays an item and judges it.

    Errors:
        CheckFailed: It broke a requirement, and no waiver covers that.
        Leaked: Something left for another machine.
        TranscriptDiffers: It broke none, but does something else than before.
    """
    # The project's filters of warnings are about its own code; as errors they would change what a framework does.
    with warnings.catch_warnings(), bench.guard.watch() as watch:
        warnings.simplefilter("default")
        run = item.candidate.wait_for(_run_scenario(bench, item))
    candidate = item.candidate
    judged = bench.judge(item, run, candidate.source, waivers=candidate.waivers, flavour=candidate.local.spec.flavour)
    item.user_properties.append(("findings", ", ".join(one.verdict.check for one in judged.found)))
    watch.raise_leaks()
    judged.raise_findings()
    for warning in judged.warnings():
        item.warn(warning)
    if judged.waived:
        pytest.xfail("; ".join(str(waiver) for waiver in judged.waived.values()))
    if not judged.found and item.compares and not is_expected_to_differ(item):
        _compare_transcript(bench, item, judged)


async def _run_scenario(bench: ApprovalsSession, item: ScenarioItem) -> RecordedRun:
    scenario, variant, source = item.scenario, item.variant, item.candidate.source
    with bench.journal(scenario, source, variant) as journal:
        hang = _potential_failure(item, "run-ends")
        limit = RunLimits(seconds=run_time_limit(bench.settings.time_limit, hang, item.candidate.waivers))
        return await run_scenario(scenario, variant, source, journal=journal, limit=limit, seed=bench.settings.seed)


def is_expected_to_differ(item: ScenarioItem) -> bool:
    """
    Whether a waiver says that the variants of its scenario come to different things: then only the one that writes the
    transcript has to be what is stored.
    """
    apart = _potential_failure(item, "same-outcome-in-every-mode")
    return not item.writes and find_waiver(apart, item.candidate.waivers) is not None


def _potential_failure(item: ScenarioItem, check: str) -> CheckOutcome:
    local, facts = item.candidate.local, item.candidate.source.facts
    return CheckOutcome(
        scenario=item.scenario.id,
        variant=item.variant.id,
        check=check,
        failed=True,
        flavour=local.spec.flavour,
        version=facts.version,
    )


def run_time_limit(seconds: float, hang: CheckOutcome, waivers: Iterable[Waiver]) -> float:
    """Gives the time that a run has: *seconds*, or less where a waiver says that it does not end."""
    return min(seconds, HANG_TIME_LIMIT) if find_waiver(hang, waivers) is not None else seconds


def _compare_transcript(bench: ApprovalsSession, item: ScenarioItem, judged: JudgedRun) -> None:
    try:
        assert_transcript(item, judged.transcript, item.transcript, write=item.writes)
    except TranscriptMismatch as error:
        bench.note(item, transcript_mismatch_line(judged.subject, error))
        raise
