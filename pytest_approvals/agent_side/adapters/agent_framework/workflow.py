"""Sessions in a workflow around an agent, which asks the caller and saves checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ...contract import Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported
from ...contract.agent import Agent, World
from ...kit.context import use_world
from ...kit.store_check import name_broken_store
from . import metadata

if TYPE_CHECKING:
    from .agents import AgentGraph

WORKFLOW_NAME = "approvals"
"""Name of every workflow, by which a storage finds its checkpoints."""


class WorkflowSession(Agent):
    """A workflow whose one executor is the agent.

    Requests are the workflow's, decisions go by their ids, and a checkpoint is written at each step. As documented, a
    checkpoint is restored by a run that names it, together with the decisions or before the next message.
    """

    framework = metadata.FRAMEWORK
    wire_rules = "chat"
    issues = metadata.ISSUES
    stores = metadata.CHECKPOINTS
    packages = metadata.PACKAGES
    protocols = metadata.PROTOCOLS
    connects = True
    missing = metadata.WORKFLOW_MISSING
    recovery = metadata.WORKFLOW_RECOVERY

    def __init__(self, world: World, blueprint: Blueprint, *, shared_with: WorkflowSession | None = None) -> None:
        super().__init__(world, blueprint)
        if blueprint.attachment is not None:
            raise Unsupported("attach", "an agent is attached by itself, without the workflow that runs it")
        from .agents import build_agents

        self._agents: AgentGraph = shared_with._agents if shared_with else build_agents(blueprint)
        self._place = uuid4().hex
        self._storage = self._open_storage()
        self._workflow = self._build_workflow()
        self._checkpoint: str | None = None

    def _build_workflow(self) -> Any:
        from agent_framework import AgentExecutor, WorkflowBuilder

        executor = AgentExecutor(self._agents.main)
        return WorkflowBuilder(name=WORKFLOW_NAME, start_executor=executor, checkpoint_storage=self._storage).build()

    def _open_storage(self) -> Any:
        from agent_framework import FileCheckpointStorage, InMemoryCheckpointStorage

        if self.blueprint.serialize != "native.file":
            return InMemoryCheckpointStorage()
        folder = os.path.join(self.blueprint.directory, self._place)
        try:
            return FileCheckpointStorage(folder)
        except OSError as error:
            raise name_broken_store(self.blueprint.serialize, f"file:///{folder}", error) from error

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        run_arguments = await self._run_arguments(text, decisions)
        with use_world(self.world):
            async with self._agents.connect():
                for arguments in run_arguments:
                    result, output_text = await (self._stream(arguments) if stream else self._run(arguments))
        if stream:
            self.world.shown("end")
        return await self._build_outcome(result, output_text)

    async def _run_arguments(self, text: str | None, decisions: Sequence[Decision]) -> list[dict[str, Any]]:
        """Return the arguments of the run calls: a message, decisions by id, or a checkpoint."""
        if text is not None and decisions:
            raise Unsupported("message_with_answers", metadata.WORKFLOW_MISSING["message_with_answers"])
        if text is None and not decisions:
            newest, self._checkpoint = await self._load_newest(), None
            return [{"checkpoint_id": newest.checkpoint_id if newest is not None else None}]
        checkpoint, self._checkpoint = self._checkpoint, None
        if text is None:
            responses = {_request_id(decision): _write_decision(decision) for decision in decisions}
            return [{"responses": responses, "checkpoint_id": checkpoint}]
        # `Workflow.run` refuses a message together with a checkpoint, so restoring is a run of its own.
        restore = [{"checkpoint_id": checkpoint}] if checkpoint is not None else []
        return [*restore, {"message": text}]

    async def _run(self, arguments: Mapping[str, Any]) -> tuple[Any, str]:
        result = await self._workflow.run(**arguments)
        return result, _assistant_text(message for output in result.get_outputs() for message in output.messages)

    async def _stream(self, arguments: Mapping[str, Any]) -> tuple[Any, str]:
        from agent_framework import AgentResponse

        from .messages import StreamReader

        reader, updates = StreamReader(self.blueprint.answer), []
        stream = self._workflow.run(stream=True, **arguments)
        async for event in stream:
            if event.type == "request_info":
                self.world.shown("request", id=event.request_id)
            elif event.type == "output":
                updates.append(event.data)
                for kind, values in reader.read_update(event.data):
                    # The request of the workflow is shown above; that of the agent in it is the same question.
                    if kind != "request":
                        self.world.shown(kind, **values)
        return await stream.get_final_response(), _assistant_text(AgentResponse.from_updates(updates).messages)

    async def _build_outcome(self, result: Any, text: str) -> Outcome:
        from agent_framework import WorkflowRunState

        if result.get_final_state() != WorkflowRunState.IDLE_WITH_PENDING_REQUESTS:
            return Finished(output=text)
        return Paused(requests=tuple(await self.pending()), text=text or None)

    # --- state --------------------------------------------------------------------------------------------------------

    async def pending(self) -> Sequence[Request]:
        """Return the requests of the newest checkpoint, or of the one that was loaded."""
        newest = await self._load_newest()
        waiting = newest.pending_request_info_events.values() if newest is not None else ()
        return _read_requests(waiting, self.tools())

    async def _load_newest(self) -> Any:
        if self._checkpoint is not None:
            return await self._storage.load(self._checkpoint)
        return await self._storage.get_latest(workflow_name=WORKFLOW_NAME)

    async def dump(self) -> str:
        """Return the folder and the id of the newest checkpoint."""
        if self.blueprint.serialize != "native.file":
            raise Unsupported("serialize.json", metadata.WORKFLOW_MISSING["serialize.json"])
        newest = await self._load_newest()
        return f"{self._place}/{newest.checkpoint_id if newest is not None else ''}"

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        self._place, _, checkpoint = parts[-1].partition("/")
        self._checkpoint = checkpoint or None
        self._storage = self._open_storage()
        self._workflow = self._build_workflow()

    async def recover(self, parts: Sequence[str]) -> None:
        """See `Agent.recover`; the newest checkpoint may be one that the dead process wrote after the last `dump`."""
        self._place = parts[-1].partition("/")[0]
        self._storage = self._open_storage()
        self._workflow = self._build_workflow()
        newest = await self._load_newest()
        self._checkpoint = newest.checkpoint_id if newest is not None else None

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        assert isinstance(other, WorkflowSession)
        self._storage = deepcopy(other._storage)
        self._workflow = self._build_workflow()
        newest = await other._load_newest()
        self._checkpoint = newest.checkpoint_id if newest is not None else None

    async def another_session(self, world: World) -> Agent:
        """Return another workflow around the same agent."""
        return type(self)(world, self.blueprint, shared_with=self)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._agents.tools


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
