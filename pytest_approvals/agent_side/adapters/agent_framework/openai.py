"""Sessions of agents whose clients are always the framework's own for OpenAI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from ...contract import Blueprint, Unsupported
from . import facts
from .session import Session

if TYPE_CHECKING:
    from .crew import Crew


class OpenAIChat(Session):
    """As `Session`, with the client for Chat Completions."""

    native = "chat"
    protocols: ClassVar[Mapping[str, Mapping[str, str]]] = {}


class OpenAI(Session):
    """As `Session`, with the client for Responses; the provider keeps the conversation, and runs tools of servers."""

    wire_rules = "responses"
    native = "responses"
    protocols: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    capabilities = facts.claimed(facts.RESPONSES_MISSING)
    missing = facts.RESPONSES_MISSING
    stored: ClassVar[bool] = True

    def _crew_of(self, blueprint: Blueprint) -> Crew:
        from .crew import made_crew
        from .servers import hosted

        return made_crew(blueprint, further=hosted, stored=self.stored)

    async def trim(self, keep: int) -> None:
        """See `Agent.trim`."""
        if self.stored:
            raise Unsupported("trim", facts.RESPONSES_MISSING["trim"])
        await super().trim(keep)


class OpenAIUnstored(OpenAI):
    """As `OpenAI`; the provider keeps nothing."""

    capabilities = facts.claimed(facts.UNSTORED_MISSING)
    missing = facts.UNSTORED_MISSING
    stored = False
