"""One session: the runs under one session id, and the flavours of what runs them."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ...contract import Blueprint, Decision, Outcome, Paused, Request, ToolSpec, Unsupported
from ...contract.agent import Agent, World
from ...kit.context import use_world
from . import metadata
from .requests import read_requests, run_id_of, server_tools, write_decisions
from .state import Store, borrow_store, build_session, open_store, read_outputs, read_session
from .streaming import read_outcome, read_stream

if TYPE_CHECKING:
    from .agents import AgentGraph


class Session(Agent):
    """
    A session is what the database keeps under one session id; flavours differ in what is run.

    A paused run is continued by its id, with its requirements; where the caller keeps the output of the run, by that.
    """

    framework = "agno"
    wire_rules = "chat"
    protocols = metadata.PROTOCOLS
    issues = metadata.ISSUES
    stores = metadata.STORES
    packages = ("agno",)
    connects = True

    def __init__(self, world: World, blueprint: Blueprint, *, beside: Session | None = None) -> None:
        super().__init__(world, blueprint)
        self._crew: AgentGraph = beside._crew if beside else self._crew_of(blueprint)
        self._crew.sessions.add(id(self))
        self._borrowed = beside is not None
        self._use(beside._store if beside else self._store_of(blueprint))
        self._session = str(uuid4())
        self._last: str | None = None
        self._outputs: dict[str, Any] = {}
        self._limit: int | None = None

    def _crew_of(self, blueprint: Blueprint) -> AgentGraph:
        if blueprint.attachment is not None:
            from .attach import attach_agents

            return attach_agents(blueprint.attachment)
        return self._made(blueprint)

    @abstractmethod
    def _made(self, blueprint: Blueprint) -> AgentGraph:
        """What is run where it is made of a blueprint."""

    def _store_of(self, blueprint: Blueprint) -> Store:
        own = self._crew.db if blueprint.serialize == "none" else None
        return borrow_store(own) if own is not None else open_store(blueprint)

    def _use(self, store: Store) -> None:
        self._store = store
        self._crew.main.db = store.db

    @property
    def _kept(self) -> bool:
        """The caller keeps the outputs of runs, and continues with these."""
        return self.blueprint.serialize == "json"

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        with use_world(self.world):
            if not decisions and text is not None:
                return await self._run(self._crew.main.arun, stream, input=text, session_id=self._session)
            return await self._answer(text, decisions, stream)

    async def _answer(self, text: str | None, decisions: Sequence[Decision], stream: bool) -> Outcome:
        by_run: dict[str | None, list[Decision]] = {} if decisions else {self._last: []}
        for decision in decisions:
            by_run.setdefault(run_id_of(decision.request) or self._last, []).append(decision)
        outcomes = [await self._continue(run, its, text, stream) for run, its in by_run.items()]
        paused = [one for one in outcomes if isinstance(one, Paused)]
        if not paused:
            return outcomes[-1]
        return Paused(requests=tuple(request for one in paused for request in one.requests), text=paused[-1].text)

    async def _continue(
        self, run: str | None, decisions: Sequence[Decision], text: str | None, stream: bool
    ) -> Outcome:
        given: dict[str, Any] = {} if text is None else {"input": text}
        output = await self._output_of(run)
        known = (output.requirements if output is not None else None) or []
        if decisions:
            given["requirements"] = write_decisions(known, decisions, in_place=self._kept)
        if not self._kept or output is None:
            given |= {"run_id": run, "session_id": self._session}
        else:
            given["run_response"] = output
            output.requirements = known + [one for one in given.get("requirements", ()) if one not in known]
        return await self._run(self._crew.main.acontinue_run, stream, **given)

    async def _run(self, call: Any, stream: bool, **given: Any) -> Outcome:
        given |= self._crew.options
        offered = server_tools(self.tools())
        if not stream:
            output = await call(**given)
            self._keep(output)
            return read_outcome(output, offered)
        events = call(**given, stream=True, stream_events=True, yield_run_output=True)
        return await read_stream(events, self._crew.main, self.world.shown, self._keep, offered)

    def _keep(self, output: Any) -> None:
        self._last = output.run_id
        if self._kept:
            self._outputs[output.run_id] = output

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def _runs(self) -> list[Any]:
        """Gives the outputs of all runs of this session that the caller talked to."""
        if self._kept:
            return list(self._outputs.values())
        found = await self._stored()
        runs = (found.runs if found is not None else None) or []
        # A database in memory shares what it gives out; requirements are there to be changed.
        return [deepcopy(run) for run in runs if not run.parent_run_id]

    async def _stored(self) -> Any:
        return await read_session(self._store.db, self._crew.main, self._session)

    async def _output_of(self, run: str | None) -> Any:
        return next((one for one in await self._runs() if one.run_id == run), None)

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        offered = server_tools(self.tools())
        return [
            request
            for run in await self._runs()
            if run.is_paused
            for request in read_requests(run.requirements, run.run_id, offered)
        ]

    async def cancel(self) -> None:
        """See `Agent.cancel`."""
        await self._crew.main.acancel_run(self._last)

    async def trim(self, keep: int) -> None:
        """Lets the agent take the last *keep* messages of its history; this is a setting of the agent."""
        self._limit = keep
        self._crew.main.num_history_runs = None
        self._crew.main.num_history_messages = keep

    # --- state --------------------------------------------------------------------------------------------------------

    async def dump(self) -> str:
        """Gives the reference into the database, and where the caller keeps them the outputs of the runs."""
        if self.blueprint.serialize == "none":
            raise Unsupported("serialize.json", "a session in memory is kept as it is")
        kept: dict[str, Any] = {"session": self._session, "last": self._last}
        if self._limit is not None:
            kept["num_history_messages"] = self._limit
        if self._kept:
            kept["runs"] = [run.to_dict() for run in self._changed()]
        return json.dumps(kept)

    def _changed(self) -> list[Any]:
        if self.blueprint.history == "whole":
            return list(self._outputs.values())
        return [self._outputs[self._last]] if self._last in self._outputs else []

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        kept = [json.loads(part) for part in parts]
        self._session, self._last = kept[-1]["session"], kept[-1]["last"]
        if (limit := kept[-1].get("num_history_messages")) is not None:
            await self.trim(limit)
        if self._kept:
            self._outputs = read_outputs(self._crew.main, [run for one in kept for run in one["runs"]])
            self._store.db.upsert_session(build_session(self._crew.main, self._session, self._outputs.values()))

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        assert isinstance(other, Session)
        self._session, self._last = other._session, other._last
        self._outputs = deepcopy(other._outputs)
        if other._limit is not None:
            await self.trim(other._limit)
        found = await other._stored()
        if found is not None:
            self._store.db.upsert_session(deepcopy(found))

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`."""
        return type(self)(world, self.blueprint, beside=self)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._crew.tools

    async def close(self) -> None:
        """See `Agent.close`."""
        if not self._borrowed:
            await self._store.close()
        self._crew.let_go(self)


class SingleAgentSession(Session):
    """One agent is run."""

    capabilities = metadata.claimed(metadata.AGENT_MISSING)
    missing = metadata.AGENT_MISSING

    def _made(self, blueprint: Blueprint) -> AgentGraph:
        from .agents import build_agent

        return build_agent(blueprint)


class AgentTeamSession(Session):
    """A team is run: its leader has tools of its own and members to delegate to."""

    capabilities = metadata.claimed(metadata.TEAM_MISSING)
    missing = metadata.TEAM_MISSING
    protocols = metadata.TEAM_PROTOCOLS

    def _made(self, blueprint: Blueprint) -> AgentGraph:
        from .agents import build_team

        return build_team(blueprint)
