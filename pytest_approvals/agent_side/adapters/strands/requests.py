"""Interrupts as approval requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ...contract import MAIN, Kind, Request, ToolSpec, Unsupported

_PROMPT = re.compile(r'Approve "(?P<tool>.*?)".*?\n  Input: (?P<input>.*)', re.DOTALL)
"""The question of `HumanInTheLoop`."""


def question(spec: ToolSpec, use: Mapping[str, Any]) -> dict[str, Any]:
    """Gives what a person is asked about one call: the reason of an interrupt."""
    server = {} if spec.server is None else {"server": spec.server}
    return {"agent": spec.agent, "call": use["toolUseId"], "tool": use["name"], "input": _copied(use["input"])} | server


def _copied(input: Any) -> Any:
    return json.loads(json.dumps(input))


def requests_of(interrupts: Iterable[Any]) -> tuple[Request, ...]:
    """
    Gives what a person is shown.

    Errors:
        Unsupported: An interrupt of a person's own gate does not say which call it is about.
    """
    return tuple(_request(interrupt) for interrupt in interrupts)


def _request(interrupt: Any) -> Request:
    reason = interrupt.reason
    if isinstance(reason, Mapping) and "tool" in reason and "input" in reason:
        return _told(interrupt, reason)
    prompt = _PROMPT.match(reason) if isinstance(reason, str) else None
    if prompt is not None:
        # The prompt shows tool and arguments, and neither who asks nor the id of the call.
        return Request(
            id=interrupt.id, call_id=None, tool=prompt["tool"], arguments=json.loads(prompt["input"]), handle=interrupt
        )
    raise Unsupported("attach", f"an interrupt whose reason is {reason!r} does not say which call it is about")


def _told(interrupt: Any, reason: Mapping[str, Any]) -> Request:
    kind: Kind = "mcp" if reason.get("server") else "function"
    return Request(
        id=interrupt.id,
        call_id=reason.get("call"),
        tool=reason["tool"],
        arguments=reason["input"],
        kind=kind,
        server=reason.get("server"),
        agent=reason.get("agent", MAIN),
        handle=interrupt,
    )
