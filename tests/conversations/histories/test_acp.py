"""Recordings of the Agent Client Protocol: their lines, what they show of calls, and what a prompt leaves open.

The files in `stored` are what a client has recorded of OpenCode and Claude Code; `make_acp.py` lets it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    DecisionEntry,
    RequestEntry,
    ResultEntry,
    StoredConversation,
    TextEntry,
)
from pytest_approvals.conversations.histories.files import LocatedConversation, SkippedFile, read_conversations
from pytest_approvals.conversations.histories.readers import FORMATS, FormatDetector, get_reader
from pytest_approvals.conversations.lint import lint_conversation
from pytest_approvals.conversations.lint.linter import Linter
from pytest_approvals.errors import HistoryError

Json = dict[str, Any]

STORED = Path(__file__).parent / "stored"
OPTIONS = [
    {"optionId": kind.replace("_", "-"), "kind": kind, "name": kind}
    for kind in ("allow_once", "allow_always", "reject_once", "reject_always")
]
BEGUN = [
    {"jsonrpc": "2.0", "id": 0, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}},
    {"jsonrpc": "2.0", "id": 0, "result": {"sessionId": "s1"}},
]


def stored(name: str) -> list[Json]:
    """Return the lines of a stored recording."""
    return [json.loads(line) for line in (STORED / f"acp_{name}.jsonl").read_text().splitlines()]


def prompt(number: int = 1, text: str = "Go") -> Json:
    params = {"sessionId": "s1", "prompt": [{"type": "text", "text": text}]}
    return {"jsonrpc": "2.0", "id": number, "method": "session/prompt", "params": params}


def ended(number: int = 1, reason: str = "end_turn") -> Json:
    return {"jsonrpc": "2.0", "id": number, "result": {"stopReason": reason}}


def update(what: str, /, **more: Any) -> Json:
    return {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": "s1", "update": {"sessionUpdate": what, **more}},
    }


def call(call_id: str = "t1", title: str = "pay", **more: Any) -> Json:
    return update("tool_call", toolCallId=call_id, title=title, status="pending", **{"rawInput": {"n": 5}, **more})


def changed(call_id: str = "t1", status: str | None = None, **more: Any) -> Json:
    return update("tool_call_update", toolCallId=call_id, **({"status": status} if status else {}), **more)


def ask(number: int = 7, call_id: str = "t1", **shown: Any) -> Json:
    asked = {"sessionId": "s1", "toolCall": {"toolCallId": call_id, **shown}, "options": OPTIONS}
    return {"jsonrpc": "2.0", "id": number, "method": "session/request_permission", "params": asked}


def answer(chosen: str = "allow-once", number: int = 7) -> Json:
    outcome = {"outcome": "cancelled"} if chosen == "cancelled" else {"outcome": "selected", "optionId": chosen}
    return {"jsonrpc": "2.0", "id": number, "result": {"outcome": outcome}}


def said(text: str, **more: Any) -> Json:
    return update("agent_message_chunk", content={"type": "text", "text": text}, **more)


def read(*lines: Json) -> StoredConversation:
    return FormatDetector().read([*BEGUN, *lines])


def mistakes(*lines: Json, gated: tuple[str, ...] = ()) -> list[str]:
    return [f"{each.rule}: {each.text}" for each in lint_conversation(read(*lines), gated) if each.is_mistake]


# --- what is recorded -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["claude_code_done", "opencode_done"])
def test_the_story_is_told(name: str) -> None:
    """One call was approved, one rejected."""
    document = FormatDetector().read(stored(name))
    results = {each.call_id: each.outcome for each in document.of(ResultEntry)}
    asked = {each.id: each.call_id for each in document.of(RequestEntry)}
    decided = {asked[each.id]: each.verdict for each in document.of(DecisionEntry)}

    assert {"c1": "returned", "c2": "denied", "c3": "returned"} == results
    assert ("approve", "reject") == (decided["c1"], decided["c2"])


@pytest.mark.parametrize("name", ["claude_code_paused", "opencode_paused"])
def test_a_question_at_the_end_waits(name: str) -> None:
    """It is told, and is no mistake."""
    assert ["waits"] == [each.rule for each in lint_conversation(FormatDetector().read(stored(name)))]


@pytest.mark.parametrize("name", ["claude_code_cancelled", "opencode_cancelled"])
def test_a_cancelled_prompt_is_no_mistake(name: str) -> None:
    """Its questions are rejected, and the session takes the next prompt."""
    document = FormatDetector().read(stored(name))

    assert [] == lint_conversation(document)
    assert {"reject"} == {each.verdict for each in document.of(DecisionEntry)} - {"approve"}
    assert ["Pay 5 and 6", "Hi"] == [each.text for each in document.of(TextEntry) if each.role == "user"]


@pytest.mark.parametrize("name", ["claude_code_loaded", "opencode_loaded"])
def test_a_loaded_session_is_replayed(name: str) -> None:
    """The replay shows no decisions, so nobody can say that there were none."""
    document = FormatDetector().read(stored(name))
    [found, *_] = lint_conversation(document, ["pay", "bank_pay"])

    assert ["Pay 5 and 6", "Thanks"] == [each.text for each in document.of(TextEntry) if each.role == "user"]
    assert [] == lint_conversation(document)
    assert "it is of an earlier run, whose decisions are stored elsewhere" in found.text


def test_a_replay_of_what_is_recorded_is_not_taken_twice() -> None:
    """Another process has loaded the session."""
    load = {"jsonrpc": "2.0", "id": 1, "method": "session/load", "params": {"sessionId": "s1", "cwd": "/"}}
    replay = [call(), changed(status="completed")]
    document = read(prompt(), *replay, ended(), load, *replay, {"jsonrpc": "2.0", "id": 1, "result": {}})

    assert 1 == len(list(document.of(CallEntry)))


@pytest.mark.parametrize(
    ("shown", "tool"),
    [
        ({"title": "pay"}, ("function", None, "pay")),
        ({"title": "mcp__bank__pay"}, ("mcp", "bank", "pay")),
        ({"title": "Pay the bill", "name": "pay"}, ("function", None, "pay")),
        ({"title": "Pay", "_meta": {"claudeCode": {"toolName": "mcp__bank__pay"}}}, ("mcp", "bank", "pay")),
        ({"title": "Read `x`", "kind": "read"}, ("function", None, "read")),
        ({"title": "Read `x`"}, ("function", None, "tool")),
    ],
)
def test_the_tool_of_a_call(shown: Json, tool: tuple[str, str | None, str]) -> None:
    """A title may be a description, and the kind is all that is known then."""
    [found] = read(prompt(), update("tool_call", toolCallId="t1", **shown)).of(CallEntry)

    assert tool == (found.kind, found.server, found.tool)


def test_arguments_may_be_shown_after_the_question() -> None:
    """The question is about what is shown at last."""
    document = read(prompt(), call(rawInput={}), ask(rawInput={}), changed(rawInput={"n": 6}), answer())

    assert [{"n": 6}] == [each.arguments for each in document.of(CallEntry)]
    assert [{"n": 6}] == [each.arguments for each in document.of(RequestEntry)]


def test_a_call_may_be_shown_by_its_question() -> None:
    """Some agents show it when they ask."""
    lines = (prompt(), ask(title="pay", rawInput={"n": 5}), answer(), changed(status="completed"), ended())

    assert [("t1", "pay", {"n": 5})] == [(each.id, each.tool, each.arguments) for each in read(*lines).of(CallEntry)]
    assert [] == mistakes(*lines)


def test_a_question_about_something_else_shows_other_arguments() -> None:
    """OpenCode asks for a folder outside of the project with the id of the call that needs it."""
    asked = ask(title="external_directory", kind="other", rawInput={"parentDir": "/etc"})

    assert [] == mistakes(prompt(), call(), asked, answer(), changed(status="completed"), ended())


def test_a_call_may_need_two_permissions() -> None:
    """The second answer counts if it is a rejection."""
    asked = (prompt(), call(), ask(7), answer("allow-once", 7), ask(8))

    assert [] == mistakes(*asked, answer("allow-once", 8), changed(status="completed"), ended())
    assert ["rejected-never-runs"] == [
        each.partition(":")[0] for each in mistakes(*asked, answer("reject-once", 8), changed(status="completed"))
    ]


def test_chunks_are_one_text() -> None:
    """As long as they are of one message."""
    lines = (said("Let me ", messageId="m1"), said("see.", messageId="m1"), said("Done.", messageId="m2"))
    texts = [each.text for each in read(prompt(), *lines).of(TextEntry)]

    assert ["Go", "Let me see.", "Done."] == texts


def test_calls_that_are_open_at_once_are_of_one_reply() -> None:
    """They may be shown one by one, and a recording may end within them."""
    document = read(prompt(), call("t1"), ask(7, "t1"), answer(), call("t2"), ask(8, "t2"))

    assert ["CallEntry", "CallEntry"] == [type(each).__name__ for each in document.entries[1:3]]
    assert {"waits"} == {each.rule for each in lint_conversation(document)}


def test_a_prompt_and_a_question_may_have_one_number() -> None:
    """Each side counts for itself."""
    lines = (prompt(7), call(), ask(7), answer("reject-once", 7), changed(status="failed"), ended(7))

    assert ["reject"] == [each.verdict for each in read(*lines).of(DecisionEntry)]
    assert [] == mistakes(*lines)


@pytest.mark.parametrize(
    ("result", "verdict"),
    [
        ({"outcome": {"outcome": "selected", "optionId": "allow-once"}}, "approve"),
        ({"outcome": {"outcome": "selected", "optionId": "allow-always"}}, "always"),
        ({"outcome": {"outcome": "selected", "optionId": "reject-always"}}, "never"),
        ({"outcome": {"outcome": "cancelled"}}, "reject"),
        ({"outcome": "selected", "optionId": "allow-once"}, "approve"),
        ({"outcome": {"outcome": "selected", "optionId": "maybe"}}, "raw"),
        ({}, "raw"),
    ],
)
def test_an_answer_is_the_kind_of_its_option(result: Json, verdict: str) -> None:
    """What was not offered is neither a yes nor a no."""
    lines = (prompt(), call(), ask(), {"jsonrpc": "2.0", "id": 7, "result": result})

    assert [verdict] == [each.verdict for each in read(*lines).of(DecisionEntry)]


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chosen", ["reject-once", "reject-always", "cancelled", "maybe"])
def test_a_call_that_ran_without_a_yes(chosen: str) -> None:
    """It is completed although it was rejected, cancelled, or answered with something else."""
    found = mistakes(prompt(), call(), ask(), answer(chosen), changed(status="completed"), ended())

    assert ["rejected-never-runs"] == [each.partition(":")[0] for each in found]
    assert [] == mistakes(prompt(), call(), ask(), answer(chosen), changed(status="failed"), ended())


def test_a_call_that_ran_before_the_answer() -> None:
    """Nobody has decided when it is completed."""
    assert [
        "approval-before-execution: pay(n=5) has a result, and nobody decided about its request (message 4)"
    ] == mistakes(prompt(), call(), ask(), changed(status="completed"), ended())


@pytest.mark.parametrize(("reason", "count"), [("end_turn", 1), ("max_tokens", 1), ("cancelled", 0)])
def test_a_prompt_that_ends_while_it_asks(reason: str, count: int) -> None:
    """Only cancelling it is an answer."""
    found = mistakes(prompt(), call(), ask(), ended(reason=reason))

    assert ["nothing-left-pending"] * count == [each.partition(":")[0] for each in found]


@pytest.mark.parametrize(("reason", "count"), [("end_turn", 1), ("cancelled", 0)])
def test_an_approved_call_that_never_ends(reason: str, count: int) -> None:
    """The prompt has ended, and nothing can happen to the call any more."""
    found = mistakes(prompt(), call(), ask(), answer(), changed(status="in_progress"), ended(reason=reason))
    text = "the prompt ended with end_turn, and pay(n=5), which was approved, was never said to have ended"

    assert [f"result-delivered-once: {text}"] * count == found


def test_a_rejected_call_of_which_nothing_more_is_shown() -> None:
    """Some agents do that."""
    assert [] == mistakes(prompt(), call(), ask(), answer("reject-once"), ended())


@pytest.mark.parametrize(("status", "count"), [("in_progress", 1), ("failed", 1), ("completed", 0), (None, 0)])
def test_an_update_after_the_end(status: str | None, count: int) -> None:
    """The same end may be told again, with more of what was returned."""
    found = mistakes(prompt(), call(), changed(status="completed"), changed(status=status), ended())

    assert [f"result-delivered-once: pay(n=5) is {status} after it has completed"] * count == found


def test_two_questions_about_one_call_at_once() -> None:
    """The first one waits."""
    found = mistakes(prompt(), call(), ask(7), ask(8), answer(number=7), answer(number=8))

    assert "request-shows-the-call" == found[0].partition(":")[0]


def test_a_question_that_shows_other_arguments() -> None:
    """Than those of the call."""
    assert ["request-shows-the-call: the request shows pay(n=6), and the call is pay(n=5) (message 3)"] == mistakes(
        prompt(), call(), ask(title="pay", rawInput={"n": 6})
    )


def test_a_question_that_is_answered_twice() -> None:
    """In contradiction, or the same again."""
    asked = (prompt(), call(), ask(), answer())

    assert "contradiction-not-executed" == mistakes(*asked, answer("reject-once"))[0].partition(":")[0]
    assert "settled-stays-settled" == mistakes(*asked, answer())[0].partition(":")[0]


def test_an_answer_to_no_question() -> None:
    """Nobody asked."""
    assert "invalid-decision-refused" == mistakes(prompt(), call(), answer(number=9))[0].partition(":")[0]


def test_the_end_of_a_call_that_was_never_shown() -> None:
    """Nor asked about."""
    assert "result-matches-its-call" == mistakes(prompt(), changed(status="completed"))[0].partition(":")[0]


def test_an_approved_call_that_is_said_to_be_rejected() -> None:
    """In the words of the agent."""
    told = "The user rejected permission to use this specific tool call."
    found = mistakes(prompt(), call(), ask(), answer(), changed(status="failed", rawOutput=told))

    assert "approved-runs" == found[0].partition(":")[0]


def test_a_gated_call_that_nobody_asked_about() -> None:
    """The policy of the user says that it needs an approval."""
    found = mistakes(prompt(), call(), changed(status="completed"), gated=("pay",))

    assert ["approval-before-execution: pay(n=5) is gated, and has a result without an approval (message 3)"] == found


# --- recorders --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrap",
    [
        lambda message: message,
        lambda message: {"direction": "in", "message": message},
        lambda message: {"seq": 1, "at": "2026-01-01T00:00:00Z", "direction": "outbound", "message": message},
        lambda message: {"timestamp": 1, "type": "send", "data": message},
        lambda message: {"ts": 1, "dir": "recv", "payload": json.dumps(message)},
        lambda message: {"level": "debug", "raw": json.dumps(message)},
        lambda message: {
            name: value for name, value in message.items() if name != "jsonrpc" or "method" not in message
        },
    ],
)
def test_lines_of_recorders(wrap: Callable[[Json], Json]) -> None:
    """The message is found wherever it is, and no direction is needed."""
    lines = [*BEGUN, prompt(), call(), ask(), answer("reject-once"), changed(status="completed"), ended()]
    document = FormatDetector().read([wrap(line) for line in lines])

    assert ["rejected-never-runs"] == [each.rule for each in lint_conversation(document)]
    assert ["acp"] == [name for name in FORMATS if get_reader(name).matches([wrap(line) for line in lines])]


def test_a_recording_of_one_side_shows_no_decisions() -> None:
    """The standard output of an agent has no answers."""
    lines = [call(), ask(), changed(status="completed")]

    assert [] == lint_conversation(FormatDetector().read(lines))


def test_a_recording_that_begins_later_may_answer_what_it_does_not_show() -> None:
    """Its session was begun before."""
    lines = [prompt(), answer(number=3), changed(status="completed"), ended()]

    assert [] == [each for each in lint_conversation(FormatDetector().read(lines)) if each.is_mistake]


def test_sessions_are_conversations(tmp_path: Path) -> None:
    """Those in which something was said, each under its id."""
    other = json.loads(json.dumps(prompt(2, "Hi")).replace("s1", "s2"))
    path = tmp_path / "acp.jsonl"
    path.write_text("\n".join(map(json.dumps, [*BEGUN, prompt(), other])))
    found = list(read_conversations([str(path)]))

    assert ["acp.jsonl", "acp.jsonl[session s2]"] == [Path(each.conversation.name).name for each in found]  # type: ignore[union-attr]


def test_what_lies_between_messages_is_ignored(tmp_path: Path) -> None:
    """Such as what a client logs besides; half a line at the end is told."""
    path = tmp_path / "acp.jsonl"
    lines = [*BEGUN, {"level": "info", "text": "connected"}, prompt(), {"jsonrpc": "2.0", "method": "_auth/status"}]
    path.write_text("\n".join(map(json.dumps, lines)) + '\n{"jsonrpc": "2.0", "met')
    error, found = read_conversations([str(path)])

    assert isinstance(error, HistoryError)
    assert (6, True) == (error.line, "remove it" in error.what)
    assert isinstance(found, LocatedConversation)
    assert ["Go"] == [each.text for each in found.conversation.of(TextEntry)]


def test_a_finding_has_the_line_of_its_message(tmp_path: Path) -> None:
    """As in every file of lines."""
    path = tmp_path / "acp.jsonl"
    lines = [*BEGUN, prompt(), call(), ask(), answer("reject-once"), changed(status="completed")]
    path.write_text("\n".join(map(json.dumps, lines)))
    [found] = Linter([str(path)])

    assert (7, "rejected-never-runs") == (found.line, found.rule)


@pytest.mark.parametrize(
    ("line", "at", "what"),
    [
        (update("tool_call", title="pay"), "toolCallId", "missing: expected a string"),
        ({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1"}}, "update", "expected an object"),
        ({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {"sessionId": 5}}, "sessionId", "a string"),
    ],
)
def test_a_message_of_another_shape_is_told(tmp_path: Path, line: Json, at: str, what: str) -> None:
    """With its line, its place, and what was expected."""
    path = tmp_path / "acp.jsonl"
    path.write_text("\n".join(map(json.dumps, [*BEGUN, line])))
    [error] = read_conversations([str(path)])

    assert isinstance(error, HistoryError)
    assert (3, at) == (error.line, error.at[-1])
    assert what in error.what


def test_other_protocols_are_not_taken(tmp_path: Path) -> None:
    """MCP is JSON-RPC, too, and a recording of it is of no known format."""
    path = tmp_path / "mcp.jsonl"
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    [found], [skipped] = list(read_conversations([str(path)])), list(read_conversations([str(tmp_path)]))

    assert isinstance(found, HistoryError)
    assert isinstance(skipped, HistoryError | SkippedFile)
