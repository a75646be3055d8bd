"""Confirmations that the framework asks for, as approval requests."""

from __future__ import annotations

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


@dataclass(slots=True)
class _Open:
    call: Any
    event: Any
    answered: bool = False

    @property
    def about(self) -> Any:
        return ((self.call.args or {}).get("originalFunctionCall") or {}).get("id")


def open_requests(events: Iterable[Any]) -> dict[str, tuple[Any, Any]]:
    """
    Gives by id the requests that no answer has settled, each as its call and its event.

    As the framework has it, a request is settled when the agent has a result of its call after the person's answer.
    """
    waiting: dict[str, _Open] = {}
    for event in standing(events):
        for result in event.get_function_responses():
            if event.author == "user" and result.name == CONFIRMATION:
                if result.id in waiting:
                    waiting[result.id].answered = True
                continue
            for settled in [one for one in waiting.values() if one.about == result.id and one.answered]:
                del waiting[settled.call.id]
        for call in confirmations(event):
            waiting[call.id] = _Open(call, event)
    return {one.call.id: (one.call, one.event) for one in waiting.values()}


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
