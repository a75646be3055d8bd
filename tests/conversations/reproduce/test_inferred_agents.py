"""Agents that a stored conversation implies: hand-offs, and agents that run inside of a tool."""

from __future__ import annotations

import json
from typing import Any

from pytest_approvals.conversations.histories.readers import FormatDetector
from pytest_approvals.conversations.reproduce.anonymize import anonymize
from pytest_approvals.conversations.reproduce.draft import ScenarioDraft
from pytest_approvals.conversations.reproduce.from_conversation import build_draft
from pytest_approvals.conversations.reproduce.reproducer import REFERENCE
from pytest_approvals.conversations.reproduce.scenario_document import build_document
from pytest_approvals.conversations.reproduce.shrink import shrink
from pytest_approvals.conversations.reproduce.trials import TrialAgent


def draft_of(document: Any, *gated: str) -> ScenarioDraft:
    return build_draft(FormatDetector().read(json.loads(json.dumps(document))), gated)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": json.dumps(arguments)}


def result(call_id: str, output: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def hand_off(call_id: str, agent: str) -> dict[str, Any]:
    return result(call_id, json.dumps({"assistant": agent}))


def say(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


HANDED_BACK = [
    user("Delete the draft, then the account"),
    call("t1", "to_clerk"), hand_off("t1", "Clerk (EU)"),
    call("c1", "delete", what="the draft"), result("c1", "deleted the draft"),
    call("t2", "back"), hand_off("t2", "Front desk"),
    call("c2", "delete", what="the account"), result("c2", "deleted the account"),
    say("Done."),
]  # fmt: skip


def paused_run(*, requests: list[dict[str, Any]]) -> dict[str, Any]:
    """A RunState whose model called `delegate`, with requests about calls of the agent inside."""
    outer = call("o1", "delegate", input="Pay 5 and 6")
    items = [{"type": "tool_call_item", "raw_item": outer, "agent": {"name": "main"}}]
    items += [{"type": "tool_approval_item", "raw_item": each, "agent": {"name": "helper"}} for each in requests]
    return {"$schemaVersion": "1.10", "original_input": "Pay 5 and 6", "session_items": items, "context": {}}


def test_a_hand_off_shows_in_its_result() -> None:
    """What follows is called by the other agent, and an agent that was never named is the first one."""
    document = build_document(draft_of(HANDED_BACK, "delete"))

    assert {
        "to_clerk": {"hands_over_to": "clerk__eu"},
        "clerk__eu/delete": {"approval": "always", "parameters": {"what": "string"}, "returns": "deleted {what}"},
        "clerk__eu/back": {"hands_over_to": "main"},
        "delete": {"approval": "always", "parameters": {"what": "string"}, "returns": "deleted {what}"},
    } == document["tools"]
    assert ["to_clerk", "clerk__eu/delete", "clerk__eu/back", "delete"] == [
        called["tool"] for reply in document["model"] for called in reply.get("calls", ())
    ]


def test_a_story_with_a_hand_off_is_sound() -> None:
    """Nothing fails in it on the reference agent."""
    assert TrialAgent(REFERENCE).is_valid(draft_of(HANDED_BACK, "delete"))


def test_a_result_that_only_looks_like_a_hand_off_is_none() -> None:
    """One that says more than a name."""
    other = [*HANDED_BACK[:2], result("t1", '{"assistant": "clerk", "since": 2020}'), say("Done.")]

    assert {"to_clerk": {"returns": '("assistant": "clerk", "since": 2020)'}} == build_document(draft_of(other))[
        "tools"
    ]


def test_requests_about_calls_that_the_model_never_made_are_of_an_agent_inside() -> None:
    """Their calls are those of an agent that the last open call runs, and the decisions name both."""
    document = build_document(draft_of(paused_run(requests=[call("h1", "pay", amount=5), call("h2", "pay", amount=6)])))

    assert {"parameters": {"input": "string"}, "runs": "helper"} == document["tools"]["delegate"]
    assert {"approval": "always", "parameters": {"amount": "integer"}} == document["tools"]["helper/pay"]
    inner = [
        {"id": "c2", "tool": "pay", "arguments": {"amount": 5}},
        {"id": "c3", "tool": "pay", "arguments": {"amount": 6}},
    ]
    assert {"helper": {"model": [{"calls": inner}, {"say": "Done."}]}} == document["agents"]


def test_a_story_with_an_agent_inside_is_sound() -> None:
    """It pauses on the reference agent as the stored one did, and nothing fails."""
    draft = draft_of(paused_run(requests=[call("h1", "pay", amount=5)]))
    agent = TrialAgent(REFERENCE)

    assert agent.is_valid(draft)
    assert 1 <= agent.count_reached(draft)["paused"]


def test_arguments_that_a_stream_has_damaged_are_left_out() -> None:
    """Somebody was asked about the call, so the model's own could be read."""
    damaged = {**call("h1", "pay"), "arguments": '{"a{"amoumount"nt": 5: 6}}'}
    document = build_document(draft_of(paused_run(requests=[damaged])))

    assert [{"id": "c2", "tool": "pay"}] == document["agents"]["helper"]["model"][0]["calls"]


def test_the_agent_inside_goes_with_the_call_that_runs_it() -> None:
    """A smaller story has neither."""
    draft = draft_of(paused_run(requests=[call("h1", "pay", amount=5)]))
    small = build_document(shrink(draft, lambda candidate: True))

    assert "agents" not in small
    assert "tools" not in small


def test_what_the_agent_inside_said_is_made_up_too() -> None:
    """No text or argument of its calls is left."""
    draft = draft_of(paused_run(requests=[call("h1", "pay", to="bob@example.org")]))

    assert "bob@" not in json.dumps(build_document(anonymize(draft)))
