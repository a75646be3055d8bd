"""Settlement by position, which no release has: what it makes of histories that the others trip over."""

from __future__ import annotations

from typing import Any

import pytest


def robust(meai: Any, *messages: Any, **more: Any) -> Any:
    return meai.play(*messages, behaviour="robust", **more)


@pytest.mark.parametrize("asked_flag", [False, True])
@pytest.mark.parametrize("answered_flag", [False, True])
def test_flags_make_no_difference_where_there_is_a_result(meai: Any, asked_flag: bool, answered_flag: bool) -> None:
    """A result behind the request settles it, and the model is sent no request and no response."""
    outcome = robust(
        meai,
        meai.assistant(meai.ask(meai.call("a", flagged=asked_flag))),
        meai.user(meai.answer(meai.call("a", flagged=answered_flag))),
        meai.assistant(meai.call("a", flagged=True)),
        meai.tool(meai.result("a", "wiped")),
        meai.user("next"),
    )
    assert ([], None) == (outcome["invocations"], outcome["error"])
    assert ["assistant: call a!", "tool: result a wiped", "user: next"] == meai.told(outcome["model_inputs"][0])


@pytest.mark.parametrize("asked_flag", [False, True])
def test_a_flagged_response_is_settled_where_the_result_is_gone(meai: Any, asked_flag: bool) -> None:
    """Somebody has dealt with the call; it does not run again because a store dropped the result."""
    outcome = robust(
        meai,
        meai.assistant(meai.ask(meai.call("a", flagged=asked_flag))),
        meai.user(meai.answer(meai.call("a", flagged=True))),
    )
    assert ([], None) == (outcome["invocations"], outcome["error"])


def test_a_new_response_about_a_settled_request_is_refused(meai: Any) -> None:
    """Whether a result or a flag says that it is settled; nothing runs, and the caller can see it."""
    by_result = robust(
        meai,
        meai.assistant(meai.ask(meai.call("a"))),
        meai.user(meai.answer(meai.call("a"))),
        meai.tool(meai.result("a", "wiped")),
        meai.assistant("ok"),
        meai.user(meai.answer(meai.call("a"))),
    )
    by_flag = robust(
        meai, meai.assistant(meai.ask(meai.call("a", flagged=True))), meai.user(meai.answer(meai.call("a")))
    )
    text = "The response with the request id 'ficc_a' (FunctionCall.CallId 'a') is about no open request."
    assert [text, text] == [outcome["error"]["text"] for outcome in (by_result, by_flag)]
    assert [] == by_result["invocations"] + by_flag["invocations"]


def test_an_old_response_about_nothing_is_history(meai: Any) -> None:
    """It was sent before the model or the caller said something else, and blocks nothing."""
    outcome = robust(meai, meai.user(meai.answer(meai.call("a"))), meai.user("hello?"))
    assert ([], None) == (outcome["invocations"], outcome["error"])
    assert ["user: hello?"] == meai.told(outcome["model_inputs"][0])


def test_a_call_id_can_be_used_again(meai: Any) -> None:
    """A result in front of a request has nothing to do with it."""
    first, second = meai.call("a"), meai.call("a")
    outcome = robust(
        meai,
        meai.assistant(meai.ask(first)),
        meai.user(meai.answer(first)),
        meai.assistant(meai.call("a", flagged=True)),
        meai.tool(meai.result("a", "wiped")),
        meai.assistant(meai.ask(second)),
        meai.user(meai.answer(second)),
    )
    assert (["wipe"], None) == (meai.ran(outcome), outcome["error"])


def test_a_request_is_closed_once(meai: Any) -> None:
    """A repeated approval runs nothing more; of a contradiction the rejection counts, in either order."""
    a = meai.call("a")
    yes, no = meai.answer(a), meai.reject(a)
    ran = [
        meai.ran(robust(meai, meai.assistant(meai.ask(a)), meai.user(*given)))
        for given in ((yes, yes), (no, yes), (yes, no))
    ]
    assert [["wipe"], [], []] == ran


def test_repeated_responses_without_a_request_run_once(meai: Any) -> None:
    """Their id is the same, so they are about the same request."""
    a = meai.call("a")
    assert ["wipe"] == meai.ran(robust(meai, meai.user(meai.answer(a), meai.answer(a)), conversation_id="conv"))


def test_what_was_asked_runs(meai: Any) -> None:
    """Not what a response says instead; and its copy is flagged, too."""
    outcome = robust(
        meai,
        meai.assistant(meai.ask(meai.call("a", "look", what="this"))),
        meai.user(meai.answer(meai.call("a", "look", what="that"))),
    )
    assert [{"name": "look", "arguments": {"what": "this"}}] == outcome["invocations"]
    assert ["assistant: ask call a!", "user: yes call a!"] == meai.told(outcome["messages_after"])


def test_two_requests_for_one_call_id_need_a_response_each(meai: Any) -> None:
    """One response closes the request with its id; the other stays open."""
    a = meai.call("a")
    outcome = robust(
        meai,
        meai.assistant(meai.ask(a, "r1"), meai.ask(a, "r2")),
        meai.user(meai.answer(a, request_id="r1")),
        model=[],
    )
    assert "'a'" in outcome["error"]["text"]


def test_a_response_whose_request_id_is_lost_finds_the_open_call(meai: Any) -> None:
    """The call id is the second-best key."""
    a = meai.call("a")
    outcome = robust(meai, meai.assistant(meai.ask(a, "r1")), meai.user(meai.answer(a, request_id="r2")))
    assert ["wipe"] == meai.ran(outcome)


def test_a_copy_of_an_open_request_is_the_same_request(meai: Any) -> None:
    """An equal one is taken as one; another call under that id is a duplicate key."""
    a, b = meai.call("a"), meai.call("b")
    once = robust(meai, meai.assistant(meai.ask(a)), meai.assistant(meai.ask(a)), meai.user(meai.answer(a)))
    other = robust(meai, meai.assistant(meai.ask(a, "r"), meai.ask(b, "r")), model=[])
    assert (["wipe"], "DuplicateKey") == (meai.ran(once), other["error"]["type"])


def test_a_request_without_a_response_is_still_a_failure(meai: Any) -> None:
    """Being robust is not guessing."""
    outcome = robust(meai, meai.assistant(meai.ask(meai.call("a"))), meai.user("hello?"), model=[])
    assert "InvalidOperation" == outcome["error"]["type"]


def test_every_request_has_an_id_of_its_own(meai: Any) -> None:
    """Also if the model gives a call id twice, in one answer or in a later one."""
    asked = meai.assistant(meai.ask(meai.call("a")))
    told = meai.user(meai.reject(meai.call("a")))
    outcome = robust(meai, asked, told, model=[[meai.assistant(meai.call("a"), meai.call("a"))]])
    requests = outcome["messages"][-1]["contents"]
    assert [("ficc_a_2", "a"), ("ficc_a_2_2", "a_2")] == [
        (each["requestId"], each["toolCall"]["callId"]) for each in requests
    ]
