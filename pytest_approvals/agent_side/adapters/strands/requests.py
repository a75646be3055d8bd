"""Interrupts as approval requests, and decisions as responses that gates read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...contract import MAIN, Decision, Kind, Request, ToolSpec, Unsupported
from .messages import sent_arguments

# The text is all that the SDK gives: it has no field for the tool or the arguments.
_PROMPT = re.compile(r'Approve "(?P<tool>.*?)".*?\n  Input: (?P<input>.*)', re.DOTALL)
"""Question of `HumanInTheLoop`."""


def build_question(spec: ToolSpec, use: Mapping[str, Any]) -> dict[str, Any]:
    """Build the question about one call: the reason of an interrupt."""
    server = {} if spec.server is None else {"server": spec.server}
    return {
        "agent": spec.agent,
        "call": use["toolUseId"],
        "tool": use["name"],
        "input": _copy_json(use["input"]),
    } | server


def _copy_json(input: Any) -> Any:
    return json.loads(json.dumps(input))


def read_requests(
    interrupts: Iterable[Any], specs: Sequence[ToolSpec], calls: Mapping[str, Mapping[str, Any]]
) -> tuple[Request, ...]:
    """Return the approval requests that *interrupts* show.

    Args:
        interrupts: What the framework shows.
        specs: The tools, one of which a prompt names.
        calls: The interrupted calls by id, for the user's own gates whose reasons do not name the call.

    Raises:
        Unsupported: An interrupt of the user's own gate is not about a call.
    """
    return tuple(request for interrupt in interrupts for request in _read_interrupt(interrupt, specs, calls))


_BATCH = re.compile(r"v\d+:before_tools:")
"""How the id begins of an interrupt before all calls of a reply."""

SEPARATOR = "/"
"""Separates the id of such an interrupt from that of a call."""


def asks_about_batch(interrupt: Any) -> bool:
    """Return whether an interrupt asks about all calls of a reply at once."""
    return _BATCH.match(interrupt.id) is not None


def _read_interrupt(
    interrupt: Any, specs: Sequence[ToolSpec], calls: Mapping[str, Mapping[str, Any]]
) -> Iterator[Request]:
    if not asks_about_batch(interrupt):
        yield _read_request(interrupt, specs, calls)
        return
    for call_id, call in calls.items():
        request = _read_reason(interrupt, {"call": call_id, "tool": call["name"], "input": call["input"]})
        yield replace(request, id=f"{interrupt.id}{SEPARATOR}{call_id}")


def _read_request(interrupt: Any, specs: Sequence[ToolSpec], calls: Mapping[str, Mapping[str, Any]]) -> Request:
    reason = interrupt.reason
    if isinstance(reason, Mapping) and "tool" in reason and "input" in reason:
        return _read_reason(interrupt, reason)
    prompt = _PROMPT.match(reason) if isinstance(reason, str) else None
    if prompt is not None:
        return _read_prompt(interrupt, prompt["tool"], json.loads(prompt["input"]), specs)
    # The framework makes the id of an interrupt from that of the call, between colons.
    call = next((call for call_id, call in calls.items() if f":{call_id}:" in interrupt.id), None)
    if call is None:
        raise Unsupported("attach", f"the interrupt {interrupt.id!r} is not about a call")
    return _read_reason(interrupt, {"call": call["toolUseId"], "tool": call["name"], "input": call["input"]})


def _read_prompt(interrupt: Any, tool: str, input: Any, specs: Sequence[ToolSpec]) -> Request:
    """Return a request that shows tool and arguments, but neither agent nor call id."""
    server = next((spec.server for spec in specs if spec.name == tool), None)
    kind: Kind = "mcp" if server else "function"
    return Request(
        id=interrupt.id,
        call_id=None,
        tool=tool,
        arguments=sent_arguments(input),
        kind=kind,
        server=server,
        handle=interrupt,
    )


def _read_reason(interrupt: Any, reason: Mapping[str, Any]) -> Request:
    kind: Kind = "mcp" if reason.get("server") else "function"
    return Request(
        id=interrupt.id,
        call_id=reason.get("call"),
        tool=reason["tool"],
        arguments=sent_arguments(reason["input"]),
        kind=kind,
        server=reason.get("server"),
        agent=reason.get("agent", MAIN),
        handle=interrupt,
    )


DecisionWriter = Callable[[Decision], Any]
"""Returns the response for a decision."""

DENIAL = "User denied permission to run this tool"


def write_decisions(decisions: Sequence[Decision], write: DecisionWriter) -> list[dict[str, Any]]:
    """Return the prompt that resumes an agent with *decisions*.

    Raises:
        Unsupported: The calls of one interrupt are decided on differently.
    """
    batches: dict[str, Any] = {}
    responses = []
    for decision in decisions:
        interrupt_id, response = _interrupt_id(decision), write(decision)
        if isinstance(interrupt_id, str) and _BATCH.match(interrupt_id):
            interrupt_id = interrupt_id.partition(SEPARATOR)[0]
            if interrupt_id in batches and batches[interrupt_id] != response:
                raise Unsupported("parallel", "one interrupt asks about all calls of a reply; decide on them alike")
            if interrupt_id in batches:
                continue
            batches[interrupt_id] = response
        responses.append({"interruptResponse": {"interruptId": interrupt_id, "response": response}})
    return responses


def _interrupt_id(decision: Decision) -> Any:
    return decision.address if decision.request is None else decision.request.id


# --- the gate of this adapter -----------------------------------------------------------------------------------------


def write_detailed(decision: Decision) -> Any:
    """Return the guide's answer with details: a reason, other arguments, another tool."""
    return _DETAILED_WRITERS[decision.verdict](decision)


def _write_edit(decision: Decision) -> dict[str, Any]:
    tool = {} if decision.tool is None else {"tool": decision.tool}
    return {"answer": "y", "input": dict(decision.arguments or {}), **tool}


def _write_rejection(decision: Decision) -> Any:
    """Return a rejection; without a reason it is False.

    A response is any JSON value, so values that are false in Python must work, too.
    """
    return False if decision.reason is None else {"answer": "n", "reason": decision.reason}


_DETAILED_WRITERS: Mapping[str, Callable[[Decision], Any]] = {
    "approve": lambda decision: {"answer": "y"},
    "always": lambda decision: {"answer": "t"},
    "reject": _write_rejection,
    "edit": _write_edit,
    "raw": lambda decision: decision.raw,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAnswer:
    """A response that a gate has read.

    Attributes:
        refusal: The result that the model gets if the call must not run.
        trusted: Further calls of the tool may run, too.
        input: Edited arguments.
        tool: Another tool for the call.
    """

    refusal: str | None = None
    trusted: bool = False
    input: Mapping[str, Any] | None = None
    tool: str | None = None


def read_answer(response: Any) -> GateAnswer:
    """Read a response.

    Raises:
        ValueError: The response means nothing to a gate.
    """
    answer = response if isinstance(response, Mapping) else {"answer": response}
    if response is False or answer.get("answer") == "n":
        return GateAnswer(refusal=answer.get("reason") or DENIAL)
    if answer.get("answer") in ("y", "t"):
        return GateAnswer(trusted=answer["answer"] == "t", input=answer.get("input"), tool=answer.get("tool"))
    raise ValueError(f"{response!r} is no answer to a question for approval")


# --- plain words ------------------------------------------------------------------------------------------------------


def write_word(decision: Decision) -> Any:
    """Return the answer of the guide and of `HumanInTheLoop`, a single letter.

    Raises:
        Unsupported: The decision is an edit, for which they have no letter.
    """
    if decision.verdict == "edit":
        raise Unsupported("edit", "its answers are `y`, `n` and `t`; `answers=` says what your gate takes for an edit")
    return decision.raw if decision.verdict == "raw" else _WORDS[decision.verdict]


_WORDS: Mapping[str, str] = {"approve": "y", "always": "t", "reject": "n"}
