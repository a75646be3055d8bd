"""Faults of hosted calls: approvals that belong to the model's provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Item, Reply, ToolSpec
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference import feedback
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.state import AcceptedDecision, CallState, ConversationState


class HostedCallIsApprovedUnasked(Fault):
    """The provider is told to run what nobody approved."""

    source = ("pydantic/pydantic-ai#3162", "smg-project/smg#159")
    caught_by = "approval-before-execution"

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        return call.kind != "hosted_mcp" and await super().needs_approval(conversation, call, spec)


class HostedDecisionIsNotSent(Fault):
    """The decision about a hosted call never reaches the provider."""

    source = ("microsoft/agent-framework#7125", "openai/openai-agents-python#2230")
    caught_by = "approved-runs"

    def deliver_results(self, conversation: ConversationState) -> None:
        conversation.calls = [call for call in conversation.calls if call.kind != "hosted_mcp"]
        super().deliver_results(conversation)


class HostedRejectionApproves(Fault):
    """The provider is told that a rejected call is approved."""

    source = ("smg-project/smg#1246",)
    caught_by = "rejected-never-runs"

    def build_response_item(self, call: CallState, message: int) -> Item:
        return replace(super().build_response_item(call, message), approved=True)


class HostedDecisionIsSentTwice(Fault):
    """The provider is sent the decision about a hosted call twice."""

    source = ("vercel/ai#18605",)
    caught_by = "model-input-well-formed"

    def deliver_results(self, conversation: ConversationState) -> None:
        hosted = [call for call in conversation.calls if call.kind == "hosted_mcp"]
        super().deliver_results(conversation)
        self.add_message(conversation, [self.build_response_item(call, conversation.messages) for call in hosted])


class HostedRequestIsLostBesideOthers(Fault):
    """A hosted call next to function calls is forgotten."""

    source = ("microsoft/agent-framework#5535",)
    caught_by = "every-gated-call-asked"

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        functions = [call for call in conversation.calls if call.kind != "hosted_mcp"]
        conversation.calls = functions or conversation.calls
        await super().process_calls(conversation, turn)


class HostedResultsAreForgotten(Fault):
    """What the provider reports of the calls that it ran is not in later inputs."""

    source = ("openai/openai-agents-python#2384", "CherryHQ/cherry-studio#10241")
    caught_by = "result-delivered-once"

    def record_reply(self, conversation: ConversationState, reply: Reply, turn: TurnContext) -> None:
        super().record_reply(conversation, replace(reply, hosted=()), turn)


class HostedFailureIsKeptEmpty(Fault):
    """A call that failed at the provider is kept without its error."""

    source = ("openai/openai-agents-python#2384",)
    caught_by = "result-delivered-once"

    def record_reply(self, conversation: ConversationState, reply: Reply, turn: TurnContext) -> None:
        hosted = tuple(replace(result, error=None) for result in reply.hosted)
        super().record_reply(conversation, replace(reply, hosted=hosted), turn)


class HostedReasonIsNotSent(Fault):
    """The provider is told that a call is rejected, and not why."""

    source = ("openai/openai-agents-python#2658",)
    caught_by = "reason-told"

    def build_response_item(self, call: CallState, message: int) -> Item:
        return replace(super().build_response_item(call, message), text=None)


class RejectedMcpCallRejectsTheServer(Fault):
    """After one rejected call of a server, its further calls are rejected without being asked about."""

    source = ("github/copilot-cli#290",)
    caught_by = "every-gated-call-asked"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._rejected: set[str | None] = {None}

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        if decision.verdict == "reject":
            self._rejected.add(call.server)
        super().apply_decision(conversation, call, decision, turn)

    async def examine_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().examine_call(conversation, call, turn)
        if call.stage == "waiting" and call.server is not None and call.server in self._rejected:
            self.close_call(call, feedback.rejection_text(None), turn)


class LocalDecisionIsSentAsHostedOne(Fault):
    """The decision about a call of a connected server is sent to the provider, too, if a hosted call is beside it."""

    source = ("openai/openai-agents-python#2230", "vercel/ai#11110")
    caught_by = "no-function-approvals-in-model-input"

    def deliver_results(self, conversation: ConversationState) -> None:
        own = [call for call in conversation.calls if call.kind == "mcp"]
        has_hosted = any(call.kind == "hosted_mcp" for call in conversation.calls)
        super().deliver_results(conversation)
        if has_hosted:
            self.add_message(conversation, [self.build_response_item(call, conversation.messages) for call in own])


class ApprovedHostedCallOfAGoneToolIsDropped(Fault):
    """The approval of a hosted call whose tool is gone after a restart is not sent to its provider."""

    source = ("openai/openai-agents-python#5119",)
    caught_by = "model-input-well-formed"

    async def execute_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        if call.kind == "hosted_mcp" and self.find_spec(conversation, call) is None:
            conversation.calls = [other for other in conversation.calls if other is not call]
            conversation.asks_model = True
        else:
            await super().execute_call(conversation, call, turn)


class HostedDecisionIsLostAfterRestoring(Fault):
    """The decision about a hosted call is not sent to its provider if the state was restored before it."""

    source = ("openai/openai-agents-js#131",)
    caught_by = "model-input-well-formed"
    _restored = False

    async def load(self, parts: Sequence[str]) -> None:
        await super().load(parts)
        self._restored = True

    def deliver_results(self, conversation: ConversationState) -> None:
        if self._restored:
            conversation.calls = [call for call in conversation.calls if call.kind != "hosted_mcp"]
            self._restored = False
        super().deliver_results(conversation)


class FailedModelLosesTheHostedDecision(Fault):
    """If the model fails on the request with the decision about a hosted call, the provider is never told of it."""

    source = ("openai/openai-agents-python#2230", "openai/openai-agents-js#131")
    caught_by = "model-input-well-formed"

    async def ask_model(self, conversation: ConversationState, turn: TurnContext) -> None:
        try:
            await super().ask_model(conversation, turn)
        except ModelDown:
            while conversation.items and conversation.items[-1].kind == "approval_response":
                conversation.items.pop()
            raise
