"""Sessions of agents with the framework's own clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ....contract import Blueprint, Unsupported
from .. import facts
from ..session import Session

if TYPE_CHECKING:
    from ..crew import Crew


class OpenAIChat(Session):
    """As `Session`, with the client for Chat Completions."""

    capabilities = facts.claimed(facts.MISSING)
    missing = facts.MISSING

    def _crew_of(self, blueprint: Blueprint) -> Crew:
        from ..crew import made_crew
        from .clients import chat_client

        return made_crew(blueprint, client=chat_client)


class OpenAI(Session):
    """As `Session`, with the client for Responses; the provider keeps the conversation."""

    wire_rules = "responses"
    capabilities = facts.claimed(facts.RESPONSES_MISSING)
    missing = facts.RESPONSES_MISSING
    stored: ClassVar[bool] = True

    def _crew_of(self, blueprint: Blueprint) -> Crew:
        from ..crew import made_crew
        from .clients import hosted_tools, responses_client

        options: dict[str, Any] = {} if self.stored else {"store": False}
        return made_crew(
            blueprint,
            client=responses_client,
            further=hosted_tools,
            history=not self.stored,
            default_options=options,
        )

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
