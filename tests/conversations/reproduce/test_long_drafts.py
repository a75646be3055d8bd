"""Drafts of long conversations."""

from __future__ import annotations

import time

import pytest

from pytest_approvals.conversations.reproduce.draft import DraftCall, DraftReply, DraftTool, DraftTurn, ScenarioDraft
from pytest_approvals.conversations.reproduce.scenario_document import build_document


def long_draft(count: int, *, same_tool: bool) -> ScenarioDraft:
    names = ["pay" if same_tool else f"pay_{number}" for number in range(count)]
    calls = tuple(
        DraftCall(key=f"k{number}", id=None, tool=name, arguments={"amount": number, f"note_{number}": "x"})
        for number, name in enumerate(names)
    )
    turn = DraftTurn(send="Pay", replies=(DraftReply(say=None, calls=calls),))
    return ScenarioDraft(tools={name: DraftTool(gated=True) for name in names}, turns=(turn,))


@pytest.mark.parametrize("same_tool", [True, False], ids=["one tool", "a tool for each call"])
def test_the_time_for_a_document_grows_with_its_calls(same_tool: bool) -> None:
    """Four times the calls take about four times as long, and not sixteen times."""

    def seconds(count: int) -> float:
        draft = long_draft(count, same_tool=same_tool)
        start = time.process_time()
        build_document(draft)
        return time.process_time() - start

    ratios = [seconds(2_000) / seconds(500) for _ in range(5)]

    assert min(ratios) < 8
