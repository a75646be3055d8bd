"""Every check on the journals in its own docstring."""

from __future__ import annotations

import pytest

from pytest_approvals.checks import CHECKS
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation
from pytest_approvals.journal.validation import find_violations

EXAMPLES = [
    pytest.param(check, example, id=f"{check.slug}-{example.status}-{example.caption.replace(' ', '_')}")
    for check in CHECKS.values()
    for example in check.examples
]
BAD = {"fail": {"fail", "harness-error"}, "warning": {"warning"}, "pass": {"pass"}}


def histories(example):
    return [read_history(parse_notation(part)) for part in example.lines.split("---\n")]


@pytest.mark.parametrize(("check", "example"), EXAMPLES)
def test_check_says_so_about_its_example(check, example):
    """A check passes, fails or warns on each journal in its docstring as that one says."""
    read = histories(example)
    verdicts = check.judge(read[0]) if check.group is None else check.judge_group(read)

    assert {True} == {verdict.status in BAD[example.status] for verdict in verdicts}


@pytest.mark.parametrize(("check", "example"), EXAMPLES)
def test_examples_are_journals(check, example):
    """Each example could have been recorded, but for the one on which the grammar itself fails."""
    broken = [one for history in histories(example) for one in find_violations(history.events)]

    assert (check.slug == "journal-well-formed" and example.status == "fail") == bool(broken)
