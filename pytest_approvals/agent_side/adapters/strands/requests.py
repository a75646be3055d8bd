"""Interrupts as approval requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...contract import MAIN, Kind, Request, ToolSpec, Unsupported
from .messages import as_sent

_PROMPT = re.compile(r'Approve "(?P<tool>.*?)".*?\n  Input: (?P<input>.*)', re.DOTALL)
"""The question of `HumanInTheLoop`."""


def question(spec: ToolSpec, use: Mapping[str, Any]) -> dict[str, Any]:
    """Gives what a person is asked about one call: the reason of an interrupt."""
    server = {} if spec.server is None else {"server": spec.server}
    return {"agent": spec.agent, "call": use["toolUseId"], "tool": use["name"], "input": _copied(use["input"])} | server


def _copied(input: Any) -> Any:
    return json.loads(json.dumps(input))


def requests_of(
    interrupts: Iterable[Any], specs: Sequence[ToolSpec], calls: Mapping[str, Mapping[str, Any]]
) -> tuple[Request, ...]:
    """
    Gives what a person is shown.

    Arguments:
        specs: The tools, one of which a prompt names.
        calls: The calls that the interrupts hold up, by id, for a person's own gate whose reason does not tell it.

    Errors:
        Unsupported: An interrupt of a person's own gate is not about a call.
    """
    return tuple(_request(interrupt, specs, calls) for interrupt in interrupts)


def _request(interrupt: Any, specs: Sequence[ToolSpec], calls: Mapping[str, Mapping[str, Any]]) -> Request:
    reason = interrupt.reason
    if isinstance(reason, Mapping) and "tool" in reason and "input" in reason:
        return _told(interrupt, reason)
    prompt = _PROMPT.match(reason) if isinstance(reason, str) else None
    if prompt is not None:
        return _prompted(interrupt, prompt["tool"], json.loads(prompt["input"]), specs)
    use = next((use for call, use in calls.items() if f":{call}:" in interrupt.id), None)
    if use is None:
        raise Unsupported("attach", f"the interrupt {interrupt.id!r} is not about a call")
    return _told(interrupt, {"call": use["toolUseId"], "tool": use["name"], "input": use["input"]})


def _prompted(interrupt: Any, tool: str, input: Any, specs: Sequence[ToolSpec]) -> Request:
    """Gives a request that shows tool and arguments, and neither who asks nor the id of the call."""
    server = next((spec.server for spec in specs if spec.name == tool), None)
    kind: Kind = "mcp" if server else "function"
    return Request(
        id=interrupt.id, call_id=None, tool=tool, arguments=as_sent(input), kind=kind, server=server, handle=interrupt
    )


def _told(interrupt: Any, reason: Mapping[str, Any]) -> Request:
    kind: Kind = "mcp" if reason.get("server") else "function"
    return Request(
        id=interrupt.id,
        call_id=reason.get("call"),
        tool=reason["tool"],
        arguments=as_sent(reason["input"]),
        kind=kind,
        server=reason.get("server"),
        agent=reason.get("agent", MAIN),
        handle=interrupt,
    )
