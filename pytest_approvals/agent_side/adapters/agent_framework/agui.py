"""Agents behind the AG-UI protocol (`agent-framework-ag-ui`), driven like by an interface.

A run is a stream of events. A gated call ends it with an interrupt, and the next run's `resume` must answer every
interrupt. The interface keeps the messages of the thread, as the last snapshot gave them. Open requests are in the
memory of the process.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ...contract import Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec
from ...contract.agent import Agent, World
from ...kit.context import use_world
from . import metadata
from .agui_events import AGUIThread
from .metadata import CHAT_PROTOCOLS, ISSUES, PACKAGES, RESPONSES_PROTOCOLS

if TYPE_CHECKING:
    from .agui_events import RunReader
    from .model import ClientFactory


class AGUISession(Agent):
    """A thread that an interface drives; its model speaks Responses."""

    framework = metadata.AGUI_FRAMEWORK
    wire_rules = "responses"
    issues = ISSUES
    packages = PACKAGES
    protocols = RESPONSES_PROTOCOLS
    missing = metadata.AGUI_MISSING

    def __init__(self, world: World, blueprint: Blueprint, *, shared_with: AGUISession | None = None) -> None:
        super().__init__(world, blueprint)
        self._tools: tuple[ToolSpec, ...] = shared_with._tools if shared_with else blueprint.tools
        # After `_tools`, which building replaces by the tools that an attached agent has.
        self._server_agent: Any = shared_with._server_agent if shared_with else self._build_server_agent()
        self._thread = AGUIThread()
        self._interrupts: list[dict[str, Any]] = []
        self._confirms: dict[str, str] = {}

    def _build_server_agent(self) -> Any:
        from agent_framework_ag_ui import AgentFrameworkAgent

        from .hosting import build_hosted_agents

        agents = build_hosted_agents(self.blueprint, self._choose_client_factory())
        self._tools = agents.tools
        confirms = bool(self.blueprint.options.get("require_confirmation", True))
        return AgentFrameworkAgent(agents.main, require_confirmation=confirms)

    def _choose_client_factory(self) -> ClientFactory:
        """Return what builds the scripted clients of its agents."""
        from .model import ResponsesClient

        return ResponsesClient

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        from .agui_events import read_requests

        reader = await self._run(text, decisions, stream=stream)
        self._interrupts, self._confirms = reader.interrupts, reader.confirms
        if requests := read_requests(reader.interrupts):
            return Paused(requests=requests, text=reader.text or None)
        return Finished(output=_parse_value(reader.text) if self.blueprint.answer else reader.text)

    async def _run(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> RunReader:
        from .agui_events import RunReader

        reader = RunReader()
        with use_world(self.world):
            async for frame in self._server_agent.run(self._build_input(text, decisions)):
                # An interface only sees the JSON, with the protocol's own names.
                event = frame.model_dump(mode="json", by_alias=True, exclude_none=True)
                self._thread.apply(event)
                for kind, values in reader.read(event):
                    if stream:
                        self.world.shown(kind, **values)
        if stream:
            self.world.shown("end")
        return reader

    def _build_input(self, text: str | None, decisions: Sequence[Decision]) -> dict[str, Any]:
        """Return the input of a run.

        Early releases take decisions as messages, others in `resume`.
        """
        from .agui_events import is_early_interrupt, write_confirmations, write_resume

        is_early = any(map(is_early_interrupt, self._interrupts))
        for call, content in write_confirmations(decisions, self._confirms) if is_early else ():
            self._thread.add("tool", content, toolCallId=call)
        if text is not None:
            self._thread.add("user", text)
        run_input = {"thread_id": self._thread.id, "run_id": str(uuid4()), "messages": self._thread.messages}
        return {**run_input, "resume": write_resume(decisions)} if decisions and not is_early else run_input

    async def pending(self) -> Sequence[Request]:
        """Return the interrupts with which the last run ended."""
        from .agui_events import read_requests

        return read_requests(self._interrupts)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._tools

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`."""
        return type(self)(world, self.blueprint, shared_with=self)


def _parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


class AGUIChatSession(AGUISession):
    """As `AGUISession`; its model speaks Chat Completions."""

    wire_rules = "chat"
    protocols = CHAT_PROTOCOLS
    missing = metadata.AGUI_CHAT_MISSING

    def _choose_client_factory(self) -> ClientFactory:
        from .model import ScriptedClient

        return ScriptedClient
