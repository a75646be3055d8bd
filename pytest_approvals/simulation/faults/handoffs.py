"""Faults of hand-offs and structured answers: pauses that conflict with another way to continue or end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_approvals.agent_side.contract import Decision
from pytest_approvals.agent_side.contract.types import MAIN
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.refusals import UnknownRequest
from pytest_approvals.simulation.reference.state import AcceptedDecision, ConversationState


class HandOffForgetsWhatWaits(Fault):
    """A hand-off ends the calls of its reply that wait for approval."""

    source = ("openai/openai-agents-python#2151",)
    caught_by = "every-gated-call-asked"

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        await super().process_calls(conversation, turn)
        if any(call.hands_over_to for call in conversation.calls):
            for call in conversation.calls:
                if call.stage == "waiting":
                    self.finish_call(call, "The conversation was handed over.", turn)


class HandOffIsLostAfterRestoring(Fault):
    """After the state was loaded, the first agent has the conversation again."""

    source = ("openai/openai-agents-python#2151", "google/adk-python#7148")
    caught_by = "approved-runs"

    async def load(self, parts: Sequence[str]) -> None:
        await super().load(parts)
        self.state.main.agent = MAIN


class RefusedAnswerStandsInTheWay(Fault):
    """A structured answer that did not fit has to be decided, too, before its sibling calls can be."""

    source = ("pydantic/pydantic-ai#6486",)
    caught_by = "usable-after-refusal"
    _refused = False

    def record_answer(self, conversation: ConversationState, answer: Mapping[str, Any]) -> None:
        super().record_answer(conversation, answer)
        self._refused = conversation.asks_model and bool(conversation.calls)

    def validate_decision(self, decision: Decision) -> AcceptedDecision:
        if self._refused:
            raise UnknownRequest("the answer")
        return super().validate_decision(decision)
