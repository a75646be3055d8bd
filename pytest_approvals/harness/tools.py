"""Probe tools: what the scenario's tools do when they are run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pytest_approvals.agent_side.failures import AsksAgain, ToolRaised
from pytest_approvals.scenario.labels import owned
from pytest_approvals.scenario.parts import Behaviour, Tool

from .signals import Signals


class ProbeTools:
    """The scenario's tools, as scripts and as agents name them."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._all = tuple(tools)

    def named(self, agent: str, name: str) -> Tool | None:
        """Gives the tool that an agent's script calls by this name."""
        owner, short = owned(agent, name)
        return next((tool for tool in self._all if tool.agent == owner and tool.name == short), None)

    def seen(self, agent: str, name: str) -> Tool | None:
        """Gives the tool that an agent calls by this name; an agent that nobody knows may be any."""
        called = [tool for tool in self._all if tool.visible_name == name]
        return next((tool for tool in called if tool.agent == agent), called[0] if called else None)


def behaviour_of(tool: Tool, label: str | None, executed_before: int) -> Behaviour:
    """Gives what this execution of a call does: the k-th execution the k-th behaviour, the last one for ever."""
    _, _, own = (label or "").rpartition("/")
    several = tool.per_call.get(label or "") or tool.per_call.get(own) or tool.behaviours
    return several[min(executed_before, len(several) - 1)]


async def behave(behaviour: Behaviour, arguments: Mapping[str, Any], signals: Signals) -> Any:
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
    return filled(behaviour.returns, arguments)


def filled(returns: Any, arguments: Mapping[str, Any]) -> Any:
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
        return {key: filled(value, arguments) for key, value in returns.items()}
    return [filled(value, arguments) for value in returns] if isinstance(returns, list) else returns
