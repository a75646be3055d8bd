"""Requests, stream events and outputs as the caller sees them, and decisions as the framework takes them.

Inside, a request is found by its path: the id of its call, below the ids of the calls that run the agents around it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied, messages
from pydantic_core import to_jsonable_python

from ...contract import MAIN, Decision, Request, Unsupported, World
from .messages import ANSWER_TOOL, SpecsByName, read_arguments
from .state import REQUESTS_ADAPTER
from .tools import DELEGATED_KEY, read_inner_results

RequestPath = tuple[str, ...]


def read_requests(requests: DeferredToolRequests | None, specs: SpecsByName) -> tuple[Request, ...]:
    """Return the open requests; a call that waits for the agent it runs is replaced by that agent's requests."""
    return tuple(request for _, request in _walk_requests(requests, specs)) if requests else ()


def _walk_requests(
    requests: DeferredToolRequests, specs: SpecsByName, agent: str = MAIN, above: RequestPath = ()
) -> Iterator[tuple[RequestPath, Request]]:
    for call in (*requests.approvals, *requests.calls):
        path = (*above, call.tool_call_id)
        # Early releases have no metadata, and so nothing nested.
        inner = getattr(requests, "metadata", {}).get(call.tool_call_id, {}).get(DELEGATED_KEY)
        if inner is not None:
            yield from _walk_requests(REQUESTS_ADAPTER.validate_python(inner["requests"]), specs, inner["agent"], path)
            continue
        spec = specs.get((agent, call.tool_name))
        yield (
            path,
            Request(
                id="/".join(path),
                call_id=call.tool_call_id,
                tool=spec.name if spec else call.tool_name,
                arguments=read_arguments(call),
                kind=spec.kind if spec else "function",
                server=spec.server if spec else None,
                agent=agent,
                handle=call,
            ),
        )


# --- decisions --------------------------------------------------------------------------------------------------------


def write_decisions(
    decisions: Sequence[Decision],
    requests: DeferredToolRequests | None,
    *,
    aside: DeferredToolResults | None = None,
    raw_in: str = "approvals",
) -> DeferredToolResults | None:
    """Return *decisions* as one `DeferredToolResults`; None if there are none at all.

    A verdict goes under the id of its request, an address verbatim in the place of one.

    Args:
        decisions: The caller's decisions.
        requests: The open requests, needed to find the path to a nested one.
        aside: Staged results, to which the decisions are added.
        raw_in: The field that takes raw verdicts: `approvals`, or `calls`, which is meant for the results of calls that
            run elsewhere.
    """
    if not decisions:
        return aside
    results = deepcopy(aside) if aside else DeferredToolResults()
    paths = {request.id: path for path, request in _walk_requests(requests, {})} if requests else {}
    external = list_external(requests)
    for decision in decisions:
        key = decision.request.id if decision.request else decision.address
        place = raw_in if decision.verdict == "raw" else "approvals"
        if key in external:
            place = "calls"
        # An unknown id goes in as it is: the framework judges it.
        _place_verdict(results, requests, paths.get(key, (key,)), _VERDICT_WRITERS[decision.verdict](decision), place)
    return results


def _place_verdict(
    results: DeferredToolResults, requests: DeferredToolRequests | None, path: RequestPath, verdict: Any, place: str
) -> None:
    outer, *rest = path
    if not rest or requests is None:
        getattr(results, place)[outer] = verdict
        return
    waiting = requests.metadata[outer][DELEGATED_KEY]
    inner = results.metadata.setdefault(outer, {}).setdefault(
        DELEGATED_KEY, {**waiting, "results": DeferredToolResults()}
    )
    inner["results"] = read_inner_results(inner)
    # Approving the outer call only lets its tool resume the inner agent; the verdict is for that one.
    results.approvals[outer] = True
    _place_verdict(inner["results"], REQUESTS_ADAPTER.validate_python(waiting["requests"]), tuple(rest), verdict, place)


def list_external(requests: DeferredToolRequests | None) -> dict[str, Any]:
    """Return the open calls that the application executes itself, by the ids of their requests."""
    return {} if requests is None else {call.tool_call_id: call for call in requests.calls}


async def execute_outside(
    decision: Decision, requests: DeferredToolRequests | None, world: World, stubs: Collection[str]
) -> Decision:
    """Execute an approved call that the application executes itself, and return the decision with its result.

    Args:
        decision: The decision; for another call it is returned as it is.
        requests: The open requests.
        world: Executes the call: with the stub of the tool, or to the result that the test says for an approval.
        stubs: The names of the tools that have one.
    """
    request = decision.request
    if request is None or request.id not in list_external(requests):
        return decision
    verdict = decision.meant or decision.verdict
    if verdict == "reject":
        return decision if decision.meant else replace(decision, verdict="raw", raw=decision.reason or _REJECTED)
    if decision.meant is None and (verdict != "approve" or request.tool not in stubs):
        raise Unsupported(
            decision.verdict,
            f"the application executes `{request.tool}`; say what it returns: tools={{{request.tool!r}: returns(...)}} "
            "if its body does not run before, or else answers={'approve': lambda decision: ...}",
        )

    async def real() -> Any:
        return decision.raw

    arguments = request.arguments if isinstance(request.arguments, Mapping) else {}
    told = real if decision.meant else None
    result = await world.run(request.tool, arguments, request.call_id, agent=request.agent, real=told)
    return replace(decision, verdict="raw", raw=result)


_REJECTED = "The user rejected this call."


def _to_rejection(decision: Decision) -> Any:
    return False if decision.reason is None else ToolDenied(decision.reason)


def _to_edit(decision: Decision) -> Any:
    if decision.tool is not None:
        raise Unsupported("edit_tool", "`ToolApproved` overrides arguments only")
    return ToolApproved(override_args=dict(decision.arguments or {}))


def _refuse_standing(decision: Decision) -> Any:
    raise Unsupported(decision.verdict, "`DeferredToolResults` answers single calls")


_VERDICT_WRITERS: Mapping[str, Callable[[Decision], Any]] = {
    "approve": lambda decision: True,
    "reject": _to_rejection,
    "edit": _to_edit,
    "always": _refuse_standing,
    "never": _refuse_standing,
    "raw": lambda decision: decision.raw,
}


HAS_REQUESTS_EVENT = hasattr(messages, "DeferredToolRequestsEvent")
"""Whether the stream has an event for requests; before, they were in the result that the last event carries."""

ShownEvents = Iterator[tuple[str, dict[str, Any]]]


def read_event(event: Any, specs: SpecsByName, *, answers: bool = False) -> ShownEvents:
    """Yield what one event shows, as arguments for `World.shown`.

    A call is shown when the model makes it; the event that announces its execution comes again after an approval, and
    shows nothing new.

    Args:
        event: An event of the framework.
        specs: The tools.
        answers: Whether the script writes structured answers as calls, as it does for a user's own agent.
    """
    match event.event_kind:
        case "part_start":
            if answers or getattr(event.part, "tool_name", None) != ANSWER_TOOL:
                yield from _read_part(event.part, specs)
        case "part_delta":
            if event.delta.part_delta_kind == "text":
                yield from _read_text_part(event.delta.content_delta)
        case "function_tool_result":
            yield from _read_result(event.part if hasattr(event, "part") else event.result)
        case "deferred_tool_requests":
            yield from _read_shown_requests(event.requests, specs)
        case "agent_run_result":
            if not HAS_REQUESTS_EVENT:
                yield from _read_shown_requests(event.result.output, specs)
            yield "end", {}


def _read_shown_requests(output: Any, specs: SpecsByName) -> ShownEvents:
    if isinstance(output, DeferredToolRequests):
        yield from (("request", {"id": request.id}) for request in read_requests(output, specs))


def _read_part(part: Any, specs: SpecsByName) -> ShownEvents:
    if part.part_kind == "text":
        yield from _read_text_part(part.content)
    elif part.part_kind == "tool-call":
        spec = specs.get((MAIN, part.tool_name))
        yield "call", {"id": part.tool_call_id, "tool": spec.name if spec else part.tool_name}


def _read_text_part(text: str) -> ShownEvents:
    if text:
        yield "text", {"text": text}


def _read_result(part: Any) -> ShownEvents:
    text = part.model_response_str() if hasattr(part, "model_response_str") else part.model_response()
    yield "result", {"id": part.tool_call_id, "text": text}


def read_output(result: Any) -> Any:
    """Return the output as JSON data."""
    return result.output if isinstance(result.output, str) else to_jsonable_python(result.output, fallback=repr)


def read_text(result: Any) -> str | None:
    """Return the text next to the calls for which the run pauses, from the last response."""
    last = next(message for message in reversed(result.all_messages()) if message.kind == "response")
    texts = [part.content for part in last.parts if part.part_kind == "text"]
    return "\n\n".join(texts) or None
