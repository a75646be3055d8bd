"""Saved state: the agent's own state, and the requests that the user has not answered.

A waiting run is not part of an agent's state. The state then ends with the calls that the run works on. The results of
finished calls are not in it, because the framework adds the results of all calls of a reply together.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

from autogen_core import CancellationToken
from autogen_core.models import FunctionExecutionResult, FunctionExecutionResultMessage
from autogen_core.tools import ToolResult

from .gates import call_id_option
from .requests import ToolApprovalRequest

SeeEvent = Callable[[Any], None]


def dump_state(state: Any, waiting: Sequence[ToolApprovalRequest], window: int | None) -> str:
    """Return both as text, with the size of the conversation's buffer if it was trimmed."""
    requests = [request.model_dump(mode="json") for request in waiting]
    return json.dumps({"state": state, "waiting": requests, "window": window})


def load_state(text: str) -> tuple[Any, list[ToolApprovalRequest], int | None]:
    """Return what `dump_state` wrote."""
    saved = json.loads(text)
    return (
        saved["state"],
        [ToolApprovalRequest.model_validate(request) for request in saved["waiting"]],
        saved.get("window"),
    )


async def unfinished_calls(context: Any) -> list[Any]:
    """Return the calls without results at the end of a conversation."""
    # A context that keeps everything returns its own list.
    messages = list(await context.get_messages())
    results: list[str] = []
    while messages and messages[-1].type == "FunctionExecutionResultMessage":
        results += [result.call_id for result in messages.pop().content]
    calls = messages[-1].content if messages and messages[-1].type == "AssistantMessage" else ""
    return [call for call in calls if not isinstance(call, str) and not _take_result(call.id, results)]


def _take_result(id: str, results: list[str]) -> bool:
    """Return whether there is a result for an id, and remove it: each belongs to one call."""
    if id not in results:
        return False
    results.remove(id)
    return True


async def finish_calls(
    calls: Sequence[Any], workbenches: Sequence[Any], context: Any, token: CancellationToken, see: SeeEvent
) -> list[FunctionExecutionResult]:
    """Run the calls at the end of a conversation, add the result of each as it comes, and return them in order.

    Nothing in the framework resumes a run that was saved while it worked on calls. This uses what its public methods
    offer: `Workbench.call_tool`, and `ChatCompletionContext.add_message`.
    """
    last_with_id: dict[str, asyncio.Task[FunctionExecutionResult]] = {}

    async def run_one(call: Any, previous: asyncio.Task[Any] | None) -> FunctionExecutionResult:
        result = await _run_call(call, workbenches, token, see)
        # Results of calls that share an id are told apart by their order.
        await (previous or asyncio.sleep(0))
        await context.add_message(FunctionExecutionResultMessage(content=[result]))
        return result

    tasks = []
    for call in calls:
        last_with_id[call.id] = asyncio.create_task(run_one(call, last_with_id.get(call.id)))
        tasks.append(last_with_id[call.id])
    results = await asyncio.gather(*tasks)
    await _merge_results(context)
    return results


async def _merge_results(context: Any) -> None:
    """Merge the results of a reply into one message, in the order of the calls.

    That is how the framework adds them.
    """
    messages = list(await context.get_messages())
    results: list[FunctionExecutionResult] = []
    while messages and messages[-1].type == "FunctionExecutionResultMessage":
        results = [*messages.pop().content, *results]
    # A buffer that is smaller than that shows no calls.
    if not messages:
        return
    ids = [call.id for call in messages[-1].content]
    results.sort(key=lambda result: ids.index(result.call_id))
    # A context takes messages at its end only.
    await context.clear()
    for message in [*messages, FunctionExecutionResultMessage(content=results)]:
        await context.add_message(message)


async def _run_call(
    call: Any, workbenches: Sequence[Any], token: CancellationToken, see: SeeEvent
) -> FunctionExecutionResult:
    try:
        arguments = json.loads(call.arguments)
    except ValueError as error:
        return _failure_result(call, str(error))
    for workbench in workbenches:
        if any(tool["name"] == call.name for tool in await workbench.list_tools()):
            result: ToolResult = await _call_workbench(workbench, call, arguments, token, see)
            return FunctionExecutionResult(
                content=result.to_text(), call_id=call.id, is_error=result.is_error, name=call.name
            )
    return _failure_result(call, f"tool '{call.name}' not found in any workbench")


def _failure_result(call: Any, reason: str) -> FunctionExecutionResult:
    return FunctionExecutionResult(content=f"Error: {reason}", call_id=call.id, is_error=True, name=call.name)


async def _call_workbench(workbench: Any, call: Any, arguments: Any, token: CancellationToken, see: SeeEvent) -> Any:
    if not hasattr(workbench, "call_tool_stream"):
        return await workbench.call_tool(call.name, arguments, token, **call_id_option(call.id))
    result = None
    async for event in workbench.call_tool_stream(call.name, arguments, token, call.id):
        if isinstance(event, ToolResult):
            result = event
        else:
            see(event)
    return result
