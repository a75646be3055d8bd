"""One session whose messages stand in rows of the caller's own, as servers of conversations keep them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

from ...contract import Agent, Blueprint, Request, Unsupported
from . import facts
from .session import Session

if TYPE_CHECKING:
    from .crew import Crew


class Replayed(Session):
    """
    As `Session`, with a provider of history that keeps requests apart from the calls that they are about.

    The session holds what is open, and no messages.
    """

    stores: ClassVar[Mapping[str, str]] = {}
    capabilities = facts.claimed(facts.REPLAYED_MISSING, {})
    missing = facts.REPLAYED_MISSING

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._saved = 0

    def _crew_of(self, blueprint: Blueprint) -> Crew:
        from .crew import made_crew
        from .rows import Rows

        return made_crew(blueprint, context_providers=[Rows()])

    @property
    def _rows(self) -> list[Any]:
        """The messages of this session."""
        (provider,) = self._crew.main.context_providers
        rows: list[Any] = provider.of(self._session.session_id)
        return rows

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        from .requests import requests_of
        from .waiting import waiting

        return requests_of(waiting(self._session, self._rows), self.tools())

    async def dump(self) -> str:
        """Gives the session, and the messages: all, or those that came since the last time."""
        new = self._rows[self._saved :] if self.blueprint.history == "append" else self._rows
        self._saved = len(self._rows)
        return json.dumps({"session": self._session.to_dict(), "messages": [message.to_dict() for message in new]})

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        from agent_framework import AgentSession, Message

        saved = [json.loads(part) for part in parts]
        self._session = AgentSession.from_dict(saved[-1]["session"])
        self._rows[:] = [Message.from_dict(message) for one in saved for message in one["messages"]]
        self._saved = len(self._rows)

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        assert isinstance(other, Replayed)
        await super().copy_from(other)
        self._rows[:] = deepcopy(other._rows)

    async def trim(self, keep: int) -> None:
        """See `Agent.trim`."""
        raise Unsupported("trim", facts.REPLAYED_MISSING["trim"])
