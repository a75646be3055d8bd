"""Transcripts of Claude Code: entries on lines, their tree, and what they say about decisions.

The files in `stored` are written by Claude Code; `make_claude_code.py` lets it.
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
    TextEntry,
)
from pytest_approvals.conversations.histories.files import LocatedConversation, SkippedFile, read_conversations
from pytest_approvals.conversations.histories.readers import FormatDetector, detect_format, get_reader
from pytest_approvals.conversations.lint import lint_conversation
from pytest_approvals.conversations.lint.linter import Linter
from pytest_approvals.errors import HistoryError

Json = dict[str, Any]

STORED = Path(__file__).parent / "stored"


def stored(name: str) -> list[Json]:
    """Return the entries of a stored transcript."""
    return [json.loads(line) for line in (STORED / f"claude_code_{name}.jsonl").read_text().splitlines()]


def entry(uuid: str, parent: str | None, content: Any, kind: str = "user", **more: Any) -> Json:
    """Return an entry with a message."""
    message = {"role": kind, "content": content, **({"id": f"m-{uuid}"} if kind == "assistant" else {})}
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1", "message": message, **more}


def call(call_id: str, **given: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": given or {"command": "ls"}}


def result(call_id: str, text: str = "done", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text, **more}


def mistakes(document: list[Json]) -> list[str]:
    found = [each for read in get_reader("claude_code").read_each(document) for each in lint_conversation(read)]  # type: ignore[misc]
    return [f"{each.rule}: {each.text}" for each in found if each.is_mistake]


@pytest.fixture
def transcript(tmp_path: Path) -> Callable[..., Path]:
    """Writes entries, or texts of lines, to a transcript."""

    def write(*lines: Json | str, name: str = "s1.jsonl") -> Path:
        path = tmp_path / name
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(texts))
        return path

    return write


# --- what is stored ---------------------------------------------------------------------------------------------------


def test_the_tool_of_a_server_is_named_by_both() -> None:
    """A name such as `mcp__bank__pay` is a tool of a server."""
    calls = list(FormatDetector().read(stored("done")).of(CallEntry))

    assert {("mcp", "bank", "pay"), ("mcp", "bank", "read")} == {(each.kind, each.server, each.tool) for each in calls}


def test_the_outcomes_of_a_reply_are_told() -> None:
    """One call ran, one was rejected in words of the application, one ran."""
    results = FormatDetector().read(stored("done")).of(ResultEntry)

    assert {"c1": "returned", "c2": "denied", "c3": "returned"} == {each.call_id: each.outcome for each in results}


def test_a_deferred_call_is_a_request() -> None:
    """It waits, and shows what the hook was asked about."""
    read = FormatDetector().read(stored("deferred"))

    assert [("c1", "pay", {"amount": 5})] == [
        (each.call_id, each.tool, each.arguments) for each in read.of(RequestEntry)
    ]
    assert ["pay(amount=5) waits for a decision"] == [each.text for each in lint_conversation(read)]


def test_the_answer_of_a_hook_is_the_decision_about_a_deferred_call() -> None:
    """The result says what decided."""
    read = FormatDetector().read(stored("deferred_approved"))

    assert ("c1", "approve") == next((each.id, each.verdict) for each in read.of(DecisionEntry))
    assert [] == mistakes(stored("deferred_approved"))


def test_a_call_that_is_deferred_again_has_one_request() -> None:
    """A resumed session asks its hook once more; the message that went past the call is what is wrong."""
    assert ["nothing-left-pending: nobody decided about pay(amount=5), and the conversation goes on"] == mistakes(
        stored("deferred_passed")
    )


def test_a_rule_that_allows_a_call_is_no_decision() -> None:
    """The call of the tool that runs a sub-agent was not asked about."""
    assert [] == list(FormatDetector().read(stored("with_sub_agent")).of(DecisionEntry))


def test_an_interrupted_question_is_a_rejection() -> None:
    """What the CLI says in place of the user is no message of theirs."""
    read = FormatDetector().read(stored("interrupted"))

    assert ["reject"] == [each.verdict for each in read.of(DecisionEntry)]
    assert ["Pay 5 and 6", "Let me see.", "Hi", "Hello."] == [each.text for each in read.of(TextEntry)]


def test_a_call_of_a_killed_process_waits_and_is_then_interrupted() -> None:
    """The process that resumes the session tells the model so, and the CLI's own reply is none of the model's."""
    resumed = FormatDetector().read(stored("killed_resumed"))

    assert ["pay(amount=5) waits for its result"] == [
        each.text for each in lint_conversation(FormatDetector().read(stored("killed")))
    ]
    assert ["interrupted"] == [each.outcome for each in resumed.of(ResultEntry)]
    assert "No response requested." not in [each.text for each in resumed.of(TextEntry)]


def test_a_fork_holds_what_it_was_forked_from() -> None:
    """It is one conversation, under the id of the fork."""
    [read] = read_conversations([str(STORED / "claude_code_forked.jsonl")])

    assert isinstance(read, LocatedConversation)
    assert ["Pay 5 and 6", "Thanks"] == [each.text for each in read.conversation.of(TextEntry) if each.role == "user"]
    assert [] == mistakes(stored("forked"))


def test_a_rewound_branch_is_a_conversation_of_its_own() -> None:
    """The call that waits in it does not wait in the conversation that goes on."""
    found = list(read_conversations([str(STORED / "claude_code_rewound.jsonl")]))
    names = [each.conversation.name.rpartition(".jsonl")[2] for each in found if isinstance(each, LocatedConversation)]

    assert ["", "[branch 1]"] == names
    assert [] == mistakes(stored("rewound"))


def test_a_sub_agent_is_named() -> None:
    """Its transcript is a file of its own."""
    [read] = read_conversations([str(STORED / "claude_code_of_sub_agent.jsonl")])

    assert isinstance(read, LocatedConversation)
    assert "[agent " in read.conversation.name
    assert ["c2"] == [each.call_id for each in read.conversation.of(ResultEntry)]


# --- the tree ---------------------------------------------------------------------------------------------------------


def test_results_of_parallel_calls_are_no_branches() -> None:
    """Each result is a child of its call, and only one of them leads on."""
    reply = {"role": "assistant", "id": "m1"}
    document = [
        entry("u1", None, "Go"),
        {**entry("a1", "u1", [], "assistant"), "message": {**reply, "content": [call("t1")]}},
        {**entry("a2", "a1", [], "assistant"), "message": {**reply, "content": [call("t2")]}},
        entry("r1", "a1", [result("t1")]),
        entry("r2", "a2", [result("t2")]),
        entry("a3", "r1", [{"type": "text", "text": "Done."}], "assistant"),
    ]
    [read] = get_reader("claude_code").read_each(document)  # type: ignore[misc]

    assert ["t1", "t2"] == [each.call_id for each in read.of(ResultEntry)]
    assert [] == mistakes(document)


def test_blocks_of_a_reply_belong_together() -> None:
    """The result of its first call may be written before its second call."""
    reply = {"role": "assistant", "id": "m1"}
    document = [
        entry("u1", None, "Go"),
        {**entry("a1", "u1", [], "assistant"), "message": {**reply, "content": [call("t1")]}},
        entry("r1", "a1", [result("t1")]),
        {**entry("a2", "a1", [], "assistant"), "message": {**reply, "content": [call("t2")]}},
        entry("r2", "a2", [result("t2")]),
    ]
    read = FormatDetector().read(document)

    assert ["CallEntry", "CallEntry", "ResultEntry", "ResultEntry"] == [
        type(each).__name__ for each in read.entries if not isinstance(each, TextEntry)
    ]


def test_an_entry_without_its_parent_follows_the_one_before() -> None:
    """After a compaction the parents of the first entries are gone."""
    document = [
        entry("u1", "gone", "Go"),
        entry("a1", "u1", [call("t1")], "assistant"),
        entry("r1", "also gone", [result("t1")]),
    ]

    assert [] == mistakes(document)
    assert 1 == len(get_reader("claude_code").read_each(document))  # type: ignore[misc, arg-type]


def test_an_entry_that_is_written_twice_is_read_once() -> None:
    """It has the same id."""
    document = [entry("u1", None, "Go"), entry("a1", "u1", [call("t1")], "assistant")]

    assert [] == mistakes([*document, document[1], entry("r1", "a1", [result("t1")])])


def test_sessions_of_one_file_are_conversations(transcript) -> None:
    """Each has its id as its name."""
    other = {**entry("u2", None, "Hello"), "sessionId": "s2"}
    found = list(read_conversations([str(transcript(entry("u1", None, "Go"), other))]))

    assert ["s1.jsonl", "s1.jsonl[session s2]"] == [Path(each.conversation.name).name for each in found]


def test_sub_agents_of_one_file_are_conversations() -> None:
    """Early releases wrote them between the entries of the session, each beginning without a parent."""
    document = [
        entry("u1", None, "Go"),
        entry("a1", "u1", [call("t1")], "assistant"),
        entry("s1", None, "Look", isSidechain=True),
        entry("s2", None, "Look too", isSidechain=True),
        entry("s3", "s1", [call("t2")], "assistant", isSidechain=True),
        entry("r1", "a1", [result("t1")]),
    ]
    read = get_reader("claude_code").read_each(document)  # type: ignore[misc]

    assert ["", "[agent]", "[agent]"] == [each.name for each in read]
    assert [] == mistakes(document)


# --- mistakes ---------------------------------------------------------------------------------------------------------


def test_a_rejected_call_that_ran() -> None:
    """The result of a run says that the user rejected it."""
    told = {"decision": "reject", "source": "user_reject"}
    document = [
        entry("u1", None, "Go"),
        entry("a1", "u1", [call("t1")], "assistant"),
        entry("r1", "a1", [result("t1", "a b")], permissionDecision=told),
    ]

    assert [
        'rejected-never-runs: Bash(command="ls") was decided with reject, and has the result of a run (message 2)'
    ] == mistakes(document)


def test_an_approved_call_without_a_result() -> None:
    """The model answers as if there were one."""
    document = stored("done")
    del document[next(n for n, each in enumerate(document) if '"paid 5"' in json.dumps(each))]

    assert ["result-delivered-once: pay(amount=5) has no result, and the conversation goes on"] == mistakes(document)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if ...).", "denied"),
        ("Permission to use Bash with command ls has been denied.", "denied"),
        ("Claude requested permissions to write to x, but you haven't granted it yet.", "denied"),
        ("This command requires approval", "denied"),
        ("PreToolUse:Bash hook error: [guard]: no tests here", "denied"),
        ("[Request interrupted by user for tool use]", "interrupted"),
        ("The owner refused.", "unknown"),
        ("<tool_use_error>File has not been read yet.</tool_use_error>", "failed"),
    ],
)
def test_releases_that_mark_no_refusals_tell_them_in_words(text: str, outcome: str) -> None:
    """Only of results that are errors."""
    head = [entry("u1", None, "Go"), entry("a1", "u1", [call("t1")], "assistant")]
    read = [
        FormatDetector().read([*head, entry("r1", "a1", [result("t1", text, is_error=is_error)])])
        for is_error in (True, False)
    ]

    assert [outcome, "returned"] == [each.outcome for one in read for each in one.of(ResultEntry)]


def test_what_a_user_said_with_a_rejection_is_its_reason() -> None:
    """It follows the words of the CLI."""
    told = "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nUse git"
    read = FormatDetector().read([
        entry("a1", None, [call("t1")], "assistant"), entry("r1", "a1", [result("t1", told, is_error=True)]),
    ])  # fmt: skip

    assert [("reject", "Use git")] == [(each.verdict, each.reason) for each in read.of(DecisionEntry)]


def test_a_standing_approval_is_decided_once() -> None:
    """Later calls of the tool say the same, and nobody was asked."""
    told = {"decision": "accept", "source": "user_permanent"}
    document = []
    for name in ("t1", "t2"):
        document.append(entry(f"a-{name}", None, [call(name)], "assistant"))
        document.append(entry(f"r-{name}", None, [result(name)], permissionDecision=told))
    read = FormatDetector().read(document)

    assert [("t1", "always")] == [(each.id, each.verdict) for each in read.of(DecisionEntry)]


@pytest.mark.parametrize("name", ["pay", "mcp__bank__pay", "mcp__bank__*"])
def test_a_gate_names_a_tool_with_or_without_its_server(name: str) -> None:
    """The rules of Claude Code name both."""
    document = stored("deferred_approved")
    for each in document:
        each.pop("permissionDecision", None)
    kept = [each for each in document if each.get("attachment", {}).get("type") != "hook_deferred_tool"]
    found = lint_conversation(FormatDetector().read(kept), [name])

    assert "approval-before-execution" == found[0].rule
    assert "pay(amount=5) is gated" in found[0].text


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_finding_has_the_line_of_its_entry(transcript) -> None:
    """Lines that say nothing are counted."""
    summary = {"type": "summary", "summary": "Payments", "leafUuid": "u1"}
    path = transcript(summary, entry("u1", None, "Go"), "", entry("r1", "u1", [result("t9")]))
    [found] = Linter([str(path)])

    assert (4, "result-matches-its-call") == (found.line, found.rule)


def test_half_a_line_is_told_with_its_remedy(transcript) -> None:
    """A killed process leaves it; the lines before it are judged."""
    path = transcript(entry("u1", None, "Go"), entry("r1", "u1", [result("t9")]), '{"type": "assistant", "mess')
    error, finding = Linter([str(path)])

    assert 3 == error.line
    assert error.text.startswith("truncated: ")
    assert error.text.endswith("; a process that is killed leaves half of its last line: remove it")
    assert "result-matches-its-call" == finding.rule


def test_entries_of_unknown_types_say_nothing(transcript) -> None:
    """A later release may add some, with a session and without."""
    later = [{"type": "later", "sessionId": "s1"}, {"type": "later still"}, {"kind": 3}]
    [read] = read_conversations([str(transcript(entry("u1", None, "Go"), *later, entry("u2", "u1", "On")))])

    assert isinstance(read, LocatedConversation)
    assert ["Go", "On"] == [each.text for each in read.conversation.of(TextEntry)]


def test_an_entry_of_another_shape_is_told(transcript) -> None:
    """With its line, its place, and what was expected."""
    [error] = read_conversations([str(transcript(entry("u1", None, "Go"), {**entry("u2", "u1", ""), "message": "On"}))])

    assert isinstance(error, HistoryError)
    assert (2, (1, "message")) == (error.line, error.at)
    assert "expected an object, got a string" == error.what


@pytest.mark.parametrize("rubbish", ["42", "not JSON", '"text"'])
def test_rubbish_between_entries_is_told(transcript, rubbish: str) -> None:
    """The entries are read."""
    path = transcript(entry("u1", None, "Go"), rubbish, entry("u2", "u1", "On"))
    error, read = read_conversations([str(path)])

    assert isinstance(error, HistoryError)
    assert 2 == error.line
    assert isinstance(read, LocatedConversation)
    assert ["Go", "On"] == [each.text for each in read.conversation.of(TextEntry)]


def test_a_transcript_without_messages_is_told(transcript) -> None:
    """Early releases kept the summaries of other sessions in such files; in a folder they are left out."""
    path = transcript({"type": "summary", "summary": "Payments", "leafUuid": "u1"})
    [error], [skipped] = list(read_conversations([str(path)])), list(read_conversations([str(path.parent)]))

    assert isinstance(error, HistoryError)
    assert "no messages in this transcript: expected entries of type user or assistant" == error.what
    assert isinstance(skipped, SkippedFile)


def test_no_other_reader_takes_a_line() -> None:
    """A line alone is no document of any format."""
    lines = [line for path in STORED.glob("claude_code_*.jsonl") for line in stored(path.stem[12:])]

    assert {None} == {detect_format(line) for line in lines}
    assert {get_reader("claude_code")} == {detect_format([line]) for line in lines}
