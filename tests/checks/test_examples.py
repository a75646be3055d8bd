"""Every check on the journals in its own docstring."""

from __future__ import annotations

import pytest

from pytest_approvals.checks import CHECKS
from pytest_approvals.journal.grammar import broken_grammar
from pytest_approvals.journal.history import History
from pytest_approvals.journal.notation import journal

EXAMPLES = [
    pytest.param(check, example, id=f"{check.slug}-{example.status}-{example.caption.replace(' ', '_')}")
    for check in CHECKS.values()
    for example in check.examples
    if check.function is not None
]


@pytest.mark.parametrize(("check", "example"), EXAMPLES)
def test_check_says_so_about_its_example(check, example):
    """A check passes, fails or warns on each journal in its docstring as that one says."""
    statuses = {verdict.status for verdict in check.judge(History.of(journal(example.lines)))}

    assert {example.status} == statuses


@pytest.mark.parametrize(("check", "example"), EXAMPLES)
def test_examples_are_journals(check, example):
    """Each example could have been recorded."""
    if check.slug != "journal-well-formed":
        assert [] == broken_grammar(journal(example.lines))
