"""Sessions: turns, saves, and the three flavours of the adapter."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ...contract import (
    RENAMED,
    Agent,
    Blueprint,
    Decision,
    Finished,
    Outcome,
    Paused,
    Request,
    ToolSpec,
    Unsupported,
    World,
)
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
    missing = metadata.MISSING
    wire_rules = "responses"
    protocols = metadata.PROTOCOLS
    issues = metadata.ISSUES
    stores = metadata.STORES
    renames = RENAMED
    recovery = metadata.RECOVERY
    packages = ("agents",)
    given_options = ("starting_agent", "input", "previous_response_id", "auto_previous_response_id", "conversation_id")
    connects = True
    uses_session: ClassVar[bool] = False

    def __init__(
        self, world: World, blueprint: Blueprint, *, agents: AgentGraph | None = None, session: str = "conversation"
    ) -> None:
        super().__init__(world, blueprint)
        from .state import CallerState

        self._agents = agents if agents is not None else self._build_agents(blueprint)
        self._agents.add_session(self)
        self._sessions = 1
        stored = blueprint.serialize == "native.sqlite"
        path = os.path.join(blueprint.directory, "sessions.db") if stored and blueprint.directory else ":memory:"
        self._state = CallerState(
            self._agents.main,
            uses_session=stored or self.uses_session,
            path=path,
            name=session,
            own_session=self._agents.session,
        )

    def _build_agents(self, blueprint: Blueprint) -> AgentGraph:
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
            async with self._agents.connect():
                results = await self._run_turn(text, decisions, stream)
        return self._to_outcome(results)

    async def _run_turn(self, text: str | None, decisions: Sequence[Decision], stream: bool) -> list[Any]:
        if decisions:
            return await self._resume_decided(text, decisions, stream)
        return [await (self._continue(stream) if text is None else self._send(text, stream))]

    async def _send(self, text: str, stream: bool) -> Any:
        state = self._state
        if not state.unfinished or not CAN_ADD_INPUT:
            return await self._begin(state.input_with(text), stream)
        state.runs[-1].state.add_input(text)
        return await self._resume(state.runs[-1], stream)

    async def _begin(self, input: Any, stream: bool) -> Any:
        self._state.note_begin(input)
        return await self._run(self._state.agent, input, stream, resumed=None)

    async def _resume(self, run: SdkRun, stream: bool) -> Any:
        return await self._run(run.agent, run.state, stream, resumed=run)

    async def _run(self, agent: SdkAgent[Any], input: Any, stream: bool, *, resumed: SdkRun | None) -> Any:
        try:
            result = await (self._run_streamed(agent, input) if stream else self._run_plainly(agent, input))
        # A cancelled run counts, too: its state may hold calls that were executed.
        except BaseException as error:
            self._state.note_failure(error, resumed)
            raise
        self._state.note_end(result, resumed)
        return result

    async def _resume_decided(self, text: str | None, decisions: Sequence[Decision], stream: bool) -> list[Any]:
        return [await self._resume(run, stream) for run in self._put_decisions(decisions, text)]

    async def _continue(self, stream: bool) -> Any:
        state = self._state
        if state.unanswered is not None and not state.waits():
            return await self._begin(state.unanswered, stream)
        return await (self._resume(state.runs[-1], stream) if state.runs else self._begin(state.history, stream))

    async def _run_plainly(self, agent: SdkAgent[Any], input: Any) -> Any:
        from agents import Runner

        return await Runner.run(agent, input, **self._run_options())

    async def _run_streamed(self, agent: SdkAgent[Any], input: Any) -> Any:
        from agents import Runner

        from .messages import report_event

        result = Runner.run_streamed(agent, input, **self._run_options())
        async for event in result.stream_events():
            report_event(event, self.world)
        self.world.shown("end")
        return result

    def _run_options(self) -> dict[str, Any]:
        session = self._state.session
        return self._agents.options if session is None else {**self._agents.options, "session": session}

    def _put_decisions(self, decisions: Sequence[Decision], text: str | None = None) -> list[SdkRun]:
        """Put the decisions into the runs that they are about, and *text* into the newest of these.

        The conversation continues with the runs that were decided about.
        """
        from .requests import apply_decision

        if not self._state.runs:
            raise Unsupported("unknown_request", "there is no RunState before a run has ended")
        pairs = [(self._find_run(decision), decision) for decision in decisions]
        runs = [run for run in self._state.runs if any(run is decided for decided, _ in pairs)]
        if text is not None:
            runs[-1].state.add_input(text)
        for run, decision in pairs:
            apply_decision(run.state, decision, self._agents)
        self._state.make_newest(runs)
        return runs

    def _find_run(self, decision: Decision) -> SdkRun:
        from .requests import find_pending_item

        newest = self._state.runs[-1]
        if decision.request is None or len(self._state.runs) == 1:
            return newest
        candidates = (
            run for run in reversed(self._state.runs) if find_pending_item(run.requests, decision.request, self._agents)
        )
        return next(candidates, newest)

    def _to_outcome(self, results: Sequence[Any]) -> Outcome:
        from .requests import to_request
        from .state import read_output, read_text

        items = [item for result in results for item in result.interruptions]
        if items:
            requests = tuple(to_request(item, self._agents) for item in items)
            return Paused(requests=requests, text=read_text(results[-1]))
        return Finished(output=read_output(results[-1]))

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`; these are the requests of the newest run."""
        from .requests import to_request

        return [to_request(item, self._agents) for run in self._state.runs[-1:] for item in run.requests]

    async def stage(self, decisions: Sequence[Decision]) -> None:
        """See `Agent.stage`; a `RunState` is changed by each decision, whether it is resumed or not."""
        self._put_decisions(decisions)
        self._state.unfinished = True

    async def dump(self) -> str:
        """See `Agent.dump`."""
        return await self._state.dump(self._agents, self._agents.options.get("context"))

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`; the SDK looks up the pending calls of a server among the tools that the server lists."""
        async with self._agents.connect():
            await self._state.load(parts[-1], self._agents, self._agents.options.get("context"))

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`."""
        # The name is the key in the store, which all sessions of a blueprint share.
        self._sessions += 1
        return type(self)(world, self.blueprint, agents=self._agents, session=f"conversation {self._sessions}")

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._agents.tools

    def earlier_turns(self) -> int | None:
        """See `Agent.earlier_turns`."""
        return self._agents.earlier_turns

    async def close(self) -> None:
        """See `Agent.close`."""
        self._state.close()
        self._agents.remove_session(self)


class SessionAgents(OpenAIAgents):
    """A `SQLiteSession` keeps the history of the conversation, the caller the `RunState` of each paused run."""

    missing = metadata.SESSION_MISSING
    uses_session = True

    async def trim(self, keep: int) -> None:
        """Limit what new runs get of the history, with `SessionSettings.limit`."""
        self._state.limit = keep

    def _run_options(self) -> dict[str, Any]:
        options = super()._run_options()
        if self._state.limit is None:
            return options
        from dataclasses import replace

        from agents import SessionSettings

        limited = replace(options["run_config"], session_settings=SessionSettings(limit=self._state.limit))
        return {**options, "run_config": limited}


class ChatAgents(SessionAgents):
    """As `SessionAgents`, but always with the SDK's own model class for Chat Completions."""

    missing = metadata.CHAT_MISSING
    wire_rules = "chat"
    native = "chat"
    protocols: ClassVar[Mapping[str, Mapping[str, str]]] = {}
