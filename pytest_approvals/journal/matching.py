"""
Which call something is about: a surfaced request, an entered tool, a question to the policy.

Call ids come again, are renamed, or are missing; so a call is recognised by id, tool and arguments together, the best
fit first. All this rests on arguments that are unique within a scenario.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .arguments import same_arguments, settled
from .calls import CallSeen
from .events import Gate, ToolStart

NO_FIT = 9
"""The rank of no call at all; smaller ranks fit better."""


def runs_with(ran: Any, wanted: Any, parameters: Mapping[str, Mapping[str, Any]]) -> bool:
    """
    Says whether a tool's body that got *ran* got what *wanted* stands for: equal after coercion and defaults; values
    that are not declared may have been left out.
    """
    if ran == wanted:
        return True
    one, other = settled(ran, parameters), settled(wanted, parameters)
    if one == other:
        return True
    if not parameters or not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return False
    return all(one.get(name) == other.get(name) for name in parameters)


def call_of_execution(pool: Sequence[CallSeen], event: ToolStart) -> tuple[int, CallSeen | None]:
    """
    Finds the call that an execution belongs to, with the rank of the fit.

    In this order: approved, not run, and asked for with these arguments; ungated and not run; any not run; a second run
    of a call with these arguments; with the same id also a run with other arguments, and a second run of the last call.

    Arguments:
        pool: The calls with the same id, or, where the body was told no id, the calls of the same tool.
    """
    best, chosen = NO_FIT, None
    for call in _of_agent(pool, event.agent):
        rank = _rank(call, event)
        if rank < best or (rank == best and rank >= 4):
            best, chosen = rank, call
    return best, chosen


def _rank(call: CallSeen, event: ToolStart) -> int:
    tool, arguments = call.wanted_at(event.n)
    fits = tool == event.tool and runs_with(event.arguments, arguments, call.parameters)
    if call.runs:
        if fits:
            return _rank_of_second(call, event)
        return NO_FIT if event.call_id is None else 8
    if fits:
        given = call.decision_at(event.n)
        if given is not None and given.approves:
            return 0
        return 2 if call.gated_at(event.n) else 1
    if call.tool == event.tool or tool == event.tool:
        return 6
    return NO_FIT if event.call_id is None else 7


def _rank_of_second(call: CallSeen, event: ToolStart) -> int:
    """A call that may rightly run again comes before calls that may not."""
    last = call.runs[-1]
    return 3 if last.how in ("raised", "asked", "cancelled") else 4


def call_of_gate(pool: Iterable[CallSeen], event: Gate) -> CallSeen | None:
    """Finds the call that the policy was asked about; of several equal ones the last."""
    chosen: CallSeen | None = None
    for call in pool:
        if call.tool != event.tool:
            continue
        if same_arguments(event.arguments, call.arguments, call.parameters) or chosen is None:
            chosen = call
    return chosen


def call_of_request(
    by_id: Sequence[CallSeen], by_tool: Sequence[CallSeen], entry: Mapping[str, Any], taken: Iterable[CallSeen]
) -> CallSeen | None:
    """
    Finds the call that a surfaced request is about.

    In this order, each call once a pause: same agent, id, tool and arguments; same id and tool; and, since an agent may
    rename ids, same tool and arguments.

    Arguments:
        by_id: The calls with the id that the request shows.
        by_tool: The calls of the tool that it shows.
        taken: The calls that other requests of the same pause are about.
    """
    used = {id(call) for call in taken}
    tool, arguments, agent = entry.get("tool"), entry.get("arguments"), entry.get("agent") or "main"
    same_id = [call for call in reversed(by_id) if call.tool == tool and id(call) not in used]
    same_values = [call for call in same_id if same_arguments(arguments, call.arguments, call.parameters)]
    ranked = [call for call in same_values if call.agent == agent] or same_values or same_id
    if ranked:
        return ranked[0]
    renamed = [call for call in reversed(by_tool) if id(call) not in used]
    return next((call for call in renamed if same_arguments(arguments, call.arguments, call.parameters)), None)


def _of_agent(pool: Sequence[CallSeen], agent: str) -> Sequence[CallSeen]:
    if len(pool) < 2:
        return pool
    return [call for call in pool if call.agent == agent] or pool
