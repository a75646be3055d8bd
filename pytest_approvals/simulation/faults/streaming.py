"""Faults of streaming: what is not shown, and chunks that are assembled wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_approvals.agent_side.contract.types import Chunk, Decision, Finished, Item, Outcome, Paused, Reply
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.state import AcceptedDecision, ConversationState, PartialCall


class StreamHidesRequests(Fault):
    """A stream that ends in a pause shows the first request and hides the others."""

    source = ("langchain-ai/langgraph#5409",)
    caught_by = "stream-shows-everything"

    def build_outcome(self, turn: TurnContext) -> Outcome:
        # Not as a stream, so that the base class shows no request.
        outcome = super().build_outcome(replace(turn, stream=False))
        if not turn.stream or not isinstance(outcome, Paused):
            return outcome
        self.world.shown("request", id=outcome.requests[0].id)
        self.world.shown("end")
        return replace(outcome, requests=outcome.requests[:1])


class StreamedPauseLooksFinished(Fault):
    """A streamed turn that pauses ends as finished."""

    source = ("microsoft/agent-framework#5535", "dotnet/extensions#6903")
    caught_by = "every-gated-call-asked"

    def build_outcome(self, turn: TurnContext) -> Outcome:
        outcome = super().build_outcome(turn)
        return Finished(output=self.state.main.output) if turn.stream else outcome


class DeltasGoToTheLatestCall(Fault):
    """Pieces of arguments without an id are added to the call that began last."""

    source = ("maximhq/bifrost#1829", "continuedev/continue#13223")
    caught_by = "every-gated-call-asked"

    def add_chunk(self, partial: dict[int, PartialCall], chunk: Chunk) -> None:
        if chunk.tool is None and partial:
            chunk = replace(chunk, call=max(partial))
        super().add_chunk(partial, chunk)


class StreamedCallsWithOneIdAreMerged(Fault):
    """Streamed calls that share an id become one call."""

    source = ("langchain-ai/langchain#34807", "vercel/ai#14277")
    caught_by = "every-gated-call-asked"

    def assemble_reply(self, reply: Reply) -> Reply:
        whole = super().assemble_reply(reply)
        named = {call.id: call for call in reversed(whole.calls) if call.id is not None}
        calls = tuple(call for call in whole.calls if call.id is None or named[call.id] is call)
        return replace(whole, calls=calls)


class BrokenStreamIsTakenAsReply(Fault):
    """The part of a stream before it broke counts as the model's reply, and its calls run."""

    source = ("NousResearch/hermes-agent#6638", "NousResearch/hermes-agent#80498")
    caught_by = "request-shows-the-call"

    def assemble_reply(self, reply: Reply) -> Reply:
        return super().assemble_reply(replace(reply, breaks=False))


class RepeatedIdBeginsAnew(Fault):
    """If each piece of a streamed call has the id of the call, each piece begins the call anew."""

    source = ("JetBrains/koog#2052", "BerriAI/litellm#20480")
    caught_by = "every-gated-call-asked"

    def add_chunk(self, partial: dict[int, PartialCall], chunk: Chunk) -> None:
        if chunk.call is not None and chunk.id is not None and chunk.call in partial:
            partial[chunk.call].arguments.clear()
        super().add_chunk(partial, chunk)


class SecondPauseIsNotStreamed(Fault):
    """In a turn that goes on after a decision, the stream does not show the next request."""

    source = ("xerrors/Yuxi#475",)
    caught_by = "stream-shows-everything"
    _goes_on = False

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        self._goes_on = bool(decisions)
        return await super().turn(text, decisions, stream=stream)

    def build_outcome(self, turn: TurnContext) -> Outcome:
        if turn.stream and self._goes_on:
            self.world.shown("end")
            turn = replace(turn, stream=False)
        return super().build_outcome(turn)


class StreamedResumeRepeatsTheMessage(Fault):
    """A streamed turn that goes on after a decision adds the last message of the user again."""

    source = ("openai/openai-agents-python#2021",)
    caught_by = "caller-messages-kept"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().apply_decisions(accepted, turn)
        said = [item.text or "" for item in self.state.main.items if item.kind == "user"]
        if turn.stream and accepted and said and not self.state.main.inbox:
            self.state.main.inbox.append(said[-1])


class StreamedTurnForgetsItsCalls(Fault):
    """After a streamed turn its calls and their results are missing from the history."""

    source = ("openai/openai-agents-python#2433",)
    caught_by = "history-not-rewritten"

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        outcome = await super().turn(text, decisions, stream=stream)
        main = self.state.main
        if stream and not main.calls and not main.asks_model:
            main.items = [item for item in main.items if item.kind not in ("call", "result")]
            self.store_state()
        return outcome


class SecondStreamedApprovalRepeatsTheFirstResult(Fault):
    """When a streamed run goes on after its second approval, the result of the first one is sent once more."""

    source = ("openai/openai-agents-js#1435",)
    caught_by = "result-delivered-once"
    _resumes = False
    _sent: Item | None = None

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        self._resumes = turn.stream and bool(accepted)
        super().apply_decisions(accepted, turn)

    def deliver_results(self, conversation: ConversationState) -> None:
        super().deliver_results(conversation)
        if conversation is self.state.main and self._resumes:
            if self._sent is not None:
                conversation.items.append(replace(self._sent, message=conversation.messages - 1))
                self._sent = None
            else:
                self._sent = next((item for item in reversed(conversation.items) if item.kind == "result"), None)
        self._resumes = False
