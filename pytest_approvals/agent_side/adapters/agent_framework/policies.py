"""The middleware that approves calls without asking a person."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agent_framework import ToolApprovalMiddleware

from ...contract import Condition, ToolSpec
from ...current import world
from .contents import parsed


def approving(specs: Sequence[ToolSpec]) -> list[Any]:
    """Gives `ToolApprovalMiddleware` with a rule for the tools of an agent that are gated on a condition."""
    conditional = {spec.name: spec for spec in specs if isinstance(spec.approval, Condition)}
    return [ToolApprovalMiddleware(auto_approval_rules=[_rule(conditional)] if conditional else None)]


def _rule(conditional: dict[str, ToolSpec]) -> Callable[[Any], Awaitable[bool]]:
    async def approves(call: Any) -> bool:
        spec = conditional.get(call.name)
        if spec is None:
            return False
        gated = await world().gate_slowly(spec.name, parsed(call.arguments), call.call_id, agent=spec.agent)
        return not gated

    return approves
