"""Requirements of paused runs as approval requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ...contract import MAIN, Request, ToolSpec

if TYPE_CHECKING:
    from agno.run.requirement import RunRequirement

SEPARATOR = "/"
"""Stands between the id of a run and that of one of its requirements: an answer has to name both."""


Served = Mapping[tuple[str, str], ToolSpec]
"""The tools that servers offer, by agent and name: a requirement says the name of a tool and nothing of its server."""


def served(specs: Iterable[ToolSpec]) -> Served:
    """Finds the tools that servers offer."""
    return {(spec.agent, spec.name): spec for spec in specs if spec.kind == "mcp"}


def requests_of(requirements: Iterable[RunRequirement] | None, run: str, served: Served) -> tuple[Request, ...]:
    """Gives what a person is shown: the requirements of a run that nobody has answered."""
    return tuple(_request(one, run, served) for one in requirements or () if one.needs_confirmation)


def _request(requirement: Any, run: str, served: Served) -> Request:
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


def run_of(request: Request | None) -> str | None:
    """Gives the run that a request belongs to."""
    run, found, _ = request.id.partition(SEPARATOR) if request is not None else ("", "", "")
    return run if found else None


def requirement_of(request: Request) -> str:
    """Gives the id of the requirement that a request shows."""
    return request.id.rpartition(SEPARATOR)[2]
