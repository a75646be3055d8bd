"""What the model is told of a call is that call's own outcome, in whatever form, and nobody else's."""

from __future__ import annotations

import json

import pytest

from pytest_approvals.checks import CHECKS, SHOWN_STATUSES, judge
from pytest_approvals.checks._told_texts import contains_text, is_empty_text, list_told_texts
from pytest_approvals.journal.events import CallerHungUp, DecisionMade, Event, ModelRequest, ToolEnd
from pytest_approvals.journal.notation import parse_notation

RETURNED = """
send Go
model c1 read(path=a); c2 read(path=b)
run c1 -> text of a
run c2 -> text of b
untell c1
tell c1 {told}
done
"""

RAISED = """
send Go
model c1 read(path=a); c2 read(path=b)
run c2 -> text of b
run c1 !! no such file
tell c1 {told}
done
"""

REJECTED = """
send Pay
model c1 pay(amount=5); c2 pay(amount=6); c3 read(path=a)
run c3 -> text of a
pause c1, c2
{first}
reject c2 wrong account
go
tell c1 {told}
tell c2 wrong account
done
"""

EDITED = """
send Pay 5
model c1 pay(amount=5)
pause c1
edit c1 (amount=3)
go
run c1 pay(amount=3) -> paid 3
untell c1
tell c1 {told}
done
"""


SUMMED_UP = """
send Pay
model c1 pay(amount=5); c2 pay(amount=6)
pause c1, c2
reject c1
go
forget c1, c2
user {told}
done
"""


def list_findings(lines: str, check: str) -> list[tuple[str | None, str]]:
    """Returns the calls for which a check does not hold, each with the status."""
    verdicts = judge(parse_notation(lines), [CHECKS[check]])
    return [(verdict.label, verdict.status) for verdict in verdicts if verdict.status in SHOWN_STATUSES]


@pytest.mark.parametrize(
    "told",
    [
        "text of a",
        "Result: text of a.",
        '"text of a"',
        '{"result": "text of a"}',
        '{"result": "\\u0074ext of a"}',
        '[{"type": "text", "text": "text of a"}]',
        json.dumps({"content": json.dumps({"output": "text of a"})}),
        "{'result': 'text of a'}",
        "结果text of a完成",
    ],
)
def test_a_result_may_be_told_in_any_form(told: str) -> None:
    """Text, JSON, blocks and words around it are all the result."""
    assert [] == list_findings(RETURNED.format(told=told), "result-matches-its-call")


@pytest.mark.parametrize(
    "told",
    [
        "text of ab",
        "text of a text of b",
        '{"result": "text of a", "last": "text of b"}',
        json.dumps({"result": "text of a", "last": json.dumps({"inner": "text of b"})}),
        "text of b",
        "{}",
        '""',
    ],
)
def test_a_result_is_whole_and_alone(told: str) -> None:
    """Neither the beginning of another word nor the result of a sibling stands for it, or beside it."""
    assert [("c1", "fail")] == list_findings(RETURNED.format(told=told), "result-matches-its-call")


@pytest.mark.parametrize(
    "told",
    [
        "no such file",
        "Error: ToolRaised",
        "The tool did not succeed.",
        '{"error": {"message": "no such file"}}',
        '{"status": "failed"}',
        '{"ok": false}',
        "An exception occurred.",
    ],
)
def test_an_error_may_be_told_in_any_words(told: str) -> None:
    """The error itself, its type, or a text that says that it failed."""
    assert [] == list_findings(RAISED.format(told=told), "result-matches-its-call")


@pytest.mark.parametrize(
    "told", ["{}", '""', "[]", "null", "None", '{"result": null}', "Done.", '{"status": "success"}', "Error: text of b"]
)
def test_an_error_is_no_success(told: str) -> None:
    """Nothing, a word for success, and the result of a sibling hide it."""
    assert [("c1", "fail")] == list_findings(RAISED.format(told=told), "result-matches-its-call")


@pytest.mark.parametrize(
    ("first", "told"),
    [
        ("reject c1 too much", "Denied: too much"),
        ("reject c1 too much", '{"rejected": {"reason": "too much"}}'),
        ("reject c1 it was done already", "it was done already"),
        ("reject c1", "Tool execution was not approved."),
        ("reject c1", '{"approved": false}'),
        ("reject c1", "Die Freigabe fehlt."),
        ("reject c1", "The person decided against it; do something else, and say when it is done."),
    ],
)
def test_a_rejection_may_be_told_in_any_words(first: str, told: str) -> None:
    """With its own reason, or with the framework's text if there is none."""
    lines = REJECTED.format(first=first, told=told)

    assert [] == [*list_findings(lines, "rejection-told"), *list_findings(lines, "result-matches-its-call")]


@pytest.mark.parametrize(
    ("told", "check"),
    [
        ("{}", "rejection-told"),
        ('{"result": ""}', "rejection-told"),
        ("Done.", "rejection-told"),
        ('{"status": "success", "approved": true}', "rejection-told"),
        ("Denied: wrong account", "result-matches-its-call"),
        ('{"denied": "wrong account"}', "result-matches-its-call"),
        ("Denied. text of a", "result-matches-its-call"),
    ],
)
def test_a_rejection_is_told_as_its_own(told: str, check: str) -> None:
    """Not as nothing, not as success, not with the reason or the result of a sibling."""
    assert [("c1", "fail")] == list_findings(REJECTED.format(first="reject c1", told=told), check)


def test_a_short_line_of_a_reason_is_found_in_other_words() -> None:
    """That the model is told a word of the reason says nothing."""
    events = parse_notation("""
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 no
        go
        tell c1 Not executed
        done
    """)
    for event in events:
        if isinstance(event, DecisionMade):
            event.reason = "no\nexecuted\nnot executed"

    assert ["fail"] == [verdict.status for verdict in judge(events, [CHECKS["reason-told"]])]
    for event in events:
        if isinstance(event, DecisionMade):
            event.reason = "Not\nask Ann first"

    assert ["warning"] == [verdict.status for verdict in judge(events, [CHECKS["reason-told"]])]


@pytest.mark.parametrize(
    ("told", "findings"),
    [
        ("Denied: over the limit\nask Ann first", []),
        ("Denied: over the limit ask Ann first", []),
        ("Denied: over the limit", [("c1", "fail")]),
        ("Denied: ask Ann first", [("c1", "fail")]),
        ("Denied", [("c1", "warning")]),
    ],
)
def test_a_reason_is_told_with_all_of_its_lines(told: str, findings: list[tuple[str, str]]) -> None:
    """An agent that has a place for one line of it has no excuse for the others."""
    events = parse_notation("""
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 over the limit
        go
        tell c1 TOLD
        done
    """)
    for event in events:
        if isinstance(event, DecisionMade):
            event.reason = "over the limit\nask Ann first"
        if isinstance(event, ModelRequest) and event.items[-1]["kind"] == "result":
            event.items[-1]["text"] = told

    verdicts = [verdict for verdict in judge(events, [CHECKS["reason-told"]]) if verdict.status in SHOWN_STATUSES]
    assert findings == [(verdict.label, verdict.status) for verdict in verdicts]


def test_a_result_is_not_judged_by_that_of_a_call_with_its_id() -> None:
    """Two calls of one reply with one id: nothing says which of them a result is for."""
    lines = """
        send Go
        model c1 read(path=a); d1@c1 pay(amount=5)
        run c1 -> text of a
        pause d1
        reject d1 keep it
        go
        untell c1
        tell c1 text of a; the other one is rejected: keep it
        done
    """

    assert [] == list_findings(lines, "result-matches-its-call")


def test_a_rejected_call_is_not_told_what_its_tool_would_return() -> None:
    """The result of another call of its tool shows how that looks."""
    lines = REJECTED.format(first="reject c1", told="not paid 5").replace("read", "pay").replace("path=a", "amount=7")

    assert [("c1", "fail")] == list_findings(lines.replace("text of a", "paid 7"), "rejection-told")


@pytest.mark.parametrize(
    ("told", "findings"),
    [
        ("paid 3", []),
        ("Edited by the person: paid 3", []),
        ("paid 3 instead of 5", []),
        ("paid 5", [("c1", "fail")]),
        ("paid 5, paid 3", [("c1", "fail")]),
    ],
)
def test_an_edited_call_is_told_what_ran(told: str, findings: list[tuple[str, str]]) -> None:
    """Not what the call would have returned as the model wrote it."""
    assert findings == list_findings(EDITED.format(told=told), "result-matches-its-call")


@pytest.mark.parametrize(
    ("response", "findings"), [("no over the limit", []), ("no", [("c1", "warning")]), ("no why", [("c1", "warning")])]
)
def test_a_provider_is_told_the_reason(response: str, findings: list[tuple[str, str]]) -> None:
    """The answer to the request of a hosted call has a place for it."""
    lines = f"""
        tool search(query) always hosted web
        rules responses
        send Search
        model c1 search(query=cats)
        pause c1
        reject c1 over the limit
        go
        respond c1 {response}
        done
    """

    assert findings == list_findings(lines, "reason-told")


@pytest.mark.parametrize(
    ("messages", "fails"),
    [
        (["send Pay 5"], False),
        (["send Pay 5", "user Pay 5"], True),
        (["send Pay 5", "drop user Pay 5", "user Pay 5 / Pay 5"], True),
        (["send Pay 5 and pay 5 Pay 5"], False),
        (["send Pay", "done", "send Pay 5"], False),
    ],
)
def test_a_message_reaches_the_model_once(messages: list[str], fails: bool) -> None:
    """In one item or in two; what was sent twice may be there twice."""
    findings = list_findings("\n".join([*messages, "done"]), "caller-messages-kept")

    assert fails is bool(findings)


@pytest.mark.parametrize(
    ("text", "part", "contained"),
    [
        ("paid 5.", "paid 5", True),
        ("paid 5.5", "paid 5", False),
        ("unpaid 5", "paid 5", False),
        ("a\\npaid 5", "paid 5", True),
        ('"\\u00fc 5"', "ü 5", True),
        (None, "paid 5", False),
        ("x(5)", "(5)", True),
        ("(5)x", "(5)", True),
        ("paid 5", "", True),
        ('{"text": "unpaid 5", "paid 5": 1, "last": "paid 5"}', "paid 5", True),
    ],
)
def test_a_text_is_contained_as_a_whole(text: str | None, part: str, contained: bool) -> None:
    """Not as a part of a word or of a number."""
    assert contained is contains_text(text, part)


def test_texts_in_texts_have_an_end() -> None:
    """A text that is JSON within JSON is opened some times, and nested too deep for the parser not at all."""
    text = "deep"
    for _ in range(20):
        text = json.dumps([text])

    assert "deep" not in list_told_texts(text)
    assert ["[" * 100_000] == list_told_texts("[" * 100_000)
    assert not is_empty_text("[" * 100_000)


STREAMED = """
streaming
send Go
model c1 read(path=a); c2 pay(amount=5)
run c1 -> text of a
{shown}
pause c2
approve c2
go
run c2 -> paid 5
{later}
done
"""


@pytest.mark.parametrize(
    ("shown", "later", "findings"),
    [
        ("", "", []),
        ("show result c1 text of a", 'show result c2 {"output": "paid 5"}', []),
        ("", "show result c1 text of a\nshow result c2 paid 5", []),
        ("show result r1 text of a", "show result r2 paid 5", []),
        ("show result c1 text of a", "show result c2 paid 50", [("c2", "fail")]),
        ("show result c1 text of a", "show result c2 paid 5 text of a", [("c2", "fail")]),
        ("show result c1 text of a", "", [("c2", "warning")]),
        ("show result c1 text of a", "show result c2 paid 5\nshow result c2 paid 5", [("c2", "warning")]),
        ("show request c2", "", []),
        ("show request c2\nshow request c2", "", [("c2", "warning")]),
        ("show request c2", "show request c2", []),
    ],
)
def test_a_stream_shows_results_and_requests_once(shown: str, later: str, findings: list[tuple[str, str]]) -> None:
    """Each in its turn, and as it is; an agent may show none, or its own ids."""
    assert findings == list_findings(STREAMED.format(shown=shown, later=later), "stream-shows-everything")


@pytest.mark.parametrize(
    ("word", "fails"),
    [
        ("paid5", True),
        ("all ok", True),
        ("finished", True),
        ("ab 5", False),
        ("success", False),
    ],
)
def test_a_word_that_many_calls_may_say_is_nobodys(word: str, fails: bool) -> None:
    """Of a text of five to seven characters only one with a digit or a space is taken for a call's own outcome."""
    lines = f"""
        send Go
        model c1 read(path=a); c2 read(path=b)
        run c1 -> {word}
        run c2 -> text of b
        untell c2
        tell c2 text of b {word}
        done
    """

    assert fails is bool(list_findings(lines, "result-matches-its-call"))


@pytest.mark.parametrize(
    ("text", "empty"),
    [
        (None, True),
        ("", True),
        (" ", True),
        ("None", True),
        ("null", True),
        ("''", True),
        ('" "', True),
        ('{"type": "text", "text": ""}', True),
        ('{"id": "c1", "result": [null, [""]]}', True),
        ("no", False),
        ('"no"', False),
        ('{"amount": 0}', False),
        ('[["text"]]', False),
    ],
)
def test_a_text_without_content(text: str | None, empty: bool) -> None:
    """Neither the frame of a text nor its type and its id are content."""
    assert empty is is_empty_text(text)


def test_texts_in_texts_are_opened() -> None:
    """A text that is JSON within JSON is found six times deep below the first."""
    text = "deep"
    for _ in range(7):
        text = json.dumps({"text": text})

    assert "deep" in list_told_texts(text)
    assert "deep" not in list_told_texts(json.dumps([text]))


@pytest.mark.parametrize(
    ("kind", "findings"),
    [
        ("say", []),
        ("call", []),
        ("other", []),
        ("result", ["'I read it.' is not in the next input"]),
        ("user", ["'I read it.' is not in the next input"]),
    ],
)
def test_what_the_model_said_comes_back_as_its_own(kind: str, findings: list[str]) -> None:
    """As its message, with its call, or as a kind of item that only this provider has."""
    events = parse_notation("send Go\nmodel I read it.; c1 read(path=a)\nrun c1 -> text\ndone")
    said = next(item for item in events[-4].items if item["kind"] == "say")
    said["kind"] = kind

    verdicts = judge(events, [CHECKS["history-not-rewritten"]])
    assert findings == [verdict.actual for verdict in verdicts if verdict.status == "warning"]


def test_instructions_that_are_left_out_are_missed() -> None:
    """They may say something else each time, but not nothing."""
    lines = "instruct It is Monday.\nsend Go\nmodel c1 read(path=a)\nrun c1 -> text\ninstruct\ndone"
    verdicts = judge(parse_notation(lines), [CHECKS["history-not-rewritten"]])

    assert ["item 1 of the previous input is different or missing"] == [verdict.actual for verdict in verdicts]


def test_a_server_that_carries_a_call_out_does_not_notice_that_nobody_waits():
    """What it returned after the caller hung up reaches nobody, so the model may be told that it was interrupted."""
    lines = """
send Go
model c1 read(path=a)
start c1
hangup c1
tell c1 The call was interrupted.
send And now?
done
"""
    found = {}
    for name, behind in (("after", 1), ("before", 0)):
        events = parse_notation(lines)
        [end] = [event for event in events if isinstance(event, ToolEnd)]
        end.how, end.result = "returned", "text of a"
        events.remove(end)
        [cut] = [event for event in events if isinstance(event, CallerHungUp)]
        events.insert(events.index(cut) + behind, end)
        for n, event in enumerate(events, 1):
            event.n = n
        verdicts = judge(events, [CHECKS["result-matches-its-call"]])
        found[name] = [verdict.status for verdict in verdicts if verdict.status in SHOWN_STATUSES]

    assert {"after": [], "before": ["fail"]} == found


def test_what_is_escaped_in_no_element_is_as_it_stands() -> None:
    """Only an element of XML is read as XML."""
    assert ["1 &lt; 2"] == list_told_texts("1 &lt; 2")


def read_summary(*lines: str) -> list[Event]:
    """Returns a journal in which the model is told these lines, in one message, of a call that was rejected."""
    events = parse_notation(SUMMED_UP.format(told="TOLD"))
    for event in events:
        for item in event.items if isinstance(event, ModelRequest) else ():
            if item.get("text") == "TOLD":
                item["text"] = "\n".join(lines)
    return events


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (("Your call c1 of pay: The user changed it. Its result:", "Not executed: rejected."), "pass"),
        (("Your call c1 of pay: The user changed it.", "Not executed: rejected."), "fail"),
        (("Your call c1 of pay was made. Then:", "c2 was rejected."), "fail"),
    ],
)
def test_a_line_that_ends_in_a_colon_goes_on_in_the_next(lines: tuple[str, ...], status: str) -> None:
    """What follows is about the call that the line names, unless it names another one."""
    verdicts = judge(read_summary(*lines), [CHECKS["rejection-told"]])

    assert [status] == [verdict.status for verdict in verdicts]
