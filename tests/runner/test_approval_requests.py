"""Tests of which call a request is about."""

from __future__ import annotations

from dataclasses import replace

from pytest_approvals.agent_side.contract.types import Request
from pytest_approvals.runner.approval_requests import ApprovalRequests
from pytest_approvals.runner.script import EditedCall, ScriptedCall, ScriptState


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


def test_a_request_is_not_about_a_call_that_has_another_id_by_now() -> None:
    """The model gave one id to two calls, and the agent renamed the second; then a parameter has another name."""
    calls = [
        ScriptedCall(label=label, reply=1, agent="main", id="c1", tool="pay", arguments=arguments)
        for label, arguments in (("c1", {"amount": 1, "payee": "a1"}), ("c1#2", {"amount": 2}))
    ]
    requests, state = ApprovalRequests(), ScriptState(calls=calls)
    shown = [
        Request(id=f"request-{n}", call_id=call_id, tool="pay", arguments=call.arguments)
        for n, (call, call_id) in enumerate(zip(calls, ("c1", "c1-2"), strict=True))
    ]
    requests.update("", shown, state)
    changed = [replace(request, arguments={"amount": 6, "payee_too": "EUR"}) for request in shown]

    assert ["c1", "c1#2"] == [tracked.label for tracked in requests.update("", changed, state)]


def test_a_request_after_an_edit_is_about_the_call_that_was_edited() -> None:
    """The edit named another tool, and left out an argument of it that has a default; a second one was refused."""
    call = ScriptedCall(label="c1", reply=1, agent="main", id="c1", tool="tag", arguments={})
    edits = (EditedCall(tool="pay", arguments={"amount": 5}), EditedCall(tool=None, arguments={"wrong": 1}))
    again = Request(id="request-2", call_id="c1", tool="pay", arguments={"amount": 5, "currency": "EUR"})
    other = Request(id="request-2", call_id="c1", tool="pay", arguments={"amount": 6, "currency": "EUR"})

    for expected, request in (("c1", again), (None, other)):
        state = ScriptState(calls=[call], edits={"c1": edits})
        assert [expected] == [tracked.label for tracked in ApprovalRequests().update("", [request], state)]
