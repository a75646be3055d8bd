"""RPC server of an agent process: the agent's end of the host protocol."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any, NoReturn

from ..contract.agent import Agent
from ..contract.metadata import get_facts, import_object, load_agent_class
from ..contract.types import Blueprint, Decision, Finished, ModelAddress, Paused, Request
from ..rpc.messages import (
    COMMANDS,
    NOTICES,
    PROTOCOL_VERSION,
    AnotherSession,
    Build,
    CopyFrom,
    Done,
    Hello,
    Load,
    OfSession,
    Pending,
    RunReal,
    Stage,
    State,
    TakeTurn,
    Tools,
    Trim,
    TurnEnded,
    Value,
    Welcome,
)
from ..rpc.peer import CallTimeout, RpcPeer
from ..rpc.remote_errors import BrokenContract
from ..rpc.serialization import Handle, SerializationError, from_json, short_repr, to_json, to_json_safe
from .process_exit import log_to_stderr
from .world_proxy import HarnessConnection, WorldProxy

CLOSE_TIMEOUT = 2.0
"""The seconds that agents may take to close after the harness is gone."""


class AgentServer:
    """Server of the harness for all agents of this process.

    Args:
        read: The descriptor to read from.
        write: The descriptor to write to.
        how: As in `messages.Welcome`.

    Attributes:
        over: Done when the harness is gone.
    """

    def __init__(self, read: int, write: int, how: str) -> None:
        self._how = how
        self._peer = RpcPeer(read, write, self)
        self._greeting: Hello | None = None
        self._adapter: type[Agent] | None = None
        self._sessions: dict[int, Agent] = {}
        self._handles: list[Any] = []
        self._connection = HarnessConnection(peer=self._peer, limit=600.0)
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._methods: dict[str, Callable[[Any], Awaitable[Any]]] = {
            name: getattr(self, f"_{name}") for name in COMMANDS
        }

    # --- handler of the peer ---

    async def answer(self, method: str, params: Any) -> Any:
        """See `RpcHandler`."""
        if method not in COMMANDS:
            raise BrokenContract(f"unknown method {method!r}")
        if self._greeting is None and method != "hello":
            raise BrokenContract(f"{method!r} came before 'hello'")
        try:
            command = from_json(COMMANDS[method][0], params)
        except SerializationError as error:
            raise BrokenContract(f"parameters of `{method}`: {error}") from None
        answer = await self._methods[method](command)
        # A framework may have swallowed the exception about a breach, so it is raised again here.
        if self._connection.breaches:
            raise BrokenContract(self._connection.breaches.pop())
        try:
            return to_json(answer, COMMANDS[method][1], anything=to_json_safe)
        except SerializationError as error:
            raise BrokenContract(f"invalid result of `{method}`: {error}") from None

    def notice(self, method: str, params: Any) -> None:
        """See `RpcHandler`."""
        reason = "only the agent's side may send it" if method in NOTICES else "it is unknown"
        log_to_stderr(f"the harness sent the notice {method!r}; {reason}")

    def call_timed_out(self, late: CallTimeout) -> None:
        """See `RpcHandler`."""
        log_to_stderr(f"the harness is late: {late}")

    def connection_ended(self, why: str | None) -> None:
        """See `RpcHandler`."""
        if why is not None:
            log_to_stderr(f"the harness broke the protocol: {why}")
        self.over.set_result(None)

    async def close_all(self) -> None:
        """Close the agents that the harness left open, as far as they close in time."""
        closing = [asyncio.ensure_future(agent.close()) for agent in self._sessions.values()]
        if closing:
            await asyncio.wait(closing, timeout=CLOSE_TIMEOUT)

    # --- commands ---

    async def _hello(self, hello: Hello) -> Welcome:
        if hello.protocol != PROTOCOL_VERSION:
            raise BrokenContract(
                f"the harness speaks protocol {hello.protocol}, this process speaks {PROTOCOL_VERSION}"
            )
        adapter = self._adapter = load_agent_class(hello.agent)
        self._greeting = hello
        self._connection.limit = hello.limit
        language = f"{platform.python_implementation()} {platform.python_version()}"
        return Welcome(
            protocol=PROTOCOL_VERSION, pid=os.getpid(), facts=get_facts(adapter), how=self._how, language=language
        )

    async def _build(self, build: Build) -> Tools:
        blueprint = _import_subject(build.blueprint)
        assert self._adapter is not None
        world = self._build_world(build.session, blueprint.model)
        return self._add_session(build.session, self._adapter(world, blueprint))

    async def _another_session(self, command: AnotherSession) -> Tools:
        world = self._build_world(command.new, command.model)
        return self._add_session(command.new, await self._agent(command.session).another_session(world))

    async def _copy_from(self, command: CopyFrom) -> Done:
        await self._agent(command.session).copy_from(self._agent(command.other))
        return Done()

    async def _turn(self, command: TakeTurn) -> TurnEnded:
        decisions = self._with_objects(command.decisions)
        self._connection.stops_when_shown = command.stops_when_shown
        if command.dies_in_write:
            # Python ignores the signal, so that the write fails; and a file of byte code is none of a store.
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            sys.dont_write_bytecode = True
        outcome = await self._agent(command.session).turn(command.text, decisions, stream=command.stream)
        if isinstance(outcome, Paused):
            return TurnEnded(paused=replace(outcome, requests=self._with_handles(outcome.requests)))
        if isinstance(outcome, Finished):
            return TurnEnded(finished=outcome)
        raise BrokenContract(f"turn() returned {short_repr(outcome)}, which is neither Paused nor Finished")

    async def _stage(self, command: Stage) -> Done:
        await self._agent(command.session).stage(self._with_objects(command.decisions))
        return Done()

    async def _pending(self, command: OfSession) -> Pending:
        return Pending(requests=self._with_handles(await self._agent(command.session).pending()))

    async def _cancel(self, command: OfSession) -> Done:
        await self._agent(command.session).cancel()
        return Done()

    async def _trim(self, command: Trim) -> Done:
        await self._agent(command.session).trim(command.keep)
        return Done()

    async def _dump(self, command: OfSession) -> State:
        return State(text=await self._agent(command.session).dump())

    async def _load(self, command: Load) -> Done:
        agent = self._agent(command.session)
        await (agent.recover(command.parts) if command.crashed else agent.load(command.parts))
        return Done()

    async def _close(self, command: OfSession) -> Done:
        agent = self._agent(command.session)
        # First: a session whose closing fails is not closed again at the end.
        del self._sessions[command.session]
        await agent.close()
        return Done()

    async def _real(self, command: RunReal) -> Value:
        return await self._connection.bodies.run(command.number)

    # --- sessions and handles ---

    def _build_world(self, session: int, model: ModelAddress | None) -> WorldProxy:
        if session in self._sessions:
            raise BrokenContract(f"session {session} already exists")
        return WorldProxy(self._connection, session, model)

    def _add_session(self, session: int, agent: Agent) -> Tools:
        self._sessions[session] = agent
        return Tools(tools=tuple(agent.tools()), earlier_turns=agent.earlier_turns())

    def _agent(self, session: int) -> Agent:
        if session not in self._sessions:
            raise BrokenContract(f"unknown session {session}")
        return self._sessions[session]

    def _with_handles(self, requests: Iterable[Request]) -> tuple[Request, ...]:
        """Return the requests with handles in place of the framework's own objects, which stay here."""
        assert self._greeting is not None
        listed = []
        for request in requests:
            if not isinstance(request, Request):
                raise BrokenContract(f"{short_repr(request)} is listed as a request, but is not a Request")
            if request.handle is not None:
                self._handles.append(request.handle)
                request = replace(request, handle=Handle(self._greeting.process, len(self._handles) - 1))
            listed.append(request)
        return tuple(listed)

    def _with_objects(self, decisions: Iterable[Decision]) -> tuple[Decision, ...]:
        """Return the decisions with the framework's own objects; a request of another process counts as rebuilt."""
        return tuple(
            replace(decision, request=replace(decision.request, handle=self._object(decision.request.handle)))
            if decision.request is not None
            else decision
            for decision in decisions
        )

    def _object(self, handle: Handle | None) -> Any:
        assert self._greeting is not None
        here = handle is not None and handle.process == self._greeting.process
        return self._handles[handle.number] if handle and here and handle.number < len(self._handles) else None


def _import_subject(blueprint: Blueprint) -> Blueprint:
    attachment = blueprint.attachment
    if attachment is None:
        return blueprint
    if attachment.options_factory is not None:
        attachment = replace(attachment, run_options=import_object(attachment.options_factory)())
    return replace(blueprint, attachment=replace(attachment, subject=import_object(attachment.subject)))


def serve(read: int, write: int, how: str) -> NoReturn:
    """Serve the harness over these descriptors until it is gone, then end the process."""
    code = 0
    try:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        loop.run_until_complete(_serve_until_closed(read, write, how))
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # Nothing else: threads and exit handlers of a framework must not keep a process whose harness is gone.
    os._exit(code)


async def _serve_until_closed(read: int, write: int, how: str) -> None:
    server = AgentServer(read, write, how)
    await server.over
    await server.close_all()
