"""Vercel AI SDK client and its flavour: it holds UI messages, and answers requests in them.

A tool call is a part of the assistant's message; its state says how far it has come. A request is a part in the state
`approval-requested`, and the answer is in the same part, in the state `approval-responded`. A stream changes the
messages as in `processUIMessageStream` of the SDK (release 6): a response continues in the last message if that is the
assistant's. Only requests in the last message are open, as only those are found by
`addToolApprovalResponse`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...contract import MAIN, Decision, Request, Unsupported
from .messages import ANSWER_TOOL, SpecsByName, get_original_name
from .metadata import VERCEL_MISSING
from .web import Event, ShownEvents, WebClient, WebSession

Part = dict[str, Any]

SDK_RELEASE = 6
"""The release of the SDK from which on approvals are part of the protocol."""


class VercelClient(WebClient):
    """The state of `useChat`."""

    @staticmethod
    def adapter() -> tuple[Any, dict[str, Any]]:
        """See `WebClient.adapter`."""
        from pydantic_ai.ui.vercel_ai import VercelAIAdapter

        return VercelAIAdapter, {"sdk_version": SDK_RELEASE}

    # --- what is sent -------------------------------------------------------------------------------------------------

    def decide(self, decisions: Sequence[Decision], *, raw_in: str) -> Mapping[str, Any]:
        """See `WebClient.decide`."""
        for decision in decisions:
            _write_decision(self.messages, decision, raw_in, self.specs)
        return {"trigger": "submit-message", "id": "chat"}

    def build_message(self, text: str, id: str) -> dict[str, Any]:
        """See `WebClient.build_message`."""
        return {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}

    # --- what is received ---------------------------------------------------------------------------------------------

    def handle(self, event: Event) -> ShownEvents:
        """See `WebClient.handle`."""
        kind = event["type"]
        if kind == "error":
            self.error = event["errorText"]
        elif kind == "start-step":
            self._get_response()["parts"].append({"type": "step-start"})
        elif kind == "finish":
            yield "end", {}
        elif kind.startswith("text-"):
            yield from self._handle_text(kind, event)
        elif kind.startswith("tool-"):
            yield from self._handle_tool(kind, event)

    def _get_response(self) -> dict[str, Any]:
        """Return the message that the stream is written into."""
        return _get_last_response(self.messages)

    def _handle_text(self, kind: str, event: Event) -> ShownEvents:
        parts = self._get_response()["parts"]
        if kind == "text-start":
            parts.append({"type": "text", "text": "", "state": "streaming"})
            return
        open_text = next(part for part in reversed(parts) if part["type"] == "text")
        if kind == "text-end":
            open_text["state"] = "done"
        elif event["delta"]:
            open_text["text"] += event["delta"]
            yield "text", {"text": event["delta"]}

    def _handle_tool(self, kind: str, event: Event) -> ShownEvents:
        if kind == "tool-input-start":
            self._begin_part(event)["state"] = "input-streaming"
            if event["toolName"] != ANSWER_TOOL:
                yield "call", {"id": event["toolCallId"], "tool": get_original_name(event["toolName"], self.specs)}
            return
        # The whole input follows in `tool-input-available`.
        if kind == "tool-input-delta":
            return
        part = _find_part(self.messages, event["toolCallId"], last=kind in _LAST_CALL_EVENTS)
        if part is None and kind == "tool-input-available":
            part = self._begin_part(event)
        if part is None:
            self.error = f"there is no tool invocation with the id {event['toolCallId']}"
            return
        shown = list(_PART_CHANGES[kind](part, event))
        yield from () if part["type"] == f"tool-{ANSWER_TOOL}" else shown

    def _begin_part(self, event: Event) -> Part:
        """Append a part for the call that *event* names, and return it."""
        part = {"type": f"tool-{event['toolName']}", "toolCallId": event["toolCallId"]}
        self._get_response()["parts"].append(part)
        return part

    def last_text(self) -> str:
        """Return the text of the last step."""
        parts = self.messages[-1]["parts"] if self.messages else []
        steps = [place for place, part in enumerate(parts) if part["type"] == "step-start"]
        last = parts[steps[-1] if steps else 0 :]
        return "".join(part["text"] for part in last if part["type"] == "text")

    # --- requests -----------------------------------------------------------------------------------------------------

    def requests(self) -> tuple[Request, ...]:
        """See `WebClient.requests`."""
        last = self.messages[-1:]
        return tuple(self._to_request(part) for part in _tool_parts(last) if part["state"] == "approval-requested")

    def _to_request(self, part: Part) -> Request:
        name = part["type"].removeprefix("tool-")
        spec = self.specs.get((MAIN, name))
        return Request(
            id=part["approval"]["id"],
            call_id=part["toolCallId"],
            tool=spec.name if spec else name,
            arguments=part.get("input", {}),
            kind=spec.kind if spec else "function",
            server=spec.server if spec else None,
        )


class Vercel(WebSession):
    """A Pydantic AI agent behind `VercelAIAdapter`; the client's UI messages are kept."""

    missing = VERCEL_MISSING
    needs = ("ui/vercel_ai/_adapter.py", "sdk_version")
    client = VercelClient

    async def stage(self, decisions: Sequence[Decision]) -> None:
        """Write the decisions into the messages that the client holds; nothing is sent."""
        self._client.decide(decisions, raw_in=self._raw_in)
        # What a server stored when the run completed does not have these decisions, so `dump` must not return it.
        self._completed = None


# --- messages ---------------------------------------------------------------------------------------------------------


def _get_last_response(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the last message, or a new one if that is not the assistant's."""
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"id": f"message-{len(messages) + 1}", "role": "assistant", "parts": []})
    return messages[-1]


def _tool_parts(messages: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    for message in messages:
        yield from (part for part in message["parts"] if "toolCallId" in part)


def _find_part(messages: Sequence[Mapping[str, Any]], call_id: Any, *, last: bool = False) -> Part | None:
    """Return the part of the call with this id: the first that has no output yet, else the last."""
    parts = [part for part in _tool_parts(messages) if part["toolCallId"] == call_id]
    waiting = [part for part in parts if not _is_ended(part) and not last]
    return next(iter([*waiting, *reversed(parts)]), None)


def _is_ended(part: Part) -> bool:
    return str(part["state"]).startswith("output-")


def _set_input(part: Part, event: Event) -> ShownEvents:
    part |= {"state": "input-available", "input": event.get("input")}
    yield from ()


def _set_input_error(part: Part, event: Event) -> ShownEvents:
    part |= {"state": "output-error", "rawInput": event.get("input"), "errorText": event["errorText"]}
    part.pop("input", None)
    yield "result", {"id": part["toolCallId"], "text": event["errorText"]}


def _request_approval(part: Part, event: Event) -> ShownEvents:
    part |= {"state": "approval-requested", "approval": {"id": event["approvalId"]}}
    yield "request", {"id": event["approvalId"]}


def _deny(part: Part, event: Event) -> ShownEvents:
    part["state"] = "output-denied"
    yield "result", {"id": part["toolCallId"], "text": part.get("approval", {}).get("reason", "")}


def _set_output(part: Part, event: Event) -> ShownEvents:
    output = event.get("output")
    part |= {"state": "output-available", "output": output}
    text = output if isinstance(output, str) else json.dumps(output)
    yield "result", {"id": part["toolCallId"], "text": text}


def _set_error(part: Part, event: Event) -> ShownEvents:
    part |= {"state": "output-error", "errorText": event["errorText"]}
    yield "result", {"id": part["toolCallId"], "text": event["errorText"]}


_PART_CHANGES = {
    "tool-input-available": _set_input,
    "tool-input-error": _set_input_error,
    "tool-approval-request": _request_approval,
    "tool-output-denied": _deny,
    "tool-output-available": _set_output,
    "tool-output-error": _set_error,
}

_LAST_CALL_EVENTS = frozenset({"tool-input-available", "tool-input-error", "tool-approval-request"})
"""The events about the call that the model made last, if several have one id."""

# --- decisions --------------------------------------------------------------------------------------------------------


def _write_decision(messages: list[dict[str, Any]], decision: Decision, raw_in: str, specs: SpecsByName) -> None:
    """Write *decision* and the caller's copy of the request into the part of its call.

    If the call has come further, the part stays, and a new part holds the answer. A call that no message has is added,
    as by a client that makes one up.
    """
    request = decision.request
    call_id = request.call_id if request else decision.address
    part = _find_part(messages, call_id)
    if part is None or _is_ended(part):
        part = {"type": part["type"] if part else f"tool-{request.tool if request else ''}", "toolCallId": call_id}
        _get_last_response(messages)["parts"].append(part)
    if request is not None:
        part["input"] = request.arguments
        if request.tool != get_original_name(part["type"].removeprefix("tool-"), specs):
            part["type"] = f"tool-{request.tool}"
    if decision.verdict == "raw" and raw_in == "calls":
        part |= {"state": "output-available", "output": decision.raw}
        return
    part |= {"state": "approval-responded", "approval": _to_approval(decision, request.id if request else call_id)}


def _to_approval(decision: Decision, id: Any) -> dict[str, Any] | None:
    reason = {} if decision.reason is None else {"reason": decision.reason}
    match decision.verdict, decision.raw:
        case "raw", None:
            return None
        case "raw", value:
            return {"id": id, **(value if isinstance(value, dict) else {"approved": value})}
        case "approve" | "reject", _:
            return {"id": id, "approved": decision.verdict == "approve", **reason}
    raise Unsupported(decision.verdict, "an approval in a UI message has `approved` and `reason`, and no more")
