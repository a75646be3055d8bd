"""Requests that show a call as another kind of call, or with arguments that no line of the notation can write."""

from __future__ import annotations

import pytest

from pytest_approvals.checks import CHECKS, judge
from pytest_approvals.journal.events import ModelAnswer, RunEnd, StateRestored, TurnEnd
from pytest_approvals.journal.notation import parse_notation

HOSTED = """
tool search(query: string) always hosted web
rules responses
send Search
model c1 search(query=cats)
pause c1
end left
"""
PLAIN = "send Go\nmodel c1 read(path=a)\npause c1\nend left"


def list_findings(events):
    verdicts = judge(events, [CHECKS["request-shows-the-call"]])
    return [(each.expected, each.actual) for each in verdicts if each.status == "fail"]


def entry_of(events):
    return next(event for event in events if isinstance(event, TurnEnd)).requests[0]


@pytest.mark.parametrize(
    ("lines", "shown", "finding"),
    [
        (HOSTED, {"server": "other"}, ("a request of kind hosted_mcp of web", "one of kind hosted_mcp of other")),
        (HOSTED, {"server": None}, ("a request of kind hosted_mcp of web", "one of kind hosted_mcp")),
        (HOSTED, {"kind": "mcp"}, ("a request of kind hosted_mcp of web", "one of kind mcp of web")),
        (PLAIN, {"kind": "mcp", "server": "web"}, ("a request of kind function", "one of kind mcp of web")),
    ],
)
def test_a_request_shows_what_kind_of_call_it_is_about(lines, shown, finding):
    """Whether a provider, a server or the agent runs it says where its effects are."""
    events = parse_notation(lines)
    entry_of(events).update(shown)

    assert [finding] == list_findings(events)


@pytest.mark.parametrize(
    ("written", "shown", "fails"),
    [("  ", {}, False), ("  ", {"path": "a"}, True), ([1], [1], False), ([1], [2], True), ([1], {}, True)],
)
def test_arguments_that_are_no_object(written, shown, fails):
    """Blank text is shown as nothing, a list as it is."""
    events = parse_notation(PLAIN)
    next(event for event in events if isinstance(event, ModelAnswer)).calls[0]["arguments"] = written
    for entry in (entry_of(events), events[-1].pending[0]):
        entry["arguments"] = shown

    assert fails is bool(list_findings(events))


def test_a_blank_text_stands_for_no_arguments():
    """A tool without parameters runs on it."""
    events = parse_notation("tool now() never\nsend Go\nmodel c1 now()\nrun c1 -> noon\ndone")
    next(event for event in events if isinstance(event, ModelAnswer)).calls[0]["arguments"] = "  "

    assert ["pass"] == [verdict.status for verdict in judge(events, [CHECKS["arguments-as-approved"]])]


def test_a_call_beside_the_answer_of_the_run():
    """The answer ends the run, so the call need not be asked about; the model is told."""
    events = parse_notation("send Pay 5\nmodel c1 pay(amount=5)\ntell c1 not run\ndone")
    next(event for event in events if isinstance(event, ModelAnswer)).answer = {"total": 5}

    assert ["pass"] == [verdict.status for verdict in judge(events, [CHECKS["every-gated-call-asked"]])]


def play_by_provider(lines):
    """Return a journal in which a provider runs a call within the request that then fails."""
    events = parse_notation(lines)
    start = next(at for at, event in enumerate(events) if event.kind == "tool.start")
    tool, request = events[start : start + 2], events[start + 2]
    events[start : start + 3] = [request, *tool]
    for n, event in enumerate(events, 1):
        event.n = n
    return events


BROKEN = """
tool search(query: string) never hosted web
tool find(query: string) always hosted web
tool read(path: string) never
rules responses
send Search
hosted c1 search(query=cats) -> found
down 500
fail ModelDown: 500
"""


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (BROKEN, "pass"),
        (BROKEN.replace("send Search", "send Hello\ndone\nsend Search"), "pass"),
        (BROKEN.replace("c1 search", "c1 find"), "fail"),
        (BROKEN.replace("c1 search(query=cats)", "c1 read(path=a)"), "fail"),
        (BROKEN.replace("down 500", "exhausted"), "fail"),
    ],
    ids=["ungated", "replied-before", "gated", "no-hosted-tool", "no-broken-reply"],
)
def test_a_provider_runs_a_call_whose_reply_breaks_off(lines, status):
    """The agent has no part in it if the provider may run it unasked."""
    verdicts = judge(play_by_provider(lines), [CHECKS["only-model-calls-run"]])

    assert [status] == [verdict.status for verdict in verdicts]


def test_a_provider_runs_a_call_outside_of_all_replies():
    """Nothing explains it, nor does the failure of another session's model or of a later request."""
    before = judge(parse_notation(BROKEN), [CHECKS["only-model-calls-run"]])
    events = play_by_provider(BROKEN)
    for event in events:
        if event.kind.startswith("tool."):
            event.session = "b"
    other = judge(events, [CHECKS["only-model-calls-run"]])

    assert ["fail", "fail"] == [verdict.status for verdict in (*before, *other)]


def cut_off(events):
    """Return a journal up to the question to which no reply is recorded."""
    return events[: next(at for at, event in enumerate(events) if event.kind == "model.failure")]


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (BROKEN, "not-applicable"),
        (BROKEN.replace("send Search", "send Hello\ndone\nsend Search"), "not-applicable"),
        (BROKEN.replace("c1 search", "c1 find"), "fail"),
    ],
    ids=["ungated", "replied-before", "gated"],
)
def test_a_journal_ends_before_the_reply_of_the_provider(lines, status):
    """Nobody knows what that reply would have said of the call; one that needs approval fails in any case."""
    verdicts = judge(cut_off(play_by_provider(lines)), [CHECKS["only-model-calls-run"]])

    assert [status] == [verdict.status for verdict in verdicts]


def test_a_provider_runs_a_call_that_no_open_question_explains():
    """A question that comes later does not, nor does one of another session."""
    later = cut_off(parse_notation(BROKEN))
    other = cut_off(play_by_provider(BROKEN))
    for event in other:
        if event.kind.startswith("tool."):
            event.session = "b"
    verdicts = [verdict for events in (later, other) for verdict in judge(events, [CHECKS["only-model-calls-run"]])]

    assert ["fail", "fail"] == [verdict.status for verdict in verdicts]


def test_the_agent_runs_an_unasked_call_itself():
    """That is never the provider's doing."""
    events = play_by_provider(BROKEN)
    next(event for event in events if event.kind == "tool.start").by = "agent"

    assert ["fail"] == [verdict.status for verdict in judge(events, [CHECKS["only-model-calls-run"]])]


@pytest.mark.parametrize(("line", "status"), [("without read", "pass"), ("", "fail")])
def test_the_kind_of_a_tool_that_is_gone_is_not_shown(line, status):
    """An agent that was started without the tool of a server knows the call, and not its server."""
    events = parse_notation(f"""
        tool read(path: string) always mcp disk
        send Read
        model c1 read(path=a)
        pause c1
        save
        {line}
        restore
        end left: c1
    """)
    for event in events:
        if isinstance(event, StateRestored | RunEnd):
            event.pending = [{**entry, "kind": "function", "server": None} for entry in event.pending]

    assert [status] == [verdict.status for verdict in judge(events, [CHECKS["request-shows-the-call"]])]
