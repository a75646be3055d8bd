"""Requested confirmations as approval requests, and decisions as their results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.genai import types

from ...contract import MAIN, Decision, Kind, Request, ToolSpec, Unsupported

CONFIRMATION = "adk_request_confirmation"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReader:
    """Reader of approval requests.

    Attributes:
        names: An agent's name in the scenario, by its name in the framework.
        tools: The tools among which the kind of a call is looked up.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[ToolSpec, ...] = ()

    def read(self, call: Any, author: str) -> Request:
        """Return the approval request that a call of `adk_request_confirmation` shows."""
        original_call = (call.args or {}).get("originalFunctionCall") or {}
        agent = self.names.get(author, MAIN)
        kind, server = self._find_server(original_call.get("name", ""), agent)
        return Request(
            id=call.id,
            call_id=original_call.get("id"),
            tool=original_call.get("name", ""),
            arguments=original_call.get("args") or {},
            kind=kind,
            server=server,
            agent=agent,
            handle=call,
        )

    def _find_server(self, tool: str, agent: str) -> tuple[Kind, str | None]:
        specs = (spec for spec in self.tools if spec.name == tool and spec.agent == agent)
        return next(((spec.kind, spec.server) for spec in specs), ("function", None))


def confirmation_calls(event: Any) -> Iterator[Any]:
    """Return the calls in *event* that ask for a confirmation."""
    return (call for call in event.get_function_calls() if call.name == CONFIRMATION)


def open_requests(events: Iterable[Any]) -> dict[str, tuple[Any, Any]]:
    """Return the requests that wait for an answer, by id, each as its call and its event.

    An answered request still waits as long as the agent has done nothing since: the framework takes an answer into the
    session before it checks it, and if it refuses it or fails, another one is accepted as well.
    """
    waiting: dict[str, tuple[Any, Any]] = {}
    answered: set[str] = set()
    for event in drop_rewound_events(events):
        if event.author == "user":
            answered |= {result.id for result in event.get_function_responses() if _is_answer(result)}
        elif event.content is not None and event.content.parts:
            waiting = {key: call_and_event for key, call_and_event in waiting.items() if key not in answered}
        for call in confirmation_calls(event):
            waiting[call.id] = (call, event)
    return waiting


def _is_answer(result: Any) -> bool:
    """Return whether the framework can read *result* as an answer to a request."""
    from google.adk.tools.tool_confirmation import ToolConfirmation
    from pydantic import ValidationError

    if result.name != CONFIRMATION:
        return False
    response = result.response
    # The web client of the framework sends every answer as JSON text under this key.
    if isinstance(response, dict) and list(response) == ["response"]:
        response = json.loads(response["response"])
    try:
        ToolConfirmation.model_validate(response)
    except ValidationError:
        return False
    return True


def drop_rewound_events(events: Iterable[Any]) -> list[Any]:
    """Return the events that no rewind has taken back."""
    kept: list[Any] = []
    for event in events:
        invocation_id = getattr(event.actions, "rewind_before_invocation_id", None)
        if invocation_id is None:
            kept.append(event)
        else:
            rewound = (place for place, earlier in enumerate(kept) if earlier.invocation_id == invocation_id)
            del kept[next(rewound, len(kept)) :]
    return kept


def write_decisions(
    decisions: Sequence[Decision], options: Mapping[str, Any], *, is_attached: bool = False
) -> types.Content:
    """Return the message with *decisions*.

    Args:
        decisions: The decisions, in the caller's order.
        options: `raw_in: calls` puts a raw decision where the result of the call itself would go.
        is_attached: The tools are a user's own, which know nothing of the payload that this adapter's tools read.

    Raises:
        Unsupported: An answer of the framework cannot say that.
    """
    if is_attached and any(decision.verdict == "edit" for decision in decisions):
        raise Unsupported(
            "edit",
            "a `ToolConfirmation` takes no other arguments; `answers=` says what your tool takes as its payload",
        )
    parts = [types.Part(function_response=_write_response(decision, options)) for decision in decisions]
    return types.Content(role="user", parts=parts)


def _write_response(decision: Decision, options: Mapping[str, Any]) -> types.FunctionResponse:
    if decision.request is None:
        return types.FunctionResponse(
            id=decision.address, name=CONFIRMATION, response=_VERDICT_WRITERS["approve"](decision)
        )
    if decision.verdict == "raw" and options.get("raw_in") == "calls":
        request = decision.request
        return types.FunctionResponse(id=request.call_id, name=request.tool, response={"result": decision.raw})
    answer = _VERDICT_WRITERS[decision.verdict](decision)
    return types.FunctionResponse(id=decision.request.id, name=CONFIRMATION, response=answer)


def _write_rejection(decision: Decision) -> Any:
    if decision.reason is None:
        return {"confirmed": False}
    return {"confirmed": False, "payload": {"reason": decision.reason}}


def _write_edit(decision: Decision) -> Any:
    return {"confirmed": True, "payload": {"arguments": dict(decision.arguments or {})}}


def _refuse_standing(decision: Decision) -> Any:
    raise Unsupported(decision.verdict, "an answer is about one call")


def _write_raw(decision: Decision) -> Any:
    # An object or None replaces the whole response; any other value only replaces its yes or no.
    raw = decision.raw
    return raw if raw is None or isinstance(raw, dict) else {"confirmed": raw}


_VERDICT_WRITERS: Mapping[str, Callable[[Decision], Any]] = {
    "approve": lambda decision: {"confirmed": True},
    "reject": _write_rejection,
    "edit": _write_edit,
    "always": _refuse_standing,
    "never": _refuse_standing,
    "raw": _write_raw,
}
