"""Session with an agent, step by step, in a test of its adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from pytest_approvals.agent_side.contract import (
    Blueprint,
    Decision,
    ElicitationAnswer,
    Finished,
    ModelAddress,
    Outcome,
    Paused,
    Request,
    ToolSpec,
)
from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.errors import AdapterError
from pytest_approvals.runner.mcp.servers import RunMcpServers
from pytest_approvals.runner.model_endpoint import ModelEndpoint
from pytest_approvals.testing.world import FakeWorld

STEP_TIMEOUT = 20
"""Seconds that a step may take."""


class AdapterSession:
    """One session in one world; every method runs a step to its end.

    Args:
        adapter: The adapter class.
        blueprint: The agent to build.
        world: The world of the session.
        served: The endpoint of its model, for an adapter that always reaches it over a protocol.
    """

    def __init__(
        self, adapter: type[Agent], blueprint: Blueprint, world: FakeWorld, served: ModelEndpoint | None = None
    ) -> None:
        self.adapter = adapter
        self.blueprint = blueprint
        self.world = world
        self.runner = asyncio.Runner()
        self._connected: RunMcpServers | None = None
        self._served = served
        try:
            self.agent = self.runner.run(self._build_agent(world))
        except BaseException:
            self._release()
            raise

    async def _build_agent(self, world: FakeWorld) -> Agent:
        return self.adapter(world, replace(self._connect_servers(world), model=self._open_address(world)))

    def _open_address(self, world: FakeWorld) -> ModelAddress | None:
        if self._served is not None:
            world.place = self._served.open_address(world.asked)
        return world.place

    def _connect_servers(self, world: FakeWorld) -> Blueprint:
        """Return the blueprint with the addresses of its MCP servers, for an adapter that connects to them."""
        if not self.adapter.connects:
            return self.blueprint
        # Created here and not in the constructor, because it belongs to the running event loop.
        self._connected = self._connected or RunMcpServers()

        async def run(spec: ToolSpec, arguments: Mapping[str, Any], elicited: ElicitationAnswer | None = None) -> Any:
            return await world.run(spec.name, arguments, None, agent=spec.agent, elicited=elicited)

        return replace(self.blueprint, servers=self._connected.open_servers(self.blueprint.tools, run))

    def wait(self, step: Awaitable[Any]) -> Any:
        """Run a step of the agent to its end."""

        async def wait() -> Any:
            return await asyncio.wait_for(step, STEP_TIMEOUT)

        return self.runner.run(wait())

    def turn(self, text: str | None = None, *decisions: Decision, stream: bool = False) -> Outcome:
        """Take a turn, check the type of its outcome and return it."""
        outcome = self.wait(self.agent.turn(text, decisions, stream=stream))
        if isinstance(outcome, Finished):
            return outcome
        if not isinstance(outcome, Paused) or not _are_requests(outcome.requests):
            self._raise_broken(f"turn() gave {outcome!r}; it must give Finished, or Paused with Requests")
        return outcome

    def paused(self, text: str | None = None, *decisions: Decision, stream: bool = False) -> tuple[Request, ...]:
        """Take a turn that must pause, and return its requests."""
        outcome = self.turn(text, *decisions, stream=stream)
        assert isinstance(outcome, Paused), f"the turn must pause for approval, and gave {outcome!r}"
        return outcome.requests

    def finished(self, text: str | None = None, *decisions: Decision, stream: bool = False) -> Any:
        """Take a turn that must finish, and return its output."""
        outcome = self.turn(text, *decisions, stream=stream)
        assert isinstance(outcome, Finished), f"the turn must finish, and gave {outcome!r}"
        return outcome.output

    def pending(self) -> tuple[Request, ...]:
        """Return the pending requests."""
        listed = self.wait(self.agent.pending())
        if not _are_requests(listed):
            self._raise_broken(f"pending() gave {listed!r}; it must list Requests")
        return tuple(listed)

    def restart(self) -> None:
        """Dump the state and load it into a new agent."""
        saved = self.wait(self.agent.dump())
        if not isinstance(saved, str):
            self._raise_broken(f"dump() gave {type(saved).__name__}; it must give text")
        self.wait(self.agent.close())
        self.agent = self.runner.run(self._build_agent(self.world))
        self.wait(self.agent.load([saved]))

    def another_session(self, world: FakeWorld) -> Agent:
        """Begin another session on the same framework objects, recorded by *world*."""

        async def begin() -> Agent:
            self._open_address(world)
            return await self.agent.another_session(world)

        other: Agent = self.wait(begin())
        return other

    def end(self) -> None:
        """Close the agent."""
        try:
            self.wait(self.agent.close())
        finally:
            self._release()

    def _release(self) -> None:
        if self._connected is not None:
            self._connected.close()
        self.runner.close()

    def _raise_broken(self, problem: str) -> NoReturn:
        raise AdapterError(f"{self.adapter.__module__}.{self.adapter.__qualname__}", problem)


def approve(request: Request) -> Decision:
    """Return a decision that approves *request*."""
    return Decision(request=request, verdict="approve")


def reject(request: Request, reason: str | None = None) -> Decision:
    """Return a decision that rejects *request*."""
    return Decision(request=request, verdict="reject", reason=reason)


def _are_requests(listed: Any) -> bool:
    return isinstance(listed, Sequence) and all(isinstance(entry, Request) for entry in listed)
