"""Faults of stores that forget: what is kept apart from a session does not fit it after the store has lost a turn.

They show only if the store is as it was before: as long as nothing is lost, what is kept twice is the same. Each fault
keeps something in a file beside the folder of the store, as in another store, and reads it when a turn begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_approvals.agent_side.contract.types import Item, Request
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference.agent import TurnContext
from pytest_approvals.simulation.reference.persistence import Busy
from pytest_approvals.simulation.reference.state import (
    AcceptedDecision,
    CallState,
    ConversationState,
    waiting_calls,
)


class _KeepsApart(Fault):
    """The base of faults that keep something apart from the session, from the end of each turn on."""

    dies = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._news: dict[str, Any] = {}

    @contextmanager
    def exclusive_input(self) -> Iterator[None]:
        with super().exclusive_input():
            if self.is_durable:
                self._meet(self._read_kept())
            yield
        if self.is_durable:
            self._note_turn(self._news)
            self._kept().write_text(json.dumps(self._read_kept() | self._news))

    async def close(self) -> None:
        if self.is_durable and self._store is not None:
            self._kept().unlink(missing_ok=True)
        await super().close()

    def _kept(self) -> Path:
        return Path(f"{self.blueprint.directory}-{self.open_store().name}.kept")

    def _read_kept(self) -> dict[str, Any]:
        return dict(json.loads(self._kept().read_text())) if self._kept().exists() else {}

    def _note_turn(self, news: dict[str, Any]) -> None:
        """Note what is kept when a turn has ended."""

    def _meet(self, kept: dict[str, Any]) -> None:
        """Use what was kept when a turn begins."""


def _key(conversation: ConversationState, call: CallState) -> str:
    """Return the key of a call that waits: its id may come again in a later message."""
    return f"{call.id} {conversation.messages}"


class _KeepsDecisions(_KeepsApart):
    """The base of faults that keep decisions apart, by call."""

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        self._news[_key(conversation, call)] = [decision.verdict, decision.arguments]
        super().apply_decision(conversation, call, decision, turn)


class ApprovalKeptApart(_KeepsDecisions):
    """An approval is kept apart from the session, and lets the call run that waits again."""

    source = ("renjian-pro/AgentTrail#114", "mastra-ai/mastra#20492")
    caught_by = "approval-before-execution"

    def _meet(self, kept: dict[str, Any]) -> None:
        for conversation, call in waiting_calls(self.state.main):
            if kept.get(_key(conversation, call), [""])[0] == "approve":
                call.stage, call.request = "approved", None


class AnswerKeptApartHidesTheRequest(_KeepsDecisions):
    """A request is not listed of which an answer is kept apart, although the session waits for one."""

    source = ("tomcounsell/ai#822", "mastra-ai/mastra#20492")
    caught_by = "pending-survives"

    async def pending(self) -> Sequence[Request]:
        listed = await super().pending()
        kept = self._read_kept() if self.is_durable else {}
        waiting = waiting_calls(self.state.main)
        hidden = {call.request for conversation, call in waiting if _key(conversation, call) in kept}
        return [request for request in listed if request.id not in hidden]


class EditKeptApart(_KeepsDecisions):
    """A change of a call is kept apart from the session, and counts when the call is approved as it is."""

    source = ("mastra-ai/mastra#20492",)
    caught_by = "arguments-as-approved"

    def apply_decision(
        self, conversation: ConversationState, call: CallState, decision: AcceptedDecision, turn: TurnContext
    ) -> None:
        kept = self._read_kept() if self.is_durable else {}
        verdict, arguments = kept.get(_key(conversation, call), ["", None])
        super().apply_decision(conversation, call, decision, turn)
        if decision.verdict == "approve" and verdict == "edit":
            call.arguments = arguments


class MessagesKeptApart(_KeepsApart):
    """The messages are kept apart from what waits, so that the model is told the result of a call that waits again."""

    source = ("MervinPraison/PraisonAI#2994", "NeoLabs-Systems/NeoAgent#86")
    caught_by = "result-delivered-once"

    def _note_turn(self, news: dict[str, Any]) -> None:
        results = [item for item in self.state.main.items if item.kind == "result"]
        news["results"] = [[item.id, item.text] for item in results]

    def _meet(self, kept: dict[str, Any]) -> None:
        main = self.state.main
        known = {item.id for item in main.items if item.kind == "result"}
        for seen, text in kept.get("results", ()):
            if seen not in known and any(item.id == seen for item in main.items):
                main.items.append(Item(kind="result", id=seen, text=text, message=main.messages))


class VersionKeptApart(_KeepsApart):
    """The number of messages is kept apart from the session, which is refused for good when it has fewer."""

    source = ("tomcounsell/ai#822", "NeoLabs-Systems/NeoAgent#86")
    caught_by = "usable-after-hang-up"

    def _note_turn(self, news: dict[str, Any]) -> None:
        news["messages"] = self.state.main.messages

    def _meet(self, kept: dict[str, Any]) -> None:
        if self.state.main.messages < kept.get("messages", 0):
            raise Busy
