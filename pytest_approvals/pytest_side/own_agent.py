"""Which framework a person's own agent is of."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pytest_approvals.agent_side.contract import Agent
from pytest_approvals.agents import AgentSpec, LocalAgent, adapter_names, flavours, runnable
from pytest_approvals.errors import UsageError


def local_agent_for(subject: object, named: str | None = None) -> LocalAgent:
    """
    Gives the agent that drives *subject*: the one that is *named*, the one whose framework it is an object of, or, for
    a factory, the one whose framework is imported.

    Errors:
        UsageError: Several would do, or none.
    """
    if named is not None:
        return runnable(AgentSpec.parse(named))
    owners = [name for name, adapter in _of_frameworks() if adapter.owns(subject)]
    if len(owners) == 1:
        return runnable(AgentSpec(name=owners[0]))
    if not callable(subject):
        raise UsageError(f"{_described(subject)} is no agent of a known framework, and no factory of one")
    imported = [name for name, adapter in _of_frameworks() if _is_imported(adapter)]
    if len(imported) != 1:
        raise UsageError(_which(subject, imported))
    return runnable(AgentSpec(name=imported[0]))


def _of_frameworks() -> Iterator[tuple[str, type[Agent]]]:
    for name in adapter_names():
        adapter = flavours(name)[""]
        if adapter.packages:
            yield name, adapter


def _is_imported(adapter: type[Agent]) -> bool:
    return any(package in sys.modules for package in adapter.packages)


def _which(subject: object, imported: list[str]) -> str:
    if imported:
        return f"{_described(subject)} may make an agent of {' or '.join(imported)}; say which: agent={imported[0]!r}"
    known = ", ".join(name for name, _ in _of_frameworks())
    return f"no framework of the agents {known} is imported; say which one {_described(subject)} makes: agent=..."


def _described(subject: object) -> str:
    return str(
        getattr(subject, "__qualname__", None)
        or f"an object of {type(subject).__module__}.{type(subject).__qualname__}"
    )
