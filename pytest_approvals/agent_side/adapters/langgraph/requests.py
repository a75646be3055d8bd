"""Interrupts as approval requests, and decisions as values of `Command(resume=...)`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...contract import MAIN, Decision, Request, ToolSpec, Unsupported

if TYPE_CHECKING:
    from langgraph.types import Interrupt, StateSnapshot


SEPARATOR = "/"
"""Separates an interrupt's id and the position of a call, if one interrupt asks about several calls."""

ALIKE = "#"
"""Separates an interrupt's id, the number of its calls and the position of one, if they have one answer together."""


def list_request_ids(interrupts: Iterable[Interrupt]) -> list[str]:
    """Return the ids of the approval requests that *interrupts* show."""
    return [request_id for interrupt in interrupts for request_id in _list_ids(interrupt)]


def _list_ids(interrupt: Any) -> list[str]:
    value = interrupt.value
    if _is_batch(value):
        return [f"{interrupt.id}{SEPARATOR}{position}" for position in range(len(value["action_requests"]))]
    count = len(_find_shown_calls(value))
    return [_alike_id(interrupt, count, position) for position in range(count)] if count > 1 else [interrupt.id]


def _alike_id(interrupt: Any, count: int, position: int) -> str:
    return f"{interrupt.id}{ALIKE}{count}{ALIKE}{position}"


def _is_batch(value: Any) -> bool:
    """Return whether an interrupt is that of `HumanInTheLoopMiddleware`, which has an answer for each of its calls."""
    return isinstance(value, Mapping) and "action_requests" in value


def read_requests(
    interrupts: Iterable[Interrupt], tools: Sequence[ToolSpec], state: StateSnapshot
) -> tuple[Request, ...]:
    """Return the approval requests that *interrupts* show.

    Args:
        interrupts: What the framework shows.
        tools: The tools of all agents: a description may name one of these agents, and no request says whose tool it is
            about.
        state: The state of the thread, which tells the calls that show nothing of themselves.

    Raises:
        Unsupported: An interrupt is not about a call.
    """
    return tuple(request for interrupt in interrupts for request in _read_interrupt(interrupt, tools, state))


def _read_interrupt(interrupt: Any, tools: Sequence[ToolSpec], state: StateSnapshot) -> Iterator[Request]:
    value = interrupt.value
    if _is_batch(value):
        for position, action in enumerate(value["action_requests"]):
            yield _build_request(f"{interrupt.id}{SEPARATOR}{position}", None, action, tools, interrupt)
    elif isinstance(value, Mapping) and "name" in value and "args" in value:
        yield _build_request(interrupt.id, value.get("tool_call_id"), value, tools, interrupt)
    elif len(shown := _find_shown_calls(value)) > 1:
        for position, call in enumerate(shown):
            yield _build_request(_alike_id(interrupt, len(shown), position), call["id"], call, tools, interrupt)
    elif (one := shown[0] if shown else _find_asking_call(interrupt, state)) is not None:
        yield _build_request(interrupt.id, one["id"], one, tools, interrupt)
    else:
        raise Unsupported("attach", f"an interrupt that shows {value!r} does not say which call it is about")


def _find_shown_calls(value: Any) -> list[Mapping[str, Any]]:
    """Return the calls of the model that a question of the application's own shows, as the guides write it.

    It may be a call, a list of calls, or an object with one of them.
    """
    parts = [value, *(value.values() if isinstance(value, Mapping) else ())]
    shown = [one for part in parts for one in (part if isinstance(part, list | tuple) else [part])]
    return [one for one in shown if isinstance(one, Mapping) and {"name", "args", "id"} <= one.keys()]


def _find_asking_call(interrupt: Any, state: StateSnapshot) -> Mapping[str, Any] | None:
    """Return the call whose tool has interrupted; None if that cannot be told."""
    messages = state.values.get("messages", ()) if isinstance(state.values, Mapping) else ()
    answered = {message.tool_call_id for message in messages if message.type == "tool"}
    last = next((message for message in reversed(messages) if message.type == "ai"), None)
    made = getattr(last, "tool_calls", ())
    calls = [call for call in made if call["id"] not in answered]
    task = next((task for task in state.tasks if any(one.id == interrupt.id for one in task.interrupts)), None)
    # An agent sends each call to a task of its own, in the order of the calls.
    if task is not None and task.path[:1] == ("__pregel_push",) and isinstance(task.path[1], int):
        # The middleware has answered what it rejected; a sibling that is done is answered, too, and was sent.
        sent = made if len(made) == len(state.tasks) else calls
        return sent[task.path[1]] if task.path[1] < len(sent) else None
    return calls[0] if len(calls) == 1 else None


def _build_request(
    id: str, call_id: str | None, action: Mapping[str, Any], tools: Sequence[ToolSpec], handle: Any
) -> Request:
    agent = next((spec.agent for spec in tools if spec.agent == action.get("description")), MAIN)
    spec = next((spec for spec in tools if (spec.agent, spec.name) == (agent, action["name"])), None)
    return Request(
        id=id,
        call_id=call_id,
        tool=action["name"],
        arguments=action["args"],
        kind="function" if spec is None else spec.kind,
        server=None if spec is None else spec.server,
        agent=agent,
        handle=handle,
    )


def waiting_interrupts(state: StateSnapshot) -> list[Interrupt]:
    """Return the interrupts a thread waits for, by task, in the order of the calls.

    A task that runs another graph has the interrupts of that graph in the order in which they came up, which differs
    from run to run; these are sorted by the ids of their calls.
    """
    return [interrupt for task in state.tasks for interrupt in sorted(task.interrupts, key=_call_id_of)]


def _call_id_of(interrupt: Any) -> str:
    value = interrupt.value
    return str(value.get("tool_call_id", "")) if isinstance(value, Mapping) else ""


def sort_interrupts(shown: Collection[Interrupt], waiting: Iterable[Interrupt]) -> list[Interrupt]:
    """Return the interrupts that a run has *shown*, each once, in the order of the state.

    A run shows them in the order in which they came up, which differs from run to run.
    """
    positions = {interrupt.id: number for number, interrupt in enumerate(waiting)}
    unique = {interrupt.id: interrupt for interrupt in shown}
    return sorted(unique.values(), key=lambda interrupt: positions.get(interrupt.id, len(positions)))


DecisionWriter = Callable[[Sequence[Decision], int], Any]
"""Returns the value to resume with, from decisions and the number of waiting interrupts."""

_INTERRUPT_ID = re.compile(r"[0-9a-f]{32}")


def write_by_position(decisions: Sequence[Decision], waiting: int) -> Any:
    """Return the documented answer to a batched request: a list by position.

    It names nothing. If several interrupts wait, the framework needs their ids.
    """
    by_interrupt: dict[str, list[tuple[int, Any]]] = {}
    answers: dict[str, Any] = {}
    for decision in decisions:
        if decision.request is None:
            raise Unsupported("malformed_address", "a list of decisions has no place for an address")
        if ALIKE in decision.request.id:
            interrupt_id, count, _ = decision.request.id.split(ALIKE)
            answers[interrupt_id] = _write_alike(decisions, interrupt_id, int(count))
            continue
        interrupt_id, _, position = decision.request.id.partition(SEPARATOR)
        if not position:
            # A tool that asks itself asks about its own call only.
            answers[interrupt_id] = write_verdict(decision)
            continue
        by_interrupt.setdefault(interrupt_id, []).append((int(position), write_verdict(decision)))
        answers[interrupt_id] = {
            "decisions": [answer for _, answer in sorted(by_interrupt[interrupt_id], key=lambda pair: pair[0])]
        }
    return next(iter(answers.values())) if len(answers) == 1 and waiting < 2 else answers


def _write_alike(decisions: Sequence[Decision], interrupt_id: str, count: int) -> Any:
    """Return the answer to a question of the application's own about *count* calls.

    Raises:
        Unsupported: The calls are decided on differently, or not all.
    """
    beginning = f"{interrupt_id}{ALIKE}"
    about = [each for each in decisions if each.request is not None and each.request.id.startswith(beginning)]
    answers = [write_verdict(decision) for decision in about]
    if len(answers) < count or any(answer != answers[0] for answer in answers):
        raise Unsupported("parallel", "one interrupt asks about several calls; decide on them alike, at once")
    return answers[0]


def write_by_id(decisions: Sequence[Decision], _: int) -> Any:
    """Return decisions by interrupt ids; a decision whose address is None is bare."""
    if [decision.address for decision in decisions if decision.request is None] == [None]:
        return write_verdict(decisions[0])
    return {_interrupt_id(decision): write_verdict(decision) for decision in decisions}


def write_bare_if_single(decisions: Sequence[Decision], waiting: int) -> Any:
    """Return the bare decision if one interrupt waits, as in the guides, else by id."""
    if len(decisions) == 1 and waiting < 2:
        return write_verdict(decisions[0])
    return write_by_id(decisions, waiting)


def _interrupt_id(decision: Decision) -> Any:
    if decision.request is None:
        return decision.address
    request_id = decision.request.id
    # An unknown id needs the form of an id, or the framework would not take it for one.
    return (
        request_id
        if _INTERRUPT_ID.fullmatch(request_id)
        else hashlib.md5(request_id.encode(), usedforsecurity=False).hexdigest()
    )


def write_verdict(decision: Decision) -> Any:
    """Return the decision about one call."""
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
