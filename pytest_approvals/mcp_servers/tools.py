"""The tools that a server offers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_approvals.agent_side.neutral import Parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedTool:
    """
    One tool of a server.

    Attributes:
        run: Runs a call, given its arguments; what it raises, the client is told as a failure of the tool. It is
            awaited in the event loop of the servers' thread.
    """

    name: str
    run: Callable[[Mapping[str, Any]], Awaitable[Any]]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    description: str = ""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        return {
            "type": "object",
            "properties": {name: _property(one) for name, one in self.parameters.items()},
            "required": [name for name, one in self.parameters.items() if one.required],
        }


def _property(parameter: Parameter) -> dict[str, Any]:
    if parameter.required:
        return {"type": parameter.type}
    return {"type": parameter.type, "default": parameter.default}
