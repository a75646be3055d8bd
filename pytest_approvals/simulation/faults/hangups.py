"""Faults of disconnects: calls that run again, are left open or forgotten, and sessions that lock."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pytest_approvals.agent_side.contract.types import Decision, Outcome
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.feedback import INTERRUPTED, rejection_text
from pytest_approvals.simulation.reference.state import CallState, ConversationState


class CancelledCallRunsAgain(Fault):
    """A call that was cancelled while it ran is run again by the next turn."""

    source = ("strands-agents/harness-sdk#3615",)
    caught_by = "runs-at-most-once"

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        if text == INTERRUPTED:
            call.stage = "approved"
        else:
            super().finish_call(call, text, turn)


class CancelledCallIsToldAsRejected(Fault):
    """A call that was cancelled while it ran is told to the model as one that the user rejected."""

    source = ("anthropics/claude-code#86001",)
    caught_by = "cancelled-calls-told"

    def finish_call(self, call: CallState, text: str, turn: TurnContext) -> None:
        super().finish_call(call, rejection_text(None) if text == INTERRUPTED else text, turn)


class CancelledCallStaysOpen(Fault):
    """A call that was cancelled while it ran goes to the model without a result."""

    source = ("langchain-ai/langgraph#6726", "google/adk-python#2425")
    caught_by = "model-input-well-formed"

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        try:
            await super().execute_tool(conversation, call, turn)
        except asyncio.CancelledError:
            conversation.calls = [other for other in conversation.calls if other is not call]
            conversation.asks_model = True
            raise


class CancelledTurnIsForgotten(Fault):
    """A cancelled turn is removed from the history, with the calls that it executed."""

    source = ("microsoft/agent-framework#2889", "agno-agi/agno#8290")
    caught_by = "cancelled-calls-told"

    async def run_conversation(self, conversation: ConversationState, turn: TurnContext) -> bool:
        try:
            return await super().run_conversation(conversation, turn)
        except asyncio.CancelledError:
            conversation.items = [item for item in conversation.items if item.kind in ("user", "say")]
            conversation.calls, conversation.asks_model = [], True
            raise


class CancelledTurnGoesOnForEver(Fault):
    """A cancelled turn counts as running, so that no further input is accepted."""

    source = ("langgenius/dify#41616",)
    caught_by = "usable-after-hang-up"

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        try:
            return await super().turn(text, decisions, stream=stream)
        except asyncio.CancelledError:
            self.is_running = True
            raise


class CancelledTurnLosesResults(Fault):
    """If a turn is cancelled, the model is told of calls that had returned as if they had no result."""

    source = ("earendil-works/pi#7053",)
    caught_by = "result-matches-its-call"

    async def process_calls(self, conversation: ConversationState, turn: TurnContext) -> None:
        try:
            await super().process_calls(conversation, turn)
        except asyncio.CancelledError:
            for call in conversation.calls:
                if call.stage == "done" and call.entered:
                    call.result = "No result provided"
            raise


class CancelledCallIsASuccess(Fault):
    """A call that was cancelled while it ran is told as completed."""

    source = ("mastra-ai/mastra#18034", "DitriXNew/EDT-MCP#577")
    caught_by = "cancelled-calls-told"

    async def execute_tool(self, conversation: ConversationState, call: CallState, turn: TurnContext) -> None:
        try:
            await super().execute_tool(conversation, call, turn)
        except asyncio.CancelledError:
            call.result = "The call was completed."
            raise
