"""Sessions: clients of the CLI, and the ways in which it asks and waits for an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

from ...contract import Blueprint, Decision, Finished, Outcome, Paused, Request, ToolSpec, Unsupported
from ...contract.agent import Agent, World
from ...kit.context import use_world
from . import metadata

if TYPE_CHECKING:
    from typing import Self

    from claude_agent_sdk import ClaudeSDKClient, ResultMessage

    from .agents import AgentParts, Project
    from .model import ModelProxy
    from .state import State


PASSING = {"CLAUDE_CODE_DROP_UNAVAILABLE_DEFERRED_TOOL": "1"}
"""With a message, a deferred call whose tool is gone is dropped; otherwise the session says that it cannot go on."""


class Session(Agent):
    """One session of the CLI; flavours differ in how it waits."""

    framework = "claude-agent-sdk"
    wire_rules = "messages"
    native = "messages"
    protocols: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    issues = metadata.ISSUES
    packages = ("claude_agent_sdk",)
    connects = True

    def __init__(self, world: World, blueprint: Blueprint, *, parts: AgentParts | None = None) -> None:
        super().__init__(world, blueprint)
        self._parts: AgentParts = parts or self._build_parts()
        self._folder: TemporaryDirectory[str] | None = None
        self._proxy: ModelProxy | None = None
        self._said = ""
        self._stream = False

    def _build_parts(self) -> AgentParts:
        if self.blueprint.attachment is not None:
            raise Unsupported("attach", "agents of a user are not driven yet")
        from .agents import build_agent

        return build_agent(self.blueprint)

    @property
    def _home(self) -> str:
        """The folder in which the CLI keeps its files: for a store that of the run, else one of its own."""
        if self.blueprint.serialize.startswith("native."):
            return self.blueprint.directory
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="claude-", ignore_cleanup_errors=True)
        return self._folder.name

    async def _build_client(self, *, stream: bool, **options: Any) -> ClaudeSDKClient:
        from claude_agent_sdk import ClaudeSDKClient

        url = await self._start_proxy()
        return ClaudeSDKClient(self._parts.build_options(self._home, url, include_partial_messages=stream, **options))

    async def _start_proxy(self) -> str:
        from .model import ModelProxy

        if self._proxy is None:
            self._proxy = ModelProxy(self._find_model, self._parts.full_names)
            await self._proxy.start()
        return self._proxy.url

    def _find_model(self) -> str:
        address = self.world.address()
        assert address is not None, "the model of this agent is reached over Messages"
        return address.url

    # --- what the client says -----------------------------------------------------------------------------------------

    async def _receive_result(self, client: ClaudeSDKClient) -> ResultMessage:
        """Read the messages of a run up to its result, and report what they show in a streamed turn."""
        from claude_agent_sdk import ResultMessage, UserMessage

        from .messages import read_said, read_shown

        names = {full: name for name, full in self._parts.full_names.items()}
        self._said = ""
        async for message in client.receive_messages():
            if self._stream:
                for kind, facts in read_shown(message, names):
                    self.world.shown(kind, **facts)
            if isinstance(message, ResultMessage):
                return message
            # What was said before a result belongs to an earlier reply.
            self._said = "" if isinstance(message, UserMessage) else self._said + read_said(message)
        raise EOFError("the CLI ended without a result")

    def _to_finished(self, result: ResultMessage) -> Finished:
        from .messages import to_error

        if result.is_error:
            raise to_error(result)
        if self.blueprint.answer and result.structured_output is not None:
            return Finished(output=result.structured_output)
        return Finished(output=result.result)

    async def _needs_answer(self, spec: ToolSpec, arguments: Any, call_id: str | None) -> bool:
        """Return whether a call waits for the caller."""
        if spec.approval in ("always", "never"):
            return spec.approval == "always"
        return await self.world.gate_slowly(spec.name, arguments, call_id, agent=spec.agent)

    # --- the rest -----------------------------------------------------------------------------------------------------

    async def another_session(self, world: World) -> Self:
        """Return a session with the same servers and tools."""
        return type(self)(world, self.blueprint, parts=self._parts)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._parts.tools

    async def close(self) -> None:
        """See `Agent.close`."""
        if self._proxy is not None:
            await self._proxy.close()
            self._proxy = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


class DeferredSession(Session):
    """A hook defers gated calls, and each turn resumes the session with another client."""

    missing = metadata.DEFERRED_MISSING
    recovery = metadata.RECOVERY
    stores = metadata.STORES

    def __init__(self, world: World, blueprint: Blueprint, *, parts: AgentParts | None = None) -> None:
        super().__init__(world, blueprint, parts=parts)
        from .state import EntryStore, State

        in_files = blueprint.serialize.startswith("native.")
        self._state: State = State(store=None if in_files else EntryStore())
        self._answers: dict[str | None, Any] = {}
        self._must_fork = False

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        from .requests import read_answers

        if text is not None and decisions:
            raise Unsupported("message_with_answers")
        if not self._must_fork and self._state.store is None and self._state.deferred is not None:
            # Another process may have gone on with the session; a CLI whose call has a result waits for a message.
            self._state.deferred = self._find_open_call()
        deferred = self._state.deferred
        if text is None and deferred is None and not decisions:
            raise Unsupported("go_on_without_answer", "nothing is deferred, so the session waits for a message")
        self._answers, self._stream = read_answers(decisions, deferred), stream
        with use_world(self.world):
            async with await self._build_client(stream=stream, **self._build_options(text)) as client:
                if text is not None:
                    self._state.passed += [deferred.id] if deferred is not None else []
                    await client.query(text)
                # A resumed session goes on with what is deferred before it reads a message.
                result = await self._receive(client)
                while text is not None and self._is_passed(result):
                    # What a message goes past is deferred once more, and also whenever a session of a store is resumed.
                    result = await self._receive(client)
        return self._to_outcome(result)

    def _build_options(self, text: str | None) -> dict[str, Any]:
        from claude_agent_sdk import HookMatcher

        # A resumed CLI runs the deferred call of a server as soon as that is connected, be the hook registered or not.
        options: dict[str, Any] = {
            "hooks": {"PreToolUse": [HookMatcher(hooks=[self._answer_hook])]},
            "can_use_tool": self._answer_permission,
        }
        if self._state.store is not None:
            options |= {"session_store": self._state.store, "session_store_flush": "eager"}
        if self._state.session:
            options["resume"] = self._state.session
        if self._must_fork:
            options["fork_session"] = True
        if text is not None:
            options["env"] = PASSING
        return options

    async def _answer_hook(self, asked: Any, call_id: str | None, _: Any) -> dict[str, Any]:
        """Answer a hook of `PreToolUse`: with the caller's decision, else by the tool's gate."""
        from .requests import CHANGED, hook_output, write_hook_output

        decision = self._answers.get(call_id)
        if decision is not None:
            # An answer is about the call as it was shown; the stored session may hold another one by now.
            is_shown = decision.request.arguments == asked["tool_input"]
            return write_hook_output(decision) if is_shown else hook_output("deny", permissionDecisionReason=CHANGED)
        spec = self._parts.specs.get(asked["tool_name"])
        if spec is None:
            return {}
        needs_answer = await self._needs_answer(spec, asked["tool_input"], call_id)
        return hook_output("defer" if needs_answer else "allow")

    async def _answer_permission(self, full_name: str, arguments: dict[str, Any], context: Any) -> Any:
        """Answer for a call that the hook was not asked about."""
        from claude_agent_sdk import PermissionResultDeny

        from .requests import CHANGED, UNANSWERED, write_permission

        decision = self._answers.get(context.tool_use_id)
        if decision is None:
            return PermissionResultDeny(message=UNANSWERED)
        if decision.request.arguments != arguments:
            return PermissionResultDeny(message=CHANGED)
        return write_permission(decision)

    async def _receive(self, client: ClaudeSDKClient) -> ResultMessage:
        from .requests import to_request

        result = await self._receive_result(client)
        deferred = result.deferred_tool_use
        self._state.session, self._must_fork = result.session_id, False
        self._state.deferred = (
            None if deferred is None else to_request(deferred.id, deferred.name, deferred.input, self._parts.specs)
        )
        return result

    def _is_passed(self, result: ResultMessage) -> bool:
        return result.deferred_tool_use is not None and result.deferred_tool_use.id in self._state.passed

    def _to_outcome(self, result: ResultMessage) -> Outcome:
        # A call whose tool is gone is an error that still names what is deferred.
        deferred = None if result.is_error else self._state.deferred
        if self._stream and deferred is not None:
            self.world.shown("request", id=deferred.id)
        if self._stream:
            self.world.shown("end")
        return Paused(requests=(deferred,), text=self._said or None) if deferred else self._to_finished(result)

    async def pending(self) -> Sequence[Request]:
        """Return what the last result said to be deferred."""
        return () if self._state.deferred is None else (self._state.deferred,)

    # --- state --------------------------------------------------------------------------------------------------------

    async def dump(self) -> str:
        """Return the id of the session, what is deferred, and the entries that the application keeps."""
        return self._state.write(only_new=self.blueprint.history == "append")

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        self._state.read(parts)
        # Every restored session is a fork then, so that each one that was saved stays as it is.
        self._must_fork = bool(self.blueprint.options.get("forks") and self._state.session)

    async def recover(self, parts: Sequence[str]) -> None:
        """Take the session that the CLI wrote last, and the call that waits in its transcript."""
        from .state import find_last_session

        self._state.read(parts)
        self._state.session = self._state.session or find_last_session(self._home, self._parts.folder)
        self._state.deferred = self._find_open_call()

    def _find_open_call(self) -> Request | None:
        from .state import find_open_call

        state, parts = self._state, self._parts
        return find_open_call(self._home, parts.folder, state.session, parts.specs, passed=state.passed)

    async def copy_from(self, other: Agent) -> None:
        """Take a copy of the entries of *other*."""
        assert isinstance(other, DeferredSession)
        await self.load([other._state.write(only_new=False)])


@dataclass(slots=True, kw_only=True)
class _Question:
    """A call about which `can_use_tool` waits.

    Attributes:
        request: What the caller is shown.
        standing: The updates of a standing approval.
        answer: What the callback returns.
    """

    request: Request
    standing: Sequence[Any]
    answer: asyncio.Future[Any]


class InlineSession(Session):
    """`can_use_tool` waits for the caller's answer, and one client lives as long as the session."""

    missing = metadata.INLINE_MISSING
    stores = metadata.STORES

    def __init__(self, world: World, blueprint: Blueprint, *, parts: AgentParts | None = None) -> None:
        super().__init__(world, blueprint, parts=parts)
        self._client: ClaudeSDKClient | None = None
        self._question: _Question | None = None
        self._run: asyncio.Task[ResultMessage] | None = None
        self._moved = asyncio.Event()

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        from .requests import read_answers, write_permission

        self._stream = stream
        with use_world(self.world):
            if text is not None:
                if self._question is not None:
                    raise Unsupported("message_while_pending")
                client = await self._connect()
                await client.query(text)
                # A run may have ended while a question of it still waited.
                self._moved.clear()
                self._run = asyncio.create_task(self._follow_run(client))
            elif not decisions:
                raise Unsupported("go_on_without_answer")
            else:
                question = self._question
                asked = None if question is None else question.request
                (decision,) = read_answers(decisions, asked).values()
                assert question is not None
                self._question = None
                self._moved.clear()
                question.answer.set_result(write_permission(decision, question.standing))
            return await self._wait_for_outcome()

    async def _connect(self) -> ClaudeSDKClient:
        if self._client is None:
            # The CLI is started once, so that a later turn may be streamed, too.
            client = await self._build_client(stream=True, can_use_tool=self._ask, **self._find_options())
            await client.connect()
            self._client = client
        return self._client

    def _find_options(self) -> dict[str, Any]:
        """Return what this flavour adds to the options of its client."""
        return {}

    async def _follow_run(self, client: ClaudeSDKClient) -> ResultMessage:
        try:
            return await self._receive_result(client)
        finally:
            self._moved.set()

    async def _ask(self, full_name: str, arguments: dict[str, Any], context: Any) -> Any:
        """Let the running turn end, and wait for the answer of a later one."""
        from claude_agent_sdk import PermissionResultAllow

        from .requests import to_request

        call_id = context.tool_use_id or ""
        spec = self._parts.specs.get(full_name)
        if spec is not None and not await self._needs_answer(spec, arguments, call_id):
            return PermissionResultAllow()
        question = _Question(
            request=to_request(call_id, full_name, arguments, self._parts.specs),
            standing=self._find_standing(full_name, context),
            answer=asyncio.get_running_loop().create_future(),
        )
        self._question = question
        self._moved.set()
        try:
            return await question.answer
        finally:
            if self._question is question:
                self._question = None

    def _find_standing(self, full_name: str, context: Any) -> Sequence[Any]:
        """Return the updates of a standing approval of a tool that the CLI asks about."""
        from .requests import allow_in_session

        return allow_in_session(full_name)

    async def _wait_for_outcome(self) -> Outcome:
        # Set when the callback asks or the run ends, whichever comes first.
        await self._moved.wait()
        self._moved.clear()
        if self._question is not None:
            if self._stream:
                self.world.shown("request", id=self._question.request.id)
                self.world.shown("end")
            return Paused(requests=(self._question.request,), text=self._said or None)
        assert self._run is not None
        result = await self._run
        if self._stream:
            self.world.shown("end")
        return self._to_finished(result)

    async def pending(self) -> Sequence[Request]:
        """Return the call about which `can_use_tool` waits."""
        return () if self._question is None else (self._question.request,)

    async def cancel(self) -> None:
        """Interrupt the run that waits, and wait for its end."""
        if self._client is None or self._run is None or self._question is None:
            return
        # No turn shows what comes of it.
        self._stream = False
        await self._client.interrupt()
        with suppress(Exception):
            await self._run
        self._moved.clear()

    async def close(self) -> None:
        """See `Agent.close`."""
        if self._run is not None and not self._run.done():
            self._run.cancel()
            # `CancelledError` is no `Exception`.
            with suppress(BaseException):
                await self._run
        try:
            if self._proxy is not None:
                # A CLI whose question nobody answers any more tells its model so, which is in no turn.
                await self._proxy.close()
            if self._client is not None:
                client, self._client = self._client, None
                await client.disconnect()
        finally:
            await super().close()


class RulesSession(InlineSession):
    """The rules of a settings file decide; what they ask about, or have no rule for, waits in `can_use_tool`."""

    missing = metadata.RULES_MISSING
    stores = metadata.STORES

    def __init__(
        self, world: World, blueprint: Blueprint, *, parts: AgentParts | None = None, project: Project | None = None
    ) -> None:
        super().__init__(world, blueprint, parts=parts)
        from .agents import Project

        self._owns_project = project is None
        self._project: Project = project or Project(self._parts.specs)

    def _find_options(self) -> dict[str, Any]:
        return {"setting_sources": ["local"], "cwd": self._project.path}

    async def _needs_answer(self, spec: ToolSpec, arguments: Any, call_id: str | None) -> bool:
        """Return whether a call that the CLI asks about waits for the caller: only a condition can settle it here."""
        return isinstance(spec.approval, str) or await super()._needs_answer(spec, arguments, call_id)

    def _find_standing(self, full_name: str, context: Any) -> Sequence[Any]:
        """Return what the CLI suggests, or what lifts an `ask` rule, for which it suggests nothing."""
        from .requests import stop_asking

        return context.suggestions or stop_asking(
            full_name,
            is_asked_by_rule=full_name in self._project.permissions["ask"],
            is_allowed=self._project.allows_server_of(full_name),
        )

    async def another_session(self, world: World) -> Self:
        """Return a session in the same folder, with the same servers and tools."""
        return type(self)(world, self.blueprint, parts=self._parts, project=self._project)

    async def close(self) -> None:
        """See `Agent.close`."""
        try:
            await super().close()
        finally:
            if self._owns_project:
                self._project.close()
