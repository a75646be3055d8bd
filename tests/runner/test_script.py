"""How the scripted model distinguishes conversations."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_approvals.agent_side.contract import ANY_AGENT, Item, Parameter
from pytest_approvals.agent_side.contract.types import Chunk
from pytest_approvals.runner.script import EditedCall, ScriptedCall, ScriptState, find_conversation
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Tool

STORY = """
title: A story
tools:
  delegate: {parameters: {input: string}, runs: helper}
  helper/pay: {parameters: {amount: integer}}
agents:
  helper:
    model:
      - calls: [{id: h1, tool: pay, arguments: {amount: 5}}]
      - say: Paid.
model:
  - calls: [{id: c1, tool: delegate, arguments: {input: Pay 5}}]
  - say: Done.
"""


def asked(scenario: Any, progress: ScriptState, *items: Item) -> tuple[str, int]:
    """The conversation that an input of the helper's model belongs to, and how many replies it has."""
    conversation = find_conversation(scenario, "helper", items, progress)
    return conversation.name, len(conversation.replies)


def scenario() -> Any:
    return parse_scenario(STORY, name="nested/story", path="story.approval.yaml")


def paid(**more: Any) -> ScriptState:
    """A session whose helper has made its call."""
    made: dict[str, Any] = {"label": "c1/h1", "reply": 1, "agent": "helper", "id": "h1", "tool": "pay"}
    call = ScriptedCall(**{**made, "arguments": {"amount": 5}, **more})
    return ScriptState(calls=[call], delegated={"c1": ("helper", "Pay 5")})


CALL = Item(kind="call", id="h1", tool="pay", arguments={"amount": 5}, message=1)


def test_a_conversation_that_begins_otherwise_is_known_by_its_calls() -> None:
    """An agent that gives a sub-agent another first message after a pause continues with the same script."""
    assert ("c1/helper", 2) == asked(scenario(), paid(), Item(kind="user", text="Clean up"), CALL)


def test_a_call_with_other_arguments_is_of_no_known_conversation() -> None:
    """Sub-agents that run side by side use the same ids."""
    assert ("helper", 2) == asked(scenario(), paid(arguments={"amount": 6}), Item(kind="user", text="Clean up"), CALL)


def test_a_first_message_says_more_than_calls() -> None:
    """If it is known, the calls are not looked at."""
    progress = paid(label="c2/h1")
    progress.delegated["c2"] = ("helper", "Pay 6")

    assert ("c1/helper", 2) == asked(scenario(), progress, Item(kind="user", text="Pay 5"), CALL)


def delegated_at_once(*released: str) -> ScriptState:
    """A session whose main agent has run the helper by two tools at once, of which the first one is gated."""
    made: dict[str, Any] = {"reply": 1, "agent": "main", "arguments": {"input": "Pay 5"}, "runs": "helper"}
    first = ScriptedCall(label="c1", id="c1", tool="urgent", gated=True, **made)
    second = ScriptedCall(label="c2", id="c2", tool="delegate", **made)
    return ScriptState(calls=[first, second], released=set(released))


def test_of_two_calls_that_run_an_agent_a_gated_one_waits() -> None:
    """Nothing else tells them apart if their input is the same."""
    opening = Item(kind="user", text="Pay 5")

    assert "c2/helper" == asked(scenario(), delegated_at_once(), opening)[0]
    assert "c1/helper" == asked(scenario(), delegated_at_once("c1"), opening)[0]


def kept(*then: Item) -> tuple[Item, ...]:
    """What a sub-agent is asked that keeps its first conversation and is run by another call."""
    said = Item(kind="say", text="Paid.", message=3)
    return (Item(kind="user", text="Pay 5"), CALL, said, Item(kind="user", text="Pay 6", message=4), *then)


def delegated_again() -> ScriptState:
    """A session whose main agent has delegated to the helper a second time."""
    declared = scenario().tools[0]
    second = ScriptedCall(
        label="c2", reply=3, agent="main", id="c2", tool="delegate", arguments={"input": "Pay 6"}, declared=declared
    )
    progress = paid()
    progress.calls.append(second)
    return progress


def test_a_sub_agent_that_keeps_its_conversation_begins_anew_with_the_next_call() -> None:
    """Its script is that of the call, whatever comes before the call's message."""
    assert ("c2/helper", 2) == asked(scenario(), delegated_again(), *kept())


def test_a_sub_agent_that_keeps_its_conversation_continues_in_the_newest_part() -> None:
    """After its calls the input ends otherwise, and its last message still tells whose it is."""
    progress = delegated_again()
    asked(scenario(), progress, *kept())

    assert ("c2/helper", 2) == asked(scenario(), progress, *kept(CALL))


def test_a_change_of_the_state_that_leaves_no_json_matches_no_call() -> None:
    """It may replace a quote or a brace; the call is still found by its own arguments."""
    progress = paid()
    progress.rewritten = (("{", "<"), ("<", "{"), ("5", "6"))

    assert progress.calls == list(progress.match_calls("pay", {"amount": 5}, "h1"))
    assert progress.calls == list(progress.match_calls("pay", {"amount": 6}, None))


def test_a_call_without_an_id_is_found_by_what_the_framework_filled_in() -> None:
    """Null stands for a value that the model left out; a call that has it as it is comes first."""
    written, filled = paid().calls[0], paid(label="c1/h2", id="h2", arguments={"amount": 5, "to": None}).calls[0]
    progress = ScriptState(calls=[written, filled], delegated={})

    assert [filled, written] == list(progress.match_calls("pay", {"amount": 5, "to": None}, None))
    assert [] == list(progress.match_calls("pay", {"amount": 5, "to": "Ann"}, None))


def test_an_argument_names_the_agent_that_a_call_runs() -> None:
    """The leader of a team has one tool for all members, and a member's first input has more than the task."""
    arguments = {"member_id": "helper", "task": "Pay 5"}
    made = ScriptedCall(
        label="c1", reply=1, agent="main", id="c1", tool="delegate", arguments=arguments, runs=ANY_AGENT
    )
    items = (Item(kind="other", text="You pay."), Item(kind="user", text="Pay 5"))
    conversations = [
        find_conversation(scenario(), agent, items, ScriptState(calls=[made]), is_attached=True)
        for agent in ("helper", "stranger")
    ]

    assert ["c1/helper", "stranger"] == [conversation.name for conversation in conversations]


@pytest.mark.parametrize(
    ("heirs", "target", "name"),
    [
        ((), "helper", "helper"),
        (("helper",), "stranger", "main"),
        ((ANY_AGENT,), "helper", "main"),
        ((ANY_AGENT,), "stranger", "helper"),
    ],
)
def test_an_agent_to_which_no_call_hands_over_has_a_conversation_of_its_own(
    heirs: tuple[str, ...], target: str, name: str
) -> None:
    """It is run by the user's code, such as a graph of several agents."""
    arguments = {"agent_name": target}
    made = ScriptedCall(label="c1", reply=1, agent="main", id="c1", tool="transfer_to_agent", arguments=arguments)
    items = (Item(kind="user", text="Pay 5"),)
    found = find_conversation(scenario(), "helper", items, ScriptState(calls=[made]), is_attached=True, heirs=heirs)

    assert name == found.name


def test_a_value_that_was_left_out_may_be_shown_as_null() -> None:
    """A request under an id that the framework made up is about the call, unless another one has that null."""
    plain = ScriptedCall(label="c1", reply=1, agent="main", id=None, tool="pay", arguments={"amount": 5})
    state = ScriptState(calls=[plain])
    shown = {"amount": 5, "note": None}

    assert plain == state.find_match("pay", shown, "made-up")

    explicit = ScriptedCall(label="c2", reply=1, agent="main", id=None, tool="pay", arguments=shown)
    state.calls.append(explicit)
    assert explicit == state.find_match("pay", shown, "made-up")


def test_a_made_up_id_is_of_the_call_without_one() -> None:
    """Of two calls with equal arguments, the other one is known by its own id."""
    named = ScriptedCall(label="c1", reply=1, agent="main", id="c1", tool="pay", arguments={"amount": 5})
    nameless = ScriptedCall(label="c2", reply=1, agent="main", id=None, tool="pay", arguments={"amount": 5})
    state = ScriptState(calls=[named, nameless])

    assert nameless == state.find_match("pay", {"amount": 5}, "made-up")
    assert named == state.find_match("pay", {"amount": 5}, "c1")


def test_a_made_up_id_is_of_the_call_without_one_whose_text_reads_as_the_value() -> None:
    """An agent may show the value as its tool takes it."""
    pay = Tool(name="pay", parameters={"amount": Parameter(type="integer")})
    both = [
        ScriptedCall(label=f"c{n}", reply=1, agent="main", id=id_, tool="pay", arguments={"amount": "5"}, declared=pay)
        for n, id_ in enumerate(("c0", None))
    ]

    assert both[1] == ScriptState(calls=both).find_match("pay", {"amount": 5}, "made-up")
    assert ScriptState(calls=both).find_match("pay", {"amount": 6}, "made-up") is None


def test_an_agent_may_show_a_value_as_its_tool_takes_it_since_a_restart() -> None:
    """The parameters of the tool are others than those that the scenario declares for it."""
    pay = Tool(name="pay", parameters={"amount": Parameter(type="string")})
    call = ScriptedCall(label="c1", reply=1, agent="main", id="c1", tool="pay", arguments={"amount": "5"}, declared=pay)
    changed = {"pay": {"amount": Parameter(type="integer")}}

    assert call == ScriptState(calls=[call], parameters=changed).copy().find_match("pay", {"amount": 5}, "c1-1")
    assert ScriptState(calls=[call]).find_match("pay", {"amount": 5}, "c1-1") is None


def test_a_made_up_id_is_of_the_latest_reply() -> None:
    """A call without an id in an earlier reply has been settled before the next reply."""
    nameless = ScriptedCall(label="c1", reply=1, agent="main", id=None, tool="pay", arguments={"amount": 5})
    named = ScriptedCall(label="c2", reply=2, agent="main", id="c2", tool="pay", arguments={"amount": 5})

    assert named == ScriptState(calls=[nameless, named]).find_match("pay", {"amount": 5}, "made-up")


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        pytest.param("o2", "o2/c1", id="the model outside has replied since"),
        pytest.param("o1/c2", "o1/c1", id="the model inside has replied since"),
    ],
)
def test_a_made_up_id_that_comes_again_is_of_an_agent_that_is_still_at_work(between: str, expected: str) -> None:
    """A call of an agent inside is over when the model outside has replied, whatever id it had."""
    first, other, second = (
        ScriptedCall(label=label, reply=n, agent="helper", id=None, tool=tool, arguments={"amount": 5})
        for n, (label, tool) in enumerate([("o1/c1", "pay"), (between, "ask"), ("o2/c1", "pay")])
    )
    state = ScriptState(calls=[first])
    state.note_id(first, "call-1")
    state.calls += [other, second]

    found = state.find_match("pay", {"amount": 5}, "call-1", "helper")

    assert found is not None
    assert expected == found.label


def test_an_id_of_a_chunk_is_of_the_call_that_was_streamed_with_it() -> None:
    """An id that only a stream gives a call is no made up id of an equal call without one."""
    named, nameless = (
        ScriptedCall(label=label, reply=1, agent="main", id=call_id, tool="pay", arguments={"amount": 5})
        for label, call_id in (("c1", "c1"), ("c2", None))
    )
    state = ScriptState(calls=[named, nameless])
    state.note_streamed_ids(["c1", "c2"], [Chunk(call=0, id="c1-4")])

    assert named == state.find_match("pay", {"amount": 5}, "c1-4")
    assert nameless == state.find_match("pay", {"amount": 5}, "call-1")


def test_an_id_of_the_agents_own_is_of_the_call_that_had_it_before() -> None:
    """An earlier one of two equal calls is known by the id under which the agent ran it."""
    first, second = (
        ScriptedCall(label=f"c{n}", reply=n, agent="main", id=f"c{n}", tool="pay", arguments={"amount": 5})
        for n in (1, 2)
    )
    state = ScriptState(calls=[first])
    state.note_id(first, "own-1")
    state.calls.append(second)

    assert first == state.find_match("pay", {"amount": 5}, "own-1")
    assert second == state.find_match("pay", {"amount": 5}, "own-2")


def test_an_id_of_the_agents_own_is_not_of_a_call_that_has_kept_the_models() -> None:
    """Of two equal calls with one id, the agent gives another id to the one that has not been asked about yet."""
    first, second = (
        ScriptedCall(label=f"c{n}", reply=1, agent="main", id="c4", tool="pay", arguments={"amount": 5}) for n in (1, 2)
    )
    state = ScriptState(calls=[first, second])
    state.note_id(first, "c4")

    assert second == state.copy().find_match("pay", {"amount": 5}, "c4-2")


def test_an_edited_call_is_known_by_its_new_arguments() -> None:
    """Of two calls with one id, each of another agent inside, the one that an edit gave these arguments is executed."""
    first, second = (
        ScriptedCall(label=f"o{n}/h1", reply=n, agent="helper", id="h1", tool="pay", arguments={"amount": n})
        for n in (1, 2)
    )
    edited = EditedCall(tool=None, arguments={"amount": 11})

    assert first == ScriptState(calls=[first, second], edits={"o1/h1": (edited,)}).find_match(
        "pay", {"amount": 11}, "h1"
    )
    assert second == ScriptState(calls=[first, second], edits={"o2/h1": (edited,)}).find_match(
        "pay", {"amount": 11}, "h1"
    )
