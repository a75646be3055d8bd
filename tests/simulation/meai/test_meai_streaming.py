"""Updates: what is held back until when, and how updates become messages."""

from __future__ import annotations

from typing import Any


def updates(meai: Any, *turns: list[list[Any]], **more: Any) -> Any:
    return meai.play(meai.user("go"), model_updates=list(turns), streaming=True, **more)


def test_text_passes_at_once_and_calls_wait_for_the_end(meai: Any) -> None:
    """From the first call on everything is held, as a result for it may follow."""
    outcome = updates(
        meai,
        [[meai.text("let ")], [meai.text("me")], [meai.call("a", "look", what="x")], [meai.text("so")]],
        [[meai.text("ok")]],
        tools=[meai.LOOK],
    )
    assert [1, 2, 4, 4] == outcome["pulled"]
    assert ["assistant: let me, call a!, so", "tool: result a saw x", "assistant: ok"] == meai.told(outcome["messages"])


def test_until_10_3_calls_pass_at_once_where_no_tool_is_gated(meai: Any) -> None:
    """Nothing can become a request, so nothing waits."""
    turns = ([[meai.call("a", "look", what="x")], [meai.text("so")]], [[meai.text("ok")]])
    outcome = updates(meai, *turns, tools=[meai.LOOK], behaviour="10.2")
    assert [1, 2] == outcome["pulled"]


def test_until_10_3_calls_wait_where_a_tool_is_gated(meai: Any) -> None:
    """A later call may make requests of them all; when none does, they are released and run."""
    turns = ([[meai.call("a", "look", what="x")], [meai.text("so")]], [[meai.text("ok")]])
    outcome = updates(meai, *turns, behaviour="10.2")
    assert [2, 2] == outcome["pulled"]
    assert ["look"] == meai.ran(outcome)


def test_the_first_gated_call_releases_what_was_held(meai: Any) -> None:
    """Held calls become requests, and what comes after passes at once, calls as requests too."""
    outcome = updates(
        meai,
        [
            [meai.text("hm")],
            [meai.call("a", "look", what="x")],
            [meai.call("b")],
            [meai.text("so")],
            [meai.call("c", "look", what="y")],
        ],
    )
    assert [1, 3, 3, 4, 5] == outcome["pulled"]
    assert ["assistant: hm, ask call a, ask call b, so, ask call c"] == meai.told(outcome["messages"])


def test_a_streamed_call_is_asked_about_before_the_providers_result_is_seen(meai: Any) -> None:
    """The request goes out, and its call is flagged afterwards, so that a response is going to be ignored."""
    outcome = updates(meai, [[meai.call("a")], [meai.result("a", "done there")], [meai.text("fine")]])
    assert ["assistant: ask call a!, result a done there, fine"] == meai.told(outcome["messages"])
    assert [1, 2, 3] == outcome["pulled"]


def test_a_streamed_free_call_that_the_provider_ran_is_not_run_again(meai: Any) -> None:
    """Its result has come until the stream ended."""
    outcome = updates(meai, [[meai.call("a", "look", what="x")], [meai.result("a", "seen there")]])
    assert ([], ["assistant: call a!, result a seen there"]) == (outcome["invocations"], meai.told(outcome["messages"]))


def test_rebuilt_calls_and_results_come_before_the_model_is_read(meai: Any) -> None:
    """They are updates like others, and no update of the model has been read then."""
    a, b = meai.call("a"), meai.call("b")
    outcome = meai.play(
        meai.assistant(meai.ask(a), meai.ask(b)), meai.user(meai.answer(a), meai.reject(b)), streaming=True
    )
    assert [0, 0, 0, 1] == outcome["pulled"]


def test_the_model_is_sent_whole_messages(meai: Any) -> None:
    """What was streamed is one message with merged texts when it goes back to the model."""
    turn = [[meai.text("l")], [meai.text("ook")], [meai.call("a", "look", what="x")]]
    outcome = updates(meai, turn, [[meai.text("ok")]])
    assert ["user: go", "assistant: look, call a!", "tool: result a saw x"] == meai.told(outcome["model_inputs"][1])


def test_other_ids_authors_and_roles_begin_other_messages(meai: Any) -> None:
    """A missing id or author begins none."""
    messages = [
        meai.assistant("a", messageId="m1"),
        meai.assistant("b"),
        meai.assistant("c", messageId="m2"),
        meai.assistant("d", authorName="Bo"),
        meai.assistant("e", authorName="Cy"),
        meai.tool(meai.result("z", "f")),
    ]
    outcome = meai.play(meai.user("go"), model=[messages], streaming=True)
    assert ["assistant: ab", "assistant: cd", "assistant: e", "tool: result z f"] == meai.told(outcome["messages"])


def test_annotated_texts_do_not_merge(meai: Any) -> None:
    """Their annotations are about their own text."""
    cited = {"$type": "text", "text": "b", "annotations": [{"$type": "citation"}]}
    outcome = updates(meai, [[meai.text("a")], [cited], [meai.text("c")]])
    assert ["assistant: a, b, c"] == meai.told(outcome["messages"])


def test_updates_that_reached_the_caller_stay_when_the_stream_fails(meai: Any) -> None:
    """A null update is a failure; the text before it was seen."""
    outcome = updates(meai, [[meai.text("a")], None])
    assert ["assistant: a"] == meai.told(outcome["messages"])
    assert {
        "type": "InvalidOperation",
        "text": "The inner IChatClient streamed a null ChatResponseUpdate.",
    } == outcome["error"]


def test_updates_are_coalesced_for_a_caller_who_does_not_stream(meai: Any) -> None:
    """A model that is written as updates can be asked for its whole answer."""
    outcome = meai.play(meai.user("go"), model_updates=[[[meai.text("a")], [meai.text("b")]]])
    assert (["assistant: ab"], None) == (meai.told(outcome["messages"]), outcome["pulled"])
