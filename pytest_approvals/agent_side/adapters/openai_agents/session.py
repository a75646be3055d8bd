"""The three flavours of the adapter."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ...contract import Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported
from ...contract.agent import Agent, World
from ...kit.context import use_world
from . import metadata
from .metadata import CAN_ADD_INPUT

if TYPE_CHECKING:
    from agents import Agent as SdkAgent

    from .agents import AgentGraph
    from .state import SdkRun


class OpenAIAgents(Agent):
    """The caller keeps the input list of the conversation, the agent that has it, and the `RunState` of its run."""

    framework = "openai-agents"
    capabilities = metadata.claimed(metadata.MISSING)
    missing = metadata.MISSING
    wire_rules = "responses"
    protocols = metadata.PROTOCOLS
    issues = metadata.ISSUES
    stores = metadata.STORES
    packages = ("agents",)
    connects = True
    uses_session: ClassVar[bool] = False

    def __init__(
        self, world: World, blueprint: Blueprint, *, crew: AgentGraph | None = None, session: str = "conversation"
    ) -> None:
        super().__init__(world, blueprint)
        from .state import CallerState

        self._crew = crew if crew is not None else self._crew_of(blueprint)
        self._crew.sessions.add(id(self))
        self._sessions = 1
        stored = blueprint.serialize == "native.sqlite"
        path = os.path.join(blueprint.directory, "sessions.db") if stored and blueprint.directory else ":memory:"
        self._memory = CallerState(
            self._crew.main,
            uses_session=stored or self.uses_session,
            path=path,
            name=session,
            given=self._crew.session,
        )

    def _crew_of(self, blueprint: Blueprint) -> AgentGraph:
        from .model import build_model_factory

        model = build_model_factory(blueprint)
        if blueprint.attachment is not None:
            from .attach import attach_agents

            return attach_agents(blueprint.attachment, blueprint.limits, model)
        from .agents import build_agents

        return build_agents(blueprint, model)

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        with use_world(self.world):
            async with self._crew.connected():
                results = await self._results(text, decisions, stream)
        return self._outcome(results)

    async def _results(self, text: str | None, decisions: Sequence[Decision], stream: bool) -> list[Any]:
        if decisions:
            return await self._answer(text, decisions, stream)
        return [await (self._go_on(stream) if text is None else self._tell(text, stream))]

    async def _tell(self, text: str, stream: bool) -> Any:
        memory = self._memory
        if not memory.unfinished or not CAN_ADD_INPUT:
            return await self._begin(memory.input_with(text), stream)
        memory.runs[-1].state.add_input(text)
        return await self._resume(memory.runs[-1], stream)

    async def _begin(self, given: Any, stream: bool) -> Any:
        self._memory.begins(given)
        return await self._run(self._memory.agent, given, stream, resumed=None)

    async def _resume(self, run: SdkRun, stream: bool) -> Any:
        return await self._run(run.agent, run.state, stream, resumed=run)

    async def _run(self, agent: SdkAgent[Any], given: Any, stream: bool, *, resumed: SdkRun | None) -> Any:
        try:
            result = await (self._streamed(agent, given) if stream else self._plain(agent, given))
        except BaseException as error:
            self._memory.fails(error, resumed)
            raise
        self._memory.ends(result, resumed)
        return result

    async def _answer(self, text: str | None, decisions: Sequence[Decision], stream: bool) -> list[Any]:
        return [await self._resume(run, stream) for run in self._put(decisions, text)]

    async def _go_on(self, stream: bool) -> Any:
        memory = self._memory
        if memory.unanswered is not None and not memory.waits():
            return await self._begin(memory.unanswered, stream)
        return await (self._resume(memory.runs[-1], stream) if memory.runs else self._begin(memory.history, stream))

    async def _plain(self, agent: SdkAgent[Any], given: Any) -> Any:
        from agents import Runner

        return await Runner.run(agent, given, **self._run_options())

    async def _streamed(self, agent: SdkAgent[Any], given: Any) -> Any:
        from agents import Runner

        from .messages import report_event

        result = Runner.run_streamed(agent, given, **self._run_options())
        async for event in result.stream_events():
            report_event(event, self.world)
        self.world.shown("end")
        return result

    def _run_options(self) -> dict[str, Any]:
        session = self._memory.session
        return self._crew.options if session is None else {**self._crew.options, "session": session}

    def _put(self, decisions: Sequence[Decision], text: str | None = None) -> list[SdkRun]:
        """
        Puts the decisions into the runs that they are about, and *text* into the newest of these.

        Whatever run is decided about is the one that the conversation goes on with.
        """
        from .requests import apply_decision

        if not self._memory.runs:
            raise Unsupported("unknown_request", "there is no RunState before a run has ended")
        pairs = [(self._run_of(decision), decision) for decision in decisions]
        runs = [run for run in self._memory.runs if any(run is one for one, _ in pairs)]
        if text is not None:
            runs[-1].state.add_input(text)
        for run, decision in pairs:
            apply_decision(run.state, decision, self._crew)
        self._memory.take_up(runs)
        return runs

    def _run_of(self, decision: Decision) -> SdkRun:
        from .requests import find_pending_item

        newest = self._memory.runs[-1]
        if decision.request is None or len(self._memory.runs) == 1:
            return newest
        listing = (
            run for run in reversed(self._memory.runs) if find_pending_item(run.requests, decision.request, self._crew)
        )
        return next(listing, newest)

    def _outcome(self, results: Sequence[Any]) -> Outcome:
        from .requests import to_request
        from .state import read_output, read_text

        items = [item for result in results for item in result.interruptions]
        if items:
            requests = tuple(to_request(item, self._crew) for item in items)
            return Paused(requests=requests, text=read_text(results[-1]))
        return Finished(output=read_output(results[-1]))

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`; these are the requests of the newest run."""
        from .requests import to_request

        return [to_request(item, self._crew) for run in self._memory.runs[-1:] for item in run.requests]

    async def stage(self, decisions: Sequence[Decision]) -> None:
        """See `Agent.stage`; a `RunState` is changed by each decision, whether it is resumed or not."""
        self._put(decisions)
        self._memory.unfinished = True

    async def dump(self) -> str:
        """See `Agent.dump`."""
        return await self._memory.dump(self._crew, self._crew.options.get("context"))

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`; the SDK looks up the pending calls of a server among the tools that the server lists."""
        async with self._crew.connected():
            await self._memory.load(parts[-1], self._crew, self._crew.options.get("context"))

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`."""
        self._sessions += 1
        return type(self)(world, self.blueprint, crew=self._crew, session=f"conversation {self._sessions}")

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._crew.tools

    async def close(self) -> None:
        """See `Agent.close`."""
        self._memory.close()
        self._crew.let_go(self)


class SessionAgents(OpenAIAgents):
    """A `SQLiteSession` keeps the history of the conversation, the caller the `RunState` of each paused run."""

    capabilities = metadata.claimed(metadata.SESSION_MISSING)
    missing = metadata.SESSION_MISSING
    uses_session = True

    async def trim(self, keep: int) -> None:
        """Limits what new runs get of the history, with `SessionSettings.limit`."""
        self._memory.limit = keep

    def _run_options(self) -> dict[str, Any]:
        options = super()._run_options()
        if self._memory.limit is None:
            return options
        from dataclasses import replace

        from agents import SessionSettings

        limited = replace(options["run_config"], session_settings=SessionSettings(limit=self._memory.limit))
        return {**options, "run_config": limited}


class ChatAgents(SessionAgents):
    """As `SessionAgents`, with the SDK's own model class for Chat Completions, always."""

    capabilities = metadata.claimed(metadata.CHAT_MISSING)
    missing = metadata.CHAT_MISSING
    wire_rules = "chat"
    native = "chat"
    protocols: ClassVar[Mapping[str, Mapping[str, str]]] = {}
