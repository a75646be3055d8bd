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
from pytest_approvals.snapshot import assert_transcript, transcript_name
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
        TranscriptDiffers: It broke none, but does something else than before.
    """
    # The project's filters of warnings are about its own code; as errors they would change what a framework does.
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        run = item.candidate.wait_for(_run(bench, item))
    candidate = item.candidate
    judged = bench.judge(item, run, candidate.source, waivers=candidate.waivers, flavour=candidate.local.spec.flavour)
    item.user_properties.append(("findings", ", ".join(one.verdict.check for one in judged.found)))
    judged.raise_findings()
    for warning in judged.warnings():
        item.warn(warning)
    if judged.waived:
        pytest.xfail("; ".join(str(waiver) for waiver in judged.waived.values()))
    if not judged.found and item.compares:
        _compare(bench, item, judged)


async def _run(bench: Bench, item: ScenarioItem) -> Run:
    scenario, variant, source = item.scenario, item.variant, item.candidate.source
    with bench.journal(scenario, source, variant) as journal:
        limit = Limit(seconds=patience(bench.settings.time_limit, _hang(item), item.candidate.waivers))
        return await run_scenario(scenario, variant, source, journal=journal, limit=limit, seed=bench.settings.seed)


def _hang(item: ScenarioItem) -> Outcome:
    local, facts = item.candidate.local, item.candidate.source.facts
    return Outcome(
        scenario=item.scenario.id,
        variant=item.variant.id,
        check="run-ends",
        failed=True,
        flavour=local.spec.flavour,
        version=facts.version,
    )


def patience(seconds: float, hang: Outcome, waivers: Iterable[Waiver]) -> float:
    """Gives the time that a run has: *seconds*, or less where a waiver says that it does not end."""
    return min(seconds, HANGING) if waiver_for(hang, waivers) is not None else seconds


def _compare(bench: Bench, item: ScenarioItem, judged: Judged) -> None:
    name = transcript_name(item.candidate.name, item.scenario, item.variant)
    try:
        assert_transcript(item, judged.transcript, name, write=item.writes)
    except TranscriptDiffers as error:
        bench.note(item, another_transcript(judged.subject, error))
        raise
