"""Traces: the story as the instrumentation of each framework writes it, and what becomes of traces in real life.

The files in `traces/stored` are made by the scripts next to them, by the frameworks' own instrumentation.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    DecisionEntry,
    ExecutionEntry,
    RequestEntry,
    ResultEntry,
    TextEntry,
)
from pytest_approvals.conversations.histories.files import LocatedConversation, SkippedFile, read_conversations
from pytest_approvals.conversations.histories.journal import build_journal
from pytest_approvals.conversations.histories.readers import FORMATS, detect_format, get_reader
from pytest_approvals.conversations.histories.spans.span import read_attributes
from pytest_approvals.conversations.lint import LintFinding, lint_conversation
from pytest_approvals.errors import HistoryError
from pytest_approvals.journal.arguments import parse_arguments
from pytest_approvals.journal.validation import find_violations

Json = dict[str, Any]

STORED = Path(__file__).parent / "traces" / "stored"
PAY_5, PAY_6, READ = "call_A7kQ2mZ9xWpay5", "call_B3nR8tY1vUpay6", "call_C5jL4sH6eDread"

DONE = sorted(path.name for path in STORED.glob("*_done.*") if path.name != "autogen_done.json")
"""Traces of the same story. AutoGen has no approvals, and its own."""
WITH_CONTENT = [name for name in DONE if "without_content" not in name]
WITHOUT_REQUESTS = (
    "agno_openinference_done.json",
    "openai_agents_done.jsonl",
    "openai_agents_openinference_done.json",
)
"""Neither the tracing of OpenAI Agents nor OpenInference of it and of Agno shows what waits for approval."""

with_content = pytest.mark.parametrize("name", WITH_CONTENT)


def read(*paths: Path) -> list[LocatedConversation]:
    found = list(read_conversations([str(path) for path in paths]))
    assert not [each for each in found if isinstance(each, HistoryError | SkippedFile)]
    return [each for each in found if isinstance(each, LocatedConversation)]


def mistakes(stored: LocatedConversation, *gated: str) -> list[str]:
    return [each.rule for each in lint(stored, *gated) if each.is_mistake]


def notices(stored: LocatedConversation) -> list[str]:
    return [each.text for each in lint(stored) if not each.is_mistake]


def lint(stored: LocatedConversation, *gated: str) -> list[LintFinding]:
    return lint_conversation(stored.conversation, gated)


@with_content
def test_a_trace_tells_the_story(name: str) -> None:
    """Two traces are one conversation: its texts once each, its calls, what ran, and one result for each call."""
    [stored] = read(STORED / name)
    conversation = stored.conversation
    texts = [(entry.role, entry.text) for entry in conversation.of(TextEntry) if entry.role != "system"]
    calls = {entry.id: (entry.tool, parse_arguments(entry.arguments)) for entry in conversation.of(CallEntry)}

    assert [("user", "Pay 5 and 6"), ("assistant", "Let me see."), ("assistant", "Done.")] == texts
    assert {PAY_5: ("pay", {"amount": 5}), PAY_6: ("pay", {"amount": 6}), READ: ("read", {"path": "x"})} == calls
    assert [READ, PAY_5] == sorted((each.call_id for each in conversation.of(ExecutionEntry)), reverse=True)
    assert [PAY_5, PAY_6, READ] == sorted(each.call_id or "" for each in conversation.of(ResultEntry))


@with_content
def test_a_paused_trace_waits(name: str) -> None:
    """The first trace alone is a conversation that waits for both decisions."""
    [stored] = read(STORED / name.replace("_done", "_paused"))

    assert [] == mistakes(stored)
    assert 2 == sum("pay(amount=" in text and " waits for " in text for text in notices(stored))


def test_a_trace_of_autogen_tells_its_story() -> None:
    """Its spans of tools have ids only; what was returned is in the next input of the model."""
    [stored] = read(STORED / "autogen_done.json")
    conversation = stored.conversation
    results = {entry.call_id: (entry.outcome, entry.value) for entry in conversation.of(ResultEntry)}

    assert [] == lint(stored)
    assert ["Pay 5 and 6", "Let me see.", "Done."] == [
        entry.text for entry in conversation.of(TextEntry) if entry.role != "system"
    ]
    assert {PAY_5: ("returned", "paid 5"), PAY_6: ("failed", "no 6"), READ: ("returned", "text of x")} == results


@pytest.mark.parametrize("name", [each for each in WITH_CONTENT if each not in WITHOUT_REQUESTS])
def test_requests_are_in_most_traces(name: str) -> None:
    """What a run ended with, or an exception that paused it, names the calls that wait."""
    [stored] = read(STORED / name)

    assert [PAY_5, PAY_6] == [entry.call_id for entry in stored.conversation.of(RequestEntry)]


@pytest.mark.parametrize("how", ["waiting", "finished"])
def test_a_request_of_an_agent_in_a_tool_is_in_its_own_conversation(how: str) -> None:
    """LangGraph shows it outside, too, and traces the stopped run of the tool without the id of its call."""
    outer, inner = read(STORED / f"langchain_nested_{how}.json")

    assert [] == [*mistakes(outer), *mistakes(inner)]
    assert [] == list(outer.conversation.of(RequestEntry))
    assert [PAY_5] == [entry.call_id for entry in inner.conversation.of(RequestEntry)]
    assert ([PAY_5] if how == "finished" else []) == [entry.call_id for entry in inner.conversation.of(ExecutionEntry)]


def test_decisions_are_in_traces_of_agent_framework() -> None:
    """Its agents trace what they are given."""
    [stored] = read(STORED / "agent_framework_done.json")

    assert ["approve", "reject"] == [entry.verdict for entry in stored.conversation.of(DecisionEntry)]


def test_a_pause_of_an_early_release_of_openai_agents_is_a_request(stored) -> None:
    """Before 0.21 the span of a call that waits has an object as its output, with the request inside of it."""
    request = "ToolApprovalItem(agent=Agent(name='clerk'), raw_item=ResponseFunctionToolCall(call_id='c1', name='pay'))"
    waiting = f"FunctionToolResult(tool=FunctionTool(name='pay'), output=None, run_item={request})"
    call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 5}'}}
    said = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    asked = {"type": "generation", "input": [{"role": "user", "content": "Pay 5"}], "output": said}
    spans = [
        asked,
        {"type": "function", "name": "pay", "input": '{"amount": 5}', "output": waiting},
        {"type": "function", "name": "pay", "input": '{"amount": 5}', "output": "paid 5"},
    ]
    [conversation] = stored(
        [
            {
                "object": "trace.span",
                "id": f"span_{number}",
                "trace_id": "trace_1",
                "started_at": f"2026-11-25T09:00:0{number}+00:00",
                "span_data": data,
            }
            for number, data in enumerate(spans)
        ]
    )

    assert [] == lint(conversation)
    assert ["c1"] == [each.call_id for each in conversation.conversation.of(RequestEntry)]
    assert ["c1"] == [each.call_id for each in conversation.conversation.of(ExecutionEntry)]


def test_a_pause_of_an_early_release_of_strands_is_a_request(stored) -> None:
    """Its tools are asked for inside of their spans: without a status, nothing has run."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.provider.name": "strands-agents",
        "gen_ai.tool.name": "pay",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"amount": 5}',
    }
    paid = {"gen_ai.tool.status": "success", "gen_ai.tool.call.result": '[{"text": "paid 5"}]'}
    [conversation] = stored(
        [
            {"trace_id": "t", "span_id": span_id, "start_time": f"2026-11-25T09:00:0{second}Z", "attributes": each}
            for second, span_id, each in ((1, "a", attributes), (2, "b", {**attributes, **paid}))
        ]
    )

    assert [] == lint(conversation)
    assert ["c1"] == [each.call_id for each in conversation.conversation.of(RequestEntry)]
    assert ["paid 5"] == [each.value for each in conversation.conversation.of(ResultEntry)]


@pytest.mark.parametrize(
    ("raised", "asks"),
    [
        ({"attributes": {"pydantic_ai.tool.deferral.name": "ApprovalRequired"}}, True),
        ({"attributes": {"pydantic_ai.tool.deferral.name": "CallDeferred"}}, False),
        ({"events": {"exception.type": "pydantic_ai.exceptions.ApprovalRequired"}}, True),
        ({"events": {"exception.type": "langgraph.errors.GraphInterrupt"}}, True),
    ],
)
def test_a_tool_that_raises_to_pause_has_not_run(stored, raised: Json, asks: bool) -> None:
    """Its second span is the first execution."""
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay", "gen_ai.tool.call.id": "c1"}
    events = [{"name": "exception", "attributes": each} for each in (raised.get("events"),) if each]
    spans = [
        {"attributes": {**attributes, **raised.get("attributes", {})}, "events": events, "status": {"code": 2}},
        {"attributes": {**attributes, "gen_ai.tool.call.result": "paid"}},
    ]
    [conversation] = stored(
        [
            {"trace_id": "t", "span_id": str(number), "start_time": f"2026-11-25T09:00:0{number}Z", **span}
            for number, span in enumerate(spans)
        ]
    )

    assert [] == mistakes(conversation)
    assert ["paid"] == [each.value for each in conversation.conversation.of(ExecutionEntry)]
    assert asks == bool(list(conversation.conversation.of(RequestEntry)))


@pytest.mark.parametrize("name", DONE)
def test_what_an_instrumentation_wrote_has_no_mistake(name: str) -> None:
    """Lint finds nothing in it."""
    [stored] = read(STORED / name)

    assert [] == (lint(stored) if name in WITH_CONTENT else mistakes(stored))


@pytest.mark.parametrize("name", DONE)
def test_its_journal_keeps_the_grammar(name: str) -> None:
    """What it tells as a journal is a journal, in which the executions are those of the trace."""
    [stored] = read(STORED / name)
    journal = build_journal(stored.conversation)
    certain = [each for each in stored.conversation.of(ExecutionEntry) if each.outcome in ("returned", "failed")]

    assert [] == find_violations(journal)
    assert len(certain) == sum(event.kind == "tool.start" for event in journal)


@pytest.mark.parametrize("name", [each for each in DONE if each.endswith(".json")])
def test_only_the_reader_of_spans_is_sure(name: str) -> None:
    """A document says by its structure that it holds spans."""
    document = json.loads((STORED / name).read_text())

    assert get_reader("spans") is detect_format(document)
    assert ["spans"] == [other for other in FORMATS if get_reader(other).matches(document)]


# --- traces in real life ----------------------------------------------------------------------------------------------


@pytest.fixture
def document() -> Json:
    """The trace that Pydantic AI wrote."""
    loaded: Json = json.loads((STORED / "pydantic_ai_6_done.json").read_text())
    return loaded


@pytest.fixture
def stored(tmp_path: Path) -> Callable[..., list[LocatedConversation]]:
    """Store documents as lines of files, and read them."""

    def store(*files: Json | list[Json]) -> list[LocatedConversation]:
        paths = [tmp_path / f"{number}.jsonl" for number in range(len(files))]
        for path, documents in zip(paths, files, strict=True):
            lines = documents if isinstance(documents, list) else [documents]
            path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return read(*paths)

    return store


def spans_of(document: Json) -> list[Json]:
    found: list[Json] = document["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return found


def attributes_of(span: Json) -> Json:
    return {each["key"]: each["value"] for each in span["attributes"]}


def find_span(document: Json, tool: str) -> Json:
    return next(span for span in spans_of(document) if span["name"] == f"execute_tool {tool}")


def split(document: Json) -> Iterator[Json]:
    """Yield a document for each span."""
    for span in spans_of(document):
        scope = document["resourceSpans"][0]["scopeSpans"][0]["scope"]
        yield {"resourceSpans": [{"scopeSpans": [{"scope": scope, "spans": [span]}]}]}


def test_a_conversation_may_be_spread_over_lines_and_files(document: Json, stored) -> None:
    """Each span is in a file of its own, the last one first."""
    [conversation] = stored(*reversed(list(split(document))))

    assert [] == lint(conversation)
    assert 3 == len(list(conversation.conversation.of(ResultEntry)))


def test_a_finding_is_in_the_file_of_its_span(document: Json, stored) -> None:
    """File and line are those of the span, though the conversation began elsewhere."""
    again = copy.deepcopy(find_span(document, "pay"))
    again["spanId"] = "00000000000000aa"
    again["startTimeUnixNano"] = str(int(again["startTimeUnixNano"]) + 1)
    spans_of(document).append(again)
    documents = list(split(document))
    [conversation] = stored(documents[:-1], documents[-1])
    [finding] = lint(conversation)
    [place] = conversation.find_places([finding.path])

    assert ("runs-at-most-once", ("00000000000000aa",)) == (finding.rule, finding.path)
    assert ("1.jsonl", 1) == (Path(place.file).name, place.line)


def test_an_export_that_came_twice_is_read_once(document: Json, stored) -> None:
    """Exporters repeat a request whose answer was lost."""
    [conversation] = stored([document, document], document)

    assert [] == lint(conversation)


@pytest.mark.parametrize(("session", "count"), [("thread-7", 2), ("c7660d65-6160-462f-a4ba-63e196f93e56", 1)])
def test_sessions_of_two_files_are_one_if_their_id_looks_random(
    document: Json, stored, session: str, count: int
) -> None:
    """Two services may both call a session `thread-7`, and no two have the same random one."""
    other = copy.deepcopy(document)
    for part, letter in ((document, "a"), (other, "b")):
        for span in spans_of(part):
            span["traceId"] = letter * 32
            attributes_of(span)["gen_ai.conversation.id"]["stringValue"] = session
    text = json.dumps(other)
    for word in ("A7kQ2mZ9xW", "B3nR8tY1vU", "C5jL4sH6eD"):
        text = text.replace(word, word[::-1])

    assert count == len(stored(document, json.loads(text)))


def test_several_conversations_in_one_file(document: Json, stored) -> None:
    """Their spans may alternate; ids tell them apart."""
    text = json.dumps(document)
    for word in ("A7kQ2mZ9xW", "B3nR8tY1vU", "C5jL4sH6eD"):
        text = text.replace(word, word[::-1])
    for span in spans_of(document):
        text = text.replace(span["traceId"], span["traceId"][::-1])
        text = text.replace(attributes_of(span)["gen_ai.conversation.id"]["stringValue"], "another")
    other = json.loads(text)
    mixed = [each for pair in zip(split(document), split(other), strict=True) for each in pair]
    conversations = stored(mixed)

    assert 2 == len(conversations)
    assert [[], []] == [lint(each) for each in conversations]


def test_content_that_is_not_captured_is_said_once(stored) -> None:
    """What is there is judged: ids and their order."""
    document = json.loads((STORED / "pydantic_ai_without_content_done.json").read_text())
    text = json.dumps(document)
    for word in ("A7kQ2mZ9xW", "B3nR8tY1vU", "C5jL4sH6eD"):
        text = text.replace(word, word[::-1])
    for span in spans_of(document):
        text = text.replace(span["traceId"], span["traceId"][::-1])
        text = text.replace(attributes_of(span)["gen_ai.conversation.id"]["stringValue"], "another")
    found = [notices(each) for each in stored(document, json.loads(text))]

    assert [
        ["texts, arguments and results were not captured, here or in others; ids and order are judged"],
        [],
    ] == found


def test_a_double_effect_is_found_without_content(stored) -> None:
    """The ids of calls are captured in any case."""
    document = json.loads((STORED / "pydantic_ai_without_content_done.json").read_text())
    again = copy.deepcopy(find_span(document, "pay"))
    again["spanId"] = "00000000000000aa"
    spans_of(document).append(again)
    [conversation] = stored(document)

    assert ["runs-at-most-once"] == mistakes(conversation)


def test_messages_that_a_limit_cut_off_are_told(document: Json, stored) -> None:
    """`OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT` leaves half of a JSON text; the other spans are read."""
    for span in spans_of(document):
        for attribute in span["attributes"]:
            if attribute["key"] == "gen_ai.output.messages":
                attribute["value"]["stringValue"] = attribute["value"]["stringValue"][:40]
    [conversation] = stored(document)

    assert [] == mistakes(conversation)
    assert ["gen_ai.output.messages was cut off, so its messages cannot be read"] * 2 == notices(conversation)


def test_dropped_attributes_are_told(document: Json, stored) -> None:
    """The SDK counts what it dropped."""
    find_span(document, "read")["droppedAttributesCount"] = 3
    [conversation] = stored(document)

    assert ["some of its attributes or events were dropped"] == notices(conversation)


@pytest.mark.parametrize("lost", ["execute_tool pay", "chat function:<lambda>:", "invoke_agent clerk"])
def test_a_sampled_trace_raises_no_alarm(document: Json, stored, lost: str) -> None:
    """What other spans show of the conversation is judged."""
    spans_of(document)[:] = [span for span in spans_of(document) if span["name"] != lost]
    [conversation] = stored(document)

    assert [] == mistakes(conversation)


def move(span: Json, milliseconds: int) -> None:
    for name in ("startTimeUnixNano", "endTimeUnixNano"):
        span[name] = str(int(span[name]) + milliseconds * 1_000_000)


def test_a_tool_that_ran_before_it_was_called(document: Json, stored) -> None:
    """In one process there is one clock, so the order is certain."""
    move(find_span(document, "read"), -60_000)
    [conversation] = stored(document)

    assert ["time-order"] == mistakes(conversation)


def test_a_time_that_is_none_is_no_crash(document: Json, stored) -> None:
    """The span is read as if it had no time."""
    find_span(document, "read")["startTimeUnixNano"] = "9" * 40
    [conversation] = stored(document)

    assert [READ] == [each.call_id for each in conversation.conversation.of(ExecutionEntry)][:1]


def test_clocks_that_disagree_are_told(document: Json, stored) -> None:
    """A tool in another process may have an earlier clock: that is no mistake of the agent."""
    span = find_span(document, "read")
    spans_of(document).remove(span)
    move(span, -60_000)
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "tools"}}]}
    elsewhere = {"resource": resource, "scopeSpans": [{"scope": {"name": "pydantic-ai"}, "spans": [span]}]}
    document["resourceSpans"].append(elsewhere)
    [conversation] = stored(document)

    assert [] == mistakes(conversation)
    assert ["in another process, so the clocks may disagree"] == [
        each.split(", ", 1)[1] for each in notices(conversation)
    ]


def test_an_agent_in_a_tool_is_a_conversation_of_its_own(document: Json, stored) -> None:
    """Its messages are not those of the agent that called the tool."""
    text = (STORED / "pydantic_ai_6_paused.json").read_text()
    for word in ("A7kQ2mZ9xW", "B3nR8tY1vU", "C5jL4sH6eD"):
        text = text.replace(word, word[::-1])
    for span in spans_of(json.loads(text)):
        text = text.replace(span["spanId"], span["spanId"][::-1])
    inner, outer = json.loads(text), find_span(document, "read")
    for span in spans_of(inner):
        span["traceId"] = outer["traceId"]
        span.setdefault("parentSpanId", outer["spanId"])
    conversations = stored([document, inner])

    assert ["", f" in {READ}"] == [each.conversation.name.split("]")[1] for each in conversations]
    assert [[], []] == [mistakes(each) for each in conversations]
    assert [0, 2] == [len(notices(each)) for each in conversations]


def test_spans_without_a_model_are_no_conversation(tmp_path: Path) -> None:
    """A named file that has no steps of an agent is an error; one in a folder is skipped."""
    span = {"traceId": "a", "spanId": "b", "name": "GET /", "attributes": []}
    path = tmp_path / "spans.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    [named], [found] = read_conversations([str(path)]), read_conversations([str(tmp_path)])

    assert isinstance(named, HistoryError)
    assert named.what.startswith("no spans of models or tools of an agent")
    assert isinstance(found, SkippedFile)


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        ({"resourceSpans": [7]}, "resourceSpans[0]: expected an object, got an integer"),
        ({"resourceSpans": [{"scopeSpans": 7}]}, "resourceSpans[0].scopeSpans: expected an array, got an integer"),
        (
            {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "chat"}]}]}]},
            "resourceSpans[0].scopeSpans[0].spans[0]: missing: expected the span's traceId",
        ),
    ],
)
def test_broken_spans_have_a_place(tmp_path: Path, broken: Json, expected: str) -> None:
    """What has the wrong shape is told with its path."""
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(broken))
    error = next(iter(read_conversations([str(path)])))

    assert isinstance(error, HistoryError)
    assert str(error).endswith(expected)


# --- exports of Phoenix, and early releases ---------------------------------------------------------------------------


def take_apart(attributes: Mapping[str, Any]) -> Json:
    """Return attributes as Phoenix keeps them: taken apart at the dots of their names, with lists for numbers."""
    root: Json = {}
    for name, value in attributes.items():
        *steps, last = name.split(".")
        held = root
        for step in steps:
            held = held.setdefault(step, {})
        held[last] = value
    return {name: _to_lists(value) for name, value in root.items()}


def _to_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {name: _to_lists(each) for name, each in value.items()}
    return [inner[name] for name in sorted(inner, key=int)] if inner and all(map(str.isdigit, inner)) else inner


def test_attributes_that_were_taken_apart_tell_the_same(stored) -> None:
    """Phoenix downloads spans with the attributes of OpenInference as objects within objects."""
    document = json.loads((STORED / "langchain_openinference_done.json").read_text())
    [whole] = stored(document)
    lines = []
    for span in spans_of(document):
        context = {"trace_id": span["traceId"], "span_id": span["spanId"]}
        attributes = take_apart(read_attributes(span["attributes"]))
        times = {"start_time": span["startTimeUnixNano"], "parent_id": span.get("parentSpanId")}
        others = {name: span[name] for name in ("name", "events", "status") if name in span}
        lines.append({"context": context, "attributes": attributes, **times, **others})
    [apart] = stored(lines)

    assert 3 == len(list(apart.conversation.of(ResultEntry)))
    assert whole.conversation.entries == apart.conversation.entries


def test_an_execution_without_the_name_of_its_operation_is_one(document: Json, stored) -> None:
    """Early releases of Pydantic AI named the operation of requests to the model only."""
    for span in spans_of(document):
        if span["name"].startswith("execute_tool"):
            span["attributes"] = [each for each in span["attributes"] if each["key"] != "gen_ai.operation.name"]
    [conversation] = stored(document)

    assert 2 == len(list(conversation.conversation.of(ExecutionEntry)))
