"""
What is kept between turns: the agent's own state, and the requests that a person was shown and has not answered.

A run that waits is not part of an agent's state. The state then ends with the calls that the run works on. The results
of those that are done are not in it, because the framework adds the results of all calls of a reply together.
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
    """Gives both as text, with the size of the conversation's buffer where it was trimmed."""
    asked = [request.model_dump(mode="json") for request in waiting]
    return json.dumps({"state": state, "waiting": asked, "window": window})


def load_state(text: str) -> tuple[Any, list[ToolApprovalRequest], int | None]:
    """Gives them back."""
    kept = json.loads(text)
    return kept["state"], [ToolApprovalRequest.model_validate(one) for one in kept["waiting"]], kept.get("window")


async def unfinished_calls(context: Any) -> list[Any]:
    """Gives the calls without results that a conversation ends with."""
    messages = await context.get_messages()
    results: list[str] = []
    while messages and messages[-1].type == "FunctionExecutionResultMessage":
        results += [result.call_id for result in messages.pop().content]
    calls = messages[-1].content if messages and messages[-1].type == "AssistantMessage" else ""
    return [call for call in calls if not isinstance(call, str) and not _take_result(call.id, results)]


def _take_result(id: str, results: list[str]) -> bool:
    """Says whether there is a result for an id, and takes it: each belongs to one call."""
    if id not in results:
        return False
    results.remove(id)
    return True


async def finish_calls(
    calls: Sequence[Any], benches: Sequence[Any], context: Any, token: CancellationToken, see: SeeEvent
) -> None:
    """
    Runs the calls that a conversation ends with, and adds the result of each as it comes.

    Nothing in the framework takes up a run that was saved while it worked on calls. This is what its public methods
    offer for it: `Workbench.call_tool`, and `ChatCompletionContext.add_message`.
    """

    namesakes: dict[str, asyncio.Task[None]] = {}

    async def one(call: Any, before: asyncio.Task[None] | None) -> None:
        result = await _run_call(call, benches, token, see)
        # Results of calls that share an id are told apart by their order.
        await (before or asyncio.sleep(0))
        await context.add_message(FunctionExecutionResultMessage(content=[result]))

    tasks = []
    for call in calls:
        namesakes[call.id] = asyncio.create_task(one(call, namesakes.get(call.id)))
        tasks.append(namesakes[call.id])
    await asyncio.gather(*tasks)
    await _merge_results(context)


async def _merge_results(context: Any) -> None:
    """Leaves the results of a reply as the framework adds them: in one message, in the order of the calls."""
    messages = await context.get_messages()
    results: list[FunctionExecutionResult] = []
    while messages[-1].type == "FunctionExecutionResultMessage":
        results = [*messages.pop().content, *results]
    ids = [call.id for call in messages[-1].content]
    results.sort(key=lambda result: ids.index(result.call_id))
    await context.clear()
    for message in [*messages, FunctionExecutionResultMessage(content=results)]:
        await context.add_message(message)


async def _run_call(
    call: Any, benches: Sequence[Any], token: CancellationToken, see: SeeEvent
) -> FunctionExecutionResult:
    try:
        arguments = json.loads(call.arguments)
    except ValueError as error:
        return _failure_result(call, str(error))
    for bench in benches:
        if any(tool["name"] == call.name for tool in await bench.list_tools()):
            result: ToolResult = await _call_workbench(bench, call, arguments, token, see)
            return FunctionExecutionResult(
                content=result.to_text(), call_id=call.id, is_error=result.is_error, name=call.name
            )
    return _failure_result(call, f"tool '{call.name}' not found in any workbench")


def _failure_result(call: Any, why: str) -> FunctionExecutionResult:
    return FunctionExecutionResult(content=f"Error: {why}", call_id=call.id, is_error=True, name=call.name)


async def _call_workbench(bench: Any, call: Any, arguments: Any, token: CancellationToken, see: SeeEvent) -> Any:
    if not hasattr(bench, "call_tool_stream"):
        return await bench.call_tool(call.name, arguments, token, **call_id_option(call.id))
    result = None
    async for event in bench.call_tool_stream(call.name, arguments, token, call.id):
        if isinstance(event, ToolResult):
            result = event
        else:
            see(event)
    return result
