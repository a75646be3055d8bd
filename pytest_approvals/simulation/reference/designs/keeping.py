"""Legitimate designs: what is kept and saved."""

from __future__ import annotations

import json

from pytest_approvals.simulation.reference.agent import ReferenceAgent
from pytest_approvals.simulation.reference.designs.registry import design
from pytest_approvals.simulation.reference.state import (
    ConversationState,
    SessionState,
    state_fields,
    waiting_calls,
)


@design
class SavedKeysAreSorted(ReferenceAgent):
    """What is saved is indented, with its keys in alphabetical order."""

    def encode(self, state: SessionState) -> str:
        return json.dumps(state, default=state_fields, sort_keys=True, indent=1)

    def encode_addition(self) -> str:
        return json.dumps(json.loads(super().encode_addition()), sort_keys=True, indent=1)


@design
class NothingIsTrimmedWhilePending(ReferenceAgent):
    """Trimming leaves the history alone while a request is open."""

    def count_trimmable_items(self, conversation: ConversationState, keep: int) -> int:
        return 0 if any(waiting_calls(conversation)) else super().count_trimmable_items(conversation, keep)
