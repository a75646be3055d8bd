"""Faults of telling: model inputs that are wrong, incomplete, or out of order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Decision, Finished, Item, Outcome, Reply, Thought
from pytest_approvals.simulation.faults.fault import Fault, map_values, round_integer
from pytest_approvals.simulation.reference import ReferenceAgentOverChat, feedback
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.state import (
    AcceptedDecision,
    CallState,
    ConversationState,
    SessionState,
    waiting_calls,
)


class ResultIsDeliveredTwice(Fault):
    """The model input has every result twice."""

    source = ("microsoft/agent-framework#7267",)
    caught_by = "result-delivered-once"

    def deliver_results(self, conversation: ConversationState) -> None:
        functions = [call for call in conversation.calls if call.kind != "hosted_mcp"]
        super().deliver_results(conversation)
        for call in functions:
            self.add_message(conversation, [self.build_result_item(call, conversation.messages)])


class LargeIntegerOfAResultIsRounded(Fault):
    """An integer beyond 2**53 in what a tool returns is told as a double holds it."""

    source = ("anthropics/claude-code#78762", "modelcontextprotocol/go-sdk#1236")
    caught_by = "result-matches-its-call"

    async def run_body(self, conversation: ConversationState, call: CallState) -> Any:
        return map_values(await super().run_body(conversation, call), round_integer)


class ResultsAreSwapped(Fault):
    """The results of parallel calls go to one another's calls."""

    source = ("UKGovernmentBEIS/inspect_ai#3866",)
    caught_by = "result-matches-its-call"

    def deliver_results(self, conversation: ConversationState) -> None:
        functions = [call for call in conversation.calls if call.kind != "hosted_mcp"]
        for call, result in zip(functions, [call.result for call in reversed(functions)], strict=True):
            call.result = result
        super().deliver_results(conversation)


class ResultOfAnEarlierTurnIsReplaced(Fault):
    """Calls executed before the pause are reported to the model as skipped."""

    source = ("microsoft/agent-framework#6910", "openai/openai-agents-python#3004")
    caught_by = "result-matches-its-call"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        for call in self.state.main.calls:
            if call.stage == "done" and call.entered:
                call.result = "skipped"
        super().apply_decisions(accepted, turn)


class RejectionIsAnEmptyResult(Fault):
    """The result of a rejected call is empty, like that of a tool without output."""

    source = ("NousResearch/hermes-agent#14806", "vercel/eve#312")
    caught_by = "rejection-told"

    def close_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().close_call(call, "", turn)


class ReasonIsDropped(Fault):
    """The model is told of a rejection, and not why."""

    source = ("dotnet/extensions#7139",)
    caught_by = "reason-told"

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        super().apply_decision(conversation, call, replace(decision, reason=None), turn)


class RejectedCallHasNoResult(Fault):
    """A rejected call goes to the model without a result."""

    source = ("vercel/ai#14428",)
    caught_by = "model-input-well-formed"

    def close_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().close_call(call, text, turn)
        if call.kind != "hosted_mcp":
            self.state.main.calls = [other for other in self.state.main.calls if other is not call]
            self.state.main.asks_model = True


class NewMessageLeavesTheCallOpen(Fault):
    """A new message goes to the model together with the call that nobody answered."""

    source = ("pydantic/pydantic-ai#6319",)
    caught_by = "model-input-well-formed"

    def close_open_requests(self, text: str, turn: TurnContext) -> None:
        self.state.main.calls = []


class NewMessageDropsResults(Fault):
    """If a new message closes pending requests, the results of executed calls are lost, too."""

    source = ("2witstudios/PageSpace#2629",)
    caught_by = "result-matches-its-call"

    def close_open_requests(self, text: str, turn: TurnContext) -> None:
        super().close_open_requests(text, turn)
        for call in self.state.main.calls:
            if call.entered and call.stage == "done":
                call.result = text


class DecisionGoesToTheModel(Fault):
    """The model input has the human's decision about a function."""

    source = ("Agenta-AI/agenta#5089",)
    caught_by = "no-function-approvals-in-model-input"

    def deliver_results(self, conversation: ConversationState) -> None:
        gated = [call for call in conversation.calls if call.kind == "function"]
        super().deliver_results(conversation)
        responses = [
            Item(kind="approval_response", id=call.id, approved=True, message=conversation.messages) for call in gated
        ]
        self.add_message(conversation, responses)


class MessageWithAnswersIsDropped(Fault):
    """A message submitted together with decisions never reaches the model."""

    source = ("openJiuwen-ai/agent-core#959",)
    caught_by = "caller-messages-kept"

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        return await super().turn(None if decisions else text, decisions, stream=stream)


# Over chat, because only there results must follow their calls at once.
class MessageComesBeforeTheResults(Fault, ReferenceAgentOverChat):
    """A message submitted together with decisions is placed between a call and its result."""

    source = ("dotnet/extensions#7616",)
    caught_by = "model-input-well-formed"

    def deliver_results(self, conversation: ConversationState) -> None:
        for text in conversation.inbox:
            self.add_user_message(conversation, text)
        conversation.inbox = []
        super().deliver_results(conversation)


class RejectionIsForgottenLater(Fault):
    """In later turns a rejected call looks as if its tool had failed."""

    source = ("mastra-ai/mastra#17218",)
    caught_by = "history-not-rewritten"

    def add_user_message(self, conversation: ConversationState, text: str) -> None:
        super().add_user_message(conversation, text)
        conversation.items = [
            replace(item, text="Error: the tool failed.") if (item.text or "").startswith("Not executed") else item
            for item in conversation.items
        ]


class TrimmingPartsCallsFromResults(Fault):
    """Trimming keeps the last messages, and with them results whose calls are gone."""

    source = ("langchain-ai/langchain#33245",)
    caught_by = "model-input-well-formed"

    def count_trimmable_items(self, conversation: ConversationState, keep: int) -> int:
        oldest = conversation.messages - keep
        return sum(item.message < oldest for item in conversation.items)


class FailedModelLosesResults(Fault):
    """If the model fails after the calls ran, their results are lost and the calls stay in the history."""

    source = ("agno-agi/agno#10461",)
    caught_by = "model-input-well-formed"

    async def ask_model(self, conversation: ConversationState, turn: TurnContext) -> None:
        try:
            await super().ask_model(conversation, turn)
        except ModelDown:
            while conversation.items[-1].kind == "result":
                conversation.items.pop()
            raise


class ResultsOfSiblingsAreMerged(Fault):
    """The result of each call holds those of the calls before it in its reply, too."""

    source = ("gptme/gptme#3846", "huggingface/smolagents#2554")
    caught_by = "result-matches-its-call"

    def deliver_results(self, conversation: ConversationState) -> None:
        told: list[str] = []
        for call in conversation.calls:
            if call.kind != "hosted_mcp":
                told.append(call.result or "")
                call.result = "\n".join(told)
        super().deliver_results(conversation)


class ErrorIsAnEmptyObject(Fault):
    """If a tool raises, the model is told an empty object."""

    source = ("awaescher/OllamaSharp#304", "microsoft/vscode#330709")
    caught_by = "result-matches-its-call"

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().finish_call(call, "{}" if text.startswith("Error:") else text, turn)


class RejectedCallIsCompleted(Fault):
    """The result of a rejected call says that it was completed."""

    source = ("openai/openai-agents-js#1104",)
    caught_by = "rejection-told"

    def close_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().close_call(call, '{"status": "completed"}', turn)


class FirstReasonIsToldForAll(Fault):
    """If a submission rejects several calls, each is told the reason of the first one."""

    source = ("anthropics/claude-code#38300",)
    caught_by = "result-matches-its-call"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        reasons = [decision.reason for decision in accepted if decision.reason]
        same = [replace(decision, reason=reasons[0]) if decision.reason else decision for decision in accepted]
        super().apply_decisions(same, turn)


class MessageIsAddedTwice(Fault):
    """Each message of the user is in the history twice."""

    source = ("home-assistant/core#139264", "cloudflare/agents#2078")
    caught_by = "caller-messages-kept"

    def add_user_message(self, conversation: ConversationState, text: str) -> None:
        super().add_user_message(conversation, text)
        super().add_user_message(conversation, text)


class EqualMessagesAreSentOnce(Fault):
    """A message of the user that says what an earlier one has said is left out of the model's input."""

    source = ("microsoft/agent-framework#4682",)
    caught_by = "caller-messages-kept"

    def model_input(self, conversation: ConversationState) -> list[Item]:
        said: set[str | None] = set()
        items: list[Item] = []
        for item in super().model_input(conversation):
            if item.kind != "user" or item.text not in said:
                items.append(item)
            if item.kind == "user":
                said.add(item.text)
        return items


class CallsBesideTextAreForgotten(Fault):
    """In later turns a reply with text next to its calls is only its text."""

    source = ("datarobot-oss/datarobot-genai#430",)
    caught_by = "history-not-rewritten"

    def add_user_message(self, conversation: ConversationState, text: str) -> None:
        said = {item.message for item in conversation.items if item.kind == "say"}
        gone = {item.id for item in conversation.items if item.kind == "call" and item.message in said}
        conversation.items = [
            item for item in conversation.items if item.kind not in ("call", "result") or item.id not in gone
        ]
        super().add_user_message(conversation, text)


class LaterResultsGoMissing(Fault):
    """If a reply has three calls or more, the model is told only what the first one returned."""

    source = ("anthropics/claude-code#39830",)
    caught_by = "result-matches-its-call"

    def deliver_results(self, conversation: ConversationState) -> None:
        if len(conversation.calls) >= 3:
            for call in conversation.calls[1:]:
                if call.kind != "hosted_mcp":
                    call.result = "The result is missing due to an internal error."
        super().deliver_results(conversation)


class TextBesideCallsIsForgotten(Fault):
    """What the model said next to its calls is missing from its next input."""

    source = ("langchain-ai/langchain-google#1706", "bubbuild/bub#312")
    caught_by = "history-not-rewritten"

    def record_reply(self, conversation: ConversationState, reply: Reply, turn: TurnContext) -> None:
        super().record_reply(conversation, replace(reply, say=None) if reply.calls else reply, turn)


class FailureIsToldForItsSiblings(Fault):
    """If a call fails, the model is told its error for every other call of the reply, too."""

    source = ("huggingface/smolagents#2457", "openai/openai-agents-python#2584")
    caught_by = "result-matches-its-call"

    def deliver_results(self, conversation: ConversationState) -> None:
        failed = [call.result for call in conversation.calls if (call.result or "").startswith("Error:")]
        for call in conversation.calls if failed else ():
            if call.kind != "hosted_mcp":
                call.result = failed[0]
        super().deliver_results(conversation)


class FalsyResultIsEmpty(Fault):
    """A result that is zero or false is told as an empty text."""

    source = ("livekit/agents#6551", "agno-agi/agno#9948")
    caught_by = "result-matches-its-call"

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().finish_call(call, "" if text in ("0", "false") else text, turn)


class EmptyResultIsNoResult(Fault):
    """A call whose tool returned an empty text has no result in the model input."""

    source = ("letta-ai/letta#3269",)
    caught_by = "model-input-well-formed"

    def deliver_results(self, conversation: ConversationState) -> None:
        conversation.calls = [call for call in conversation.calls if call.result != "" or call.kind == "hosted_mcp"]
        super().deliver_results(conversation)


class LongResultsAreCut(Fault):
    """The model is told the first 2,000 characters of a long result."""

    source = ("can1357/oh-my-pi#8683",)
    caught_by = "result-matches-its-call"

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().finish_call(call, text[:2000], turn)


class SecondApprovalIsForgotten(Fault):
    """If two approvals follow each other in a turn of the user, the second call and its result are not told."""

    source = ("mastra-ai/mastra#19940",)
    caught_by = "result-delivered-once"

    def deliver_results(self, conversation: ConversationState) -> None:
        begun = max((item.message for item in conversation.items if item.kind == "user"), default=0)
        follows = any(item.kind == "result" and item.message > begun for item in conversation.items)
        forgotten = {call.id for call in conversation.calls if call.entered} if follows else set()
        super().deliver_results(conversation)
        conversation.items = [item for item in conversation.items if item.id not in forgotten]


# --- reasoning --------------------------------------------------------------------------------------------------------


def _change_reasoning(items: list[Item], change: Callable[[Item], Item]) -> list[Item]:
    return [change(item) if item.kind == "reasoning" else item for item in items]


def _drop_reasoning(items: list[Item]) -> list[Item]:
    return [item for item in items if item.kind != "reasoning"]


class ReasoningIsLostOnRestore(Fault):
    """The state is restored without the reasoning."""

    source = ("charmbracelet/crush#2696",)
    caught_by = "reasoning-kept"

    def decode(self, written: str) -> SessionState:
        state = super().decode(written)
        state.main.items = _drop_reasoning(state.main.items)
        return state


class ReasoningComesBehindItsCalls(Fault):
    """The reasoning of a reply goes to the model behind its calls."""

    source = ("vercel/ai#7099", "openai/openai-node#1567")
    caught_by = "reasoning-kept"

    def model_input(self, conversation: ConversationState) -> list[Item]:
        items = super().model_input(conversation)
        return sorted(items, key=lambda item: (item.message, item.kind == "reasoning"))


class ReasoningIsTrimmed(Fault):
    """The text of the reasoning is stripped of its last sign before it is sent back."""

    source = ("anthropics/anthropic-sdk-python#1598",)
    caught_by = "reasoning-kept"

    def model_input(self, conversation: ConversationState) -> list[Item]:
        return _change_reasoning(
            super().model_input(conversation), lambda item: replace(item, text=(item.text or "")[:-1] or None)
        )


class SignatureIsLostInTheDump(Fault):
    """Reasoning is saved with its text only."""

    source = ("anthropics/anthropic-sdk-python#1598",)
    caught_by = "reasoning-kept"

    def decode(self, written: str) -> SessionState:
        state = super().decode(written)
        state.main.items = _change_reasoning(state.main.items, lambda item: replace(item, signature=None))
        return state


class SignatureOfStreamIsLost(Fault):
    """Streamed reasoning is kept without the signature that comes behind its text."""

    source = ("mozilla-ai/any-llm#1312",)
    caught_by = "reasoning-kept"

    def complete_thought(self, whole: Thought, text: str) -> Thought:
        return replace(super().complete_thought(whole, text), signature="")


class ReasoningOfParallelCallsIsCollected(Fault):
    """All reasoning of a reply is put before its first call."""

    source = ("anthropics/anthropic-sdk-python#1598",)
    caught_by = "reasoning-kept"

    def record_reply(self, conversation: ConversationState, reply: Reply, turn: TurnContext) -> None:
        thoughts = tuple(replace(thought, before=None) for thought in reply.thoughts)
        super().record_reply(conversation, replace(reply, thoughts=thoughts), turn)


class EditedCallLosesItsReasoning(Fault):
    """A call that a person edits becomes a new message, without the reasoning of the old one."""

    source = ("mastra-ai/mastra#7799",)
    caught_by = "reasoning-kept"

    def apply_edit(self, conversation: ConversationState, call: CallState, decision: AcceptedDecision) -> None:
        super().apply_edit(conversation, call, decision)
        conversation.items = _drop_reasoning(conversation.items)


class RejectedCallLosesItsReasoning(Fault):
    """The model is told of a rejection without the reasoning that led to the call."""

    source = ("anomalyco/opencode#3077",)
    caught_by = "reasoning-kept"

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        super().apply_decision(conversation, call, decision, turn)
        if decision.verdict == "reject":
            conversation.items = _drop_reasoning(conversation.items)


class EncryptedReasoningIsDropped(Fault):
    """Reasoning without a text is taken for empty, and dropped."""

    source = ("BerriAI/litellm#9058", "anomalyco/opencode#38614")
    caught_by = "reasoning-kept"

    def model_input(self, conversation: ConversationState) -> list[Item]:
        return [item for item in super().model_input(conversation) if item.kind != "reasoning" or item.text]


class ReasoningIsKeptForOneRequest(Fault):
    """Reasoning is sent back with the next request only, although the turn goes on."""

    source = ("anomalyco/opencode#24722",)
    caught_by = "reasoning-kept"

    def record_reply(self, conversation: ConversationState, reply: Reply, turn: TurnContext) -> None:
        conversation.items = _drop_reasoning(conversation.items)
        super().record_reply(conversation, reply, turn)


class LaterCallIsToldTheEarlierResult(Fault):
    """A call of a tool that was called in an earlier reply is told what that call returned."""

    source = ("1jehuang/jcode#884",)
    caught_by = "result-matches-its-call"

    def build_result_item(self, call: CallState, message: int) -> Item:
        told = (item for item in self.state.main.items if (item.kind, item.tool) == ("result", call.tool))
        earlier = next((item for item in told if item.message < message - 1), None)
        item = super().build_result_item(call, message)
        return item if earlier is None else replace(item, text=earlier.text)


class ErrorOfAnEarlierCallStays(Fault):
    """After a call raised, every further error is told as that one."""

    source = ("nearform/lastlight#387",)
    caught_by = "result-matches-its-call"

    def build_result_item(self, call: CallState, message: int) -> Item:
        item = super().build_result_item(call, message)
        told = [known.text for known in self.state.main.items if known.kind == "result"]
        errors = [text for text in told if text and text.startswith("Error: ")]
        is_error = item.text is not None and item.text.startswith("Error: ")
        return replace(item, text=errors[0]) if is_error and errors else item


class ClosedCallIsAnEmptyResult(Fault):
    """A call that a new message closes without a decision is told as an empty text, like one without output."""

    source = ("ai-forever/giga_agent#72", "NousResearch/hermes-agent#14806")
    caught_by = "result-matches-its-call"

    def close_open_requests(self, text: str, turn: TurnContext) -> None:
        super().close_open_requests("" if text == feedback.SUPERSEDED else text, turn)


class MessageThatSaysYesIsSwallowed(Fault):
    """A message that could be a decision reaches no model, also where nothing waits for one."""

    source = ("HybridAIOne/hybridclaw#188",)
    caught_by = "caller-messages-kept"

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if text is not None and text.lower() in ("yes", "no") and not await self.pending():
            return Finished(output="There is nothing to decide.")
        return await super().turn(text, decisions, stream=stream)


class PlaceholderResultStays(Fault):
    """A call that waits has a placeholder as its result, and the real one is added to it."""

    source = ("google/adk-go#876",)
    caught_by = "result-delivered-once"

    def deliver_results(self, conversation: ConversationState) -> None:
        decided = [call for call in conversation.calls if call.entered and call.kind != "hosted_mcp"]
        number = conversation.messages
        items = [replace(self.build_result_item(call, number), text="requires confirmation") for call in decided]
        self.add_message(conversation, items)
        super().deliver_results(conversation)


class ReasonIsLostBesideOneWithout(Fault):
    """If one rejection of a submission has no reason, those of the others are not told."""

    source = ("anthropics/claude-code#38300",)
    caught_by = "reason-told"

    def merge_staged(self, accepted: list[AcceptedDecision]) -> list[AcceptedDecision]:
        merged = super().merge_staged(accepted)
        if any(each.verdict == "reject" and not each.reason for each in merged):
            for each in merged:
                each.reason = None
        return merged


class RejectionIsToldAsAFailure(Fault):
    """The model is told of a rejected call that it failed, and may be tried again."""

    source = ("egonSchiele/agency-lang#986", "cline/cline#12633")
    caught_by = "rejection-told"

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        if decision.verdict == "reject" and not decision.reason and call.kind != "hosted_mcp":
            return self.close_call(call, "Error: the call failed. You may call this tool again.", turn)
        return super().apply_decision(conversation, call, decision, turn)


class ClosedRequestIsToldAsADenial(Fault):
    """A call that a new message closes without a decision is told as rejected by the user."""

    source = ("NousResearch/hermes-agent#81048", "zeroclaw-labs/zeroclaw#9642")
    caught_by = "result-matches-its-call"

    def close_open_requests(self, text: str, turn: TurnContext) -> None:
        super().close_open_requests(feedback.rejection_text(None) if text == feedback.SUPERSEDED else text, turn)


class StructuredResultsAreEmpty(Fault):
    """A result that is an object is told as an empty text."""

    source = ("epam/statgpt-backend#691", "agno-agi/agno#8695")
    caught_by = "result-matches-its-call"

    async def run_body(self, conversation: ConversationState, call: CallState) -> Any:
        value = await super().run_body(conversation, call)
        return "" if isinstance(value, Mapping) else value


class FailedApprovedCallIsCompleted(Fault):
    """If the tool of an approved call raises, the model is told that it was completed."""

    source = ("Budibase/budibase#19514",)
    caught_by = "result-matches-its-call"

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().execute_tool(conversation, call, turn)
        spec = self.find_spec(conversation, call)
        if spec is not None and spec.approval == "always" and (call.result or "").startswith("Error: "):
            call.result = "The request was completed."


class ResumeAddsAnEmptyMessage(Fault):
    """A turn that goes on after a decision adds an empty message of the user."""

    source = ("HolmesGPT/holmesgpt#1973",)
    caught_by = "caller-messages-kept"

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        return await super().turn(
            "" if text is None and decisions and len(decisions) == len(list(waiting_calls(self.state.main))) else text,
            decisions,
            stream=stream,
        )


class MessageBesideADecisionComesATurnLate(Fault):
    """A message that comes with decisions reaches the model with the next message."""

    source = ("kirodotdev/KiroCrew#4714",)
    caught_by = "caller-messages-kept"
    _kept: str | None = None

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        if text is not None and decisions:
            self._kept, text = text, None
        elif text is not None and self._kept is not None:
            text, self._kept = f"{self._kept}\n{text}", None
        return await super().turn(text, decisions, stream=stream)


class ApprovalRepeatsTheReply(Fault):
    """After an approval the reply with its calls is in the history twice."""

    source = ("cloudflare/agents#790",)
    caught_by = "model-input-well-formed"

    def apply_decisions(self, accepted: Sequence[AcceptedDecision], turn: TurnContext) -> None:
        super().apply_decisions(accepted, turn)
        main = self.state.main
        if accepted and main.calls:
            last = main.items[-1].message
            self.add_message(
                main, [replace(item, message=main.messages) for item in main.items if item.message == last]
            )


class UnknownToolsAnswerIsLost(Fault):
    """What was told of a call of an unknown tool beside one that waits is lost when the turn goes on."""

    source = ("openai/openai-agents-python#4947",)
    caught_by = "model-input-well-formed"

    def decode(self, written: str) -> SessionState:
        state = super().decode(written)
        if any(call.stage == "waiting" for call in state.main.calls):
            state.main.calls = [
                c for c in state.main.calls if not (c.result or "").startswith("Error: there is no tool")
            ]
        return state


class MessageIsLostIfTheApprovedToolFails(Fault):
    """A message that comes with an approval does not reach the model if the approved tool raises."""

    source = ("anthropics/claude-code#30491",)
    caught_by = "caller-messages-kept"

    def deliver_results(self, conversation: ConversationState) -> None:
        if any(call.entered and (call.result or "").startswith("Error") for call in conversation.calls):
            conversation.inbox = []
        super().deliver_results(conversation)


class ClosedRequestIsToldAsPending(Fault):
    """The model is told of a call that a message or a cancellation closed that it runs once it is approved."""

    source = ("LanternOps/breeze#3090",)
    caught_by = "result-matches-its-call"

    def close_open_requests(self, text: str, turn: TurnContext) -> None:
        super().close_open_requests("Approval still pending; this action will complete once approved.", turn)


class FailedTurnDoublesTheHistory(Fault):
    """After the model failed, its input holds everything twice."""

    source = ("usestrix/strix#1310",)
    caught_by = "result-delivered-once"

    async def ask_model(self, conversation: ConversationState, turn: TurnContext) -> None:
        try:
            await super().ask_model(conversation, turn)
        except ModelDown:
            if conversation is self.state.main:
                conversation.items = [*conversation.items, *conversation.items]
            raise


class SupersededCallLosesItsReasoning(Fault):
    """A message that closes an open request removes the reasoning that led to its call, and leaves the call."""

    source = ("0xPlaygrounds/rig#751", "mastra-ai/mastra#8738")
    caught_by = "reasoning-kept"

    def close_open_requests(self, text: str, turn: TurnContext) -> None:
        items = self.state.main.items
        waiting = {call.id for call in self.state.main.calls if call.stage == "waiting"}
        closed = {item.message for item in items if item.kind == "call" and item.id in waiting}
        self.state.main.items = [item for item in items if item.kind != "reasoning" or item.message not in closed]
        super().close_open_requests(text, turn)
