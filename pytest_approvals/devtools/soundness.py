"""Soundness: drawn stories on agents that are right. A check that fails there is wrong, or the agent is.

`python -m pytest_approvals.devtools.soundness --stories N` plays N stories in each profile on each flavour of the
reference agent, and prints a table; `--agent NAME` names a flavour (`reference.chat`), a legitimate design, or all
`designs`. The smallest story of each cause of a failure is printed, too.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agents.sources import subprocess_factory
from pytest_approvals.campaigns.exploration import Exploration, StoryPlayer, kills_process, leaves_process
from pytest_approvals.errors import ApprovalsError, UnknownName, UsageError
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.generation.features import FEATURES, PROFILES, available_features
from pytest_approvals.scenario.to_file import format_scenario
from pytest_approvals.simulation import FLAVOURS
from pytest_approvals.simulation.reference.designs import DESIGNS

LIMIT = RunLimits(seconds=60.0)
"""The time limit of a run: a machine under load is no failure."""

AGENTS: dict[str, type[Agent]] = {
    **{f"reference.{flavour}" if flavour else "reference": adapter for flavour, adapter in FLAVOURS.items()},
    **DESIGNS,
}
"""The agents that are right, by name."""

_PROGRESS_EVERY = 1000


@dataclass(slots=True, kw_only=True)
class Part:
    """The stories of one seed on one agent in one profile.

    Attributes:
        agent: The name of the agent.
        exploration: What was played so far, and what failed.
        seconds: The CPU time that it took.
    """

    agent: str
    exploration: Exploration
    seconds: float = 0.0

    @classmethod
    def of_agent(
        cls, name: str, *, seed: int, profile: str, crashes: bool = False, features: Sequence[str] = ()
    ) -> Part:
        """Return a part of which nothing was played yet, on one of `AGENTS`.

        Args:
            name: The name of the agent.
            seed: The seed of the stories.
            profile: The profile that they are drawn in.
            crashes: Each story kills the process of its agent, or lets its store fail.
            features: What each story has, if the agent can play it.

        Raises:
            UnknownName: A feature is unknown.
        """
        for feature in features:
            if feature not in FEATURES:
                raise UnknownName("feature", feature, FEATURES)
        adapter = AGENTS[name]
        source = InProcessSource(
            name=name, adapter=adapter, facts=describe_adapter(adapter), elsewhere=subprocess_factory(adapter)
        )
        player = StoryPlayer(source, get_session_loop().run, limit=LIMIT)
        exploration = Exploration(player=player, seed=seed, profile=profile, crashes=crashes, features=tuple(features))
        return cls(agent=name, exploration=exploration)

    def play(self, numbers: Iterable[int]) -> Iterator[int]:
        """Play the stories of *numbers*, and yield after each thousand how many were played.

        Two of fifty stories are left out, unless all kill processes: they leave the process, which takes long.
        """
        began = time.process_time() - self.seconds
        all_kill = self.exploration.crashes
        stay = (number for number in numbers if all_kill or not (leaves_process(number) or kills_process(number)))
        for _ in self.exploration.explore(stay):
            self.seconds = time.process_time() - began
            if self.exploration.played % _PROGRESS_EVERY == 0:
                yield self.exploration.played

    @property
    def causes(self) -> list[str]:
        """A line for each cause of a failure."""
        return [
            f"{cause.failure.check}: {cause.title}, number {cause.first} of seed {self.exploration.seed}"
            for cause in self.exploration.causes
        ]


def format_parts(parts: Sequence[Part]) -> Iterator[str]:
    """Yield the lines of a table, and a line of totals."""
    yield "| agent | profile | seed | stories | went another way | distinct failures | CPU |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for part in parts:
        one = part.exploration
        counts = f"{one.played:,} | {one.unexercised:,} | {len(one.causes)} | {part.seconds:.0f} s"
        yield f"| `{part.agent}` | {one.profile} | {one.seed} | {counts} |"
    yield ""
    failures = sum(len(part.causes) for part in parts)
    told = "1 distinct failure" if failures == 1 else f"{failures or 'no'} distinct failures"
    yield f"{sum(part.exploration.played for part in parts):,} stories, {told}"


def _play_with_progress(part: Part, stories: int) -> None:
    for played in part.play(range(stories)):
        told = f"{part.agent}, {part.exploration.profile}: {played:,} stories, {len(part.causes)} distinct failures"
        print(told, file=sys.stderr, flush=True)


def _print_causes(part: Part) -> None:
    for cause, line in zip(part.exploration.causes, part.causes, strict=True):
        variants = ", ".join(variant.id for variant in cause.failure.case.variants)
        print(f"{part.agent}, {part.exploration.profile}: {line}; {cause.failure.symptom} ({variants})")
        print(format_scenario(cause.failure.case.story))


def _find_agents(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        if name == "designs":
            found += DESIGNS
        elif name in AGENTS:
            found.append(name)
        else:
            raise UnknownName("agent", name, [*AGENTS, "designs"])
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what fails, and a table; return 1 if anything fails, and 2 if it was interrupted."""
    parser = argparse.ArgumentParser(prog="python -m pytest_approvals.devtools.soundness")
    parser.add_argument("--stories", type=int, default=1000, metavar="N", help="for each agent and profile")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the stories (default: 0)")
    parser.add_argument("--profile", action="append", help="a profile (default: all)")
    parser.add_argument("--agent", action="append", metavar="NAME", help="an agent (default: the reference agents)")
    parser.add_argument(
        "--crashes", action="store_true", help="each story kills the process of its agent, or lets its store fail"
    )
    parser.add_argument(
        "--feature", action="append", default=[], metavar="NAME", help="a feature that each story has (default: none)"
    )
    args = parser.parse_args(arguments)
    parts: list[Part] = []
    is_interrupted = False
    try:
        if args.stories < 1:
            raise UsageError(f"--stories: Invalid number {args.stories}: must be at least 1")
        profiles = args.profile or PROFILES
        for profile in profiles:
            available_features(None, profile)
        for name in _find_agents(args.agent or [name for name in AGENTS if name not in DESIGNS]):
            for profile in profiles:
                part = Part.of_agent(name, seed=args.seed, profile=profile, crashes=args.crashes, features=args.feature)
                parts.append(part)
                _play_with_progress(parts[-1], args.stories)
    except ApprovalsError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        is_interrupted = True
    for part in parts:
        _print_causes(part)
    print("\n".join(format_parts(parts)))
    return 2 if is_interrupted else int(any(part.causes for part in parts))


if __name__ == "__main__":
    raise SystemExit(main())
