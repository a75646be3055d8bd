"""Detection of the framework of a user's agent."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from types import ModuleType

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agents.adapters import LocalAgent, list_adapter_names, load_flavours, resolve_local_agent
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import UsageError


def resolve_user_agent(subject: object, named: str | None = None) -> LocalAgent:
    """Return the agent that drives *subject*.

    That is the agent that is *named*, or the one whose framework *subject* is an object of. For a factory it is the one
    whose framework the factory's module uses, or else the one that is imported at all.

    Raises:
        UsageError: Several agents fit, or none.
    """
    if named is not None:
        return resolve_local_agent(AgentSpec.parse(named))
    owners = [name for name, adapter in _framework_adapters() if adapter.owns(subject)]
    if len(owners) == 1:
        return resolve_local_agent(AgentSpec(name=owners[0]))
    if not callable(subject):
        raise UsageError(f"{_describe_subject(subject)} is neither an agent of a known framework nor a factory of one")
    used = [name for name, adapter in _framework_adapters() if _is_used_by(subject, adapter)]
    candidates = used or [name for name, adapter in _framework_adapters() if _is_imported(adapter)]
    if len(candidates) != 1:
        raise UsageError(_ambiguity_message(subject, candidates))
    return resolve_local_agent(AgentSpec(name=candidates[0]))


def _framework_adapters() -> Iterator[tuple[str, type[Agent]]]:
    for name in list_adapter_names():
        adapter = load_flavours(name)[""]
        if adapter.packages:
            yield name, adapter


def _is_imported(adapter: type[Agent]) -> bool:
    return any(package in sys.modules for package in adapter.packages)


def _is_used_by(factory: object, adapter: type[Agent]) -> bool:
    """Return whether the module of a factory has an object of the framework among its names."""
    while isinstance(factory, partial):
        factory = factory.func
    names = getattr(sys.modules.get(getattr(factory, "__module__", None) or ""), "__dict__", {})
    return any(_package_of(value) in adapter.packages for value in list(names.values()))


def _package_of(value: object) -> str:
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else ""


def _ambiguity_message(subject: object, found: list[str]) -> str:
    if found:
        return f"{_describe_subject(subject)} may make an agent of {' or '.join(found)}; say which: agent={found[0]!r}"
    known = ", ".join(name for name, _ in _framework_adapters())
    return (
        f"no framework of the agents {known} is imported; say which one {_describe_subject(subject)} makes: agent=..."
    )


def _describe_subject(subject: object) -> str:
    return str(
        getattr(subject, "__qualname__", None)
        or f"an object of {type(subject).__module__}.{type(subject).__qualname__}"
    )
