"""Faults of standing decisions: `always` and `never` that reach too far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference.agent import TurnContext, waiting_calls
from pytest_approvals.simulation.reference.state import AcceptedDecision, CallState, ConversationState


class StandingDecisionCrossesAgents(Fault):
    """`always` about one agent's tool counts for another agent's tool of the same name."""

    source = ("openai/openai-agents-python#5144",)
    caught_by = "approval-before-execution"

    def stands_for(self, conversation: ConversationState, call: CallState) -> list[str | None]:
        return super().stands_for(conversation, call)[1:]


class StandingDecisionCrossesServers(Fault):
    """`always` about one server's tool counts for another server's tool of the same name."""

    source = ("openai/openai-agents-python#4256",)
    caught_by = "approval-before-execution"

    def stands_for(self, conversation: ConversationState, call: CallState) -> list[str | None]:
        agent, _, tool = super().stands_for(conversation, call)
        return [agent, tool]


class StandingDecisionCrossesTools(Fault):
    """`always` about one tool counts for every tool of its agent."""

    source = ("microsoft/agent-framework#6486",)
    caught_by = "approval-before-execution"

    def stands_for(self, conversation: ConversationState, call: CallState) -> list[str | None]:
        return super().stands_for(conversation, call)[:2]


class StandingDecisionBeatsAnExplicitOne(Fault):
    """`always` about one call releases the call that was rejected in the same submission."""

    source = ("openai/openai-agents-python#4429", "openai/openai-agents-js#1694")
    caught_by = "rejected-never-runs"

    def settle(self, answers: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        released = {answer.request for answer in answers if answer.verdict == "always"}
        kept = [answer for answer in answers if not released or answer.request in released]
        super().settle(kept, turn)
        explicit = {answer.request: answer for answer in answers}
        for conversation, call in list(waiting_calls(self.state.main)):
            if call.request in explicit:
                self.apply(conversation, call, explicit[call.request], turn)


class StandingDecisionCrossesSessions(Fault):
    """`always` in one session counts in another session of the same agent."""

    source = ("mastra-ai/mastra#24733",)
    caught_by = "sessions-isolated"

    async def another_session(self, world: World) -> Agent:
        other = cast("Fault", await super().another_session(world))
        other.state.standing = self.state.standing
        return other
