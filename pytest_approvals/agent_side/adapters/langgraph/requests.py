"""Interrupts as approval requests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...contract import MAIN, Request, ToolSpec, Unsupported

if TYPE_CHECKING:
    from langgraph.types import Interrupt, StateSnapshot

SEPARATOR = "/"
"""Stands between an interrupt's id and the position of a call in it, where one interrupt asks about several."""


def requests_of(interrupts: Iterable[Interrupt], tools: Sequence[ToolSpec]) -> tuple[Request, ...]:
    """
    Gives what a person is shown.

    Arguments:
        tools: The tools of all agents: a description may name one of these agents, and no request says whose tool it is
            about.
    """
    return tuple(request for interrupt in interrupts for request in _requests(interrupt, tools))


def _requests(interrupt: Any, tools: Sequence[ToolSpec]) -> Iterator[Request]:
    value = interrupt.value
    if isinstance(value, Mapping) and "action_requests" in value:
        for position, action in enumerate(value["action_requests"]):
            yield _request(f"{interrupt.id}{SEPARATOR}{position}", None, action, tools, interrupt)
    elif isinstance(value, Mapping) and "name" in value and "args" in value:
        yield _request(interrupt.id, value.get("tool_call_id"), value, tools, interrupt)
    else:
        raise Unsupported("attach", f"an interrupt that shows {value!r} does not say which call it is about")


def _request(id: str, call_id: str | None, shown: Mapping[str, Any], tools: Sequence[ToolSpec], handle: Any) -> Request:
    agent = next((spec.agent for spec in tools if spec.agent == shown.get("description")), MAIN)
    asked = next((spec for spec in tools if (spec.agent, spec.name) == (agent, shown["name"])), None)
    return Request(
        id=id,
        call_id=call_id,
        tool=shown["name"],
        arguments=shown["args"],
        kind="function" if asked is None else asked.kind,
        server=None if asked is None else asked.server,
        agent=agent,
        handle=handle,
    )


def waiting(state: StateSnapshot) -> list[Interrupt]:
    """
    Gives what a thread waits for, by task, in the order of the calls.

    A task that runs another graph has that one's interrupts in the order in which they came up, which differs from run
    to run; they are told by the ids of their calls.
    """
    return [interrupt for task in state.tasks for interrupt in sorted(task.interrupts, key=_call_id)]


def _call_id(interrupt: Any) -> str:
    value = interrupt.value
    return str(value.get("tool_call_id", "")) if isinstance(value, Mapping) else ""


def in_order(shown: Collection[Interrupt], waiting: Iterable[Interrupt]) -> list[Interrupt]:
    """
    Gives the interrupts that a run has *shown*, each once, in the order of the state.

    A run shows them in the order in which they came up, which differs from run to run.
    """
    place = {interrupt.id: number for number, interrupt in enumerate(waiting)}
    once = {interrupt.id: interrupt for interrupt in shown}
    return sorted(once.values(), key=lambda one: place.get(one.id, len(place)))
