"""Stories made by machine."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import Phase, find, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from pytest_approvals.agent_side.contract.capabilities import CAPABILITIES
from pytest_approvals.agent_side.contract.metadata import Facts
from pytest_approvals.agent_side.contract.types import Condition, Parameter
from pytest_approvals.errors import UsageError
from pytest_approvals.scenario.catalogue import find_scenarios, stock_folder
from pytest_approvals.scenario.generation import (
    FEATURES,
    choices_from_seed,
    crossings,
    feature_pairs,
    find_features,
    grammar,
    neighbours,
    stories,
    story_from_seed,
)
from pytest_approvals.scenario.generation.choices import (
    ANNOTATION_FEATURES,
    ELICITATION_FEATURES,
    REASONING_FEATURES,
    draw_features,
)
from pytest_approvals.scenario.generation.grafts import GRAFTS, cross, release, try_graft, vary
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import (
    Call,
    RestartStep,
    Scenario,
    Script,
    ScriptedDecision,
    ScriptedReply,
    SignalStep,
    TogetherStep,
    TurnStep,
    all_steps,
    crash_places,
    decide_by,
    is_cut_write,
    loses_state,
)
from pytest_approvals.scenario.validation import validate_scenario
from pytest_approvals.scenario.variants import missing_capabilities

QUIET = settings(max_examples=3000, database=None, derandomize=True, phases=(Phase.generate, Phase.shrink))


@pytest.fixture(scope="module")
def catalogue() -> list[Scenario]:
    """Some stories of each family: to load all takes longer than what is tested with them."""
    found = find_scenarios([stock_folder()])
    return [load_scenario(found[name], root=stock_folder()) for name in sorted(found)[::6]]


def invalid(drawn: Iterable[Scenario]) -> list[str]:
    """The first diagnostic of each invalid story."""
    return [str(diagnostic) for story in drawn for diagnostic in list(validate_scenario(story))[:1]]


def digest(drawn: Iterable[Scenario]) -> str:
    """A digest of what the stories say."""
    return hashlib.sha256("\n".join(map(repr, drawn)).encode()).hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["realistic", "adversarial"])
def test_many_drawn_stories_are_valid(profile: str) -> None:
    """At least 99 in 100 of 20,000 stories are valid as they are drawn."""
    drawn = (story_from_seed(seed, profile=profile) for seed in range(20_000))

    assert len(invalid(drawn)) <= 200


@pytest.mark.parametrize("profile", ["realistic", "adversarial"])
def test_drawn_stories_are_valid(profile: str) -> None:
    """At least 99 in 100 stories are valid as they are drawn."""
    drawn = [story_from_seed(seed, profile=profile) for seed in range(300)]

    assert len(invalid(drawn)) <= 3, invalid(drawn)


def fits_type(call: Call, parameters: Mapping[str, Parameter]) -> bool:
    """Whether the first argument of a call is of the type that its tool takes, or a text that reads as one."""
    name, parameter = next(iter(parameters.items()))
    value = call.arguments.get(name) if isinstance(call.arguments, Mapping) else None
    if parameter.type == "integer" and isinstance(value, str) and value.isdecimal():
        value = int(value)
    return isinstance(value, {"integer": int, "string": str}[parameter.type]) and set(call.arguments) == set(parameters)


def test_a_restart_lets_no_call_wait_for_one_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """If only the waiting one of two calls fits the new parameters, it waits for ever."""
    misfits = ("invalid_arguments", "arguments_as_text", "text_like_a_value")
    wanted = ("waits_for_call", *misfits, "parameters_changed", "several_turns")
    monkeypatch.setattr(grammar, "draw_features", lambda *_: wanted)
    pairs = []
    for seed in range(600):
        story = story_from_seed(seed)
        made = {call.id: call for reply in story.agents["main"].all_replies for call in reply.calls}
        waits = [
            (tool.key, made[waiting], made[behaviours[0].waits_for.split()[1]])
            for tool in story.tools
            for waiting, behaviours in tool.per_call.items()
            if behaviours[0].waits_for and waiting in made
        ]
        for step in story.caller or ():
            changed = step.parameters if isinstance(step, RestartStep) else {}
            pairs += [
                (fits_type(waiting, changed[key]), fits_type(awaited, changed[key]))
                for key, waiting, awaited in waits
                if key in changed
            ]

    assert len(pairs) > 10
    assert (True, False) not in pairs


def test_a_store_that_forgets_lets_no_call_wait_for_a_later_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request that was closed is open again in what was stored before, and its call waits if it is approved."""
    monkeypatch.setattr(grammar, "draw_features", lambda *_: ("crashes", "waits_for_signal", "tool_errors"))
    waits = []
    for seed in range(1500):
        story = story_from_seed(seed)
        made = {call.id: call.tool for reply in story.agents["main"].all_replies for call in reply.calls}
        slow = {tool.key for tool in story.tools if any(behaviour.waits_for for behaviour in tool.behaviours)}
        is_given = False
        for step in story.caller or ():
            parts = step.steps if isinstance(step, TogetherStep) else (step,)
            is_given = is_given or any(isinstance(part, SignalStep) for part in parts)
            if isinstance(step, TurnStep) and step.reads is not None:
                approved = {answer.label for answer in step.answers if answer.verdict == "approve"}
                waits += [is_given for label, tool in made.items() if label in approved and tool in slow]

    assert len(waits) > 10
    assert False not in waits


def test_an_invalid_story_counts() -> None:
    """A story whose model has no reply is invalid."""
    broken = Scenario(id="drawn/broken", title="Broken", agents=story_from_seed(0).agents, caller=())

    assert 1 == len(invalid([broken]))


def test_the_smallest_story_is_one_approved_call() -> None:
    """Stories shrink towards a gated call that is approved."""
    smallest = find(stories(), lambda story: True, settings=QUIET)

    assert (
        TurnStep(text="Go ahead."),
        TurnStep(answers=(ScriptedDecision(label="c1"),)),
    ) == smallest.caller
    assert ["pay"] == [tool.name for tool in smallest.tools]


def test_a_story_shrinks_to_the_feature_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a failure does not need is left out."""
    # Hypothesis draws constants of the modules that are loaded, which are others beside other tests.
    monkeypatch.setattr(providers, "_get_local_constants", Constants)
    monkeypatch.setattr(providers, "CONSTANTS_CACHE", {})
    smallest = find(stories(), lambda story: "hangs_up_at_model" in find_features(story), settings=QUIET)

    assert {"hangs_up_at_model", "hang_up"} >= find_features(smallest) - {"several_turns"}


def test_a_seed_has_one_story() -> None:
    """The same seed draws the same story, another seed another one."""
    assert story_from_seed(7) == story_from_seed(7)
    assert story_from_seed(7) != story_from_seed(8)


def test_without_hypothesis_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "hypothesis", None)

    with pytest.raises(UsageError) as caught:
        stories()

    assert "Hypothesis is missing; install it with `pip install 'pytest-approvals[explore]'`." == str(caught.value)


def test_an_unknown_profile_is_refused() -> None:
    """The error names the profile and a near one."""
    with pytest.raises(UsageError) as caught:
        stories(profile="realstic")

    assert "Unknown profile 'realstic'; did you mean 'realistic'?" == str(caught.value)


def test_an_unknown_feature_is_refused() -> None:
    """The error names the feature and a near one."""
    with pytest.raises(UsageError) as caught:
        story_from_seed(0, features=("crash",))

    assert "Unknown feature 'crash'; did you mean 'crashes'?" == str(caught.value)


# --- agents -----------------------------------------------------------------------------------------------------------


def unplayable(capabilities: frozenset[str], seeds: Sequence[int]) -> list[frozenset[str]]:
    """What an agent lacks for each story that was drawn for it, and that it cannot play."""
    facts = Facts(capabilities=capabilities)
    lacking = [missing_capabilities(story_from_seed(seed, capabilities), facts) for seed in seeds]
    return [names for names in lacking if names]


def test_an_agent_can_play_what_is_drawn_for_it() -> None:
    """At least 95 in 100 stories, whatever the agent claims."""
    rng = random.Random(7)
    names = sorted(CAPABILITIES)
    claims = [frozenset(name for name in names if rng.random() < share) for share in (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)]

    assert [] == [len(claim) for claim in claims if len(unplayable(claim, range(40))) > 2]


def test_a_story_for_another_agent_cannot_be_played() -> None:
    """Of stories that are drawn for an agent that can do everything, an agent that can do nothing lacks something."""
    nothing = Facts()
    lacking = [missing_capabilities(story_from_seed(seed), nothing) for seed in range(40)]

    assert len([names for names in lacking if names]) > 20


KILLABLE = frozenset(CAPABILITIES) | {"native.sqlite"}


def test_a_process_is_killed_in_a_story_that_is_to_have_it() -> None:
    """Once at least, at every kind of place; in one session, and not beside what has no steps."""
    drawn = [story_from_seed(seed, KILLABLE, features=("crashes",)) for seed in range(150)]
    places = Counter(place.partition(" ")[0] for story in drawn for place in crash_places(story))

    assert [] == [story for story in drawn if not loses_state(story)]
    assert [] == invalid(drawn)
    assert {"before", "started", "ended", "write", "model", "shown", "outcome"} == set(places)
    assert [] == [
        name for story in drawn for name in find_features(story) & {"sessions", "oracle_only", "waits_for_call"}
    ]


def test_a_store_fails_in_a_story_in_which_a_process_may_be_killed() -> None:
    """It loses a turn, is read as it was before, or a write fails; each in a good part of the stories."""
    drawn = [story_from_seed(seed, KILLABLE, features=("crashes",)) for seed in range(150)]
    turns = [[step for step in all_steps(story) if isinstance(step, TurnStep)] for story in drawn]
    keys = Counter(
        key for steps in turns for key in ("fails_once", "loses", "reads") if any(getattr(step, key) for step in steps)
    )

    assert {"fails_once", "loses", "reads"} == set(keys)
    assert keys["loses"] > 10
    assert keys["reads"] > 10


def test_a_write_is_cut_only_for_an_agent_with_a_store() -> None:
    """What an application keeps is not written by the process of the agent."""
    storeless = KILLABLE - {"native.sqlite"}
    drawn = [story_from_seed(seed, storeless, features=("crashes",)) for seed in range(60)]

    assert [] == [place for story in drawn for place in crash_places(story) if is_cut_write(place)]


def test_a_killed_process_is_nothing_for_an_agent_that_does_not_go_on_after_it() -> None:
    """What it can play is drawn as before."""
    mortal = KILLABLE - {"crash"}

    assert [story_from_seed(seed, mortal) for seed in range(40)] == [
        story_from_seed(seed, mortal, features=("crashes",)) for seed in range(40)
    ]


def test_a_fresh_process_is_a_step_of_the_caller() -> None:
    """The successor of a killed process is none."""
    killed = story_from_seed(3, KILLABLE - {"streaming"}, features=("crashes",))

    assert {"crashes"} == find_features(killed) & {"crashes", "fresh"}


def test_what_few_faults_need_is_drawn() -> None:
    """Two gates of one name, two calls of one reply with one id, an answer of zero, a condition on a server's tool."""
    drawn = [story_from_seed(seed) for seed in range(1500)]
    replies = [reply for story in drawn for script in story.agents.values() for reply in script.all_replies]
    named = [{tool.approval for tool in story.tools if tool.called == "find"} for story in drawn]
    ids = [[call.id for call in reply.calls if call.id is not None] for reply in replies]

    served = [[tool.server for tool in story.tools if tool.kind == "mcp"] for story in drawn]

    failing = [
        tool for story in drawn for tool in story.tools if tool.kind == "hosted_mcp" and tool.behaviours[0].raises
    ]

    assert [] != failing
    assert any(len(servers) > len(set(servers)) for servers in served)
    assert any(approvals == {"always", "never"} for approvals in named)
    assert any(len(each) > len(set(each)) for each in ids)
    assert any(reply.answer == {"total": 0} for reply in replies)
    assert any(tool.kind == "mcp" and isinstance(tool.approval, Condition) for story in drawn for tool in story.tools)


ASKED = [*ELICITATION_FEATURES, "parallel", "restart", "several_turns"]


@pytest.mark.parametrize("name", ELICITATION_FEATURES)
def test_what_servers_ask_is_drawn(name: str) -> None:
    """In most stories that are to have it, and each of them is valid."""
    drawn = [story_from_seed(seed, features=(name,)) for seed in range(60)]

    assert [] == invalid(drawn)
    assert 40 < len([story for story in drawn if name in find_features(story)])


def test_a_server_asks_with_and_without_an_approval_before_it() -> None:
    """Its tool is gated always, never, or on a condition; a form has fields of every type, and some are optional."""
    drawn = [story_from_seed(seed, features=("elicitation", "condition")) for seed in range(150)]
    asking = [tool for story in drawn for tool in story.tools if any(each.elicits for each in tool.all_behaviours)]
    fields = [
        field for tool in asking for each in tool.all_behaviours if each.elicits for field in each.elicits.form.values()
    ]

    assert {"always", "never", "condition"} == {
        "condition" if isinstance(tool.approval, Condition) else tool.approval for tool in asking
    }
    assert {"string", "integer", "number", "boolean"} == {field.type for field in fields}
    assert {True, False} == {field.required for field in fields}


def test_most_questions_of_servers_are_answered() -> None:
    """The answers are to accept, to decline and to cancel; zero is an answer, too."""
    drawn = [story_from_seed(seed, features=ASKED) for seed in range(150)]
    answers = [
        answer
        for story in drawn
        for step in all_steps(story)
        if isinstance(step, TurnStep)
        for answer in step.elicitations.values()
    ]

    assert {"accept", "decline", "cancel"} == {answer.action for answer in answers}
    assert any(
        value == 0 and not isinstance(value, bool) for each in answers for value in (each.content or {}).values()
    )


def test_some_questions_of_servers_are_not_answered() -> None:
    """No step says what the caller answers."""
    drawn = [story_from_seed(seed, features=("elicitation", "several_turns")) for seed in range(60)]

    assert any(not any(getattr(step, "elicitations", {}) for step in all_steps(story)) for story in drawn)


def test_a_gate_that_is_turned_is_decided_by_nothing_else() -> None:
    """A changed story says of a gate by annotations that it is always or never there."""
    found = find_scenarios([stock_folder()])
    story = load_scenario(found["annotations/nothing-is-said"], root=stock_folder())
    changed = [vary(choices_from_seed(seed), story, None) for seed in range(80)]
    tools = [tool for each in changed for tool in each.tools if tool.by_annotations]

    assert [] == [tool for tool in tools if tool.approval != "always"]
    assert any(tool.approval == "never" for each in changed for tool in each.tools)


def test_an_agent_that_cannot_ask_gets_no_server_that_asks() -> None:
    """No story that is drawn for it has one."""
    mute = frozenset(CAPABILITIES) - {"elicitation", "elicitation_url"}
    drawn = [story_from_seed(seed, mute) for seed in range(60)]

    assert [] == [story for story in drawn if find_features(story) & set(ELICITATION_FEATURES)]


@pytest.mark.parametrize("name", ANNOTATION_FEATURES)
def test_what_servers_say_about_tools_is_drawn(name: str) -> None:
    """In all stories that are to have it, and each of them is valid."""
    drawn = [story_from_seed(seed, features=(name,)) for seed in range(60)]

    assert [] == invalid(drawn)
    assert [] == [story for story in drawn if name not in find_features(story)]


def test_an_application_decides_by_annotations_that_are_drawn() -> None:
    """Some calls wait and some run, in both agents; what is said may be nothing, or contradict itself."""
    drawn = [story_from_seed(seed, features=("annotations", "annotations_in_agent")) for seed in range(60)]
    tools = [tool for story in drawn for tool in story.tools if tool.by_annotations]

    expected = {("main", "always"), ("main", "never"), ("helper", "always"), ("helper", "never")}
    assert expected == {(tool.agent, tool.approval) for tool in tools}
    assert any(not tool.annotations for tool in tools)
    assert any({"readOnlyHint", "destructiveHint"} <= {*tool.annotations} for tool in tools)


def test_a_restart_brings_other_annotations() -> None:
    """Of a tool whose calls waited and of one whose calls ran; calls of it follow the restart."""
    drawn = [story_from_seed(seed, features=("annotations_changed",)) for seed in range(60)]
    changed = [
        (tool.approval, decide_by(step.annotations[tool.key]))
        for story in drawn
        for step in all_steps(story)
        if isinstance(step, RestartStep)
        for tool in story.tools
        if tool.key in step.annotations
    ]

    assert {("always", "never"), ("never", "always")} < {*changed}


def test_annotations_that_nobody_reads_are_drawn() -> None:
    """A gated tool that its server calls harmless, a free one that it calls destructive, and a condition."""
    drawn = [story_from_seed(seed, features=("annotations_unread", "condition")) for seed in range(60)]
    unread = [tool for story in drawn for tool in story.tools if tool.annotations and not tool.by_annotations]

    assert {("always", "never"), ("never", "always"), ("condition", "never")} == {
        ("condition" if isinstance(tool.approval, Condition) else tool.approval, decide_by(tool.annotations))
        for tool in unread
    }


def test_an_agent_that_reads_no_annotations_decides_by_none() -> None:
    """Its servers may say something, but nothing comes of it."""
    blind = frozenset(CAPABILITIES) - {"annotations"}
    drawn = [story_from_seed(seed, blind) for seed in range(200)]

    assert {"annotations_unread"} == {name for story in drawn for name in find_features(story) & {*ANNOTATION_FEATURES}}


# --- profiles and features --------------------------------------------------------------------------------------------


def test_the_realistic_profile_draws_what_has_a_source() -> None:
    """A feature without a source is not drawn."""
    drawn = {name for seed in range(400) for name in draw_features(choices_from_seed(seed), None, "realistic")}

    sourced = {name for name, feature in FEATURES.items() if feature.source}
    assert set(REASONING_FEATURES) <= sourced
    assert sourced - set(REASONING_FEATURES) == drawn


def test_the_adversarial_profile_draws_every_feature() -> None:
    """Those without a source, too."""
    drawn = {name for seed in range(600) for name in draw_features(choices_from_seed(seed), None, "adversarial")}

    assert set(FEATURES) - set(REASONING_FEATURES) == drawn


def test_pairs_are_those_of_the_features() -> None:
    """Each pair once, in alphabetical order."""
    story = story_from_seed(3)
    found = sorted(find_features(story))

    assert len(found) * (len(found) - 1) // 2 == len(feature_pairs(story))
    assert all(one < other for one, other in feature_pairs(story))


# --- determinism ------------------------------------------------------------------------------------------------------

_PRINT_DIGEST = """
import hashlib
from pytest_approvals.scenario.generation import story_from_seed
print(hashlib.sha256("\\n".join(repr(story_from_seed(seed)) for seed in range(40)).encode()).hexdigest())
"""


def test_the_hash_seed_changes_no_story() -> None:
    """Another process draws the same stories, in whatever order its sets are."""
    environment = {**os.environ, "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"}
    printed = subprocess.run(
        [sys.executable, "-c", _PRINT_DIGEST], env=environment, capture_output=True, text=True, check=True
    )

    assert digest(map(story_from_seed, range(40))) == printed.stdout.strip()


# --- crossings and neighbours -----------------------------------------------------------------------------------------


def test_crossed_stories_are_valid(catalogue: list[Scenario]) -> None:
    """A feature of one story goes into another one, and nothing is expected of the result any more."""
    crossed = [cross(choices_from_seed(seed), catalogue, None) for seed in range(100)]

    assert [] == invalid(crossed)
    assert [] == [story.title for story in crossed if story.reaches or story.expect.runs is not None]


def test_neighbours_are_valid_and_differ(catalogue: list[Scenario]) -> None:
    """Nine in ten differ from the story that they are made from."""
    pairs = [(story, vary(choices_from_seed(seed), story, None)) for seed, story in enumerate(catalogue * 2)]
    equal = [story.id for story, other in pairs if (story.tools, story.agents, release(story, "").caller)
             == (other.tools, other.agents, other.caller)]  # fmt: skip

    assert [] == invalid(other for _, other in pairs)
    assert len(equal) <= len(pairs) // 10


@pytest.mark.parametrize("name", GRAFTS)
def test_a_graft_brings_its_feature(name: str, catalogue: list[Scenario]) -> None:
    """In some story of the catalogue that has it not."""
    without = [release(story, story.title) for story in catalogue if name not in find_features(story)]
    grown = (try_graft(choices_from_seed(seed), story, GRAFTS[name], None) for seed, story in enumerate(without))

    assert any(name in find_features(story) for story in grown)


def test_nothing_is_added_that_an_agent_cannot_play(catalogue: list[Scenario]) -> None:
    """An agent without capabilities gets no feature that needs one."""
    crossed = [cross(choices_from_seed(seed), catalogue[:1], frozenset()) for seed in range(40)]
    allowed = find_features(release(catalogue[0], "x"))
    added = {name for story in crossed for name in find_features(story) - allowed}

    assert set() == {name for name in added if FEATURES[name].needs or FEATURES[name].saves}


def test_crossings_and_neighbours_shrink_to_the_first_story(catalogue: list[Scenario]) -> None:
    """They are strategies, too."""
    assert "crossed with" in find(crossings(catalogue[:3]), lambda story: True, settings=QUIET).title
    assert f"{catalogue[0].title}, changed" == find(neighbours(catalogue[0]), lambda _: True, settings=QUIET).title


def test_no_stories_cannot_be_crossed() -> None:
    """The error says what is missing."""
    with pytest.raises(UsageError) as caught:
        crossings([])

    assert "No stories to cross; give at least one." == str(caught.value)


def test_reasoning_changes_nothing_else_of_a_story() -> None:
    """An agent without it plays the same stories, and the model reasons in some of them."""
    capabilities = frozenset(CAPABILITIES)
    silent = capabilities - set(REASONING_FEATURES)
    found: set[str] = set()
    for seed in range(120):
        story = story_from_seed(seed, capabilities)
        found |= find_features(story) & set(REASONING_FEATURES)

        assert story_from_seed(seed, silent) == _without_reasoning(story)

    assert set(REASONING_FEATURES) == found


def _without_reasoning(story: Scenario) -> Scenario:
    def strip(reply: ScriptedReply) -> ScriptedReply:
        calls = tuple(replace(call, thinks=None) for call in reply.calls)
        return replace(reply, thinks=None, redacted=False, calls=calls)

    agents = {
        name: Script(
            replies=tuple(map(strip, script.replies)),
            by_prompt={prompt: tuple(map(strip, replies)) for prompt, replies in script.by_prompt.items()},
        )
        for name, script in story.agents.items()
    }
    return replace(story, agents=agents)
