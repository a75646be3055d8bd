"""One session: an `AgentSession` that an agent runs with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ...contract import Agent, Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, World
from ...current import recorded_by
from . import facts

if TYPE_CHECKING:
    from .answers import Answer
    from .crew import Crew


class Session(Agent):
    """
    An agent with a session of its own, without any middleware.

    The caller keeps the session, and answers requests with the next message.
    """

    framework = facts.FRAMEWORK
    wire_rules = "chat"
    issues = facts.ISSUES
    stores = facts.STORES
    packages = facts.PACKAGES
    protocols = facts.PROTOCOLS
    connects = True
    capabilities = facts.claimed(facts.MISSING)
    missing = facts.MISSING

    def __init__(self, world: World, blueprint: Blueprint, *, beside: Session | None = None) -> None:
        super().__init__(world, blueprint)
        self._crew: Crew = beside._crew if beside else self._attached(blueprint) or self._crew_of(blueprint)
        self._session: Any = self._crew.main.create_session()

    def _attached(self, blueprint: Blueprint) -> Crew | None:
        if blueprint.attachment is None:
            return None
        from .attach import attached_crew

        return attached_crew(blueprint.attachment)

    def _crew_of(self, blueprint: Blueprint) -> Crew:
        from .crew import made_crew

        return made_crew(blueprint)

    def _answer(self) -> Answer:
        """How a decision is said."""
        from .answers import plain

        return plain

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        from .answers import message
        from .requests import requests_of

        given = message(text, decisions, self._answer())
        with recorded_by(self.world):
            async with self._crew.connected():
                response = await (self._streamed(given) if stream else self._run(given))
        requests = requests_of(response.user_input_requests, self.tools())
        if requests:
            return Paused(requests=requests, text=response.text or None)
        return Finished(output=self._output(response))

    def _output(self, response: Any) -> Any:
        if not self.blueprint.answer:
            return response.text
        value = response.value
        return value.model_dump() if value is not None else response.text

    async def _run(self, given: Any) -> Any:
        return await self._crew.main.run(given, session=self._session, **self._crew.options)

    async def _streamed(self, given: Any) -> Any:
        from .streaming import Shown

        shown = Shown(self.blueprint.answer)
        stream = self._crew.main.run(given, session=self._session, stream=True, **self._crew.options)
        async for update in stream:
            for what, told in shown.seen(update):
                self.world.shown(what, **told)
        response = await stream.get_final_response()
        self.world.shown("end")
        return response

    # --- state --------------------------------------------------------------------------------------------------------

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        from .requests import requests_of
        from .waiting import waiting

        return requests_of(waiting(self._session), self.tools())

    async def dump(self) -> str:
        """Gives the session as the framework writes it, or where the store keeps it."""
        if not self.blueprint.serialize.startswith("native."):
            return json.dumps(self._session.to_dict())
        from .stores import opened

        # A save of its own each time, so that an older one can be taken up again.
        place = f"{self._session.session_id}-{uuid4().hex}"
        await opened(self.blueprint).set(place, self._session)
        return place

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        if not self.blueprint.serialize.startswith("native."):
            from agent_framework import AgentSession

            self._session = AgentSession.from_dict(json.loads(parts[-1]))
            return
        from .stores import opened

        self._session = await opened(self.blueprint).get(parts[-1])

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        assert isinstance(other, Session)
        self._session = deepcopy(other._session)

    async def trim(self, keep: int) -> None:
        """Lets the framework's compaction of stored histories leave the last messages, whole groups of them."""
        from .stores import trimmed

        await trimmed(self._crew.main, self._session, keep)

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`."""
        return type(self)(world, self.blueprint, beside=self)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._crew.tools


class Approving(Session):
    """
    An agent with `ToolApprovalMiddleware` around it.

    It shows one request at a time, approves by standing rules, and asks the tools' conditions.
    """

    capabilities = facts.claimed(facts.MIDDLEWARE_MISSING)
    missing = facts.MIDDLEWARE_MISSING

    def _crew_of(self, blueprint: Blueprint) -> Crew:
        from .crew import made_crew
        from .policies import approving

        return made_crew(blueprint, middleware=approving)

    def _answer(self) -> Answer:
        from .answers import standing

        return standing
