"""Legitimate designs: what the model is told about its calls."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import ClassVar

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.simulation.reference.agent import ReferenceAgent, TurnContext
from pytest_approvals.simulation.reference.designs.registry import design
from pytest_approvals.simulation.reference.state import (
    AcceptedDecision,
    CallState,
    ConversationState,
)


@design
class ResultsInCompletionOrder(ReferenceAgent):
    """The model gets the results of a reply in the order in which the calls ended."""

    async def process_call(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        await super().process_call(conversation, call, turn)
        if call.stage == "done":
            conversation.calls.remove(call)
            ended = sum(other.stage == "done" for other in conversation.calls)
            conversation.calls.insert(ended, call)


@design
class ResultsInOneMessage(ReferenceAgent):
    """All results of a reply are one message."""

    def deliver_results(self, conversation: ConversationState) -> None:
        start = len(conversation.items)
        super().deliver_results(conversation)
        delivered = conversation.items[start:]
        results = [item for item in delivered if item.kind == "result"]
        if results:
            first = results[0].message
            others = [item for item in delivered if item.kind != "result"]
            conversation.items[start:] = [
                *(replace(item, message=first) for item in results),
                *(replace(item, message=first + 1) for item in others),
            ]
            conversation.messages = first + (2 if others else 1)


@design
class ResultsAreJsonObjects(ReferenceAgent):
    """What the model is told about a call is the text of a JSON object."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().finish_call(call, json.dumps({"output": text}), turn)


@design
class ResultsAreTypedBlocks(ReferenceAgent):
    """What the model is told about a call is a list of content blocks, with letters beyond ASCII as they are."""

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().finish_call(call, json.dumps([{"type": "text", "text": text}], ensure_ascii=False), turn)


@design
class RejectionsAreJsonObjects(ReferenceAgent):
    """A rejected call has a JSON object with a status and a message in place of a result."""

    def close_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().close_call(call, json.dumps({"status": "rejected", "message": text}), turn)


@design
class RejectionsAreShort(ReferenceAgent):
    """A rejected call has one word in place of a result, and the reason if there is one."""

    def close_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        _, _, reason = text.partition(" Reason: ")
        super().close_call(call, f"Denied: {reason}" if reason else "Denied.", turn)


@design
class EditsRewriteTheCall(ReferenceAgent):
    """After an edit the model sees the edited call as its own, without a note."""

    capabilities = ReferenceAgent.capabilities - {"history.append"}
    missing: ClassVar = {"history.append": "an edit changes what an earlier turn has added"}

    def apply_edit(self, conversation: ConversationState, call: CallState, decision: AcceptedDecision) -> None:
        super().apply_edit(conversation, call, decision)
        call.note = None
        place = max(n for n, item in enumerate(conversation.items) if item.kind == "call" and item.id == call.id)
        conversation.items[place] = replace(conversation.items[place], tool=call.tool, arguments=call.arguments)


@design
class SystemMessageChanges(ReferenceAgent):
    """Each model request begins with a system message that says something else each time."""

    def model_input(self, conversation: ConversationState) -> list[Item]:
        text = f"You have seen {conversation.messages} messages."
        return [Item(kind="other", text=text, message=-1), *conversation.items]
