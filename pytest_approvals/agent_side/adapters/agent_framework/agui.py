"""One session: a thread that an interface drives, and the flavours of it."""

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
from .metadata import CHAT_PROTOCOLS, ISSUES, PACKAGES, RESPONSES_PROTOCOLS, claimed

if TYPE_CHECKING:
    from .agui_events import RunReader
    from .model import ClientFactory


class AGUISession(Agent):
    """The model is reached with Responses."""

    framework = metadata.AGUI_FRAMEWORK
    wire_rules = "responses"
    issues = ISSUES
    packages = PACKAGES
    protocols = RESPONSES_PROTOCOLS
    capabilities = claimed(metadata.AGUI_MISSING, {})
    missing = metadata.AGUI_MISSING

    def __init__(self, world: World, blueprint: Blueprint, *, beside: AGUISession | None = None) -> None:
        super().__init__(world, blueprint)
        self._tools: tuple[ToolSpec, ...] = beside._tools if beside else blueprint.tools
        self._behind: Any = beside._behind if beside else self._made()
        self._thread = AGUIThread()
        self._interrupts: list[dict[str, Any]] = []
        self._confirms: dict[str, str] = {}

    def _made(self) -> Any:
        from agent_framework_ag_ui import AgentFrameworkAgent

        from .hosting import build_hosted_agents

        crew = build_hosted_agents(self.blueprint, self._chat_client())
        self._tools = crew.tools
        confirms = bool(self.blueprint.options.get("require_confirmation", True))
        return AgentFrameworkAgent(crew.main, require_confirmation=confirms)

    def _chat_client(self) -> ClientFactory:
        """What makes the chat clients of its agents."""
        from .model import ResponsesClient

        return ResponsesClient

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        from .agui_events import read_requests

        told = await self._run(text, decisions, stream=stream)
        self._interrupts, self._confirms = told.interrupts, told.confirms
        if requests := read_requests(told.interrupts):
            return Paused(requests=requests, text=told.text or None)
        return Finished(output=_parse_value(told.text) if self.blueprint.answer else told.text)

    async def _run(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> RunReader:
        from .agui_events import RunReader

        told = RunReader()
        with use_world(self.world):
            async for one in self._behind.run(self._input(text, decisions)):
                event = one.model_dump(mode="json", by_alias=True, exclude_none=True)
                self._thread.take(event)
                for what, shown in told.take(event):
                    if stream:
                        self.world.shown(what, **shown)
        if stream:
            self.world.shown("end")
        return told

    def _input(self, text: str | None, decisions: Sequence[Decision]) -> dict[str, Any]:
        """Gives what a run is started with: early releases take answers as messages, the others beside them."""
        from .agui_events import is_early_interrupt, write_confirmations, write_resume

        early = any(map(is_early_interrupt, self._interrupts))
        for call, content in write_confirmations(decisions, self._confirms) if early else ():
            self._thread.add("tool", content, toolCallId=call)
        if text is not None:
            self._thread.add("user", text)
        given = {"thread_id": self._thread.id, "run_id": str(uuid4()), "messages": self._thread.messages}
        return {**given, "resume": write_resume(decisions)} if decisions and not early else given

    async def pending(self) -> Sequence[Request]:
        """Gives the interrupts that the last run ended with."""
        from .agui_events import read_requests

        return read_requests(self._interrupts)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._tools

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`."""
        return type(self)(world, self.blueprint, beside=self)


def _parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


class AGUIChatSession(AGUISession):
    """The model is reached with Chat Completions."""

    wire_rules = "chat"
    protocols = CHAT_PROTOCOLS
    capabilities = claimed(metadata.AGUI_CHAT_MISSING, {})
    missing = metadata.AGUI_CHAT_MISSING

    def _chat_client(self) -> ClientFactory:
        from .model import ScriptedClient

        return ScriptedClient
