"""
Agents that run inside a tool, after the framework's recipe for delegation with approvals.

The framework has no nested approvals of its own. A delegating tool runs the inner agent; where that pauses, it raises
`ApprovalRequired` with the inner requests and the inner history as metadata, which surface with the outer call's
request. On resume the tool finds the answers, again with that history, in `ctx.tool_call_metadata`. So nothing is kept
outside of what the caller keeps: the requests and, handed back, the results.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.messages import ModelMessagesTypeAdapter

from .state import REQUESTS, RESULTS

KEY = "delegated"
"""Where the metadata of a call that runs an agent holds what that agent waits for."""


def delegate(agents: Mapping[str, Agent[None, Any]], name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Gives the body of a tool that runs the agent called *name*, one of *agents* by the time it is called."""

    async def body(ctx: RunContext[None], **arguments: str) -> Any:
        given = (ctx.tool_call_metadata or {}).get(KEY) if ctx.tool_call_approved else None
        begin: dict[str, Any] = {"user_prompt": arguments["input"]} if given is None else _resume(given)
        result = await agents[name].run(**begin)
        if isinstance(result.output, DeferredToolRequests):
            raise ApprovalRequired(metadata={KEY: _waiting(name, result)})
        return result.output

    return body


def _waiting(name: str, result: Any) -> dict[str, Any]:
    """What the inner agent waits for, as JSON data: it has to survive where the requests are stored."""
    return {
        "agent": name,
        "requests": REQUESTS.dump_python(result.output, mode="json"),
        "history": ModelMessagesTypeAdapter.dump_python(result.all_messages(), mode="json"),
    }


def _resume(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "message_history": ModelMessagesTypeAdapter.validate_python(given["history"]),
        "deferred_tool_results": answers(given),
    }


def answers(given: Mapping[str, Any]) -> DeferredToolResults:
    """Gives the answers to the inner requests; they are JSON data once they were put aside and stored."""
    results = given["results"]
    return results if isinstance(results, DeferredToolResults) else RESULTS.validate_python(results)
