"""Faults of ending: turns that do not end, unusable sessions, questions in the middle of a tool."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Decision, Outcome, Paused, Reply
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference import feedback
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.persistence import AlreadySettled, Busy, LimitReached
from pytest_approvals.simulation.reference.state import AcceptedDecision, CallState, ConversationState, waiting_calls


class FailingToolHangs(Fault):
    """A turn in which a tool raises never ends."""

    source = ("microsoft/autogen#7956",)
    caught_by = "run-ends"

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        # Any exception that no tool raises: `execute_tool` below recognizes it and hangs.
        if text.startswith("Error: ") and call.entered:
            raise asyncio.InvalidStateError
        super().finish_call(call, text, turn)

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        try:
            await super().execute_tool(conversation, call, turn)
        except asyncio.InvalidStateError:
            await asyncio.Event().wait()


class FailingToolLosesTheRequests(Fault):
    """If an ungated tool raises, the requests of the same reply are gone."""

    source = ("huggingface/smolagents#2554",)
    caught_by = "every-gated-call-asked"

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        await super().process_calls(conversation, turn)
        if any((call.result or "").startswith("Error: ") and call.entered for call in conversation.calls):
            for call in conversation.calls:
                if call.stage == "waiting":
                    self.close_call(call, "Error: another call failed.", turn)


class FirstAnswerIsGivenAgain(Fault):
    """The structured answer of an earlier turn is given in every later one."""

    source = ("langchain-ai/langchain#36957",)
    caught_by = "answer-given"
    _first: object = None

    def record_answer(self, conversation: ConversationState, answer: Mapping[str, Any]) -> None:
        super().record_answer(conversation, answer)
        if not conversation.asks_model:
            self._first = conversation.output = self._first or conversation.output


class LimitLosesTheCalls(Fault):
    """A turn that reaches its limit forgets its current calls, including open requests."""

    source = ("Cloudgeni-ai/opengeni#41",)
    caught_by = "model-input-well-formed"

    async def run_conversation(self, conversation: ConversationState, turn: TurnContext) -> bool:
        try:
            return await super().run_conversation(conversation, turn)
        except LimitReached:
            conversation.calls, conversation.asks_model = [], True
            raise


class ApprovedCallsAreNotCounted(Fault):
    """A call of a tool with a gate does not count as one of the calls that a turn may run."""

    source = ("agno-agi/agno#7962",)
    caught_by = "limits-kept"
    _has_gate = False

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        spec = self.find_spec(conversation, call)
        self._has_gate = spec is not None and spec.approval != "never"
        await super().execute_tool(conversation, call, turn)

    def count_execution(self, turn: TurnContext) -> None:
        if not self._has_gate:
            super().count_execution(turn)


class ApprovalLiftsTheLimit(Fault):
    """A turn that goes on after a pause counts no calls."""

    source = ("agno-agi/agno#7962",)
    caught_by = "limits-kept"
    _has_approved = False

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        self._has_approved = bool(accepted)
        super().apply_decisions(accepted, turn)

    def count_execution(self, turn: TurnContext) -> None:
        if not self._has_approved:
            super().count_execution(turn)


class SecondQuestionIsSkipped(Fault):
    """A tool that asks again in its middle continues without an answer."""

    source = ("langchain-ai/langchain#40206",)
    caught_by = "approval-before-execution"

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().execute_tool(conversation, call, turn)
        if call.stage == "waiting":
            await super().execute_tool(conversation, call, turn)


class ToolThatIsGoneLeavesTheCallOpen(Fault):
    """An approved call whose tool is gone after a restart goes to the model without a result."""

    source = ("pipecat-ai/pipecat#4300",)
    caught_by = "model-input-well-formed"

    async def execute_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        if call.kind != "hosted_mcp" and self.find_spec(conversation, call) is None:
            call.stage = "done"
            conversation.calls = [other for other in conversation.calls if other is not call]
            conversation.asks_model = True
        else:
            await super().execute_call(conversation, call, turn)


class SecondTurnRunsTheSameCalls(Fault):
    """A turn that begins while another one runs an approved call runs that call, too."""

    source = ("mastra-ai/mastra#20443", "heymrun/heym#563")
    caught_by = "runs-at-most-once"

    @contextmanager
    def exclusive_input(self) -> Iterator[None]:
        # The base class refuses a second input while the flag is set.
        running, self.is_running = self.is_running, False
        if self.is_durable and running:
            yield
        else:
            with super().exclusive_input():
                yield

    def validate_decisions(self, decisions: Sequence[Decision]) -> list[AcceptedDecision]:
        try:
            return super().validate_decisions(decisions)
        except AlreadySettled:
            begun = [call for call in self.state.main.calls if call.stage in ("approved", "running")]
            if not begun:
                raise
            for call in begun:
                call.stage = "approved"
            return []


class SessionsShareTheState(Fault):
    """Two sessions on one agent are one session."""

    source = ("LionSR/TeXRA#8144", "mastra-ai/mastra#24733")
    caught_by = "sessions-isolated"

    async def another_session(self, world: World) -> Agent:
        other = cast("Fault", await super().another_session(world))
        other.state = self.state
        return other


class RequestsOutliveTheirCalls(Fault):
    """Requests are listed as pending though their calls were answered."""

    source = ("pingdotgg/t3code#11799",)
    caught_by = "nothing-left-pending"

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._listed: dict[str, tuple[ConversationState, CallState]] = {}

    def assign_request_ids(self) -> None:
        super().assign_request_ids()
        for conversation, call in waiting_calls(self.state.main):
            self._listed[call.request or ""] = conversation, call

    async def pending(self) -> Sequence[object]:  # type: ignore[override]
        return [self.build_request(conversation, call) for conversation, call in self._listed.values()]


class TextBeforeThePauseIsTheOutput(Fault):
    """A turn that finishes gives what the model said next to the call that waited."""

    source = ("openai/openai-agents-python#1689",)
    caught_by = "answer-given"

    def record_reply(self, conversation: ConversationState, reply: Reply, turn: TurnContext) -> None:
        before = conversation.output
        super().record_reply(conversation, reply, turn)
        # What the model is asked for after a message has no text before it.
        if before and reply.say and turn.replies == 1 and conversation.items[-2].kind == "result":
            conversation.output = before


class EmptyMembersOfTheAnswerAreDropped(Fault):
    """The structured answer comes without its members that are zero, false or empty."""

    source = ("mastra-ai/mastra#20627", "anthropics/anthropic-sdk-python#1839")
    caught_by = "answer-given"

    def record_answer(self, conversation: ConversationState, answer: Mapping[str, Any]) -> None:
        super().record_answer(conversation, answer)
        if isinstance(conversation.output, dict):
            conversation.output = {name: value for name, value in conversation.output.items() if value}


class OtherSessionIsPausedToo(Fault):
    """A session takes no message while a request waits in another one."""

    source = ("oneprolabs/sourcelens#496",)
    caught_by = "sessions-isolated"

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self._sessions: list[OtherSessionIsPausedToo] = [self]

    async def another_session(self, world: World) -> Agent:
        other = cast("OtherSessionIsPausedToo", await super().another_session(world))
        other._sessions = self._sessions
        self._sessions.append(other)
        return other

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        others = [each for each in self._sessions if each is not self]
        if text is not None and any(any(waiting_calls(each.state.main)) for each in others):
            raise Busy
        return await super().turn(text, decisions, stream=stream)


class FourthRejectionEndsTheTurn(Fault):
    """After three rejections in a row, further calls of the turn are rejected without being asked about."""

    source = ("anthropics/claude-code#83611",)
    caught_by = "every-gated-call-asked"
    _rejections = 0

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        self._rejections = self._rejections + 1 if decision.verdict == "reject" else 0
        super().apply_decision(conversation, call, decision, turn)

    async def examine_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().examine_call(conversation, call, turn)
        if call.stage == "waiting" and self._rejections >= 3:
            self.close_call(call, feedback.rejection_text(None), turn)


class RejectionOfAllEndsTheTurn(Fault):
    """If every open call was rejected, the turn stops without an end, and the model is not asked."""

    source = ("dust-tt/dust#24150",)
    caught_by = "run-ends"
    _is_stuck = False

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().apply_decisions(accepted, turn)
        is_rejected = all(decision.verdict == "reject" for decision in accepted)
        self._is_stuck = bool(accepted) and is_rejected and not any(waiting_calls(self.state.main))

    async def run_conversation(self, conversation: ConversationState, turn: TurnContext) -> bool:
        return not self._is_stuck and await super().run_conversation(conversation, turn)

    def build_outcome(self, turn: TurnContext) -> Outcome:
        return Paused(requests=()) if self._is_stuck else super().build_outcome(turn)


class EmptyResultEndsTheTurn(Fault):
    """After a tool that returned an empty text the turn ends, and the model is not asked."""

    source = ("continuedev/continue#6510", "earendil-works/pi#8756")
    caught_by = "answer-given"

    async def ask_model(self, conversation: ConversationState, turn: TurnContext) -> None:
        if conversation.items[-1].kind == "result" and conversation.items[-1].text == "":
            conversation.asks_model = False
        else:
            await super().ask_model(conversation, turn)


class FailedResumeCorruptsTheSession(Fault):
    """If a turn with decisions fails, every further turn of the session fails."""

    source = ("microsoft/agent-framework#8575",)
    caught_by = "usable-after-refusal"
    _corrupt = False

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if self._corrupt:
            raise RuntimeError("an approval request has no matching response")
        try:
            return await super().turn(text, decisions, stream=stream)
        except ModelDown:
            self._corrupt = bool(decisions)
            raise


class ApprovalsAreNeverTaken(Fault):
    """Each approval is refused, as if the tool needed none."""

    source = ("kagent-dev/kagent#2731",)
    caught_by = "usable-after-refusal"

    def is_verdict(self, verdict: object) -> bool:
        if verdict == "approve":
            raise RuntimeError("the tool does not require confirmation")
        return super().is_verdict(verdict)


class LimitLeavesCallsWithoutResults(Fault):
    """A turn that reaches the limit of tool calls drops all calls of the reply, and no results are told for them."""

    source = ("langchain-ai/langchain#34159",)
    caught_by = "result-delivered-once"

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        try:
            await super().process_calls(conversation, turn)
        except LimitReached:
            conversation.calls = []
            raise
