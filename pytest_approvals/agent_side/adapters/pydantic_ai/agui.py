"""AG-UI client and its flavour: it holds messages, and the interrupts with which the last run ended.

A request is an interrupt in the outcome of `RUN_FINISHED`; the answer is an entry of `resume` in the next run's input,
which names the interrupt. No message says that a call waits for an answer. Events change the messages as in
`@ag-ui/client`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...contract import MAIN, Decision, Request, Unsupported
from .messages import ANSWER_TOOL, SpecsByName, get_original_name
from .metadata import AGUI_MISSING
from .web import Event, ShownEvents, WebClient, WebSession


class AGUIClient(WebClient):
    """The state of an `HttpAgent`."""

    def __init__(self, specs: SpecsByName) -> None:
        super().__init__(specs)
        self._interrupts: list[dict[str, Any]] = []
        self._runs = 0

    @staticmethod
    def adapter() -> tuple[Any, dict[str, Any]]:
        """See `WebClient.adapter`."""
        from pydantic_ai.ui.ag_ui import AGUIAdapter

        return AGUIAdapter, {}

    # --- what is sent -------------------------------------------------------------------------------------------------

    def decide(self, decisions: Sequence[Decision], *, raw_in: str) -> Mapping[str, Any]:
        """See `WebClient.decide`."""
        resume = []
        for decision in decisions:
            if decision.verdict == "raw" and raw_in == "calls":
                self.messages.append(_build_result_message(decision, f"message-{len(self.messages) + 1}"))
                continue
            _write_request(self.messages, decision.request, self.specs)
            resume.append(_to_resume_entry(decision))
        self._runs += 1
        return {
            "threadId": "thread",
            "runId": f"run-{self._runs}",
            "state": {},
            "tools": [],
            "context": [],
            "forwardedProps": {},
            **({"resume": resume} if resume else {}),
        }

    def build_message(self, text: str, id: str) -> dict[str, Any]:
        """See `WebClient.build_message`."""
        return {"id": id, "role": "user", "content": text}

    # --- what is received ---------------------------------------------------------------------------------------------

    def handle(self, event: Event) -> ShownEvents:
        """See `WebClient.handle`."""
        match event["type"]:
            case "RUN_ERROR":
                self.error = event["message"]
            case "RUN_FINISHED":
                yield from self._finish(event.get("outcome") or {})
            case "TEXT_MESSAGE_START":
                self.messages.append({"id": event["messageId"], "role": "assistant", "content": ""})
            case "TEXT_MESSAGE_CONTENT":
                self._find_message(event["messageId"])["content"] += event["delta"]
                yield "text", {"text": event["delta"]}
            case "TOOL_CALL_START":
                yield from self._begin_call(event)
            case "TOOL_CALL_ARGS":
                function = _find_function(self.messages, event["toolCallId"])
                assert function is not None
                function["arguments"] += event["delta"]
            case "TOOL_CALL_RESULT":
                result = {"id": event["messageId"], "role": "tool", "toolCallId": event["toolCallId"]}
                self.messages.append({**result, "content": event["content"]})
                self._interrupts = [
                    interrupt for interrupt in self._interrupts if interrupt["toolCallId"] != event["toolCallId"]
                ]
                if (_find_function(self.messages, event["toolCallId"]) or {}).get("name") != ANSWER_TOOL:
                    yield "result", {"id": event["toolCallId"], "text": event["content"]}
            case "REASONING_ENCRYPTED_VALUE" if event["subtype"] == "message":
                # A message of reasoning is none that this client keeps.
                for message in self.messages:
                    if message["id"] == event["entityId"]:
                        message["encryptedValue"] = event["encryptedValue"]

    def _finish(self, outcome: Mapping[str, Any]) -> ShownEvents:
        self._interrupts = list(outcome.get("interrupts") or ())
        for interrupt in self._interrupts:
            yield "request", {"id": interrupt["id"]}
        yield "end", {}

    def _begin_call(self, event: Event) -> ShownEvents:
        parent = event.get("parentMessageId")
        if not self.messages or self.messages[-1]["id"] != parent:
            self.messages.append({"id": parent or event["toolCallId"], "role": "assistant"})
        function = {"name": event["toolCallName"], "arguments": ""}
        call = {"id": event["toolCallId"], "type": "function", "function": function}
        self.messages[-1].setdefault("toolCalls", []).append(call)
        if event["toolCallName"] != ANSWER_TOOL:
            yield "call", {"id": event["toolCallId"], "tool": get_original_name(event["toolCallName"], self.specs)}

    def _find_message(self, id: str) -> dict[str, Any]:
        return next(message for message in reversed(self.messages) if message["id"] == id)

    def last_text(self) -> str:
        """Return the text of the last message, if it is the assistant's."""
        return "".join(last.get("content") or "" for last in self.messages[-1:] if last["role"] == "assistant")

    # --- requests -----------------------------------------------------------------------------------------------------

    def requests(self) -> tuple[Request, ...]:
        """Return the interrupts of the last run without those whose calls have a result by now."""
        return tuple(map(self._to_request, self._interrupts))

    def _to_request(self, interrupt: Mapping[str, Any]) -> Request:
        function = _find_function(self.messages, interrupt["toolCallId"]) or {"name": "", "arguments": "{}"}
        spec = self.specs.get((MAIN, function["name"]))
        return Request(
            id=interrupt["id"],
            call_id=interrupt["toolCallId"],
            tool=spec.name if spec else function["name"],
            arguments=_read_arguments(function),
            kind=spec.kind if spec else "function",
            server=spec.server if spec else None,
        )

    def dump(self) -> dict[str, Any]:
        """See `WebClient.dump`."""
        return {"messages": self.messages, "interrupts": self._interrupts}

    def load(self, state: Mapping[str, Any]) -> None:
        """See `WebClient.load`."""
        self.messages, self._interrupts = state["messages"], state["interrupts"]


class AGUI(WebSession):
    """A Pydantic AI agent behind `AGUIAdapter`; the client's messages and interrupts are kept."""

    missing = AGUI_MISSING
    needs = ("ui/ag_ui/_interrupt.py", "ResumeEntry")
    client = AGUIClient


# --- messages and answers ---------------------------------------------------------------------------------------------


def _find_function(messages: Sequence[Mapping[str, Any]], id: Any) -> dict[str, Any] | None:
    """Return the function of the last call with this id."""
    calls = (call for message in reversed(messages) for call in reversed(message.get("toolCalls") or ()))
    return next((call["function"] for call in calls if call["id"] == id), None)


def _write_request(messages: list[dict[str, Any]], request: Request | None, specs: SpecsByName) -> None:
    """Write the caller's copy of the request into *messages*; a call that no message has is added."""
    if request is None or not request.tool:
        return
    function = _find_function(messages, request.call_id)
    if function is None:
        function = {"name": request.tool, "arguments": "{}"}
        call = {"id": request.call_id, "type": "function", "function": function}
        messages.append({"id": f"message-{len(messages) + 1}", "role": "assistant", "toolCalls": [call]})
    if request.tool != get_original_name(function["name"], specs):
        function["name"] = request.tool
    if request.arguments != _read_arguments(function):
        function["arguments"] = json.dumps(request.arguments)


def _build_result_message(decision: Decision, id: str) -> dict[str, Any]:
    """Return the result of a call, as a client sends it that runs tools itself."""
    call = decision.request.call_id if decision.request else decision.address
    return {"id": id, "role": "tool", "toolCallId": call, "content": decision.raw}


def _read_arguments(function: Mapping[str, Any]) -> Any:
    try:
        parsed = json.loads(function["arguments"] or "{}")
    except ValueError:
        return function["arguments"]
    return parsed if isinstance(parsed, dict) else function["arguments"]


def _to_resume_entry(decision: Decision) -> dict[str, Any]:
    interrupt = decision.request.id if decision.request else decision.address
    return {"interruptId": interrupt, "status": "resolved", "payload": _to_payload(decision)}


def _to_payload(decision: Decision) -> Any:
    match decision.verdict:
        case "raw":
            verbatim = decision.raw is None or isinstance(decision.raw, dict)
            return decision.raw if verbatim else {"approved": decision.raw}
        case "approve":
            return {"approved": True}
        case "reject":
            return {"approved": False, **({} if decision.reason is None else {"reason": decision.reason})}
        case "edit" if decision.tool is None:
            return {"approved": True, "editedArgs": dict(decision.arguments or {})}
        case "edit":
            raise Unsupported("edit_tool", "`editedArgs` of a resume payload overrides arguments only")
    raise Unsupported(decision.verdict, "a resume entry answers one interrupt")
