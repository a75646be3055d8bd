"""Legitimate designs: decisions and messages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import (
    Decision,
    Finished,
    Outcome,
    Reply,
)
from pytest_approvals.simulation.reference import feedback
from pytest_approvals.simulation.reference.agent import ReferenceAgent, TurnContext
from pytest_approvals.simulation.reference.designs.registry import design
from pytest_approvals.simulation.reference.persistence import (
    AlreadySettled,
    Contradiction,
    NothingToGoOn,
    Refused,
    UnknownRequest,
)
from pytest_approvals.simulation.reference.state import (
    AcceptedDecision,
    CallState,
    ConversationState,
    waiting_calls,
)


@design
class TurnsWaitForEachOther(ReferenceAgent):
    """An input that comes while another one is being processed waits for its end."""

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._inputs = asyncio.Lock()

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        async with self._inputs:
            return await super().turn(text, decisions, stream=stream)

    async def stage(self, decisions: Sequence[Decision]) -> None:
        async with self._inputs:
            await super().stage(decisions)

    async def cancel(self) -> None:
        async with self._inputs:
            await super().cancel()


@design
class MessagesAreRefusedWhilePending(ReferenceAgent):
    """A message is refused while a request is open that the same input does not decide."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if text is not None and not self.is_running:
            self.reload_state()
            decided = {decision.request for decision in self.merge_staged(self.validate_decisions(decisions))}
            if any(call.request not in decided for _, call in waiting_calls(self.state.main)):
                raise Refused("decide about the open approval requests before sending a message")
        return await super().turn(text, decisions, stream=stream)


@design
class MessagesWaitWhilePending(ReferenceAgent):
    """A message that comes while requests are open reaches the model after their results."""

    def close_open_requests(self, text: str, turn: TurnContext) -> None:
        if text != feedback.SUPERSEDED:
            super().close_open_requests(text, turn)


@design
class LateDecisionsAreUnknownRequests(ReferenceAgent):
    """A decision about a settled request is refused like one about a request that never was."""

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find_call(request)
        except AlreadySettled:
            raise UnknownRequest(request) from None


@design
class LateDecisionsHaveNothingToDecide(ReferenceAgent):
    """A decision is refused without a look at its request if no request is open."""

    def validate_decision(self, decision: Decision) -> AcceptedDecision:
        if not any(waiting_calls(self.state.main)):
            raise NothingToGoOn
        return super().validate_decision(decision)


@design
class LateDecisionsAreLookupErrors(ReferenceAgent):
    """A decision about a settled request raises one of Python's own errors."""

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find_call(request)
        except AlreadySettled as error:
            raise LookupError(str(error)) from None


@design
class LateDecisionsAreUnknownAfterARestart(ReferenceAgent):
    """What is saved does not say which requests were settled: decisions about these are then about unknown ones."""

    _was_loaded = False

    async def load(self, parts: Sequence[str]) -> None:
        await super().load(parts)
        self._was_loaded = True

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find_call(request)
        except AlreadySettled:
            if self._was_loaded:
                raise UnknownRequest(request) from None
            raise


@design
class EqualDecisionsCountOnce(ReferenceAgent):
    """Two equal decisions about one request in one submission count as one; different ones are refused."""

    def reject_repetition(self, decision: AcceptedDecision, before: Sequence[AcceptedDecision]) -> None:
        if any(decision.request == other.request and decision != other for other in before):
            raise Contradiction(decision.request)

    def validate_decisions(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        unique: list[AcceptedDecision] = []
        for decision in super().validate_decisions(decisions):
            if decision not in unique:
                unique.append(decision)
        return unique


@design
class PartialAnswersAreRefused(ReferenceAgent):
    """A submission that leaves a request undecided is refused."""

    capabilities = ReferenceAgent.capabilities - {"partial_answers", "runs_beside_pending"}
    missing: ClassVar = {"partial_answers": "all open requests are decided together"}

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if decisions and not self.is_running:
            self.reload_state()
            decided = {decision.request for decision in self.merge_staged(self.validate_decisions(decisions))}
            if any(call.request not in decided for _, call in waiting_calls(self.state.main)):
                raise Refused("decide about all open approval requests together")
        return await super().turn(text, decisions, stream=stream)


@design
class FailedMessagesAreForgotten(ReferenceAgent):
    """A message to which the model could not reply is forgotten, and has to be sent again."""

    async def ask_model(self, conversation: ConversationState, turn: TurnContext) -> None:
        try:
            await super().ask_model(conversation, turn)
        except ModelDown:
            if conversation.items and conversation.items[-1].kind == "user" and conversation is self.state.main:
                conversation.items.pop()
                conversation.messages -= 1
                conversation.asks_model = bool(conversation.items) and conversation.items[-1].kind in ("user", "result")
            raise


@design
class OutputsHaveAllTexts(ReferenceAgent):
    """The output of a turn is all that the model said in it, and not only at its end."""

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        self._said: list[str] = []
        outcome = await super().turn(text, decisions, stream=stream)
        if isinstance(outcome, Finished) and isinstance(outcome.output, str):
            return Finished(output="\n".join(self._said) or outcome.output)
        return outcome

    def record_reply(self, conversation: ConversationState, reply: Reply, turn: TurnContext) -> None:
        super().record_reply(conversation, reply, turn)
        if reply.say and conversation is self.state.main:
            self._said.append(reply.say)


@design
class RejectionsEndTheTurn(ReferenceAgent):
    """A turn that rejects all that was asked ends; the model reads the rejections before the next message."""

    capabilities = ReferenceAgent.capabilities - {"goes_on_after_rejection"}
    missing: ClassVar = {"goes_on_after_rejection": "the model is asked again with the next message"}

    _is_rejected = False

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().apply_decisions(accepted, turn)
        rejects = bool(accepted) and all(decision.verdict in ("reject", "never") for decision in accepted)
        # The provider runs the hosted calls that are approved once it is asked.
        self._is_rejected = rejects and all(
            call.stage == "done" and not call.approved for call in self.state.main.calls
        )

    async def run_conversation(self, conversation: ConversationState, turn: TurnContext) -> bool:
        if conversation is self.state.main and self._is_rejected and not conversation.inbox and conversation.calls:
            self._is_rejected = False
            self.deliver_results(conversation)
            conversation.output = None
            return True
        return await super().run_conversation(conversation, turn)
