"""Saved states beyond the agent's own: the open requests, and how much of the conversation is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]


def asked(**more: Any) -> Any:
    """A request about a payment."""
    from pytest_approvals.agent_side.adapters.autogen.requests import ToolApprovalRequest

    return ToolApprovalRequest(**{"agent": "main", "tool": "pay", "arguments": {"amount": 5}, "call_id": "c1", **more})


def test_a_request_is_known_again_by_the_id_of_its_call() -> None:
    """Independent of its arguments."""
    assert (True, False) == (asked().is_about(asked(arguments={})), asked().is_about(asked(call_id="c2")))


def test_a_request_without_an_id_is_known_again_by_what_it_asks() -> None:
    """Before 0.6.2 no tool is told the id of its call."""
    old = asked(call_id=None)

    assert (True, False) == (old.is_about(asked()), old.is_about(asked(arguments={"amount": 6})))


def test_the_size_of_a_trimmed_conversation_is_saved() -> None:
    """A state that is read has it; one that was saved without it has none."""
    from pytest_approvals.agent_side.adapters.autogen.state import dump_state, load_state

    assert (2, None) == (load_state(dump_state({}, [], 2))[2], load_state('{"state": {}, "waiting": []}')[2])


@pytest.mark.parametrize("arguments", [None, {"amount": 7}])
def test_arguments_that_nobody_was_shown_are_refused(arguments: Any) -> None:
    """Null, too: a request that was not changed by the user has no arguments from before."""
    from pytest_approvals.agent_side.adapters.autogen.session import WorkbenchSession

    session = object.__new__(WorkbenchSession)
    session._restored_requests = [asked()]

    with pytest.raises(ValueError, match="pay was shown with"):
        session.find_earlier_request(asked(arguments=arguments))


def test_a_request_that_the_user_has_changed_is_known_by_what_it_was() -> None:
    """The run begins anew with the call as the model made it."""
    from pytest_approvals.agent_side.adapters.autogen.session import WorkbenchSession

    session = object.__new__(WorkbenchSession)
    session._restored_requests = [asked(arguments={"amount": 3}, changed_from={"amount": 5})]

    assert session._restored_requests[0] == session.find_earlier_request(asked())


SMALL_BUFFER = """
tools:
  pay: {approval: always}
model:
  - calls: [{id: c1, tool: pay}]
  - say: Done.
caller:
  - send: Pay
  - trim: 1
  - decide: {c1: reject}
"""


def test_an_answer_is_taken_where_the_buffer_has_no_room_for_the_calls(play: Play) -> None:
    """The framework's buffer shows no result without its call, so that the model is sent nothing."""
    played = play(text=SMALL_BUFFER, variant=Variant(serialize="copy", source="restored"))

    assert [] == played.inputs[-1]
