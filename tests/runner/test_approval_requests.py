"""Tests of which call a request is about."""

from __future__ import annotations

from pytest_approvals.agent_side.contract.types import Request
from pytest_approvals.runner.approval_requests import ApprovalRequests
from pytest_approvals.runner.script import ScriptedCall, ScriptState


def test_a_request_is_about_the_call_that_was_asked_about_under_that_id() -> None:
    """One of two equal calls asks again; its id of the agent's own was shown before."""
    calls = [
        ScriptedCall(label=f"c{n}", reply=1, agent="main", id=f"c{n}", tool="pay", arguments={"amount": 5})
        for n in (1, 2)
    ]
    first, second, again = (
        Request(id=f"request-{n}", call_id=call_id, tool="pay", arguments={"amount": 5})
        for n, call_id in enumerate(("own-1", "own-2", "own-2"), 1)
    )
    requests, state = ApprovalRequests(), ScriptState(calls=calls)
    requests.update("", [first, second], state)
    requests.update("", [], state)

    assert ["c2"] == [tracked.label for tracked in requests.update("", [again], state)]
