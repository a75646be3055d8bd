"""Saved states of a session: dumped, loaded again, and changed by the scenario.

A state may say the same thing in several places. Which of them a framework shows to people is found out by trial: one
place after the other is changed, and what the agent lists then is compared with what it listed before.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.exceptions import Unsupported
from pytest_approvals.errors import AdapterError
from pytest_approvals.journal.events import StateRestored, StateRewritten, StateSaved
from pytest_approvals.runner.approval_requests import TrackedRequest
from pytest_approvals.runner.journal_values import describe_error
from pytest_approvals.runner.run_context import RunContext
from pytest_approvals.runner.script import ScriptState
from pytest_approvals.scenario.model import RewriteStep

StateParts = Sequence[str]
"""What an agent dumped: one text, or with history `append` one after the other."""

ListPending = Callable[[StateParts], Awaitable[Any]]
"""Returns what an agent lists that has loaded these parts; None if it refuses them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedState:
    """What is kept of a session.

    Attributes:
        parts: What the agent dumped; several with history `append`.
        dormant: For mode `copy`: an agent that holds the copy.
        script: How far the script had got.
    """

    name: str = ""
    parts: tuple[str, ...] = ()
    dormant: Agent | None = None
    script: ScriptState = field(default_factory=ScriptState)

    @property
    def digest(self) -> str | None:
        """A short digest of what was dumped; None if nothing was."""
        return compute_digest(self.parts[-1]) if self.parts else None


class SavedStates:
    """The saved states of one session.

    Args:
        session: The name of the session in the journal.
        agent: The name of the agent, for error messages.

    Attributes:
        latest: The state that the session resumes from.
        is_agent_outdated: The agent that is alive must not be used further: the session resumes from *latest*.
        was_killed: The process of the agent was killed since the last save.
    """

    def __init__(self, context: RunContext, session: str, agent: str) -> None:
        self.latest: SavedState | None = None
        self.is_agent_outdated = False
        self.was_killed = False
        self._context = context
        self._session = session
        self._agent = agent
        self._by_name: dict[str, SavedState] = {}
        self._last_saved: SavedState | None = None
        self._record = context.journal.record

    @property
    def saves_after_turns(self) -> bool:
        """Whether the variant saves the state between turns."""
        return self._context.variant.serialize != "none"

    def get(self, name: str) -> SavedState | None:
        """Return the state that was saved as *name*."""
        return self._by_name.get(name)

    def fork(self) -> SavedStates:
        """Return the states of a second session object on the same session."""
        other = SavedStates(self._context, self._session, self._agent)
        other._by_name, other.latest = self._by_name, self.latest
        return other

    async def save(
        self, agent: Agent, script: ScriptState, build_agent: Callable[[], Awaitable[Agent]], name: str = ""
    ) -> None:
        """Save the state of *agent*, under *name* or under a number.

        A save that fails is recorded, and the agent stays alive.

        Args:
            agent: The agent that is alive.
            script: How far the script has got.
            build_agent: Builds the agent that holds a copy.
            name: What the scenario calls it.
        """
        name = name or f"save-{len(self._by_name) + 1}"
        mode = self._context.variant.serialize
        try:
            # Nothing has run since the latest save, so the same state gets one more name.
            if self.is_agent_outdated and self.latest:
                save = self.latest
            else:
                save = await self._save(agent, script.copy(), build_agent)
        except (AdapterError, Unsupported):
            raise
        except Exception as error:
            self.is_agent_outdated, self._last_saved = False, None
            self._record(StateSaved(session=self._session, name=name, mode=mode, error=describe_error(error)))
            return
        self._by_name[name] = self.latest = self._last_saved = replace(save, name=name)
        self.is_agent_outdated, self.was_killed = True, False
        size = len(save.parts[-1]) if save.parts else None
        self._record(StateSaved(session=self._session, name=name, mode=mode, size=size, digest=save.digest))

    async def _save(self, agent: Agent, script: ScriptState, build_agent: Callable[[], Awaitable[Agent]]) -> SavedState:
        if self._context.variant.serialize == "copy":
            dormant = await build_agent()
            await dormant.copy_from(agent)
            return SavedState(dormant=dormant, script=script)
        part = await self._dump(agent)
        earlier = self.latest.parts if self._context.variant.history == "append" and self.latest else ()
        return SavedState(parts=(*earlier, part), script=script)

    async def _dump(self, agent: Agent) -> str:
        part = await agent.dump()
        if not isinstance(part, str):
            raise AdapterError(self._agent, f"dump() returned {type(part).__name__}; expected text")
        return part

    async def load(self, save: SavedState, agent: Agent, *, crashed: bool = False) -> None:
        """Load a state into *agent*.

        Args:
            save: The state.
            agent: A new agent.
            crashed: The process of the agent before it was killed.
        """
        if save.dormant is not None:
            await agent.copy_from(save.dormant)
        elif crashed and self.is_durable:
            await agent.recover(save.parts)
        else:
            await agent.load(save.parts)

    async def dump_again(self, agent: Agent) -> str | None:
        """Dump once more what was just loaded, and return its digest.

        It shows whether the round trip is stable. None if it need not be, such as for a state of another release.
        """
        variant = self._context.variant
        if variant.serialize != "json" or variant.history != "whole" or variant.saved_by:
            return None
        return compute_digest(await agent.dump())

    def has_moved_on(self, save: SavedState) -> bool:
        """Return whether a durable store cannot restore a save, since a later one is the same reference.

        What is restored is the present state then, so the model and the tools must go on, too. A turn whose process was
        killed is in the store without a save.
        """
        last = self._last_saved
        if not self.is_durable or last is None or last.parts != save.parts:
            return False
        return self.was_killed or last.name != save.name

    async def is_reference(self, save: SavedState, agent: Agent) -> bool:
        """Return whether a save of a durable store is what *agent*, which has taken a turn since, is saved as, too."""
        with suppress(Exception):
            return self.is_durable and save.parts[-1:] == (await self._dump(agent),)
        return False

    @property
    def is_durable(self) -> bool:
        """Whether the variant keeps the state in a durable store of the framework."""
        return self._context.variant.serialize.startswith("native.")

    def roll_back(self, save: SavedState) -> None:
        """Note that the store holds an earlier save again, as if none had followed."""
        self.latest = self._last_saved = save
        self.is_agent_outdated, self.was_killed = True, False

    def record_restored(
        self, save: SavedState, pending: Sequence[TrackedRequest], again: str | None, *, has_moved_on: bool
    ) -> None:
        """Record that an agent resumes from a state, what it lists, and the digest of a new dump."""
        self.latest, self.is_agent_outdated = save, False
        mode = self._context.variant.serialize
        listed = [request.to_dict() for request in pending]
        self._record(
            StateRestored(
                session=self._session,
                name=save.name,
                mode=mode,
                pending=listed,
                again=again,
                present=True if has_moved_on else None,
            )
        )

    def record_restore_failure(self, save: SavedState, error: Exception) -> None:
        """Record that an agent could not load a state."""
        mode = self._context.variant.serialize
        self._record(StateRestored(session=self._session, name=save.name, mode=mode, error=describe_error(error)))

    async def tamper(self, step: RewriteStep, list_pending: ListPending) -> bool:
        """Change the text of the latest state; return whether it contains what is to be changed.

        If all places that contain it are shown to people, a change of what is hidden changes nothing.
        """
        save = self.latest
        if save is None or not find_positions(save.parts, step.old):
            return False
        positions = await select_positions(save.parts, step, list_pending)
        script = save.script.copy()
        script.rewritten += ((step.old, step.new),)
        self.latest = replace(save, parts=replace_text(save.parts, step, positions), script=script)
        self._record(
            StateRewritten(
                session=self._session,
                name=save.name,
                old=step.old,
                new=step.new,
                where=step.where,
                places=len(positions),
            )
        )
        return True


@dataclass(frozen=True, slots=True)
class StatePosition:
    """A position in the text of a state: the number of its part, and the offset there."""

    part: int
    start: int


def find_positions(parts: StateParts, old: str) -> list[StatePosition]:
    """Return the positions of *old*, from the first to the last.

    Hexadecimal digits count only as a value of their own, not inside a longer number, a time stamp or an id: those
    contain any short run of digits now and then, by chance.

    >>> find_positions(['{"cents": 7531, "at": "12:30:19.753102Z", "id": "01a20485-7531-7678"}'], "7531")
    [StatePosition(part=0, start=10)]
    >>> find_positions(['{"cents":7,"id":"run_1:7:c1"}'], "7")
    [StatePosition(part=0, start=9)]
    """
    pattern = re.escape(old)
    if _HEX_DIGITS.fullmatch(old):
        pattern = rf"{_VALUE_START}{pattern}{_VALUE_END}"
    return [
        StatePosition(number, match.start())
        for number, part in enumerate(parts)
        for match in re.finditer(pattern, part)
    ]


_HEX_DIGITS = re.compile(r"(?=.*\d)[0-9a-fA-F]+")

# The letter of an escape such as `\n`, in JSON inside of JSON, is not part of the value behind it.
_VALUE_START = r"(?:(?<![\w.-])(?<!\w[:/#])|(?<=\\[bfnrt]))"
_VALUE_END = r"(?![\w-]|\.\d|[:/#]\w)"


def replace_text(parts: StateParts, step: RewriteStep, positions: Collection[StatePosition]) -> tuple[str, ...]:
    """Return *parts* with the new text at the given positions."""
    changed = list(parts)
    # From the end, so that a replacement of another length moves no position that is still to come.
    for position in sorted(positions, key=lambda position: (position.part, position.start), reverse=True):
        text = changed[position.part]
        changed[position.part] = text[: position.start] + step.new + text[position.start + len(step.old) :]
    return tuple(changed)


async def select_positions(parts: StateParts, step: RewriteStep, list_pending: ListPending) -> list[StatePosition]:
    """Return the positions that *step* means.

    If no position alone changes what is shown, those count as shown whose change is refused.
    """
    known = find_positions(parts, step.old)
    if step.where == "every" or not known:
        return known
    before = await list_pending(parts)
    after = [await list_pending(replace_text(parts, step, [position])) for position in known]
    shown = [position for position, now in zip(known, after, strict=True) if now is not None and now != before]
    # An agent may refuse a state in which only one of several copies was changed.
    shown = shown or [position for position, now in zip(known, after, strict=True) if now is None]
    return shown if step.where == "shown" else [position for position in known if position not in shown]


def compute_digest(text: str) -> str:
    """Return a short digest of a dumped state."""
    return blake2b(text.encode(), digest_size=8).hexdigest()
