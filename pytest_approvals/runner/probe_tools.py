"""Signals: how a scenario schedules what happens at the same time, without sleeping.

Probe tools: what the scenario's tools do when they are run.
"""

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
    """
    The signals of one run.

    A signal, once given, stays given. `started LABEL` and `ended LABEL` are given by the harness as calls run; all
    other names are given by the caller's script.
    """

    def __init__(self) -> None:
        self._given: dict[str, asyncio.Event] = {}

    def give(self, name: str) -> None:
        """Gives a signal; whoever waits for it goes on."""
        self._event(name).set()

    async def wait(self, name: str) -> None:
        """Waits until the signal is given; at once if it was."""
        event = self._event(name)
        if not event.is_set():
            self._held.set()
            await event.wait()

    async def something_is_held(self) -> None:
        """Waits until, from now on, somebody begins to wait for a signal that was not given."""
        self._held.clear()
        await self._held.wait()

    @cached_property
    def _held(self) -> asyncio.Event:
        return _create_event()

    def _event(self, name: str) -> asyncio.Event:
        if name not in self._given:
            self._given[name] = _create_event()
        return self._given[name]


def _create_event() -> asyncio.Event:
    """Imports asyncio where a signal is used at all: the loopback server is to answer before that would be done."""
    from asyncio import Event

    return Event()


class ProbeTools:
    """The scenario's tools, as scripts and as agents name them."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._all = tuple(tools)

    def named(self, agent: str, name: str) -> Tool | None:
        """Gives the tool that an agent's script calls by this name."""
        owner, short = split_owner(agent, name)
        return next((tool for tool in self._all if tool.agent == owner and tool.name == short), None)

    def seen(self, agent: str, name: str) -> Tool | None:
        """Gives the tool that an agent calls by this name; an agent that nobody knows may be any."""
        called = [tool for tool in self._all if tool.visible_name == name]
        return next((tool for tool in called if tool.agent == agent), called[0] if called else None)


def select_behaviour(tool: Tool, label: str | None, executed_before: int) -> ToolBehaviour:
    """Gives what this execution of a call does: the k-th execution the k-th behaviour, the last one for ever."""
    _, _, own = (label or "").rpartition("/")
    several = tool.per_call.get(label or "") or tool.per_call.get(own) or tool.behaviours
    return several[min(executed_before, len(several) - 1)]


async def execute_behaviour(behaviour: ToolBehaviour, arguments: Mapping[str, Any], signals: Signals) -> Any:
    """
    Does what the scenario says.

    Errors:
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
    """
    Gives what a tool returns, with its arguments filled into the text.

    >>> filled("deleted {path}", {"path": "a.txt"})
    'deleted a.txt'
    """
    if isinstance(returns, str):
        for name, value in arguments.items():
            returns = returns.replace(f"{{{name}}}", str(value))
        return returns
    if isinstance(returns, Mapping):
        return {key: format_result(value, arguments) for key, value in returns.items()}
    return [format_result(value, arguments) for value in returns] if isinstance(returns, list) else returns
