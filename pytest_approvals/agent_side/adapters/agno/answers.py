"""Decisions as the framework takes them: requirements that were confirmed or rejected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...contract import MAIN, Decision, Request, Unsupported
from .requests import requirement_of


def answered(known: Sequence[Any], decisions: Sequence[Decision], *, in_place: bool) -> list[Any]:
    """
    Gives the requirements that are handed in: those that the decisions are about, in the caller's order.

    Arguments:
        known: The requirements of the run as it is kept.
        in_place: Where the caller keeps the run itself: an answer whose request is known by its id alone is put on the
            run's own requirement, and not on one that came back from a client.
    """
    return [_answer(decision, known, in_place) for decision in decisions]


def _answer(decision: Decision, known: Sequence[Any], in_place: bool) -> Any:
    if decision.request is None:
        return decision.address
    own = next((one for one in known if one.id == requirement_of(decision.request)), None)
    requirement = decision.request.handle or (own if in_place and own is not None else rebuilt(decision.request, own))
    _VERDICTS[decision.verdict](requirement, decision)
    return requirement


def rebuilt(request: Request, own: Any) -> Any:
    """
    Gives the requirement that a client sends back: what it was shown, through the framework's own dictionaries.

    Arguments:
        own: The requirement that the run holds under this id, for what a person is not shown; None where there is none.
    """
    from agno.run.requirement import RunRequirement

    data: dict[str, Any] = own.to_dict() if own is not None else {}
    call = {name: value for name, value in (data.get("tool_execution") or {}).items() if name not in _DECIDED}
    call |= {"tool_call_id": request.call_id, "tool_name": request.tool, "tool_args": request.arguments}
    shown = {name: value for name, value in data.items() if name not in _DECIDED}
    shown |= {"id": requirement_of(request), "tool_execution": call | {"requires_confirmation": True}}
    if request.agent != MAIN:
        shown["member_agent_id"] = request.agent
    return RunRequirement.from_dict(shown)


_DECIDED = frozenset({"confirmation", "confirmed", "confirmation_note", "result", "tool_call_error", "metrics"})
"""What is not there yet when a client is shown a requirement."""


# --- verdicts ---------------------------------------------------------------------------------------------------------


def _approve(requirement: Any, _: Decision) -> None:
    # A requirement that was confirmed before is handed in again as it is; it takes no second decision.
    if requirement.confirmation is not True:
        requirement.confirm()


def _reject(requirement: Any, decision: Decision) -> None:
    if (requirement.confirmation, requirement.confirmation_note) != (False, decision.reason):
        requirement.reject(decision.reason)


def _edit(requirement: Any, decision: Decision) -> None:
    call = requirement.tool_execution
    call.tool_args = dict(decision.arguments or {})
    call.tool_name = decision.tool or call.tool_name
    requirement.confirm()


def _raw(requirement: Any, decision: Decision) -> None:
    requirement.confirmation = requirement.tool_execution.confirmed = decision.raw


def _standing(_: Any, decision: Decision) -> None:
    raise Unsupported(decision.verdict, "a requirement is about one call")


_VERDICTS: Mapping[str, Callable[[Any, Decision], None]] = {
    "approve": _approve,
    "reject": _reject,
    "edit": _edit,
    "always": _standing,
    "never": _standing,
    "raw": _raw,
}
