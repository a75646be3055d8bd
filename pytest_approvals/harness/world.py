"""The world of a session: the model, the tools and the policy as the agent under test sees them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

from pytest_approvals.agent_side.conditions import Approval, Condition, needs_approval
from pytest_approvals.agent_side.failures import (
    ConditionRaised,
    ModelDown,
    ModelRefused,
    ScriptExhausted,
)
from pytest_approvals.agent_side.neutral import MAIN, HostedResult, Item, ModelAddress, ModelCall
from pytest_approvals.agent_side.neutral import Reply as PlayedReply
from pytest_approvals.journal.events import (
    ModelAnswer,
    ModelExhausted,
    ModelFailure,
    ModelRefusal,
    ModelRequest,
)
from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.rules import BrokenRule, broken_rules
from pytest_approvals.scenario.labels import agents_of
from pytest_approvals.scenario.parts import Failure, Reply
from pytest_approvals.scenario.words import AT_THE_MODEL

from .chunking import cut
from .play import Play
from .progress import PlayedCall, Progress
from .provider import Provider
from .script import Conversation, conversation_of, next_reply, played
from .session_record import SessionRecord
from .tools import behave, behaviour_of


class RecordingWorld(SessionRecord):
    """
    Implements `contract.World` for one agent object.

    Attributes:
        sharing: The worlds of all sessions on the agent object, this one among them.
    """

    def __init__(self, play: Play, session: str, progress: Progress | None = None) -> None:
        super().__init__(play, session, progress)
        self.sharing = [self]
        self._address: ModelAddress | None = None
        self._provider = Provider(self)

    def begin_anew(self) -> None:
        """Forgets all that happened in the run, as if nobody had asked yet."""
        self.play.begin_anew()
        self.progress = Progress()

    # --- the model ---

    def address(self) -> ModelAddress | None:
        """See `World.address`."""
        if self._address is None and self.play.served is not None:
            self._address = self.play.served.address(self.asked)
        return self._address

    async def asked(self, items: Sequence[Item], asked: Asked) -> PlayedReply:
        """Answers what comes over a wire; who is named as the model is the agent that asks. See `endpoint.Model`."""
        agent = asked.model if asked.model in agents_of(self.play.scenario) else MAIN
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
        broken: Sequence[BrokenRule] | None = None,
        readable: bool = True,
    ) -> PlayedReply:
        """
        See `contract.World.model`.

        Arguments:
            broken: What the provider refuses in them, where they came over a wire and were judged there.
            readable: Nothing but a refusal can be the answer to what could not be read, however lenient the provider.
        """
        conversation = conversation_of(self.play.scenario, agent, items, self.progress)
        number = self.play.counters.next_model()
        self._record(
            ModelRequest(
                session=self.session,
                m=number,
                conversation=conversation.name,
                agent=agent,
                items=[written_item(item) for item in items],
                tools=list(tools),
                stream=stream,
            )
        )
        if broken is None:
            broken = broken_rules(items, self.play.wire_rules)
        if broken and not (self.play.lenient and readable):
            raise self._refuses(broken, number, conversation)
        await self._hung_up_at_the_model(number, conversation)
        reply = self._next_reply(number, conversation)
        if reply.takes:
            await _pass(reply.takes)
        if reply.failure is not None and not (stream and reply.failure.after_chunks is not None):
            raise self._fails(reply.failure, number, conversation)
        hosted = await self._provider.run_approved(items)
        return await self._answer(reply, number, conversation, hosted)

    def _refuses(self, broken: Sequence[BrokenRule], number: int, conversation: Conversation) -> ModelRefused:
        written = [{"rule": one.rule, "ids": list(one.ids), "text": one.text} for one in broken]
        self._record(ModelRefusal(session=self.session, m=number, conversation=conversation.name, broken=written))
        return ModelRefused("; ".join(one.text for one in broken))

    async def _hung_up_at_the_model(self, number: int, conversation: Conversation) -> None:
        """Holds a question whose answer nobody waits for; what the model would have said is not used up."""
        if self.hang_up is not None and self.hang_up.is_at(AT_THE_MODEL):
            failure = ModelFailure(m=number, conversation=conversation.name, status=0, how="hung_up")
            failure.session = self.session
            self._record(failure)
            await self.hang_up.over()
            raise ModelDown(0)

    def _next_reply(self, number: int, conversation: Conversation) -> Reply:
        most = self.play.limit.model_calls
        reply = next_reply(conversation, self.progress) if number <= most else None
        if reply is None:
            limit = most if number > most else None
            self._record(ModelExhausted(session=self.session, m=number, conversation=conversation.name, limit=limit))
            raise ScriptExhausted(conversation.agent)
        return reply

    def _fails(self, failure: Failure, number: int, conversation: Conversation, shown: int | None = None) -> ModelDown:
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
        self, reply: Reply, number: int, conversation: Conversation, hosted: list[tuple[str, HostedResult]]
    ) -> PlayedReply:
        calls = played(conversation, reply, number, self.play.tools)
        self.progress.calls += [remembered for remembered, _ in calls]
        hosted = [*hosted, *await self._provider.run_ungated([remembered for remembered, _ in calls])]
        given = tuple(call for remembered, call in calls if remembered.label not in self.progress.provided)
        chunks = cut(reply.say, given, self.play.variant.chunking)
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
                calls=[written_call(remembered) for remembered, _ in calls],
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

    async def _hung_up_in(self, call: PlayedCall | None) -> None:
        """Holds an execution in which the caller hangs up; where the agent does not cancel it, it then goes on."""
        if call is not None and self.hang_up is not None and self.hang_up.is_at(f"started {call.label}"):
            await self.hang_up.over()

    async def _behave(self, tool: str, agent: str, call: PlayedCall | None, arguments: Mapping[str, Any]) -> Any:
        known = call.declared if call else self.play.tools.seen(agent, tool)
        if known is None:
            return None
        before = self.progress.executions[call.label] if call else 0
        if call is not None:
            self.progress.executions[call.label] += 1
        return await behave(behaviour_of(known, call.label if call else None, before), arguments, self.play.signals)

    async def provide(self, call: PlayedCall, arguments: Mapping[str, Any]) -> Any:
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
    ) -> tuple[Approval, PlayedCall | None]:
        """Finds the call that the policy is asked about, and what is declared for it."""
        call = next(self.progress.candidates(tool, arguments, call_id, agent), None)
        known = call.declared if call else self.play.tools.seen(agent, tool)
        return (known.approval if known else "always"), call


async def _pass(seconds: float) -> None:
    from asyncio import sleep

    await sleep(seconds)


def written_item(item: Item) -> dict[str, Any]:
    """Gives one element of a model input as it stands in a journal."""
    return {name: value for name, value in zip(_ITEM_FIELDS, _item_values(item), strict=True) if value is not None}


_ITEM_FIELDS = tuple(field.name for field in fields(Item))
_item_values = attrgetter(*_ITEM_FIELDS)


def written_call(call: PlayedCall) -> dict[str, Any]:
    """Gives a call of the model as it stands in a journal."""
    written = {"label": call.label, "id": call.id, "tool": call.tool, "arguments": call.arguments, "kind": call.kind}
    return written | ({"server": call.server} if call.server else {})


def as_model_call(call: PlayedCall) -> ModelCall:
    """Gives a remembered call as the agent gets it."""
    return ModelCall(id=call.id, tool=call.tool, arguments=call.arguments, kind=call.kind, server=call.server)
