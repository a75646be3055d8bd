"""Hosted MCP: calls that the model's provider executes itself.

The provider executes the calls that the caller approved and reports them in its next reply, as in the OpenAI Responses
API: an approval request is answered by an approval response in the next input, and the provider then calls the server
itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import ToolRaised
from pytest_approvals.agent_side.contract.types import HostedResult, Item
from pytest_approvals.journal.arguments import parse_arguments
from pytest_approvals.runner.script import ScriptedCall, ScriptState

ProviderResult = tuple[str, HostedResult]
"""The label of a hosted call and what the provider reports of it."""

ExecuteHosted = Callable[[ScriptedCall, Mapping[str, Any]], Awaitable[Any]]
"""Executes a hosted call with its arguments; raises `ToolRaised`."""


async def execute_approved(items: Sequence[Item], state: ScriptState, execute: ExecuteHosted) -> list[ProviderResult]:
    """Execute the hosted calls that this model input approves and that were not executed before.

    A call whose result is in the input was executed, too: a session of the agent's own may hold it after a rewind.
    """
    if not state.calls:
        return []
    responses: dict[str | None, list[bool]] = {}
    shown = Counter(item.id for item in items if item.kind == "approval_request")
    done = Counter(item.id for item in items if item.kind == "hosted_result")
    for item in items:
        if item.kind == "approval_response":
            # Only `true` approves: an agent in another process may send any JSON, such as "no".
            responses.setdefault(item.id, []).append(item.approved is True)
    asked: dict[str | None, list[ScriptedCall]] = {}
    for call in state.calls:
        if call.kind == "hosted_mcp" and not _is_ungated(call):
            asked.setdefault(call.id, []).append(call)
    approved = [
        call
        for seen, calls in asked.items()
        # What a trimmed history lacks is the oldest; a request that refers to a stored response shows none.
        for call in _select_approved(calls[-shown[seen] :], responses.get(seen, []))
    ]
    executed = [call for seen, calls in asked.items() for call in calls[-shown[seen] :][: done[seen]]]
    waiting = [
        call for call in state.calls if call in approved and call not in executed and call.label not in state.provided
    ]
    return [await _execute(call, state, execute) for call in waiting]


def _select_approved(calls: Sequence[ScriptedCall], responses: Sequence[bool]) -> list[ScriptedCall]:
    """Return the approved ones of the calls of one id; of several, each has a response of its own, in their order."""
    if len(calls) == 1:
        return list(calls) if any(responses) else []
    return [call for call, is_approved in zip(calls, responses, strict=False) if is_approved]


async def execute_ungated(
    calls: Sequence[ScriptedCall], state: ScriptState, execute: ExecuteHosted
) -> list[ProviderResult]:
    """Execute those of the calls whose tools are hosted and need no approval."""
    return [await _execute(call, state, execute) for call in calls if _is_ungated(call)]


def _is_ungated(call: ScriptedCall) -> bool:
    return call.kind == "hosted_mcp" and call.declared is not None and call.declared.approval == "never"


async def _execute(call: ScriptedCall, state: ScriptState, execute: ExecuteHosted) -> ProviderResult:
    # Before the execution: a call that fails is reported to the model, and not executed again either.
    state.provided.add(call.label)
    parsed = parse_arguments(call.arguments)
    arguments: Mapping[str, Any] = parsed if isinstance(parsed, Mapping) else {}
    output, error = None, None
    if not isinstance(parsed, Mapping):
        # There is nothing to call the server with, and to leave the arguments out would be another call.
        error = "the arguments are no JSON object"
    else:
        try:
            result = await execute(call, arguments)
            output = result if isinstance(result, str) else json.dumps(result)
        except ToolRaised as raised:
            error = str(raised)
    return call.label, HostedResult(
        call_id=call.id or call.label,
        tool=call.tool,
        server=call.server,
        arguments=arguments,
        output=output,
        error=error,
        was_asked=not _is_ungated(call),
    )
