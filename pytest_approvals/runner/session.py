"""Session: turns of one agent object after the other, each built from a saved state.

After every turn the state is saved; the next agent is built and loads the save only when the story continues, so that
nothing is restored after the last turn.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.exceptions import Unsupported
from pytest_approvals.agent_side.contract.types import Blueprint, Decision, Finished, Outcome, Paused, Request
from pytest_approvals.errors import AdapterError
from pytest_approvals.journal.events import (
    AgentKilled,
    AgentStart,
    AgentStopped,
    AgentWoken,
    CallerHungUp,
    CloseTimeout,
    DecisionsStaged,
    DiskFull,
    HistoryTrimmed,
    PendingCancelled,
    StepSkipped,
    StoreRolledBack,
    TurnEnd,
    TurnStart,
)
from pytest_approvals.processes.agent_source import AgentSource, drop_remote_handles, is_remote
from pytest_approvals.runner.approval_requests import TrackedRequest
from pytest_approvals.runner.cancellation import Crash, Disconnect, FullDisk, Stop
from pytest_approvals.runner.journal_values import describe_error, describe_tool_parameters, request_to_dict
from pytest_approvals.runner.run_context import RunContext
from pytest_approvals.runner.saved_states import SavedState, SavedStates
from pytest_approvals.runner.script import ScriptState
from pytest_approvals.runner.store_copies import StoreCopy
from pytest_approvals.runner.timeouts import Deadline, SharedDeadline, run_stoppable
from pytest_approvals.runner.world import RecordingWorld, create_world_dispatcher
from pytest_approvals.scenario.model import RewriteStep, TurnStep, is_cut_write
from pytest_approvals.scenario.vocabulary import AT_STREAM

_CANNOT_CUT_WRITES = "only Linux can cut off the writes of another process"


class Session:
    """One session of a run.

    Args:
        directory: Folder of durable stores; empty if the variant has none.
        name: Empty for the only session of most scenarios.

    Attributes:
        states: The states that were saved of it.
        is_lost: Its state could not be restored; its further steps cannot be played.
        last_outcome: How its last turn ended: `paused`, `finished`, `failed`; None before the first.
        has_unsaved_turn: It has taken a turn since it was saved.
        is_dead: The process of its agent was killed, or could not store what it did, and no other agent has been built
            since.
    """

    def __init__(self, context: RunContext, source: AgentSource, directory: str, name: str = "") -> None:
        self.context = context
        self.name = name
        self.states = SavedStates(context, name, source.name)
        self.world = RecordingWorld(context, name)
        self.is_lost = False
        self.last_outcome: str | None = None
        # The session whose state it shares, if it is a second object of that session.
        self._twin: Session | None = None
        # Nothing has happened in it since its agent loaded a save.
        self._is_untouched = False
        self.has_unsaved_turn = False
        self.is_dead = False
        # What was stored before the last turn, if the story asks for it.
        self._before_turn: StoreCopy | None = None
        self._is_rolled_back = False
        self._source = source
        self._directory = directory
        self._agents: list[Agent] = []
        self._record = context.journal.record
        self._agent: Agent

    # --- agents ---

    async def start(self, first: Session | None = None) -> None:
        """Build the agent, or begin another session of the agent that the session *first* has."""
        if first is not None:
            self._use_agent(await first._agent.another_session(self.world), "session")
            # One list for all of them: every world must see those that join later.
            self.world.sharing = first.world.sharing
            self.world.sharing.append(self.world)
        else:
            await self._build_agent()

    async def _build_agent(self) -> None:
        async with self.context.deadline.not_counted():
            if self.context.owns_processes:
                cold = self.context.variant.resume == "cold"
                agent = await self._source.build_fresh(self.world, self._build_blueprint(), cold=cold)
            else:
                agent = await self._source.build(self.world, self._build_blueprint())
        self._use_agent(agent, "built")

    async def ensure_agent(self) -> bool:
        """Restore the latest save if no agent is kept alive; return False if that failed."""
        if self.states.latest is None:
            if self.is_dead:
                # Nothing was stored, so the conversation begins anew.
                self.world = RecordingWorld(self.context, self.name)
                await self._build_agent()
        elif (self.is_dead or self.states.is_agent_outdated) and not self.is_lost:
            await self._restore(self.states.latest)
        return not self.is_lost

    async def close(self, closing: SharedDeadline) -> None:
        """Close all agents that the session had, and record those that do not close in time.

        Those in other processes are closed at the same time, so that not each of them is waited for in turn.
        """
        by_process: dict[object, list[Agent]] = {}
        for agent in self._agents:
            by_process.setdefault(agent.host if is_remote(agent) else None, []).append(agent)
        # In this task, because frameworks leave in the task in which they have entered.
        late = await _close_agents(by_process.pop(None, ()), closing)
        late += sum(await asyncio.gather(*(_close_agents(agents, closing) for agents in by_process.values())))
        for _ in range(late):
            what = f"its close() did not return within {closing.seconds:g} s"
            self._record(CloseTimeout(session=self.name, what=what))

    def _use_agent(self, agent: Agent, how: str, *, again: bool = False) -> None:
        self._agent = agent
        self._agents.append(agent)
        self.is_dead = False
        if is_remote(agent):
            agent.time_limit = self.context.limit.seconds
        specs = agent.tools()
        hidden = self.context.list_hidden_tools(specs)
        self.context.record_header(specs, agent.earlier_turns(), hidden=hidden)
        tools = [tool.name for tool in (*specs, *hidden)]
        process = self.context.counters.process_number(agent.process)
        parameters = describe_tool_parameters(self.context.parameters)
        self._record(
            AgentStart(
                session=self.name,
                tools=tools,
                how=how,
                process=process,
                parameters=parameters,
                renamed=dict(self.context.names) or None,
                approvals=self.context.list_changed_approvals(),
                again=True if again else None,
            )
        )

    def _build_blueprint(self) -> Blueprint:
        execute = create_world_dispatcher(self.world)
        return self.context.build_blueprint(self._directory, execute, model=self.world.address())

    async def _rebuild_agent(self, fresh: bool, *, again: bool) -> None:
        resume = self.context.variant.resume
        if (fresh or (self.context.owns_processes and not self._is_process_usable)) and resume == "same":
            resume = "fresh"
        async with self.context.deadline.not_counted():
            if resume == "same":
                how = "copied" if self.context.variant.serialize == "copy" else "restored"
                if self.context.owns_processes:
                    assert is_remote(self._agent)
                    agent: Agent = await self._agent.build_beside(self.world, self._build_blueprint())
                else:
                    agent = await self._source.build(self.world, self._build_blueprint())
            else:
                how = resume
                agent = await self._source.build_fresh(self.world, self._build_blueprint(), cold=resume == "cold")
        self._use_agent(agent, how, again=again)

    @property
    def _is_process_usable(self) -> bool:
        """Whether the agent is in a process of its own that still lives."""
        return is_remote(self._agent) and self._agent.host.is_usable

    async def _build_dormant_agent(self) -> Agent:
        dormant = await self._source.build(self.world, self._build_blueprint())
        self._agents.append(dormant)
        return dormant

    # --- turns ---

    async def turn(
        self,
        text: str | None,
        decisions: Sequence[Decision],
        positions: Sequence[int],
        *,
        script: TurnStep | None = None,
    ) -> None:
        """Take one turn and record it; a failed turn is a result, not an error.

        Args:
            text: The user's message; None for a turn that only answers requests.
            decisions: The answers to requests.
            positions: Numbers of the decisions' events in the journal.
            script: What happens to the turn besides, if the scenario says so.
        """
        number = self.context.counters.next_turn()
        stream = self.context.variant.stream
        if self.context.rolls_back:
            self._keep_store(number)
        self._is_untouched = False
        self.has_unsaved_turn = True
        self.world.state.staged.clear()
        self._record(TurnStart(session=self.name, turn=number, text=text, decisions=list(positions), stream=stream))
        # The agent may end this process during the turn; the journal must show that it began.
        self.context.journal.flush()
        try:
            with self.world.during_turn(number):
                turn = self._agent.turn(text, drop_remote_handles(self._agent, decisions), stream=stream)
                outcome = await self._run(turn, number, script or TurnStep())
            self._check_outcome(outcome)
        except Exception as error:
            self.context.record_turn_error(error)
            self._record(TurnEnd(session=self.name, turn=number, outcome="failed", error=describe_error(error)))
            if isinstance(error, (AdapterError, Unsupported)):
                raise
            self._note_outcome("failed")
        else:
            self.context.record_turn_error(None)
            self._record_outcome(number, outcome)
        self.context.journal.flush()

    def _run(self, turn: Coroutine[Any, Any, Outcome], number: int, script: TurnStep) -> Awaitable[Outcome]:
        """Return a run of the turn in which what the scenario says happens to it."""
        if script.hangs_up is not None:
            return self._run_until(turn, number, script.hangs_up)
        if script.crashes is not None:
            return self._run_until_killed(turn, number, script.crashes)
        if script.stops is not None:
            return self._run_with_stop(turn, number, script.stops)
        if script.disk_full is not None:
            return self._run_on_full_disk(turn, number, script.disk_full)
        if script.fails_once is not None:
            return self._run_on_full_disk(turn, number, script.fails_once, once=True)
        return turn if is_remote(self._agent) else run_stoppable(turn, self.context.deadline)

    async def _run_until(self, turn: Coroutine[Any, Any, Outcome], number: int, place: str) -> Outcome:
        """Run a turn that is cancelled at a place, if it gets there."""
        event = CallerHungUp(session=self.name, turn=number, place=place)
        self.world.disconnect = disconnect = Disconnect(place, lambda: self._record(event))
        try:
            return await disconnect.run(turn)
        finally:
            self.world.disconnect = None

    async def _run_until_killed(self, turn: Coroutine[Any, Any, Outcome], number: int, place: str) -> Outcome:
        """Run a turn whose process is killed at a place, if it gets there."""
        agent = self._agent
        assert is_remote(agent)

        def note_death() -> None:
            self._record(AgentKilled(session=self.name, turn=number, place=place))
            self._note_loss()

        if is_cut_write(place) and not agent.host.can_cut_writes:
            self._record(StepSkipped(session=self.name, step="crash", why=_CANNOT_CUT_WRITES))
            return await turn
        agent.stops_when_shown, agent.dies_in_write = place == AT_STREAM, is_cut_write(place)
        self.world.crash = crash = Crash(place, agent.host, note_death)
        try:
            return await crash.run(turn)
        finally:
            if not crash.has_happened:
                why = f"the turn did not come to {place!r}"
                self._record(StepSkipped(session=self.name, step="crash", why=why))

    async def _run_on_full_disk(
        self, turn: Coroutine[Any, Any, Outcome], number: int, place: str, *, once: bool = False
    ) -> Outcome:
        """Run a turn in which the agent can store nothing from a place on; the next step restores what it stored.

        Args:
            turn: The turn.
            number: Its number.
            place: From where on nothing can be stored.
            once: It can store again when it comes to a call or a model request.
        """
        agent, key = self._agent, "fails_once" if once else "disk_full"
        assert is_remote(agent)
        if not agent.host.can_cut_writes:
            self._record(StepSkipped(session=self.name, step=key, why=_CANNOT_CUT_WRITES))
            return await turn
        event = DiskFull(session=self.name, turn=number, place=place, once=once or None)
        full = FullDisk(place, agent.host, lambda: self._record(event), once=once)
        self.world.full_disk = full
        has_ended = False
        try:
            outcome = await full.run(turn)
            has_ended = True
            return outcome
        finally:
            self.world.full_disk = None
            if not full.has_happened:
                why = f"the turn did not come to {place!r}"
                self._record(StepSkipped(session=self.name, step=key, why=why))
            elif not (once and has_ended):
                # A turn that has ended has stored all that it needs by then, if it could.
                self._note_loss()

    def _note_loss(self) -> None:
        """Note that the agent is of no use any more, and may not have stored what it has done."""
        self.world.state.note_loss()
        self.is_dead = self.states.was_killed = True

    async def _run_with_stop(self, turn: Coroutine[Any, Any, Outcome], number: int, place: str) -> Outcome:
        """Run a turn whose process is stopped at a place, if it gets there."""
        agent = self._agent
        assert is_remote(agent)
        stop = Stop(
            place,
            agent.host,
            self.context.signals,
            on_stop=lambda: self._record(AgentStopped(session=self.name, turn=number, place=place)),
            on_wake=lambda: self._record(AgentWoken(session=self.name, turn=number)),
        )
        self.world.stop = stop
        try:
            return await turn
        finally:
            self.world.stop = None
            if not stop.has_happened:
                why = f"the turn did not come to {place!r}"
                self._record(StepSkipped(session=self.name, step="stop", why=why))

    def wake(self) -> None:
        """Let the agent's process go on, if it is stopped."""
        if self.world.stop is not None:
            self.world.stop.wake()

    def _record_outcome(self, number: int, outcome: Outcome) -> None:
        if isinstance(outcome, Paused):
            self._note_outcome("paused")
            shown = self.context.requests.update(self.name, outcome.requests, self.world.state, by_turn=True)
            requests = [request.to_dict() for request in shown]
            self._record(
                TurnEnd(session=self.name, turn=number, outcome="paused", requests=requests, text=outcome.text)
            )
        else:
            self._note_outcome("finished")
            self._track(())
            self._record(TurnEnd(session=self.name, turn=number, outcome="finished", output=outcome.output))

    def _note_outcome(self, outcome: str) -> None:
        self.last_outcome = outcome
        # The session goes on from the turn on its state that ended last.
        if self._twin is not None:
            self._twin.last_outcome = outcome

    def _check_outcome(self, outcome: object) -> None:
        if isinstance(outcome, Finished) or (isinstance(outcome, Paused) and _are_requests(outcome.requests)):
            return
        raise AdapterError(
            self._source.name, f"turn() returned {outcome!r}; expected Finished, or Paused with Requests"
        )

    async def stage(self, decisions: Sequence[Decision], positions: Sequence[int], labels: Iterable[str]) -> None:
        """Put decisions about the calls called *labels* into the state without taking a turn."""
        self._is_untouched = False
        error = await self._attempt(self._agent.stage(drop_remote_handles(self._agent, decisions)))
        if error is None:
            self.world.state.staged.update(labels)
        self._record(DecisionsStaged(session=self.name, decisions=list(positions), error=error))

    async def cancel(self) -> None:
        """Cancel all pending requests."""
        self._is_untouched = False
        error = await self._attempt(self._agent.cancel())
        self._record(PendingCancelled(session=self.name, error=error))
        if error is None:
            self.world.state.staged.clear()
            self._track(())

    async def trim(self, keep: int) -> None:
        """Let the framework trim its history."""
        self._is_untouched = False
        self._record(HistoryTrimmed(session=self.name, keep=keep, error=await self._attempt(self._agent.trim(keep))))

    async def pending(self) -> list[TrackedRequest]:
        """Ask the agent what is pending.

        Raises:
            AdapterError: It lists something else than requests.
        """
        listed = await self._agent.pending()
        if not _are_requests(listed):
            raise AdapterError(self._source.name, f"pending() returned {listed!r}; expected Requests")
        return self._track(listed)

    async def list_answerable(self) -> list[TrackedRequest]:
        """Return the requests that can be answered now.

        A failed turn shows no requests: those are open that surfaced before and that the agent still lists; none if it
        cannot list them.
        """
        if self.last_outcome == "failed":
            with suppress(Exception):
                return self.context.requests.find_still_open(self.name, await self._agent.pending(), self.world.state)
            return []
        return self.context.requests.open_in(self.name)

    def _track(self, requests: Sequence[Request]) -> list[TrackedRequest]:
        return self.context.requests.update(self.name, requests, self.world.state)

    async def _attempt(self, step: Awaitable[None]) -> list[str] | None:
        try:
            await step
        except (AdapterError, Unsupported):
            raise
        except Exception as error:
            return describe_error(error)
        return None

    # --- saved states ---

    async def save(self, name: str = "") -> None:
        """Save the state, under *name* or under a number."""
        self._is_untouched = False
        self.has_unsaved_turn = False
        await self.states.save(self._agent, self.world.state, self._build_dormant_agent, name)

    async def restore(self, name: str) -> bool:
        """Restore the state saved as *name*, however old; return whether there is one."""
        save = self.states.get(name)
        if save is not None:
            await self._restore(save, by_caller=True)
        return save is not None

    async def restart(self, *, fresh: bool) -> None:
        """Build an agent with the tools that it has now, and let it load the latest save."""
        if self.states.latest is not None:
            await self._restore(self.states.latest, fresh=fresh, by_caller=True)

    async def tamper(self, step: RewriteStep) -> bool:
        """Change the text of the latest save; return whether it contains what is to be changed.

        An agent that has done nothing since it was restored from that save is restored anew.
        """
        is_changed = await self.states.tamper(step, self._list_on_trial)
        if is_changed and self._is_untouched:
            self.states.is_agent_outdated, self._is_untouched = True, False
        return is_changed

    # --- what a store loses ---

    def _keep_store(self, turn: int) -> None:
        """Keep a copy of what is stored before a turn."""
        save = self.states.latest
        self._before_turn = None if save is None else StoreCopy.take(turn, save, self._directory)

    def roll_back(self, how: Literal["lost", "stale"]) -> bool:
        """Let the store be as it was before the last turn, for another process; return False if that cannot be.

        What the turn did outside of the store stays done.
        """
        kept, agent = self._before_turn, self._agent
        if kept is None:
            self._record(StepSkipped(session=self.name, step=how, why="nothing was stored before the last turn"))
            return False
        # Where a turn stores nothing, the application does so when it has ended, and that is what is lost.
        stores = self.states.is_durable and (how == "stale" or "stores_in_turns" in self._source.facts.capabilities)
        if stores and not kept.is_outdated(self._directory):
            why = "the last turn has stored nothing in files of its process"
            self._record(StepSkipped(session=self.name, step=how, why=why))
            return False
        assert is_remote(agent)
        agent.host.kill()
        kept.put_back(self._directory)
        self._record(StoreRolledBack(session=self.name, turn=kept.turn, how=how))
        self.states.roll_back(kept.save)
        self.is_dead = self._is_rolled_back = True
        self.is_lost = self.has_unsaved_turn = False
        # Its caller finds out by what the store holds.
        self._note_outcome("paused")
        return True

    async def fork(self) -> Session:
        """Return a second session object on the same state, for turns at the same time.

        If the state is saved between turns, it is restored a second time; otherwise both drive the same live agent.
        """
        other = Session(self.context, self._source, self._directory, self.name)
        other.states = self.states.fork()
        # Shared, because the caller closes only the original session.
        other._agents = self._agents
        # What is restored beside an agent is restored in its process.
        other._agent = self._agent
        if self.states.saves_after_turns and self.states.latest is not None:
            save, present = self.states.latest, None
            # The contract has no save during a turn; two agents at work on one durable state are the agents' affair.
            if not self.world.is_in_turn and await self.states.is_reference(save, self._agent):
                present, other._twin = self.world.state, self
            # What happens to one process must not happen to the other.
            await other._restore(save, fresh=self.context.owns_processes, present=present)
        else:
            other.world, other._twin = self.world, self
        return other

    async def _restore(
        self,
        save: SavedState,
        *,
        fresh: bool = False,
        by_caller: bool = False,
        present: ScriptState | None = None,
    ) -> None:
        """Build an agent and let it load a save; a failure leaves the session lost.

        Args:
            save: The save.
            fresh: Build it in another process.
            by_caller: It is a step of the caller.
            present: How far the script is now, if the save is known to be the present state.
        """
        # What a durable store holds when a process dies is for the store to say; of what was put back it is known.
        crashed = self.is_dead and not self._is_rolled_back
        if self._is_rolled_back:
            save, self._is_rolled_back = replace(save, script=save.script.after(self.world.state)), False
        elif present is None and (self.states.has_moved_on(save) or (crashed and self.states.is_durable)):
            present = self.world.state
        if present is not None:
            save = replace(save, script=present)
        # Two agents at work on one present state go on in one script.
        self.world = RecordingWorld(self.context, self.name, present or save.script.copy())
        # The harness restores once between two steps; only a caller may do so again.
        await self._rebuild_agent(fresh, again=by_caller and (self._is_untouched or self.is_lost))
        try:
            await self.states.load(save, self._agent, crashed=crashed)
            pending = await self.pending()
            again = await self.states.dump_again(self._agent)
        except (AdapterError, Unsupported):
            raise
        except Exception as error:
            self.is_lost = True
            self.states.record_restore_failure(save, error)
        else:
            self.states.record_restored(save, pending, again, has_moved_on=present is not None)
            self._is_untouched = True

    async def _list_on_trial(self, parts: Sequence[str]) -> list[dict[str, Any]] | None:
        """Return what an agent lists that has loaded *parts*, on trial; None if it refuses them."""
        agent = await self._source.build(RecordingWorld(self.context, self.name), self._build_blueprint())
        try:
            await agent.load(parts)
            return [request_to_dict(request) for request in await agent.pending()]
        except (AdapterError, Unsupported):
            raise
        except Exception:
            return None
        finally:
            await agent.close()


async def _close_agents(agents: Iterable[Agent], closing: SharedDeadline) -> int:
    """Close agents one after the other, and return how many did not close in time."""
    late = 0
    waiting = deque(agents)
    while waiting:
        async with closing.next_step() as step:
            await _close_agent(waiting.popleft(), step.deadline)
            # Most agents close at once. They share a step while it has as much time as one of their own would have.
            while waiting and closing.has_time and not step.deadline.is_stopping:
                await _close_agent(waiting.popleft(), step.deadline)
        late += step.is_over
    return late


async def _close_agent(agent: Agent, deadline: Deadline) -> None:
    with suppress(Exception):
        # The pool ends a process that does not let itself be cancelled.
        await (agent.close() if is_remote(agent) else run_stoppable(agent.close(), deadline))


def _are_requests(listed: Iterable[object]) -> bool:
    return all(isinstance(request, Request) for request in listed)
