"""Requests as the SDK shows them, and decisions as its callbacks return them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny, PermissionUpdate
from claude_agent_sdk.types import PermissionRuleValue

from ...contract import Decision, Request, ToolSpec, Unsupported

REJECTED = "The user rejected this call."
"""What the model is told of a rejection without a reason."""

CHANGED = "The call that is stored is not the one that was shown to the user."
"""What the model is told if an answer is about other arguments than the call has."""

UNANSWERED = "The user has not answered yet."
"""What the model is told of a call that nobody decided about."""


def to_request(call_id: str, full_name: str, arguments: Any, specs: Mapping[str, ToolSpec]) -> Request:
    """Return the request about a call, whose tool has that name in the CLI."""
    spec = specs.get(full_name)
    if spec is None:
        # A tool that is gone has its prefix only.
        name = full_name.split("__", 2)[-1] if full_name.startswith("mcp__") else full_name
        return Request(id=call_id, call_id=call_id, tool=name, arguments=arguments)
    return Request(id=call_id, call_id=call_id, tool=spec.name, arguments=arguments, kind=spec.kind, server=spec.server)


def read_answers(decisions: Sequence[Decision], asked: Request | None) -> dict[str | None, Decision]:
    """Return the last decision about the call that is *asked* about, by its id.

    Raises:
        LookupError: A decision is about another call. The SDK takes answers from the callback that it asks, so one to
            something else cannot be handed in.
    """
    for decision in decisions:
        call_id = decision.request.call_id if decision.request is not None else decision.address
        if asked is None or call_id != asked.call_id:
            raise LookupError(f"nobody asks about {call_id!r}")
    return {decision.request.call_id: decision for decision in decisions if decision.request is not None}


def write_permission(decision: Decision, standing: Sequence[PermissionUpdate] = ()) -> Any:
    """Return what `can_use_tool` returns for a decision.

    Args:
        decision: The decision.
        standing: The updates after which the tool is not asked about any more.
    """
    if decision.verdict == "raw":
        return decision.raw
    if decision.verdict == "reject":
        return PermissionResultDeny(message=decision.reason or REJECTED)
    if decision.verdict == "always" and standing:
        return PermissionResultAllow(updated_permissions=list(standing))
    if decision.verdict == "edit":
        _require_same_tool(decision)
        return PermissionResultAllow(updated_input=dict(decision.arguments or {}))
    if decision.verdict == "approve":
        return PermissionResultAllow()
    raise Unsupported(decision.verdict)


def allow_in_session(full_name: str) -> list[PermissionUpdate]:
    """Return the update that lets a tool run without a question until the session ends."""
    rules = [PermissionRuleValue(tool_name=full_name)]
    return [PermissionUpdate(type="addRules", rules=rules, behavior="allow", destination="session")]


def stop_asking(full_name: str, *, is_asked_by_rule: bool, is_allowed: bool) -> list[PermissionUpdate]:
    """Return the updates of the folder's settings after which a tool runs without a question.

    Args:
        full_name: The name of the tool in the CLI.
        is_asked_by_rule: It has an `ask` rule, which comes before each rule that allows.
        is_allowed: Another rule allows it.
    """
    rules = [PermissionRuleValue(tool_name=full_name)]
    updates = []
    if is_asked_by_rule:
        updates += [PermissionUpdate(type="removeRules", rules=rules, behavior="ask", destination="localSettings")]
    if not is_allowed:
        updates += [PermissionUpdate(type="addRules", rules=rules, behavior="allow", destination="localSettings")]
    return updates


def write_hook_output(decision: Decision) -> dict[str, Any]:
    """Return what a hook of `PreToolUse` returns for a decision."""
    if decision.verdict == "raw":
        return hook_output(decision.raw)
    if decision.verdict == "reject":
        return hook_output("deny", permissionDecisionReason=decision.reason or REJECTED)
    if decision.verdict == "edit":
        _require_same_tool(decision)
        return hook_output("allow", updatedInput=dict(decision.arguments or {}))
    if decision.verdict == "approve":
        return hook_output("allow")
    raise Unsupported(decision.verdict)


def hook_output(decision: Any, **more: Any) -> dict[str, Any]:
    """Return the output of a hook of `PreToolUse`."""
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision, **more}}


def _require_same_tool(decision: Decision) -> None:
    if decision.tool is not None:
        raise Unsupported("edit_tool")
