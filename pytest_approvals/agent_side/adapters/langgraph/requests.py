"""Interrupts as approval requests.

Decisions as the framework takes them: the value of `Command(resume=...)`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...contract import MAIN, Decision, Request, ToolSpec, Unsupported

if TYPE_CHECKING:
    from langgraph.types import Interrupt, StateSnapshot


SEPARATOR = "/"
"""Stands between an interrupt's id and the position of a call in it, where one interrupt asks about several."""


def read_requests(interrupts: Iterable[Interrupt], tools: Sequence[ToolSpec]) -> tuple[Request, ...]:
    """
    Gives what a person is shown.

    Arguments:
        tools: The tools of all agents: a description may name one of these agents, and no request says whose tool it is
            about.
    """
    return tuple(request for interrupt in interrupts for request in _read_interrupt(interrupt, tools))


def _read_interrupt(interrupt: Any, tools: Sequence[ToolSpec]) -> Iterator[Request]:
    value = interrupt.value
    if isinstance(value, Mapping) and "action_requests" in value:
        for position, action in enumerate(value["action_requests"]):
            yield _build_request(f"{interrupt.id}{SEPARATOR}{position}", None, action, tools, interrupt)
    elif isinstance(value, Mapping) and "name" in value and "args" in value:
        yield _build_request(interrupt.id, value.get("tool_call_id"), value, tools, interrupt)
    else:
        raise Unsupported("attach", f"an interrupt that shows {value!r} does not say which call it is about")


def _build_request(
    id: str, call_id: str | None, shown: Mapping[str, Any], tools: Sequence[ToolSpec], handle: Any
) -> Request:
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


def waiting_interrupts(state: StateSnapshot) -> list[Interrupt]:
    """
    Gives what a thread waits for, by task, in the order of the calls.

    A task that runs another graph has that one's interrupts in the order in which they came up, which differs from run
    to run; they are told by the ids of their calls.
    """
    return [interrupt for task in state.tasks for interrupt in sorted(task.interrupts, key=_call_id_of)]


def _call_id_of(interrupt: Any) -> str:
    value = interrupt.value
    return str(value.get("tool_call_id", "")) if isinstance(value, Mapping) else ""


def sort_interrupts(shown: Collection[Interrupt], waiting: Iterable[Interrupt]) -> list[Interrupt]:
    """
    Gives the interrupts that a run has *shown*, each once, in the order of the state.

    A run shows them in the order in which they came up, which differs from run to run.
    """
    place = {interrupt.id: number for number, interrupt in enumerate(waiting)}
    once = {interrupt.id: interrupt for interrupt in shown}
    return sorted(once.values(), key=lambda one: place.get(one.id, len(place)))


DecisionWriter = Callable[[Sequence[Decision], int], Any]
"""Gives the value to resume with, of decisions and of how many interrupts are waiting."""

_INTERRUPT_ID = re.compile(r"[0-9a-f]{32}")


def write_by_position(decisions: Sequence[Decision], waiting: int) -> Any:
    """
    Gives the documented answer to a batched request: a list by position, which names nothing.

    Where several interrupts wait, the framework wants their ids.
    """
    listed: dict[str, list[tuple[int, Any]]] = {}
    answers: dict[str, Any] = {}
    for decision in decisions:
        if decision.request is None:
            raise Unsupported("malformed_address", "a list of decisions has no place for an address")
        asked, _, position = decision.request.id.partition(SEPARATOR)
        if not position:
            # A tool that asks from within asks about itself alone.
            answers[asked] = write_verdict(decision)
            continue
        listed.setdefault(asked, []).append((int(position), write_verdict(decision)))
        answers[asked] = {"decisions": [answer for _, answer in sorted(listed[asked], key=lambda pair: pair[0])]}
    return next(iter(answers.values())) if len(answers) == 1 and waiting < 2 else answers


def write_by_id(decisions: Sequence[Decision], _: int) -> Any:
    """Gives answers by the ids of interrupts; one whose address is None names no interrupt."""
    if [decision.address for decision in decisions if decision.request is None] == [None]:
        return write_verdict(decisions[0])
    return {_interrupt_id(decision): write_verdict(decision) for decision in decisions}


def write_bare_if_single(decisions: Sequence[Decision], waiting: int) -> Any:
    """Gives the answer itself where one interrupt waits, as the guides have it, and else answers by id."""
    if len(decisions) == 1 and waiting < 2:
        return write_verdict(decisions[0])
    return write_by_id(decisions, waiting)


def _interrupt_id(decision: Decision) -> Any:
    if decision.request is None:
        return decision.address
    asked = decision.request.id
    # An id that was never asked is put into the form that ids have, or it would be no id at all.
    return asked if _INTERRUPT_ID.fullmatch(asked) else hashlib.md5(asked.encode(), usedforsecurity=False).hexdigest()


def write_verdict(decision: Decision) -> Any:
    """Gives the decision about one call."""
    return _VERDICT_WRITERS[decision.verdict](decision)


def _write_rejection(decision: Decision) -> Any:
    return {"type": "reject"} if decision.reason is None else {"type": "reject", "message": decision.reason}


def _write_edit(decision: Decision) -> Any:
    tool = decision.tool or (decision.request.tool if decision.request else "")
    return {"type": "edit", "edited_action": {"name": tool, "args": dict(decision.arguments or {})}}


def _refuse_standing(decision: Decision) -> Any:
    raise Unsupported(decision.verdict, "a decision is about one call")


_VERDICT_WRITERS: Mapping[str, Callable[[Decision], Any]] = {
    "approve": lambda decision: {"type": "approve"},
    "reject": _write_rejection,
    "edit": _write_edit,
    "always": _refuse_standing,
    "never": _refuse_standing,
    "raw": lambda decision: decision.raw,
}
