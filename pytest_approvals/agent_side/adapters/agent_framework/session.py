"""Sessions: an agent with an `AgentSession`, and the flavours of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from ...contract import RENAMED, Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported
from ...contract.agent import Agent, World
from ...kit.context import use_world
from . import metadata

if TYPE_CHECKING:
    from .agents import AgentGraph
    from .requests import DecisionWriter


class Session(Agent):
    """An agent with a session of its own, without any middleware.

    The caller keeps the session, and answers requests with the next message.
    """

    framework = metadata.FRAMEWORK
    wire_rules = "chat"
    issues = metadata.ISSUES
    stores = metadata.STORES
    packages = metadata.PACKAGES
    given_options = ("messages", "session", "stream")
    protocols = metadata.PROTOCOLS
    connects = True
    missing = metadata.MISSING
    renames = RENAMED

    def __init__(self, world: World, blueprint: Blueprint, *, shared_with: Session | None = None) -> None:
        super().__init__(world, blueprint)
        self._agents: AgentGraph = (
            shared_with._agents if shared_with else self._attach(blueprint) or self._create_agents(blueprint)
        )
        self._agents.add_session(self)
        self._session: Any = self._agents.main.create_session()
        self._shown: tuple[Request, ...] = ()
        if self._agents.is_workflow and blueprint.serialize != "none":
            raise Unsupported(
                f"serialize.{blueprint.serialize}", "a workflow keeps its state itself; its checkpoints are not taken"
            )

    def _attach(self, blueprint: Blueprint) -> AgentGraph | None:
        if blueprint.attachment is None:
            return None
        from .attach import attach_agents

        return attach_agents(blueprint.attachment)

    def _create_agents(self, blueprint: Blueprint) -> AgentGraph:
        from .agents import build_agents

        return build_agents(blueprint)

    def _choose_decision_writer(self) -> DecisionWriter:
        """Return what writes a decision."""
        from .requests import write_plain

        return write_plain

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        from .requests import read_requests, write_decisions

        message = write_decisions(text, decisions, self._choose_decision_writer())
        with use_world(self.world):
            async with self._agents.connect():
                response = await (self._stream(message) if stream else self._run(message))
        self._shown = requests = read_requests(response.user_input_requests, self.tools())
        if requests:
            return Paused(requests=requests, text=response.text or None)
        return Finished(output=self._read_output(response))

    def _read_output(self, response: Any) -> Any:
        if not self.blueprint.answer:
            return response.text
        value = response.value
        return value.model_dump() if value is not None else response.text

    async def _run(self, message: Any) -> Any:
        return await self._agents.main.run(message, **self._session_option, **self._agents.options)

    @property
    def _session_option(self) -> dict[str, Any]:
        """The session of an agent; a workflow would take the messages in it for answers."""
        return {} if self._agents.is_workflow else {"session": self._session}

    async def _stream(self, message: Any) -> Any:
        from .messages import StreamReader

        reader = StreamReader(self.blueprint.answer)
        stream = self._agents.main.run(message, stream=True, **self._session_option, **self._agents.options)
        async for update in stream:
            for kind, values in reader.read_update(update):
                self.world.shown(kind, **values)
        response = await stream.get_final_response()
        self.world.shown("end")
        return response

    # --- state --------------------------------------------------------------------------------------------------------

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        from .requests import read_requests
        from .state import open_requests

        if self._agents.is_workflow:
            return self._shown
        return read_requests(open_requests(self._session), self.tools())

    async def dump(self) -> str:
        """Return the session as the framework writes it, or its place in the store."""
        if not self.blueprint.serialize.startswith("native."):
            return json.dumps(self._session.to_dict())
        from .state import write_session

        # Each save has a place of its own, so that an older one can be restored.
        key = f"{self._session.session_id}-{uuid4().hex}"
        await write_session(self.blueprint, key, self._session)
        return key

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        if not self.blueprint.serialize.startswith("native."):
            from agent_framework import AgentSession

            self._session = AgentSession.from_dict(json.loads(parts[-1]))
            return
        from .state import read_stored_session

        self._session = await read_stored_session(self.blueprint, parts[-1])

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        assert isinstance(other, Session)
        self._session = deepcopy(other._session)

    async def trim(self, keep: int) -> None:
        """Compact the stored history to the last messages, in whole groups of them."""
        from .state import trim_history

        await trim_history(self._agents.main, self._session, keep)

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`."""
        return type(self)(world, self.blueprint, shared_with=self)

    async def close(self) -> None:
        """See `Agent.close`."""
        self._agents.remove_session(self)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._agents.tools

    def earlier_turns(self) -> int | None:
        """See `Agent.earlier_turns`."""
        return self._agents.earlier_turns


class StoredSession(Session):
    """As `Session`, by the framework's default: the application stores the session after each run, and dies in one."""

    recovery = metadata.RECOVERY
    missing: ClassVar[Mapping[str, str]] = {**metadata.MISSING, **metadata.STORED_AFTER_RUNS}


class ApprovalMiddlewareSession(Session):
    """An agent with `ToolApprovalMiddleware` around it.

    It shows one request at a time, approves by standing rules, and checks the tools' conditions.
    """

    missing = metadata.MIDDLEWARE_MISSING

    def _create_agents(self, blueprint: Blueprint) -> AgentGraph:
        from .agents import build_agents
        from .tools import build_approval_middleware

        return build_agents(blueprint, middleware=build_approval_middleware)

    def _choose_decision_writer(self) -> DecisionWriter:
        from .requests import write_standing

        return write_standing


class OpenAIChatSession(Session):
    """As `Session`, with the framework's own client for Chat Completions."""

    native = "chat"
    protocols: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    missing = metadata.CHAT_MISSING


class OpenAISession(Session):
    """As `Session`, with the framework's own client for Responses.

    The provider stores the conversation, and runs tools of servers.
    """

    wire_rules = "responses"
    native = "responses"
    protocols: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    missing = metadata.RESPONSES_MISSING
    stored: ClassVar[bool] = True

    def _create_agents(self, blueprint: Blueprint) -> AgentGraph:
        from .agents import build_agents
        from .tools import build_hosted_servers

        return build_agents(blueprint, extra_tools=build_hosted_servers, stored=self.stored)

    async def trim(self, keep: int) -> None:
        """See `Agent.trim`."""
        if self.stored:
            raise Unsupported("trim", metadata.RESPONSES_MISSING["trim"])
        await super().trim(keep)


class OpenAIUnstoredSession(OpenAISession):
    """As `OpenAISession`; the provider stores nothing."""

    missing = metadata.UNSTORED_MISSING
    stored = False


class ReplayedSession(Session):
    """As `Session`, with the messages in rows of the caller's own, as chat servers do.

    The history provider keeps requests apart from their calls. The session holds open requests, and no messages.
    """

    stores: ClassVar[Mapping[str, str]] = {}
    missing = metadata.REPLAYED_MISSING

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._saved = 0

    def _create_agents(self, blueprint: Blueprint) -> AgentGraph:
        from .agents import build_agents
        from .state import RowHistoryProvider

        return build_agents(blueprint, context_providers=[RowHistoryProvider()])

    @property
    def _rows(self) -> list[Any]:
        """The messages of this session."""
        (provider,) = self._agents.main.context_providers
        rows: list[Any] = provider.rows_of(self._session.session_id)
        return rows

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        from .requests import read_requests
        from .state import open_requests

        return read_requests(open_requests(self._session, self._rows), self.tools())

    async def dump(self) -> str:
        """Return the session and the messages: all, or those that came since the last time."""
        new = self._rows[self._saved :] if self.blueprint.history == "append" else self._rows
        self._saved = len(self._rows)
        return json.dumps({"session": self._session.to_dict(), "messages": [message.to_dict() for message in new]})

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        from agent_framework import AgentSession, Message

        saved = [json.loads(part) for part in parts]
        self._session = AgentSession.from_dict(saved[-1]["session"])
        self._rows[:] = [Message.from_dict(message) for part in saved for message in part["messages"]]
        self._saved = len(self._rows)

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        assert isinstance(other, ReplayedSession)
        await super().copy_from(other)
        self._rows[:] = deepcopy(other._rows)

    async def trim(self, keep: int) -> None:
        """See `Agent.trim`."""
        raise Unsupported("trim", metadata.REPLAYED_MISSING["trim"])
