"""Faults of decisions: what counts as one, about what, how often, and what happens without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_approvals.agent_side.contract.types import Decision, Outcome
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference import feedback
from pytest_approvals.simulation.reference.agent import TurnContext, waiting_calls
from pytest_approvals.simulation.reference.refusals import AlreadySettled, MalformedDecision, Refused, UnknownRequest
from pytest_approvals.simulation.reference.state import AcceptedDecision, CallState, ConversationState


class TruthyVerdictApproves(Fault):
    """Anything that is not empty counts as an approval."""

    source = ("pydantic/pydantic-ai#6922",)
    caught_by = "invalid-decision-refused"

    def judge(self, decision: Decision) -> AcceptedDecision:
        if decision.verdict == "raw" and decision.raw:
            decision = replace(decision, verdict="approve")
        return super().judge(decision)


class MissingVerdictApproves(Fault):
    """A decision without a verdict counts as an approval."""

    source = ("pydantic/pydantic-ai#8060",)
    caught_by = "invalid-decision-refused"

    def judge(self, decision: Decision) -> AcceptedDecision:
        if decision.verdict == "raw" and decision.raw is None:
            decision = replace(decision, verdict="approve")
        return super().judge(decision)


class UnknownRequestMeansTheFirstOpenOne(Fault):
    """A decision about a request that was never made counts for one that is open."""

    source = ("langchain-ai/langgraph#8579", "langchain-ai/langchain#40206")
    caught_by = "invalid-decision-refused"

    def find(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find(request)
        except UnknownRequest:
            return next(waiting_calls(self.state.main))


class UnknownRequestIsIgnored(Fault):
    """A decision about a request that was never made is passed over in silence."""

    source = ("langchain-ai/langgraph#8836",)
    caught_by = "invalid-decision-refused"

    def judge_all(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        return super().judge_all([decision for decision in decisions if self._is_known(decision)])

    def _is_known(self, decision: Decision) -> bool:
        try:
            self.judge(decision)
        except UnknownRequest:
            return False
        except Refused:
            return True
        return True


class NoRequestMeansAll(Fault):
    """A decision that names no request counts for all that are open."""

    source = ("pydantic/pydantic-ai#7815",)
    caught_by = "invalid-decision-refused"

    def judge_all(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        try:
            return super().judge_all(decisions)
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

    def judge_all(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        try:
            if self._dead:
                raise MalformedDecision("the session is in an error state")
            return super().judge_all(decisions)
        except Refused:
            self._dead = True
            raise


class RefusedDecisionClosesTheRequest(Fault):
    """A decision that was refused cannot be made rightly afterwards."""

    source = ("respawn-llc/kent#780",)
    caught_by = "usable-after-refusal"

    def judge_all(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        try:
            return super().judge_all(decisions)
        except Refused:
            for _, call in list(waiting_calls(self.state.main)):
                self.refuse(call, feedback.CANCELLED, TurnContext(stream=False))
            raise


class GoodPartOfARefusedSubmissionCounts(Fault):
    """Of a submission that is refused, the decisions that are not bad take effect."""

    source = ("letta-ai/letta-code#101",)
    caught_by = "pending-survives"

    def judge_all(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        try:
            return super().judge_all(decisions)
        except Refused:
            self.settle(
                [self.judge(decision) for decision in decisions if self._is_good(decision)], TurnContext(stream=False)
            )
            raise

    def _is_good(self, decision: Decision) -> bool:
        try:
            self.judge(decision)
        except Refused:
            return False
        return True


class SettledRequestIsTakenAgain(Fault):
    """A repeated or late approval runs the call once more."""

    source = ("google/adk-python#7151", "microsoft/agent-framework#4618")
    caught_by = "settled-stays-settled"

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self._settled: dict[str, CallState] = {}

    def apply(
        self, conversation: ConversationState, call: CallState, answer: AcceptedDecision, turn: TurnContext
    ) -> None:
        self._settled[answer.request] = replace(call)
        super().apply(conversation, call, answer, turn)

    def find(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find(request)
        except AlreadySettled:
            if request not in self._settled:
                raise
            again = replace(self._settled[str(request)])
            self.state.main.calls.append(again)
            return self.state.main, again


class SupersededRequestCanBeApproved(Fault):
    """A request that a new message closed can still be approved, and its call runs."""

    source = ("microsoft/agent-framework#7872",)
    caught_by = "settled-stays-settled"
    _superseded: dict[str, CallState] | None = None

    def close_open(self, text: str, turn: TurnContext) -> None:
        self._superseded = {call.request or "": replace(call) for _, call in waiting_calls(self.state.main)}
        super().close_open(text, turn)

    def find(self, request: object) -> tuple[ConversationState, CallState]:
        try:
            return super().find(request)
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

    def judge_all(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        answers: dict[str, AcceptedDecision] = {}
        for answer in map(self.judge, decisions):
            if answer.verdict != "reject" or answer.request not in answers:
                answers[answer.request] = answer
        return list(answers.values())


class LastDecisionOfASubmissionCounts(Fault):
    """Of two decisions about one request in one submission the last counts."""

    source = ("microsoft/agent-framework#7111",)
    caught_by = "contradiction-not-executed"

    def judge_all(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        return list({answer.request: answer for answer in map(self.judge, decisions)}.values())


class FirstStagedDecisionStands(Fault):
    """A decision that was put into the state cannot be replaced before it is submitted."""

    source = ("langchain-ai/langgraph#6663",)
    caught_by = "rejected-never-runs"

    def with_staged(self, answers: list[AcceptedDecision]) -> list[AcceptedDecision]:
        older = {answer.request for answer in self.state.staged}
        return self.state.staged + [answer for answer in answers if answer.request not in older]


class GoingOnRejects(Fault):
    """Going on without an answer rejects what is pending."""

    source = ("vercel/eve#312",)
    caught_by = "unanswered-stays-pending"

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if text is None and not decisions and not self.state.staged:
            self.close_open(feedback.rejection_text(None), TurnContext(stream=False))
        return await super().turn(text, decisions, stream=stream)


class PartialAnswerRejectsTheRest(Fault):
    """The requests that a partial answer leaves out are rejected."""

    source = ("letta-ai/letta-code#101",)
    caught_by = "unanswered-stays-pending"

    def settle(self, answers: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().settle(answers, turn)
        if answers:
            self.close_open(feedback.rejection_text(None), turn)


class CancelKeepsTheRequestsOpen(Fault):
    """What was given up is still pending."""

    source = ("cline/cline#13814", "pingdotgg/t3code#7113")
    caught_by = "settled-stays-settled"

    async def cancel(self) -> None:
        """Does nothing."""


class CancelledCallHasNoResult(Fault):
    """The model is sent the call that was given up without a result."""

    source = ("umbraco/Umbraco.AI#381",)
    caught_by = "model-input-well-formed"

    async def cancel(self) -> None:
        await super().cancel()
        self.state.main.calls = []


class MessageOutweighsAnswers(Fault):
    """Decisions that come together with a message do not count: the calls are closed."""

    source = ("vercel/eve#312",)
    caught_by = "approved-runs"

    def settle(self, answers: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().settle([] if self._has_message else answers, turn)

    _has_message = False

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        self._has_message = text is not None
        return await super().turn(text, decisions, stream=stream)
