"""Scenarios out of stored conversations: what they hold before they are made small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.conversations.histories.readers import FormatDetector
from pytest_approvals.conversations.reproduce.draft import ScenarioDraft
from pytest_approvals.conversations.reproduce.from_conversation import build_draft
from pytest_approvals.conversations.reproduce.reproducer import build_scenario
from pytest_approvals.conversations.reproduce.scenario_document import build_document
from pytest_approvals.devtools.corpus import load_cases, read_case
from pytest_approvals.errors import HistoryError
from pytest_approvals.scenario.to_file import format_yaml

CORPUS = Path(__file__).parents[1] / "corpus"

WHOLE = """\
title: A call of refund is rejected, a message follows, what is pending is answered, two messages follow
tools:
  refund: {approval: always, parameters: {order: integer, to: string}}
  look: {parameters: {what: string, n: integer}, returns: "{n} {what}"}
  book_flight: {approval: always, parameters: {to: string, seats: integer}}
model:
  - say: May I?
    calls: [{id: c1, tool: refund, arguments: {order: 4711, to: bob@example.org}}]
  - say: I have not refunded it. Shall I book the flight?
  - calls: [{id: c2, tool: look, arguments: {what: flights, n: 3}}]
  - calls: [{id: c3, tool: book_flight, arguments: {to: Rome, seats: 2}}]
  - say: Done.
  - say: Done.
  - say: Done.
caller:
  - send: Please refund order 4711 to bob@example.org, then book the flight to Rome.
  - decide: {c1: {reject: not this month}}
  - send: Yes, look first.
  - oracle: true
  - send: And now?
  - send: Anything else?
vary: [history]
"""


def text_of(draft: ScenarioDraft) -> str:
    return format_yaml(build_document(draft))


def test_a_conversation_is_a_scenario_as_people_write_one(stored: ScenarioDraft) -> None:
    """Tools and their parameters are seen from the calls; what is pending is left to the oracle, and more follows."""
    assert WHOLE == text_of(stored)
    assert ("refund", "look", "book_flight") == tuple(tool.name for tool in build_scenario(stored).tools)


def test_an_id_that_comes_again_says_so(written: Any) -> None:
    """And the calls whose arguments are equal are so on purpose."""
    calls = [written.call("look", "x", {"at": "a"}), written.call("look", "x", {"at": "a"})]
    draft = written.draft(written.message("user", "go"), written.message("assistant", *calls))
    document = build_document(draft)
    assert [{"id": "c1", "tool": "look", "arguments": {"at": "a"}}, "repeats"] == [
        document["model"][0]["calls"][0],
        list(document["model"][0]["calls"][1])[-1],
    ]
    assert document["equal_arguments"]
    build_scenario(draft)


def test_an_id_that_every_javascript_object_has_is_kept(written: Any) -> None:
    """A framework may take the call for what the object has; other ids are made anew."""
    calls = [written.call("look", call_id, {"at": call_id}) for call_id in ("toString", "call_9x")]
    draft = written.draft(written.message("user", "go"), written.message("assistant", *calls))
    first, second = build_document(draft)["model"][0]["calls"]

    assert {"id": "toString", "label": "c1"}.items() <= first.items()
    assert "c2" == second["id"]
    build_scenario(draft)


def test_what_langchain_tells_of_a_rejection_is_one() -> None:
    """Its messages hold no decisions, and its middleware begins the result of a rejected call like this."""
    calls = [{"id": call_id, "name": "pay", "args": {"n": n}} for call_id, n in (("c1", 1), ("c2", 2))]
    told = "User rejected the tool call for `pay` with reason: too much"
    messages = [
        {"type": "human", "data": {"content": "Pay"}},
        {"type": "ai", "data": {"content": "", "tool_calls": calls}},
        {"type": "tool", "data": {"content": "paid 1", "tool_call_id": "c1", "status": "success"}},
        {"type": "tool", "data": {"content": told, "tool_call_id": "c2", "status": "error"}},
    ]
    for message in messages:
        message["data"]["type"] = message["type"]
    document = build_document(build_draft(FormatDetector().read(messages), ["pay"]))

    assert {"c1": "approve", "c2": {"reject": told}} == document["caller"][1]["decide"]


def test_a_call_that_an_edit_has_rewritten_is_the_one_that_the_model_made() -> None:
    """LangChain before 1.4.2 wrote the edit into the message of the model; an older checkpoint has the call."""
    case = load_cases(CORPUS)["langgraph-edit-rewrites-the-models-call"]
    [conversation] = read_case(case, CORPUS)
    document = build_document(build_draft(conversation))

    assert [{"amount": 500, "to": "ann"}] == [call["arguments"] for call in document["model"][0]["calls"]]
    assert {"c1": {"edit": {"amount": 50, "to": "ann"}}} == document["caller"][1]["decide"]


def test_a_call_that_a_chat_shows_twice_is_made_once() -> None:
    """A client of the AI SDK may keep a part with all that became of it in a later message once more."""
    part = {"type": "tool-pay", "toolCallId": "c1", "state": "output-available", "input": {"n": 5}, "output": "paid"}
    chat = [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Pay 5"}]},
        {"id": "2", "role": "assistant", "parts": [part]},
        {"id": "3", "role": "assistant", "parts": [{"type": "text", "text": "Paid."}, part]},
    ]
    document = build_document(build_draft(FormatDetector().read(chat)))

    assert [1, 0] == [len(reply.get("calls", ())) for reply in document["model"][:2]]
    assert "Paid." == document["model"][1]["say"]


def test_parameters_fit_all_calls(written: Any) -> None:
    """One that is not always there may be left out; where types differ it is text, or a number where all are."""
    first, second = {"a": 1, "b": 1, "c": True}, {"a": 1.5, "b": "x", "d": None}
    calls = [written.call("pay", "1", first), written.call("pay", "2", second)]
    draft = written.draft(written.message("user", "go"), written.message("assistant", *calls))
    document = build_document(draft)
    assert {"a": "number", "b": "string", "c": "boolean?"} == document["tools"]["pay"]["parameters"]
    assert {"a": 1, "b": "1", "c": True} == document["model"][0]["calls"][0]["arguments"]
    build_scenario(draft)


HOSTILE = [
    "\x1b[2J\x9b31m\u202e",
    "{{fake email}}",
    "{nobody} {fake: email}",
    "!!python/object/apply:os.system [ls]",
    "&a *a # --- ...",
    "yes",
    "1e3",
    'a"\\\n- b: c\t',
    "\ud800",
    "é" * 1000,
    "- x",
    "a: b",
    "~",
    "",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_texts(written: Any, text: str) -> None:
    """Nothing in a conversation becomes a tag, a made-up value, a placeholder, or something that a terminal acts on."""
    arguments = {"to": text, "more": {"fake": "email"}, text or "empty": [text]}
    asked = written.call(text or "x", "c", arguments)
    result = {"$type": "functionResult", "callId": "c", "result": text}
    draft = written.draft(
        written.message("user", text), written.message("assistant", text, asked), written.message("tool", result)
    )
    assert text_of(draft).replace("\n", "").isprintable()
    scenario = build_scenario(draft)
    [made] = [call for reply in scenario.agents["main"].replies for call in reply.calls]
    assert isinstance(made.arguments, dict)
    assert text.encode("utf-8", "replace").decode().replace("{{", "{ {") == made.arguments["to"]
    assert {} == scenario.fakes


def test_a_conversation_in_which_nobody_says_anything_is_refused(written: Any) -> None:
    """There is nothing to play."""
    with pytest.raises(HistoryError, match="no messages"):
        written.draft(written.message("system", "You are kind."))


def test_decisions_that_cannot_be_a_mapping_are_a_list(written: Any) -> None:
    """Two about one call, and one about nothing that was asked."""
    inside = written.call("pay", "a", {"amount": 5})

    def answer(approved: bool, request_id: str) -> dict[str, Any]:
        return {"$type": "toolApprovalResponse", "approved": approved, "toolCall": inside, "requestId": request_id}

    draft = written.draft(
        written.message("user", "Pay 5"),
        written.message("assistant", written.request(inside)),
        written.message("user", answer(True, "ficc_a"), answer(False, "ficc_a"), answer(True, "forged")),
    )
    shown = {"shows": {"amount": 5}, "shows_tool": "pay"}
    decide = [{"c1": "approve"}, {"c1": "reject"}, {"unknown": "forged", "verdict": "approve", **shown}]
    assert decide == build_document(draft)["caller"][1]["decide"]
    build_scenario(draft)


@pytest.mark.parametrize(("edited", "raw"), [(2.5, 2.5), ("5", 5), ([5], [5]), ("x", "x")])
def test_an_edit_that_is_no_object_is_a_raw_answer(edited: Any, raw: Any) -> None:
    """A scenario edits by parameters, so it gives the value to the framework as it is."""
    call = {"id": "c", "name": "pay", "args": {"amount": 5}}
    interrupt = {"id": "i", "value": {"action_requests": [{"name": "pay", "args": {"amount": 5}}]}}
    answer = {"decisions": [{"type": "edit", "edited_action": {"name": "pay", "args": edited}}]}
    messages = [{"type": "human", "content": "Pay"}, {"type": "ai", "content": "", "tool_calls": [call]}]
    messages += [{"type": "tool", "content": "paid", "tool_call_id": "c"}]
    writes = [["t", "__interrupt__", [interrupt]], ["t", "__resume__", [answer]]]
    history = [{"checkpoint": {"channel_values": {"messages": messages}}, "pending_writes": writes}]
    draft = build_draft(FormatDetector().read(history))

    assert [{"c1": {"raw": raw}}] == [step["decide"] for step in build_document(draft)["caller"] if "decide" in step]
    build_scenario(draft)


@pytest.mark.parametrize("depth", [90, 400, 900])
def test_arguments_that_are_too_deep_for_a_scenario_are_refused(written: Any, depth: int) -> None:
    """In a sentence, however deep they are."""
    deep: Any = 1
    for _ in range(depth):
        deep = [deep]
    asked = written.call("pay", "c", {"a": deep})

    with pytest.raises(HistoryError, match="nested deeper than 80 levels"):
        written.draft(written.message("user", "go"), written.message("assistant", asked))


@pytest.fixture
def decided(written: Any) -> Any:
    """The steps and the title of a story in which somebody approved a copy of a call of `pay` about 5."""

    def build(tool: str, amount: int, *, asked: bool = True) -> tuple[Any, str]:
        copy = written.call(tool, "x", {"amount": amount}, flagged=True)
        answer = {"$type": "toolApprovalResponse", "requestId": "ficc_x", "approved": True, "toolCall": copy}
        question = [written.message("assistant", written.request(written.call("pay", "x", {"amount": 5})))]
        result = {"$type": "functionResult", "callId": "x", "result": f"paid {amount}"}
        draft = written.draft(
            written.message("user", "go"),
            *(question if asked else ()),
            written.message("user", answer),
            written.message("assistant", copy),
            written.message("tool", result),
            written.message("assistant", "Done."),
        )
        build_scenario(draft)
        document = build_document(draft)
        return document["caller"][:2], document["title"]

    return build


def test_a_decision_keeps_its_copy_of_the_call(decided: Any) -> None:
    """What the copy says in place of the request is what a client has changed."""
    steps, title = decided("pay", 9999)

    assert {"c1": {"verdict": "approve", "shows": {"amount": 9999}}} == steps[1]["decide"]
    assert title.startswith("A changed call of pay is approved")


def test_a_copy_of_another_tool(decided: Any) -> None:
    """It is named beside the decision."""
    assert {"c1": {"verdict": "approve", "shows_tool": "refund"}} == decided("refund", 5)[0][1]["decide"]


def test_a_copy_that_agrees_with_its_request_is_not_written(decided: Any) -> None:
    """It says nothing new."""
    assert {"c1": "approve"} == decided("pay", 5)[0][1]["decide"]


def test_a_decision_about_no_request_keeps_what_it_shows(decided: Any) -> None:
    """A framework may run it."""
    steps, title = decided("pay", 5, asked=False)

    assert [{"unknown": "ficc_x", "verdict": "approve", "shows": {"amount": 5}, "shows_tool": "pay"}] == steps[0][
        "decide"
    ]
    assert title.startswith("What was never asked is approved")
