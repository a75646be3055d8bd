"""States of several frameworks that lost a part: one list holds what another one lacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.conversations.histories.conversation import RequestEntry
from pytest_approvals.conversations.histories.readers import FormatDetector
from pytest_approvals.conversations.lint import lint_conversation

Json = dict[str, Any]

STORED = Path(__file__).parents[1] / "histories/stored"
CORPUS = Path(__file__).parents[1] / "corpus"


def find(document: Any) -> list[str]:
    """Return the mistakes that the linter finds in a document."""
    found = lint_conversation(FormatDetector().read(document))
    return [f"{finding.rule} at {finding.where}" for finding in found if finding.is_mistake]


def read(name: str) -> Any:
    """Return a document that a framework wrote."""
    return json.loads((STORED / f"{name}.json").read_text())


# --- Agent Framework ---

APPROVALS = ("state", "tool_approval")
GROUP = "state.tool_approval.already_approved_approval_request_groups[0]"


@pytest.fixture
def session() -> Json:
    """A paused session: `c1` and `c2` of `pay` wait for decisions, and `c3` of `read` waits for those."""
    stored: Json = read("agent_framework_paused")
    return stored


def approvals_of(session: Json) -> Json:
    held: Json = session["state"]["tool_approval"]
    return held


@pytest.mark.parametrize("name", ["agent_framework_paused", "langgraph_state_paused", "langgraph_checkpoints_paused"])
def test_a_whole_state_has_no_finding(name: str) -> None:
    """All lists hold the same calls."""
    assert [] == find(read(name))


def test_a_request_that_no_list_holds(session: Json) -> None:
    """Its group waits for it, and nobody will be asked."""
    approvals_of(session)["pending_approval_requests"].pop()

    expected = f"pending-survives at {GROUP}"
    assert [f"{expected}.approval_request_ids", f"{expected}.function_call_order"] == find(session)


def test_a_call_beside_the_requests_that_is_lost(session: Json) -> None:
    """It needs no answer itself, and would run with the others."""
    approvals_of(session)["already_approved_approval_request_groups"][0]["approval_requests"] = []

    assert [f"pending-survives at {GROUP}.function_call_order"] == find(session)


def test_a_call_that_is_not_among_the_messages(session: Json) -> None:
    """The state knows the order of the calls, so that a lost message shows."""
    contents = session["state"]["in_memory"]["messages"][1]["contents"]
    contents[:] = [each for each in contents if each.get("call_id") != "c3"]

    assert [f"history-not-rewritten at {GROUP}.function_call_order"] == find(session)


def test_an_answer_that_waits_for_the_others_is_not_lost(session: Json) -> None:
    """A staged answer stands for its request."""
    group = approvals_of(session)["already_approved_approval_request_groups"][0]
    asked = approvals_of(session)["pending_approval_requests"].pop()
    group["approval_responses"] = [{**asked, "type": "function_approval_response", "approved": True}]

    assert [] == find(session)


# --- LangGraph ---


@pytest.fixture
def state() -> Json:
    """A paused state: `c1` and `c2` of `pay` wait for decisions."""
    stored: Json = read("langgraph_state_paused")
    return stored


def test_an_action_without_its_call(state: Json) -> None:
    """The message with the call is gone, and the interrupt asks about it."""
    state["values"]["messages"][-1]["kwargs"]["tool_calls"].pop(1)

    assert ["history-not-rewritten at interrupts[0].value.action_requests[1]"] == find(state)


def test_a_review_without_its_action(state: Json) -> None:
    """The middleware writes which decisions it allows about each action."""
    state["interrupts"][0]["value"]["review_configs"].append({"action_name": "wipe", "allowed_decisions": ["approve"]})

    assert ["pending-survives at interrupts[0].value.action_requests"] == find(state)


def test_an_interrupt_that_only_its_task_holds(state: Json) -> None:
    """A server lists interrupts by task, and once more for the state."""
    lost = {"value": {"question": "Who?"}, "id": "other"}
    state["tasks"] = [{"id": "1", "interrupts": [*state["interrupts"], lost]}]

    assert ["pending-survives at interrupts"] == find(state)


def test_an_answered_action_of_an_older_checkpoint_is_not_lost() -> None:
    """An edit changes the call in the message, which then differs from what was asked."""
    history = read("langgraph_checkpoints_done")

    assert [] == find(history)


@pytest.mark.parametrize("kind", ["node", "tool"])
def test_what_an_agent_inside_waits_for_is_not_lost(kind: str) -> None:
    """A graph lists the interrupts of an agent in a node or in a tool, whose calls are not among its own messages."""
    assert [] == find(read(f"langgraph_state_{kind}_paused"))


def test_an_agent_in_a_node_is_read_with_its_graph() -> None:
    """Its state has the messages of the graph and its own, and the requests about its calls."""
    conversation = FormatDetector().read(read("langgraph_state_node_paused"))

    assert ["i1", "i2"] == [request.call_id for request in conversation.of(RequestEntry)]


# --- Agno ---


@pytest.fixture
def lose() -> Callable[[str], list[Json]]:
    """Return the runs of a case of the corpus."""

    def load(name: str) -> list[Json]:
        runs: list[Json] = json.loads((CORPUS / f"{name}.json").read_text())
        return runs

    return load


def test_a_paused_call_without_a_requirement(lose: Callable[[str], list[Json]]) -> None:
    """Release 2.3.20 lost the requirement of the second pause of a run."""
    runs = lose("agno-second-pause-has-no-requirements")
    lost = "pending-survives at [0].tools[1]"

    assert lost in find(runs)

    tool = runs[0]["tools"][1]
    runs[0]["requirements"].append({"id": "r2", "tool_execution": tool})
    assert lost not in find(runs)


def test_an_approved_call_that_is_said_to_be_rejected(lose: Callable[[str], list[Json]]) -> None:
    """What was decided contradicts what became of it."""
    runs = lose("agno-json-loses-the-approval")

    assert ["approved-runs at message 3", "approved-runs at message 12"] == find(runs)

    for run in runs:
        for requirement in run["requirements"]:
            requirement["tool_execution"]["confirmed"] = requirement["confirmation"] = False
    assert [] == find(runs)


# --- OpenAI Agents ---


def test_a_call_that_is_both_approved_and_rejected() -> None:
    """A state takes a call out of one list when it puts it into the other, so both mean that it was written to."""
    state = read("openai_agents_js_decided")
    records = [record for scoped in state["context"]["functionApprovals"] for record in scoped["approvals"].values()]
    for record in records:
        record["rejected"] = [*record["rejected"], *record["approved"]]

    assert ["contradiction-not-executed"] == [found.partition(" ")[0] for found in find(state)]


def test_an_approved_call_that_is_told_as_rejected() -> None:
    """The model is told what it is told of a rejected call without a reason."""
    state = read("openai_agents_python_done")
    told = json.dumps(state).replace("paid 5", "Tool execution was not approved.")

    assert ["approved-runs"] == [found.partition(" ")[0] for found in find(json.loads(told))]


# --- OpenAI Agents ---


def decisions_of(state: Json) -> Json:
    held: Json = state["context"]["functionApprovals"][0]["approvals"]['["bare","pay"]']
    return held


def test_a_decided_call_whose_item_is_lost() -> None:
    """The map of approvals has the call, and the list of what waits, too; a resumed run looks for the item."""
    state = read("openai_agents_js_decided")
    items = state["generatedItems"]
    items[:] = [each for each in items if (each["type"], each["rawItem"].get("callId")) != ("tool_approval_item", "c1")]

    assert ["pending-survives at currentStep.data.interruptions"] == find(state)


def test_a_rejection_without_a_reason_of_a_call_that_ran() -> None:
    """What a rejected call is told is a text of the library, or looks like a refusal in the application's words."""
    state = read("openai_agents_js_done")
    decisions_of(state).update(approved=[], rejected=["c1", "c2"])

    assert ["rejected-never-runs at message 6"] == find(state)


def test_an_approved_call_that_was_told_the_reason_of_a_rejection() -> None:
    """The state keeps the reason under the id of the call."""
    state = read("openai_agents_js_done")
    decisions_of(state).update(approved=["c1", "c2"], rejected=[])

    assert ["approved-runs at message 7"] == find(state)


def test_a_rejection_in_words_of_the_application_is_no_run() -> None:
    """An error formatter may write it."""
    state = read("openai_agents_js_done")
    told = json.dumps(state).replace("paid 5", "Declined by Ann.")
    state = json.loads(told)
    decisions_of(state).update(approved=[], rejected=["c1", "c2"])

    assert [] == find(state)


# --- Agno ---


@pytest.mark.parametrize("name", ["agno_paused", "agno_done"])
def test_a_requirement_about_a_call_that_is_not_among_the_messages(name: str) -> None:
    """The run says that the call must be there."""
    [run] = read(name)
    for message in run["messages"]:
        calls = message.get("tool_calls") or []
        message["tool_calls"] = [call for call in calls if call["id"] != "c1"] or None

    assert "request-shows-the-call at [0].requirements[0]" in find([run])


def test_an_approved_call_that_was_told_the_note_of_a_rejection() -> None:
    """The requirement keeps the note, and the model is told it as it is."""
    [run] = read("agno_done")
    rejected = next(each["tool_execution"] for each in run["requirements"] if each["confirmation"] is False)
    rejected["confirmed"] = True

    assert ["approved-runs"] == [found.partition(" ")[0] for found in find([run])]


# --- Agent Framework: messages ---


def test_a_waiting_request_that_is_not_among_the_messages(session: Json) -> None:
    """The state lists it, and the reply that it is from lacks it."""
    contents = session["state"]["in_memory"]["messages"][1]["contents"]
    contents[:] = [each for each in contents if each.get("function_call", {}).get("call_id") != "c1"]

    assert "history-not-rewritten at state.tool_approval.pending_approval_requests" in find(session)
