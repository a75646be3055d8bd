"""Sessions: the events in a session service, and the flavours of it."""

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


_RUN_OPTIONS = ("state_delta",)
"""Arguments of `Runner.run_async` that a user may give; all others but `run_config` are those of `RunConfig`."""


class Session(Agent):
    """One of the framework's sessions; flavours differ in the gate and in resuming."""

    framework = "google-adk"
    wire_rules = "chat"
    protocols = metadata.PROTOCOLS
    issues = metadata.ISSUES
    stores = metadata.STORES
    renames = ("main_renamed", "hand_off_renamed")
    recovery = metadata.RECOVERY
    packages = ("google",)
    given_options = ("user_id", "session_id", "invocation_id", "new_message")
    connects = True
    resumable: ClassVar[bool] = False

    def __init__(self, world: World, blueprint: Blueprint, *, shared_with: Session | None = None) -> None:
        super().__init__(world, blueprint)
        self._agents: AgentGraph = shared_with._agents if shared_with else self._create_agents(blueprint)
        self._agents.add_session(self)
        self._opened: OpenedService | None = shared_with._opened if shared_with else None
        self._runner: Any = shared_with._runner if shared_with else None
        self._borrowed = shared_with is not None
        self._id = ""
        self._keep: int | None = None
        self._saved = 0

    def _create_agents(self, blueprint: Blueprint) -> AgentGraph:
        if blueprint.attachment is not None:
            from .attach import attach_agents

            return attach_agents(blueprint.attachment, resumable=self.resumable)
        from .agents import build_agents

        return build_agents(blueprint, self._choose_tool_factory(), resumable=self.resumable)

    @abstractmethod
    def _choose_tool_factory(self) -> ToolFactory:
        """Return what builds the tools of a built agent, gated in the flavour's way."""

    # --- the session --------------------------------------------------------------------------------------------------

    async def _prepare(self) -> Any:
        """Return the runner on its session service, with a session in it."""
        if self._runner is None:
            from .state import OpenedService, check_service, close_nothing, open_service

            user_service = self._agents.service if self.blueprint.serialize == "none" else None
            if user_service is not None:
                opened = OpenedService(service=user_service, close=close_nothing)
            else:
                opened = open_service(self.blueprint)
                try:
                    await check_service(self.blueprint, opened.service)
                except BaseException:
                    await opened.close()
                    raise
            self._opened = opened
            self._runner = self._agents.build_runner(opened.service)
        if not self._id:
            self._id = (await self._create_session()).id
        return self._runner

    async def _create_session(self, **options: Any) -> Any:
        options.setdefault("session_id", str(uuid4()))
        return await self._runner.session_service.create_session(
            app_name=self._runner.app_name, user_id=USER_ID, **options
        )

    async def _load_session(self) -> Any:
        runner = await self._prepare()
        service = runner.session_service
        return await service.get_session(app_name=runner.app_name, user_id=USER_ID, session_id=self._id)

    async def _open_requests(self) -> dict[str, tuple[Any, Any]]:
        from .requests import open_requests

        return open_requests((await self._load_session()).events)

    @classmethod
    def owns(cls, subject: object) -> bool:
        """See `Agent.owns`; other packages are in the namespace `google`, too."""
        return any(kind.__module__.startswith("google.adk.") for kind in type(subject).__mro__)

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        with use_world(self.world):
            runner = await self._prepare()
            waiting_before = await self._open_requests()
            message = self._build_message(text, decisions)
            invocation = (
                await self._find_invocation(decisions, waiting_before) if self.resumable and text is None else {}
            )
            config = self._build_config(stream)
            own = {name: self._agents.options[name] for name in _RUN_OPTIONS if name in self._agents.options}
            running = runner.run_async(
                user_id=USER_ID,
                session_id=self._id,
                new_message=message,
                run_config=config,
                **invocation,
                # A change of the state belongs to a message, and would be made again with each answer.
                **(own if text is not None else {}),
            )
            events = []
            # A turn can be cancelled here; the run then has to end before the next one begins.
            async with aclosing(running) as stream_events:
                async for event in stream_events:
                    events.append(event)
                    if stream:
                        self._report_event(event)
            if stream:
                self.world.shown("end")
            return await self._build_outcome(events, waiting_before)

    def _build_message(self, text: str | None, decisions: Sequence[Decision]) -> Any:
        if text is not None and decisions:
            raise Unsupported("message_with_answers", metadata.MISSING["message_with_answers"])
        if text is None and not decisions:
            if not self.resumable:
                raise Unsupported("go_on_without_answer", metadata.MISSING["go_on_without_answer"])
            return None
        from google.genai import types

        from .requests import write_decisions

        if decisions:
            is_attached = self.blueprint.attachment is not None
            return write_decisions(decisions, self.blueprint.options, is_attached=is_attached)
        return types.Content(role="user", parts=[types.Part(text=text)])

    async def _find_invocation(
        self, decisions: Sequence[Decision], waiting: dict[str, tuple[Any, Any]]
    ) -> dict[str, Any]:
        """Return the invocation to resume: the one that asked, or without decisions the last."""
        request_ids = [decision.request.id for decision in decisions if decision.request is not None]
        asking_events = [event for call, event in waiting.values() if call.id in request_ids]
        if decisions and not asking_events:
            return {}
        events = asking_events or (await self._load_session()).events
        return {"invocation_id": events[-1].invocation_id} if events else {}

    def _build_config(self, stream: bool) -> Any:
        from google.adk.agents.run_config import RunConfig, StreamingMode

        options = {name: value for name, value in self._agents.options.items() if name not in _RUN_OPTIONS}
        config = options.pop("run_config", None)
        if stream:
            options["streaming_mode"] = StreamingMode.SSE
        if self._keep is not None:
            from google.adk.sessions.base_session_service import GetSessionConfig

            options["get_session_config"] = GetSessionConfig(num_recent_events=self._keep)
        return RunConfig(**options) if config is None else config.model_copy(update=options)

    def _report_event(self, event: Any) -> None:
        from .messages import read_event

        for kind, values in read_event(event, self._agents.results):
            self.world.shown(kind, **values)

    async def _build_outcome(self, events: Sequence[Any], before: dict[str, tuple[Any, Any]]) -> Outcome:
        from .messages import text_of
        from .requests import confirmation_calls

        # The text of partial events comes again in a complete one.
        complete_events = [event for event in events if not event.partial]
        error_event = complete_events[-1] if complete_events and complete_events[-1].error_code else None
        if error_event is not None:
            raise RunFailed(f"{error_event.error_code}: {error_event.error_message}")
        new = {call.id: (call, event) for event in complete_events for call in confirmation_calls(event)}
        texts = [text for event in complete_events if event.author != "user" and (text := text_of(event.content))]
        waiting = await self._open_requests()
        # Requests that were shown before and not answered stay open, whatever else the run did.
        shown = {**before, **new}
        open_calls = {key: shown_call for key, shown_call in shown.items() if key in waiting or key in new}
        last_text = texts[-1] if texts else None
        if open_calls:
            return Paused(requests=self._to_requests(open_calls), text=last_text)
        return Finished(output=self._read_output(last_text))

    def _read_output(self, text: str | None) -> Any:
        """Return the output of a run; a structured answer is JSON in its last text."""
        return json.loads(text) if self.blueprint.answer and text else text

    # --- requests -----------------------------------------------------------------------------------------------------

    def _to_requests(self, waiting: dict[str, tuple[Any, Any]]) -> tuple[Request, ...]:
        return tuple(self._agents.reader.read(call, event.author) for call, event in waiting.values())

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        return self._to_requests(await self._open_requests())

    # --- state --------------------------------------------------------------------------------------------------------

    async def trim(self, keep: int) -> None:
        """Limit the events that the runner loads: `RunConfig(get_session_config=...)`."""
        self._keep = keep

    async def dump(self) -> str:
        """Return the session as text, or for a store the session's id.

        With history `append` it is the events that came since the last time.
        """
        return _prefix_limit(await self._dump_session(), self._keep)

    async def _dump_session(self) -> str:
        session = await self._load_session()
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
            await self._prepare()
            return
        from google.adk.events import Event
        from google.adk.sessions import Session as SavedSession

        if self.blueprint.history == "append":
            events = [Event.model_validate(event) for part in parts for event in json.loads(part)]
            await self._restore(events)
        else:
            saved = SavedSession.model_validate_json(parts[-1])
            await self._restore(saved.events, session_id=saved.id, state=saved.state)

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`."""
        assert isinstance(other, Session)
        self._keep = other._keep
        copy = (await other._load_session()).model_copy(deep=True)
        await self._restore(copy.events, session_id=copy.id, state=copy.state)

    async def _restore(self, events: Sequence[Any], **options: Any) -> None:
        runner = await self._prepare()
        session = await self._create_session(**options)
        # A service has no call that stores a whole session.
        for event in events:
            await runner.session_service.append_event(session, event)
        self._id, self._saved = session.id, len(events)

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`."""
        await self._prepare()
        return type(self)(world, self.blueprint, shared_with=self)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._agents.reader.tools

    def earlier_turns(self) -> int | None:
        """See `Agent.earlier_turns`."""
        return self._agents.earlier_turns

    async def close(self) -> None:
        """See `Agent.close`."""
        opened, self._opened = self._opened, None
        runner, self._runner = self._runner, None
        if opened is not None and not self._borrowed:
            await runner.close()
            await opened.close()
        self._agents.remove_session(self)


_LIMIT_PREFIX = "num_recent_events="


def _prefix_limit(text: str, keep: int | None) -> str:
    """Put the limit of a session's events before its text.

    The session does not hold it, the caller does.
    """
    return text if keep is None else f"{_LIMIT_PREFIX}{keep}\n{text}"


def _read_limit(text: str) -> int | None:
    """Return the limit before *text*."""
    return int(text.removeprefix(_LIMIT_PREFIX).partition("\n")[0]) if text.startswith(_LIMIT_PREFIX) else None


class RunFailed(Exception):
    """The framework ended a run with an error event: its code and message."""


class StaticSession(Session):
    """The framework gates functions: `FunctionTool(..., require_confirmation=...)`."""

    missing = metadata.MISSING

    def _choose_tool_factory(self) -> ToolFactory:
        from .tools import build_confirmed_tool

        return build_confirmed_tool


class ResumableSession(StaticSession):
    """As `StaticSession`, in an app whose invocations can be resumed."""

    missing = metadata.RESUMABLE_MISSING
    resumable = True


class DynamicSession(Session):
    """The bodies of tools call `request_confirmation` and read the answer's payload."""

    missing = metadata.DYNAMIC_MISSING

    def _choose_tool_factory(self) -> ToolFactory:
        from .tools import build_asking_tool

        return build_asking_tool


class CustomToolSession(Session):
    """Each tool is a subclass that decides in `check_require_confirmation`."""

    missing = metadata.MISSING

    def _choose_tool_factory(self) -> ToolFactory:
        from .tools import build_custom_tool

        return build_custom_tool
