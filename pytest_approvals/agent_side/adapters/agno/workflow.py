"""Attached workflows: the agents and teams of their steps, whose requests surface with the pauses of the workflow."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from inspect import iscoroutine
from types import SimpleNamespace
from typing import Any

from agno.agent import Agent
from agno.run.requirement import RunRequirement
from agno.team import Team
from agno.workflow import Workflow

from ...contract import Unsupported

_OWN_PAUSES = (
    "requires_confirmation",
    "requires_user_input",
    "requires_route_selection",
    "requires_output_review",
)
"""Marks of the pauses of a step itself."""


class DrivenWorkflow:
    """A workflow with the interface of an agent, as far as a session needs it.

    The caller keeps the output of a paused run, and continues with it, as the documentation does. A decision goes to
    the requirement of the agent or team that a step runs.

    Args:
        workflow: The user's workflow.
        names: The names of the agents of its steps, by the identity of the agent.
    """

    output_schema = None
    add_history_to_context = False
    num_history_messages: int | None = None
    num_history_runs: int | None = None

    def __init__(self, workflow: Workflow, names: dict[int, str]) -> None:
        self._workflow = workflow
        self._names = {str(agent.id): names[id(agent)] for agent in list_executors(workflow)}
        self._outputs: dict[str, Any] = {}
        self.id: str | None = workflow.id

    @property
    def db(self) -> Any:
        """The database, without which the framework continues nothing."""
        return self._workflow.db

    @db.setter
    def db(self, db: Any) -> None:
        self._workflow.db = db

    def arun(self, *, input: str, session_id: str, stream: bool = False, **options: Any) -> Any:
        """Run the workflow."""
        options = {"input": input, "session_id": session_id, **_without_events(options)}
        return self._stream(self._workflow.arun, options) if stream else self._run(self._workflow.arun, options)

    def acontinue_run(
        self,
        *,
        run_id: str,
        session_id: str,
        requirements: Sequence[RunRequirement] = (),
        stream: bool = False,
        **options: Any,
    ) -> Any:
        """Continue a paused run with decisions."""
        output = self._outputs[run_id]
        decided = {requirement.id: requirement for requirement in requirements}
        for step in output.step_requirements or ():
            step.executor_requirements = [
                decided.get(each.id, each) for each in map(_read_requirement, step.executor_requirements or ())
            ]
        options = {"run_response": output, "session_id": session_id, **_without_events(options)}
        call = self._workflow.acontinue_run
        return self._stream(call, options) if stream else self._run(call, options)

    async def acancel_run(self, run_id: str) -> None:
        """Cancel a run."""
        await self._workflow.acancel_run(run_id)

    def list_runs(self, session_id: str) -> list[Any]:
        """Return the runs of a session, as a session of an agent reads them."""
        return [self._present(output) for output in self._outputs.values() if output.session_id == session_id]

    async def _run(self, call: Any, options: dict[str, Any]) -> Any:
        return self._keep(await call(**options))

    async def _stream(self, call: Any, options: dict[str, Any]) -> AsyncIterator[Any]:
        run_id = None
        events = call(**options, stream=True, stream_events=True)
        # One of the two methods is a coroutine.
        async for event in await events if iscoroutine(events) else events:
            if hasattr(event, "workflow_id"):
                run_id = event.run_id if getattr(event, "workflow_run_id", None) is None else event.workflow_run_id
            if hasattr(event, "agent_id") or hasattr(event, "team_id"):
                yield event
        output = self._keep(await self._workflow.aget_run_output(run_id, options["session_id"]))
        kind = "RunPaused" if output.is_paused else "RunCompleted"
        yield SimpleNamespace(**vars(output), event=kind, agent_id=self.id)
        yield output

    def _keep(self, output: Any) -> Any:
        self._outputs[output.run_id] = output
        return self._present(output)

    def _present(self, output: Any) -> SimpleNamespace:
        return SimpleNamespace(
            run_id=output.run_id,
            parent_run_id=None,
            status=output.status,
            is_paused=output.is_paused,
            requirements=list(self._list_requirements(output)) if output.is_paused else [],
            content=output.content,
            messages=None,
        )

    def _list_requirements(self, output: Any) -> Iterator[RunRequirement]:
        for step in output.active_step_requirements:
            if not step.requires_executor_input or any(getattr(step, name, False) for name in _OWN_PAUSES):
                raise Unsupported(
                    "attach", f"the step {step.step_name!r} asks by itself, and not about a call of a tool"
                )
            for requirement in map(_read_requirement, step.executor_requirements or ()):
                if requirement.member_agent_id is None:
                    requirement.member_agent_id = self._names.get(str(step.executor_id))
                yield requirement


def list_executors(workflow: Workflow) -> list[Any]:
    """Return the agents and teams that the steps of a workflow run, in their order, each once."""
    found = {id(each): each for each in _walk(workflow.steps)}
    return list(found.values())


def _walk(step: Any) -> Iterator[Any]:
    if isinstance(step, (Agent, Team)):
        yield step
    elif isinstance(step, (list, tuple)):
        for each in step:
            yield from _walk(each)
    elif step is not None:
        for name in ("agent", "team", "steps", "else_steps", "choices"):
            yield from _walk(getattr(step, name, None))


def _read_requirement(written: Any) -> RunRequirement:
    return RunRequirement.from_dict(written) if isinstance(written, dict) else written


def _without_events(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in ("stream_events", "yield_run_output")}
