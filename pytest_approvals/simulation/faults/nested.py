"""Faults of nested agents and of hand-offs: what is lost or starts over where one agent calls or follows another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from pytest_approvals.agent_side.contract import Decision
from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import MAIN, Item, ToolSpec
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.persistence import UnknownRequest
from pytest_approvals.simulation.reference.state import AcceptedDecision, CallState, ConversationState, waiting_calls


class NestedPauseBecomesAResult(Fault):
    """When a nested agent waits for approval, the outer model is told that it is done."""

    source = ("sagents-ai/sagents#7", "openai/openai-agents-js#243", "microsoft/agent-framework#4963")
    caught_by = "every-gated-call-asked"

    async def execute_agent(self, agent: str, call: CallState, turn: TurnContext) -> None:
        await super().execute_agent(agent, call, turn)
        if call.inner is not None:
            self.finish_call(call, "The agent has nothing to say.", turn)
            call.inner = None


class NestedAgentStartsOver(Fault):
    """A nested agent restarts its conversation after a decision."""

    source = ("langchain-ai/langgraph#7561", "strands-agents/harness-sdk#3076")
    caught_by = "approved-runs"

    async def execute_agent(self, agent: str, call: CallState, turn: TurnContext) -> None:
        if call.inner is not None and not any(waiting_calls(call.inner)):
            call.inner = None
        await super().execute_agent(agent, call, turn)


class OnlyTheFirstNestedAgentIsHeard(Fault):
    """Of parallel nested agents that wait, only the first is waited for."""

    source = ("mastra-ai/mastra#19435", "MODSetter/SurfSense#1393")
    caught_by = "every-gated-call-asked"

    async def execute_agent(self, agent: str, call: CallState, turn: TurnContext) -> None:
        await super().execute_agent(agent, call, turn)
        others = [other for other in self.state.main.calls if other is not call and other.inner is not None]
        if call.inner is not None and any(
            any(waiting_calls(other.inner)) for other in others if other.inner is not None
        ):
            self.finish_call(call, "The agent has nothing to say.", turn)
            call.inner = None


class NestedDecisionIsLostAfterRestoring(Fault):
    """After restoring the state, approving a nested agent's call only leads to a new request."""

    source = ("openai/openai-agents-python#2487", "openai/openai-agents-python#5141")
    caught_by = "asked-once"
    _loaded = False

    async def load(self, parts: Sequence[str]) -> None:
        await super().load(parts)
        self._loaded = True

    def approve_call(self, call: CallState) -> None:
        if self._loaded and not any(call is own for own in self.state.main.calls):
            call.request = None
        else:
            super().approve_call(call)


class SessionsShareNestedConversations(Fault):
    """A nested agent whose call has the same id in another session continues the first one's conversation."""

    source = ("openai/openai-agents-python#5123",)
    caught_by = "sessions-isolated"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._shared: dict[tuple[str, str], ConversationState] = {}

    async def another_session(self, world: World) -> Agent:
        other = cast("SessionsShareNestedConversations", await super().another_session(world))
        other._shared = self._shared
        return other

    async def execute_agent(self, agent: str, call: CallState, turn: TurnContext) -> None:
        key = agent, call.id
        if call.inner is None and key in self._shared:
            call.inner = self._shared[key]
        await super().execute_agent(agent, call, turn)
        if call.inner is not None:
            self._shared[key] = call.inner


class AnswerGoesToTheFirstCallWithThatId(Fault):
    """When two nested agents' models use one call id, every answer goes to the first."""

    source = ("mastra-ai/mastra#24733", "pydantic/pydantic-ai#6241")
    caught_by = "approval-before-execution"

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        _, meant = super().find_call(request)
        return next((where, call) for where, call in waiting_calls(self.state.main) if call.id == meant.id)

    def reject_repetition(self, decision: object, before: object) -> None:
        """Let both answers pass."""


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


class InnerToolIsTheResult(Fault):
    """The outer model is told what the nested agent's last tool returned, and not what the nested agent said."""

    source = ("openclaw/openclaw#64727", "Gentleman-Programming/gentle-ai#387")
    caught_by = "result-matches-its-call"

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        results = [item.text for item in call.inner.items if item.kind == "result"] if call.inner is not None else []
        super().finish_call(call, results[-1] or "" if results else text, turn)


class InnerReasoningIsStripped(Fault):
    """A nested agent's model does not get its reasoning back."""

    source = ("openclaw/openclaw#35023",)
    caught_by = "reasoning-kept"

    def model_input(self, conversation: ConversationState) -> list[Item]:
        items = super().model_input(conversation)
        return items if conversation is self.state.main else [item for item in items if item.kind != "reasoning"]


class GatedHandOffIsNotAsked(Fault):
    """The call that hands the conversation over needs approval, and is carried out without it."""

    source = ("microsoft/agent-framework#5035",)
    caught_by = "every-gated-call-asked"

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        hands_over = spec is not None and spec.hands_over_to is not None
        return not hands_over and await super().needs_approval(conversation, call, spec)


class SecondAgentIsOfferedTheFirstOnesTools(Fault):
    """After a hand-off the model is offered the tools of the agent that had the conversation before."""

    source = ("MervinPraison/PraisonAI#1842", "microsoft/autogen#6859")
    caught_by = "own-tools-offered"

    def list_offered_tools(self, agent: str) -> tuple[str, ...]:
        hands_over = any(spec.hands_over_to is not None for spec in self.blueprint.tools)
        return super().list_offered_tools(MAIN if hands_over else agent)


class ReasonsInSubAgentsAreLost(Fault):
    """The model of a nested agent is told of a rejection, and not why."""

    source = ("openai/openai-agents-python#2658", "langchain-ai/deepagents#2947")
    caught_by = "reason-told"

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        known = decision if conversation is self.state.main else replace(decision, reason=None)
        super().apply_decision(conversation, call, known, turn)


class FailedAgentIsASuccess(Fault):
    """If the model of a nested agent fails, the outer model is told an empty text."""

    source = ("vercel/eve#412", "gotgenes/pi-packages#889", "Kilo-Org/kilocode#10485")
    caught_by = "result-matches-its-call"

    async def execute_agent(self, agent: str, call: CallState, turn: TurnContext) -> None:
        try:
            await super().execute_agent(agent, call, turn)
        except ModelDown:
            call.inner = None
            self.finish_call(call, "", turn)
