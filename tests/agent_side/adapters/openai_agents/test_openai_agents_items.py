"""The model's input in its neutral form."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_approvals.agent_side.adapters.openai_agents.messages import parse_arguments, to_items
from pytest_approvals.agent_side.contract import Item

RAN = {"type": "mcp_call", "id": "m1", "name": "f", "arguments": "{}"}
CALL = {"type": "function_call", "call_id": "c1", "name": "pay", "arguments": '{"amount": 5}'}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "paid"}
USER = {"role": "user", "content": "Pay 5."}
SAY = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Sure."}]}


def bare(written: Any) -> Item:
    (item,) = to_items([written])
    return item


class TestResponses:
    def test_a_text_is_a_message_of_the_user(self) -> None:
        """The runner may hand over a text in place of a list."""
        assert [Item(kind="user", text="Pay 5.")] == to_items("Pay 5.")

    @pytest.mark.parametrize(
        ("written", "item"),
        [
            (USER, Item(kind="user", text="Pay 5.")),
            ({"role": "user", "content": [{"type": "input_text", "text": "Pay 5."}]}, Item(kind="user", text="Pay 5.")),
            (SAY, Item(kind="say", text="Sure.")),
            ({"role": "assistant", "content": "Sure."}, Item(kind="say", text="Sure.")),
            (CALL, Item(kind="call", id="c1", tool="pay", arguments={"amount": 5})),
            (CALL | {"arguments": "[5"}, Item(kind="call", id="c1", tool="pay", arguments="[5")),
            (RESULT, Item(kind="result", id="c1", text="paid")),
            (
                RESULT | {"output": [{"type": "input_text", "text": "paid"}, {"type": "input_image"}]},
                Item(kind="result", id="c1", text='paid{"type": "input_image"}'),
            ),
            (
                {"type": "mcp_approval_request", "id": "r1", "name": "find", "arguments": "{}", "server_label": "docs"},
                Item(kind="approval_request", id="r1", tool="find", arguments={}),
            ),
            (
                {"type": "mcp_approval_response", "approval_request_id": "r1", "approve": False, "reason": "no"},
                Item(kind="approval_response", id="r1", approved=False, text="no"),
            ),
            (
                RAN | {"approval_request_id": "r1", "output": "x"},
                Item(kind="hosted_result", id="r1", tool="f", arguments={}, text="x"),
            ),
            (
                RAN | {"error": {"content": [{"text": "broke"}]}},
                Item(kind="hosted_result", id="m1", tool="f", arguments={}, text="broke"),
            ),
            ({"role": "system"}, Item(kind="other", text='{"role": "system"}')),
        ],
    )
    def test_every_kind_has_a_neutral_form(self, written: dict[str, Any], item: Item) -> None:
        """Each item that the SDK sends is told as what it is."""
        assert item == bare(written)

    def test_what_the_model_said_in_a_row_is_one_message(self) -> None:
        """Text next to a call is distinguished from text after it, and each message of the caller is its own."""
        items = to_items([USER, USER, SAY, CALL, CALL | {"call_id": "c2"}, RESULT, RESULT, SAY])

        assert [0, 1, 2, 2, 2, 3, 3, 4] == [item.message for item in items]


@pytest.mark.parametrize(
    ("text", "value"),
    [('{"a": 1}', {"a": 1}), ("[1]", "[1]"), ("{", "{"), ("", ""), (None, None)],
)
def test_only_json_objects_are_parsed(text: Any, value: Any) -> None:
    """Whatever else the model sends stays as it is."""
    assert value == parse_arguments(text)
