"""Pages about stories: `docs/catalogue.md`, every scenario in a line; `docs/drawn-stories.md`, their features.

`python -m pytest_approvals.devtools.pages.catalogue > docs/catalogue.md`, in a checkout, writes the one, and
`python -m pytest_approvals.devtools.pages.catalogue drawn > docs/drawn-stories.md` the other one. With `pairs` in place
of `drawn`, every pair of features is printed, with its counts; with `crossings`, `docs/crossings.md`: which stories of
the catalogue have which of the features that fail together most.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from pytest_approvals.devtools.pages import format_source
from pytest_approvals.scenario.generation.features import FEATURES, find_features, possible_pairs
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.scenario.requirements import required_by_content

CATALOGUE_FAMILIES = {
    "basics": "Plain stories: a call needs approval, is decided, is executed or not, and the model is told.",
    "parallel": "Several calls in one reply, decided together, separately, or in another order.",
    "streaming": "Requests that surface in a stream, however it is chunked, and streams that break.",
    "decisions": "Decisions of a caller, also repeated, contradictory, malformed and forged ones.",
    "identity": "Ids that are repeated, missing, or shared by sessions.",
    "timing": "Concurrent turns and calls.",
    "hangups": "Callers who disconnect: turns that are cancelled while a call runs or the model is asked.",
    "crashes": "Processes that are killed while a turn runs, and others that go on from what was stored.",
    "state": "What lies between request and decision: stores, processes, older saves, other messages, changed tools.",
    "stores": "Stores that forget a turn, read an old state, or fail once.",
    "failures": "Models and tools that fail, arguments that do not fit, limits that are reached.",
    "reasoning": "Reasoning of the model before and between calls, which its provider wants back.",
    "nested": "Agents that tools run, and their requests.",
    "handoffs": "Conversations that one agent hands over to another.",
    "answers": "Structured answers, next to gated calls and after them.",
    "values": "Arguments, edits and results at the edges of what their types can hold.",
    "policies": "Approval that depends on arguments, and requests in the middle of a tool.",
    "upgrades": "Paused runs that an older release saved and a newer one resumes.",
    "annotations": "Policies of the application that read what a server says about its tools.",
    "elicitation": "Servers that ask the caller something in the middle of a call, approved before or not.",
    "mixed": "Functions, tools of connected servers, and calls that the provider executes.",
}
"""Families of the catalogue, each with the subject of its scenarios."""

_INTRODUCTION = """\
# The catalogue

{count} scenarios, each one story about an agent whose tool calls need approval.
[Writing scenarios](writing-scenarios.md) describes their language, and `pytest-approvals show FAMILY/NAME` shows a
scenario with its variants. An agent that does not claim what a scenario needs does not run it. The last column names
public reports that the scenario models.
"""


def format_catalogue_page(scenarios: Iterable[Scenario]) -> str:
    """Return the page of *scenarios*, in the order of their ids."""
    known = list(scenarios)
    parts = [_INTRODUCTION.format(count=len(known))]
    for family, about in CATALOGUE_FAMILIES.items():
        parts.append(f"## {family.capitalize()}\n\n{about}\n\n" + "\n".join(_format_table(family, known)) + "\n")
    return "\n".join(parts)


def _format_table(family: str, scenarios: Iterable[Scenario]) -> Iterator[str]:
    yield "| scenario | story | needs | reports |"
    yield "|---|---|---|---|"
    for scenario in scenarios:
        if scenario.family == family:
            yield f"| {' | '.join(_format_cells(scenario))} |"


def _format_cells(scenario: Scenario) -> Iterator[str]:
    name = scenario.id.partition("/")[2]
    yield f"[{name}](../scenarios/{scenario.id}.approval.yaml)"
    yield scenario.title
    yield ", ".join(f"`{capability}`" for capability in sorted(required_by_content(scenario)))
    yield ", ".join(map(format_source, scenario.sources))


# --- drawn stories ----------------------------------------------------------------------------------------------------

DRAWN_STORIES = 5000
"""Number of stories that are drawn for the page, from the seeds 0, 1, 2, ..."""

_DRAWN_INTRODUCTION = """\
# Drawn stories

Stories that are made by machine have the same language as those of [the catalogue](catalogue.md). A story is drawn from
nothing, crossed (a feature of one story of the catalogue is put into another one), or varied from a given one. Which
features it has is drawn first; then the model's script and the caller's steps are drawn so that they occur, along a dry
run that knows which requests are open. What an agent cannot do is not drawn for it.

The profile `realistic` draws the features with a source: what providers are documented or reported to send, and what
callers are documented or reported to do. The profile `adversarial` draws all of them.

Below, {drawn} stories of the profile `adversarial`, for an agent that can do everything, stand beside the {written}
of the catalogue. Of {possible} pairs of features that one story can have, the drawn stories have {met}, and the
catalogue has {known}. `python -m pytest_approvals.devtools.pages.catalogue pairs` prints each pair with its counts.

{missing}
"""


class FeatureCounts:
    """How often features, and pairs of them, occur in stories.

    Attributes:
        stories: The number of stories.
        single: How many stories have a feature.
        pairs: How many have both features of a pair, which is in alphabetical order.
    """

    def __init__(self, stories: Iterable[Scenario]) -> None:
        self.stories = 0
        self.single: Counter[str] = Counter()
        self.pairs: Counter[tuple[str, str]] = Counter()
        for story in stories:
            found = sorted(find_features(story))
            self.stories += 1
            self.single.update(found)
            self.pairs.update(combinations(found, 2))


def draw_counts(count: int) -> FeatureCounts:
    """Count the features of that many drawn stories."""
    from pytest_approvals.scenario.generation import story_from_seed

    return FeatureCounts(map(story_from_seed, range(count)))


def format_drawn_page(drawn: FeatureCounts, written: FeatureCounts) -> str:
    """Return the page of drawn stories beside those of the catalogue."""
    possible = possible_pairs()
    lacking = [pair for pair in possible if not drawn.pairs[pair]]
    names = ", ".join(f"`{one}` with `{other}`" for one, other in lacking)
    introduction = _DRAWN_INTRODUCTION.format(
        drawn=drawn.stories,
        written=written.stories,
        possible=len(possible),
        met=len(possible) - len(lacking),
        known=sum(bool(written.pairs[pair]) for pair in possible),
        missing=f"No drawn story has {names}." if lacking else "No pair is missing in the drawn stories.",
    )
    parts = [introduction]
    for group in dict.fromkeys(feature.group for feature in FEATURES.values()):
        rows = "\n".join(_format_feature_rows(group, drawn, written, possible))
        parts.append(f"## {_GROUPS[group]}\n\n{rows}\n")
    return "\n".join(parts)


_GROUPS = {
    "model": "The model",
    "tools": "Tools",
    "caller": "The caller",
    "values": "Values",
    "frame": "Around the story",
}


def _format_feature_rows(
    group: str, drawn: FeatureCounts, written: FeatureCounts, possible: Sequence[tuple[str, str]]
) -> Iterator[str]:
    yield "| feature | drawn | catalogue | features beside it: drawn, catalogue, possible | rarest | source |"
    yield "|---|---|---|---|---|---|"
    for name, feature in FEATURES.items():
        if feature.group != group:
            continue
        own = [pair for pair in possible if name in pair]
        rarest = min(own, key=lambda pair: drawn.pairs[pair])
        other = rarest[1] if rarest[0] == name else rarest[0]
        met = [sum(bool(counts.pairs[pair]) for pair in own) for counts in (drawn, written)]
        yield (
            f"| `{name}` | {drawn.single[name]} | {written.single[name]} | {met[0]}, {met[1]}, {len(own)} "
            f"| `{other}`: {drawn.pairs[rarest]} | {_format_feature_source(feature.source)} |"
        )


def _format_feature_source(source: str) -> str:
    return format_source(source) if source else "`adversarial` only"


# --- crossings --------------------------------------------------------------------------------------------------------

CROSSED_FEATURES = (
    *("always", "never", "condition", "changing_condition", "partial_answers", "edit", "edited_object", "stage"),
    *("restart", "fresh", "rewind", "sessions", "simultaneous", "message_while_pending", "late_decision"),
    *("parallel", "free_tool", "tool_errors", "asks_again", "repeated_ids", "nested", "nested_gate", "nested_parallel"),
    *("hand_offs", "hosted_mcp", "model_failure", "hangs_up_in_tool", "pinned_chunking"),
)
"""The features whose crossings are listed: standing decisions, conditions, edits, states, sessions, agents."""

CROSSING_REASONS: Mapping[str, str] = {
    "restart": "Each story is also run with its state saved and restored at every pause. A step of its own is for what "
    "those runs cannot show.",
    "fresh": "Each story is also run with its state restored in a fresh process at every pause.",
    "pinned_chunking": "Each story is also run streamed, in every chunking. One is pinned where a stream breaks at one "
    "place.",
    "simultaneous": "Of two turns at once either may come first, and the second may be refused. What holds in all "
    "these cases holds alike for whatever the turns are about.",
    "rewind": "What is known of the time after an older save differs by design: a copy knows nothing of it, a store "
    "all. What holds for both has stories.",
    "changing_condition": "When a policy is asked, and how often, differs by design, so that of one that changes its "
    "mind few rules hold.",
    "hangs_up_in_tool": "A turn that was cut off may be undone or kept, by design, with all that it did. That nothing "
    "of it comes twice, or is told as done, has stories.",
    "model_failure": "A turn in which the model fails may be undone or kept, by design. What was executed in it counts "
    "in both cases, which has stories.",
    "message_while_pending": "A message may be refused, wait, or close what is pending, by design, and does so alike "
    "with all that is pending.",
    "late_decision": "A decision that comes too late has no effect, whatever settled its call: there are stories for a "
    "result, a rejection, an error and a message.",
    "stage": "What is put into the state counts as if it were handed in with the next turn, which the stories of the "
    "other feature show.",
    "repeated_ids": "Calls of one id are told apart by their place in the conversation. Few providers take such a "
    "conversation, and few agents claim it.",
    "hosted_mcp": "Of a hosted call only its request and its answer are the agent's, which stories show beside "
    "functions; it cannot be edited, and has no body that could ask or raise there.",
    "asks_again": "A call whose body asks waits and is answered like a gated one. That it has begun before has "
    "stories.",
    "edited_object": "An object is edited in the same way as a number, and differs in how it is compared, which has "
    "stories.",
    "edit": "An edit changes the arguments of one call and nothing around it.",
    "tool_errors": "An error is what a call came to, like a result, and changes nothing of what was decided about "
    "others.",
    "nested_gate": "A gated call that runs an agent waits like any other one. That nothing begins inside has stories.",
    "hand_offs": "After a hand-off, calls are made and decided like those of a first agent. What is handed over has "
    "stories.",
    "condition": "Once a condition has said yes, a call waits as if its tool were always gated.",
    "never": "A standing rejection covers the same calls as a standing approval, which has stories.",
    "free_tool": "A call that needs no approval runs whatever is decided about others, which stories show for each way "
    "of waiting.",
    "nested_parallel": "Two sub-agents at once are answered like two calls of one reply, and each like one that is "
    "alone.",
    "sessions": "Sessions share nothing, whatever happens in them. Requests, decisions and messages have stories.",
}
"""Why a feature has no story of the catalogue together with another one; of two features, the first here counts."""

_CROSSINGS_INTRODUCTION = """\
# Crossings

What frameworks get right alone they get wrong together. Below, {count} features that public reports name most stand
against each other, with the stories of [the catalogue](catalogue.md) that have both. Of {possible} pairs that one story
can have, the catalogue has {met}. For each of the other ones, the reason stands with one of its features. They occur
in [drawn stories](drawn-stories.md), where no pair is missing.

`python -m pytest_approvals.devtools.pages.catalogue crossings` regenerates this page in a checkout.

"""


def format_crossings_page(scenarios: Iterable[Scenario]) -> str:
    """Return the page of the crossings of features in *scenarios*."""
    stories: dict[tuple[str, str], list[str]] = {}
    for scenario in scenarios:
        for pair in combinations(sorted(find_features(scenario) & {*CROSSED_FEATURES}), 2):
            stories.setdefault(pair, []).append(scenario.id)
    possible = [pair for pair in possible_pairs() if {*pair} <= {*CROSSED_FEATURES}]
    met = sum(pair in stories for pair in possible)
    parts = [_CROSSINGS_INTRODUCTION.format(count=len(CROSSED_FEATURES), possible=len(possible), met=met)]
    for name in CROSSED_FEATURES:
        own = [pair for pair in possible if name in pair]
        rows = {pair[pair[0] == name]: stories[pair] for pair in own if pair in stories}
        lacking = {pair[pair[0] == name]: find_crossing_reason(pair) for pair in own if pair not in stories}
        parts.append("\n".join(_format_crossings(name, rows, lacking)))
    return "\n".join(parts)


def find_crossing_reason(pair: tuple[str, str]) -> str | None:
    """Return the feature whose reason explains that no story has both; None if there is no reason."""
    return next((name for name in CROSSING_REASONS if name in pair), None)


def _format_crossings(name: str, rows: Mapping[str, Sequence[str]], lacking: Mapping[str, str | None]) -> Iterator[str]:
    yield f"## `{name}`"
    yield ""
    if rows:
        yield "| with | stories of the catalogue |"
        yield "|---|---|"
    for other, ids in rows.items():
        more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
        yield f"| `{other}` | {', '.join(f'[{each}](../scenarios/{each}.approval.yaml)' for each in ids[:3])}{more} |"
    if rows:
        yield ""
    explained = [f"`{other}`" for other, reason in lacking.items() if reason == name]
    if explained:
        yield f"{CROSSING_REASONS[name]} So no story has it with {', '.join(explained)}."
        yield ""
    elsewhere = [f"[`{other}`](#{other})" for other, reason in lacking.items() if reason == other]
    if elsewhere:
        yield f"Explained there: {', '.join(elsewhere)}."
        yield ""
    missing = [f"`{other}`" for other, reason in lacking.items() if reason is None]
    if missing:
        yield f"Without a story and without a reason: {', '.join(missing)}."
        yield ""


def main() -> None:
    """Print the page of the built-in catalogue, that of drawn stories, or that of crossings."""
    from pytest_approvals.scenario.catalogue import stock_folder
    from pytest_approvals.scenario.load import load_catalogue

    catalogue = load_catalogue([stock_folder()])
    if sys.argv[1:] == ["crossings"]:
        sys.stdout.write(format_crossings_page(catalogue))
        return
    if sys.argv[1:] not in (["drawn"], ["pairs"]):
        sys.stdout.write(format_catalogue_page(catalogue))
        return
    drawn, written = draw_counts(DRAWN_STORIES), FeatureCounts(catalogue)
    if sys.argv[1] == "drawn":
        sys.stdout.write(format_drawn_page(drawn, written))
        return
    for pair in possible_pairs():
        sys.stdout.write(f"{pair[0]} {pair[1]} {drawn.pairs[pair]} {written.pairs[pair]}\n")


if __name__ == "__main__":
    main()
