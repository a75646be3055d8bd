"""One session: an agent, the run that it is in, and the questions that this run waits for.

An approval function waits inside of the run. So a run lives in a task of its own; a turn begins one or answers its
questions, and ends where all that the run works on waits for a person, or where the run ends.

The flavour of the approvals that the framework has: the `approval_func` of `CodeExecutorAgent`.

A coder writes code and an executor runs it, as the documentation of `CodeExecutorAgent` has it for a team. Code has
neither call ids nor tools: a call is a line of code here, which names the tool, its arguments and, in a comment, the
id that the scenario gives it.

The flavour without AgentChat: tools behind a `ToolAgent`, and an intervention handler in front of it.

As the cookbook "User Approval for Tool Execution using Intervention Handler" has it, the handler sees each call as a
message, and raises a `ToolException` where a person refuses it. What the caller keeps is the conversation that
`tool_agent_caller_loop` is given, and what it returns.
"""

from __future__ import annotations

import asyncio
import copy
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ...contract import MAIN, Blueprint, Decision, Finished, Outcome, Paused, Request, Unsupported
from ...contract.agent import Agent, World
from . import metadata
from .progress import RunProgress

if TYPE_CHECKING:
    from .agents import AgentGraph, GateFactory
    from .attach import AttachedAgents
    from .requests import ToolApprovalRequest, ToolApprovalResult


EVENT_HOPS = 30
"""How many turns of the loop an event may take from a tool to the consumer of the stream, through two agents."""


@dataclass(slots=True, kw_only=True)
class Question:
    """What a run waits for, and where it gets the answer."""

    request: ToolApprovalRequest
    answer: asyncio.Future[ToolApprovalResult]


class Session(Agent):
    """A session of an `AssistantAgent`; flavours differ in where the approval functions stand."""

    framework = "autogen-agentchat"
    wire_rules = "chat"
    issues = metadata.ISSUES
    packages = ("autogen_agentchat", "autogen_core", "autogen_ext")
    connects = True
    teamed: ClassVar[bool] = False
    hops: ClassVar[int] = EVENT_HOPS

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._moved = asyncio.Event()
        self._work = RunProgress(self._moved.set)
        self._crew = self._crew_of(blueprint)
        self._questions: dict[str, Question] = {}
        self._carried: list[ToolApprovalRequest] = []
        self._window: int | None = None
        self._task: asyncio.Task[Any] | None = None
        self._token: Any = None
        self._ends = asyncio.Lock()

    @abstractmethod
    def _crew_of(self, blueprint: Blueprint) -> Any:
        """What runs: agents with gates around their tools, a person's own agent, a team."""

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        if text is not None and decisions:
            self._claims("message_with_answers")
        self._expected(decisions)
        if text is not None:
            if self._task is not None:
                self._claims("message_while_pending")
            await self._given_up()
            self._carried = []
            self._begin(lambda token: self._run(text, token, stream=stream))
        elif self._task is None:
            self._begin(lambda token: self._gone_on(token, stream=stream))
            if decisions and self._task is not None:
                await self._standing(self._task)
        self._answered(decisions)
        return await self._outcome()

    def _expected(self, decisions: Sequence[Decision]) -> None:
        """Refuses an answer that nothing waits for."""
        waiting = {request.request_id for request in self._asked()}
        for decision in decisions:
            if decision.request is None or decision.request.id not in waiting:
                raise LookupError("no approval function waits for this answer")

    def _asked(self) -> list[ToolApprovalRequest]:
        """Gives what a person was asked and has not answered."""
        asked = [question.request for question in self._questions.values() if not question.answer.done()]
        return asked or self._carried

    def _begin(self, run: Callable[[Any], Awaitable[Any]]) -> None:
        from autogen_core import CancellationToken

        self._token = CancellationToken()
        self._task = asyncio.create_task(self._worked(run(self._token)))

    async def _worked(self, run: Awaitable[Any]) -> Any:
        try:
            with self._work.begun():
                return await run
        finally:
            self._unasked()

    def _unasked(self) -> None:
        """Takes back what nobody waits for any more; what the framework had started for its calls waits on its own."""
        for question in list(self._questions.values()):
            question.answer.cancel()

    async def _run(self, text: str | None, token: Any, *, stream: bool) -> Any:
        agent = self._crew.main(stream=stream)
        while True:
            result = await self._ran(agent, text, token, stream=stream)
            # Before 0.6.2 an agent stops after its tools, and is run again to go on.
            if self._crew.goes_on or type(result.messages[-1]).__name__ != "ToolCallSummaryMessage":
                return result
            text = None

    async def _ran(self, agent: Any, text: str | None, token: Any, *, stream: bool) -> Any:
        if not stream:
            return await agent.run(task=text, cancellation_token=token, **self._crew.options)
        result = None
        async for event in agent.run_stream(task=text, cancellation_token=token, **self._crew.options):
            self._see(event)
            result = event
        self.world.shown("end")
        return result

    def _see(self, event: Any) -> None:
        from .messages import read_event

        for what, told in read_event(event, answers=bool(self.blueprint.answer)):
            self.world.shown(what, **told)

    async def _gone_on(self, token: Any, *, stream: bool) -> Any:
        from .state import finish_calls, unfinished_calls

        for name in self._crew.speakers:
            context = self._crew.context(name)
            if calls := await unfinished_calls(context):
                benches = self._crew.benches(name, stream=stream)
                self._work.expect(await self._crew.reaching(calls, benches))
                await finish_calls(calls, benches, context, token, self._see if stream else lambda _: None)
        self._carried = []
        return await self._run(None, token, stream=stream)

    async def _standing(self, task: asyncio.Task[Any]) -> bool:
        """Waits until the run waits for a person, or has ended; says whether it waits."""
        task.add_done_callback(lambda _: self._moved.set())
        while not task.done():
            self._moved.clear()
            if self._work.blocked() and await self._still(task):
                return True
            if not task.done():
                await self._moved.wait()
        return False

    async def _still(self, task: asyncio.Task[Any]) -> bool:
        """Lets what was shown arrive; says whether the run still waits after that."""
        for _ in range(self.hops):
            await asyncio.sleep(0)
        return self._work.blocked() and not task.done()

    async def _outcome(self) -> Outcome:
        task = self._task
        assert task is not None
        # Two turns of one run end in the order in which they began.
        async with self._ends:
            if await self._standing(task):
                return Paused(requests=tuple(await self.pending()), text=await self._said())
            if self._task is task:
                self._task = None
            return Finished(output=self._output(await task))

    def _output(self, result: Any) -> Any:
        content: Any = getattr(result.messages[-1], "content", None)
        return content.model_dump() if hasattr(content, "model_dump") else content

    async def _said(self) -> str | None:
        messages = await self._crew.context(MAIN).get_messages()
        return getattr(messages[-1], "thought", None) if messages else None

    # --- questions ----------------------------------------------------------------------------------------------------

    async def ask(self, request: ToolApprovalRequest, emit: Callable[[Any], None]) -> ToolApprovalResult:
        """Asks a person: the approval function of gated tools."""
        from .requests import ToolApprovalRequestEvent, ToolApprovalResultEvent

        request = self._known(request)
        question = Question(request=request, answer=asyncio.Future())
        emit(ToolApprovalRequestEvent(source=request.agent, content=request))
        self._questions[request.request_id] = question
        try:
            with self._work.waiting():
                result = await question.answer
        finally:
            del self._questions[request.request_id]
        emit(ToolApprovalResultEvent(source=request.agent, content=result, request_id=request.request_id))
        return result

    def _known(self, request: ToolApprovalRequest) -> ToolApprovalRequest:
        """Gives a request the id under which the person was asked before the state was saved."""
        before = self.asked_before(request)
        if before is None:
            return request
        self._carried.remove(before)
        return request.model_copy(update={"request_id": before.request_id})

    def asked_before(self, request: ToolApprovalRequest) -> ToolApprovalRequest | None:
        """
        Gives what a person was asked about the same call before the state was saved.

        Errors:
            ValueError: They were shown other arguments, because what was saved has been changed.
        """
        before = next((one for one in self._carried if one.is_about(request)), None)
        if before is not None and before.arguments != request.arguments:
            raise ValueError(f"{request.tool} was shown with {before.arguments}, and asks for {request.arguments}")
        return before

    def _answered(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            # What was asked before a restart is not asked again where its tool is gone.
            question = self._questions.get(decision.request.id) if decision.request is not None else None
            if question is not None:
                question.answer.set_result(self._result(decision))

    def _result(self, decision: Decision) -> ToolApprovalResult:
        """Gives a decision as the approval function returns it."""
        from .requests import write_decision

        return write_decision(decision)

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        from .requests import read_request

        return [read_request(request, self._crew.tools()) for request in self._asked()]

    # --- ends ---------------------------------------------------------------------------------------------------------

    async def _given_up(self) -> None:
        """Stops a run that waits, as a task is stopped."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        self._unasked()
        if task is not None:
            await asyncio.wait({task})

    async def cancel(self) -> None:
        """Cancels the run with its `CancellationToken`."""
        self._carried = []
        if self._task is None:
            return
        self._token.cancel()
        await asyncio.wait({self._task})
        self._task = None

    async def trim(self, keep: int) -> None:
        """See `Agent.trim`."""
        self._claims("trim")
        self._window = keep
        self._crew.trim(MAIN, keep)

    # --- state --------------------------------------------------------------------------------------------------------

    async def dump(self) -> str:
        """Gives the agent's own state and the open requests; see `state`."""
        self._claims("serialize.json")
        from .state import dump_state

        return dump_state(await self._saved(), self._asked(), self._window)

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        self._claims("serialize.json")
        from .state import load_state

        state, self._carried, window = load_state(parts[-1])
        await self._loaded(state, window)

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        self._claims("serialize.copy")
        assert isinstance(other, Session)
        self._carried = copy.deepcopy(other._asked())
        await self._loaded(copy.deepcopy(await other._saved()), other._window)

    async def _loaded(self, state: Any, window: int | None) -> None:
        await self._crew.main(stream=False).load_state(state)
        if window is not None:
            # The size of a buffered context is not in the state: who restores an agent makes it as it was made.
            await self.trim(window)

    def _claims(self, capability: str) -> None:
        if capability in self.missing:
            raise Unsupported(capability, self.missing[capability])

    async def _saved(self) -> Any:
        return await self._crew.main(stream=False).save_state()

    def tools(self) -> Any:
        """See `Agent.tools`."""
        return self._crew.tools()

    async def close(self) -> None:
        """See `Agent.close`."""
        task, self._task = self._task, None
        self._unasked()
        # A team waits for its agents, and one that hangs never lets it go: it is told twice.
        for _ in range(2):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=0.05)
        await self._crew.close()


class GatedSession(Session):
    """Approval functions stand around the tools of agents."""

    protocols = metadata.PROTOCOLS

    def _crew_of(self, blueprint: Blueprint) -> AgentGraph | AttachedAgents:
        if blueprint.attachment is not None:
            from .attach import AttachedAgents

            return AttachedAgents(blueprint.attachment, self.world, self.ask, self._work)
        from .agents import AgentGraph

        return AgentGraph(
            world=self.world,
            blueprint=blueprint,
            ask=self.ask,
            asked=self.asked_before,
            gate=self._gate(),
            work=self._work,
            teamed=self.teamed,
        )

    @abstractmethod
    def _gate(self) -> GateFactory:
        """Where the approval functions stand."""


class WorkbenchSession(GatedSession):
    """The approval functions stand around a workbench."""

    capabilities = metadata.claimed(metadata.MISSING)
    missing = metadata.MISSING

    def _gate(self) -> GateFactory:
        from .agents import build_gated_workbench

        return build_gated_workbench


class ToolSession(GatedSession):
    """The approval functions stand around each tool."""

    capabilities = metadata.claimed(metadata.MISSING)
    missing = metadata.MISSING

    def _gate(self) -> GateFactory:
        from .agents import build_gated_tools

        return build_gated_tools


class SwarmSession(WorkbenchSession):
    """The caller talks to a `Swarm`, whose agents hand the conversation over."""

    protocols = metadata.SWARM_PROTOCOLS
    capabilities = metadata.claimed(metadata.SWARM_MISSING)
    missing = metadata.SWARM_MISSING
    teamed = True
    hops = 10 * EVENT_HOPS


class CodeExecutorSession(Session):
    """A team of a coder and an executor, which asks an approval function before it runs code."""

    capabilities = metadata.claimed(metadata.CODE_MISSING)
    missing = metadata.CODE_MISSING
    wire_rules = "none"
    hops = 10 * EVENT_HOPS

    def _crew_of(self, blueprint: Any) -> Any:
        from .code_execution import CodingTeam

        return CodingTeam(self.world, blueprint, self.approve)

    async def approve(self, asked: Any) -> Any:
        """Asks a person about code: the `approval_func` of the executor."""
        from autogen_agentchat.agents import ApprovalResponse

        from .code_execution import read_call
        from .requests import ToolApprovalRequest

        call = read_call(asked.code)
        with self._work.entered(call.id, call.tool):
            crew: Any = self._crew
            if not await crew.gated(call):
                return ApprovalResponse(approved=True, reason="")
            request = ToolApprovalRequest(agent=MAIN, tool=call.tool, arguments=call.arguments, call_id=call.id)
            question = Question(request=request, answer=asyncio.Future())
            self._questions[request.request_id] = question
            try:
                with self._work.waiting():
                    return await question.answer
            finally:
                del self._questions[request.request_id]

    def _result(self, decision: Decision) -> Any:
        from autogen_agentchat.agents import ApprovalResponse

        return ApprovalResponse(approved=decision.verdict == "approve", reason=decision.reason or "")


TOOL_AGENT_TYPE = "tools"
"""The agent type that runs tools."""


class InterventionSession(GatedSession):
    """An intervention handler asks about each message to the agent that runs the tools."""

    capabilities = metadata.claimed(metadata.INTERVENTION_MISSING)
    missing = metadata.INTERVENTION_MISSING

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        if blueprint.attachment is not None:
            raise Unsupported(
                "attach", "a loop of autogen-core is a person's own code, with no agent object to hand over"
            )
        super().__init__(world, blueprint)
        self._runtime: Any = None
        self._history: list[Any] = []

    def _gate(self) -> GateFactory:
        from .agents import build_gated_tools

        return build_gated_tools

    async def _run(self, text: str | None, token: Any, *, stream: bool) -> Any:
        from autogen_core import AgentId
        from autogen_core.models import UserMessage
        from autogen_core.tool_agent import tool_agent_caller_loop

        from .model import build_model

        if text is not None:
            self._history.append(UserMessage(content=text, source="user"))
        runtime, tools = await self._ready()
        model = build_model(self.world, MAIN, self.blueprint.model)
        said = await tool_agent_caller_loop(
            runtime, AgentId(TOOL_AGENT_TYPE, "default"), model, list(self._history), tools, token
        )
        self._history += said
        if self.blueprint.options.get("settles"):
            await runtime.stop_when_idle()
            self._runtime = None
        return said[-1].content

    async def _gone_on(self, token: Any, *, stream: bool) -> Any:
        return await self._run(None, token, stream=stream)

    async def _ready(self) -> tuple[Any, list[Any]]:
        from autogen_core import SingleThreadedAgentRuntime
        from autogen_core.tool_agent import ToolAgent

        from .agents import AgentGraph
        from .gates import ApprovalHandler

        crew = self._crew
        assert isinstance(crew, AgentGraph)
        specs = [spec for spec in self.blueprint.tools if spec.agent == MAIN]
        tools = crew.working(specs)
        if self._runtime is None:
            handler = ApprovalHandler(crew.approvals(MAIN, specs), self._work, self.blueprint.options)
            self._runtime = SingleThreadedAgentRuntime(intervention_handlers=[handler])
            await ToolAgent.register(self._runtime, TOOL_AGENT_TYPE, lambda: ToolAgent("Runs tools.", list(tools)))
            self._runtime.start()
        return self._runtime, tools

    async def _said(self) -> str | None:
        return None

    def _output(self, result: Any) -> Any:
        return result

    def _result(self, decision: Decision) -> Any:
        from .gates import write_handler_decision

        return write_handler_decision(decision)

    async def close(self) -> None:
        """See `Agent.close`."""
        await super().close()
        runtime, self._runtime = self._runtime, None
        if runtime is not None:
            # A loop that died with its handler, or still waits for it, does not stop.
            await asyncio.wait({asyncio.create_task(_stop_runtime(runtime))}, timeout=0.2)


async def _stop_runtime(runtime: Any) -> None:
    with suppress(Exception):
        await runtime.stop()
