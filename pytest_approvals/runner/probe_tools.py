"""Probe tools, which do what the scenario says, and the signals that they wait for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.contract.exceptions import AsksAgain, ToolRaised
from pytest_approvals.scenario.labels import split_owner
from pytest_approvals.scenario.model import Tool, ToolBehaviour

if TYPE_CHECKING:
    import asyncio


class Signals:
    """The signals of one run, which schedule what happens at the same time.

    A signal, once sent, stays sent. The harness sends `started LABEL` and `ended LABEL` as calls are executed; the
    caller's script sends all others.
    """

    def __init__(self) -> None:
        self._events: dict[str, asyncio.Event] = {}
        self._waiting: list[str] = []

    def send(self, name: str) -> None:
        """Send a signal; all that wait for it continue."""
        self._get_event(name).set()

    async def wait(self, name: str) -> None:
        """Wait until the signal is sent; return at once if it was."""
        event = self._get_event(name)
        if not event.is_set():
            self.note_waiter()
            self._waiting.append(name)
            try:
                await event.wait()
            finally:
                self._waiting.remove(name)

    def list_waited_for(self) -> tuple[str, ...]:
        """Return the signals for which something waits now."""
        return tuple(self._waiting)

    def note_waiter(self) -> None:
        """Note that something begins to wait."""
        self._wait_began.set()

    async def wait_for_waiter(self) -> None:
        """Wait until, from now on, something begins to wait: for a signal that was not sent, or to be woken."""
        self._wait_began.clear()
        await self._wait_began.wait()

    @cached_property
    def _wait_began(self) -> asyncio.Event:
        return _create_event()

    def _get_event(self, name: str) -> asyncio.Event:
        if name not in self._events:
            self._events[name] = _create_event()
        return self._events[name]


def _create_event() -> asyncio.Event:
    # Importing asyncio takes longer than the model server's first answer may.
    from asyncio import Event

    return Event()


class ProbeTools:
    """The scenario's tools, as scripts and as agents name them."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = tuple(tools)

    def find_scripted(self, agent: str, name: str) -> Tool | None:
        """Return the tool that an agent's script calls by this name."""
        owner, short = split_owner(agent, name)
        return next((tool for tool in self._tools if tool.agent == owner and tool.name == short), None)

    def find_visible(self, agent: str, name: str) -> Tool | None:
        """Return the tool that an agent calls by this name, its own one before that of any other agent."""
        visible = [tool for tool in self._tools if tool.visible_name == name]
        return next((tool for tool in visible if tool.agent == agent), visible[0] if visible else None)


async def execute_behaviour(behaviour: ToolBehaviour, arguments: Mapping[str, Any], signals: Signals) -> Any:
    """Execute a tool as the scenario says.

    Raises:
        AsksAgain: The tool wants a second approval.
        ToolRaised: The tool fails.
    """
    if behaviour.waits_for is not None:
        await signals.wait(behaviour.waits_for)
    if behaviour.asks_again is not None:
        raise AsksAgain(behaviour.asks_again)
    if behaviour.raises is not None:
        raise ToolRaised(behaviour.raises)
    return format_result(behaviour.returns, arguments)


def format_result(returns: Any, arguments: Mapping[str, Any]) -> Any:
    """Return what a tool returns, with its arguments filled into the text.

    >>> format_result("deleted {path}", {"path": "a.txt"})
    'deleted a.txt'
    """
    if isinstance(returns, str):
        for name, value in arguments.items():
            returns = returns.replace(f"{{{name}}}", str(value))
        return returns
    if isinstance(returns, Mapping):
        return {key: format_result(value, arguments) for key, value in returns.items()}
    return [format_result(value, arguments) for value in returns] if isinstance(returns, list) else returns
