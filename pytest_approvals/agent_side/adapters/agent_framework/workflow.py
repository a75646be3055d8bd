"""One session: a workflow around an agent, which asks the caller and is kept in checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from ...contract import Agent, Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported, World
from . import facts
from .current import recorded_by

if TYPE_CHECKING:
    from .crew import Crew

NAME = "approvals"
"""The name of every workflow, by which a storage knows its checkpoints."""


class Workflow(Agent):
    """
    A workflow whose one executor is the agent.

    Requests are the workflow's, answers go by their ids, and a checkpoint is written at each step. As the documentation
    has it, a checkpoint is taken up by a run that names it, together with the answers or before the next message.
    """

    framework = facts.FRAMEWORK
    wire_rules = "chat"
    issues = facts.ISSUES
    stores = facts.CHECKPOINTS
    packages = facts.PACKAGES
    capabilities = facts.claimed(facts.WORKFLOW_MISSING, facts.CHECKPOINTS)
    missing = facts.WORKFLOW_MISSING

    def __init__(self, world: World, blueprint: Blueprint, *, beside: Workflow | None = None) -> None:
        super().__init__(world, blueprint)
        if blueprint.attachment is not None:
            raise Unsupported("attach", "an agent is attached by itself, without the workflow that runs it")
        from .crew import made_crew

        self._crew: Crew = beside._crew if beside else made_crew(blueprint)
        self._storage = self._opened()
        self._workflow = self._built()
        self._checkpoint: str | None = None

    def _built(self) -> Any:
        from agent_framework import AgentExecutor, WorkflowBuilder

        executor = AgentExecutor(self._crew.main)
        return WorkflowBuilder(name=NAME, start_executor=executor, checkpoint_storage=self._storage).build()

    def _opened(self) -> Any:
        from agent_framework import FileCheckpointStorage, InMemoryCheckpointStorage

        if self.blueprint.serialize == "native.file":
            return FileCheckpointStorage(self.blueprint.directory)
        return InMemoryCheckpointStorage()

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        given = _given(text, decisions)
        with recorded_by(self.world):
            if self._checkpoint is not None and "responses" in given:
                given["checkpoint_id"], self._checkpoint = self._checkpoint, None
            await self._taken_up()
            return await (self._streamed(given) if stream else self._run(given))

    async def _taken_up(self) -> None:
        """Takes up the checkpoint that was loaded, which runs nothing."""
        checkpoint, self._checkpoint = self._checkpoint, None
        if checkpoint is not None:
            await self._workflow.run(checkpoint_id=checkpoint)

    async def _run(self, given: Mapping[str, Any]) -> Outcome:
        result = await self._workflow.run(**given)
        messages = [message for output in result.get_outputs() for message in output.messages]
        return _outcome(result, "".join(message.text for message in messages if message.role == "assistant"))

    async def _streamed(self, given: Mapping[str, Any]) -> Outcome:
        from .streaming import Shown

        shown, said = Shown(self.blueprint.answer), []
        stream = self._workflow.run(stream=True, **given)
        async for event in stream:
            if event.type == "request_info":
                self.world.shown("request", id=event.request_id)
            elif event.type == "output":
                said.append(event.data.text if event.data.role == "assistant" else "")
                for what, told in shown.seen(event.data):
                    if what != "request":
                        self.world.shown(what, **told)
        result = await stream.get_final_response()
        self.world.shown("end")
        return _outcome(result, "".join(said))

    # --- state --------------------------------------------------------------------------------------------------------

    async def pending(self) -> Sequence[Request]:
        """Lists the requests of the newest checkpoint, or of the one that was loaded."""
        newest = await self._newest()
        return _requests(newest.pending_request_info_events.values()) if newest is not None else ()

    async def _newest(self) -> Any:
        if self._checkpoint is not None:
            return await self._storage.load(self._checkpoint)
        return await self._storage.get_latest(workflow_name=NAME)

    async def dump(self) -> str:
        """Gives the id of the newest checkpoint."""
        if self.blueprint.serialize != "native.file":
            raise Unsupported("serialize.json", facts.WORKFLOW_MISSING["serialize.json"])
        newest = await self._newest()
        return newest.checkpoint_id if newest is not None else ""

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        self._checkpoint = parts[-1] or None

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        assert isinstance(other, Workflow)
        self._storage = deepcopy(other._storage)
        self._workflow = self._built()
        newest = await other._newest()
        self._checkpoint = newest.checkpoint_id if newest is not None else None

    async def another_session(self, world: World) -> Agent:
        """Gives another workflow around the same agent."""
        return type(self)(world, self.blueprint, beside=self)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._crew.tools


def _given(text: str | None, decisions: Sequence[Decision]) -> dict[str, Any]:
    """Gives the arguments of the run call: a message, or answers by the ids of requests."""
    if text is not None and decisions:
        raise Unsupported("message_with_answers", facts.WORKFLOW_MISSING["message_with_answers"])
    if text is not None:
        return {"message": text}
    return {"responses": {_address(decision): _answer(decision) for decision in decisions}}


def _address(decision: Decision) -> Any:
    return decision.request.id if decision.request is not None else decision.address


def _answer(decision: Decision) -> Any:
    from .answers import plain

    return decision.raw if decision.verdict == "raw" else plain(decision)


def _outcome(result: Any, said: str) -> Outcome:
    requests = _requests(result.get_request_info_events())
    return Paused(requests=requests, text=said or None) if requests else Finished(output=said)


def _requests(events: Any) -> tuple[Request, ...]:
    from dataclasses import replace

    from .requests import request_of

    return tuple(replace(request_of(event.data), id=event.request_id) for event in events)
