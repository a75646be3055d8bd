"""Confirmations that the framework asks for, as approval requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...contract import MAIN, Kind, Request, ToolSpec

CONFIRMATION = "adk_request_confirmation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
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


def confirmations(event: Any) -> Iterator[Any]:
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
    for event in standing(events):
        if event.author == "user":
            answered |= {result.id for result in event.get_function_responses() if _answers(result)}
        elif event.content is not None and event.content.parts:
            waiting = {asked: one for asked, one in waiting.items() if asked not in answered}
        for call in confirmations(event):
            waiting[call.id] = (call, event)
    return waiting


def _answers(result: Any) -> bool:
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


def standing(events: Iterable[Any]) -> list[Any]:
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
