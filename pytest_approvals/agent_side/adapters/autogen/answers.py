"""Requests and decisions in the neutral form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ...contract import Decision, Request, ToolSpec, Unsupported
from .approval import ToolApprovalRequest, ToolApprovalResult


def shown(request: ToolApprovalRequest, specs: Iterable[ToolSpec]) -> Request:
    """Gives what a person is shown."""
    spec = next((one for one in specs if (one.agent, one.name) == (request.agent, request.tool)), None)
    return Request(
        id=request.request_id,
        call_id=request.call_id,
        tool=request.tool,
        arguments=_arguments(request.arguments),
        agent=request.agent,
        kind=spec.kind if spec is not None else "function",
        server=spec.server if spec is not None else None,
        handle=request,
    )


def _arguments(arguments: Any) -> Any:
    return dict(arguments) if isinstance(arguments, Mapping) else json.dumps(arguments)


def result_of(decision: Decision) -> ToolApprovalResult:
    """Gives what an approval function answers."""
    if decision.verdict == "approve":
        return ToolApprovalResult(approved=True)
    if decision.verdict == "reject":
        return ToolApprovalResult(approved=False, reason=decision.reason)
    if decision.verdict == "edit" and decision.tool is None:
        return ToolApprovalResult(approved=True, arguments=dict(decision.arguments or {}))
    raise Unsupported(decision.verdict, "an approval result is about one call and its arguments")
