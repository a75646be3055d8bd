"""The work of the linter grows like the text that it reads, and no faster.

Work is counted, not timed: calls of functions, and characters that are searched, copied or parsed. So the tests do not
depend on the machine or its load.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pytest_approvals.conversations.histories import documents, positions
from pytest_approvals.conversations.histories.documents import DocumentReader
from pytest_approvals.conversations.histories.files import _FileReader
from pytest_approvals.conversations.histories.positions import find_offsets
from pytest_approvals.conversations.histories.readers import FormatDetector
from pytest_approvals.conversations.lint import lint_conversation
from pytest_approvals.conversations.lint.linter import FORMATTERS, finding_messages
from pytest_approvals.errors import HistoryError

Json = dict[str, Any]

COUNT = 60
MOST = 5
"""How much the work may grow with four times as much text; it would be 16 if it were quadratic."""

characters = 0


class CountedText(str):
    """A text that counts the characters that are searched or copied."""

    __slots__ = ()

    def find(self, *words: Any) -> int:
        found = super().find(*words)
        _, start, end = (*words, 0, len(self))[:3] if len(words) < 3 else words
        _count((found if found >= 0 else min(end, len(self))) - start)
        return found

    def count(self, *words: Any) -> int:
        _, start, end = (*words, 0, len(self))[:3] if len(words) < 3 else words
        _count(min(end, len(self)) - start)
        return super().count(*words)

    def __getitem__(self, key: Any) -> CountedText:
        part = super().__getitem__(key)
        _count(len(part))
        return CountedText(part)

    def __add__(self, other: str) -> CountedText:
        _count(len(self) + len(other))
        return CountedText(super().__add__(other))

    def __radd__(self, other: str) -> CountedText:
        return CountedText(other) + self


def _count(number: int) -> None:
    global characters
    characters += number


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[int, int]]:
    """Return a function that lints a text, and returns how many functions it called and characters it looked at."""
    for module, name in ((documents, "_SCAN"), (documents, "_STRICT"), (positions, "_scan_value")):
        monkeypatch.setattr(module, name, _counted_scan(getattr(module, name)))

    # msgspec takes nothing but plain texts.
    parse_line = documents.parse_line
    monkeypatch.setattr(documents, "parse_line", lambda text, start, end: parse_line(_plain(text, start, end), 0, end))

    def measure(text: str, lint: Callable[[str], None] = lint_text) -> tuple[int, int]:
        global characters
        characters = calls = 0

        def profile(frame: Any, event: str, argument: Any) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(profile)
        try:
            lint(text)
        finally:
            sys.setprofile(None)
        return calls, characters

    return measure


def _plain(text: str, start: int, end: int) -> str:
    _count(end - start)
    return str.__getitem__(text, slice(start, end))


def _counted_scan(scan: Callable[[str, int], tuple[Any, int]]) -> Callable[[str, int], tuple[Any, int]]:
    def counted(text: str, start: int) -> tuple[Any, int]:
        try:
            value, end = scan(text, start)
        except StopIteration as stop:
            _count(stop.value - start)
            raise
        except json.JSONDecodeError as error:
            _count(error.pos - start)
            raise
        _count(end - start)
        return value, end

    return counted


def lint_text(text: str) -> None:
    """Lint all conversations of a text, and write what is found in each way."""
    rest = CountedText(text)

    def take(size: int) -> str:
        nonlocal rest
        taken, rest = str.__getitem__(rest, slice(size)), CountedText(str.__getitem__(rest, slice(size, None)))
        return CountedText(taken)

    detector = FormatDetector()
    reader = _FileReader("a.json", detector)
    for document in DocumentReader(take, detector.find_reader):
        if isinstance(document, HistoryError) or document.kind is None:
            continue
        for stored in reader.read(document, document.kind):
            assert not isinstance(stored, HistoryError)
            for message in finding_messages(lint_conversation(stored.conversation, ["p*"]), stored):
                for write in FORMATTERS.values():
                    assert write(message)


def assert_linear(work: Callable[..., tuple[int, int]], text: Callable[[int], str], **options: Any) -> None:
    lint_text(text(4))
    for few, many in zip(work(text(COUNT), **options), work(text(4 * COUNT), **options), strict=True):
        assert many <= MOST * few


# --- layouts ----------------------------------------------------------------------------------------------------------


def orphans(count: int) -> list[Json]:
    """Messages with a finding each."""
    return [{"role": "tool", "tool_call_id": f"c{number}", "content": "paid"} for number in range(count)]


def entries(count: int, *, branches: bool = False) -> list[Json]:
    """Entries of Claude Code with a finding each; each in a branch of its own, or all in one."""
    found = []
    for number in range(count):
        block = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "paid"}
        parent = "e0" if branches else f"e{number - 1}"
        message = {"role": "user", "content": [block]}
        found.append({"type": "user", "uuid": f"e{number}", "parentUuid": parent, "sessionId": "s", "message": message})
    return found


def updates(count: int, *, sessions: bool = False) -> list[Json]:
    """Updates of ACP with a finding each; each of a session of its own, or all of one."""
    begun = {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "s0"}}
    shown = [
        {
            "jsonrpc": "2.0",
            "method": "session/update",
            "params": {
                "sessionId": f"s{number if sessions else 0}",
                "update": {"sessionUpdate": "tool_call_update", "toolCallId": f"c{number}", "status": "completed"},
            },
        }
        for number in range(count)
    ]
    return [begun, *shown]


LAYOUTS: dict[str, Callable[[int], str]] = {
    "one line": lambda count: json.dumps(orphans(count)),
    "one line, ended": lambda count: json.dumps(orphans(count)) + "\n",
    "indented": lambda count: json.dumps(orphans(count), indent=1),
    "indented in an object": lambda count: json.dumps({"messages": orphans(count)}, indent=4),
    "spread over lines": lambda count: json.dumps(orphans(count)).replace(" ", "\n\n\n"),
    "a conversation a line": lambda count: "\n".join(json.dumps(orphans(2)) for _ in range(count)),
    "a list of conversations": lambda count: json.dumps([orphans(2) for _ in range(count)]),
    "a list on a line": lambda count: json.dumps([orphans(2) for _ in range(count)]) + "\n",
    "an indented list": lambda count: json.dumps([orphans(2) for _ in range(count)], indent=1),
    "a list of objects": lambda count: json.dumps([{"messages": orphans(2)} for _ in range(count)], indent=1),
    "an uneven list": lambda count: json.dumps([orphans(1 + number % 7) for number in range(count)]),
    "one after the other": lambda count: " ".join(json.dumps(orphans(2)) for _ in range(count)),
    "one after the other, ended": lambda count: " ".join(json.dumps(orphans(2)) for _ in range(count)) + "\n",
    "lines that are broken": lambda count: "\n".join(("{bad}", json.dumps(orphans(1)))[n % 2] for n in range(count)),
    "lines in disorder": lambda count: "\n".join(("[]]", json.dumps(orphans(1)), "")[n % 3] for n in range(count)),
    "entries": lambda count: json.dumps(entries(count), indent=1),
    "entries in branches": lambda count: json.dumps(entries(count, branches=True)),
    "updates": lambda count: json.dumps(updates(count), indent=1),
    "updates of sessions": lambda count: json.dumps(updates(count, sessions=True)),
    "escapes": lambda count: json.dumps(orphans(count)).replace("p", "\\u0070"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [1_000, documents.CHUNK_SIZE])
def test_lint_is_linear_however_a_text_is_laid_out(
    work: Callable[..., tuple[int, int]], monkeypatch: pytest.MonkeyPatch, layout: str, size: int
) -> None:
    """With four times as many messages, or conversations, the work is four times as much."""
    monkeypatch.setattr(documents, "CHUNK_SIZE", size)

    assert_linear(work, LAYOUTS[layout])


# --- contents ---------------------------------------------------------------------------------------------------------


def meai(*contents: Json) -> list[Json]:
    return [{"role": "assistant", "contents": [content]} for content in contents]


def call(call_id: str, **arguments: Any) -> Json:
    return {"$type": "functionCall", "callId": call_id, "name": "pay", "arguments": arguments}


def request(request_id: str, of: Json) -> Json:
    return {"$type": "toolApprovalRequest", "requestId": request_id, "toolCall": of}


def response(request_id: str, of: Json) -> Json:
    return {"$type": "toolApprovalResponse", "requestId": request_id, "approved": True, "toolCall": of}


def result(call_id: str) -> Json:
    return {"$type": "functionResult", "callId": call_id, "result": "paid"}


def one_id(count: int) -> list[Json]:
    calls = [call("c", amount=number) for number in range(count)]
    requests = [request(f"r{number}", each) for number, each in enumerate(calls)]
    return meai(*calls, *requests, *[result("c")] * count)


def requests_in_place_of_calls(count: int) -> list[Json]:
    calls = [call("c", amount=number) for number in range(count)]
    requests = [request(f"r{number}", each) for number, each in enumerate(calls)]
    return meai(*requests, *calls)


def decisions_about_a_long_call(count: int) -> list[Json]:
    asked = call("c", text="x" * 100 * count)
    short = [response("r", call("c", text=str(number))) for number in range(count)]
    return meai(asked, request("r", asked), *short)


def decisions_with_other_ids(count: int) -> list[Json]:
    asked = call("c" * 100 * count)
    return meai(asked, request("r", asked), *[response("r", call(f"c{number}")) for number in range(count)])


def hosted(count: int) -> list[Json]:
    common = {"name": "pay", "server_label": "bank"}
    requests = [
        {"type": "mcp_approval_request", "id": f"r{number}", "arguments": f'{{"amount": {number}}}', **common}
        for number in range(count)
    ]
    reports = [
        {"type": "mcp_call", "id": f"m{number}", "arguments": f'{{"amount": {number}}}', "output": "paid", **common}
        for number in reversed(range(count))
    ]
    return [*requests, *reports]


def histories_of_a_session(count: int) -> Json:
    return {"stateBag": {f"provider{number}": {"messages": meai(result("c"))} for number in range(count)}}


def a_long_name_of_a_history(count: int) -> Json:
    lists = {"collectedApprovalResponses": [response("r", call("c"))] * count}
    return {"stateBag": {"x" * 100 * count: {"messages": meai(*[result("c")] * count)}, "toolApprovalState": lists}}


def unknown_types(count: int) -> list[Json]:
    return meai(*[{"$type": f"functionCal{number}"} for number in range(count)])


def run_state(count: int) -> Json:
    calls = [{"type": "function_call", "call_id": f"c{n}", "name": f"pay{n}", "arguments": "{}"} for n in range(count)]
    results = [{"type": "function_call_output", "call_id": f"c{n}", "output": "paid"} for n in range(count)]
    items = [
        *({"type": "tool_call_item", "raw_item": each} for each in calls),
        *({"type": "tool_approval_item", "raw_item": each} for each in calls[::2]),
        *({"type": "tool_call_output_item", "raw_item": each} for each in results),
    ]
    approvals = {f"pay{number}": {"approved": [f"c{number}"], "rejected": []} for number in range(0, count, 3)}
    state = {"$schemaVersion": "1.0", "original_input": "Pay", "session_items": items}
    return state | {"context": {"approvals": approvals}}


def checkpoints(count: int) -> list[Json]:
    calls = [{"id": f"c{number}", "name": "pay", "args": {"amount": number}} for number in range(count)]
    actions = [{"name": "pay", "args": {"amount": number}} for number in reversed(range(count))]
    messages = [{"type": "ai", "content": "", "tool_calls": [each]} for each in calls]
    interrupt = [{"id": "i", "value": {"action_requests": actions}}]
    state = {"channel_values": {"messages": messages}}
    return [{"checkpoint": state, "pending_writes": [["t", "__interrupt__", interrupt]]}]


def ui_parts(count: int) -> list[Json]:
    part = {"type": "tool-pay", "toolCallId": "c", "state": "output-available", "input": {}, "output": "paid"}
    return [{"role": "assistant", "parts": [{**part, "approval": {"id": f"a{number}"}} for number in range(count)]}]


CONTENTS = (
    one_id,
    requests_in_place_of_calls,
    decisions_about_a_long_call,
    decisions_with_other_ids,
    hosted,
    histories_of_a_session,
    a_long_name_of_a_history,
    unknown_types,
    run_state,
    checkpoints,
    ui_parts,
)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("content", CONTENTS)
def test_lint_is_linear_whatever_a_conversation_repeats(
    work: Callable[..., tuple[int, int]], content: Callable[[int], Any], indent: int | None
) -> None:
    """Ids, requests, decisions, reports of the provider, and places for messages."""
    assert_linear(work, lambda count: json.dumps(content(count), indent=indent))


@pytest.mark.parametrize("content", CONTENTS)
def test_what_is_written_is_linear(content: Callable[[int], Any]) -> None:
    """A long name or value is not written with each finding."""
    lengths = []
    for count in (COUNT, 4 * COUNT):
        document = content(count)
        findings = lint_conversation(FormatDetector().read(document), ["p*"])
        lengths.append(sum(len(finding.text) + len(finding.where) for finding in findings))

    assert lengths[1] <= MOST * lengths[0]


# --- the measure ------------------------------------------------------------------------------------------------------


def _paths(text: str) -> Iterator[tuple[int, str]]:
    return ((number, "role") for number in range(len(json.loads(text))))


def find_one_by_one(text: str) -> None:
    for path in _paths(text):
        find_offsets(text, 0, [path])


def copy_for_each(text: str) -> None:
    counted = CountedText(text)
    for _ in _paths(text):
        counted[1:]


@pytest.mark.parametrize("lint", [find_one_by_one, copy_for_each])
def test_the_measure_sees_what_is_not_linear(work: Callable[..., tuple[int, int]], lint: Callable[[str], None]) -> None:
    """Both a search from the start for each finding, and a copy of the text for each."""
    with pytest.raises(AssertionError):
        assert_linear(work, LAYOUTS["indented"], lint=lint)
