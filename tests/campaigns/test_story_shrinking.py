"""Shrinking of stories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_approvals.campaigns.story_shrinking import describe_shape, describe_story, is_valid, shrink_story
from pytest_approvals.scenario.generation import story_from_seed
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import (
    RestartStep,
    Scenario,
    SignalStep,
    TogetherStep,
    TurnStep,
    all_replies,
    all_steps,
    crash_places,
)
from pytest_approvals.scenario.to_file import format_scenario

STORY = """\
title: Untitled
tools:
  pay: {approval: always, parameters: {amount: integer}}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 1}}, {id: c2, tool: pay, arguments: {amount: 2}}]
  - say: Done.
  - say: You are welcome.
caller:
  - send: Pay
  - decide: {c1: approve, c2: approve}
  - send: Thanks
"""


def has_call(story: Scenario) -> bool:
    return any(reply.calls for _, reply in all_replies(story))


def restarts(story: Scenario) -> bool:
    return any(isinstance(step, RestartStep) for step in all_steps(story))


def stories_that(condition: object, count: int) -> list[int]:
    """Return the first seeds whose stories fulfil a condition."""
    assert callable(condition)
    return [seed for seed in range(100) if condition(story_from_seed(seed))][:count]


ASKING = """\
title: Untitled
tools:
  pay:
    kind: mcp
    server: bank
    parameters: {amount: integer}
    elicits: {message: "Pay {amount}?", form: {account: string}}
    returns: paid from {account}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 1}}, {id: c2, tool: pay, arguments: {amount: 2}}]
  - say: Done.
caller:
  - send: Pay
    elicitations: {c1: decline, c2: {accept: {account: savings}}}
"""


def test_an_answer_goes_with_the_call_that_elicits_it() -> None:
    """Of two calls whose server asks, one is left, with its answer."""
    story = parse_scenario(ASKING, name="a/b", path="b.yaml")

    def declines(small: Scenario) -> bool:
        turns = [step for step in all_steps(small) if isinstance(step, TurnStep)]
        return any(answer.action == "decline" for turn in turns for answer in turn.elicitations.values())

    small = shrink_story(story, declines, max_trials=500)

    assert ["c1"] == [call.label for _, reply in all_replies(small) for call in reply.calls]
    assert [["c1"]] == [[*step.elicitations] for step in all_steps(small) if isinstance(step, TurnStep)]


def test_a_question_that_a_failure_does_not_need_is_removed() -> None:
    """No server asks in what is left, and no answer is left over."""
    small = shrink_story(parse_scenario(ASKING, name="a/b", path="b.yaml"), has_call, max_trials=500)

    assert "elicit" not in format_scenario(small)


SAID = """\
title: Untitled
tools:
  pay:
    kind: mcp
    server: bank
    approval: by_annotations
    annotations: {readOnlyHint: true}
    structured_only: true
    misfits_are_errors: true
    parameters: {amount: integer}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 1}}]
  - say: Done.
caller:
  - send: Pay
"""


def test_what_a_server_does_is_removed_with_the_server() -> None:
    """Of a story that fails if there is a call, no server is left."""
    small = shrink_story(parse_scenario(SAID, name="a/b", path="b.yaml"), has_call, max_trials=500)

    assert [("function", "never", False, {})] == [
        (tool.kind, tool.approval, tool.by_annotations, tool.annotations) for tool in small.tools
    ]


def test_a_smaller_gate_by_annotations_is_what_its_file_says() -> None:
    """Each story that is tried is read again as it is."""
    tried: list[Scenario] = []
    shrink_story(
        parse_scenario(SAID, name="a/b", path="b.yaml"), lambda story: bool(tried.append(story)), max_trials=60
    )

    assert len(tried) > 5
    assert [] == [
        story
        for story in tried
        if story.tools != parse_scenario(format_scenario(story), name="a/b", path="b.yaml").tools
    ]


def test_what_a_server_asks_is_part_of_the_shape() -> None:
    """A story with an answer differs from one without."""
    story = parse_scenario(ASKING, name="a/b", path="b.yaml")
    accepting = parse_scenario(ASKING.replace("c1: decline, ", ""), name="a/b", path="b.yaml")

    assert describe_shape(story) != describe_shape(accepting)


@pytest.mark.parametrize("seed", stories_that(has_call, 6))
def test_what_a_failure_does_not_need_is_removed(seed: int) -> None:
    """Of a story that fails if there is a call, one plain call is left."""
    small = shrink_story(story_from_seed(seed), has_call, max_trials=2_000)

    assert 1 == sum(len(reply.calls) for _, reply in all_replies(small))
    assert 9 > len(format_scenario(small).splitlines())


@pytest.mark.parametrize("seed", stories_that(restarts, 4))
def test_what_a_failure_needs_is_kept(seed: int) -> None:
    """Of a story that fails if the agent restarts, the plainest restart is left."""
    small = shrink_story(story_from_seed(seed), restarts, max_trials=2_000)

    assert [RestartStep(session="")] == [step for step in all_steps(small) if isinstance(step, RestartStep)]
    assert 2 >= len(small.caller or ())


@pytest.mark.parametrize("seed", range(5))
def test_each_story_that_is_tried_is_valid(seed: int) -> None:
    """An agent never has to play a story that a file could not hold."""
    tried: list[Scenario] = []
    shrink_story(story_from_seed(seed), lambda story: not tried.append(story), max_trials=60)  # type: ignore[func-returns-value]

    assert tried
    assert all(map(is_valid, tried))


REPEATED = """\
title: Untitled
tools:
  pay: {approval: always, parameters: {amount: integer}}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 1}}]
  - calls: [{id: c1, tool: pay, arguments: {amount: 2}, repeats: true}]
  - say: Done.
caller:
  - send: Pay
  - decide: {c1: approve}
  - decide: {"c1#2": approve}
"""


def test_a_repeated_id_outlives_the_call_that_had_it_first() -> None:
    """The call that is left does not repeat it any more, so that a file can hold the story."""
    story = parse_scenario(REPEATED, name="a/b", path="b.approval.yaml")
    small = shrink_story(
        story, lambda left: any(call.label == "c1#2" for _, reply in all_replies(left) for call in reply.calls),
        max_trials=100,
    )  # fmt: skip

    text = format_scenario(small)
    assert "repeats" not in text
    assert small.agents == parse_scenario(text, name="a/b", path="b.approval.yaml").agents


def test_the_same_story_shrinks_to_the_same_story() -> None:
    """Shrinking follows from the story alone."""
    story = story_from_seed(11)
    assert shrink_story(story, has_call, max_trials=500) == shrink_story(story, has_call, max_trials=500)


def test_the_number_of_trials_is_kept() -> None:
    """A story that does not get smaller soon is left as it is then."""
    tried: list[Scenario] = []
    large = max(map(story_from_seed, range(5)), key=lambda story: len(repr(story)))
    shrink_story(large, lambda story: bool(tried.append(story)), max_trials=7)  # type: ignore[func-returns-value]

    assert 7 == len(tried)


def test_a_signal_goes_with_what_waits_for_it() -> None:
    """Neither could be removed alone, since the other one would be a mistake then."""
    seeds = stories_that(lambda story: any(isinstance(step, SignalStep) for step in all_steps(story)), 1)
    small = shrink_story(story_from_seed(seeds[0]), has_call, max_trials=2_000)

    assert [] == [step for step in all_steps(small) if isinstance(step, SignalStep | TogetherStep)]


def test_the_title_says_what_the_caller_does() -> None:
    """The first message goes without saying, and what is done again is counted."""
    story = parse_scenario(STORY, name="a/b", path="b.approval.yaml")

    assert "A call of pay is approved twice, a message is sent" == describe_story(story)


def test_a_crash_that_a_failure_does_not_need_is_removed() -> None:
    """One that it needs is in the title and in the shape."""
    story = parse_scenario(f"{STORY}  - {{go_on: true, crashes: outcome}}\n", name="a/b", path="b.approval.yaml")

    assert [] == crash_places(shrink_story(story, has_call, max_trials=200))
    assert ["outcome"] == crash_places(shrink_story(story, lambda each: bool(crash_places(each)), max_trials=200))
    assert describe_story(story).endswith("the agent resumes without an answer, the process is killed")
    assert "TurnStep crashes" in describe_shape(story)


def test_stories_of_one_shape_differ_in_names_and_values_only() -> None:
    """The shape of a story says what is done, and not to what."""
    one = parse_scenario(STORY, name="a/b", path="b.approval.yaml")
    renamed = replace(one.tools[0], description="Something else")
    turn = TurnStep(text="Another text")

    assert describe_shape(one) == describe_shape(replace(one, title="Another", tools=(renamed, *one.tools[1:])))
    assert describe_shape(one) == describe_shape(replace(one, caller=(turn, *(one.caller or ())[1:])))
    assert describe_shape(one) != describe_shape(replace(one, caller=(turn, *(one.caller or ()))))
