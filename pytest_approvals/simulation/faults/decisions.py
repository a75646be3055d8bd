"""Faults of decisions: what counts as one, about what, how often, and what happens without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.agent_side.contract.types import Condition, Decision, Outcome, ToolSpec
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference import feedback
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.persistence import AlreadySettled, MalformedDecision, Refused, UnknownRequest
from pytest_approvals.simulation.reference.state import AcceptedDecision, CallState, ConversationState, waiting_calls


class TruthyVerdictApproves(Fault):
    """Anything that is not empty counts as an approval."""

    source = ("pydantic/pydantic-ai#6922",)
    caught_by = "invalid-decision-refused"

    def validate_decision(self, decision: Decision) -> AcceptedDecision:
        if decision.verdict == "raw" and decision.raw:
            decision = replace(decision, verdict="approve")
        return super().validate_decision(decision)


class MissingVerdictApproves(Fault):
    """A decision without a verdict counts as an approval."""

    source = ("pydantic/pydantic-ai#8060",)
    caught_by = "invalid-decision-refused"

    def validate_decision(self, decision: Decision) -> AcceptedDecision:
        if decision.verdict == "raw" and decision.raw is None:
            decision = replace(decision, verdict="approve")
        return super().validate_decision(decision)


class WordsWithinWordsApprove(Fault):
    """Every text with `approve` in it counts as an approval."""

    source = ("NousResearch/hermes-agent#18945", "tinyhumansai/tinyagents#129")
    caught_by = "invalid-decision-refused"

    def validate_decision(self, decision: Decision) -> AcceptedDecision:
        said = decision.raw.get("verdict") if isinstance(decision.raw, dict) else decision.raw
        if decision.verdict == "raw" and isinstance(said, str) and "approve" in said.lower():
            decision = replace(decision, verdict="approve")
        return super().validate_decision(decision)


class BareRejectionClosesTheOtherRequests(Fault):
    """A rejection without a reason rejects the other open requests, too."""

    source = ("anomalyco/opencode#33072",)
    caught_by = "unanswered-stays-pending"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().apply_decisions(accepted, turn)
        if any(decision.verdict == "reject" and not decision.reason for decision in accepted):
            self.close_open_requests(feedback.rejection_text(None), turn)


class UnknownRequestMeansTheFirstOpenOne(Fault):
    """A decision about a request that was never made counts for one that is open."""

    source = ("langchain-ai/langgraph#8579", "langchain-ai/langchain#40206")
    caught_by = "invalid-decision-refused"

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find_call(request)
        except UnknownRequest:
            return next(waiting_calls(self.state.main))


class UnknownRequestIsIgnored(Fault):
    """A decision about a request that was never made is silently ignored."""

    source = ("langchain-ai/langgraph#8836",)
    caught_by = "invalid-decision-refused"

    def validate_decisions(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        return super().validate_decisions([decision for decision in decisions if self._is_known(decision)])

    def _is_known(self, decision: Decision) -> bool:
        try:
            self.validate_decision(decision)
        except UnknownRequest:
            return False
        except Refused:
            return True
        return True


class NoRequestMeansAll(Fault):
    """A decision that names no request counts for all that are open."""

    source = ("pydantic/pydantic-ai#7815",)
    caught_by = "invalid-decision-refused"

    def validate_decisions(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        try:
            return super().validate_decisions(decisions)
        except MalformedDecision:
            if all(decision.request is not None for decision in decisions):
                raise
            return [
                AcceptedDecision(request=call.request or "", verdict="approve")
                for _, call in waiting_calls(self.state.main)
            ]


class RefusalKillsTheSession(Fault):
    """After a decision was refused, every further turn fails."""

    source = ("microsoft/agent-framework#8575",)
    caught_by = "usable-after-refusal"
    _dead = False

    def validate_decisions(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        try:
            if self._dead:
                raise MalformedDecision("the session is in an error state")
            return super().validate_decisions(decisions)
        except Refused:
            self._dead = True
            raise


class RefusedDecisionClosesTheRequest(Fault):
    """After a refused decision, a valid one about the same request is impossible."""

    source = ("respawn-llc/kent#780",)
    caught_by = "usable-after-refusal"

    def validate_decisions(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        try:
            return super().validate_decisions(decisions)
        except Refused:
            for _, call in list(waiting_calls(self.state.main)):
                self.close_call(call, feedback.CANCELLED, TurnContext(stream=False))
            raise


class GoodPartOfARefusedSubmissionCounts(Fault):
    """The valid decisions of a refused submission take effect."""

    source = ("letta-ai/letta-code#101",)
    caught_by = "pending-survives"

    def validate_decisions(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        try:
            return super().validate_decisions(decisions)
        except Refused:
            self.apply_decisions(
                [self.validate_decision(decision) for decision in decisions if self._is_good(decision)],
                TurnContext(stream=False),
            )
            raise

    def _is_good(self, decision: Decision) -> bool:
        try:
            self.validate_decision(decision)
        except Refused:
            return False
        return True


class SettledRequestIsTakenAgain(Fault):
    """A repeated or late approval runs the call once more."""

    source = ("google/adk-python#7151", "microsoft/agent-framework#4618")
    caught_by = "settled-stays-settled"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._settled: dict[str, CallState] = {}

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        self._settled[decision.request] = replace(call)
        super().apply_decision(conversation, call, decision, turn)

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find_call(request)
        except AlreadySettled:
            if request not in self._settled:
                raise
            # A copy taken before the decision, so the call waits again.
            again = replace(self._settled[str(request)])
            self.state.main.calls.append(again)
            return self.state.main, again


class SupersededRequestCanBeApproved(Fault):
    """A request that a new message closed can still be approved, and its call runs."""

    source = ("microsoft/agent-framework#7872",)
    caught_by = "settled-stays-settled"
    _superseded: dict[str, CallState] | None = None

    def close_open_requests(self, text: str, turn: TurnContext) -> None:
        self._superseded = {call.request or "": replace(call) for _, call in waiting_calls(self.state.main)}
        super().close_open_requests(text, turn)

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find_call(request)
        except AlreadySettled:
            if self._superseded is None or request not in self._superseded:
                raise
            again = self._superseded.pop(str(request))
            self.state.main.calls.append(again)
            return self.state.main, again


class ApprovalWinsInOneSubmission(Fault):
    """Of an approval and a rejection in one submission the approval counts."""

    source = ("microsoft/agent-framework#7111",)
    caught_by = "contradiction-not-executed"

    def validate_decisions(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        accepted: dict[str, AcceptedDecision] = {}
        for decision in map(self.validate_decision, decisions):
            if decision.verdict != "reject" or decision.request not in accepted:
                accepted[decision.request] = decision
        return list(accepted.values())


class LastDecisionOfASubmissionCounts(Fault):
    """Of two decisions about one request in one submission the last counts."""

    source = ("microsoft/agent-framework#7111",)
    caught_by = "contradiction-not-executed"

    def validate_decisions(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        return list({decision.request: decision for decision in map(self.validate_decision, decisions)}.values())


class FirstStagedDecisionStands(Fault):
    """A decision that was put into the state cannot be replaced before it is submitted."""

    source = ("langchain-ai/langgraph#6663",)
    caught_by = "rejected-never-runs"

    def merge_staged(self, accepted: list[AcceptedDecision]) -> list[AcceptedDecision]:
        older = {decision.request for decision in self.state.staged}
        return self.state.staged + [decision for decision in accepted if decision.request not in older]


class GoingOnRejects(Fault):
    """Resuming without a decision rejects what is pending."""

    source = ("vercel/eve#312",)
    caught_by = "unanswered-stays-pending"

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if text is None and not decisions and not self.state.staged:
            self.close_open_requests(feedback.rejection_text(None), TurnContext(stream=False))
        return await super().turn(text, decisions, stream=stream)


class PartialAnswerRejectsTheRest(Fault):
    """The requests that a partial answer leaves out are rejected."""

    source = ("letta-ai/letta-code#101",)
    caught_by = "unanswered-stays-pending"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().apply_decisions(accepted, turn)
        if accepted:
            self.close_open_requests(feedback.rejection_text(None), turn)


class CancelKeepsTheRequestsOpen(Fault):
    """Cancelled requests are still pending."""

    source = ("cline/cline#13814", "pingdotgg/t3code#7113")
    caught_by = "settled-stays-settled"

    async def cancel(self) -> None:
        """Do nothing."""


class CancelledCallHasNoResult(Fault):
    """The model input has the cancelled call without a result."""

    source = ("umbraco/Umbraco.AI#381",)
    caught_by = "model-input-well-formed"

    async def cancel(self) -> None:
        await super().cancel()
        self.state.main.calls = []


class MessageOutweighsAnswers(Fault):
    """Decisions submitted together with a message do not count: the calls are closed."""

    source = ("vercel/eve#312",)
    caught_by = "approved-runs"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().apply_decisions([] if self._has_message else accepted, turn)

    _has_message = False

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        self._has_message = text is not None
        return await super().turn(text, decisions, stream=stream)


class DecisionsAreMatchedByPosition(Fault):
    """The decisions of a submission go to the waiting calls in order, not to the calls that they name."""

    source = ("extra-org/extra#139",)
    caught_by = "rejected-never-runs"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        waiting = [call.request or "" for _, call in waiting_calls(self.state.main)]
        moved = [replace(decision, request=request) for decision, request in zip(accepted, waiting, strict=False)]
        super().apply_decisions(moved, turn)


class ReasonOutlivesItsDecision(Fault):
    """A rejection without a reason is told with the reason of an earlier one."""

    source = ("letta-ai/letta-code#79",)
    caught_by = "result-matches-its-call"
    _reason: str | None = None

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        if decision.verdict == "reject":
            self._reason = decision.reason or self._reason
            decision = replace(decision, reason=self._reason)
        super().apply_decision(conversation, call, decision, turn)


class EditIsMergedIntoTheObject(Fault):
    """An edit of an object inside the arguments changes only the members that it names."""

    source = ("cymoo/lovia#40",)
    caught_by = "arguments-as-approved"

    def apply_edit(self, conversation: ConversationState, call: CallState, decision: AcceptedDecision) -> None:
        if decision.tool == call.tool:
            decision = replace(decision, arguments=_merge_objects(call.arguments, decision.arguments))
        super().apply_edit(conversation, call, decision)


def _merge_objects(old: Any, new: Mapping[str, Any]) -> dict[str, Any]:
    known = old if isinstance(old, Mapping) else {}
    return {
        name: {**known[name], **part} if isinstance(part, Mapping) and isinstance(known.get(name), Mapping) else part
        for name, part in new.items()
    }


class RaisingPolicyLosesTheRejection(Fault):
    """The condition is evaluated again for a rejected call, and the rejection is lost if it raises."""

    source = ("openai/openai-agents-python#3229",)
    caught_by = "asked-once"

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        spec = self.find_spec(conversation, call)
        if decision.verdict == "reject" and spec is not None and isinstance(spec.approval, Condition):
            try:
                self.world.gate(call.tool, call.arguments, call.id, agent=conversation.agent)
            except Exception:
                return
        super().apply_decision(conversation, call, decision, turn)


class PartialAnswerAsksTheModel(Fault):
    """When one of several requests is answered, the model is asked at once, with empty results of the others."""

    source = ("lobehub/lobehub#17838",)
    caught_by = "unanswered-stays-pending"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().apply_decisions(accepted, turn)
        for _, call in list(waiting_calls(self.state.main)) if accepted else ():
            self.finish_call(call, "", turn)


class SecondAnswerCountsAsAMessage(Fault):
    """An answer to what a partial answer left open counts as a message, which closes the rest."""

    source = ("microsoft/agent-framework#7692",)
    caught_by = "approved-runs"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        if accepted and any(call.stage == "done" and call.kind == "function" for call in self.state.main.calls):
            self.state.staged = []
            return self.close_open_requests("Skipped: the user sent a message instead.", turn)
        return super().apply_decisions(accepted, turn)


class MessageBesideApprovalsSkipsLaterOnes(Fault):
    """Of the decisions that come together with a message, only the first counts."""

    source = ("vercel/ai#17033",)
    caught_by = "approved-runs"

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        self.validate_decisions(decisions)
        return await super().turn(text, decisions if text is None else decisions[:1], stream=stream)


class AnyMessageApproves(Fault):
    """A message approves what waits."""

    source: ClassVar[tuple[str, ...]] = ("RooCodeInc/Roo-Code#11389",)
    caught_by = "approval-before-execution"

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if text is not None and self._approves(text):
            decided = {decision.request.id for decision in decisions if decision.request is not None}
            waiting = [request for request in await self.pending() if request.id not in decided]
            decisions = [*decisions, *(Decision(verdict="approve", request=request) for request in waiting)]
        return await super().turn(text, decisions, stream=stream)

    def _approves(self, text: str) -> bool:
        return True


class MessageThatSaysYesApproves(AnyMessageApproves):
    """A message that says yes approves what waits."""

    source: ClassVar[tuple[str, ...]] = ("RooCodeInc/Roo-Code#11211", "novuhq/novu#11882")

    def _approves(self, text: str) -> bool:
        return text.lower() in ("yes", "ok", "okay", "approve")


class GoingOnApproves(Fault):
    """A turn that goes on without a decision approves what waits."""

    source = ("mastra-ai/mastra#11338",)
    caught_by = "approval-before-execution"

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if text is None and not decisions:
            decisions = [Decision(verdict="approve", request=request) for request in await self.pending()]
        return await super().turn(text, decisions, stream=stream)


class UnansweredQuestionIsReentered(Fault):
    """A tool that has asked in its middle is entered again when the session goes on without an answer."""

    source = ("langchain-ai/langgraph#7361",)
    caught_by = "approval-before-execution"
    _has_no_input = False

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        self._has_no_input = text is None and not decisions and not self.state.staged
        return await super().turn(text, decisions, stream=stream)

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        for call in conversation.calls:
            if self._has_no_input and call.stage == "waiting" and call.entered:
                call.stage = "approved"
        await super().process_calls(conversation, turn)


class LaterApprovalReleasesTheRejectedTool(Fault):
    """After the approval of another tool, a tool that was rejected before is not asked about any more."""

    source = ("evenfire-ai/evenfire#723",)
    caught_by = "approval-before-execution"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._rejected: set[str] = set()
        self._released: set[str] = set()

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        if decision.verdict == "reject":
            self._rejected.add(call.tool)
        elif call.tool not in self._rejected:
            self._released |= self._rejected
        super().apply_decision(conversation, call, decision, turn)

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        return call.tool not in self._released and await super().needs_approval(conversation, call, spec)


class RejectionRejectsLaterTools(Fault):
    """After a rejection, the calls that follow before the next message are rejected without being asked about."""

    source = ("agno-agi/agno#5644",)
    caught_by = "every-gated-call-asked"
    _has_rejected = False

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        self._has_rejected = self._has_rejected and text is None
        return await super().turn(text, decisions, stream=stream)

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        self._has_rejected = self._has_rejected or decision.verdict == "reject"
        super().apply_decision(conversation, call, decision, turn)

    async def examine_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().examine_call(conversation, call, turn)
        if call.stage == "waiting" and self._has_rejected:
            self.close_call(call, feedback.rejection_text(None), turn)


class QueuedMessageApprovesTheNextCall(Fault):
    """A message that comes while something waits approves the next call that needs it."""

    source = ("RooCodeInc/Roo-Code#11389",)
    caught_by = "approval-before-execution"
    _has_queued = False

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        self._has_queued = text is not None and any(waiting_calls(self.state.main))
        return await super().turn(text, decisions, stream=stream)

    async def needs_approval(self, conversation: ConversationState, call: CallState, spec: ToolSpec | None) -> bool:
        needs = await super().needs_approval(conversation, call, spec)
        if needs and self._has_queued:
            self._has_queued = False
            return False
        return needs


class LateDecisionDecidesTheNextCall(Fault):
    """A decision about a request that is settled counts for the call that waits now."""

    source = ("mastra-ai/mastra#19633",)
    caught_by = "settled-stays-settled"

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find_call(request)
        except AlreadySettled:
            waiting = list(waiting_calls(self.state.main))
            if not waiting:
                raise
            return waiting[0]


class RejectionWithoutReasonIsIgnored(Fault):
    """A rejection that has no reason changes nothing, and its request stays open."""

    source = ("strands-agents/harness-sdk#4470",)
    caught_by = "asked-once"

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        if decision.verdict != "reject" or decision.reason:
            super().apply_decision(conversation, call, decision, turn)


class RejectionRejectsAllThatWaits(Fault):
    """A rejection of one call also rejects the calls that wait and were not decided."""

    source = ("anomalyco/opencode#33072",)
    caught_by = "unanswered-stays-pending"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().apply_decisions(accepted, turn)
        if any(decision.verdict == "reject" for decision in accepted):
            for _, call in list(waiting_calls(self.state.main)):
                self.close_call(call, feedback.rejection_text(None), turn)


class RejectedCallRunsBesideAnEditedOne(Fault):
    """If a call is edited, the calls that are rejected in the same submission run, too."""

    source = ("langchain-ai/langchain#40491",)
    caught_by = "rejected-never-runs"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        if any(decision.verdict == "edit" for decision in accepted):
            accepted = [
                replace(decision, verdict="approve") if decision.verdict == "reject" else decision
                for decision in accepted
            ]
        super().apply_decisions(accepted, turn)


class CancelledRequestCanBeApproved(Fault):
    """A request that was cancelled can still be approved, and its call runs."""

    source = ("MervinPraison/PraisonAI#4598",)
    caught_by = "settled-stays-settled"
    _cancelled: dict[str, CallState] | None = None

    async def cancel(self) -> None:
        self._cancelled = {call.request or "": replace(call) for _, call in waiting_calls(self.state.main)}
        await super().cancel()

    def find_call(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find_call(request)
        except AlreadySettled:
            if self._cancelled is None or request not in self._cancelled:
                raise
            again = self._cancelled.pop(str(request))
            self.state.main.calls.append(again)
            return self.state.main, again


class CancellationRejectsLaterCalls(Fault):
    """After a cancellation, further calls of the session are rejected without being asked about."""

    source = ("op7418/CodePilot#687",)
    caught_by = "every-gated-call-asked"
    _has_cancelled = False

    async def cancel(self) -> None:
        self._has_cancelled = any(waiting_calls(self.state.main))
        await super().cancel()

    async def examine_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().examine_call(conversation, call, turn)
        if self._has_cancelled and call.stage == "waiting":
            self.close_call(call, feedback.rejection_text(None), turn)


class StandingApprovalOverridesTheEdit(Fault):
    """If one submission approves a tool for good and edits another call of it, the model's arguments run."""

    source = ("openai/openai-agents-python#4429",)
    caught_by = "arguments-as-approved"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        found = [(decision, self.standing_scope(*self.find_call(decision.request))) for decision in accepted]
        approved = [scope for decision, scope in found if decision.verdict == "always"]
        decisions = [
            replace(decision, verdict="approve", tool=None, arguments=None)
            if decision.verdict == "edit" and scope in approved
            else decision
            for decision, scope in found
        ]
        super().apply_decisions(decisions, turn)
