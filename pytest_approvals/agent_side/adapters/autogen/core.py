"""
The flavour without AgentChat: tools behind a `ToolAgent`, and an intervention handler in front of it.

As the cookbook "User Approval for Tool Execution using Intervention Handler" has it, the handler sees each call as a
message, and raises a `ToolException` where a person refuses it. What the caller keeps is the conversation that
`tool_agent_caller_loop` is given, and what it returns.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...contract import MAIN, Blueprint, Decision, Unsupported, World
from . import facts
from .session import Gated

if TYPE_CHECKING:
    from .crew import Gate

TOOLS = "tools"
"""The agent type that runs tools."""


class Intervening(Gated):
    """An intervention handler asks about each message to the agent that runs the tools."""

    capabilities = facts.claimed(facts.INTERVENTION_MISSING)
    missing = facts.INTERVENTION_MISSING

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        if blueprint.attachment is not None:
            raise Unsupported(
                "attach", "a loop of autogen-core is a person's own code, with no agent object to hand over"
            )
        super().__init__(world, blueprint)
        self._runtime: Any = None
        self._history: list[Any] = []

    def _gate(self) -> Gate:
        from .crew import gated_tools

        return gated_tools

    async def _run(self, text: str | None, token: Any, *, stream: bool) -> Any:
        from autogen_core import AgentId
        from autogen_core.models import UserMessage
        from autogen_core.tool_agent import tool_agent_caller_loop

        from .reached import client

        if text is not None:
            self._history.append(UserMessage(content=text, source="user"))
        runtime, tools = await self._ready()
        model = client(self.world, MAIN, self.blueprint.model)
        said = await tool_agent_caller_loop(
            runtime, AgentId(TOOLS, "default"), model, list(self._history), tools, token
        )
        self._history += said
        if self.blueprint.options.get("settles"):
            await runtime.stop_when_idle()
            self._runtime = None
        return said[-1].content

    async def _gone_on(self, token: Any, *, stream: bool) -> Any:
        return await self._run(None, token, stream=stream)

    async def _ready(self) -> tuple[Any, list[Any]]:
        from autogen_core import SingleThreadedAgentRuntime
        from autogen_core.tool_agent import ToolAgent

        from .crew import Crew
        from .intervention import Asking

        crew = self._crew
        assert isinstance(crew, Crew)
        specs = [spec for spec in self.blueprint.tools if spec.agent == MAIN]
        tools = crew.working(specs)
        if self._runtime is None:
            handler = Asking(crew.approvals(MAIN, specs), self._work, self.blueprint.options)
            self._runtime = SingleThreadedAgentRuntime(intervention_handlers=[handler])
            await ToolAgent.register(self._runtime, TOOLS, lambda: ToolAgent("Runs tools.", list(tools)))
            self._runtime.start()
        return self._runtime, tools

    async def _said(self) -> str | None:
        return None

    def _output(self, result: Any) -> Any:
        return result

    def _result(self, decision: Decision) -> Any:
        from .intervention import answer_of

        return answer_of(decision)

    async def close(self) -> None:
        """See `Agent.close`."""
        await super().close()
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            # A loop that died with its handler, or still waits for it, does not stop.
            await asyncio.wait({asyncio.create_task(_stopped(runtime))}, timeout=0.2)


async def _stopped(runtime: Any) -> None:
    with suppress(Exception):
        await runtime.stop()
