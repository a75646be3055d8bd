from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.agent_side.adapters.openai_agents import OpenAIAgents
from pytest_approvals.agent_side.contract import Attachment, Blueprint, Reply, ToolSpec
from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.runner.model_endpoint import ModelEndpoint
from pytest_approvals.testing import AdapterSession, FakeWorld, tool

PAY = tool("pay", "always", amount="integer")
LOOK = tool("look", what="string")


class NotingWorld(FakeWorld):
    """A world that notes which agent asks."""

    askers: tuple[str, ...] = ()

    async def model(self, items: Any, *, agent: str = "main", stream: bool = False, tools: Any = ()) -> Reply:
        self.askers = (*self.askers, agent)
        return await super().model(items, agent=agent, stream=stream, tools=tools)


Served = Callable[[type[Agent]], ModelEndpoint | None]


@pytest.fixture
def served() -> Iterator[Served]:
    """Serves the model of an adapter that always reaches it over a protocol."""
    with ExitStack() as stack:
        yield lambda adapter: stack.enter_context(closing(ModelEndpoint(adapter.native))) if adapter.native else None


@pytest.fixture
def begin(tmp_path: Path, served: Served) -> Iterator[Callable[..., AdapterSession]]:
    """Begins a session on a world of its own; all sessions are closed at the end."""
    begun: list[AdapterSession] = []

    def story(
        *replies: Reply | Exception,
        tools: Sequence[ToolSpec] = (PAY, LOOK),
        adapter: type[Agent] = OpenAIAgents,
        results: dict[str, Any] | None = None,
        **more: Any,
    ) -> AdapterSession:
        blueprint = Blueprint(tools=tuple(tools), directory=str(tmp_path), **more)
        begun.append(AdapterSession(adapter, blueprint, NotingWorld(replies, tools, results), served(adapter)))
        return begun[-1]

    yield story
    for one in begun:
        one.end()


class AttachedWorld(FakeWorld):
    """A world that runs the bodies of a user's own tools."""

    def __init__(self, *replies: Reply | Exception, results: dict[str, Any] | None = None) -> None:
        super().__init__(replies, (), results)
        self.real: list[str] = []
        self.askers: list[str] = []

    async def model(self, items: Any, *, agent: str = "main", stream: bool = False, tools: Any = ()) -> Reply:
        self.askers.append(agent)
        return await super().model(items, agent=agent, stream=stream, tools=tools)

    async def run(self, tool: str, arguments: Any, call_id: Any, *, agent: str = "main", real: Any = None) -> Any:
        self.ran.append((tool, dict(arguments)))
        if real is None:
            return self.results[tool]
        self.real.append(tool)
        return await real()


@pytest.fixture
def attach(served: Served) -> Iterator[Callable[..., AdapterSession]]:
    """Attaches a person's agent, or factory of one, to a world of its own."""
    begun: list[AdapterSession] = []

    def story(
        subject: Any,
        *replies: Reply | Exception,
        adapter: type[Agent] = OpenAIAgents,
        results: dict[str, Any] | None = None,
        **more: Any,
    ) -> AdapterSession:
        attachment = Attachment(subject=subject, stubs=frozenset(results or ()), **more)
        world = AttachedWorld(*replies, results=results)
        begun.append(AdapterSession(adapter, Blueprint(attachment=attachment), world, served(adapter)))
        return begun[-1]

    yield story
    for one in begun:
        one.end()
