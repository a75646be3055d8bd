"""What a session records of its tools, its policies and its streams, whoever runs, asks and shows.

The world of a session: the model, the tools and the policy as the agent under test sees them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.contract.exceptions import (
    AsksAgain,
    ConditionRaised,
    ModelDown,
    ModelRefused,
    ScriptExhausted,
)
from pytest_approvals.agent_side.contract.types import (
    MAIN,
    Approval,
    Condition,
    HostedResult,
    Item,
    ModelAddress,
    needs_approval,
)
from pytest_approvals.agent_side.contract.types import Reply as PlayedReply
from pytest_approvals.journal.events import (
    ModelAnswer,
    ModelExhausted,
    ModelFailure,
    ModelRefusal,
    ModelRequest,
    PolicyAsked,
    StreamShown,
    ToolEnd,
    ToolStart,
)
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.input_rules import RuleViolation, check_items
from pytest_approvals.runner.hosted_mcp import HostedMcpProvider
from pytest_approvals.runner.probe_tools import execute_behaviour, select_behaviour
from pytest_approvals.runner.run_context import RunContext, describe_error
from pytest_approvals.runner.script import (
    ModelConversation,
    ScriptedCall,
    ScriptState,
    build_calls,
    find_conversation,
    take_next_reply,
)
from pytest_approvals.runner.stream_chunks import split_reply
from pytest_approvals.scenario.labels import list_agents
from pytest_approvals.scenario.model import ScriptedFailure, ScriptedReply
from pytest_approvals.scenario.vocabulary import AT_MODEL

if TYPE_CHECKING:
    from pytest_approvals.runner.cancellation import Disconnect


class SessionRecord:
    """
    The record of one session, as one agent object sees it.

    Attributes:
        progress: How far the session's story has got.
        hang_up: The caller who hangs up in the turn that runs, where one does.
    """

    def __init__(self, play: RunContext, session: str, progress: ScriptState | None = None) -> None:
        self.play = play
        self.session = session
        self.progress = progress or ScriptState()
        self.hang_up: Disconnect | None = None
        self._turns: list[int] = []
        self._record = play.journal.record

    # --- turns ---

    @property
    def in_turn(self) -> bool:
        """Whether a turn of the session runs just now."""
        return bool(self._turns)

    @contextmanager
    def turn(self, number: int) -> Iterator[None]:
        """Books what streams show inside on the turn with that number."""
        self._turns.append(number)
        token = _CURRENT_TURN.set(number)
        try:
            yield
        finally:
            _CURRENT_TURN.reset(token)
            self._turns.remove(number)

    def shown(self, what: str, **facts: Any) -> None:
        """See `contract.World.shown`."""
        # Two turns at the same time are told apart by the context that each runs in; what comes from another process
        # has none, but belongs to a world with one turn.
        mine = _CURRENT_TURN.get()
        turn = mine if mine in self._turns else self._turns[-1] if self._turns else 0
        self._record(StreamShown(session=self.session, turn=turn, what=what, **facts))

    # --- tools and policies ---

    def started(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        call_id: str | None,
        *,
        agent: str = MAIN,
        by: str = "agent",
        real: bool = False,
        call: ScriptedCall | None = None,
    ) -> int:
        """Records the start of an execution and gives its number."""
        number = self.play.counters.next_execution()
        self._record(
            ToolStart(
                session=self.session,
                x=number,
                tool=tool,
                arguments=dict(arguments),
                call_id=call_id,
                agent=agent,
                by=by,
                real=real or None,
            )
        )
        if real:
            self.play.journal.flush()
        if call is not None:
            self.play.signals.give(f"started {call.label}")
        return number

    def ended(
        self,
        number: int,
        *,
        result: Any = None,
        error: BaseException | None = None,
        call: ScriptedCall | None = None,
    ) -> None:
        """Records the end of the execution with that number."""
        how = "returned" if error is None else _describe_end(error)
        told = None if error is None else describe_error(error)
        self._record(ToolEnd(session=self.session, x=number, how=how, result=result, error=told))
        if call is not None:
            if how == "asked":
                self.play.requests.close(self.session, call.label)
            self.play.signals.give(f"ended {call.label}")

    def gated(
        self,
        tool: str,
        arguments: Any,
        call_id: str | None,
        *,
        agent: str = MAIN,
        answer: bool | None = None,
        raised: str | None = None,
    ) -> None:
        """Records what a policy said about a call, here or beside the agent."""
        self._record(
            PolicyAsked(
                session=self.session,
                tool=tool,
                arguments=arguments,
                call_id=call_id,
                agent=agent,
                answer=answer,
                raised=raised,
            )
        )


_CURRENT_TURN: ContextVar[int] = ContextVar("turn", default=0)


def _describe_end(error: BaseException) -> str:
    if isinstance(error, AsksAgain):
        return "asked"
    return "raised" if isinstance(error, Exception) else "cancelled"


class RecordingWorld(SessionRecord):
    """
    Implements `contract.World` for one agent object.

    Attributes:
        sharing: The worlds of all sessions on the agent object, this one among them.
    """

    def __init__(self, play: RunContext, session: str, progress: ScriptState | None = None) -> None:
        super().__init__(play, session, progress)
        self.sharing = [self]
        self._address: ModelAddress | None = None
        self._provider = HostedMcpProvider(self)

    def reset(self) -> None:
        """Forgets all that happened in the run, as if nobody had asked yet."""
        self.play.reset()
        self.progress = ScriptState()

    # --- the model ---

    def address(self) -> ModelAddress | None:
        """See `World.address`."""
        if self._address is None and self.play.served is not None:
            self._address = self.play.served.address(self.asked)
        return self._address

    async def asked(self, items: Sequence[Item], asked: ParsedRequest) -> PlayedReply:
        """Answers what comes over a wire; who is named as the model is the agent that asks. See `endpoint.Model`."""
        agent = asked.model if asked.model in list_agents(self.play.scenario) else MAIN
        return await self.model(
            items, agent=agent, stream=asked.stream, tools=asked.tools, broken=asked.broken, readable=asked.readable
        )

    async def model(
        self,
        items: Sequence[Item],
        *,
        agent: str = MAIN,
        stream: bool = False,
        tools: Sequence[str] = (),
        broken: Sequence[RuleViolation] | None = None,
        readable: bool = True,
    ) -> PlayedReply:
        """
        See `contract.World.model`.

        Arguments:
            broken: What the provider refuses in them, where they came over a wire and were judged there.
            readable: Nothing but a refusal can be the answer to what could not be read, however lenient the provider.
        """
        conversation = find_conversation(self.play.scenario, agent, items, self.progress)
        number = self.play.counters.next_model()
        self._record(
            ModelRequest(
                session=self.session,
                m=number,
                conversation=conversation.name,
                agent=agent,
                items=[item_to_dict(item) for item in items],
                tools=list(tools),
                stream=stream,
            )
        )
        if broken is None:
            broken = check_items(items, self.play.wire_rules)
        if broken and not (self.play.lenient and readable):
            raise self._refuses(broken, number, conversation)
        await self._hung_up_at_the_model(number, conversation)
        reply = self._next_reply(number, conversation)
        if reply.takes:
            await _sleep(reply.takes)
        if reply.failure is not None and not (stream and reply.failure.after_chunks is not None):
            raise self._fails(reply.failure, number, conversation)
        hosted = await self._provider.run_approved(items)
        return await self._answer(reply, number, conversation, hosted)

    def _refuses(self, broken: Sequence[RuleViolation], number: int, conversation: ModelConversation) -> ModelRefused:
        written = [{"rule": one.rule, "ids": list(one.ids), "text": one.text} for one in broken]
        self._record(ModelRefusal(session=self.session, m=number, conversation=conversation.name, broken=written))
        return ModelRefused("; ".join(one.text for one in broken))

    async def _hung_up_at_the_model(self, number: int, conversation: ModelConversation) -> None:
        """Holds a question whose answer nobody waits for; what the model would have said is not used up."""
        if self.hang_up is not None and self.hang_up.is_at(AT_MODEL):
            failure = ModelFailure(m=number, conversation=conversation.name, status=0, how="hung_up")
            failure.session = self.session
            self._record(failure)
            await self.hang_up.over()
            raise ModelDown(0)

    def _next_reply(self, number: int, conversation: ModelConversation) -> ScriptedReply:
        most = self.play.limit.model_calls
        reply = take_next_reply(conversation, self.progress) if number <= most else None
        if reply is None:
            limit = most if number > most else None
            self._record(ModelExhausted(session=self.session, m=number, conversation=conversation.name, limit=limit))
            raise ScriptExhausted(conversation.agent)
        return reply

    def _fails(
        self, failure: ScriptedFailure, number: int, conversation: ModelConversation, shown: int | None = None
    ) -> ModelDown:
        down = ModelDown(failure.status, failure.how, failure.retry_after)
        self._record(
            ModelFailure(
                session=self.session,
                m=number,
                conversation=conversation.name,
                status=failure.status,
                shown=shown,
                how=failure.how if failure.how != "disconnect" else None,
                retry_after=failure.retry_after,
            )
        )
        return down

    async def _answer(
        self, reply: ScriptedReply, number: int, conversation: ModelConversation, hosted: list[tuple[str, HostedResult]]
    ) -> PlayedReply:
        calls = build_calls(conversation, reply, number, self.play.tools)
        self.progress.calls += [remembered for remembered, _ in calls]
        hosted = [*hosted, *await self._provider.run_ungated([remembered for remembered, _ in calls])]
        given = tuple(call for remembered, call in calls if remembered.label not in self.progress.provided)
        chunks = split_reply(reply.say, given, self.play.variant.chunking)
        if reply.failure is not None:
            shown = reply.failure.after_chunks or 0
            self.progress.calls = self.progress.calls[: len(self.progress.calls) - len(calls)]
            self._fails(reply.failure, number, conversation, shown)
            broken = PlayedReply(say=reply.say, calls=given, answer=reply.answer, chunks=chunks[:shown], breaks=True)
            return replace(broken, how=reply.failure.how)
        self._record(
            ModelAnswer(
                session=self.session,
                m=number,
                conversation=conversation.name,
                say=reply.say,
                calls=[call_to_dict(remembered) for remembered, _ in calls],
                answer=None if reply.answer is None else dict(reply.answer),
                hosted=[{"label": label, "output": one.output, "error": one.error} for label, one in hosted],
            )
        )
        reported = tuple(one for _, one in hosted)
        return PlayedReply(say=reply.say, calls=given, answer=reply.answer, hosted=reported, chunks=chunks)

    # --- the tools ---

    async def run(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        call_id: str | None,
        *,
        agent: str = MAIN,
        real: Callable[[], Awaitable[Any]] | None = None,
    ) -> Any:
        """See `contract.World.run`."""
        call = next(self.progress.candidates(tool, arguments, call_id, agent), None)
        number = self.started(tool, arguments, call_id, agent=agent, real=real is not None, call=call)
        try:
            await self._hung_up_in(call)
            result = await (real() if real is not None else self._behave(tool, agent, call, arguments))
        except BaseException as error:
            self.ended(number, error=error, call=call)
            raise
        self.ended(number, result=result, call=call)
        return result

    async def _hung_up_in(self, call: ScriptedCall | None) -> None:
        """Holds an execution in which the caller hangs up; where the agent does not cancel it, it then goes on."""
        if call is not None and self.hang_up is not None and self.hang_up.is_at(f"started {call.label}"):
            await self.hang_up.over()

    async def _behave(self, tool: str, agent: str, call: ScriptedCall | None, arguments: Mapping[str, Any]) -> Any:
        known = call.declared if call else self.play.tools.seen(agent, tool)
        if known is None:
            return None
        before = self.progress.executions[call.label] if call else 0
        if call is not None:
            self.progress.executions[call.label] += 1
        return await execute_behaviour(
            select_behaviour(known, call.label if call else None, before), arguments, self.play.signals
        )

    async def provide(self, call: ScriptedCall, arguments: Mapping[str, Any]) -> Any:
        """Runs a hosted call as the provider does, in its own world: the agent is not asked."""
        number = self.started(call.tool, arguments, call.id, agent=call.agent, by="provider", call=call)
        try:
            result = await self._behave(call.tool, call.agent, call, arguments)
        except Exception as error:
            self.ended(number, error=error, call=call)
            raise
        self.ended(number, result=result, call=call)
        return result

    # --- the policy ---

    def gate(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """See `contract.World.gate`."""
        approval, call = self._approval(tool, arguments, call_id, agent)
        key = call.label if call else f"{tool} {call_id}"
        before = self.progress.gates[key]
        self.progress.gates[key] += 1
        if isinstance(approval, Condition) and approval.raises is not None:
            self.gated(tool, arguments, call_id, agent=agent, raised=approval.raises)
            raise ConditionRaised(approval.raises)
        answer = needs_approval(approval, arguments, before)
        self.gated(tool, arguments, call_id, agent=agent, answer=answer)
        return answer

    async def gate_slowly(self, tool: str, arguments: Any, call_id: str | None, *, agent: str = MAIN) -> bool:
        """See `contract.World.gate_slowly`."""
        approval, _ = self._approval(tool, arguments, call_id, agent)
        if isinstance(approval, Condition) and approval.waits_for is not None:
            await self.play.signals.wait(approval.waits_for)
        return self.gate(tool, arguments, call_id, agent=agent)

    def _approval(
        self, tool: str, arguments: Any, call_id: str | None, agent: str
    ) -> tuple[Approval, ScriptedCall | None]:
        """Finds the call that the policy is asked about, and what is declared for it."""
        call = next(self.progress.candidates(tool, arguments, call_id, agent), None)
        known = call.declared if call else self.play.tools.seen(agent, tool)
        return (known.approval if known else "always"), call


async def _sleep(seconds: float) -> None:
    from asyncio import sleep

    await sleep(seconds)


def item_to_dict(item: Item) -> dict[str, Any]:
    """Gives one element of a model input as it stands in a journal."""
    return {name: value for name, value in zip(_ITEM_FIELDS, _item_values(item), strict=True) if value is not None}


_ITEM_FIELDS = tuple(field.name for field in fields(Item))
_item_values = attrgetter(*_ITEM_FIELDS)


def call_to_dict(call: ScriptedCall) -> dict[str, Any]:
    """Gives a call of the model as it stands in a journal."""
    written = {"label": call.label, "id": call.id, "tool": call.tool, "arguments": call.arguments, "kind": call.kind}
    return written | ({"server": call.server} if call.server else {})
