"""Faults of nested agents and of hand-offs: what is lost or starts over where one agent calls or follows another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

from pytest_approvals.agent_side.contract import Blueprint, Decision
from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import MAIN, Item, Request, ToolSpec
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference import feedback
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.persistence import UnknownRequest
from pytest_approvals.simulation.reference.state import (
    AcceptedDecision,
    CallState,
    ConversationState,
    state_to_json,
    waiting_calls,
)


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


class CancelLeavesSubAgentWaiting(Fault):
    """A cancellation closes the caller's own requests, and leaves those of its sub-agents waiting."""

    source = ("microsoft/vscode#337339", "n8n-io/n8n#37665")
    caught_by = "settled-stays-settled"

    async def cancel(self) -> None:
        with self.exclusive_input():
            self.state.staged = []
            for call in self.state.main.calls:
                if call.stage == "waiting":
                    self.close_call(call, feedback.CANCELLED, TurnContext(stream=False))


class MessageAbandonsApprovedSubAgent(Fault):
    """A message abandons a nested agent that waits, with its call that was approved and has not run."""

    source = ("strands-agents/harness-sdk#3675",)
    caught_by = "approved-runs"

    def close_requests_of(self, conversation: ConversationState, text: str, turn: TurnContext) -> None:
        for call in conversation.calls:
            if call.inner is not None and any(waiting_calls(call.inner)):
                call.inner = None
                self.close_call(call, text, turn)
        super().close_requests_of(conversation, text, turn)


class RejectionReachesSubAgents(Fault):
    """The rejection of a call closes what nested agents beside it still wait for."""

    source = ("anomalyco/opencode#47995",)
    caught_by = "unanswered-stays-pending"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        own = {call.request for call in self.state.main.calls if call.stage == "waiting"}
        super().apply_decisions(accepted, turn)
        if any(decision.verdict == "reject" and decision.request in own for decision in accepted):
            for call in self.state.main.calls:
                if call.inner is not None:
                    self.close_requests_of(call.inner, feedback.rejection_text(None), turn)


class RejectionCoversWhatIsApprovedInside(Fault):
    """The rejection of a call rejects the calls of nested agents that are approved in the same submission."""

    source = ("anomalyco/opencode#47995",)
    caught_by = "approved-runs"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        own = {call.request for call in self.state.main.calls if call.stage == "waiting"}
        if any(decision.verdict == "reject" and decision.request in own for decision in accepted):
            accepted = [each if each.request in own else replace(each, verdict="reject") for each in accepted]
        super().apply_decisions(accepted, turn)


class RejectionEndsTheSubAgent(Fault):
    """The rejection of one call of a nested agent closes its other open calls."""

    source = ("anomalyco/opencode#47995", "google-gemini/gemini-cli#22951")
    caught_by = "unanswered-stays-pending"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        rejected = [self.find_call(decision.request)[0] for decision in accepted if decision.verdict == "reject"]
        super().apply_decisions(accepted, turn)
        for conversation in rejected:
            if conversation is not self.state.main:
                self.close_requests_of(conversation, feedback.rejection_text(None), turn)


class StagedApprovalOfSubAgentLostOnLoad(Fault):
    """Decisions that were put into the state about a nested agent's calls are not restored."""

    source = ("strands-agents/harness-sdk#3008",)
    caught_by = "decision-survives"

    async def load(self, parts: Sequence[str]) -> None:
        await super().load(parts)
        own = {call.request for call in self.state.main.calls}
        self.state.staged = [decision for decision in self.state.staged if decision.request in own]
        self.store_state()


class ApprovalOfTheDelegationIsInherited(Fault):
    """The approval of the call that runs a nested agent counts for that agent's calls, too."""

    source = ("aaif-goose/goose#11778", "spyrae/kronos-agent-os#25")
    caught_by = "approval-before-execution"

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        outer = next((outer for outer in self.state.main.calls if outer.inner is conversation), None)
        gate = self.find_spec(self.state.main, outer) if outer is not None else None
        is_approved = gate is not None and gate.approval == "always"
        return not is_approved and await super().needs_approval(conversation, call, spec)


class TamperedCopyOfSubAgentRuns(Fault):
    """What runs in a nested agent is what the caller's copy of the request says."""

    source = ("microsoft/agent-framework#7383",)
    caught_by = "arguments-as-approved"

    def validate_decision(self, decision: Decision) -> AcceptedDecision:
        accepted = super().validate_decision(decision)
        conversation, call = self.find_call(accepted.request)
        copy = decision.request
        if conversation is not self.state.main and copy is not None and accepted.verdict == "approve":
            call.tool, call.arguments = copy.tool, copy.arguments
        return accepted


class ForkReusesAnswerOfSubAgent(Fault):
    """After an earlier save was restored, a nested agent gives its answer of the other future, and does nothing."""

    source = ("langchain-ai/langgraph#6663", "openai/openai-agents-python#4413")
    caught_by = "approved-runs"
    _present: ClassVar[tuple[object, dict[str, str]]] = (None, {})

    async def execute_agent(self, agent: str, call: CallState, turn: TurnContext) -> None:
        # A restored agent is another object; what it has in common with the one before is the run that they are in.
        run = getattr(self.world, "context", self)
        if self._present[0] is not run:
            ForkReusesAnswerOfSubAgent._present = run, {}
        answers = self._present[1]
        waited = state_to_json(call.inner.items) if call.inner is not None else ""
        if waited in answers:
            call.inner = None
            return self.finish_call(call, answers[waited], turn)
        await super().execute_agent(agent, call, turn)
        if waited and call.stage == "done":
            answers[waited] = call.result or ""
        return None


class SubAgentRepeatsUngatedCallsOnLoad(Fault):
    """After the state was loaded, a nested agent runs the ungated calls again that stand beside the one that waits."""

    source = ("langchain-ai/deepagents#420",)
    caught_by = "ungated-runs-once"

    async def load(self, parts: Sequence[str]) -> None:
        await super().load(parts)
        inner = [call.inner for call in self.state.main.calls if call.inner is not None]
        for conversation in (each for each in inner if any(waiting_calls(each))):
            for call in conversation.calls:
                spec = self.find_spec(conversation, call)
                if call.stage == "done" and spec is not None and spec.approval == "never":
                    call.stage, call.result = "approved", None
        self.store_state()


class ApprovalInsideIsLostBehindAFreeCall(Fault):
    """The approval of a nested agent's call is lost if that agent has run another call before it."""

    source = ("langchain-ai/deepagentsjs#725",)
    caught_by = "asked-once"

    def approve_call(self, call: CallState) -> None:
        inner = [outer.inner for outer in self.state.main.calls if outer.inner is not None]
        own = next((each for each in inner if any(call is other for other in each.calls)), None)
        if own is not None and any(item.kind == "result" for item in own.items):
            call.request = None
        else:
            super().approve_call(call)


class ApprovalTwoLevelsDownIsLost(Fault):
    """The approval of a call leaves it waiting if it belongs to an agent that a nested agent runs."""

    source = ("openai/openai-agents-python#4414",)
    caught_by = "asked-once"

    def approve_call(self, call: CallState) -> None:
        inner = [outer.inner for outer in self.state.main.calls if outer.inner is not None]
        if any(call is other for each in (self.state.main, *inner) for other in each.calls):
            super().approve_call(call)
        else:
            call.request = None


class ApprovalReachesTheOtherSubAgent(Fault):
    """The approval of a nested agent's call counts for what other nested agents want to do with the same tool."""

    source = ("openai/codex#11162",)
    caught_by = "approval-before-execution"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        calls = [self.find_call(decision.request) for decision in accepted if decision.verdict == "approve"]
        tools = {(where.agent, call.tool) for where, call in calls if where is not self.state.main}
        super().apply_decisions(accepted, turn)
        for conversation, call in list(waiting_calls(self.state.main)):
            if (conversation.agent, call.tool) in tools:
                self.approve_call(call)


class EditInsideForgetsWhatCameBefore(Fault):
    """After an edit, a nested agent's model gets that call, and nothing of what the agent did before it."""

    source = ("mastra-ai/mastra#7799",)
    caught_by = "history-not-rewritten"

    def apply_edit(self, conversation: ConversationState, call: CallState, decision: AcceptedDecision) -> None:
        super().apply_edit(conversation, call, decision)
        if conversation is not self.state.main:
            last = conversation.items[-1].message
            conversation.items = [item for item in conversation.items if item.kind == "user" or item.message == last]


class SecondEditInsideIsIgnored(Fault):
    """Of several edits of one nested agent's calls in one submission only the first one counts."""

    source = ("langchain-ai/deepagents#554",)
    caught_by = "arguments-as-approved"

    def apply_edit(self, conversation: ConversationState, call: CallState, decision: AcceptedDecision) -> None:
        is_first = not any(other.note for other in conversation.calls if other is not call)
        if conversation is self.state.main or is_first:
            super().apply_edit(conversation, call, decision)


class DelegationIsAskedAgain(Fault):
    """A gated call that runs a nested agent is asked about again when that agent goes on."""

    source = ("openai/openai-agents-js#680", "microsoft/agent-framework#8442")
    caught_by = "asked-once"

    async def execute_agent(self, agent: str, call: CallState, turn: TurnContext) -> None:
        spec = self.find_spec(self.state.main, call)
        is_gated = spec is not None and spec.approval == "always"
        if is_gated and not call.entered and call.inner is not None and not any(waiting_calls(call.inner)):
            call.stage, call.entered, call.request = "waiting", True, None
        else:
            await super().execute_agent(agent, call, turn)


class ThirdApprovalInsideIsToldTwice(Fault):
    """From the third approval in a nested agent on, its model is told each result twice."""

    source = ("microsoft/agent-framework#8442",)
    caught_by = "result-delivered-once"

    def deliver_results(self, conversation: ConversationState) -> None:
        calls = list(conversation.calls)
        before = sum(item.kind == "result" for item in conversation.items)
        super().deliver_results(conversation)
        if conversation is not self.state.main and before >= 2:
            again = [self.build_result_item(call, conversation.messages) for call in calls]
            self.add_message(conversation, again)


class PauseInsideIsDroppedBesideAnother(Fault):
    """A nested agent that waits is told as done if a call beside it waits, too."""

    source = ("microsoft/agent-framework#8442",)
    caught_by = "every-gated-call-asked"

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        await super().process_calls(conversation, turn)
        if any(call.stage == "waiting" for call in conversation.calls):
            for call in conversation.calls:
                if call.inner is not None and any(waiting_calls(call.inner)):
                    call.inner = None
                    self.finish_call(call, "", turn)


class ApprovedDelegationNeverStarts(Fault):
    """An approved call that runs a nested agent counts as done, and the agent is never asked."""

    source = ("mastra-ai/mastra#11538",)
    caught_by = "approved-runs"

    async def execute_agent(self, agent: str, call: CallState, turn: TurnContext) -> None:
        spec = self.find_spec(self.state.main, call)
        if call.inner is None and spec is not None and spec.approval == "always":
            self.finish_call(call, "", turn)
        else:
            await super().execute_agent(agent, call, turn)


class InnermostAgentIsMisnamed(Fault):
    """A request two levels down names the nested agent that the caller runs, and not the one that asks."""

    source = ("LibreChat-AI/agents#392",)
    caught_by = "request-shows-the-call"

    def build_request(self, conversation: ConversationState, call: CallState) -> Request:
        request = super().build_request(conversation, call)
        inner = [outer.inner for outer in self.state.main.calls if outer.inner is not None]
        around = next((each for each in inner if any(other is call for _, other in waiting_calls(each))), None)
        return request if around is None else replace(request, agent=around.agent)


class FailedSubAgentStartsAgain(Fault):
    """A nested agent whose model failed begins its task anew in the next turn."""

    source = ("anthropics/claude-code#86025", "Kilo-Org/kilocode#11797")
    caught_by = "result-delivered-once"

    async def execute_agent(self, agent: str, call: CallState, turn: TurnContext) -> None:
        try:
            await super().execute_agent(agent, call, turn)
        except ModelDown:
            call.inner = None
            raise


class EditOfADelegationIsIgnored(Fault):
    """An edit of the call that runs a nested agent approves it, and the agent gets the model's text."""

    source = ("anthropics/claude-code#39814",)
    caught_by = "arguments-as-approved"

    def apply_edit(self, conversation: ConversationState, call: CallState, decision: AcceptedDecision) -> None:
        spec = self.find_spec(conversation, call)
        if spec is None or spec.runs is None:
            super().apply_edit(conversation, call, decision)


class FinishedSubAgentDeniesItsSiblings(Fault):
    """When a nested agent ends, what other nested agents wait for is told as rejected by the user."""

    source = ("NousResearch/hermes-agent#112026",)
    caught_by = "unanswered-stays-pending"

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        before = [call for call in conversation.calls if call.inner is not None]
        await super().process_calls(conversation, turn)
        if any(call.stage == "done" for call in before):
            for outer in conversation.calls:
                if outer.inner is not None:
                    for _, call in list(waiting_calls(outer.inner)):
                        self.close_call(call, feedback.rejection_text(None), turn)
            await super().process_calls(conversation, turn)


class ApprovedCallInsideIsLookedUpOutside(Fault):
    """An approved call of a nested agent is looked up among the tools of the caller's agent."""

    source = ("google/adk-python#3649",)
    caught_by = "approved-runs"

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        super().apply_decision(conversation, call, decision, turn)
        is_inside = conversation is not self.state.main
        if is_inside and call.stage == "approved" and (self.state.main.agent, call.tool) not in self.specs:
            self.finish_call(call, feedback.unknown_tool_text(call.tool), turn)


class ApprovalAfterAHandOffGoesToTheFirstAgent(Fault):
    """An approved call of the agent that the conversation was handed over to is looked up at the first agent."""

    source = ("microsoft/agent-framework#8247",)
    caught_by = "approved-runs"

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        super().apply_decision(conversation, call, decision, turn)
        is_main = conversation is self.state.main
        if is_main and call.stage == "approved" and (MAIN, call.tool) not in self.specs:
            self.finish_call(call, feedback.unknown_tool_text(call.tool), turn)


class TwoRequestsForACallAfterAHandOff(Fault):
    """A call of the agent that the conversation was handed over to makes two requests."""

    source = ("microsoft/agent-framework#8577",)
    caught_by = "request-shows-the-call"

    def list_open_requests(self) -> list[Request]:
        requests, agent = super().list_open_requests(), self.state.main.agent
        again = [replace(request, id=f"{request.id}-again") for request in requests if request.agent == agent != MAIN]
        return requests + again


class ResolvedRequestsAreListedInTheSecondPause(Fault):
    """When a nested agent pauses again, the requests of its pause before are listed as well."""

    source = ("agno-agi/agno#7864",)
    caught_by = "asked-once"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._resolved: list[Request] = []

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        decided = {decision.request for decision in accepted}
        self._resolved = [
            self.build_request(conversation, call)
            for conversation, call in waiting_calls(self.state.main)
            if call.request in decided and conversation is not self.state.main
        ]
        super().apply_decisions(accepted, turn)

    def list_open_requests(self) -> list[Request]:
        requests = super().list_open_requests()
        if all(conversation is self.state.main for conversation, _ in waiting_calls(self.state.main)):
            return requests
        known = {request.id for request in requests}
        return [request for request in self._resolved if request.id not in known] + requests


class RejectionInsideStartsTheAgentOver(Fault):
    """After a rejection inside, the nested agent begins its task anew."""

    source = ("agno-agi/agno#9663",)
    caught_by = "rejection-told"

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        super().apply_decision(conversation, call, decision, turn)
        if decision.verdict == "reject" and not any(waiting_calls(conversation)):
            for outer in self.state.main.calls:
                if outer.inner is conversation:
                    outer.inner, outer.stage = None, "approved"


class CallerForgetsWhatCameBeforeAPauseInside(Fault):
    """After a nested agent has paused, its caller's model gets only what came since the last message."""

    source = ("agno-agi/agno#7697",)
    caught_by = "history-not-rewritten"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        decided, main = {decision.request for decision in accepted}, self.state.main
        is_inside = any(
            conversation is not main and call.request in decided for conversation, call in waiting_calls(main)
        )
        super().apply_decisions(accepted, turn)
        begun = max((place for place, item in enumerate(main.items) if item.kind == "user"), default=0)
        if is_inside:
            main.trimmed += begun
            del main.items[:begun]


class AnswerInsideIsUsedAgain(Fault):
    """The approval of a nested agent's call also answers what that agent asks next in the same turn."""

    source = ("langchain-ai/langgraph#2870",)
    caught_by = "approval-before-execution"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._answered: list[ConversationState] = []

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        approved = {decision.request for decision in accepted if decision.verdict == "approve"}
        self._answered = [
            conversation
            for conversation, call in waiting_calls(self.state.main)
            if call.request in approved and conversation is not self.state.main
        ]
        super().apply_decisions(accepted, turn)

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        needed = await super().needs_approval(conversation, call, spec)
        return needed and not any(conversation is answered for answered in self._answered)


class OnlyTheFirstAnswerInsideCounts(Fault):
    """Of decisions about the calls of several nested agents in one submission only those about the first count."""

    source = ("langchain-ai/langgraph#4028",)
    caught_by = "asked-once"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        inside = {
            call.request: conversation
            for conversation, call in waiting_calls(self.state.main)
            if conversation is not self.state.main
        }
        first = next((inside[decision.request] for decision in accepted if decision.request in inside), None)
        kept = [decision for decision in accepted if inside.get(decision.request, first) is first]
        super().apply_decisions(kept, turn)
