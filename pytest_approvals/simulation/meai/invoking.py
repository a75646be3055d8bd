"""
The tools that a client has, and how it runs calls of them, one after the other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .behaviours import Behaviour
from .contents import FunctionCall, FunctionResult, Message
from .failures import ToolError

MOST_ERRORS_IN_A_ROW = 3
"""How many rounds with a failed tool a request forgives."""

MOST_ITERATIONS = 40
"""How often a request calls the model before it stops running tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """
    A tool.

    Attributes:
        run: What it does; None for one that is only declared, and that the caller runs.
        gated: Its calls need approval.
        additional: It is the client's own, not one of those that the caller brings along.
        terminates: Once it has run, the client stops.
    """

    name: str
    run: Callable[[FunctionCall], Awaitable[Any]] | None = None
    gated: bool = False
    additional: bool = False
    terminates: bool = False


@dataclass(frozen=True, slots=True)
class Toolbox:
    """All tools of one request."""

    tools: tuple[Tool, ...]
    behaviour: Behaviour

    def find(self, name: str) -> Tool | None:
        """Gives the tool with that name; which one, where two have it, depends on the release."""
        own_first = sorted(self.tools, key=lambda tool: tool.additional)
        if self.behaviour.later_tools_win:
            own_first = [*sorted(self.tools, key=lambda tool: not tool.additional)][::-1]
        return next((tool for tool in own_first if tool.name == name), None)

    def is_gated(self, name: str) -> bool:
        """Says whether the tool with that name is gated."""
        tool = self.find(name)
        return tool is not None and tool.gated

    def any_gated(self, name: str | None = None) -> bool:
        """Says whether any tool, or any with that name, is gated."""
        return any(tool.gated for tool in self.tools if name is None or tool.name == name)

    def is_only_declared(self, name: str) -> bool:
        """Says whether the caller has to run the tool with that name."""
        tool = self.find(name)
        return tool is not None and tool.run is None


@dataclass(slots=True)
class Invoking:
    """
    Runs calls for one request, and counts how often in a row that failed.

    Attributes:
        stopped: A tool asked to stop.
    """

    toolbox: Toolbox
    errors_in_a_row: int = 0
    stopped: bool = False

    async def run(self, calls: Sequence[FunctionCall]) -> Message:
        """
        Runs the calls until one asks to stop, flags those that were run, and gives the message with their results.

        Errors:
            ToolError: Tools have failed too often in a row.
        """
        results: list[FunctionResult] = []
        failed: list[tuple[str, str, str]] = []
        for call in calls:
            results.append(await self._run_one(call, failed))
            if self.stopped:
                break
        self._count(failed)
        return Message(role="tool", contents=tuple(results))

    async def _run_one(self, call: FunctionCall, failed: list[tuple[str, str, str]]) -> FunctionResult:
        if self.toolbox.behaviour.has_flags:
            call.settle()
        tool = self.toolbox.find(call.name)
        if tool is None or tool.run is None:
            return _told(call, f'Error: Requested function "{call.name}" not found.')
        try:
            result = await tool.run(call)
        except Exception as error:
            failed.append((call.name, call.call_id, str(error)))
            if self.errors_in_a_row >= MOST_ERRORS_IN_A_ROW:
                raise ToolError(failed[-1:]) from error
            return _told(call, "Error: Function failed.")
        self.stopped = tool.terminates
        return _told(call, "Success: Function completed." if result is None else result)

    def _count(self, failed: Iterable[tuple[str, str, str]]) -> None:
        self.errors_in_a_row = self.errors_in_a_row + 1 if list(failed) else 0


def _told(call: FunctionCall, result: Any) -> FunctionResult:
    return FunctionResult(call_id=call.call_id, result=result)
