"""Legitimate designs: what a model input holds of the history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from pytest_approvals.agent_side.contract.types import (
    Item,
)
from pytest_approvals.simulation.reference.agent import ReferenceAgent, ReferenceAgentOverChat, TurnContext
from pytest_approvals.simulation.reference.designs.registry import design
from pytest_approvals.simulation.reference.state import (
    AcceptedDecision,
    CallState,
    ConversationState,
)


@design
class OldResultsAreCleared(ReferenceAgent):
    """Results that the model has read are cleared from its input when it has replied twice since."""

    def model_input(self, conversation: ConversationState) -> list[Item]:
        replies = sorted({item.message for item in conversation.items if item.kind in ("say", "call")})
        since = replies[-2] if len(replies) > 1 else -1
        return [
            replace(item, text="[Old tool result content cleared]")
            if item.kind == "result" and item.message < since
            else item
            for item in conversation.items
        ]


@design
class OldHistoryIsSummedUp(ReferenceAgent):
    """Before a new message the history is summed up in one message, with all results and reasons word for word."""

    capabilities = ReferenceAgent.capabilities - {"history.append"}
    missing: ClassVar = {"history.append": "a summary takes the place of what earlier turns have added"}

    def add_user_message(self, conversation: ConversationState, text: str) -> None:
        # A summary names calls by the ids that the model gave them.
        is_whole = not conversation.named and not any(item.kind in _KEPT for item in conversation.items)
        if len(conversation.items) > 3 and is_whole:
            said = "\n".join(_summarize(conversation.items))
            conversation.items = [Item(kind="user", text=said, message=conversation.messages)]
            conversation.messages += 1
        super().add_user_message(conversation, text)


_KEPT = ("reasoning", "approval_request", "approval_response", "hosted_result")
"""What a provider wants back as it sent it."""


def _summarize(items: Sequence[Item]) -> Iterator[str]:
    """Yield a line about each message and each call of a history; what is summed up already stays as it is."""
    results = {item.id: item.text for item in items if item.kind == "result"}
    for item in items:
        if item.kind == "user" and (item.text or "").startswith(_SUMMARY):
            yield item.text or ""
        elif item.kind == "user":
            yield f"{_SUMMARY} The user said: {item.text}"
        elif item.kind == "say":
            yield f"{_SUMMARY} You said: {item.text}"
        elif item.kind == "call":
            yield f"{_SUMMARY} You called {item.tool} ({item.id}). {results.get(item.id)}"


_SUMMARY = "Earlier:"


@design
class MessagesAreJoined(ReferenceAgent):
    """Messages of the caller to which the model has not replied are one message."""

    capabilities = ReferenceAgent.capabilities - {"history.append"}
    missing: ClassVar = {"history.append": "a message changes what an earlier turn has added"}

    def add_user_message(self, conversation: ConversationState, text: str) -> None:
        last = conversation.items[-1] if conversation.items else None
        if last is None or last.kind != "user":
            return super().add_user_message(conversation, text)
        conversation.items[-1] = replace(last, text=f"{last.text}\n\n{text}")
        conversation.asks_model = True
        return None


@design
class MessagesAreFramed(ReferenceAgent):
    """A later message of the caller has words of the agent around it."""

    def add_user_message(self, conversation: ConversationState, text: str) -> None:
        # The first one says which of its scripts a model plays.
        if conversation is self.state.main and conversation.items:
            text = f"<message number='{conversation.messages}'>\n{text}\n</message>"
        super().add_user_message(conversation, text)


@design
class RemindersStandAtTheEnd(ReferenceAgent):
    """Each model request ends with a reminder that is not kept, as one of what is left to do."""

    def model_input(self, conversation: ConversationState) -> list[Item]:
        text = f"Reminder: {conversation.messages} messages so far. Answer in few words."
        return [*super().model_input(conversation), Item(kind="other", text=text, message=conversation.messages)]


@design
class DecisionsAreNoted(ReferenceAgent):
    """What was decided about a call is noted in the history before its result."""

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        text = f"Note: the answer of the user about {call.tool} ({call.id}) is {decision.verdict!r}."
        self.add_message(conversation, [Item(kind="other", text=text, message=conversation.messages)])
        super().apply_decision(conversation, call, decision, turn)


@design
class RejectedCallsBecomeText(ReferenceAgent):
    """A call that was not run is left out of the history, where a note says so in its place."""

    capabilities = ReferenceAgent.capabilities - {"history.append"}
    missing: ClassVar = {"history.append": "a rejection changes what an earlier turn has added"}

    def close_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().close_call(call, text, turn)
        call.approved = False

    def deliver_results(self, conversation: ConversationState) -> None:
        closed = [call for call in conversation.calls if call.approved is False and call.kind != "hosted_mcp"]
        last = len(conversation.items)
        super().deliver_results(conversation)
        for call in closed:
            item = next(each for each in conversation.items[last:] if each.kind == "result" and each.id == call.id)
            place = next(
                n
                for n in range(last - 1, -1, -1)
                if (each := conversation.items[n]).kind == "call" and each.id == call.id
            )
            text = f"Your call {call.id} of {call.tool}: {item.text}"
            conversation.items.remove(item)
            conversation.items[place] = Item(kind="other", text=text, message=conversation.items[place].message)


@design
class ReasonsAreMessages(ReferenceAgent):
    """Why a call was rejected is told in a message of its own, behind the results of the reply."""

    kind: ClassVar[str] = "other"

    def close_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        told, _, reason = text.partition(" Reason: ")
        if call.kind == "hosted_mcp" or not reason:
            return super().close_call(call, text, turn)
        super().close_call(call, told, turn)
        call.note, call.approved = reason, False
        return None

    def deliver_results(self, conversation: ConversationState) -> None:
        calls = conversation.calls
        super().deliver_results(conversation)
        for call in calls:
            if call.approved is False and call.kind != "hosted_mcp":
                text = f"The user says about {call.tool} ({call.id}): {call.note}"
                self.add_message(conversation, [Item(kind=self.kind, text=text, message=conversation.messages)])


@design
class ReasonsAreMessagesOfTheUser(ReasonsAreMessages):
    """Why a call was rejected is told as a message of the user, behind the results of the reply."""

    kind = "user"


@design
class ResultsStandBehindTheirCalls(ReferenceAgent):
    """In the model's input each result stands right behind its call."""

    def model_input(self, conversation: ConversationState) -> list[Item]:
        items = list(conversation.items)
        for result in [item for item in items if item.kind == "result"]:
            at = items.index(result)
            call = max((n for n in range(at) if items[n].kind == "call" and items[n].id == result.id), default=at)
            if all(item.kind != "reasoning" for item in items[call + 1 : at]):
                del items[at]
                items.insert(call + 1, result)
        return items


@design
class ResultsAreListedBackwards(ReferenceAgent):
    """The result of the last call of a reply comes first."""

    def deliver_results(self, conversation: ConversationState) -> None:
        conversation.calls.reverse()
        super().deliver_results(conversation)


@design
class OldReasoningIsDropped(ReferenceAgentOverChat):
    """Over Chat Completions, reasoning from before the last answer is left out when a new message comes."""

    def model_input(self, conversation: ConversationState) -> list[Item]:
        items = conversation.items
        begun = (n for n, item in enumerate(items) if n and item.kind == "user" and items[n - 1].kind == "say")
        last = max(begun, default=0)
        return [item for n, item in enumerate(items) if item.kind != "reasoning" or n > last]


@design
class EachCallIsAMessage(ReferenceAgent):
    """The text of a reply and each of its calls are messages of their own."""

    def add_message(self, conversation: ConversationState, items: Sequence[Item]) -> None:
        if any(item.kind in ("reasoning", "approval_request", "approval_response") for item in items):
            return super().add_message(conversation, items)
        for item in items:
            super().add_message(conversation, [replace(item, message=conversation.messages)])
        return None


@design
class CallsAndResultsAlternate(ReferenceAgent):
    """Calls of one reply are told as replies of their own, each with its result behind it."""

    def model_input(self, conversation: ConversationState) -> list[Item]:
        items = list(conversation.items)
        if any(item.kind in ("reasoning", "approval_request", "approval_response") for item in items):
            return items
        for result in [item for item in items if item.kind == "result"]:
            at = items.index(result)
            call = max((n for n in range(at) if items[n].kind == "call" and items[n].id == result.id), default=at - 1)
            items.insert(call + 1, items.pop(at))
        return [replace(item, message=place) for place, item in enumerate(items)]
