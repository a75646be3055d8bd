"""
The provider's part in hosted MCP: it runs the calls that the caller approved and reports them in its next reply.

As the OpenAI Responses API does it: an approval request is answered by an approval response in the next input, and the
provider then calls the server itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.contract.exceptions import ToolRaised
from pytest_approvals.agent_side.contract.types import HostedResult, Item
from pytest_approvals.journal.arguments import parse_arguments
from pytest_approvals.runner.script import ScriptedCall

if TYPE_CHECKING:
    from pytest_approvals.runner.world import RecordingWorld

ProviderResult = tuple[str, HostedResult]
"""The label of a hosted call and what the provider reports of it."""


def _is_ungated(call: ScriptedCall) -> bool:
    return call.kind == "hosted_mcp" and call.declared is not None and call.declared.approval == "never"


class HostedMcpProvider:
    """Runs hosted calls for one session."""

    def __init__(self, world: RecordingWorld) -> None:
        self._world = world

    async def run_approved(self, items: Sequence[Item]) -> list[ProviderResult]:
        """Runs the hosted calls that this input approves and that were not run before."""
        approved = [item.id for item in items if item.kind == "approval_response" and item.approved]
        waiting = [call for call in self._hosted() if call.label not in self._world.progress.provided]
        return [await self._run(call) for call in waiting if call.id in approved]

    async def run_ungated(self, calls: Sequence[ScriptedCall]) -> list[ProviderResult]:
        """Runs those of the calls whose tools are hosted and need nobody's approval."""
        return [await self._run(call) for call in calls if _is_ungated(call)]

    def _hosted(self) -> list[ScriptedCall]:
        return [call for call in self._world.progress.calls if call.kind == "hosted_mcp"]

    async def _run(self, call: ScriptedCall) -> ProviderResult:
        self._world.progress.provided.add(call.label)
        arguments = parse_arguments(call.arguments)
        given: Mapping[str, Any] = arguments if isinstance(arguments, Mapping) else {}
        output, error = None, None
        try:
            result = await self._world.provide(call, given)
            output = result if isinstance(result, str) else json.dumps(result)
        except ToolRaised as raised:
            error = str(raised)
        return call.label, HostedResult(
            call_id=call.id or call.label,
            tool=call.tool,
            server=call.server,
            arguments=given,
            output=output,
            error=error,
        )
