"""One session: the events in a session service, and the flavours of it."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import uuid4

from ...contract import Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported
from ...contract.agent import Agent, World
from ...kit.context import use_world
from . import metadata

if TYPE_CHECKING:
    from .agents import AgentGraph, ToolFactory
    from .state import OpenedService

USER_ID = "person"


class Session(Agent):
    """A session is one of the framework's; flavours differ in what gates calls and in how runs are resumed."""

    framework = "google-adk"
    wire_rules = "chat"
    protocols = metadata.PROTOCOLS
    issues = metadata.ISSUES
    stores = metadata.STORES
    packages = ("google",)
    connects = True
    resumable: ClassVar[bool] = False

    def __init__(self, world: World, blueprint: Blueprint, *, beside: Session | None = None) -> None:
        super().__init__(world, blueprint)
        self._crew: AgentGraph = beside._crew if beside else self._crew_of(blueprint)
        self._crew.sessions.add(id(self))
        self._opened: OpenedService | None = beside._opened if beside else None
        self._runner: Any = beside._runner if beside else None
        self._borrowed = beside is not None
        self._id = ""
        self._keep: int | None = None
        self._saved = 0

    def _crew_of(self, blueprint: Blueprint) -> AgentGraph:
        if blueprint.attachment is not None:
            from .attach import attach_agents

            return attach_agents(blueprint.attachment, resumable=self.resumable)
        from .agents import build_agents

        return build_agents(blueprint, self._tool(), resumable=self.resumable)

    @abstractmethod
    def _tool(self) -> ToolFactory:
        """What makes the tools of a built agent, gated in the flavour's way."""

    # --- the session --------------------------------------------------------------------------------------------------

    async def _ready(self) -> Any:
        """Gives the runner on its session service, with a session in it."""
        if self._runner is None:
            from .state import OpenedService, close_nothing, open_service

            own = self._crew.service if self.blueprint.serialize == "none" else None
            self._opened = (
                OpenedService(service=own, close=close_nothing) if own is not None else open_service(self.blueprint)
            )
            self._runner = self._crew.runner(self._opened.service)
        if not self._id:
            self._id = (await self._create()).id
        return self._runner

    async def _create(self, **more: Any) -> Any:
        more.setdefault("session_id", str(uuid4()))
        return await self._runner.session_service.create_session(
            app_name=self._runner.app_name, user_id=USER_ID, **more
        )

    async def _session(self) -> Any:
        runner = await self._ready()
        service = runner.session_service
        return await service.get_session(app_name=runner.app_name, user_id=USER_ID, session_id=self._id)

    async def _open(self) -> dict[str, tuple[Any, Any]]:
        from .requests import open_requests

        return open_requests((await self._session()).events)

    @classmethod
    def owns(cls, subject: object) -> bool:
        """See `Agent.owns`; other packages are in the namespace `google`, too."""
        return type(subject).__module__.startswith("google.adk.")

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        with use_world(self.world):
            runner = await self._ready()
            waiting = await self._open()
            given = self._message(text, decisions)
            where = await self._invocation(decisions, waiting) if self.resumable and text is None else {}
            config = self._config(stream)
            running = runner.run_async(
                user_id=USER_ID, session_id=self._id, new_message=given, run_config=config, **where
            )
            events = []
            async with aclosing(running) as shown:
                async for event in shown:
                    events.append(event)
                    if stream:
                        self._show(event)
            if stream:
                self.world.shown("end")
            return await self._outcome(events, waiting)

    def _message(self, text: str | None, decisions: Sequence[Decision]) -> Any:
        if text is not None and decisions:
            raise Unsupported("message_with_answers", metadata.MISSING["message_with_answers"])
        if text is None and not decisions:
            if not self.resumable:
                raise Unsupported("go_on_without_answer", metadata.MISSING["go_on_without_answer"])
            return None
        from google.genai import types

        from .requests import write_decisions

        if decisions:
            return write_decisions(decisions, self.blueprint.options)
        return types.Content(role="user", parts=[types.Part(text=text)])

    async def _invocation(self, decisions: Sequence[Decision], waiting: dict[str, tuple[Any, Any]]) -> dict[str, Any]:
        """Names the invocation to resume: the one that asked, or without an answer the last one."""
        ids = [decision.request.id for decision in decisions if decision.request is not None]
        asked = [event for call, event in waiting.values() if call.id in ids]
        if decisions and not asked:
            return {}
        events = asked or (await self._session()).events
        return {"invocation_id": events[-1].invocation_id} if events else {}

    def _config(self, stream: bool) -> Any:
        from google.adk.agents.run_config import RunConfig, StreamingMode

        options = dict(self._crew.options)
        if stream:
            options["streaming_mode"] = StreamingMode.SSE
        if self._keep is not None:
            from google.adk.sessions.base_session_service import GetSessionConfig

            options["get_session_config"] = GetSessionConfig(num_recent_events=self._keep)
        return RunConfig(**options)

    def _show(self, event: Any) -> None:
        from .messages import read_event

        for what, told in read_event(event):
            self.world.shown(what, **told)

    async def _outcome(self, events: Sequence[Any], before: dict[str, tuple[Any, Any]]) -> Outcome:
        from .messages import text_of
        from .requests import confirmation_calls

        whole = [event for event in events if not event.partial]
        failed = whole[-1] if whole and whole[-1].error_code else None
        if failed is not None:
            raise RunFailed(f"{failed.error_code}: {failed.error_message}")
        new = {call.id: (call, event) for event in whole for call in confirmation_calls(event)}
        said = [text for event in whole if event.author != "user" and (text := text_of(event.content))]
        waiting = await self._open()
        # What the person saw before and has not answered is open still, whatever else the run did.
        known = {one: both for one, both in {**before, **new}.items() if one in waiting or one in new}
        last = said[-1] if said else None
        return Paused(requests=self._requests(known), text=last) if known else Finished(output=self._output(last))

    def _output(self, said: str | None) -> Any:
        """Gives what a run ends with; a structured answer stands in its last text as JSON."""
        return json.loads(said) if self.blueprint.answer and said else said

    # --- requests -----------------------------------------------------------------------------------------------------

    def _requests(self, waiting: dict[str, tuple[Any, Any]]) -> tuple[Request, ...]:
        return tuple(self._crew.reading.request(call, event.author) for call, event in waiting.values())

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        return self._requests(await self._open())

    # --- state --------------------------------------------------------------------------------------------------------

    async def trim(self, keep: int) -> None:
        """Lets the runner load the last *keep* events of a session: `RunConfig(get_session_config=...)`."""
        self._keep = keep

    async def dump(self) -> str:
        """
        Gives the session as text, or with history `append` the events that came since the last time; for a store
        the session's id.
        """
        return _prefix_limit(await self._dumped(), self._keep)

    async def _dumped(self) -> str:
        session = await self._session()
        if self.blueprint.serialize.startswith("native."):
            return self._id
        if self.blueprint.history == "append":
            new, self._saved = session.events[self._saved :], len(session.events)
            return json.dumps([event.model_dump(mode="json", by_alias=True, exclude_none=True) for event in new])
        text: str = session.model_dump_json(by_alias=True)
        return text

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`; events are appended to a new session one by one."""
        self._keep = _read_limit(parts[-1])
        parts = [part.removeprefix(_prefix_limit("", _read_limit(part))) for part in parts]
        if self.blueprint.serialize.startswith("native."):
            self._id = parts[-1]
            await self._ready()
            return
        from google.adk.events import Event
        from google.adk.sessions import Session as Kept

        if self.blueprint.history == "append":
            events = [Event.model_validate(event) for part in parts for event in json.loads(part)]
            await self._take_up(events)
        else:
            kept = Kept.model_validate_json(parts[-1])
            await self._take_up(kept.events, session_id=kept.id, state=kept.state)

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        assert isinstance(other, Session)
        self._keep = other._keep
        kept = (await other._session()).model_copy(deep=True)
        await self._take_up(kept.events, session_id=kept.id, state=kept.state)

    async def _take_up(self, events: Sequence[Any], **more: Any) -> None:
        runner = await self._ready()
        session = await self._create(**more)
        for event in events:
            await runner.session_service.append_event(session, event)
        self._id, self._saved = session.id, len(events)

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`."""
        await self._ready()
        return type(self)(world, self.blueprint, beside=self)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._crew.reading.tools

    async def close(self) -> None:
        """See `Agent.close`."""
        opened, self._opened = self._opened, None
        runner, self._runner = self._runner, None
        if opened is not None and not self._borrowed:
            await runner.close()
            await opened.close()
        self._crew.let_go(self)


_LIMIT_PREFIX = "num_recent_events="


def _prefix_limit(text: str, keep: int | None) -> str:
    """Puts the limit of a session's events before what is kept of it: the session does not hold it, the caller does."""
    return text if keep is None else f"{_LIMIT_PREFIX}{keep}\n{text}"


def _read_limit(text: str) -> int | None:
    """Gives the limit that stands before *text*."""
    return int(text.removeprefix(_LIMIT_PREFIX).partition("\n")[0]) if text.startswith(_LIMIT_PREFIX) else None


class RunFailed(Exception):
    """The framework ended a run with an error event: its code and message."""


class StaticSession(Session):
    """The framework gates functions: `FunctionTool(..., require_confirmation=...)`."""

    capabilities = metadata.claimed(metadata.MISSING)
    missing = metadata.MISSING

    def _tool(self) -> ToolFactory:
        from .tools import build_confirmed_tool

        return build_confirmed_tool


class ResumableSession(StaticSession):
    """As `StaticSession`, in an app whose invocations can be resumed."""

    capabilities = metadata.claimed(metadata.RESUMABLE_MISSING)
    missing = metadata.RESUMABLE_MISSING
    resumable = True


class DynamicSession(Session):
    """The bodies of tools ask with `request_confirmation`, and read the payload of the answer."""

    capabilities = metadata.claimed(metadata.DYNAMIC_MISSING)
    missing = metadata.DYNAMIC_MISSING

    def _tool(self) -> ToolFactory:
        from .tools import build_asking_tool

        return build_asking_tool


class CustomToolSession(Session):
    """Each tool is a class of its own, which says in `check_require_confirmation` whether it is gated."""

    capabilities = metadata.claimed(metadata.MISSING)
    missing = metadata.MISSING

    def _tool(self) -> ToolFactory:
        from .tools import build_custom_tool

        return build_custom_tool
