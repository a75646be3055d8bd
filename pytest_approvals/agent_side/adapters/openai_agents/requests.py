"""Approval requests as items of a `RunState`, and decisions as its methods `approve` and `reject`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...contract import Decision, Kind, Request, Unsupported
from ...kit.tool_schema import parse_arguments, write_arguments
from .messages import get_field
from .metadata import RELEASE_MISSING

if TYPE_CHECKING:
    from agents import RunState, ToolApprovalItem

    from .agents import AgentGraph


def to_request(item: ToolApprovalItem, agents: AgentGraph) -> Request:
    """Return the request that *item* shows."""
    kind, server = _read_kind(item, agents)
    call_id = item.call_id
    return Request(
        id=call_id or "",
        call_id=call_id,
        tool=item.name or "",
        arguments=parse_arguments(item.arguments if item.arguments is not None else ""),
        kind=kind,
        server=server,
        agent=agents.label(item.agent.name),
        handle=item,
    )


def _read_kind(item: ToolApprovalItem, agents: AgentGraph) -> tuple[Kind, str | None]:
    if get_field(item.raw_item, "type") == "mcp_approval_request":
        return "hosted_mcp", get_field(item.raw_item, "server_label")
    if not hasattr(item, "tool_origin"):
        return _find_declared_kind(item, agents)
    origin = item.tool_origin
    if origin is not None and origin.type.value == "mcp":
        return "mcp", origin.mcp_server_name
    return "function", None


def _find_declared_kind(item: ToolApprovalItem, agents: AgentGraph) -> tuple[Kind, str | None]:
    # Early releases do not tell where a tool comes from; the agent's tools do.
    agent = agents.label(item.agent.name)
    matches = (spec for spec in agents.tools if (spec.agent, spec.name) == (agent, item.name))
    return next(((spec.kind, spec.server) for spec in matches), ("function", None))


def apply_decision(state: RunState[Any], decision: Decision, agents: AgentGraph) -> None:
    """Put *decision* into *state*, as the SDK's guide "Human-in-the-loop" says.

    Raises:
        Unsupported: The SDK has no such decision.
    """
    decide = _DECISION_METHODS.get(decision.verdict)
    if decide is None:
        raise Unsupported({"raw": "malformed_verdict"}.get(decision.verdict, decision.verdict))
    decide(state, find_target(state, decision, agents), decision.reason)


def _approve(state: RunState[Any], item: Any, reason: str | None) -> None:
    state.approve(item)


def _always(state: RunState[Any], item: Any, reason: str | None) -> None:
    state.approve(item, always_approve=True)


def _reject(state: RunState[Any], item: Any, reason: str | None) -> None:
    state.reject(item, **_build_rejection_options(reason))


def _never(state: RunState[Any], item: Any, reason: str | None) -> None:
    state.reject(item, always_reject=True, **_build_rejection_options(reason))


def _build_rejection_options(reason: str | None) -> dict[str, Any]:
    # A release without a place for a reason can still reject.
    return {} if reason is None or "reject_reason" in RELEASE_MISSING else {"rejection_message": reason}


_DECISION_METHODS: dict[str, Callable[[Any, Any, str | None], None]] = {
    "approve": _approve,
    "always": _always,
    "reject": _reject,
    "never": _never,
}


def find_target(state: RunState[Any], decision: Decision, agents: AgentGraph) -> Any:
    """Return the item that is handed to the SDK.

    That is the object from which the decision was made. If there is none, because the request came as JSON, it is
    looked up in *state*, as the server of a web client does; if nothing pending there equals the request, an item is
    made from the request.
    """
    request = decision.request
    if request is None:
        return decision.address
    if request.handle is not None:
        return request.handle
    pending = state.get_interruptions()
    return find_pending_item(pending, request, agents) or build_item(pending, request, agents)


def find_pending_item(
    items: Sequence[ToolApprovalItem], request: Request, agents: AgentGraph
) -> ToolApprovalItem | None:
    """Return the pending item that equals *request* in its call id and everything else; None if there is none."""
    return next((item for item in items if to_request(item, agents) == request), None)


def build_item(items: Sequence[ToolApprovalItem], request: Request, agents: AgentGraph) -> ToolApprovalItem:
    """Make an item from *request*; the SDK judges whether it was ever asked.

    What the request does not say is taken from what is pending, so that nothing else is wrong with the item.
    """
    from agents import ToolApprovalItem
    from openai.types.responses import ResponseFunctionToolCall
    from openai.types.responses.response_output_item import McpApprovalRequest

    pending = next((to_request(item, agents) for item in items), request)
    tool = request.tool or pending.tool or next((spec.name for spec in agents.tools), "")
    arguments = write_arguments(request.arguments if request.tool else pending.arguments, ensure_ascii=False)
    raw: Any
    if request.kind == "hosted_mcp":
        server = request.server or ""
        raw = McpApprovalRequest(
            type="mcp_approval_request", id=request.id, name=tool, server_label=server, arguments=arguments
        )
    else:
        call_id = request.call_id or request.id
        raw = ResponseFunctionToolCall(type="function_call", call_id=call_id, name=tool, arguments=arguments)
    return ToolApprovalItem(agent=agents.agents.get(request.agent, agents.main), raw_item=raw)
