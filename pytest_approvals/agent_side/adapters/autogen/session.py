"""Sessions: an agent, the run that it is in, and the questions that this run waits for.

An approval function waits inside the run. So a run is a task of its own; a turn begins one or answers its questions,
and ends when all that the run works on waits for the user, or when the run ends.
"""

from __future__ import annotations

import asyncio
import copy
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ...contract import MAIN, RENAMED, Blueprint, Decision, Finished, Outcome, Paused, Request, Unsupported
from ...contract.agent import Agent, World
from ...kit.context import use_world
from . import metadata
from .progress import RunProgress

if TYPE_CHECKING:
    from .agents import AgentGraph, GateFactory
    from .attach import AttachedAgents
    from .requests import ToolApprovalRequest, ToolApprovalResult


EVENT_HOPS = 30
"""Iterations of the event loop that an event may need from a tool to the stream's consumer, through two agents."""


@dataclass(slots=True, kw_only=True)
class Question:
    """A request that a run waits for, and the future of its result."""

    request: ToolApprovalRequest
    answer: asyncio.Future[ToolApprovalResult]


class Session(Agent):
    """A session of an `AssistantAgent`; flavours differ in the gate."""

    framework = "autogen-agentchat"
    wire_rules = "chat"
    issues = metadata.ISSUES
    packages = ("autogen_agentchat", "autogen_core", "autogen_ext")
    given_options = ("task", "cancellation_token")
    connects = True
    renames = RENAMED
    is_team: ClassVar[bool] = False
    event_hops: ClassVar[int] = EVENT_HOPS

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._progress = RunProgress()
        self._agents = self._create_agents(blueprint)
        self._questions: dict[str, Question] = {}
        self._restored_requests: list[ToolApprovalRequest] = []
        self._changed_from: dict[tuple[str, str | None], Any] = {}
        self._window: int | None = None
        self._task: asyncio.Task[Any] | None = None
        self._token: Any = None
        self._outcome_lock = asyncio.Lock()
        self._last_message: Any = None

    @abstractmethod
    def _create_agents(self, blueprint: Blueprint) -> Any:
        """Build what runs: agents with gates around their tools, attached agents, or a team."""

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        with use_world(self.world):
            return await self._turn(text, decisions, stream=stream)

    async def _turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if text is not None and decisions:
            self._require("message_with_answers")
        self._check_expected(decisions)
        if text is not None:
            if self._task is not None:
                self._require("message_while_pending")
            await self._stop_run()
            self._restored_requests = []
            self._begin_run(lambda token: self._run(text, token, stream=stream))
        elif self._task is None:
            self._begin_run(lambda token: self._resume(token, stream=stream))
            if decisions and self._task is not None:
                await self._progress.wait_until_blocked(self._task, self._hops)
        self._settle_questions(decisions)
        return await self._build_outcome()

    def _check_expected(self, decisions: Sequence[Decision]) -> None:
        """Refuse an answer that nothing waits for."""
        waiting = {request.request_id for request in self._unanswered_requests()}
        for decision in decisions:
            if decision.request is None or decision.request.id not in waiting:
                raise LookupError("no approval function waits for this answer")

    def _unanswered_requests(self) -> list[ToolApprovalRequest]:
        """Return the requests that the user has not answered."""
        asked = [question.request for question in self._questions.values() if not question.answer.done()]
        return asked or self._restored_requests

    def _begin_run(self, run: Callable[[Any], Awaitable[Any]]) -> None:
        from autogen_core import CancellationToken

        self._token = CancellationToken()
        self._task = asyncio.create_task(self._track(run(self._token)))

    async def _track(self, run: Awaitable[Any]) -> Any:
        try:
            with self._progress.begin():
                return await run
        finally:
            self._cancel_questions()

    @property
    def _hops(self) -> int:
        """See `RunProgress.wait_until_blocked`: messages of a team take more of them."""
        is_team = getattr(self._agents, "is_team", False)
        return max(self.event_hops, 10 * EVENT_HOPS) if is_team else self.event_hops

    def _cancel_questions(self) -> None:
        """Cancel the questions that nobody waits for any more.

        The tasks that the framework started for its calls would wait for them otherwise.
        """
        for question in list(self._questions.values()):
            question.answer.cancel()

    async def _run(self, text: str | None, token: Any, *, stream: bool) -> Any:
        agent = self._agents.get_main(stream=stream)
        while True:
            result = await self._run_once(agent, text, token, stream=stream)
            # Before 0.6.2 an agent stops after its tools, and must be run again to continue.
            if self._agents.continues or type(result.messages[-1]).__name__ != "ToolCallSummaryMessage":
                return result
            text = None

    async def _run_once(self, agent: Any, text: str | None, token: Any, *, stream: bool) -> Any:
        task = text if text is None else self._build_task(agent, text)
        if not stream:
            result = await agent.run(task=task, cancellation_token=token, **self._agents.options)
        else:
            result = None
            async for event in agent.run_stream(task=task, cancellation_token=token, **self._agents.options):
                self._report_event(event)
                result = event
            self.world.shown("end")
        self._last_message = result.messages[-1]
        return result

    def _build_task(self, agent: Any, text: str) -> Any:
        """Return a message as the agent takes it: a swarm that has handed over to its user wants to be handed back."""
        from autogen_agentchat.messages import HandoffMessage
        from autogen_agentchat.teams import Swarm

        last = self._last_message
        if isinstance(agent, Swarm) and isinstance(last, HandoffMessage):
            return HandoffMessage(source=last.target, target=last.source, content=text)
        return text

    def _report_event(self, event: Any) -> None:
        from .messages import read_event

        for kind, values in read_event(event, answers=bool(self.blueprint.answer)):
            self.world.shown(kind, **values)

    async def _resume(self, token: Any, *, stream: bool) -> Any:
        from autogen_agentchat.messages import ToolCallExecutionEvent

        from .state import finish_calls, unfinished_calls

        for name in self._agents.speakers:
            context = self._agents.get_context(name)
            if calls := await unfinished_calls(context):
                workbenches = self._agents.get_workbenches(name, stream=stream)
                self._progress.expect(await self._agents.calls_reaching_tools(calls, workbenches))
                see = self._report_event if stream else lambda _: None
                # A run shows the results of a reply as one event, when the last of them has come.
                results = await finish_calls(calls, workbenches, context, token, see)
                see(ToolCallExecutionEvent(source=name, content=results))
        self._restored_requests = []
        return await self._run(None, token, stream=stream)

    async def _build_outcome(self) -> Outcome:
        task = self._task
        assert task is not None
        # Two turns of one run end in the order in which they began.
        async with self._outcome_lock:
            if await self._progress.wait_until_blocked(task, self._hops):
                return Paused(requests=tuple(await self.pending()), text=await self._last_thought())
            if self._task is task:
                self._task = None
            return Finished(output=self._read_output(await task))

    def _read_output(self, result: Any) -> Any:
        find_answer = getattr(self._agents, "find_answer", None)
        message = find_answer(result.messages) if find_answer is not None else result.messages[-1]
        content: Any = getattr(message, "content", None)
        return content.model_dump() if hasattr(content, "model_dump") else content

    async def _last_thought(self) -> str | None:
        messages = await self._agents.get_context(MAIN).get_messages()
        return getattr(messages[-1], "thought", None) if messages else None

    # --- questions ----------------------------------------------------------------------------------------------------

    async def ask(self, request: ToolApprovalRequest, emit: Callable[[Any], None]) -> ToolApprovalResult:
        """Ask the user: the approval function of gated tools."""
        from .requests import ToolApprovalRequestEvent, ToolApprovalResult, ToolApprovalResultEvent

        key = (request.agent, request.call_id)
        earlier = self.find_earlier_request(request)
        if earlier is not None and earlier.arguments != request.arguments:
            # The run begins anew with the call as the model made it, which the user had changed before.
            self._changed_from[key] = request.arguments
            return ToolApprovalResult(approved=True, arguments=earlier.arguments)
        request = self._with_earlier_id(request, earlier)
        request.changed_from = self._changed_from.pop(key, None)
        question = Question(request=request, answer=asyncio.Future())
        emit(ToolApprovalRequestEvent(source=request.agent, content=request))
        self._questions[request.request_id] = question
        try:
            with self._progress.wait_for_user():
                result = await question.answer
        finally:
            del self._questions[request.request_id]
        if result.arguments is not None:
            self._changed_from[key] = request.arguments
        emit(ToolApprovalResultEvent(source=request.agent, content=result, request_id=request.request_id))
        return result

    def _with_earlier_id(
        self, request: ToolApprovalRequest, earlier: ToolApprovalRequest | None
    ) -> ToolApprovalRequest:
        """Give a request the id that it had before the state was saved."""
        if earlier is None:
            return request
        self._restored_requests.remove(earlier)
        return request.model_copy(update={"request_id": earlier.request_id})

    def find_earlier_request(self, request: ToolApprovalRequest) -> ToolApprovalRequest | None:
        """Return the request about the same call that was open when the state was saved.

        It may be a later question, with arguments that the user has changed since the first one.

        Raises:
            ValueError: The user was shown other arguments, because the saved state has been changed.
        """
        earlier = next((candidate for candidate in self._restored_requests if candidate.is_about(request)), None)
        if earlier is None or request.arguments == earlier.arguments:
            return earlier
        if earlier.changed_from is None or request.arguments != earlier.changed_from:
            raise ValueError(f"{request.tool} was shown with {earlier.arguments}, and asks for {request.arguments}")
        return earlier

    def _settle_questions(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            # A request from before a restart is not asked again if its tool is gone.
            question = self._questions.get(decision.request.id) if decision.request is not None else None
            if question is not None:
                question.answer.set_result(self._approval_result(decision))

    def _approval_result(self, decision: Decision) -> ToolApprovalResult:
        """Return a decision as the approval function returns it."""
        from .requests import write_decision

        return write_decision(decision)

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        from .requests import read_request

        return [read_request(request, self._agents.tools()) for request in self._unanswered_requests()]

    # --- ends ---------------------------------------------------------------------------------------------------------

    async def _stop_run(self) -> None:
        """Stop a waiting run by cancelling its task."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        self._cancel_questions()
        if task is not None:
            await asyncio.wait({task})

    async def cancel(self) -> None:
        """Cancel the run with its `CancellationToken`."""
        self._restored_requests = []
        if self._task is None:
            return
        self._token.cancel()
        await asyncio.wait({self._task})
        self._task = None

    async def trim(self, keep: int) -> None:
        """See `Agent.trim`."""
        self._require("trim")
        self._window = keep
        self._agents.trim(MAIN, keep)

    # --- state --------------------------------------------------------------------------------------------------------

    async def dump(self) -> str:
        """Return the agent's own state and the open requests; see `state`."""
        self._require("serialize.json")
        self._require_saved_whole()
        from .state import dump_state

        return dump_state(await self._save_state(), self._unanswered_requests(), self._window)

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        self._require("serialize.json")
        from .state import load_state

        state, self._restored_requests, window = load_state(parts[-1])
        await self._load_state(state, window)

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        self._require("serialize.copy")
        assert isinstance(other, Session)
        other._require_saved_whole()
        self._restored_requests = copy.deepcopy(other._unanswered_requests())
        await self._load_state(copy.deepcopy(await other._save_state()), other._window)

    def _require_saved_whole(self) -> None:
        """Refuse to save an attached agent while one inside of a tool waits.

        Its conversation is in no state, so that the tool would begin anew, and the body of a tool does again what it
        did before.
        """
        inside = next((request for request in self._unanswered_requests() if request.agent != MAIN), None)
        if self.blueprint.attachment is not None and inside is not None:
            raise Unsupported(
                "serialize.json",
                f"the state of an agent does not hold the run of {inside.agent!r} inside a tool, which waits for an "
                f"answer about {inside.tool!r}; use serialize='none' where agents inside ask",
            )

    async def _load_state(self, state: Any, window: int | None) -> None:
        await self._agents.get_main(stream=False).load_state(state)
        if window is not None:
            # The size of a buffered context is not in the state; it must be set again.
            await self.trim(window)

    def _require(self, capability: str) -> None:
        if capability in self.missing:
            raise Unsupported(capability, self.missing[capability])

    async def _save_state(self) -> Any:
        return await self._agents.get_main(stream=False).save_state()

    def tools(self) -> Any:
        """See `Agent.tools`."""
        return self._agents.tools()

    def earlier_turns(self) -> int | None:
        """See `Agent.earlier_turns`."""
        earlier: int | None = self._agents.earlier_turns()
        return earlier

    async def close(self) -> None:
        """See `Agent.close`."""
        task, self._task = self._task, None
        self._cancel_questions()
        # A team waits for its agents, and an agent that hangs swallows the first cancellation.
        for _ in range(2):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=0.05)
        await self._agents.close()


class GatedSession(Session):
    """Approval functions are around the tools of agents."""

    protocols = metadata.PROTOCOLS

    def _create_agents(self, blueprint: Blueprint) -> AgentGraph | AttachedAgents:
        if blueprint.attachment is not None:
            from .attach import AttachedAgents

            return AttachedAgents(blueprint.attachment, self.world, self.ask, self._progress)
        from .agents import AgentGraph

        return AgentGraph(
            world=self.world,
            blueprint=blueprint,
            ask=self.ask,
            find_earlier_request=self.find_earlier_request,
            gate=self._choose_gate(),
            progress=self._progress,
            is_team=self.is_team,
        )

    @abstractmethod
    def _choose_gate(self) -> GateFactory:
        """Return what builds the gated workbench of an agent."""


class WorkbenchSession(GatedSession):
    """The approval functions are around a workbench."""

    missing = metadata.MISSING
    recovery = metadata.RECOVERY

    def _choose_gate(self) -> GateFactory:
        from .agents import build_gated_workbench

        return build_gated_workbench


class ToolSession(GatedSession):
    """The approval functions are around each tool."""

    missing = metadata.MISSING
    recovery = metadata.RECOVERY

    def _choose_gate(self) -> GateFactory:
        from .agents import build_gated_tools

        return build_gated_tools


class SwarmSession(WorkbenchSession):
    """The caller talks to a `Swarm`, whose agents hand the conversation over."""

    protocols = metadata.SWARM_PROTOCOLS
    missing = metadata.SWARM_MISSING
    recovery = ""
    is_team = True
    event_hops = 10 * EVENT_HOPS


class CodeExecutorSession(Session):
    """A team of a coder and an executor, which calls an `approval_func` before it runs code.

    These are the approvals that the framework has. A coder writes code and an executor runs it, as in the documentation
    of `CodeExecutorAgent` for a team. See `code_execution` for the code.
    """

    missing = metadata.CODE_MISSING
    wire_rules = "none"
    event_hops = 10 * EVENT_HOPS

    def _create_agents(self, blueprint: Any) -> Any:
        from .code_execution import CodingTeam

        return CodingTeam(self.world, blueprint, self.approve)

    async def approve(self, code_request: Any) -> Any:
        """Ask the user about code: the `approval_func` of the executor."""
        from autogen_agentchat.agents import ApprovalResponse

        from .code_execution import read_call
        from .requests import ToolApprovalRequest

        call = read_call(code_request.code)
        with self._progress.enter(call.id, call.tool):
            team: Any = self._agents
            if not await team.is_gated(call):
                return ApprovalResponse(approved=True, reason="")
            request = ToolApprovalRequest(agent=MAIN, tool=call.tool, arguments=call.arguments, call_id=call.id)
            question = Question(request=request, answer=asyncio.Future())
            self._questions[request.request_id] = question
            try:
                with self._progress.wait_for_user():
                    return await question.answer
            finally:
                del self._questions[request.request_id]

    def _approval_result(self, decision: Decision) -> Any:
        from autogen_agentchat.agents import ApprovalResponse

        return ApprovalResponse(approved=decision.verdict == "approve", reason=decision.reason or "")


TOOL_AGENT_TYPE = "tools"
"""Agent type that runs tools."""


class InterventionSession(GatedSession):
    """Tools behind a `ToolAgent`, and an intervention handler in front of it; no AgentChat.

    As in the cookbook "User Approval for Tool Execution using Intervention Handler", the handler sees each call as a
    message, and raises a `ToolException` if the user refuses it. What the caller keeps is the conversation that
    `tool_agent_caller_loop` takes, and what it returns.
    """

    missing = metadata.INTERVENTION_MISSING

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        if blueprint.attachment is not None:
            raise Unsupported(
                "attach", "a loop of autogen-core is the user's own code, without an agent object to attach"
            )
        super().__init__(world, blueprint)
        self._runtime: Any = None
        self._history: list[Any] = []

    def _choose_gate(self) -> GateFactory:
        from .agents import build_gated_tools

        return build_gated_tools

    async def _run(self, text: str | None, token: Any, *, stream: bool) -> Any:
        from autogen_core import AgentId
        from autogen_core.models import UserMessage
        from autogen_core.tool_agent import tool_agent_caller_loop

        from .model import build_model

        if text is not None:
            self._history.append(UserMessage(content=text, source="user"))
        runtime, tools = await self._prepare()
        model = build_model(self.world, MAIN, self.blueprint.model)
        messages = await tool_agent_caller_loop(
            runtime, AgentId(TOOL_AGENT_TYPE, "default"), model, list(self._history), tools, token
        )
        self._history += messages
        if self.blueprint.options.get("settles"):
            await runtime.stop_when_idle()
            self._runtime = None
        return messages[-1].content

    async def _resume(self, token: Any, *, stream: bool) -> Any:
        return await self._run(None, token, stream=stream)

    async def _prepare(self) -> tuple[Any, list[Any]]:
        from autogen_core import SingleThreadedAgentRuntime
        from autogen_core.tool_agent import ToolAgent

        from .agents import AgentGraph
        from .gates import ApprovalHandler

        agents = self._agents
        assert isinstance(agents, AgentGraph)
        specs = [spec for spec in self.blueprint.tools if spec.agent == MAIN]
        tools = agents.ungated_tools(specs)
        if self._runtime is None:
            handler = ApprovalHandler(agents.build_approvals(MAIN, specs), self._progress, self.blueprint.options)
            self._runtime = SingleThreadedAgentRuntime(intervention_handlers=[handler])
            await ToolAgent.register(self._runtime, TOOL_AGENT_TYPE, lambda: ToolAgent("Runs tools.", list(tools)))
            self._runtime.start()
        return self._runtime, tools

    async def _last_thought(self) -> str | None:
        return None

    def _read_output(self, result: Any) -> Any:
        return result

    def _approval_result(self, decision: Decision) -> Any:
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
