"""Requirements of paused runs as approval requests, and decisions as settled requirements."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ...contract import MAIN, Decision, Request, ToolSpec, Unsupported

if TYPE_CHECKING:
    from agno.run.requirement import RunRequirement


SEPARATOR = "/"
"""Separates the ids of a run and of its requirement: a decision must name both."""


ServerTools = Mapping[tuple[str, str], ToolSpec]
"""Tools of MCP servers by agent and name: a requirement has the name of a tool but not its server."""


def server_tools(specs: Iterable[ToolSpec]) -> ServerTools:
    """Return the tools of MCP servers by agent and name."""
    return {(spec.agent, spec.name): spec for spec in specs if spec.kind == "mcp"}


def read_requests(
    requirements: Iterable[RunRequirement] | None, run: str, served: ServerTools, names: Mapping[str, str]
) -> tuple[Request, ...]:
    """Return the requests of a run: its requirements that nobody has answered.

    Args:
        requirements: The requirements of the run.
        run: The id of the run.
        served: The tools of MCP servers.
        names: The framework's names of the agents that were renamed, by their names in the tools.
    """
    labels = {new: name for name, new in names.items()}
    return tuple(
        _read_request(requirement, run, served, labels)
        for requirement in requirements or ()
        if requirement.needs_confirmation
        or _is_about_input(requirement)
        or _is_about_choice(requirement)
        or _is_external(requirement)
    )


def _is_about_input(requirement: Any) -> bool:
    """Return whether a person has to fill in arguments of a call: of a tool with `requires_user_input`."""
    return bool(getattr(requirement, "needs_user_input", False) and requirement.tool_execution.requires_user_input)


def _is_about_choice(requirement: Any) -> bool:
    """Return whether a person has to choose among options, which the model offers with `ask_user`."""
    return bool(getattr(requirement, "needs_user_feedback", False))


def _is_external(requirement: Any) -> bool:
    """Return whether the application has to execute a call itself: of a tool with `external_execution`."""
    return bool(getattr(requirement, "needs_external_execution", False))


def _read_request(requirement: Any, run: str, served: ServerTools, labels: Mapping[str, str]) -> Request:
    call = requirement.tool_execution
    # Before teams could pause, a requirement named no member.
    member = getattr(requirement, "member_agent_id", None) or MAIN
    agent = labels.get(member, member)
    spec = served.get((agent, call.tool_name))
    return Request(
        id=f"{run}{SEPARATOR}{requirement.id}",
        call_id=call.tool_call_id,
        tool=call.tool_name,
        # The answer of a person is written into the arguments themselves.
        arguments=dict(call.tool_args or {}),
        kind="function" if spec is None else "mcp",
        server=None if spec is None else spec.server,
        agent=agent,
        handle=requirement,
    )


def run_id_of(request: Request | None) -> str | None:
    """Return the id of the run that a request belongs to."""
    run, separator, _ = request.id.partition(SEPARATOR) if request is not None else ("", "", "")
    return run if separator else None


def requirement_id_of(request: Request) -> str:
    """Return the id of the requirement that a request shows."""
    return request.id.rpartition(SEPARATOR)[2]


def write_decisions(known: Sequence[Any], decisions: Sequence[Decision], *, in_place: bool) -> list[Any]:
    """Return the requirements of *decisions*, in the caller's order.

    Args:
        known: The requirements of the stored run.
        decisions: The decisions.
        in_place: The caller keeps the run itself: a decision whose request is known by its id alone is put on the run's
            own requirement, not on one that came back from a client.
    """
    return [_write_decision(decision, known, in_place) for decision in decisions]


async def execute_outside(
    decision: Decision, known: Sequence[Any], bodies: Mapping[tuple[str, str], Callable[..., Awaitable[Any]]]
) -> Decision:
    """Execute an approved call of a tool that the application executes itself, and return the decision with the result.

    Args:
        decision: The decision.
        known: The requirements of the stored run.
        bodies: The bodies of such tools of a user's agent, by agent and name.
    """
    request = decision.request
    if request is None or decision.verdict not in ("approve", "edit"):
        return decision
    body = bodies.get((request.agent, request.tool))
    requirement = request.handle or _find_own(request, known)
    if body is None or requirement is None or not _is_external(requirement):
        return decision
    arguments = request.arguments if decision.arguments is None else decision.arguments
    if not isinstance(arguments, Mapping):
        return decision
    result = await body(SimpleNamespace(call_id=request.call_id), **arguments)
    return replace(decision, verdict="raw", raw=str(result), meant=decision.verdict)


def _find_own(request: Request, known: Sequence[Any]) -> Any:
    return next((candidate for candidate in known if candidate.id == requirement_id_of(request)), None)


def _write_decision(decision: Decision, known: Sequence[Any], in_place: bool) -> Any:
    if decision.request is None:
        return decision.address
    own_requirement = _find_own(decision.request, known)
    requirement = decision.request.handle or (
        own_requirement
        if in_place and own_requirement is not None
        else rebuild_requirement(decision.request, own_requirement)
    )
    if _is_external(requirement):
        _write_external(requirement, decision)
    elif _is_about_choice(requirement):
        requirement.provide_user_feedback(_read_values(decision))
    elif _is_about_input(requirement):
        requirement.provide_user_input(_read_values(decision))
    else:
        _VERDICT_WRITERS[decision.verdict](requirement, decision)
    return requirement


def rebuild_requirement(request: Request, own: Any) -> Any:
    """Return the requirement that a client sends back, through the framework's dictionaries.

    Args:
        request: What the client was shown.
        own: The requirement of the run with this id, for what a client is not shown; None if there is none.
    """
    from agno.run.requirement import RunRequirement

    data: dict[str, Any] = own.to_dict() if own is not None else {}
    call = {name: value for name, value in (data.get("tool_execution") or {}).items() if name not in _DECISION_FIELDS}
    call |= {"tool_call_id": request.call_id, "tool_name": request.tool, "tool_args": request.arguments}
    fields = {name: value for name, value in data.items() if name not in _DECISION_FIELDS}
    if own is None or not (_is_external(own) or _is_about_input(own)):
        call["requires_confirmation"] = True
    fields |= {"id": requirement_id_of(request), "tool_execution": call}
    if request.agent != MAIN:
        fields["member_agent_id"] = getattr(own, "member_agent_id", None) or request.agent
    return RunRequirement.from_dict(fields)


_DECISION_FIELDS = frozenset({"confirmation", "confirmed", "confirmation_note", "result", "tool_call_error", "metrics"})
"""Fields that are not set yet when a client sees a requirement."""


# --- verdicts ---------------------------------------------------------------------------------------------------------


def _approve(requirement: Any, _: Decision) -> None:
    # The framework refuses a second decision, so a confirmed requirement is submitted again as it is.
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


def _write_external(requirement: Any, decision: Decision) -> None:
    if decision.verdict == "reject":
        requirement.set_external_execution_result(decision.reason or _REJECTED)
    elif decision.verdict == "raw":
        requirement.set_external_execution_result(decision.raw)
    else:
        raise Unsupported(decision.verdict, "the application executes this call, and hands over its result")


_REJECTED = "The user rejected this call."


def _read_values(decision: Decision) -> dict[str, Any]:
    values = decision.arguments if decision.verdict == "edit" else decision.raw
    if not isinstance(values, Mapping):
        raise Unsupported(
            decision.verdict,
            "the agent asks for values: write edit(...) with all arguments of the call, or answers={'approve': {...}}",
        )
    return dict(values)


def _write_raw(requirement: Any, decision: Decision) -> None:
    # `confirm` and `reject` set a boolean, but a client that sends JSON can set these fields to any value.
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
