"""
A session: one agent object after the other, and what is kept of it between two turns.

After every turn the state is saved as the variant says; the agent that comes next is built anew and takes the save up,
but only when the story goes on, so that nothing is restored after the last turn.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.exceptions import Unsupported
from pytest_approvals.agent_side.contract.types import Blueprint, Decision, Finished, Outcome, Paused, Request
from pytest_approvals.errors import AdapterError
from pytest_approvals.journal.events import (
    AgentStart,
    CallerHungUp,
    DecisionsStaged,
    HistoryTrimmed,
    PendingCancelled,
    StateRestored,
    StateRewritten,
    StateSaved,
    TurnEnd,
    TurnStart,
)
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.processes.remote_agents import drop_remote_handles
from pytest_approvals.runner.approval_requests import TrackedRequest, request_to_dict
from pytest_approvals.runner.cancellation import Disconnect
from pytest_approvals.runner.mcp.endpoints import create_world_dispatcher
from pytest_approvals.runner.run_context import RunContext, describe_error, describe_tool_parameters
from pytest_approvals.runner.saved_states import find_positions, replace_text, select_positions
from pytest_approvals.runner.script import ScriptState
from pytest_approvals.runner.world import RecordingWorld
from pytest_approvals.scenario.model import RewriteStep


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """
    What is kept of a session.

    Attributes:
        parts: What the agent dumped; several with history `append`.
        dormant: For mode `copy`: an agent that holds the copy.
        progress: How far the story had got.
    """

    name: str = ""
    parts: tuple[str, ...] = ()
    dormant: Agent | None = None
    progress: ScriptState = field(default_factory=ScriptState)

    @property
    def digest(self) -> str | None:
        """A short digest of what was dumped; None where nothing was."""
        return _compute_digest(self.parts[-1]) if self.parts else None


class Session:
    """
    One session of a play.

    Attributes:
        name: Empty for the only session of most scenarios.
        lost: The session's state cannot be taken up any more; its further steps cannot be played.
        ended: How its last turn ended: `paused`, `finished`, `failed`; None before the first.
    """

    def __init__(self, play: RunContext, source: AgentSource, directory: str, name: str = "") -> None:
        self.play = play
        self.name = name
        self.lost = False
        self.ended: str | None = None
        self._source = source
        self._directory = directory
        self._agents: list[Agent] = []
        self._saves: dict[str, SavedState] = {}
        self._latest: SavedState | None = None
        self._stale = False
        self._record = play.journal.record
        self.world = RecordingWorld(play, name)
        self._agent: Agent

    # --- agents ---

    async def start(self, beside: Session | None = None) -> Agent:
        """Builds the first agent, or takes another session of the agent that the session *beside* has."""
        if beside is not None:
            self._take(await beside._agent.another_session(self.world), "session")
            self.world.sharing = beside.world.sharing
            self.world.sharing.append(self.world)
        else:
            async with self.play.deadline.not_counted():
                agent = await self._source.build(self.world, self._blueprint())
            self._take(agent, "built")
        return self._agent

    async def ready(self) -> bool:
        """
        Sees to it that the agent is there to go on: takes up the latest save where the variant keeps nothing alive.

        Says whether it is; a session whose save could not be taken up is lost.
        """
        if self._stale and self._latest is not None and not self.lost:
            await self.restore(self._latest)
        return not self.lost

    async def close(self) -> None:
        """Closes all agents that the session had."""
        for agent in self._agents:
            with suppress(Exception):
                await agent.close()

    def _take(self, agent: Agent, how: str) -> None:
        self._agent = agent
        self._agents.append(agent)
        specs = agent.tools()
        self.play.begin(specs)
        tools = [tool.name for tool in specs]
        process = self.play.counters.process(getattr(agent, "process", None))
        others = describe_tool_parameters(self.play.parameters)
        self._record(AgentStart(session=self.name, tools=tools, how=how, process=process, parameters=others))

    def _blueprint(self) -> Blueprint:
        return replace(
            self.play.blueprint(self._directory, create_world_dispatcher(self.world)), model=self.world.address()
        )

    async def _built_anew(self, fresh: bool) -> None:
        resume = self.play.variant.resume
        if fresh and resume == "same":
            resume = "fresh"
        async with self.play.deadline.not_counted():
            if resume == "same":
                how = "copied" if self.play.variant.serialize == "copy" else "restored"
                agent = await self._source.build(self.world, self._blueprint())
            else:
                how = resume
                agent = await self._source.build_fresh(self.world, self._blueprint(), cold=resume == "cold")
        self._take(agent, how)

    # --- turns ---

    async def turn(
        self,
        text: str | None,
        decisions: Sequence[Decision],
        positions: Sequence[int],
        *,
        hangs_up: str | None = None,
    ) -> None:
        """
        Takes one turn and records it; a failed turn is a result, not an error.

        Arguments:
            positions: Where in the journal the decisions stand.
            hangs_up: Where the caller hangs up, so that the turn is cancelled.
        """
        number = self.play.counters.next_turn()
        stream = self.play.variant.stream
        self._record(TurnStart(session=self.name, turn=number, text=text, decisions=list(positions), stream=stream))
        self.play.journal.flush()
        try:
            with self.world.turn(number):
                taken = drop_remote_handles(self._agent, decisions)
                turn = self._agent.turn(text, taken, stream=stream)
                outcome = self._checked(await (turn if hangs_up is None else self._cancelled(turn, number, hangs_up)))
        except Exception as error:
            if isinstance(error, (AdapterError, Unsupported)):
                self._record(TurnEnd(session=self.name, turn=number, outcome="failed", error=describe_error(error)))
                raise
            self.ended = "failed"
            self._record(TurnEnd(session=self.name, turn=number, outcome="failed", error=describe_error(error)))
        else:
            self._ended(number, outcome)
        self.play.journal.flush()

    async def _cancelled(self, turn: Coroutine[Any, Any, Outcome], number: int, place: str) -> Outcome:
        """Takes a turn that is cancelled at a place, if it comes there."""
        hung_up = CallerHungUp(session=self.name, turn=number, place=place)
        self.world.hang_up = hang_up = Disconnect(place, lambda: self._record(hung_up))
        try:
            return await hang_up.taken(turn)
        finally:
            self.world.hang_up = None

    def _ended(self, number: int, outcome: Outcome) -> None:
        if isinstance(outcome, Paused):
            self.ended = "paused"
            surfaced = self._surfaced(outcome.requests)
            written = [one.written() for one in surfaced]
            self._record(TurnEnd(session=self.name, turn=number, outcome="paused", requests=written, text=outcome.text))
        else:
            self.ended = "finished"
            self._surfaced(())
            self._record(TurnEnd(session=self.name, turn=number, outcome="finished", output=outcome.output))

    def _checked(self, outcome: object) -> Outcome:
        if isinstance(outcome, Finished):
            return outcome
        if isinstance(outcome, Paused) and _is_request_list(outcome.requests):
            return outcome
        what = f"turn() gave {outcome!r}; it must give Finished, or Paused with Requests"
        raise AdapterError(self._source.name, what)

    async def stage(self, decisions: Sequence[Decision], positions: Sequence[int]) -> None:
        """Puts decisions into the state and saves it."""
        error = await self._tried(self._agent.stage(drop_remote_handles(self._agent, decisions)))
        self._record(DecisionsStaged(session=self.name, decisions=list(positions), error=error))

    async def cancel(self) -> None:
        """Gives up what is pending."""
        error = await self._tried(self._agent.cancel())
        self._record(PendingCancelled(session=self.name, error=error))
        if error is None:
            self._surfaced(())

    async def trim(self, keep: int) -> None:
        """Lets the framework trim its history."""
        self._record(HistoryTrimmed(session=self.name, keep=keep, error=await self._tried(self._agent.trim(keep))))

    async def pending(self) -> list[TrackedRequest]:
        """Asks the agent what is pending; an adapter that gives nonsense breaks its contract."""
        listed = await self._agent.pending()
        if not _is_request_list(listed):
            raise AdapterError(self._source.name, f"pending() gave {listed!r}; it must list Requests")
        return self._surfaced(listed)

    async def still_open(self) -> list[TrackedRequest]:
        """
        Gives the requests that can be answered now.

        After a failed turn nobody was shown anything: of what was shown before, that is open which the agent lists
        still; where it cannot say, nothing is.
        """
        if self.ended == "failed":
            with suppress(Exception):
                return self.play.requests.still_in(self.name, await self._agent.pending(), self.world.progress)
            return []
        return self.play.requests.open(self.name)

    def _surfaced(self, requests: Sequence[Request]) -> list[TrackedRequest]:
        return self.play.requests.seen(self.name, requests, self.world.progress)

    async def _tried(self, step: Awaitable[None]) -> list[str] | None:
        try:
            await step
        except (AdapterError, Unsupported):
            raise
        except Exception as error:
            return describe_error(error)
        return None

    # --- saves ---

    @property
    def saves_itself(self) -> bool:
        """Whether the variant saves the state between turns."""
        return self.play.variant.serialize != "none"

    async def save(self, name: str = "") -> None:
        """
        Saves the state, under *name* or under a number.

        A save that fails is recorded, and the agent stays alive.
        """
        name = name or f"save-{len(self._saves) + 1}"
        mode = self.play.variant.serialize
        try:
            save = self._latest if self._stale and self._latest else await self._saved()
        except (AdapterError, Unsupported):
            raise
        except Exception as error:
            self._stale = False
            self._record(StateSaved(session=self.name, name=name, mode=mode, error=describe_error(error)))
            return
        self._saves[name] = self._latest = replace(save, name=name)
        self._stale = True
        size = len(save.parts[-1]) if save.parts else None
        self._record(StateSaved(session=self.name, name=name, mode=mode, size=size, digest=save.digest))

    async def _saved(self) -> SavedState:
        progress = self.world.progress.copy()
        if self.play.variant.serialize == "copy":
            dormant = await self._source.build(self.world, self._blueprint())
            self._agents.append(dormant)
            await dormant.copy_from(self._agent)
            return SavedState(dormant=dormant, progress=progress)
        part = await self._agent.dump()
        if not isinstance(part, str):
            raise AdapterError(self._source.name, f"dump() gave {type(part).__name__}; it must give text")
        before = self._latest.parts if self.play.variant.history == "append" and self._latest else ()
        return SavedState(parts=(*before, part), progress=progress)

    async def saved_text(self) -> str | None:
        """Saves the state and gives what the agent dumped; None where it could not."""
        await self.save()
        return self._latest.parts[-1] if self._latest is not None and self._latest.parts else None

    async def rewrite(self, step: RewriteStep) -> bool:
        """
        Changes the text of the latest save; says whether there is one that says what is to be changed.

        It may say it in no other place than where it is shown: then nothing hidden is changed.
        """
        save = self._latest
        if save is None or not find_positions(save.parts, step.old):
            return False
        found = await select_positions(save.parts, step, self._listed_by)
        progress = save.progress.copy()
        progress.rewritten += ((step.old, step.new),)
        self._latest = replace(save, parts=replace_text(save.parts, step, found), progress=progress)
        event = StateRewritten(name=save.name, old=step.old, new=step.new, where=step.where, places=len(found))
        event.session = self.name
        self._record(event)
        return True

    async def _listed_by(self, parts: Sequence[str]) -> list[dict[str, Any]] | None:
        """Gives what an agent lists that has taken up *parts*, on trial; None where it refuses them."""
        agent = await self._source.build(RecordingWorld(self.play, self.name), self._blueprint())
        try:
            await agent.load(parts)
            return [request_to_dict(one) for one in await agent.pending()]
        except (AdapterError, Unsupported):
            raise
        except Exception:
            return None
        finally:
            await agent.close()

    async def rewind(self, name: str) -> bool:
        """Takes up the save called *name*, however old; says whether there is one."""
        if name not in self._saves:
            return False
        await self.restore(self._saves[name])
        return True

    async def restart(self, *, fresh: bool) -> None:
        """Builds an agent anew out of the tools that it has now, and lets it take up the latest save."""
        if self._latest is not None:
            await self.restore(self._latest, fresh=fresh)

    async def restore(self, save: SavedState, *, fresh: bool = False) -> None:
        """Builds an agent anew and lets it take up a save; one that fails leaves the session lost."""
        self.world = RecordingWorld(self.play, self.name, save.progress.copy())
        await self._built_anew(fresh)
        try:
            await self._taken_up(save)
            pending = await self.pending()
            again = await self._dumped_again()
        except (AdapterError, Unsupported):
            raise
        except Exception as error:
            self.lost = True
            self._record(
                StateRestored(
                    session=self.name, name=save.name, mode=self.play.variant.serialize, error=describe_error(error)
                )
            )
            return
        self._latest, self._stale = save, False
        self._record(
            StateRestored(
                session=self.name,
                name=save.name,
                mode=self.play.variant.serialize,
                pending=[one.written() for one in pending],
                again=again,
            )
        )

    async def _taken_up(self, save: SavedState) -> None:
        if save.dormant is not None:
            await self._agent.copy_from(save.dormant)
        else:
            await self._agent.load(save.parts)

    async def _dumped_again(self) -> str | None:
        """
        Dumps once more what was just loaded, to see whether the round trip is stable; what another release saved need
        not be.
        """
        variant = self.play.variant
        if variant.serialize != "json" or variant.history != "whole" or variant.saved_by:
            return None
        return _compute_digest(await self._agent.dump())

    async def twin(self) -> Session:
        """
        Gives a second session object on the same state, for turns at the same time.

        Where the state is saved between turns, it is taken up a second time; else both drive the same live agent.
        """
        other = Session(self.play, self._source, self._directory, self.name)
        other._saves, other._latest = self._saves, self._latest
        other._agents = self._agents
        if self.saves_itself and self._latest is not None:
            await other.restore(self._latest)
        else:
            other._agent, other.world = self._agent, self.world
        return other


def _is_request_list(listed: Iterable[object]) -> bool:
    return all(isinstance(one, Request) for one in listed)


def _compute_digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=8).hexdigest()
