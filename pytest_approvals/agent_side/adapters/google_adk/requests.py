"""Confirmations that the framework asks for, as approval requests.

Decisions as the framework takes them: results of the calls that ask for a confirmation.
"""

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
    """
    How requests are read.

    Attributes:
        names: By an agent's name in the framework: its name in the scenario.
        tools: The tools, among which the kind of a call is looked up.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[ToolSpec, ...] = ()

    def request(self, call: Any, author: str) -> Request:
        """Gives what a person is shown."""
        asked = (call.args or {}).get("originalFunctionCall") or {}
        agent = self.names.get(author, MAIN)
        kind, server = self._served(asked.get("name", ""), agent)
        return Request(
            id=call.id,
            call_id=asked.get("id"),
            tool=asked.get("name", ""),
            arguments=asked.get("args") or {},
            kind=kind,
            server=server,
            agent=agent,
            handle=call,
        )

    def _served(self, tool: str, agent: str) -> tuple[Kind, str | None]:
        found = (spec for spec in self.tools if spec.name == tool and spec.agent == agent)
        return next(((spec.kind, spec.server) for spec in found), ("function", None))


def confirmation_calls(event: Any) -> Iterator[Any]:
    """Gives the calls in *event* that ask for a confirmation."""
    return (call for call in event.get_function_calls() if call.name == CONFIRMATION)


def open_requests(events: Iterable[Any]) -> dict[str, tuple[Any, Any]]:
    """
    Gives by id the requests that wait for an answer, each as its call and its event.

    A request that a person answered waits still while the agent has done nothing since: the framework takes an answer
    into the session before it looks at it, and where it refuses it or fails, another one is taken as well.
    """
    waiting: dict[str, tuple[Any, Any]] = {}
    answered: set[str] = set()
    for event in drop_rewound_events(events):
        if event.author == "user":
            answered |= {result.id for result in event.get_function_responses() if _is_answer(result)}
        elif event.content is not None and event.content.parts:
            waiting = {asked: one for asked, one in waiting.items() if asked not in answered}
        for call in confirmation_calls(event):
            waiting[call.id] = (call, event)
    return waiting


def _is_answer(result: Any) -> bool:
    """Says whether the framework can read *result* as an answer to a request."""
    from google.adk.tools.tool_confirmation import ToolConfirmation
    from pydantic import ValidationError

    if result.name != CONFIRMATION:
        return False
    response = result.response
    if isinstance(response, dict) and list(response) == ["response"]:
        response = json.loads(response["response"])
    try:
        ToolConfirmation.model_validate(response)
    except ValidationError:
        return False
    return True


def drop_rewound_events(events: Iterable[Any]) -> list[Any]:
    """Gives the events that no rewind has taken back."""
    kept: list[Any] = []
    for event in events:
        rewound = getattr(event.actions, "rewind_before_invocation_id", None)
        if rewound is None:
            kept.append(event)
        else:
            first = next((place for place, one in enumerate(kept) if one.invocation_id == rewound), len(kept))
            del kept[first:]
    return kept


def write_decisions(decisions: Sequence[Decision], options: Mapping[str, Any]) -> types.Content:
    """
    Gives the message that answers.

    Arguments:
        options: `raw_in: calls` puts what is no decision where the result of the call itself would go.
    """
    parts = [types.Part(function_response=_write_response(decision, options)) for decision in decisions]
    return types.Content(role="user", parts=parts)


def _write_response(decision: Decision, options: Mapping[str, Any]) -> types.FunctionResponse:
    if decision.request is None:
        return types.FunctionResponse(
            id=decision.address, name=CONFIRMATION, response=_VERDICT_WRITERS["approve"](decision)
        )
    if decision.verdict == "raw" and options.get("raw_in") == "calls":
        asked = decision.request
        return types.FunctionResponse(id=asked.call_id, name=asked.tool, response={"result": decision.raw})
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
    # What is no word and no number would be the whole answer, which is an object; the others stand for its yes or no.
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
