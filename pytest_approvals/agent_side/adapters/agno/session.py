"""Sessions: the runs with one session id, and the flavours of what runs them."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ...contract import RENAMED, Blueprint, Decision, Outcome, Paused, Request, ToolSpec, Unsupported
from ...contract.agent import Agent, World
from ...kit.context import use_world
from . import metadata
from .requests import execute_outside, read_requests, run_id_of, server_tools, write_decisions
from .state import Store, borrow_store, build_session, open_store, read_outputs, read_session
from .streaming import read_outcome, read_stream

if TYPE_CHECKING:
    from .agents import AgentGraph


class Session(Agent):
    """What the database stores under one session id; flavours differ in what is run.

    A paused run is continued by its id, with its requirements, or by its output if the caller keeps that.
    """

    framework = "agno"
    wire_rules = "chat"
    protocols = metadata.PROTOCOLS
    issues = metadata.ISSUES
    stores = metadata.STORES
    renames = RENAMED
    recovery = metadata.RECOVERY
    packages = ("agno",)
    given_options = (
        "input",
        "session_id",
        "run_id",
        "run_response",
        "requirements",
        "stream",
        "stream_events",
        "yield_run_output",
    )
    connects = True

    def __init__(self, world: World, blueprint: Blueprint, *, shared_with: Session | None = None) -> None:
        super().__init__(world, blueprint)
        self._agents: AgentGraph = shared_with._agents if shared_with else self._create_agents(blueprint)
        self._agents.add_session(self)
        self._borrowed = shared_with is not None
        self._use_store(shared_with._store if shared_with else self._store_of(blueprint))
        self._session = str(uuid4())
        self._last: str | None = None
        self._outputs: dict[str, Any] = {}
        self._limit: int | None = None
        self._is_store_checked = False

    def _create_agents(self, blueprint: Blueprint) -> AgentGraph:
        if blueprint.attachment is not None:
            from .attach import attach_agents

            agents = attach_agents(blueprint.attachment)
            if agents.is_workflow and blueprint.serialize != "none":
                raise Unsupported("attach", "a workflow is continued with its output, which is kept as it is")
            return agents
        return self._create_own_agents(blueprint)

    @abstractmethod
    def _create_own_agents(self, blueprint: Blueprint) -> AgentGraph:
        """Build what is run from a blueprint."""

    def _store_of(self, blueprint: Blueprint) -> Store:
        own = self._agents.db if blueprint.serialize == "none" else None
        return borrow_store(own) if own is not None else open_store(blueprint)

    def _use_store(self, store: Store) -> None:
        self._store = store
        # A user's agent may have a database already, which is another one than the variant asks for.
        self._agents.main.db = store.db

    @property
    def _keeps_outputs(self) -> bool:
        """Whether the caller keeps the outputs of runs and continues with these."""
        return self.blueprint.serialize == "json"

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        if self.blueprint.serialize == "native.postgres" and not self._is_store_checked:
            from .state import check_server

            await check_server(self.blueprint, self._store.db)
            self._is_store_checked = True
        with use_world(self.world):
            if not decisions and text is not None:
                return await self._run(self._agents.main.arun, stream, input=text, session_id=self._session)
            try:
                return await self._continue_runs(text, decisions, stream)
            except Exception as error:
                if type(error).__name__ == "RunNotFoundError":
                    from .state import explain_lost_run

                    await explain_lost_run(self.blueprint, self._store.db)
                raise

    async def _continue_runs(self, text: str | None, decisions: Sequence[Decision], stream: bool) -> Outcome:
        by_run: dict[str | None, list[Decision]] = {} if decisions else {self._last: []}
        for decision in decisions:
            by_run.setdefault(run_id_of(decision.request) or self._last, []).append(decision)
        outcomes = [
            await self._continue_run(run_id, run_decisions, text, stream) for run_id, run_decisions in by_run.items()
        ]
        paused_outcomes = [outcome for outcome in outcomes if isinstance(outcome, Paused)]
        if not paused_outcomes:
            return outcomes[-1]
        return Paused(
            requests=tuple(request for outcome in paused_outcomes for request in outcome.requests),
            text=paused_outcomes[-1].text,
        )

    async def _continue_run(
        self, run_id: str | None, decisions: Sequence[Decision], text: str | None, stream: bool
    ) -> Outcome:
        options: dict[str, Any] = {} if text is None else {"input": text}
        output = await self._output_of(run_id)
        known = (output.requirements if output is not None else None) or []
        if decisions:
            decisions = [await execute_outside(decision, known, self._agents.external) for decision in decisions]
            options["requirements"] = write_decisions(known, decisions, in_place=self._keeps_outputs)
        if not self._keeps_outputs or output is None:
            options |= {"run_id": run_id, "session_id": self._session}
        else:
            # With an output, the framework reads the requirements from it and ignores the argument.
            options["run_response"] = output
            output.requirements = known + [
                requirement for requirement in options.get("requirements", ()) if requirement not in known
            ]
        return await self._run(self._agents.main.acontinue_run, stream, **options)

    async def _run(self, call: Any, stream: bool, **options: Any) -> Outcome:
        options |= self._agents.options
        mcp_tools = server_tools(self.tools())
        if not stream:
            output = await call(**options)
            self._keep_output(output)
            return read_outcome(output, mcp_tools, self._agents.names)
        events = call(**options, stream=True, stream_events=True, yield_run_output=True)
        return await read_stream(
            events, self._agents.main, self.world.shown, self._keep_output, mcp_tools, self._agents.names
        )

    def _keep_output(self, output: Any) -> None:
        self._last = output.run_id
        if self._keeps_outputs:
            self._outputs[output.run_id] = output

    # --- runs ---------------------------------------------------------------------------------------------------------

    async def _load_runs(self) -> list[Any]:
        """Return the outputs of all runs of this session that the caller talked to."""
        if self._keeps_outputs:
            return list(self._outputs.values())
        if self._agents.is_workflow:
            return list(self._agents.main.list_runs(self._session))
        session = await self._load_session()
        runs = (session.runs if session is not None else None) or []
        # A database in memory returns its own objects, and decisions change requirements in place.
        # Runs of team members are stored in the same session.
        return [deepcopy(run) for run in runs if not run.parent_run_id]

    async def _load_session(self) -> Any:
        return await read_session(self._store.db, self._agents.main, self._session)

    async def _output_of(self, run_id: str | None) -> Any:
        return next((output for output in await self._load_runs() if output.run_id == run_id), None)

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        mcp_tools = server_tools(self.tools())
        return [
            request
            for run in await self._load_runs()
            if run.is_paused
            for request in read_requests(run.requirements, run.run_id, mcp_tools, self._agents.names)
        ]

    async def cancel(self) -> None:
        """See `Agent.cancel`."""
        await self._agents.main.acancel_run(self._last)

    async def trim(self, keep: int) -> None:
        """Limit the agent's history to the last *keep* messages, which is its own setting."""
        self._limit = keep
        self._agents.main.num_history_runs = None
        self._agents.main.num_history_messages = keep

    # --- state --------------------------------------------------------------------------------------------------------

    async def dump(self) -> str:
        """Return the reference into the database, and the outputs if the caller keeps them."""
        if self.blueprint.serialize == "none":
            raise Unsupported("serialize.json", "a session in memory is kept as it is")
        # In a database the session goes on from its newest run, whichever it was when this was saved.
        saved: dict[str, Any] = {"session": self._session}
        if self._limit is not None:
            saved["num_history_messages"] = self._limit
        if self._keeps_outputs:
            saved["last"] = self._last
            saved["runs"] = [run.to_dict() for run in self._outputs_to_dump()]
        return json.dumps(saved)

    def _outputs_to_dump(self) -> list[Any]:
        if self.blueprint.history == "whole":
            return list(self._outputs.values())
        return [self._outputs[self._last]] if self._last in self._outputs else []

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        saved = [json.loads(part) for part in parts]
        self._session = saved[-1]["session"]
        if (limit := saved[-1].get("num_history_messages")) is not None:
            await self.trim(limit)
        if self._keeps_outputs:
            self._last = saved[-1]["last"]
            self._outputs = read_outputs(self._agents.main, [run for part in saved for run in part["runs"]])
            # The messages of earlier runs come from the database, which is a new one here.
            self._store.db.upsert_session(build_session(self._agents.main, self._session, self._outputs.values()))
        else:
            runs = await self._load_runs()
            self._last = runs[-1].run_id if runs else None

    async def recover(self, parts: Sequence[str]) -> None:
        """See `Agent.recover`; the run to continue is the newest in the database."""
        await self.load(parts)

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        assert isinstance(other, Session)
        self._session, self._last = other._session, other._last
        self._outputs = deepcopy(other._outputs)
        if other._limit is not None:
            await self.trim(other._limit)
        session = await other._load_session()
        if session is not None:
            self._store.db.upsert_session(deepcopy(session))

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`."""
        return type(self)(world, self.blueprint, shared_with=self)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._agents.tools

    def earlier_turns(self) -> int | None:
        """See `Agent.earlier_turns`."""
        return self._agents.earlier_turns

    async def close(self) -> None:
        """See `Agent.close`."""
        if not self._borrowed:
            await self._store.close()
        self._agents.remove_session(self)


class SingleAgentSession(Session):
    """One agent is run."""

    missing = metadata.AGENT_MISSING

    def _create_own_agents(self, blueprint: Blueprint) -> AgentGraph:
        from .agents import build_agent

        return build_agent(blueprint)


class AgentTeamSession(Session):
    """A team is run: its leader has tools of its own and members to delegate to."""

    missing = metadata.TEAM_MISSING
    protocols = metadata.TEAM_PROTOCOLS

    def _create_own_agents(self, blueprint: Blueprint) -> AgentGraph:
        from .agents import build_team

        return build_team(blueprint)
