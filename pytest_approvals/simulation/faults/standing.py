"""Faults of standing decisions: `always` and `never` that reach too far, or not far enough."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.state import (
    AcceptedDecision,
    CallState,
    ConversationState,
    SessionState,
    StandingDecision,
    waiting_calls,
)


class StandingDecisionCrossesAgents(Fault):
    """`always` about one agent's tool counts for another agent's tool of the same name."""

    source = ("openai/openai-agents-python#5144",)
    caught_by = "approval-before-execution"

    def standing_scope(self, conversation: ConversationState, call: CallState) -> list[str | None]:
        return super().standing_scope(conversation, call)[1:]


class StandingDecisionCrossesServers(Fault):
    """`always` about one server's tool counts for another server's tool of the same name."""

    source = ("openai/openai-agents-python#4256",)
    caught_by = "approval-before-execution"

    def standing_scope(self, conversation: ConversationState, call: CallState) -> list[str | None]:
        agent, _, tool = super().standing_scope(conversation, call)
        return [agent, tool]


class StandingDecisionCrossesTools(Fault):
    """`always` about one tool counts for every tool of its agent."""

    source = ("microsoft/agent-framework#6486",)
    caught_by = "approval-before-execution"

    def standing_scope(self, conversation: ConversationState, call: CallState) -> list[str | None]:
        return super().standing_scope(conversation, call)[:2]


class StandingDecisionBeatsAnExplicitOne(Fault):
    """`always` about one call releases the call that was rejected in the same submission."""

    source = ("openai/openai-agents-python#4429", "openai/openai-agents-js#1694")
    caught_by = "rejected-never-runs"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        released = {decision.request for decision in accepted if decision.verdict == "always"}
        kept = [decision for decision in accepted if not released or decision.request in released]
        super().apply_decisions(kept, turn)
        explicit = {decision.request: decision for decision in accepted}
        for conversation, call in list(waiting_calls(self.state.main)):
            if call.request in explicit:
                self.apply_decision(conversation, call, explicit[call.request], turn)


class StandingDecisionCrossesSessions(Fault):
    """`always` in one session counts in another session of the same agent."""

    source = ("mastra-ai/mastra#24733",)
    caught_by = "sessions-isolated"

    async def another_session(self, world: World) -> Agent:
        other = cast("Fault", await super().another_session(world))
        other.state.standing = self.state.standing
        return other


class ApprovalOfOneCallStands(Fault):
    """An approval of one call also holds for later calls of its tool."""

    source = ("nesquena/hermes-webui#6036",)
    caught_by = "approval-before-execution"

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        if decision.verdict == "approve" and not call.entered:
            self.add_standing_decision(conversation, call, replace(decision, verdict="always"))
        super().apply_decision(conversation, call, decision, turn)


class AlwaysCoversTheServer(Fault):
    """`always` about one tool of a server counts for all tools of that server."""

    source = ("cline/cline#11698",)
    caught_by = "approval-before-execution"

    def standing_scope(self, conversation: ConversationState, call: CallState) -> list[str | None]:
        agent, server, tool = super().standing_scope(conversation, call)
        return [agent, server, tool if server is None else None]


class AlwaysIsTakenForOnce(Fault):
    """`always` approves its call, and is not remembered for further ones."""

    source = ("QwenLM/qwen-code#3069",)
    caught_by = "asked-once"

    def add_standing_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision
    ) -> None:
        if decision.verdict != "always":
            super().add_standing_decision(conversation, call, decision)


class StandingApprovalIsUsedUp(Fault):
    """A standing approval holds for the next call of its tool, and for none after that."""

    source = ("tinyhumansai/opencompany#561",)
    caught_by = "asked-once"

    def apply_standing_decision(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        standing = self.find_standing_decision(conversation, call)
        super().apply_standing_decision(conversation, call, turn)
        if standing is not None and standing.verdict == "always":
            self.state.standing.remove(standing)


class HostedStandingDecisionIgnoresServer(Fault):
    """`always` about a hosted tool approves what waits for the tool of that name of another server."""

    source = ("openai/openai-agents-python#4256",)
    caught_by = "approval-before-execution"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        standing = [self.find_call(decision.request)[1] for decision in accepted if decision.verdict == "always"]
        tools = {call.tool for call in standing if call.kind == "hosted_mcp"}
        super().apply_decisions(accepted, turn)
        for _, call in list(waiting_calls(self.state.main)):
            if call.kind == "hosted_mcp" and call.tool in tools:
                self.approve_call(call)


class HostedNeverIgnoresServer(Fault):
    """`never` about a hosted tool counts for the tool of that name of another server."""

    source = ("openai/openai-agents-python#4256",)
    caught_by = "every-gated-call-asked"

    def find_standing_decision(self, conversation: ConversationState, call: CallState) -> StandingDecision | None:
        wide = [standing for standing in self.state.standing if standing.verdict == "never"]
        if call.kind == "hosted_mcp":
            for standing in wide:
                if standing.about[1] is not None and standing.about[2] == call.tool:
                    return standing
        return super().find_standing_decision(conversation, call)


class HostedAlwaysCountsForOwnServers(Fault):
    """`always` about a hosted tool counts for the tool of that name of a server that the agent connects to."""

    source = ("openai/openai-agents-python#4256",)
    caught_by = "approval-before-execution"

    def standing_scope(self, conversation: ConversationState, call: CallState) -> list[str | None]:
        agent, server, tool = super().standing_scope(conversation, call)
        servers = [
            spec.server for spec in self.specs.get((conversation.agent, call.tool), ()) if spec.kind == "hosted_mcp"
        ]
        return [agent, servers[0] if servers and call.kind == "mcp" else server, tool]


class SubAgentTakesStandingDecisionsWithIt(Fault):
    """When a nested agent ends, the standing decisions that were given while it ran are forgotten."""

    source = ("openonion/connectonion#204",)
    caught_by = "asked-once"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._known: dict[str, int] = {}

    async def execute_agent(self, agent: str, call: CallState, turn: TurnContext) -> None:
        if call.inner is None:
            self._known[call.id] = len(self.state.standing)
        await super().execute_agent(agent, call, turn)
        if call.stage == "done" and call.id in self._known:
            del self.state.standing[self._known[call.id] :]


class AlwaysHoldsForEqualArguments(Fault):
    """`always` holds for calls with the same arguments only."""

    source = ("gsd-build/gsd-2#5095",)
    caught_by = "asked-once"

    def standing_scope(self, conversation: ConversationState, call: CallState) -> list[str | None]:
        return [*super().standing_scope(conversation, call), json.dumps(call.arguments, sort_keys=True)]


class FirstStandingDecisionStands(Fault):
    """A standing decision about a tool is never replaced by a later one."""

    source = ("openai/openai-agents-python#4430",)
    caught_by = "rejected-never-runs"

    def find_standing_decision(self, conversation: ConversationState, call: CallState) -> StandingDecision | None:
        scope = self.standing_scope(conversation, call)
        return next((decision for decision in self.state.standing if decision.about == scope), None)


class RestoringASubAgentBringsBackAlways(Fault):
    """If a nested agent waits when a state is restored, an older `always` counts again over a later `never`."""

    source = ("openai/openai-agents-js#1973",)
    caught_by = "rejected-never-runs"

    def decode(self, written: str) -> SessionState:
        state = super().decode(written)
        if any(call.inner is not None for call in state.main.calls):
            state.standing.sort(key=lambda decision: decision.verdict == "always")
        return state


class StandingDecisionCountsForTheFunctionOfThatName(Fault):
    """`always` about a server's tool counts for the agent's own function of that name, and the other way round."""

    source = ("openai/openai-agents-python#3333",)
    caught_by = "approval-before-execution"

    def is_in_scope(self, about: list[str | None], scope: list[str | None]) -> bool:
        return about[::2] == scope[::2] and (about[1] == scope[1] or None in (about[1], scope[1]))


class AlwaysOfAnotherAgentBeatsNever(Fault):
    """A `never` about an agent's tool is lifted by a later `always` about another agent's tool of that name."""

    source = ("anomalyco/opencode#47825", "anomalyco/opencode#31540")
    caught_by = "rejected-never-runs"

    def find_standing_decision(self, conversation: ConversationState, call: CallState) -> StandingDecision | None:
        own = super().find_standing_decision(conversation, call)
        if own is not None and own.verdict == "never":
            for decision in self.state.standing[self.state.standing.index(own) + 1 :]:
                if decision.verdict == "always" and decision.about[1:] == own.about[1:]:
                    return decision
        return own


class StandingDecisionIgnoresCase(Fault):
    """`always` about a tool counts for another one whose name differs in case only."""

    source = ("BerriAI/litellm#34673",)
    caught_by = "approval-before-execution"

    def standing_scope(self, conversation: ConversationState, call: CallState) -> list[str | None]:
        return [part and part.casefold() for part in super().standing_scope(conversation, call)]


class StandingDecisionMatchesNamesThatBeginAlike(Fault):
    """`always` and `never` about a tool count for each tool whose name begins with that tool's name."""

    source = ("agentconnect-md/agentconnect#2220",)
    caught_by = "every-gated-call-asked"

    def is_in_scope(self, about: list[str | None], scope: list[str | None]) -> bool:
        return about[:2] == scope[:2] and (scope[2] or "").startswith(about[2] or "")
