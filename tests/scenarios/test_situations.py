"""
The catalogue holds every situation that the scenario language is made for.

Each line names one and says how to recognise a story with it; some story of the catalogue must have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest

from pytest_approvals.agent_side.contract.capabilities import CAPABILITIES
from pytest_approvals.agent_side.contract.types import Condition
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.labels import find_tool
from pytest_approvals.scenario.load import load_catalogue
from pytest_approvals.scenario.model import (
    Call,
    CancelStep,
    LeaveStep,
    LetOracleStep,
    RestartStep,
    RestoreStep,
    SaveStep,
    Scenario,
    ScriptedDecision,
    ScriptedReply,
    SignalStep,
    StageStep,
    Step,
    TogetherStep,
    Tool,
    ToolBehaviour,
    TrimStep,
    TurnStep,
    all_replies,
    all_steps,
)
from pytest_approvals.scenario.requirements import required_by_content
from pytest_approvals.scenario.vocabulary import DIMENSIONS, PARAMETER_TYPES, REACHES

CATALOGUE = load_catalogue([stock_folder()])

Situation = Callable[[Scenario], object]


# --- reading a story --------------------------------------------------------------------------------------------------


def steps(story: Scenario, *kinds: type[Step]) -> list[Any]:
    return [step for step in all_steps(story) if isinstance(step, kinds or (object,))]


def answers(story: Scenario) -> Iterator[ScriptedDecision]:
    return (answer for step in steps(story, TurnStep, StageStep) for answer in step.answers)


def submissions(story: Scenario) -> Iterator[Sequence[str]]:
    """The verdicts of each submission, in their order."""
    return ([answer.verdict for answer in turn.answers] for turn in steps(story, TurnStep))


def about_one_call(story: Scenario) -> Iterator[Sequence[str]]:
    """The verdicts of several answers about one call in one submission, in their order."""
    for turn in steps(story, TurnStep):
        for label in {answer.label for answer in turn.answers if answer.label is not None}:
            yield [answer.verdict for answer in turn.answers if answer.label == label]


def scripts(story: Scenario) -> Iterator[Sequence[ScriptedReply]]:
    for script in story.agents.values():
        yield script.replies
        yield from script.by_prompt.values()


def calls(story: Scenario) -> Iterator[tuple[Tool | None, Call]]:
    for agent, reply in all_replies(story):
        for call in reply.calls:
            yield find_tool(story, agent, call.tool), call


def behaviours(story: Scenario) -> Iterator[ToolBehaviour]:
    return (one for tool in story.tools for several in (tool.behaviours, *tool.per_call.values()) for one in several)


def conditions(story: Scenario) -> Iterator[Condition]:
    return (tool.approval for tool in story.tools if isinstance(tool.approval, Condition))


def misfits(story: Scenario) -> Iterator[tuple[Tool, Mapping[str, Any]]]:
    """Calls of known tools with arguments that do not fit, on purpose."""
    for tool, call in calls(story):
        if tool is not None and call.invalid and isinstance(call.arguments, Mapping):
            yield tool, call.arguments


def texts_for_numbers(story: Scenario) -> Iterator[str]:
    for tool, arguments in misfits(story):
        for name, value in arguments.items():
            if name in tool.parameters and tool.parameters[name].type == "integer" and isinstance(value, str):
                yield value


def behind_calls(story: Scenario) -> Iterator[ScriptedReply]:
    """Replies right after one with calls."""
    for replies in scripts(story):
        yield from (after for before, after in pairwise(replies) if before.calls)


def raw(*values: Any) -> Situation:
    return lambda story: [one for one in answers(story) if one.verdict == "raw" and any(one.raw is v for v in values)]


def raw_kind(kind: type) -> Situation:
    return lambda story: [one for one in answers(story) if one.verdict == "raw" and type(one.raw) is kind]


def needs(capability: str) -> Situation:
    return lambda story: capability in required_by_content(story)


def one_after_the_other(first: str, second: str) -> Situation:
    """Two calls of one reply, decided in one submission in this order."""
    return lambda story: any(
        first in verdicts and second in verdicts[verdicts.index(first) + 1 :] for verdicts in submissions(story)
    )


def contradicts(first: str, second: str) -> Situation:
    return lambda story: any([first, second] == list(verdicts) for verdicts in about_one_call(story))


def right_after_malformed(story: Scenario) -> bool:
    wrong: set[str | None] = set()
    for turn in steps(story, TurnStep):
        if any(answer.label in wrong and answer.verdict != "raw" for answer in turn.answers):
            return True
        wrong |= {answer.label for answer in turn.answers if answer.verdict == "raw"}
    return False


def one_more_message(story: Scenario) -> bool:
    """A message is the last that the caller does, after an answer."""
    turns = [step for step in steps(story) if not isinstance(step, LeaveStep)]
    last = turns[-1] if turns else None
    answered = any(isinstance(step, LetOracleStep) or getattr(step, "answers", ()) for step in turns[:-1])
    return isinstance(last, TurnStep) and last.text is not None and not last.answers and answered


def answers_after_a_message(story: Scenario) -> bool:
    """An answer that comes when something else was said since the question."""
    turns = steps(story, TurnStep)
    went_on = [k for k, turn in enumerate(turns) if k > 0 and turn.text is not None and not turn.answers]
    late = went_on and any(turn.answers for turn in turns[went_on[0] :])
    return "message_while_pending" in required_by_content(story) and bool(late)


def rounds(story: Scenario) -> int:
    return sum(bool(turn.answers) for turn in steps(story, TurnStep))


# --- what there must be -----------------------------------------------------------------------------------------------

TOOLS: dict[str, Situation] = {
    "always gated": lambda story: any(tool.approval == "always" for tool in story.tools),
    "never gated": lambda story: any(tool.approval == "never" for tool in story.tools),
    **{
        f"gated where an argument is {name}": lambda story, name=name: [
            one for one in conditions(story) if getattr(one, name) not in (None, ())
        ]
        for name in ("greater_than", "less_than", "equals", "starts_with", "one_of")
    },
    "a condition that is slow": lambda story: [one for one in conditions(story) if one.waits_for],
    "a condition that raises": lambda story: [one for one in conditions(story) if one.raises],
    "a condition that changes its mind to no": lambda story: (
        (True, False) in [one.answers for one in conditions(story)]
    ),
    "a condition that changes its mind to yes": lambda story: (
        (False, True) in [one.answers for one in conditions(story)]
    ),
    "a condition whose argument is missing": lambda story: [
        call
        for tool, call in calls(story)
        if tool and isinstance(tool.approval, Condition) and isinstance(call.arguments, Mapping)
        if tool.approval.argument and tool.approval.argument not in call.arguments
    ],
    **{
        f"a parameter of type {kind}": lambda story, kind=kind: [
            one for tool in story.tools for one in tool.parameters.values() if one.type == kind
        ]
        for kind in PARAMETER_TYPES
    },
    "coercion of a text to a number": lambda story: [text for text in texts_for_numbers(story) if text.isdecimal()],
    "a default": lambda story: [
        name
        for tool, call in calls(story)
        for name, parameter in (tool.parameters if tool else {}).items()
        if parameter.default is not None and name not in call.arguments
    ],
    "an extra field": lambda story: [
        name for tool, arguments in misfits(story) for name in arguments if name not in tool.parameters
    ],
    "a field that is missing": lambda story: [
        name for tool, arguments in misfits(story) for name in tool.parameters if name not in arguments
    ],
    "a value that does not fit": lambda story: [text for text in texts_for_numbers(story) if not text.isdecimal()],
    "a tool that raises": lambda story: [one for one in behaviours(story) if one.raises],
    "an approved tool that raises beside one that returns": lambda story: (
        any(one.raises for one in behaviours(story)) and "parallel" in required_by_content(story)
    ),
    **{
        f"a result that is {kind.__name__}": lambda story, kind=kind: [
            one for one in behaviours(story) if type(one.returns) is kind
        ]
        for kind in (str, dict, list, int, type(None))
    },
    "a tool that waits for a signal": lambda story: (
        steps(story, SignalStep) and [one for one in behaviours(story) if one.waits_for]
    ),
    "tools released in another order": lambda story: (
        2 <= sum(bool(one.waits_for and one.waits_for.startswith("ended ")) for one in behaviours(story))
    ),
    "a tool that runs an agent": needs("nested"),
    "several of them at once": needs("nested_parallel"),
    "an agent two levels down": lambda story: 3 <= len(story.agents),
    "a gated tool that runs an agent": lambda story: [
        tool for tool in story.tools if tool.runs and tool.approval == "always"
    ],
    "a second approval in the middle": lambda story: [
        tool for tool in story.tools if tool.approval == "always" and any(one.asks_again for one in tool.behaviours)
    ],
    "a first approval in the middle": lambda story: [
        tool for tool in story.tools if tool.approval == "never" and any(one.asks_again for one in tool.behaviours)
    ],
    "a tool of a connected server": needs("mcp"),
    "a server that the agent starts as a program": lambda story: "stdio" in story.servers.values(),
    "a hosted call": needs("hosted_mcp"),
    "one visible name on two servers": lambda story: [tool for tool in story.tools if tool.called],
    "one name in two agents": lambda story: len({tool.name for tool in story.tools}) < len(story.tools),
    "a limit of model replies": lambda story: story.limits.model_replies,
    "a limit of tool calls": lambda story: story.limits.tool_calls,
}

MODEL: dict[str, Situation] = {
    "text beside calls": needs("text_with_calls"),
    "no call at all": lambda story: not [*calls(story)],
    "all ways to cut a stream": lambda story: "chunking" in story.vary,
    "parallel calls in all ways to cut a stream": lambda story: (
        "chunking" in story.vary and "parallel" in required_by_content(story)
    ),
    **{
        f"failure with {name} right after calls": lambda story, status=status: [
            one
            for one in behind_calls(story)
            if one.failure and one.failure.status == status and one.failure.after_chunks is None
        ]
        for name, status in (("500", 500), ("429", 429), ("a lost connection", 0))
    },
    "a failure before any call": lambda story: [one for one in scripts(story) if one and one[0].failure],
    "a stream that breaks right after calls": lambda story: [
        one for one in behind_calls(story) if one.failure and one.failure.after_chunks is not None
    ],
    "a stream that breaks in a call": lambda story: [one for _, one in all_replies(story) if one.failure and one.calls],
    "an id that comes twice in one reply": lambda story: [
        one for _, one in all_replies(story) if len({call.id for call in one.calls}) < len(one.calls)
    ],
    "an id that comes again in a later reply": lambda story: [
        one for _, one in all_replies(story) if len(one.calls) == 1 and one.calls[0].repeats
    ],
    "no id": needs("missing_ids"),
    "a tool that does not exist": needs("unknown_tools"),
    "arguments that are no JSON": lambda story: [
        call for _, call in calls(story) if isinstance(call.arguments, str) and call.arguments.startswith("{")
    ],
    "arguments that are a list": lambda story: "[5]" in [call.arguments for _, call in calls(story)],
    "arguments that are null": lambda story: "null" in [call.arguments for _, call in calls(story)],
    "arguments that are an empty text": lambda story: "" in [call.arguments for _, call in calls(story)],
    "equal calls": lambda story: story.equal_arguments,
    "replies keyed by the first message": lambda story: story.agents["main"].by_prompt,
    "replies of an agent keyed by its input": lambda story: [
        name for name, script in story.agents.items() if name != "main" and script.by_prompt
    ],
    "a script that runs out": lambda story: "exhausted" in story.reaches,
}

CALLER: dict[str, Situation] = {
    "some requests only": needs("partial_answers"),
    "several rounds": lambda story: 3 <= rounds(story) and "partial_answers" in required_by_content(story),
    "no answer": needs("go_on_without_answer"),
    "a new message while requests are pending": needs("message_while_pending"),
    "a message together with answers": needs("message_with_answers"),
    "a decision repeated at once": contradicts("approve", "approve"),
    "a decision repeated after the call ran": needs("repeated_decision"),
    "a decision repeated after the end": needs("late_decision"),
    "approved and rejected at once": contradicts("approve", "reject"),
    "rejected and approved at once": contradicts("reject", "approve"),
    "approved and edited at once": contradicts("approve", "edit"),
    "an unknown id": lambda story: [one for one in answers(story) if one.unknown_id],
    "nothing for an answer": raw(None),
    "an empty list for an answer": raw_kind(list),
    "a text for an answer": raw_kind(str),
    "a number for an answer": raw_kind(int),
    "a mapping for an answer": raw_kind(dict),
    "no request for a request": lambda story: [one for one in answers(story) if one.malformed_address],
    "malformed, then right": right_after_malformed,
    "changed arguments": needs("edit"),
    "another tool": needs("edit_tool"),
    "an edit that does not fit": lambda story: [one for one in answers(story) if one.verdict == "edit" and one.invalid],
    "a request with tampered arguments": lambda story: [one for one in answers(story) if one.shows and one.label],
    "a request with another tool": lambda story: [one for one in answers(story) if one.shows_tool and one.label],
    "a forged request": lambda story: [one for one in answers(story) if one.shows and one.unknown_id],
    "approval of what was never asked": lambda story: (
        "unknown_request" in required_by_content(story) and not [one for one in answers(story) if one.unknown_id]
    ),
    "an answer after the conversation went on": answers_after_a_message,
    "two answers at the same time": needs("simultaneous"),
    "approve and reject at the same time": lambda story: [
        step
        for step in story.caller or ()
        if isinstance(step, TogetherStep)
        and "reject" in [a.verdict for t in step.steps for a in getattr(t, "answers", ())]
    ],
    **{
        f"{first} before {second} in one submission": one_after_the_other(first, second)
        for standing, explicit in (("always", "reject"), ("never", "approve"))
        for first, second in ((standing, explicit), (explicit, standing))
    },
    "a save that is taken up again": lambda story: steps(story, SaveStep) and steps(story, RestoreStep),
    "an older save that is answered otherwise": lambda story: 2 <= rounds(story) and steps(story, RestoreStep),
    "a decision put into the state": lambda story: steps(story, StageStep),
    "a fresh process": lambda story: [step for step in steps(story, RestartStep) if step.fresh],
    "a cold process": lambda story: "cold" in story.only.get("resume", ()),
    "another process in every mode": lambda story: "resume" in story.vary,
    "a history that is kept in pieces": lambda story: "history" in story.vary,
    "trimming in between": lambda story: steps(story, TrimStep),
    "giving up": lambda story: steps(story, CancelStep),
    "a tool that is gone after a restart": lambda story: [step for step in steps(story, RestartStep) if step.without],
    "a tool that came with a restart": lambda story: [step for step in steps(story, RestartStep) if step.with_tools],
    "nobody answers": lambda story: steps(story, LeaveStep) and not rounds(story),
    "two sessions": needs("sessions"),
    "the request that was held since before the save": lambda story: "held" in story.only.get("source", ()),
    "values of all kinds made up": lambda story: story.fakes,
}

ALL = {
    f"{side}: {name}": found
    for side, situations in (("tools", TOOLS), ("model", MODEL), ("caller", CALLER))
    for name, found in situations.items()
}


@pytest.mark.parametrize("name", ALL)
def test_some_story_has_it(name: str) -> None:
    """The situation comes up in the catalogue."""
    assert [story.id for story in CATALOGUE if ALL[name](story)]


@pytest.mark.parametrize(
    "capability", [name for name in CAPABILITIES if not name.startswith(("serialize.", "answer."))]
)
def test_some_story_needs_the_capability(capability: str) -> None:
    """Nothing that an agent can claim goes without a story, but for what the variants bring."""
    in_variants = {"streaming", "history.append", "fresh", "broken_stream", "changing_ids"}
    assert capability in in_variants or [story.id for story in CATALOGUE if capability in required_by_content(story)]


def test_every_count_is_reached_by_some_story() -> None:
    """Each word of `reaches` guards some story, but for those that come with every save and every provider."""
    named = {word for story in CATALOGUE for word in story.reaches}

    assert {"saved", "model_refused", "refused"} >= set(REACHES) - named


def test_every_way_to_cut_a_stream_is_played() -> None:
    """All values of the dimension stand in some story's variants."""
    varied = [story for story in CATALOGUE if "chunking" in story.vary]

    assert set(DIMENSIONS["chunking"]) == {
        way for story in varied for way in story.only.get("chunking", DIMENSIONS["chunking"])
    }


@pytest.mark.parametrize("family", ["decisions", "failures", "identity", "mixed", "nested", "parallel", "state"])
def test_families_go_on_after_it_all(family: str) -> None:
    """A history that is poisoned shows at the next message, so every family has stories with one."""
    assert 3 <= sum(one_more_message(story) for story in CATALOGUE if story.family == family)


def test_the_plainest_story_has_hardly_any() -> None:
    """A situation is told from its absence: one approved call is a story with one gated tool and nothing else."""
    plainest = next(story for story in CATALOGUE if story.id == "basics/approved")

    assert {"tools: always gated", "tools: a parameter of type string", "tools: a result that is str"} == {
        name for name, found in ALL.items() if found(plainest)
    }
