"""Playing an item of a scenario file: run, judge, compare with the stored transcript."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pytest

from pytest_approvals.errors import TranscriptDiffers
from pytest_approvals.harness.play import Limit
from pytest_approvals.harness.run import Run, run_scenario
from pytest_approvals.pytest_side.judging import Judged
from pytest_approvals.pytest_side.records import another_transcript
from pytest_approvals.snapshot import assert_transcript
from pytest_approvals.waivers import Outcome, Waiver, waiver_for

if TYPE_CHECKING:
    from pytest_approvals.pytest_side.bench import Bench
    from pytest_approvals.pytest_side.items import ScenarioItem

HANGING = 5.0
"""Seconds for a run that is known to hang: to wait longer for it shows nothing more."""


def play(bench: Bench, item: ScenarioItem) -> None:
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
        run = item.candidate.wait_for(_run(bench, item))
    candidate = item.candidate
    judged = bench.judge(item, run, candidate.source, waivers=candidate.waivers, flavour=candidate.local.spec.flavour)
    item.user_properties.append(("findings", ", ".join(one.verdict.check for one in judged.found)))
    watch.raise_leaks()
    judged.raise_findings()
    for warning in judged.warnings():
        item.warn(warning)
    if judged.waived:
        pytest.xfail("; ".join(str(waiver) for waiver in judged.waived.values()))
    if not judged.found and item.compares and not tells_apart(item):
        _compare(bench, item, judged)


async def _run(bench: Bench, item: ScenarioItem) -> Run:
    scenario, variant, source = item.scenario, item.variant, item.candidate.source
    with bench.journal(scenario, source, variant) as journal:
        hang = _failure(item, "run-ends")
        limit = Limit(seconds=patience(bench.settings.time_limit, hang, item.candidate.waivers))
        return await run_scenario(scenario, variant, source, journal=journal, limit=limit, seed=bench.settings.seed)


def tells_apart(item: ScenarioItem) -> bool:
    """
    Whether a waiver says that the variants of its scenario come to different things: then only the one that writes the
    transcript has to be what is stored.
    """
    apart = _failure(item, "same-outcome-in-every-mode")
    return not item.writes and waiver_for(apart, item.candidate.waivers) is not None


def _failure(item: ScenarioItem, check: str) -> Outcome:
    local, facts = item.candidate.local, item.candidate.source.facts
    return Outcome(
        scenario=item.scenario.id,
        variant=item.variant.id,
        check=check,
        failed=True,
        flavour=local.spec.flavour,
        version=facts.version,
    )


def patience(seconds: float, hang: Outcome, waivers: Iterable[Waiver]) -> float:
    """Gives the time that a run has: *seconds*, or less where a waiver says that it does not end."""
    return min(seconds, HANGING) if waiver_for(hang, waivers) is not None else seconds


def _compare(bench: Bench, item: ScenarioItem, judged: Judged) -> None:
    try:
        assert_transcript(item, judged.transcript, item.transcript, write=item.writes)
    except TranscriptDiffers as error:
        bench.note(item, another_transcript(judged.subject, error))
        raise
