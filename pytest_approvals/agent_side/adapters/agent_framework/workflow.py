"""One session: a workflow around an agent, which asks the caller and is kept in checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ...contract import Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported
from ...contract.agent import Agent, World
from ...kit.context import use_world
from . import metadata

if TYPE_CHECKING:
    from .agents import AgentGraph

WORKFLOW_NAME = "approvals"
"""The name of every workflow, by which a storage knows its checkpoints."""


class WorkflowSession(Agent):
    """
    A workflow whose one executor is the agent.

    Requests are the workflow's, answers go by their ids, and a checkpoint is written at each step. As the documentation
    has it, a checkpoint is taken up by a run that names it, together with the answers or before the next message.
    """

    framework = metadata.FRAMEWORK
    wire_rules = "chat"
    issues = metadata.ISSUES
    stores = metadata.CHECKPOINTS
    packages = metadata.PACKAGES
    protocols = metadata.PROTOCOLS
    connects = True
    capabilities = metadata.claimed(metadata.WORKFLOW_MISSING, metadata.CHECKPOINTS)
    missing = metadata.WORKFLOW_MISSING

    def __init__(self, world: World, blueprint: Blueprint, *, beside: WorkflowSession | None = None) -> None:
        super().__init__(world, blueprint)
        if blueprint.attachment is not None:
            raise Unsupported("attach", "an agent is attached by itself, without the workflow that runs it")
        from .agents import build_agents

        self._crew: AgentGraph = beside._crew if beside else build_agents(blueprint)
        self._place = uuid4().hex
        self._storage = self._opened()
        self._workflow = self._built()
        self._checkpoint: str | None = None

    def _built(self) -> Any:
        from agent_framework import AgentExecutor, WorkflowBuilder

        executor = AgentExecutor(self._crew.main)
        return WorkflowBuilder(name=WORKFLOW_NAME, start_executor=executor, checkpoint_storage=self._storage).build()

    def _opened(self) -> Any:
        from agent_framework import FileCheckpointStorage, InMemoryCheckpointStorage

        if self.blueprint.serialize == "native.file":
            return FileCheckpointStorage(os.path.join(self.blueprint.directory, self._place))
        return InMemoryCheckpointStorage()

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        runs = await self._runs(text, decisions)
        with use_world(self.world):
            async with self._crew.connected():
                for given in runs:
                    result, said = await (self._streamed(given) if stream else self._run(given))
        if stream:
            self.world.shown("end")
        return await self._outcome(result, said)

    async def _runs(self, text: str | None, decisions: Sequence[Decision]) -> list[dict[str, Any]]:
        """Gives the arguments of the run calls: a message, answers by ids, or a checkpoint to go on from."""
        if text is not None and decisions:
            raise Unsupported("message_with_answers", metadata.WORKFLOW_MISSING["message_with_answers"])
        if text is None and not decisions:
            newest, self._checkpoint = await self._newest(), None
            return [{"checkpoint_id": newest.checkpoint_id if newest is not None else None}]
        checkpoint, self._checkpoint = self._checkpoint, None
        if text is None:
            answers = {_request_id(decision): _write_decision(decision) for decision in decisions}
            return [{"responses": answers, "checkpoint_id": checkpoint}]
        taken_up = [{"checkpoint_id": checkpoint}] if checkpoint is not None else []
        return [*taken_up, {"message": text}]

    async def _run(self, given: Mapping[str, Any]) -> tuple[Any, str]:
        result = await self._workflow.run(**given)
        return result, _assistant_text(message for output in result.get_outputs() for message in output.messages)

    async def _streamed(self, given: Mapping[str, Any]) -> tuple[Any, str]:
        from agent_framework import AgentResponse

        from .messages import StreamReader

        shown, updates = StreamReader(self.blueprint.answer), []
        stream = self._workflow.run(stream=True, **given)
        async for event in stream:
            if event.type == "request_info":
                self.world.shown("request", id=event.request_id)
            elif event.type == "output":
                updates.append(event.data)
                for what, told in shown.seen(event.data):
                    if what != "request":
                        self.world.shown(what, **told)
        return await stream.get_final_response(), _assistant_text(AgentResponse.from_updates(updates).messages)

    async def _outcome(self, result: Any, said: str) -> Outcome:
        from agent_framework import WorkflowRunState

        if result.get_final_state() != WorkflowRunState.IDLE_WITH_PENDING_REQUESTS:
            return Finished(output=said)
        return Paused(requests=tuple(await self.pending()), text=said or None)

    # --- state --------------------------------------------------------------------------------------------------------

    async def pending(self) -> Sequence[Request]:
        """Lists the requests of the newest checkpoint, or of the one that was loaded."""
        newest = await self._newest()
        waiting = newest.pending_request_info_events.values() if newest is not None else ()
        return _read_requests(waiting, self.tools())

    async def _newest(self) -> Any:
        if self._checkpoint is not None:
            return await self._storage.load(self._checkpoint)
        return await self._storage.get_latest(workflow_name=WORKFLOW_NAME)

    async def dump(self) -> str:
        """Gives where the newest checkpoint is, and its id."""
        if self.blueprint.serialize != "native.file":
            raise Unsupported("serialize.json", metadata.WORKFLOW_MISSING["serialize.json"])
        newest = await self._newest()
        return f"{self._place}/{newest.checkpoint_id if newest is not None else ''}"

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        self._place, _, checkpoint = parts[-1].partition("/")
        self._checkpoint = checkpoint or None
        self._storage = self._opened()
        self._workflow = self._built()

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        assert isinstance(other, WorkflowSession)
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


def _assistant_text(messages: Iterable[Any]) -> str:
    return "".join(message.text for message in messages if message.role == "assistant")


def _request_id(decision: Decision) -> Any:
    return decision.request.id if decision.request is not None else decision.address


def _write_decision(decision: Decision) -> Any:
    from .requests import write_plain

    return decision.raw if decision.verdict == "raw" else write_plain(decision)


def _read_requests(events: Any, specs: Sequence[ToolSpec]) -> tuple[Request, ...]:
    from dataclasses import replace

    from .requests import add_servers, read_request

    return add_servers((replace(read_request(event.data), id=event.request_id) for event in events), specs)
