"""The flavours whose runs end where they need approval, so that a caller keeps what a run leaves."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from pytest_approvals.agent_side.contract import Agent, Decision

from . import facts
from .session import Session


class PydanticAI(Session):
    """
    A Pydantic AI agent whose gates are declared: `requires_approval=True`, and `approval_required(predicate)` for
    conditions.

    What it keeps between turns is what the documentation tells a caller to keep: the message history, and beside it the
    `DeferredToolRequests` of the last result, from which `pending` reads.
    """

    capabilities = facts.CLAIMED
    missing = facts.MISSING

    async def stage(self, decisions: Sequence[Decision]) -> None:
        """
        Keeps a `DeferredToolResults` with the history until the next run: its type adapter is documented for that.
        """
        self._state.results = self._results(decisions)

    async def trim(self, keep: int) -> None:
        """Takes the conversation from a `ConversationStore` with a `limit`, the framework's own window."""
        from .state import trimmed

        self._state = await trimmed(self._state, keep)

    async def dump(self) -> str:
        from .state import dumped

        return dumped(self._state, append=self._append)

    async def load(self, parts: Sequence[str]) -> None:
        from .state import loaded

        self._state = loaded(parts)

    async def copy_from(self, other: Agent) -> None:
        assert isinstance(other, PydanticAI)
        self._state = deepcopy(other._state)


class Raised(PydanticAI):
    """
    A Pydantic AI agent whose tools ask from within: their bodies raise `ApprovalRequired` unless
    `ctx.tool_call_approved`.
    """

    capabilities = facts.CLAIMED_RAISED
    missing = facts.MISSING_RAISED
    raised = True
