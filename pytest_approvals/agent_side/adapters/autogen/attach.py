"""
A person's own agent: probes around its workbenches, and the scripted model in place of its own.

An `AssistantAgent` takes its model and its workbenches where it is made and offers no way to put others in their place,
so that they are put into the agent itself, and taken out again at the end. Its agents behind `AgentTool` are reached
through the tools of its workbenches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from autogen_core import CancellationToken
from autogen_core.tools import ToolResult, Workbench

from ...contract import MAIN, Attachment, Parameter, ToolSpec, Unsupported
from ...contract.agent import World
from .agents import calls_reaching_tools
from .gates import ApprovingWorkbench, call_id_option, text_result
from .model import ScriptedClient
from .progress import RunProgress
from .requests import ApprovalFunction, Approvals


class AttachedAgents:
    """
    The agents that a person's own agent consists of, probed; it stands in the place of a `Crew`.

    Attributes:
        speakers: The agents that the conversation can be handed over to.
        goes_on: Whether an agent goes on after its tools ran is the person's choice.
        options: Keyword arguments for the framework's run calls.
    """

    speakers: Sequence[str] = (MAIN,)
    goes_on = True

    def __init__(self, attachment: Attachment, world: World, ask: ApprovalFunction, work: RunProgress) -> None:
        self._world = world
        self._ask = ask
        self._work = work
        self._stubs = attachment.stubs
        self._gated = attachment.gated or frozenset()
        self.options: Mapping[str, Any] = attachment.run_options
        self._main = _resolve_subject(attachment.subject, ScriptedClient(world, MAIN, work.expect))
        self._undo: list[Callable[[], None]] = []
        self._specs: list[ToolSpec] = []
        for agent, label in list(_walk_agents(self._main, MAIN)):
            self._specs += [_to_spec(tool, label, self._gated) for tool in _iterate_tools(agent)]
            self._probe(agent, label)

    def _probe(self, agent: Any, label: str) -> None:
        asking = {spec.name: self._ask for spec in self._specs if spec.agent == label and spec.approval == "always"}
        approvals = Approvals(agent=label, tools=asking, context=self._context(agent).get_messages)
        before = agent._model_client, agent._workbench
        agent._model_client = ScriptedClient(self._world, label, self._work.expect)
        agent._workbench = [
            ProbedWorkbench(bench, label, approvals, self._work, self._world, self._stubs) for bench in agent._workbench
        ]

        def undo() -> None:
            agent._model_client, agent._workbench = before

        self._undo.append(undo)

    def _context(self, agent: Any) -> Any:
        return agent.model_context

    def main(self, *, stream: bool) -> Any:
        """Gives the agent; whether its model streams is the person's choice."""
        return self._main

    def context(self, name: str) -> Any:
        """Gives the conversation of the agent."""
        return self._context(self._main)

    def benches(self, name: str, *, stream: bool) -> Sequence[Any]:
        """Gives the workbenches of the agent."""
        benches: Sequence[Any] = self._main._workbench
        return benches

    async def reaching(self, calls: Sequence[Any], benches: Sequence[Any]) -> list[tuple[str, str]]:
        """Gives those of *calls* that a tool will be given."""
        return await calls_reaching_tools(calls, benches)

    def tools(self) -> tuple[ToolSpec, ...]:
        """Gives the tools that were found."""
        return tuple(self._specs)

    def trim(self, name: str, keep: int) -> None:
        """How a person's own agent trims is the person's choice."""
        raise Unsupported("trim", "the context of a person's own agent is made with its size")

    async def close(self) -> None:
        """Takes the probes out."""
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()


class ProbedWorkbench(ApprovingWorkbench):
    """A person's workbench whose calls are asked about, and run in the world."""

    def __init__(
        self,
        inner: Workbench,
        agent: str,
        approvals: Approvals,
        work: RunProgress,
        world: World,
        stubs: frozenset[str],
    ) -> None:
        super().__init__(inner, approvals, work)
        self._agent = agent
        self._world = world
        self._stubs = stubs

    async def run_approved(
        self, name: str, arguments: Mapping[str, Any] | None, token: CancellationToken | None, call_id: str | None
    ) -> ToolResult:
        """See `ApprovingWorkbench.run_approved`."""
        given = arguments or {}
        results: list[ToolResult] = []

        async def real() -> str:
            results.append(await self._inner.call_tool(name, given, token, **call_id_option(call_id)))
            return str(results[0].to_text())

        stubbed = name in self._stubs
        value = await self._world.run(name, given, call_id, agent=self._agent, real=None if stubbed else real)
        return results[0] if results else text_result(name, str(value), failed=False)


# --- finding ----------------------------------------------------------------------------------------------------------


def _resolve_subject(subject: Any, model: ScriptedClient) -> Any:
    agent = subject if hasattr(subject, "run_stream") else subject(model)
    if not hasattr(agent, "_workbench") or not hasattr(agent, "model_context"):
        raise Unsupported("attach", f"{type(agent).__name__} is no AssistantAgent, and shows neither model nor tools")
    return agent


def _iterate_tools(agent: Any) -> Iterator[Any]:
    for bench in agent._workbench:
        # What a server offers is not known before it is asked.
        yield from getattr(bench, "_tools", ())


def _walk_agents(agent: Any, label: str) -> Iterator[tuple[Any, str]]:
    yield agent, label
    for tool in _iterate_tools(agent):
        inner: Any = getattr(tool, "_agent", None)
        if hasattr(inner, "_workbench"):
            yield from _walk_agents(inner, inner.name)


def _to_spec(tool: Any, label: str, gated: frozenset[str]) -> ToolSpec:
    described = tool.schema.get("parameters", {})
    required = described.get("required", ())
    inner = getattr(tool, "_agent", None)
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters={
            name: Parameter(type=_type(one), required=name in required, default=one.get("default"))
            for name, one in described.get("properties", {}).items()
        },
        approval="always" if tool.name in gated else "never",
        agent=label,
        runs=getattr(inner, "name", None),
    )


def _type(schema: Mapping[str, Any]) -> str:
    choices = [schema, *schema.get("anyOf", ())]
    return next((str(one["type"]) for one in choices if one.get("type") not in (None, "null")), "object")
