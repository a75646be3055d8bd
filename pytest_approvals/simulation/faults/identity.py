"""Faults of identity: call ids that are repeated, missing, or taken for more than they are."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_approvals.agent_side.contract.types import ModelCall, Reply
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference.agent import TurnContext, waiting_calls
from pytest_approvals.simulation.reference.state import AcceptedDecision, CallState, ConversationState


class ReusedIdIsApprovedAlready(Fault):
    """A call whose id was used by an earlier call runs on that one's approval."""

    source = ("openai/openai-agents-python#4257",)
    caught_by = "approval-before-execution"

    async def look_at(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().look_at(conversation, call, turn)
        if call.stage == "waiting" and any(item.kind == "result" and item.id == call.id for item in conversation.items):
            self.approve(call)


class CallsWithOneIdShareADecision(Fault):
    """Two calls of one reply with the same id are both settled by one decision."""

    source = ("pydantic/pydantic-ai#6241", "pydantic/pydantic-ai#5761")
    caught_by = "approval-before-execution"

    def settle(self, answers: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        decided = {
            call.id.partition("-")[0] for _, call in waiting_calls(self.state.main) if self._answers(answers, call)
        }
        super().settle(answers, turn)
        for _, call in list(waiting_calls(self.state.main)):
            if call.id.partition("-")[0] in decided:
                self.approve(call)

    def _answers(self, answers: Sequence[AcceptedDecision], call: CallState) -> bool:
        return any(answer.request == call.request and answer.verdict == "approve" for answer in answers)


class CallsWithOneIdAreMerged(Fault):
    """Of two calls of one reply with the same id only the last is seen."""

    source = ("huggingface/smolagents#2683",)
    caught_by = "every-gated-call-asked"

    def calls_of(self, conversation: ConversationState, reply: Reply) -> list[CallState]:
        return list(
            {given.id: call for given, call in zip(reply.calls, self._all(conversation, reply), strict=True)}.values()
        )

    def _all(self, conversation: ConversationState, reply: Reply) -> list[CallState]:
        return super().calls_of(conversation, reply)


class MissingIdStaysMissing(Fault):
    """A call that came without an id goes back to the model without one."""

    source = ("microsoft/autogen#5508",)
    caught_by = "model-input-well-formed"

    def own_id(self, conversation: ConversationState, given: ModelCall, taken: Sequence[str]) -> str:
        return "" if given.id is None else super().own_id(conversation, given, taken)


class RepeatedIdHasNoSecondResult(Fault):
    """When an id comes again in a later reply, the result of the later call is left out."""

    source = ("can1357/oh-my-pi#2055",)
    caught_by = "model-input-well-formed"

    def tell(self, conversation: ConversationState) -> None:
        told = {item.id for item in conversation.items if item.kind == "result"}
        conversation.calls = [call for call in conversation.calls if call.id not in told]
        super().tell(conversation)
