"""Faults of identity: call ids that are repeated, missing, or trusted too much."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.types import ModelCall, Reply, ToolSpec
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference import feedback
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.state import AcceptedDecision, CallState, ConversationState, waiting_calls


class ReusedIdIsApprovedAlready(Fault):
    """A call whose id an earlier call had runs on the approval of that one."""

    source = ("openai/openai-agents-python#4257",)
    caught_by = "approval-before-execution"

    async def examine_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().examine_call(conversation, call, turn)
        if call.stage == "waiting" and any(item.kind == "result" and item.id == call.id for item in conversation.items):
            self.approve_call(call)


class CallsWithOneIdShareADecision(Fault):
    """Two calls of one reply with the same id are both settled by one decision."""

    source = ("pydantic/pydantic-ai#6241", "pydantic/pydantic-ai#5761")
    caught_by = "approval-before-execution"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        # The reference agent renames a repeated id `c1` to `c1-2`.
        decided = {
            call.id.partition("-")[0] for _, call in waiting_calls(self.state.main) if self._answers(accepted, call)
        }
        super().apply_decisions(accepted, turn)
        for _, call in list(waiting_calls(self.state.main)):
            if call.id.partition("-")[0] in decided:
                self.approve_call(call)

    def _answers(self, accepted: Sequence[AcceptedDecision], call: CallState) -> bool:
        return any(decision.request == call.request and decision.verdict == "approve" for decision in accepted)


class CallsWithOneIdAreMerged(Fault):
    """Of two calls of one reply with the same id only the last is seen."""

    source = ("huggingface/smolagents#2683",)
    caught_by = "every-gated-call-asked"

    def build_calls(self, conversation: ConversationState, reply: Reply) -> list[CallState]:
        calls = self._build_all(conversation, reply)
        return list({made.id: call for made, call in zip(reply.calls, calls, strict=True)}.values())

    def _build_all(self, conversation: ConversationState, reply: Reply) -> list[CallState]:
        return super().build_calls(conversation, reply)


class MissingIdStaysMissing(Fault):
    """A call that came without an id goes back to the model without one."""

    source = ("microsoft/autogen#5508",)
    caught_by = "model-input-well-formed"

    def assign_call_id(self, conversation: ConversationState, model_call: ModelCall, taken: Sequence[str]) -> str:
        return "" if model_call.id is None else super().assign_call_id(conversation, model_call, taken)


class RepeatedIdHasNoSecondResult(Fault):
    """If a later reply repeats an id, the result of the later call is missing."""

    source = ("can1357/oh-my-pi#2055",)
    caught_by = "model-input-well-formed"

    def deliver_results(self, conversation: ConversationState) -> None:
        told = {item.id for item in conversation.items if item.kind == "result"}
        conversation.calls = [call for call in conversation.calls if call.id not in told]
        super().deliver_results(conversation)


class CallsWithoutArgumentsShareAnApproval(Fault):
    """The approval of a call without arguments counts for every later call without arguments."""

    source = ("Agenta-AI/agenta#4854",)
    caught_by = "approval-before-execution"
    _approved = False

    def approve_call(self, call: CallState) -> None:
        self._approved = self._approved or (call.stage == "waiting" and not call.arguments)
        super().approve_call(call)

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        is_known = self._approved and not call.arguments
        return not is_known and await super().needs_approval(conversation, call, spec)


class ApprovalIsRememberedByArguments(Fault):
    """A call that is equal to one that was approved runs without approval."""

    source = ("vellum-ai/vellum-assistant#5762",)
    caught_by = "approval-before-execution"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._approved: list[tuple[str, object]] = []

    def approve_call(self, call: CallState) -> None:
        self._approved.append((call.tool, call.arguments))
        super().approve_call(call)

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        is_known = (call.tool, call.arguments) in self._approved
        return not is_known and await super().needs_approval(conversation, call, spec)


class RejectionIsRememberedByArguments(Fault):
    """A call that is equal to one that was rejected is rejected without being asked about."""

    source = ("QwenLM/qwen-code#11025",)
    caught_by = "every-gated-call-asked"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._rejected: list[tuple[str, object]] = []

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        if decision.verdict == "reject":
            self._rejected.append((call.tool, call.arguments))
        super().apply_decision(conversation, call, decision, turn)

    async def examine_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().examine_call(conversation, call, turn)
        if call.stage == "waiting" and (call.tool, call.arguments) in self._rejected:
            self.close_call(call, feedback.rejection_text(None), turn)


class RejectionCountsForItsId(Fault):
    """A later call with the id of a rejected one is told as rejected, too, and nobody is asked about it."""

    source = ("openai/openai-agents-python#4257", "microsoft/agent-framework#7581")
    caught_by = "every-gated-call-asked"

    async def examine_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().examine_call(conversation, call, turn)
        rejection = feedback.rejection_text(None)
        told = [
            item for item in conversation.items if (item.kind, item.id, item.tool) == ("result", call.id, call.tool)
        ]
        if call.stage == "waiting" and any((item.text or "").startswith(rejection) for item in told):
            self.close_call(call, rejection, turn)


class HandOverMovesAllSessions(Fault):
    """The agent that takes over a conversation has those of all sessions from then on."""

    source = ("microsoft/agent-framework#8247", "microsoft/agent-framework#4057")
    caught_by = "approved-runs"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._active: list[str] = []

    async def another_session(self, world: World) -> Agent:
        other = await super().another_session(world)
        assert isinstance(other, HandOverMovesAllSessions)
        other._active = self._active
        return other

    def reload_state(self) -> None:
        super().reload_state()
        self.state.main.agent = [self.state.main.agent, *self._active][-1]

    def deliver_results(self, conversation: ConversationState) -> None:
        before = conversation.agent
        super().deliver_results(conversation)
        if conversation is self.state.main and conversation.agent != before:
            self._active.append(conversation.agent)


class RequestIsFoundByItsNumber(Fault):
    """An answer to a request of a state that was left applies to the request that has its number now."""

    source = ("ThalesGroup/fred#2216",)
    caught_by = "invalid-decision-refused"

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        number = request.split("-")[:2] if isinstance(request, str) else []
        for conversation, call in waiting_calls(self.state.main):
            if call.request is not None and call.request.split("-")[:2] == number:
                return conversation, call
        return super().find_call(request)


class CancellationClosesAllSessions(Fault):
    """A cancellation closes the open requests of the other sessions of the agent, too."""

    source = ("EdanStarfire/claudecode_webui#1754",)
    caught_by = "sessions-isolated"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._sessions: list[CancellationClosesAllSessions] = [self]

    async def another_session(self, world: World) -> Agent:
        other = await super().another_session(world)
        assert isinstance(other, CancellationClosesAllSessions)
        self._sessions.append(other)
        other._sessions = self._sessions
        return other

    async def cancel(self) -> None:
        for session in self._sessions:
            await super(CancellationClosesAllSessions, session).cancel()
