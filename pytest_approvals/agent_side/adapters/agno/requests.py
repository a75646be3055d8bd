"""Requirements of paused runs as approval requests.

Decisions as the framework takes them: requirements that were confirmed or rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...contract import MAIN, Decision, Request, ToolSpec, Unsupported

if TYPE_CHECKING:
    from agno.run.requirement import RunRequirement


SEPARATOR = "/"
"""Stands between the id of a run and that of one of its requirements: an answer has to name both."""


ServerTools = Mapping[tuple[str, str], ToolSpec]
"""The tools that servers offer, by agent and name: a requirement says the name of a tool and nothing of its server."""


def server_tools(specs: Iterable[ToolSpec]) -> ServerTools:
    """Finds the tools that servers offer."""
    return {(spec.agent, spec.name): spec for spec in specs if spec.kind == "mcp"}


def read_requests(requirements: Iterable[RunRequirement] | None, run: str, served: ServerTools) -> tuple[Request, ...]:
    """Gives what a person is shown: the requirements of a run that nobody has answered."""
    return tuple(_read_request(one, run, served) for one in requirements or () if one.needs_confirmation)


def _read_request(requirement: Any, run: str, served: ServerTools) -> Request:
    call = requirement.tool_execution
    # Before teams could pause, a requirement named no member.
    agent = getattr(requirement, "member_agent_id", None) or MAIN
    offered = served.get((agent, call.tool_name))
    return Request(
        id=f"{run}{SEPARATOR}{requirement.id}",
        call_id=call.tool_call_id,
        tool=call.tool_name,
        arguments=call.tool_args or {},
        kind="function" if offered is None else "mcp",
        server=None if offered is None else offered.server,
        agent=agent,
        handle=requirement,
    )


def run_id_of(request: Request | None) -> str | None:
    """Gives the run that a request belongs to."""
    run, found, _ = request.id.partition(SEPARATOR) if request is not None else ("", "", "")
    return run if found else None


def requirement_id_of(request: Request) -> str:
    """Gives the id of the requirement that a request shows."""
    return request.id.rpartition(SEPARATOR)[2]


def write_decisions(known: Sequence[Any], decisions: Sequence[Decision], *, in_place: bool) -> list[Any]:
    """
    Gives the requirements that are handed in: those that the decisions are about, in the caller's order.

    Arguments:
        known: The requirements of the run as it is kept.
        in_place: Where the caller keeps the run itself: an answer whose request is known by its id alone is put on the
            run's own requirement, and not on one that came back from a client.
    """
    return [_write_decision(decision, known, in_place) for decision in decisions]


def _write_decision(decision: Decision, known: Sequence[Any], in_place: bool) -> Any:
    if decision.request is None:
        return decision.address
    own = next((one for one in known if one.id == requirement_id_of(decision.request)), None)
    requirement = decision.request.handle or (
        own if in_place and own is not None else rebuild_requirement(decision.request, own)
    )
    _VERDICT_WRITERS[decision.verdict](requirement, decision)
    return requirement


def rebuild_requirement(request: Request, own: Any) -> Any:
    """
    Gives the requirement that a client sends back: what it was shown, through the framework's own dictionaries.

    Arguments:
        own: The requirement that the run holds under this id, for what a person is not shown; None where there is none.
    """
    from agno.run.requirement import RunRequirement

    data: dict[str, Any] = own.to_dict() if own is not None else {}
    call = {name: value for name, value in (data.get("tool_execution") or {}).items() if name not in _DECISION_FIELDS}
    call |= {"tool_call_id": request.call_id, "tool_name": request.tool, "tool_args": request.arguments}
    shown = {name: value for name, value in data.items() if name not in _DECISION_FIELDS}
    shown |= {"id": requirement_id_of(request), "tool_execution": call | {"requires_confirmation": True}}
    if request.agent != MAIN:
        shown["member_agent_id"] = request.agent
    return RunRequirement.from_dict(shown)


_DECISION_FIELDS = frozenset({"confirmation", "confirmed", "confirmation_note", "result", "tool_call_error", "metrics"})
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


def _write_raw(requirement: Any, decision: Decision) -> None:
    requirement.confirmation = requirement.tool_execution.confirmed = decision.raw


def _refuse_standing(_: Any, decision: Decision) -> None:
    raise Unsupported(decision.verdict, "a requirement is about one call")


_VERDICT_WRITERS: Mapping[str, Callable[[Any, Decision], None]] = {
    "approve": _approve,
    "reject": _reject,
    "edit": _edit,
    "always": _refuse_standing,
    "never": _refuse_standing,
    "raw": _write_raw,
}
