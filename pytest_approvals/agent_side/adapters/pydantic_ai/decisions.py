"""
Requests as the caller is shown them, and decisions as the framework takes them.

Inside, a request is found by its path: the id of its call, below the ids of the calls that run the agents around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from pydantic_ai import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied

from pytest_approvals.agent_side.contract import MAIN, Decision, Request, Unsupported

from .messages import arguments
from .naming import Specs
from .nested import KEY, answers
from .state import REQUESTS

Path = tuple[str, ...]


def open_requests(requests: DeferredToolRequests | None, specs: Specs) -> tuple[Request, ...]:
    """Gives what a person is shown; a call that waits for the agent it runs is shown as what that agent waits for."""
    return tuple(request for _, request in _walk(requests, specs)) if requests else ()


def _walk(
    requests: DeferredToolRequests, specs: Specs, agent: str = MAIN, above: Path = ()
) -> Iterator[tuple[Path, Request]]:
    for call in requests.approvals:
        path = (*above, call.tool_call_id)
        # Early releases have no metadata, and so nothing nested.
        inner = getattr(requests, "metadata", {}).get(call.tool_call_id, {}).get(KEY)
        if inner is not None:
            yield from _walk(REQUESTS.validate_python(inner["requests"]), specs, inner["agent"], path)
            continue
        spec = specs.get((agent, call.tool_name))
        yield (
            path,
            Request(
                id="/".join(path),
                call_id=call.tool_call_id,
                tool=spec.name if spec else call.tool_name,
                arguments=arguments(call),
                kind=spec.kind if spec else "function",
                server=spec.server if spec else None,
                agent=agent,
                handle=call,
            ),
        )


# --- decisions --------------------------------------------------------------------------------------------------------


def results(
    decisions: Sequence[Decision],
    requests: DeferredToolRequests | None,
    *,
    aside: DeferredToolResults | None = None,
    raw_in: str = "approvals",
) -> DeferredToolResults | None:
    """
    Gives *decisions* as one `DeferredToolResults`, on top of those put *aside*; None where there are none at all.

    A verdict goes under the id of its request, an address verbatim in the place of one. *requests* are looked up only
    to find the way to a nested request.

    Arguments:
        raw_in: The field that takes raw verdicts: `approvals`, or `calls`, which is meant for the results of calls that
            run elsewhere.
    """
    if not decisions:
        return aside
    given = deepcopy(aside) if aside else DeferredToolResults()
    paths = {request.id: path for path, request in _walk(requests, {})} if requests else {}
    for decision in decisions:
        key = decision.request.id if decision.request else decision.address
        place = raw_in if decision.verdict == "raw" else "approvals"
        _place(given, requests, paths.get(key, (key,)), _VERDICTS[decision.verdict](decision), place)
    return given


def _place(
    given: DeferredToolResults, requests: DeferredToolRequests | None, path: Path, verdict: Any, place: str
) -> None:
    outer, *rest = path
    if not rest or requests is None:
        getattr(given, place)[outer] = verdict
        return
    waiting = requests.metadata[outer][KEY]
    inner = given.metadata.setdefault(outer, {}).setdefault(KEY, {**waiting, "results": DeferredToolResults()})
    inner["results"] = answers(inner)
    given.approvals[outer] = True
    _place(inner["results"], REQUESTS.validate_python(waiting["requests"]), tuple(rest), verdict, place)


def _reject(decision: Decision) -> Any:
    return False if decision.reason is None else ToolDenied(decision.reason)


def _edit(decision: Decision) -> Any:
    if decision.tool is not None:
        raise Unsupported("edit_tool", "`ToolApproved` overrides arguments only")
    return ToolApproved(override_args=dict(decision.arguments or {}))


def _standing(decision: Decision) -> Any:
    raise Unsupported(decision.verdict, "`DeferredToolResults` answers single calls")


_VERDICTS: Mapping[str, Callable[[Decision], Any]] = {
    "approve": lambda decision: True,
    "reject": _reject,
    "edit": _edit,
    "always": _standing,
    "never": _standing,
    "raw": lambda decision: decision.raw,
}
