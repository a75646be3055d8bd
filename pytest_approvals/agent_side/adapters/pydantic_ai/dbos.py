"""Runs that are workflows of DBOS, which resumes them when their process has died.

An agent has the capability `DBOSDurability`, and each run is a call of one workflow. The id of that is the session's
name and the number of the turn, so that a turn which was begun is not begun again. The result of a workflow, in the
database of DBOS, is what the next one starts from. The application keeps the name of the session.

Each process is an executor of its own. One that takes the place of a process that died has the same id: by that, DBOS
knows which workflows were cut off, and resumes them when it is launched. Here that is in the next turn, which waits for
them. A turn that another process has taken is refused.

The database is a file of SQLite, or one on a PostgreSQL server, which holds the workflows of others, too. DBOS resumes
those of its own application version only, so that each run has one of its own there.

Model requests and calls of servers are steps, which a resumed workflow does not repeat. So are the bodies of tools, as
the documentation recommends for those that do input or output; with the option `steps: false` they are not.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ...contract import Agent, Blueprint, Decision, Finished, Outcome, Paused, Unsupported, World
from ...kit.context import await_on, use_world
from ...kit.store_check import check_store
from .metadata import DBOS_MISSING, DBOS_RECOVERY, DBOS_STORES, DBOS_UNAVAILABLE, POSTGRES
from .session import PydanticAI

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Self

    from pydantic_ai import DeferredToolResults

_CALLER: ContextVar[DBOSSession] = ContextVar("session whose workflow is called")

POLLING = 0.005
"""Seconds between two looks at the database."""


class TurnFailed(Exception):
    """A turn that another process has taken failed; its exception is known by its text only."""


class TurnTaken(Exception):
    """The turn was taken, by another process or in another copy of the session."""


# --- the database -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """The result of a workflow.

    Attributes:
        kept: The state after the turn, as text.
        output: What the run finished with, if it did.
        text: What the model said beside the calls that wait.
        error: What failed; empty if nothing did.
    """

    kept: str
    output: Any = None
    text: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where workflows are stored.

    Attributes:
        address: The address of the database.
        application: The application version of the run; empty in a database that is the run's own.
    """

    address: str
    application: str = ""


class WorkflowDatabase:
    """DBOS in this process, which has it once: with one database at a time, for all sessions that use it.

    What is registered stays as long as there is a session: its agents have registered their steps. DBOS itself runs
    from a session's first turn until its state is saved, so that it resumes nothing for a session that has gone.
    """

    def __init__(self) -> None:
        self._place: Place | None = None
        self._workflows: Workflows | None = None
        self._scratch: TemporaryDirectory[str] | None = None
        self._registered: set[DBOSSession] = set()
        self._users: dict[str, DBOSSession] = {}

    def open_scratch(self) -> str:
        """Return the folder for sessions without a store, which stays as long as there is a session."""
        self._scratch = self._scratch or TemporaryDirectory()
        return self._scratch.name

    def register(self, session: DBOSSession) -> None:
        """Keep what the agents of a session have registered."""
        self._registered.add(session)

    def launch(self, place: Place, session: DBOSSession, executor: str) -> Workflows:
        """Launch DBOS for a session, unless it runs, and return the workflows.

        Args:
            place: Where the workflows are stored.
            session: The session, whose workflows can be resumed here from now on.
            executor: The id of this process. DBOS resumes what was cut off in a process that had it. Empty for a new
                one.
        """
        from dbos import DBOS

        if self._users and self._place != place:
            raise RuntimeError("DBOS is open at another database, and one process cannot have it twice")
        is_new = not self._users
        self._users[session.name], self._place = session, place
        if is_new:
            config: Any = {
                "name": "pytest-approvals",
                "system_database_url": place.address,
                "application_version": place.application or None,
                "executor_id": executor or uuid4().hex,
                "run_admin_server": False,
                "log_level": "CRITICAL",
                "notification_listener_polling_interval_sec": POLLING,
            }
            DBOS(config=config)
            self._workflows = self._workflows or _register_workflows(self._users)
            DBOS.launch()
        assert self._workflows is not None
        return self._workflows

    def stop(self) -> None:
        """Shut DBOS down for all sessions, as the end of the process does: only a launch resumes what was cut off."""
        if self._users:
            self._users.clear()
            _destroy()

    def shut_down(self, session: DBOSSession, *, for_good: bool = False) -> None:
        """Shut DBOS down when no session uses it, and forget what is registered when there is none.

        Args:
            session: The session that uses it no more.
            for_good: The session has ended.
        """
        if for_good:
            self._registered.discard(session)
        was_used = bool(self._users)
        if self._users.get(session.name) is session:
            del self._users[session.name]
        if was_used and not self._users:
            _destroy()
        if not self._registered:
            self._workflows = None
            _destroy(registry=True)
            if self._scratch is not None:
                self._scratch.cleanup()
                self._scratch = None


def _destroy(*, registry: bool = False) -> None:
    from dbos import DBOS

    DBOS.destroy(destroy_registry=registry)
    # DBOS had put its own in place of it, which is shut down now.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())


DATABASE = WorkflowDatabase()
"""DBOS in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflows:
    """The workflows of the application.

    Attributes:
        take_turn: Takes a turn of a session, given its name, a message, the state, answers, and whether to stream.
        keep: Keeps a state.
    """

    take_turn: Callable[..., Coroutine[Any, Any, TurnRecord]]
    keep: Callable[[str], Coroutine[Any, Any, TurnRecord]]


def _register_workflows(sessions: Mapping[str, DBOSSession]) -> Workflows:
    from dbos import DBOS

    # A workflow is a function: DBOS knows it by its name, also in the next process.
    @DBOS.workflow(name="take_turn")
    async def take_turn(
        name: str, text: str | None, kept: str, results: DeferredToolResults | None, stream: bool
    ) -> TurnRecord:
        # Nobody has called a workflow that is resumed.
        session = _CALLER.get(None) or sessions[name]
        return await session.take_turn(text, kept, results, stream=stream)

    @DBOS.workflow(name="keep")
    async def keep(kept: str) -> TurnRecord:
        return TurnRecord(kept=kept)

    return Workflows(take_turn=take_turn, keep=keep)


async def wait_for(workflow: str) -> TurnRecord:
    """Return the result of a workflow that was begun."""
    from dbos import DBOS

    handle: Any = await DBOS.retrieve_workflow_async(workflow)
    record: TurnRecord = await handle.get_result(polling_interval_sec=POLLING)
    return record


async def has_begun(workflow: str) -> bool:
    """Return whether somebody has begun a workflow."""
    from dbos import DBOS

    return await DBOS.get_workflow_status_async(workflow) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """What the database holds of a session.

    Attributes:
        turns: The number of the last turn that has ended.
        kept: The state after it; empty if none has.
        executor: The id of the process in which the next turn was begun; empty if none was.
    """

    turns: int = 0
    kept: str = ""
    executor: str = ""


_ENDED = ("SUCCESS", "ERROR")


async def read_session(address: str, name: str) -> StoredSession:
    """Read a session without launching DBOS, which would resume what was cut off."""
    from dbos import DBOSClient

    client = DBOSClient(system_database_url=address)
    try:
        workflows = await client.list_workflows_async(workflow_id_prefix=f"{name}-")
        by_turn: dict[int, Any] = {int(each.workflow_id.rpartition("-")[2]): each for each in workflows}
        ended = [turn for turn, each in by_turn.items() if each.status in _ENDED]
        succeeded = [turn for turn in ended if by_turn[turn].status == "SUCCESS"]
        last = max(ended, default=0)
        begun = by_turn.get(last + 1)
        return StoredSession(
            turns=last,
            kept=by_turn[max(succeeded)].output.kept if succeeded else "",
            executor=str(begun.executor_id) if begun is not None else "",
        )
    finally:
        client.destroy()


def _find_place(blueprint: Blueprint) -> Place:
    """Return where a serialize mode stores workflows; without a store, in a folder of this process."""
    if blueprint.serialize == "native.postgres":
        address = str(blueprint.options.get("postgres") or POSTGRES)
        return Place(address=address, application=os.path.basename(blueprint.directory))
    folder = blueprint.directory if blueprint.serialize == "native.sqlite" else DATABASE.open_scratch()
    return Place(address=f"sqlite:///{os.path.join(folder, 'workflows.sqlite')}")


# --- sessions ---------------------------------------------------------------------------------------------------------


class TurnWorld:
    """The world of a session whose workflow may run on an event loop of DBOS, with tools that may be steps.

    Args:
        world: The world itself.
        loop: The event loop that it belongs to.
        steps: The execution of a tool is a step.
    """

    def __init__(self, world: World, loop: asyncio.AbstractEventLoop, *, steps: bool) -> None:
        self._world = world
        self._loop = loop
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    async def model(self, *arguments: Any, **named: Any) -> Any:
        """See `World.model`."""
        return await await_on(self._loop, self._world.model(*arguments, **named))

    async def elicit(self, *arguments: Any, **named: Any) -> Any:
        """See `World.elicit`."""
        return await await_on(self._loop, self._world.elicit(*arguments, **named))

    async def run(self, tool: str, arguments: Mapping[str, Any], call_id: str | None, **named: Any) -> Any:
        """See `World.run`."""

        async def execute() -> Any:
            return await await_on(self._loop, self._world.run(tool, arguments, call_id, **named))

        if not self._steps:
            return await execute()
        from dbos import DBOS

        return await DBOS.run_step_async({"name": tool}, execute)


class DBOSSession(PydanticAI):
    """A Pydantic AI agent with `DBOSDurability`, whose runs are workflows of DBOS.

    Attributes:
        name: The name of the session.
    """

    missing = DBOS_MISSING
    recovery = DBOS_RECOVERY
    stores = DBOS_STORES
    unavailable = DBOS_UNAVAILABLE
    needs = ("durable_exec/dbos/_durability.py", "class DBOSDurability")
    runs_in_workflow = True

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        if blueprint.attachment is not None:
            raise Unsupported("attach", "`DBOSDurability` refuses a model that is put in place of the agent's own")
        super().__init__(world, blueprint)
        self.name = uuid4().hex
        self._turns = 0
        self._executor = ""
        self._is_cut_off = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._error: Exception | None = None
        self._place = _find_place(blueprint)
        self._is_checked = blueprint.serialize != "native.postgres"
        DATABASE.register(self)

    def _build_capabilities(self, agent: str) -> Sequence[Any]:
        from pydantic_ai.durable_exec.dbos import DBOSDurability

        return [DBOSDurability()]

    async def _launch(self) -> Workflows:
        self._loop = asyncio.get_running_loop()
        if not self._is_checked:
            await check_store(self.blueprint.serialize, self._place.address, self._try_database)
            self._is_checked = True
        return DATABASE.launch(self._place, self, self._executor)

    async def _try_database(self) -> None:
        """Let DBOS make its tables and write to one, as a launch does."""
        try:
            DATABASE.launch(self._place, self, "")
        finally:
            DATABASE.shut_down(self)

    @asynccontextmanager
    async def _begin_workflow(self) -> AsyncIterator[Workflows]:
        """Let the workflow that is called inside the block be the session's next one."""
        from dbos import SetWorkflowID

        workflows = await self._launch()
        number = self._turns + 1
        workflow = f"{self.name}-{number}"
        if await has_begun(workflow):
            raise TurnTaken(f"turn {number} of the session was already begun; load it again")
        token = _CALLER.set(self)
        try:
            with SetWorkflowID(workflow):
                yield workflows
        finally:
            # Not before: a turn that begins meanwhile is the same one.
            self._turns = number
            _CALLER.reset(token)

    # --- turns --------------------------------------------------------------------------------------------------------

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        if self._is_cut_off:
            self._is_cut_off = False
            self._turns += 1
            await self._launch()
            record = self._use_record(await wait_for(f"{self.name}-{self._turns}"))
            outcome = self._to_outcome(record)
            is_all = text is None and not decisions
            if stream:
                self._show(outcome, is_all=is_all)
            if is_all:
                return outcome
        return await super().turn(text, decisions, stream=stream)

    def _show(self, outcome: Outcome, *, is_all: bool) -> None:
        """Show what a resumed workflow has come to, whose stream nobody has read."""
        said = outcome.text if isinstance(outcome, Paused) else outcome.output
        if isinstance(said, str):
            self.world.shown("text", text=said)
        for request in outcome.requests if isinstance(outcome, Paused) else ():
            self.world.shown("request", id=request.id)
        if is_all:
            self.world.shown("end")

    async def _run(self, text: str | None, results: DeferredToolResults | None, *, stream: bool) -> Any:
        from .state import dump_state

        kept = dump_state(self._state, append=False)
        self._error = None
        async with self._begin_workflow() as workflows:
            record = await workflows.take_turn(self.name, text, kept, results, stream)
        return self._use_record(record)

    def _use_record(self, record: TurnRecord) -> TurnRecord:
        """Go on after a turn, and return its record, or raise its exception."""
        from .state import load_state

        self._state = load_state([record.kept])
        if record.error:
            raise self._error or TurnFailed(record.error)
        return record

    def _to_outcome(self, result: Any) -> Outcome:
        waiting = self._state.requests
        if waiting is None:
            return Finished(output=result.output)
        return Paused(requests=self._read_requests(waiting), text=result.text)

    async def take_turn(
        self, text: str | None, kept: str, results: DeferredToolResults | None, *, stream: bool
    ) -> TurnRecord:
        """Run the agent in a workflow, on the event loop of DBOS if it was resumed."""
        from pydantic_ai import capture_run_messages

        from .requests import read_output, read_text
        from .state import dump_state, load_state, update_state, update_state_after_failure

        assert self._loop is not None
        before = load_state([kept])
        world: Any = TurnWorld(self.world, self._loop, steps=bool(self.blueprint.options.get("steps", True)))
        with use_world(world), capture_run_messages() as captured:
            try:
                # Nobody reads the stream of a workflow that is resumed.
                shown = self._report_event if stream and _CALLER.get(None) is not None else None
                result = await self._subject.run(text, before.messages, results, shown=shown)
            except Exception as error:
                self._error = error
                state = update_state_after_failure(before, captured, asked=before.requests, append=False)
                return TurnRecord(kept=dump_state(state, append=False), error=f"{type(error).__name__}: {error}")
        state = update_state(before, result, append=False)
        kept = dump_state(state, append=False)
        if state.requests is not None:
            return TurnRecord(kept=kept, text=read_text(result))
        return TurnRecord(kept=kept, output=read_output(result))

    async def cancel(self) -> None:
        """Close the open calls as without DBOS; a workflow keeps what is left."""
        from .state import dump_state

        await super().cancel()
        async with self._begin_workflow() as workflows:
            await workflows.keep(dump_state(self._state, append=False))

    # --- state --------------------------------------------------------------------------------------------------------

    async def stage(self, decisions: Sequence[Decision]) -> None:
        """Refuse to put decisions aside: a workflow has them."""
        raise Unsupported("stage")

    async def trim(self, keep: int) -> None:
        """Refuse to trim: the messages are the result of a workflow."""
        raise Unsupported("trim")

    async def copy_from(self, other: Agent) -> None:
        """Refuse to copy: two sessions of one name are one session."""
        raise Unsupported("serialize.copy")

    async def dump(self) -> str:
        """Return the name of the session."""
        # Launching makes the tables, without which nothing could be read.
        await self._launch()
        DATABASE.shut_down(self)
        return self.name

    async def load(self, parts: Sequence[str]) -> None:
        """Go on after the last workflow of a session that has ended; while another one runs, a turn is refused."""
        await self._read(parts)

    async def recover(self, parts: Sequence[str]) -> None:
        """Take the place of the process that died, and wait in the next turn for what it was about."""
        DATABASE.stop()
        self._executor = await self._read(parts)
        self._is_cut_off = bool(self._executor)
        if self._is_cut_off:
            # They were answered, with what the workflow began with.
            self._state = replace(self._state, requests=None)

    async def _read(self, parts: Sequence[str]) -> str:
        """Read the session, and return the id of the process in which its next turn was begun; empty if none was."""
        from .state import State, load_state

        self.name = parts[-1]
        stored = await read_session(self._place.address, self.name)
        self._turns = stored.turns
        self._state = load_state([stored.kept]) if stored.kept else State()
        return stored.executor

    async def another_session(self, world: World) -> Self:
        """See `Agent.another_session`."""
        other = await super().another_session(world)
        other.name, other._turns, other._is_cut_off = uuid4().hex, 0, False
        DATABASE.register(other)
        return other

    async def close(self) -> None:
        """See `Agent.close`."""
        DATABASE.shut_down(self, for_good=True)
