"""Drafts tried on agents."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_approvals.conversations.reproduce.draft import ScenarioDraft
from pytest_approvals.conversations.reproduce.reproducer import Reproducer
from pytest_approvals.conversations.reproduce.trials import TrialAgent
from pytest_approvals.errors import AgentUnavailable, UnknownName
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_scenario


def test_a_failing_check_comes_with_the_first_variant_in_which_it_does(stored: ScenarioDraft) -> None:
    """And it fails there again."""
    tried = TrialAgent("meai==10.4")
    [(check, variant)] = tried.find_failing_checks(stored).items()

    assert ("usable-after-refusal", "none-stream-rebuilt") == (check, variant.id if variant else "")
    assert tried.fails(stored, check, variant)
    assert not tried.fails(stored, "run-ends", variant)


def test_a_check_on_all_variants_together_fails_in_none_of_them() -> None:
    """A late decision comes to something else where each message is stored once."""
    folder = stock_folder()
    story = load_scenario(folder / "state" / "late-decision-after-a-new-message.approval.yaml", root=folder)

    assert {"same-outcome-in-every-mode": None} == TrialAgent("meai==10.9").find_failing_checks_of(story)
    assert {} == TrialAgent("meai==robust").find_failing_checks_of(story)


def test_a_check_that_was_named_counts_if_it_warns() -> None:
    """Others that warn are left alone: a warning may be the framework's design."""
    folder = stock_folder()
    story = load_scenario(folder / "decisions" / "unknown-request.approval.yaml", root=folder)
    tried = TrialAgent("openai_agents")
    unnamed = tried.find_failing_checks_of(story)
    tried.warned_checks = frozenset({"invalid-decision-refused"})

    assert ([], ["invalid-decision-refused"]) == (list(unnamed), list(tried.find_failing_checks_of(story)))


def test_what_an_agent_lacks_is_reported(written: Any) -> None:
    """It plays nothing then, and nothing fails."""
    calls = [written.call("pay", call_id, {"amount": n}) for n, call_id in enumerate("ab")]
    answer = {"$type": "toolApprovalResponse", "requestId": "ficc_a", "approved": True, "toolCall": calls[0]}
    draft = written.draft(
        written.message("user", "Pay"),
        written.message("assistant", *map(written.request, calls)),
        written.message("user", answer),
    )
    lines: list[str] = []
    reproducer = Reproducer(["meai"], limit=RunLimits(seconds=10), most_trials=10, report_progress=lines.append)

    assert reproducer.reproduce(draft, "A story.").failing_check is None
    assert ["meai: cannot run it: missing partial_answers"] == lines


def test_an_agent_that_does_not_exist_is_refused() -> None:
    """With what is nearest."""
    with pytest.raises((UnknownName, AgentUnavailable), match="did you mean 'meai'"):
        TrialAgent("meia")
