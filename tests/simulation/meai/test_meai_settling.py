"""What the client makes of requests and responses in the messages that it is sent."""

from __future__ import annotations

from typing import Any

import pytest


def test_rejections_come_first_and_both_kinds_have_a_message_of_results(meai: Any) -> None:
    """The calls are one message again, rejected ones in front; their results are two messages."""
    a, b, c = meai.call("a"), meai.call("b", "look", what="x"), meai.call("c")
    outcome = meai.play(
        meai.user("go"),
        meai.assistant(meai.ask(a), meai.ask(b), meai.ask(c), messageId="m1"),
        meai.user(meai.answer(a), meai.reject(b, "no peeking"), meai.reject(c, "  ")),
    )
    assert [
        "user: go",
        "assistant: call b!, call c!, call a!",
        "tool: result b Tool call invocation rejected. no peeking, result c Tool call invocation rejected.",
        "tool: result a wiped",
    ] == meai.told(outcome["model_inputs"][0])
    assert [*meai.told(outcome["model_inputs"][0])[1:], "assistant: ok"] == meai.told(outcome["messages"])


def test_a_streamed_caller_sees_one_message_of_results(meai: Any) -> None:
    """Rejections and results share an id, so they become one message; the model is sent two."""
    a, b = meai.call("a"), meai.call("b")
    messages = [meai.assistant(meai.ask(a), meai.ask(b)), meai.user(meai.answer(a), meai.reject(b))]
    outcome = meai.play(*messages, streaming=True)
    assert [
        "assistant: call b!, call a!",
        "tool: result b Tool call invocation rejected., result a wiped",
        "assistant: ok",
    ] == meai.told(outcome["messages"])
    assert ["assistant", "tool", "tool"] == [message["role"] for message in outcome["model_inputs"][0]]


def test_a_request_without_a_response_fails_the_whole_turn(meai: Any) -> None:
    """Nothing runs, and the failure names the calls that nobody decided about."""
    a, b, c = meai.call("a"), meai.call("b"), meai.call("c")
    outcome = meai.play(meai.assistant(meai.ask(a), meai.ask(b), meai.ask(c)), meai.user(meai.answer(b)), model=[])
    assert {
        "type": "InvalidOperation",
        "text": "ToolApprovalRequestContent found with FunctionCall.CallId(s) 'a, c' "
        "that have no matching ToolApprovalResponseContent.",
    } == outcome["error"]
    assert ([], []) == (outcome["invocations"], outcome["messages"])


def test_until_10_3_the_failure_says_the_earlier_names(meai: Any) -> None:
    """The types had other names before 10.4."""
    outcome = meai.play(meai.assistant(meai.ask(meai.call("a"), "a")), model=[], behaviour="10.2")
    assert (
        "FunctionApprovalRequestContent found with FunctionCall.CallId(s) 'a' "
        "that have no matching FunctionApprovalResponseContent."
    ) == outcome["error"]["text"]


def test_a_response_in_front_of_its_request_does_not_count(meai: Any) -> None:
    """Messages are read in order."""
    a = meai.call("a")
    outcome = meai.play(meai.user(meai.answer(a)), meai.assistant(meai.ask(a)), model=[])
    assert "InvalidOperation" == outcome["error"]["type"]


def test_two_requests_with_one_id_are_a_duplicate_key(meai: Any) -> None:
    """The failure names the id and both calls."""
    a, b = meai.call("a"), meai.call("b")
    outcome = meai.play(meai.assistant(meai.ask(a, "same"), meai.ask(b, "same")), model=[])
    assert {
        "type": "DuplicateKey",
        "text": "An item with the same key has already been added. Key: same (requests for calls a, b)",
    } == outcome["error"]


def test_a_response_without_a_request_is_honoured(meai: Any) -> None:
    """If the service keeps the history, nobody sends the request, so the client cannot insist on it."""
    outcome = meai.play(meai.user(meai.answer(meai.call("a"))), conversation_id="conv")
    assert ["tool: result a wiped"] == meai.told(outcome["model_inputs"][0])
    assert ["assistant: call a!", "tool: result a wiped", "assistant: ok"] == meai.told(outcome["messages"])


def test_a_blank_conversation_id_is_none(meai: Any) -> None:
    """Then the caller keeps the history, and the calls are sent."""
    outcome = meai.play(meai.user(meai.answer(meai.call("a"))), conversation_id=" ")
    assert ["assistant: call a!", "tool: result a wiped"] == meai.told(outcome["model_inputs"][0])


def test_a_service_that_keeps_the_conversation_is_sent_results_only(meai: Any) -> None:
    """That holds for the rounds after the first as well."""
    model = [[meai.assistant(meai.call("a", "look", what="x"))], [meai.assistant("ok")]]
    outcome = meai.play(meai.user("go"), model=model, conversation_id="conv")
    assert ["tool: result a saw x"] == meai.told(outcome["model_inputs"][1])


def test_a_response_to_a_call_with_a_result_is_skipped(meai: Any) -> None:
    """The call id alone says so; so a call id that is used again is taken for an old one."""
    a = meai.call("a")
    outcome = meai.play(
        meai.tool(meai.result("a", "from before")), meai.assistant(meai.ask(a)), meai.user(meai.answer(a))
    )
    assert [] == outcome["invocations"]
    assert ["tool: result a from before"] == meai.told(outcome["model_inputs"][0])


def test_what_runs_is_the_responses_call(meai: Any) -> None:
    """Tool and arguments of the response win over those of the request."""
    outcome = meai.play(
        meai.assistant(meai.ask(meai.call("a", "look", what="this"))),
        meai.user(meai.answer(meai.call("a", "look", what="that"))),
    )
    assert [{"name": "look", "arguments": {"what": "that"}}] == outcome["invocations"]


@pytest.mark.parametrize("streaming", [False, True])
def test_other_contents_stay_where_they_are(meai: Any, streaming: bool) -> None:
    """A message that is left empty is gone; one that holds more keeps that, behind the calls and their results."""
    a = meai.call("a")
    outcome = meai.play(
        meai.assistant("hm", meai.ask(a)),
        meai.user("please", meai.answer(a)),
        meai.user("soon"),
        streaming=streaming,
    )
    assert [
        "assistant: hm",
        "assistant: call a!",
        "tool: result a wiped",
        "user: please",
        "user: soon",
    ] == meai.told(outcome["model_inputs"][0])


def test_until_10_8_calls_and_results_go_to_the_end(meai: Any) -> None:
    """A message that comes with the response is placed between the call and its result."""
    a = meai.call("a")
    outcome = meai.play(meai.assistant(meai.ask(a)), meai.user(meai.answer(a), "soon"), behaviour="10.7")
    assert ["user: soon", "assistant: call a!", "tool: result a wiped"] == meai.told(outcome["model_inputs"][0])


def test_mcp_items_are_passed_on_and_calls_go_between_them(meai: Any) -> None:
    """In a mixed turn the function's request is settled here, and the other is the provider's."""
    a = meai.call("a")
    outcome = meai.play(
        meai.assistant(meai.ask(a), meai.ask(meai.mcp(), "m1")),
        meai.user(meai.answer(a), meai.answer(meai.mcp(), request_id="m1")),
    )
    assert [
        "assistant: ask mcpServerToolCall",
        "assistant: call a!",
        "tool: result a wiped",
        "user: yes mcpServerToolCall",
    ] == meai.told(outcome["model_inputs"][0])


def test_calls_come_back_in_the_messages_they_were_sent_in(meai: Any) -> None:
    """One message per message id, with the author and all that the model's message had."""
    a, b, c = meai.call("a"), meai.call("b"), meai.call("c")
    outcome = meai.play(
        meai.assistant(meai.ask(a), messageId="m1", authorName="Bo", additionalProperties={"k": 1.0}),
        meai.assistant(meai.ask(b), messageId="m2", createdAt="2026-01-01T00:00:00+00:00"),
        meai.assistant(meai.ask(c), messageId="m1"),
        meai.user(*(meai.answer(each) for each in (a, b, c))),
    )
    first, second = outcome["messages"][:2]
    assert ("m1", "Bo", {"k": 1.0}) == (first["messageId"], first["authorName"], first["additionalProperties"])
    assert ("m2", "2026-01-01T00:00:00+00:00") == (second["messageId"], second["createdAt"])
    assert ["assistant: call a!, call c!", "assistant: call b!"] == meai.told([first, second])


@pytest.mark.parametrize("streaming", [False, True])
def test_calls_of_messages_without_an_id_stay_together(meai: Any, streaming: bool) -> None:
    """No id is one id; a streamed message gets one that is made up."""
    a, b = meai.call("a"), meai.call("b")
    outcome = meai.play(
        meai.assistant(meai.ask(a)),
        meai.assistant(meai.ask(b)),
        meai.user(meai.answer(a), meai.answer(b)),
        streaming=streaming,
    )
    assert "assistant: call a!, call b!" == meai.told(outcome["messages"])[0]
    assert streaming == ("messageId" in outcome["messages"][0])


def test_a_call_without_a_request_joins_the_message_at_hand(meai: Any) -> None:
    """Until there are several messages; then it has one of its own."""
    a, b, c, d = (meai.call(each) for each in "abcd")
    outcome = meai.play(
        meai.assistant(meai.ask(a), messageId="m1"),
        meai.assistant(meai.ask(c), messageId="m2"),
        meai.user(*(meai.answer(each) for each in (a, b, c, d))),
    )
    assert ["assistant: call a!, call b!", "assistant: call c!", "assistant: call d!"] == meai.told(
        outcome["messages"][:3]
    )


def test_any_request_id_works(meai: Any) -> None:
    """Nothing takes an id apart."""
    a = meai.call("a")
    outcome = meai.play(
        meai.assistant(meai.ask(a, "R-17"), messageId="m1"), meai.user(meai.answer(a, request_id="R-17"))
    )
    assert (["wipe"], "m1") == (meai.ran(outcome), outcome["messages"][0]["messageId"])


def test_10_2_finds_a_request_by_the_call_id(meai: Any) -> None:
    """Where ids differ, what the model's message said is lost."""
    a = meai.call("a")
    outcome = meai.play(
        meai.assistant(meai.ask(a, "R-17"), messageId="m1"),
        meai.user(meai.answer(a, request_id="R-17")),
        behaviour="10.2",
    )
    assert (["wipe"], False) == (meai.ran(outcome), "messageId" in outcome["messages"][0])


def test_repeated_and_contradictory_responses_all_count(meai: Any) -> None:
    """The client keeps no record of what was decided: a tool runs twice, or is rejected and run."""
    a = meai.call("a")
    twice = meai.play(meai.assistant(meai.ask(a)), meai.user(meai.answer(a), meai.answer(a)))
    both = meai.play(meai.assistant(meai.ask(a)), meai.user(meai.reject(a), meai.answer(a)))
    assert ["wipe", "wipe"] == meai.ran(twice)
    assert [
        "assistant: call a!, call a!",
        "tool: result a Tool call invocation rejected.",
        "tool: result a wiped",
        "assistant: ok",
    ] == meai.told(both["messages"])
