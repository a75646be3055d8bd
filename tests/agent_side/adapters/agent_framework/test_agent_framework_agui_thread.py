"""The messages of a thread follow the events of its runs."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_approvals.agent_side.adapters.agent_framework.agui_events import (
    AGUIThread,
    RunError,
    RunReader,
    read_requests,
    write_resume,
)
from pytest_approvals.agent_side.contract import Decision, Request, Unsupported

CALL = {"type": "function_approval_request", "function_call": {"call_id": "c1", "name": "pay", "arguments": "{}"}}
ASKS = {"id": "q1", "reason": "tool_call", "metadata": {"agent_framework": CALL}}
REQUEST = Request(id="q1", call_id="c1", tool="pay", arguments={})


def after(*events: dict[str, Any]) -> list[dict[str, Any]]:
    thread = AGUIThread()
    for event in events:
        thread.apply(event)
    return thread.messages


def test_a_text_comes_in_pieces() -> None:
    """It is one message."""
    assert [{"id": "m", "role": "assistant", "content": "Hello"}] == after(
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hel"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "lo"},
    )


def test_calls_of_one_reply_stand_in_one_message() -> None:
    """And their arguments come in pieces."""
    started = {"type": "TOOL_CALL_START", "parentMessageId": "m", "toolCallName": "pay"}
    (message,) = after(
        {**started, "toolCallId": "c1"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": '{"a"'},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": ": 1}"},
        {**started, "toolCallId": "c2"},
    )

    assert [("c1", '{"a": 1}'), ("c2", "")] == [
        (call["id"], call["function"]["arguments"]) for call in message["toolCalls"]
    ]


def test_a_result_is_a_message() -> None:
    """It stays, also where the run fails after it."""
    result = {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c1", "content": "paid"}

    assert [{"id": "m", "role": "tool", "toolCallId": "c1", "content": "paid"}] == after(result)


def test_a_snapshot_stands_in_place_of_everything() -> None:
    """What was before it is not there any more."""
    given = [{"id": "u", "role": "user", "content": "Pay"}]
    text = {"type": "TEXT_MESSAGE_START", "messageId": "m"}

    assert given == after(text, {"type": "MESSAGES_SNAPSHOT", "messages": given})


def test_a_run_that_ends_with_an_interrupt_asks() -> None:
    """The request is read from the end of the run."""
    reader = RunReader()
    list(reader.read({"type": "RUN_FINISHED", "outcome": {"type": "interrupt", "interrupts": [ASKS]}}))

    assert [("q1", "c1", "pay")] == [(one.id, one.call_id, one.tool) for one in read_requests(reader.interrupts)]


def test_an_error_event_is_an_error() -> None:
    """With the code that it has."""
    with pytest.raises(RunError, match="APPROVAL_RESUME_REQUIRED: answer first"):
        list(RunReader().read({"type": "RUN_ERROR", "code": "APPROVAL_RESUME_REQUIRED", "message": "answer first"}))


def test_the_call_that_stands_for_a_question_is_not_shown() -> None:
    """No model made it; it says which call it asks about."""
    reader = RunReader()
    shown = [
        *reader.read({"type": "TOOL_CALL_START", "toolCallId": "x", "toolCallName": "confirm_changes"}),
        *reader.read({"type": "TOOL_CALL_ARGS", "toolCallId": "x", "delta": '{"function_call_id": "c1"}'}),
    ]

    assert ([], {"c1": "x"}) == (shown, reader.confirms)


@pytest.mark.parametrize(
    ("decision", "payload"),
    [
        (Decision(request=REQUEST, verdict="approve"), {"approved": True}),
        (Decision(request=REQUEST, verdict="reject"), {"approved": False}),
        (Decision(request=REQUEST, verdict="raw", raw="yes"), {"approved": "yes"}),
        (
            Decision(request=REQUEST, verdict="edit", arguments={"amount": 1}),
            {"approved": True, "editedArgs": {"amount": 1}},
        ),
    ],
    ids=["approve", "reject", "raw", "edit"],
)
def test_an_answer_is_an_entry_of_resume(decision: Decision, payload: dict[str, Any]) -> None:
    """It names the interrupt, and says what the person said."""
    assert [{"interruptId": "q1", "status": "resolved", "payload": payload}] == write_resume([decision])


def test_another_tool_cannot_be_put_in_place() -> None:
    """An answer has no place for it."""
    with pytest.raises(Unsupported, match="edit_tool"):
        write_resume([Decision(request=REQUEST, verdict="edit", arguments={}, tool="refund")])
