"""Agents that live in another process: the contract, by calls."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.machinery import PathFinder
from typing import Any, TypeVar

from pytest_approvals.agent_side.contract import Agent, World
from pytest_approvals.agent_side.failures import Unsupported
from pytest_approvals.agent_side.messages import (
    AnotherSession,
    Build,
    CopyFrom,
    Done,
    Load,
    OfSession,
    Pending,
    Stage,
    State,
    TakeTurn,
    Tools,
    Trim,
    TurnEnded,
)
from pytest_approvals.agent_side.neutral import (
    Attachment,
    Blueprint,
    Decision,
    Outcome,
    Request,
    ToolSpec,
)
from pytest_approvals.agent_side.wire import Handle
from pytest_approvals.errors import HostError, UsageError

from .process import AgentProcess

T = TypeVar("T")


class Hosted(Agent):
    """
    One session of an agent in another process.

    Attributes:
        host: The process; it ends with the last of its sessions.
        process: Its number.
    """

    def __init__(self, host: AgentProcess, session: int, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.host = host
        self.process = host.number
        self._session = session
        self._tools: tuple[ToolSpec, ...] = ()

    @classmethod
    async def build(cls, host: AgentProcess, world: World, blueprint: Blueprint) -> Hosted:
        """
        Builds an agent in a process.

        Errors:
            UsageError: The blueprint holds something that cannot cross.
            HostError: The process does not answer as it should.
            Anything else: What the adapter raises.
        """
        agent = cls(host, host.begin_session(world), world, blueprint)
        crossing = blueprint
        if blueprint.attachment is not None:
            crossing = replace(blueprint, attachment=importable(blueprint.attachment))
        return await agent._begun("build", Build(session=agent._session, blueprint=crossing))

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        turn = TakeTurn(session=self._session, text=text, decisions=tuple(decisions), stream=stream)
        ended = await self._call("turn", turn, TurnEnded)
        outcomes = [one for one in (ended.paused, ended.finished) if one is not None]
        if len(outcomes) != 1:
            raise HostError(self.host.agent, "its process answered `turn` with neither or both of the outcomes")
        return outcomes[0]

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        return (await self._call("pending", OfSession(session=self._session), Pending)).requests

    async def stage(self, decisions: Sequence[Decision]) -> None:
        """See `Agent.stage`."""
        await self._call("stage", Stage(session=self._session, decisions=tuple(decisions)), Done)

    async def cancel(self) -> None:
        """See `Agent.cancel`."""
        await self._call("cancel", OfSession(session=self._session), Done)

    async def trim(self, keep: int) -> None:
        """See `Agent.trim`."""
        await self._call("trim", Trim(session=self._session, keep=keep), Done)

    async def dump(self) -> str:
        """See `Agent.dump`."""
        return (await self._call("dump", OfSession(session=self._session), State)).text

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        await self._call("load", Load(session=self._session, parts=tuple(parts)), Done)

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`; the two must live in one process."""
        if not isinstance(other, Hosted) or other.host is not self.host:
            raise Unsupported("serialize.copy", "the two agents live in different processes")
        await self._call("copy_from", CopyFrom(session=self._session, other=other._session), Done)

    async def another_session(self, world: World) -> Hosted:
        """See `Agent.another_session`."""
        other = Hosted(self.host, self.host.begin_session(world), world, self.blueprint)
        command = AnotherSession(session=self._session, new=other._session, model=world.address())
        return await other._begun("another_session", command)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._tools

    async def close(self) -> None:
        """See `Agent.close`; the process ends with the last of its sessions."""
        if self._session not in self.host.sessions:
            return
        try:
            if self.host.usable:
                await self._call("close", OfSession(session=self._session), Done)
        finally:
            self.host.sessions.discard(self._session)
            if not self.host.sessions:
                await self.host.end()

    async def _begun(self, method: str, command: Any) -> Hosted:
        try:
            self._tools = (await self._call(method, command, Tools)).tools
        except BaseException:
            self.host.sessions.discard(self._session)
            raise
        return self

    async def _call(self, method: str, params: Any, kind: type[T]) -> T:
        return await self.host.call(method, params, kind)


def importable(attachment: Attachment) -> Attachment:
    """
    Gives the attachment with its subject as `module:name`, or as `FILE.py:name` where pytest has imported the module
    from its file; another process can import that.

    Errors:
        UsageError: The subject has no such name.
    """
    subject = attachment.subject
    if isinstance(subject, str):
        return attachment
    module, name = getattr(subject, "__module__", None), getattr(subject, "__qualname__", None)
    found: Any = sys.modules.get(module) if module else None
    for step in (name or "?").split("."):
        found = getattr(found, step, None)
    if module is None or module == "__main__" or found is not subject:
        raise UsageError(
            f"a fresh process cannot import {subject!r}; give a function of a module that takes the model and returns "
            "the agent, or its name as 'module:function'"
        )
    return replace(attachment, subject=f"{_place(module)}:{name}")


def _place(module: str) -> str:
    """Gives a module as another process finds it: by its name, or by its file where no import path leads to it."""
    file = getattr(sys.modules[module], "__file__", None)
    steps, places, found = module.split("."), None, None
    for depth in range(len(steps)):
        found = PathFinder.find_spec(".".join(steps[: depth + 1]), places)
        if found is None:
            break
        places = found.submodule_search_locations
    return module if file is None or (found is not None and found.origin == file) else file


def without_foreign_objects(agent: Agent, decisions: Sequence[Decision]) -> Sequence[Decision]:
    """Gives decisions as *agent* can take them: what stands for an object of another process is nothing to one here."""
    if isinstance(agent, Hosted):
        return decisions
    return [
        replace(decision, request=replace(decision.request, handle=None))
        if decision.request is not None and isinstance(decision.request.handle, Handle)
        else decision
        for decision in decisions
    ]
