"""An answer that comes in the same reply as a call that waits may end the run, and need not."""

from __future__ import annotations

import pytest

from pytest_approvals.checks import CHECKS, SHOWN_STATUSES, judge
from pytest_approvals.journal.events import ModelAnswer
from pytest_approvals.journal.notation import parse_notation

PAID = """
wants total: integer
send Pay 5
model c1 pay(amount=5)
pause c1
approve c1
go
run c1 -> paid 5
outputs total=5
"""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [({"total": 5}, []), (None, ["an answer of the model"])],
    ids=["beside the call", "none"],
)
def test_a_run_may_end_with_the_answer_beside_its_call(answer: dict[str, int] | None, expected: list[str]) -> None:
    """The model is asked again only if it has not answered."""
    events = parse_notation(PAID)
    next(event for event in events if isinstance(event, ModelAnswer)).answer = answer
    verdicts = judge(events, [CHECKS["answer-given"]])
    assert expected == [verdict.expected for verdict in verdicts if verdict.status in SHOWN_STATUSES]
