"""Stories played on frameworks: many drawn stories on the pinned release of each, in parts that can be interrupted.

In a checkout, `python -m pytest_approvals.devtools.framework_stories pydantic_ai --stories 2000` plays the next 2,000
stories of the seed on the default flavour of an agent in profile `realistic`, and counts them with those that were
played before. What failed before is not reduced again. `--replay` plays the smallest stories again with the code of
today, and forgets those that do not fail any more. Both write the table of `docs/explore.md`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_approvals.agents.causes import get_cause_folder
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.agents.waivers import get_waiver_file, load_waivers
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.campaigns.exploration import Case, Cause, Exploration, StoryPlayer
from pytest_approvals.checks import CHECKS
from pytest_approvals.devtools.known_bugs.exploration import read_cpu_time
from pytest_approvals.errors import ApprovalsError, UsageError
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.scenario.to_file import format_scenario
from pytest_approvals.scenario.variants import allowed_variants

PAGE = Path("docs/explore.md")
RESULTS_FILE = Path(__file__).with_name("framework_stories.json")
"""What was played, and what failed."""

BEGIN = "<!-- begin: framework stories -->"
END = "<!-- end: framework stories -->"

LIMIT = RunLimits(seconds=30.0)
"""The time limit of a run: a machine under load is no failure."""

_SAVE_EVERY = 100
_MAX_TRIALS = 200
"""How many smaller stories are tried for one failure: a trial takes ten times as long as on the reference agent."""

_MAX_SHRUNK = 30
"""How many failures of one check are reduced, over all the stories of an agent."""


@dataclass(slots=True, kw_only=True)
class FoundCause:
    """A cause of failures on a framework.

    Attributes:
        check: The check that fails.
        symptoms: How the failures look before they are reduced.
        title: What happens in the smallest story.
        story: That story, as a file.
        variants: The variants in which it fails.
        first: The number of the first story that fails for it.
        count: How many stories fail for it.
        digest: The digest of the shape of the smallest story.
        record: The id of the record of the cause, once it is understood; empty before.
    """

    check: str
    symptoms: list[str]
    title: str
    story: str
    variants: list[str]
    first: int
    count: int
    digest: str
    record: str = ""


@dataclass(slots=True, kw_only=True)
class PlayedStories:
    """The stories that were played on one release.

    Attributes:
        release: The release of its framework.
        next: The number of the next story.
        stories: How many were played.
        known: How many failures are known: a waiver covers them.
        seconds: The CPU time that they took.
        causes: What failed, and is no known failure.
    """

    release: str
    next: int = 0
    stories: int = 0
    known: int = 0
    seconds: float = 0.0
    causes: list[FoundCause] = field(default_factory=list)


def create_exploration(agent: str) -> Exploration:
    """Return the exploration of an agent in its pinned release.

    Raises:
        ApprovalsError: It cannot be started.
    """
    spec = AgentSpec.parse(agent)
    source = AgentRuns(AgentRelease(spec=spec), {}, 5.0).source
    player = StoryPlayer(source, get_session_loop().run, limit=LIMIT)
    file = get_waiver_file(spec.name)
    return Exploration(
        player=player,
        waivers=load_waivers(file, CHECKS),
        flavour=spec.flavour or "",
        causes_folder=get_cause_folder(file),
        max_trials=_MAX_TRIALS,
        max_shrunk=_MAX_SHRUNK,
    )


class StoryCampaign:
    """The stories of one agent: those that were played before, and further ones.

    Args:
        played: What was played before; None if nothing was.
        exploration: The exploration of the agent.
        read_time: Returns the CPU time used so far.

    Raises:
        UsageError: Another release was played before.
    """

    def __init__(
        self, played: PlayedStories | None, exploration: Exploration, read_time: Callable[[], float] = read_cpu_time
    ) -> None:
        release = exploration.player.source.facts.version or ""
        if played is not None and played.release != release:
            raise UsageError(f"{played.release} was played before, and this is {release}; begin anew with --fresh")
        self.played = played or PlayedStories(release=release)
        self._exploration = exploration
        self._read_time = read_time
        for found in self.played.causes:
            exploration.remember(_key_of(found), found.check, found.symptoms, _read_story(found))

    def play(self, stories: int) -> Iterator[int]:
        """Play further stories, and yield now and then how many were played, when the counts are up to date."""
        one, played = self._exploration, self.played
        before = replace(played, causes=[replace(found) for found in played.causes])
        began = self._read_time()
        for done in range(1, stories + 1):
            number = before.next + done - 1
            for _ in one.explore([number]):
                pass
            if done % _SAVE_EVERY and done < stories:
                continue
            played.next, played.stories = number + 1, before.stories + one.played
            played.known = before.known + one.waived.total()
            played.seconds = before.seconds + self._read_time() - began
            played.causes = [
                replace(found, count=found.count + one.repeated[_key_of(found)]) for found in before.causes
            ]
            for cause in one.causes:
                _add_cause(played.causes, _describe_cause(cause, one))
            yield done

    def replay(self) -> Iterator[FoundCause]:
        """Play the smallest story of each cause again, and yield and forget those that do not fail any more."""
        for found in [*self.played.causes]:
            case = self._read_case(found)
            failures = self._exploration.player.find_failures(case) if case is not None else []
            if not any(each.check == found.check and not self._exploration.is_waived(each) for each in failures):
                self.played.causes.remove(found)
                yield found

    def _read_case(self, found: FoundCause) -> Case | None:
        story = _read_story(found)
        facts = self._exploration.player.source.facts
        allowed = {variant.id: variant for variant in allowed_variants(story, facts, {})}
        variants = tuple(allowed[name] for name in found.variants if name in allowed)
        return Case(story=story, variants=variants, number=found.first) if variants else None


def _key_of(found: FoundCause) -> str:
    return f"{found.check}/{found.digest}"


def _read_story(found: FoundCause) -> Scenario:
    return parse_scenario(found.story, name=f"explored/story-{found.first}", path="explored.approval.yaml")


def _add_cause(causes: list[FoundCause], found: FoundCause) -> None:
    """Add a cause, or count it with the one whose smallest story has the same shape."""
    for each in causes:
        if (each.check, each.digest) == (found.check, found.digest):
            each.count += found.count
            each.symptoms = [*dict.fromkeys([*each.symptoms, *found.symptoms])]
            return
    causes.append(found)


def _describe_cause(cause: Cause, exploration: Exploration) -> FoundCause:
    case = cause.failure.case
    return FoundCause(
        check=cause.failure.check,
        symptoms=exploration.list_symptoms(cause),
        title=cause.title,
        story=format_scenario(replace(case.story, title=cause.title)),
        variants=[variant.id for variant in case.variants],
        first=cause.first,
        count=cause.count,
        digest=cause.digest,
    )


# --- the table --------------------------------------------------------------------------------------------------------


def load_results(path: Path | None = None) -> dict[str, PlayedStories]:
    """Return what was played on each agent."""
    path = path or RESULTS_FILE
    entries: Mapping[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {
        agent: PlayedStories(**{**entry, "causes": [FoundCause(**found) for found in entry["causes"]]})
        for agent, entry in entries.items()
    }


def format_results(results: Mapping[str, PlayedStories]) -> str:
    """Return the text of `framework_stories.json`."""
    entries = {agent: {**asdict(one), "seconds": round(one.seconds, 1)} for agent, one in sorted(results.items())}
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"


def format_table(results: Mapping[str, PlayedStories]) -> str:
    """Return the generated part of `docs/explore.md`."""
    lines = [
        BEGIN,
        "| agent | release | stories | CPU | failures of known causes | other distinct failures | with a record |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for agent, one in sorted(results.items()):
        understood = sum(bool(found.record) for found in one.causes)
        counts = f"{one.stories:,} | {one.seconds:,.0f} s | {one.known:,} | {len(one.causes)} | {understood}"
        lines.append(f"| `{agent}` | {one.release} | {counts} |")
    return "\n".join([*lines, END])


def replace_table(page: str, table: str) -> str:
    """Return a page with its generated table written anew."""
    before, _, rest = page.partition(BEGIN)
    return before + table + rest.partition(END)[2]


# --- the command ------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Play stories, or the smallest ones again; return 1 if a failure has no record, and 2 after a mistake."""
    parser = argparse.ArgumentParser(prog="python -m pytest_approvals.devtools.framework_stories")
    parser.add_argument("agents", nargs="*", metavar="AGENT", help="names of agents; none to write the table only")
    parser.add_argument("--stories", type=int, default=2000, metavar="N", help="for each agent (default: 2000)")
    parser.add_argument("--fresh", action="store_true", help="forget what was played on these agents before")
    parser.add_argument("--replay", action="store_true", help="play the smallest failing stories again instead")
    args = parser.parse_args(arguments)
    try:
        if args.stories < 1:
            raise UsageError(f"--stories: Invalid number {args.stories}: must be at least 1")
        for agent in args.agents:
            _execute(agent, args)
    except ApprovalsError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 2
    results = load_results()
    PAGE.write_text(replace_table(PAGE.read_text(encoding="utf-8"), format_table(results)), encoding="utf-8")
    chosen = [results[agent] for agent in args.agents]
    return int(any(not found.record for one in chosen for found in one.causes))


def _execute(agent: str, args: argparse.Namespace) -> None:
    campaign = StoryCampaign(None if args.fresh else load_results().get(agent), create_exploration(agent))
    if args.replay:
        for found in campaign.replay():
            print(f"{agent}: holds now: {found.check}: {found.title}", flush=True)
        _save(agent, campaign.played)
        return
    for _ in campaign.play(args.stories):
        one = campaign.played
        told = f"{one.stories:,} stories, {len(one.causes)} distinct failures, {one.known:,} of known causes"
        print(f"{agent} {one.release}: {told}, {one.seconds:,.0f} s", flush=True)
        _save(agent, one)


def _save(agent: str, played: PlayedStories) -> None:
    # Several of these commands may play on different agents at a time.
    RESULTS_FILE.write_text(format_results({**load_results(), agent: played}), encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
