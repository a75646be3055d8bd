"""Items of the Responses API: what a client sends, and what it finds in a response."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ....contract import Decision, Request, Unsupported

LOCAL = "agent_framework"
"""What the server calls itself, in requests about calls that it runs."""

Item = Mapping[str, Any]


# --- what a client sends ----------------------------------------------------------------------------------------------


def given(text: str | None, decisions: Sequence[Decision]) -> Any:
    """Gives the input of a request: a text alone as it is, else a list of items, the decisions first."""
    if text is not None and not decisions:
        return text
    said = [] if text is None else [{"type": "message", "role": "user", "content": text}]
    return [*(_answer(decision) for decision in decisions), *said]


def _answer(decision: Decision) -> dict[str, Any]:
    if decision.verdict not in ("approve", "reject", "raw"):
        raise Unsupported(decision.verdict, "an `mcp_approval_response` says yes or no, and why")
    answer: dict[str, Any] = {
        "type": "mcp_approval_response",
        "approval_request_id": decision.address if decision.request is None else decision.request.id,
        "approve": decision.raw if decision.verdict == "raw" else decision.verdict == "approve",
    }
    return answer if decision.reason is None else {**answer, "reason": decision.reason}


# --- what it finds ----------------------------------------------------------------------------------------------------


def requests_in(output: Iterable[Item]) -> tuple[Request, ...]:
    """Gives the approval requests among the items of a response."""
    return tuple(request_in(item) for item in output if item["type"] == "mcp_approval_request")


def request_in(item: Item) -> Request:
    """Gives what a person is shown; the item does not say the id of the call."""
    from ..contents import parsed

    label = item.get("server_label")
    hosted = label is not None and label != LOCAL
    return Request(
        id=item["id"],
        call_id=None,
        tool=item["name"],
        arguments=parsed(item.get("arguments")),
        kind="hosted_mcp" if hosted else "function",
        server=label if hosted else None,
        handle=item,
    )


def text_in(output: Iterable[Item]) -> str:
    """Gives what the agent said, of all its messages."""
    return "".join(
        str(part.get("text", ""))
        for item in output
        if item["type"] == "message"
        for part in item.get("content") or ()
        if part.get("type") == "output_text"
    )


def value_in(output: Sequence[Item]) -> Any:
    """Gives a structured answer, which is the text of an object; else the text."""
    text = text_in(output)
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


# --- what its stream shows --------------------------------------------------------------------------------------------


def shown_in(event: Item) -> Iterator[tuple[str, dict[str, Any]]]:
    """Gives what one event of a stream shows, as arguments for `World.shown`."""
    if event["type"] == "response.output_text.delta":
        yield "text", {"text": event["delta"]}
    elif event["type"] == "response.output_item.added" and event["item"]["type"] == "function_call":
        yield "call", {"id": event["item"]["call_id"], "tool": event["item"]["name"]}
    elif event["type"] == "response.output_item.done":
        yield from _done(event["item"])


def _done(item: Item) -> Iterator[tuple[str, dict[str, Any]]]:
    if item["type"] == "mcp_approval_request":
        yield "request", {"id": item["id"]}
    elif item["type"] == "function_call_output":
        yield "result", {"id": item["call_id"], "text": str(item.get("output", ""))}
