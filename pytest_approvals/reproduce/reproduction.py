"""
The whole way: a draft is tried on agents, one failing check is chosen, and the draft is made small while that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_approvals.errors import UsageError
from pytest_approvals.harness.play import Limit
from pytest_approvals.scenario.parts import Variant

from .document import document_of
from .draft import Draft
from .shrink import shrunk
from .trial import Tried
from .yaml_text import yaml_text

REFERENCE = "reference"
"""The agent on which nothing may be wrong with a scenario; otherwise it is the scenario that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """A check that fails on an agent, and the first variant in which it does; None: on all variants together."""

    agent: Tried
    check: str
    variant: Variant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """
    What came of it.

    Attributes:
        origin: Where the conversation comes from, in a sentence.
        witness: None where nothing fails.
        trials: How many drafts were tried to make it small.
        failing, holding: The agents on which the check fails, and those on which it does not.
    """

    draft: Draft
    origin: str
    witness: Witness | None = None
    trials: int = 0
    failing: Sequence[str] = ()
    holding: Sequence[str] = ()
    reaches: tuple[tuple[str, int], ...] = ()

    @property
    def text(self) -> str:
        """The scenario file."""
        return yaml_text(self.document)

    @property
    def document(self) -> dict[str, Any]:
        """What the file holds."""
        return document_of(self.draft, about=self._about, reaches=dict(self.reaches))

    @property
    def _about(self) -> str:
        if self.witness is None:
            return self.origin
        holds = f", and holds on {_listed(self.holding)}" if self.holding else ""
        return f"{self.origin} The check {self.witness.check} fails on {_listed(self.failing)}{holds}."


class Reproducer:
    """
    Tries drafts on agents.

    Arguments:
        agents: Their specs.
        limit: How far one run may go.
        most: How many drafts are tried to make one small.
        tell: Is told of every step.
    """

    def __init__(self, agents: Sequence[str], *, limit: Limit, most: int, tell: Callable[[str], None]) -> None:
        self._agents = [Tried(name, limit) for name in agents]
        self._reference = Tried(REFERENCE, limit)
        self._most = most
        self._tell = tell

    def reproduce(self, draft: Draft, origin: str, check: str | None = None) -> Reproduction:
        """
        Gives a scenario that fails as the whole conversation does, and is small.

        Arguments:
            check: The check to look at; None for the first one that fails on some of the agents and not on all.

        Errors:
            UsageError: The whole conversation is no scenario, or the reference agent fails on it.
        """
        wrong = next(self._reference.wrong(draft), None)
        if wrong is not None:
            why = f"{wrong.expected} is expected, and {wrong.actual}"
            raise UsageError(
                f"the conversation cannot be played again as it stands: {wrong.check} fails even on the agent "
                f"{REFERENCE} ({why}); `pytest-approvals lint` says what is wrong with it"
            )
        witness = self._witness(draft, check)
        if witness is None:
            return Reproduction(draft=draft, origin=origin, reaches=self._reached(draft))
        self._tell(f"{witness.check} fails on {witness.agent.name}")
        small, trials = self._shrunk(draft, witness)
        failing = [each.name for each in self._agents if witness.check in each.failing(small)]
        return Reproduction(
            draft=small,
            origin=origin,
            witness=witness,
            trials=trials,
            failing=failing,
            holding=[each.name for each in self._agents if each.name not in failing],
            reaches=self._reached(small),
        )

    def _witness(self, draft: Draft, check: str | None) -> Witness | None:
        failing = [(agent, agent.failing(draft)) for agent in self._agents]
        for agent, found in failing:
            self._tell(f"{agent.name}: {self._said(agent, draft, found)}")
        witnesses = [
            Witness(agent=agent, check=slug, variant=variant)
            for agent, found in failing
            for slug, variant in found.items()
            if check in (None, slug)
        ]
        telling = [one for one in witnesses if not all(one.check in found for _, found in failing)]
        return next(iter(telling or witnesses), None)

    def _said(self, agent: Tried, draft: Draft, found: Collection[str]) -> str:
        if lacking := agent.lacks(draft):
            return f"cannot play it, for it lacks {_listed(lacking)}"
        return f"{_listed([*found]) or 'nothing'} fail{'s' if len(found) < 2 else ''}"

    def _shrunk(self, draft: Draft, witness: Witness) -> tuple[Draft, int]:
        trials = 0

        def holds(candidate: Draft) -> bool:
            nonlocal trials
            trials += 1
            if trials > self._most or not witness.agent.fails(candidate, witness.check, witness.variant):
                return False
            return self._reference.is_sound(candidate)

        small = shrunk(draft, holds)
        return small, min(trials, self._most)

    def _reached(self, draft: Draft) -> tuple[tuple[str, int], ...]:
        return tuple(self._reference.reached(draft).items())


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
