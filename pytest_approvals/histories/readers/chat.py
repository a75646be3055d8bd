"""
Messages of OpenAI chat completions: `[{"role": "assistant", "tool_calls": [...]}, ...]`, or `{"messages": [...]}`.

The format knows no approvals: who allowed a call is told nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_approvals.histories.conversation import Called, Conversation, Entry, Opaque, Resulted, Said
from pytest_approvals.histories.draft import Draft
from pytest_approvals.histories.shapes import is_objects, kind_in, listed_messages, messages_in, text_in
from pytest_approvals.protocols.text import text_of

NAME = "chat"

_PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal"})


def recognises(document: Any) -> bool | None:
    """Says whether it is of this format; None where it only may be."""
    message = None
    for message in messages_in(document):
        content = message.get("content")
        if type(message.get("role")) is not str or "contents" in message or "parts" in message:
            return False
        if "tool_call_id" in message or is_objects(message.get("tool_calls")):
            return "type" not in message
        if is_objects(content) and kind_in(content[0]) not in _PARTS:
            return False
    return None if message else False


def read(document: Any) -> Conversation:
    """
    Reads messages.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    draft = Draft(NAME, tells_decisions=False)
    path, messages = listed_messages(document)

    add = draft.entries.append

    def message(item: dict[str, Any], number: int) -> None:
        role, content = item.get("role"), item.get("content")
        if type(role) is not str:
            role = text_in(item, "role")
        if role == "tool":
            add(Resulted(number, -1, text_in(item, "tool_call_id"), None, text_of(content)))
            return
        if content:
            add(Said(number, -1, role, content if type(content) is str else text_of(content)))
        calls = item.get("tool_calls")
        if calls is not None:
            draft.contents(("tool_calls",), calls, number, _call)

    draft.messages(path, messages, message, contents=("tool_calls",))
    return draft.conversation


def _call(item: dict[str, Any], message: int, place: int) -> Sequence[Entry]:
    call = item.get("function")
    if type(call) is dict:
        arguments = call.get("arguments")
    elif type(call := item.get("custom")) is dict:
        arguments = {"input": call.get("input")}
    else:
        return (Opaque(message, place, str(item.get("type"))),)
    return (Called(message, place, text_in(item, "id"), text_in(call, "name"), arguments),)
